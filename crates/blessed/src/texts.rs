//! Files and pages of the tree: what they are and what they should be.

use std::path::{Path, PathBuf};

use platform::Files;
use platform::files::{RealFiles, read_text};

/// Behind it stands what is made, in a page that people write the rest of.
const BEGIN: &str = "<!-- made from the code:begin -->\n";
const END: &str = "<!-- made from the code:end -->\n";

/// The file at `path`, from the root of the tree, is `expected`.
pub(crate) fn check_file(path: &str, expected: &str) {
    check(path, &read(path), expected);
}

/// What stands between the marks of the page at `path`, from the root of the tree, is `expected`.
pub fn check_page(path: &str, expected: &str) {
    let text = read(path);
    let (before, rest) = text.split_once(BEGIN).expect("a page has a mark where it begins");
    let (_, after) = rest.split_once(END).expect("a page has a mark where it ends");
    check(path, &text, &format!("{before}{BEGIN}\n{expected}\n{END}{after}"));
}

/// The file at `path`, from the root of the tree.
pub(crate) fn read(path: &str) -> String {
    let text = read_text(&root().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn check(path: &str, text: &str, expected: &str) {
    if text == expected {
        return;
    }
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        let written = RealFiles.replace_all(&root().join(path), expected.as_bytes());
        return written.expect("the tree can be written");
    }
    let first = first_difference(text, expected);
    panic!("{path} is not what the code says; BLESS=1 writes it anew. {first}");
}

/// The first line that differs, what is there and what should be.
fn first_difference(text: &str, expected: &str) -> String {
    let (mut is, mut should) = (text.lines(), expected.lines());
    for number in 1.. {
        let (is, should) = (is.next(), should.next());
        if is != should || is.is_none() {
            let line = |line: Option<&str>| line.unwrap_or("(the end)").to_owned();
            return format!("Line {number} is\n{}\nand should be\n{}", line(is), line(should));
        }
    }
    String::new()
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("a crate is two directories below the root").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_shown_also_when_one_text_ends_before_it() {
        let shown =
            |line: u32, is, should| format!("Line {line} is\n{is}\nand should be\n{should}");
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), shown(2, "b", "c"));
        assert_eq!(first_difference("a\n", "a\nc\n"), shown(2, "(the end)", "c"));
        assert_eq!(first_difference("a\nb\nc\n", "a\n"), shown(2, "b", "(the end)"));
    }
}
