//! What logs mark as users' data, hidden: the same name is the same checksum in one archive, and
//! another one in the next.

use platform::Entropy;
use sha2::{Digest, Sha256};

const BEGIN: &str = "<ud>";
const END: &str = "</ud>";
/// Bytes of a checksum that are shown: enough to tell names apart.
const SHOWN_BYTES: usize = 10;

/// The checksums of one archive.
pub(super) struct Redaction {
    /// Nobody finds names by trying them.
    salt: [u8; 32],
}

impl Redaction {
    pub(super) fn new(entropy: &Entropy) -> Self {
        let mut salt = [0; 32];
        entropy.fill(&mut salt);
        Self { salt }
    }

    /// The text with checksums between the marks. What is marked as begun and never ends is users'
    /// data up to the end of its line.
    pub(super) fn of(&self, text: &str) -> String {
        text.split_inclusive('\n').map(|line| self.line(line)).collect()
    }

    fn line(&self, line: &str) -> String {
        let mut hidden = String::with_capacity(line.len());
        let mut rest = line;
        while let Some((before, marked)) = rest.split_once(BEGIN) {
            let (data, behind) = marked.split_once(END).unwrap_or_else(|| {
                let text = marked.trim_end_matches('\n');
                (text, &marked[text.len()..])
            });
            hidden.extend([before, BEGIN, &self.checksum(data), END]);
            rest = behind;
        }
        hidden + rest
    }

    fn checksum(&self, data: &str) -> String {
        let digest = Sha256::new().chain_update(self.salt).chain_update(data).finalize();
        digest.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_is_hidden_and_still_told_apart() {
        let redaction = Redaction::new(&Entropy::simulated(1));
        let text = "a <ud>bob</ud> b <ud>eve</ud>\n<ud>bob</ud> c\nd <ud>cut off\ne";
        let hidden = redaction.of(text);
        assert!(!["bob", "eve", "cut"].iter().any(|name| hidden.contains(name)), "{hidden}");
        let names: Vec<&str> =
            hidden.split(BEGIN).skip(1).filter_map(|part| Some(part.split_once(END)?.0)).collect();
        assert_eq!(names.len(), 4);
        assert_eq!(names[0], names[2]);
        assert_ne!(names[0], names[1]);
        assert!(hidden.starts_with("a <ud>") && hidden.ends_with("</ud>\ne"), "{hidden}");
        let other = Redaction::new(&Entropy::simulated(2));
        assert_ne!(other.of(text), hidden, "the next archive has other checksums");
    }
}
