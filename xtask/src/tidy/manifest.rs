//! What a crate's manifest must say, and what the lock file must not.

use anyhow::{Context, Result};
use toml::{Table, Value};

/// The one crate with a lint table of its own, because it may contain `unsafe`.
const OWN_LINTS: &str = "platform";

/// The parts of a manifest that rules are about.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) name: String,
    /// Names of dependencies and build dependencies.
    pub(super) dependencies: Vec<String>,
    pub(super) dev_dependencies: Vec<String>,
    pub(super) inherits_lints: bool,
    pub(super) inherits_publish: bool,
}

impl Manifest {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let manifest: Table = text.parse()?;
        let package = manifest.get("package").and_then(Value::as_table);
        let package = package.context("a crate has a [package]")?;
        let name = package.get("name").and_then(Value::as_str).context("a package has a name")?;
        let names = |table: &str| -> Vec<String> {
            let table = manifest.get(table).and_then(Value::as_table);
            table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
        };
        let inherits = |value: Option<&Value>| {
            value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
        };
        Ok(Self {
            name: name.to_owned(),
            dependencies: [names("dependencies"), names("build-dependencies")].concat(),
            dev_dependencies: names("dev-dependencies"),
            inherits_lints: inherits(manifest.get("lints")),
            inherits_publish: inherits(package.get("publish")),
        })
    }

    pub(super) fn check(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let path = format!("crates/{}/Cargo.toml", self.name);
        if !self.inherits_lints && self.name != OWN_LINTS {
            complaints.push(format!("{path}: the lints of the workspace are not inherited"));
        }
        if !self.inherits_publish {
            complaints.push(format!("{path}: `publish` of the workspace is not inherited"));
        }
        complaints
    }
}

/// A registry package with the name of a member makes `cargo -p` ambiguous.
pub(super) fn check_lock(lock: &str) -> Result<Vec<String>> {
    let lock: Table = lock.parse()?;
    let packages = lock.get("package").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let name = |package: &Value| package.get("name").and_then(Value::as_str).map(str::to_owned);
    let (foreign, members): (Vec<_>, Vec<_>) =
        packages.iter().partition(|package| package.get("source").is_some());
    let members: Vec<String> = members.into_iter().filter_map(name).collect();
    let clashes = foreign.into_iter().filter_map(name).filter(|name| members.contains(name));
    Ok(clashes.map(|name| format!("Cargo.lock: `{name}` is a member and a package")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
        [package]\nname = 'bucket'\npublish.workspace = true\n\
        [dependencies]\ndocument.workspace = true\n\
        [build-dependencies]\ncc = '1'\n\
        [dev-dependencies]\nplatform.workspace = true\n\
        [lints]\nworkspace = true\n";

    #[test]
    fn dependencies_of_all_sorts_are_seen() {
        let manifest = Manifest::parse(GOOD).unwrap();
        assert_eq!(manifest.name, "bucket");
        assert_eq!(manifest.dependencies, ["document", "cc"]);
        assert_eq!(manifest.dev_dependencies, ["platform"]);
        assert!(manifest.check().is_empty());
    }

    #[test]
    fn a_crate_must_inherit_lints_and_publish() {
        for missing in ["[lints]\nworkspace = true\n", "publish.workspace = true\n"] {
            let manifest = Manifest::parse(&GOOD.replace(missing, "")).unwrap();
            assert_eq!(manifest.check().len(), 1, "{missing}");
        }
        let own = GOOD.replace("'bucket'", "'platform'").replace("[lints]\nworkspace = true\n", "");
        assert!(Manifest::parse(&own).unwrap().check().is_empty());
    }

    #[test]
    fn a_package_with_the_name_of_a_member_is_found() {
        let lock = "[[package]]\nname = 'bucket'\n[[package]]\nname = 'anyhow'\nsource = 'x'\n";
        assert!(check_lock(lock).unwrap().is_empty());
        let clash = format!("{lock}[[package]]\nname = 'bucket'\nsource = 'x'\n");
        assert_eq!(check_lock(&clash).unwrap().len(), 1);
    }
}
