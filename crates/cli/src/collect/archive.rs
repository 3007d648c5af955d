//! The archive: a compressed tar file, made in memory.

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

/// Who may read a file that is taken out: its user.
const MODE: u32 = 0o600;

/// Texts under names, all in one directory.
pub(super) struct Archive {
    builder: Builder<GzEncoder<Vec<u8>>>,
    directory: String,
    /// Seconds since 1970 that all files are said to be of.
    seconds: u64,
    count: usize,
}

impl Archive {
    pub(super) fn new(directory: &str, seconds: u64) -> Self {
        let builder = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        Self { builder, directory: directory.to_owned(), seconds, count: 0 }
    }

    /// Whether nothing was put in.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn add(&mut self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(MODE);
        header.set_mtime(self.seconds);
        let path = format!("{}/{name}", self.directory);
        let added = self.builder.append_data(&mut header, path, bytes);
        added.with_context(|| format!("{name} has no place in an archive"))?;
        self.count += 1;
        Ok(())
    }

    /// The archive's bytes.
    pub(super) fn finish(self) -> anyhow::Result<Vec<u8>> {
        let encoder = self.builder.into_inner().context("the archive cannot be ended")?;
        encoder.finish().context("the archive cannot be compressed")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn what_is_put_in_comes_out() {
        let mut archive = Archive::new("of-today", 7);
        assert!(archive.is_empty());
        archive.add("a/b.txt", b"text").unwrap();
        assert!(!archive.is_empty());
        let bytes = archive.finish().unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(&bytes[..]));
        let mut entries = archive.entries().unwrap();
        let mut entry = entries.next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap().to_str(), Some("of-today/a/b.txt"));
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert!(entries.next().is_none());
    }
}
