//! The layer table of ARCHITECTURE.md against what the crates really use.

use super::manifest::Manifest;

/// Any crate may use them in its tests.
const TEST_SUPPORT: [&str; 2] = ["platform", "blessed"];

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    layer: u32,
    name: String,
    /// The names of the second column; `all` stands for every crate of a lower layer.
    may_use: Vec<String>,
}

/// Reads the rows between the markers: layer, crate, what it may use, and what it is.
pub(super) fn parse(document: &str) -> Vec<Row> {
    let table = document
        .split_once("<!-- layers:begin -->")
        .and_then(|(_, rest)| rest.split_once("<!-- layers:end -->"))
        .map_or("", |(table, _)| table);
    table.lines().filter_map(parse_row).collect()
}

fn parse_row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.trim().strip_prefix('|')?.split('|').map(str::trim).collect();
    let [layer, name, may_use, ..] = cells[..] else { return None };
    let names = may_use.split(',').map(|name| name.trim().trim_matches('`'));
    Some(Row {
        layer: layer.parse().ok()?,
        name: name.trim_matches('`').to_owned(),
        may_use: names.filter(|name| !matches!(*name, "" | "-")).map(str::to_owned).collect(),
    })
}

/// What is wrong with the table itself, and with the crates measured by it.
pub(super) fn check(rows: &[Row], manifests: &[Manifest]) -> Vec<String> {
    let mut complaints = Vec::new();
    if rows.is_empty() {
        complaints.push("ARCHITECTURE.md: there is no layer table between its markers".to_owned());
    }
    for row in rows {
        check_row(row, rows, &mut complaints);
    }
    let members: Vec<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
    for manifest in manifests {
        match rows.iter().find(|row| row.name == manifest.name) {
            Some(row) => check_crate(manifest, row, rows, &members, &mut complaints),
            None => complaints.push(format!("ARCHITECTURE.md: no row for `{}`", manifest.name)),
        }
    }
    complaints
}

fn check_row(row: &Row, rows: &[Row], complaints: &mut Vec<String>) {
    for used in row.may_use.iter().filter(|used| *used != "all") {
        let layer = rows.iter().find(|row| row.name == *used).map(|row| row.layer);
        if layer.is_none_or(|layer| layer >= row.layer) {
            complaints.push(format!(
                "ARCHITECTURE.md: `{}` may not use `{used}`: it is in no lower layer",
                row.name
            ));
        }
    }
}

fn check_crate(
    manifest: &Manifest,
    row: &Row,
    rows: &[Row],
    members: &[&str],
    complaints: &mut Vec<String>,
) {
    let is_lower = |name: &str| rows.iter().any(|r| r.name == name && r.layer < row.layer);
    let is_allowed = |name: &str| {
        row.may_use.iter().any(|used| used == name || (used == "all" && is_lower(name)))
    };
    let is_support = |name: &&String| TEST_SUPPORT.contains(&name.as_str());
    let for_tests = manifest.dev_dependencies.iter().filter(|name| !is_support(name));
    for used in manifest.dependencies.iter().chain(for_tests) {
        let is_member = members.contains(&used.as_str()) || rows.iter().any(|r| r.name == *used);
        if is_member && *used != manifest.name && !is_allowed(used) {
            complaints.push(format!(
                "crates/{0}/Cargo.toml: its row in ARCHITECTURE.md does not allow `{used}`",
                manifest.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
        | 9 | `outside` | - | not in the table |\n\
        <!-- layers:begin -->\n\
        | Layer | Crate | May use | What it is |\n\
        |---|---|---|---|\n\
        | 0 | `platform` | - | the world |\n\
        | 1 | `document` | platform | the words |\n\
        | 2 | `bucket` | document, platform | joins |\n\
        | 3 | `node` | all | the process |\n\
        <!-- layers:end -->\n";

    fn manifest(name: &str, dependencies: &[&str], dev_dependencies: &[&str]) -> Manifest {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Manifest {
            name: name.to_owned(),
            dependencies: owned(dependencies),
            dev_dependencies: owned(dev_dependencies),
            inherits_lints: true,
            inherits_publish: true,
        }
    }

    fn complaints(manifest: Manifest) -> Vec<String> {
        check(&parse(DOCUMENT), &[manifest])
    }

    #[test]
    fn rows_are_read_between_the_markers_only() {
        let rows = parse(DOCUMENT);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["platform", "document", "bucket", "node"]);
        assert_eq!(rows[2].may_use, ["document", "platform"]);
        assert!(rows[0].may_use.is_empty());
    }

    #[test]
    fn what_the_row_allows_is_fine_and_so_are_registry_packages() {
        assert!(complaints(manifest("bucket", &["document", "anyhow"], &["tempfile"])).is_empty());
        assert!(complaints(manifest("node", &["bucket", "platform"], &[])).is_empty());
    }

    #[test]
    fn an_upward_dependency_is_named() {
        let found = complaints(manifest("document", &["bucket"], &[]));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("crates/document") && found[0].contains("`bucket`"));
    }

    #[test]
    fn tests_may_use_their_support_but_nothing_else_beyond_the_row() {
        let rows = parse(&DOCUMENT.replace("document, platform", "document"));
        assert!(check(&rows, &[manifest("bucket", &[], &["platform", "blessed"])]).is_empty());
        assert_eq!(check(&rows, &[manifest("bucket", &["platform"], &[])]).len(), 1);
        assert_eq!(check(&rows, &[manifest("bucket", &[], &["node"])]).len(), 1);
    }

    #[test]
    fn a_row_may_not_point_sideways_upwards_or_nowhere() {
        for wrong in ["bucket", "node", "nothing"] {
            let rows = parse(&DOCUMENT.replace("document, platform", wrong));
            assert_eq!(check(&rows, &[]).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn every_crate_has_a_row_and_there_is_a_table() {
        assert_eq!(complaints(manifest("stranger", &[], &[])).len(), 1);
        assert_eq!(check(&parse("no table"), &[]).len(), 1);
    }
}
