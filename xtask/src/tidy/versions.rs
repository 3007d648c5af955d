//! The versions of files in docs/versions.md against the constants of the code.

use super::VERSIONS_PAGE;

/// A row: what it is about, the version that is written, and the file of the code that says it.
struct Row<'a> {
    what: &'a str,
    written: &'a str,
    source: &'a str,
}

/// Complaints about rows whose file writes another version. `read` gives a file of the tree.
pub(super) fn check(document: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let rows: Vec<Row<'_>> = document.lines().filter_map(row).collect();
    let mut complaints = Vec::new();
    if rows.is_empty() {
        complaints.push(format!("{VERSIONS_PAGE}: no versions of files found"));
    }
    for Row { what, written, source } in rows {
        match read(source).as_deref().and_then(version_in) {
            Some(version) if version == written => {}
            Some(version) => complaints
                .push(format!("{VERSIONS_PAGE}: {what}: {source} writes {version}, not {written}")),
            None => complaints.push(format!("{VERSIONS_PAGE}: {what}: {source} has no version")),
        }
    }
    complaints
}

/// From `| what | where | 1 | 1 | [file](../crates/file.rs) |`.
fn row(line: &str) -> Option<Row<'_>> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let (what, _, written) = (cells.next()?, cells.next()?, cells.next()?);
    let (_, link) = cells.nth(1)?.split_once("](../")?;
    let source = link.strip_suffix(')')?;
    source.ends_with(".rs").then_some(Row { what, written, source })
}

/// The value of the file's `const VERSION` or `const FORMAT`.
fn version_in(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let (_, constant) = line.split_once("const ")?;
        let (name, rest) = constant.split_once(": ")?;
        let (_, value) = rest.split_once(" = ")?;
        matches!(name, "VERSION" | "FORMAT").then(|| value.trim_end_matches(';'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| What | Where | Written | Read | Source |\n|---|---|---|---|---|\n\
                        | users | `users.json` | 2 | 1, 2 | [users](../crates/users.rs) |\n";

    #[test]
    fn a_version_of_the_page_is_the_one_of_the_code() {
        let code = "const VERSION_MIN: u32 = 1;\npub(crate) const VERSION: u32 = 2;\n";
        assert!(check(PAGE, |_| Some(code.to_owned())).is_empty());
        let newer = check(PAGE, |_| Some(code.replace("= 2", "= 3")));
        assert_eq!(newer, ["docs/versions.md: users: crates/users.rs writes 3, not 2"]);
        let none = check(PAGE, |_| None);
        assert_eq!(none, ["docs/versions.md: users: crates/users.rs has no version"]);
        assert_eq!(check("", |_| None), ["docs/versions.md: no versions of files found"]);
    }
}
