//! Rules for Rust sources.

const COLUMNS_MAX: usize = 100;

/// What must not be left behind. In two parts, so that this file does not contain them.
const LEFTOVERS: &[[&str; 2]] =
    &[["FIX", "ME"], ["TO", "DO"], ["X", "XX"], ["dbg", "!("], ["#[ign", "ore"]];

/// Complaints about one file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if !text.starts_with("//!") {
        complaints.push(format!("{path}: does not begin with a `//!` line saying what it is for"));
    }
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
    for (index, line) in text.lines().enumerate() {
        let at = format!("{path}:{}", index + 1);
        if line.chars().count() > COLUMNS_MAX && !line.contains("://") {
            complaints.push(format!("{at}: longer than {COLUMNS_MAX} columns"));
        }
        if !is_test && !line.is_ascii() {
            complaints.push(format!("{at}: a character that is not ASCII"));
        }
        for leftover in LEFTOVERS.iter().map(|parts| parts.concat()) {
            if line.contains(&leftover) {
                complaints.push(format!("{at}: `{leftover}` is left"));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidy_file_has_no_complaints() {
        assert!(check("src/a.rs", "//! What it is for.\n\nfn main() {}\n").is_empty());
    }

    #[test]
    fn the_first_line_says_what_a_file_is_for() {
        assert_eq!(check("src/a.rs", "use std::fs;\n").len(), 1);
        assert_eq!(check("src/a.rs", "").len(), 1);
    }

    #[test]
    fn long_lines_are_found_but_addresses_may_be_long() {
        let long = "x".repeat(COLUMNS_MAX + 1);
        let found = check("src/a.rs", &format!("//! A.\n// {long}\n"));
        assert_eq!(found, ["src/a.rs:2: longer than 100 columns"]);
        assert!(check("src/a.rs", &format!("//! A.\n// https://{long}\n")).is_empty());
    }

    #[test]
    fn every_leftover_is_found() {
        for leftover in LEFTOVERS {
            let text = format!("//! A.\n{}\n", leftover.concat());
            assert_eq!(check("src/a.rs", &text).len(), 1, "{leftover:?}");
        }
    }

    #[test]
    fn only_tests_may_leave_ascii() {
        let text = "//! A.\n// \u{e9}\n";
        assert_eq!(check("src/a.rs", text).len(), 1);
        assert!(check("src/a/tests.rs", text).is_empty());
        assert!(check("crates/a/tests/it/main.rs", text).is_empty());
    }
}
