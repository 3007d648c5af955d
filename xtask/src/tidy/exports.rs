//! What crates show, and what they must not do with it: names that mean two things, imports from
//! inside through the crate's own door, and modules in the old style.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Modules;

/// Complaints about imports through the root's re-exports.
pub(super) fn check_root_imports(modules: &Modules) -> Vec<String> {
    let mut complaints = Vec::new();
    for reference in &modules.references {
        if let Some(name) = modules.root_import(reference.module, &reference.path) {
            let file = &modules.modules[reference.module].file;
            complaints.push(format!(
                "{file}:{}: `{name}` is imported through the crate's root, not where it is",
                reference.line
            ));
        }
    }
    complaints
}

/// Complaints about `mod.rs`, given all files of the tree.
pub(super) fn check_module_style<'f>(files: impl Iterator<Item = &'f str>) -> Vec<String> {
    let of_crates = files.filter_map(|file| Some((file, file.strip_prefix("crates/")?)));
    of_crates
        .filter(|(_, file)| file.ends_with("/mod.rs"))
        .map(|(file, _)| format!("{file}: a module lies beside its folder, not in it"))
        .collect()
}

/// Complaints about types of one name in two crates, given each crate with its modules.
pub(super) fn check_names(crates: &[(String, Modules)]) -> Vec<String> {
    let mut files_of: BTreeMap<String, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for (name, modules) in crates {
        for (shown, module) in modules.public_names() {
            if is_type(&shown) {
                let file = modules.modules[module].file.as_str();
                files_of.entry(shown).or_default().insert((name, file));
            }
        }
    }
    files_of
        .retain(|_, files| files.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len() > 1);
    let shared = files_of.iter().map(|(name, files)| {
        let files: Vec<_> = files.iter().map(|(_, file)| *file).collect();
        format!("`{name}` is a public type of two crates: {}", files.join(", "))
    });
    shared.collect()
}

/// By its spelling: a macro's definitions have no other sign.
fn is_type(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && (name.len() == 1 || name.contains(|other: char| other.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::super::modules::read;
    use super::*;

    fn crate_of(name: &str, files: &[(&str, &str)]) -> (String, Modules) {
        let path = |file: &str| format!("crates/{name}/src/{file}.rs");
        let files = files.iter().map(|(file, text)| (path(file), (*text).to_owned()));
        (name.to_owned(), read(&path("lib"), &files.collect()))
    }

    #[test]
    fn an_import_through_the_root_is_named_and_one_of_its_own_items_is_fine() {
        let lib = ("lib", "mod a; mod b; pub use a::A; pub fn own() {}");
        let b = ("b", "use crate::a::A;\nuse crate::own;\nuse crate::A as B;");
        let (_, modules) = crate_of("made_up", &[lib, ("a", "pub struct A;"), b]);
        let found = check_root_imports(&modules);
        let expected = [
            "crates/made_up/src/b.rs:3: `A` is imported through the crate's root, not where it is",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn modules_in_their_folders_are_named() {
        let files = ["crates/made_up/src/a/mod.rs", "crates/made_up/src/b.rs", "fuzz/mod.rs"];
        let found = check_module_style(files.into_iter());
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/made_up/src/a/mod.rs:"));
    }

    #[test]
    fn types_of_one_name_in_two_crates_are_named() {
        let a = crate_of("a", &[("lib", "mod x; pub use x::Event;"), ("x", "pub struct Event;")]);
        let b = crate_of("b", &[("lib", "pub struct Event; pub const MAX: u8 = 1; struct Own;")]);
        let c =
            crate_of("c", &[("lib", "pub const MAX: u8 = 1; pub struct Own; pub use a::Event;")]);
        let crates = [a, b, c];
        let found = check_names(&crates);
        let expected = "`Event` is a public type of two crates: \
                        crates/a/src/x.rs, crates/b/src/lib.rs";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn types_are_told_by_their_spelling() {
        assert!(["A", "Lsn", "X509Name"].into_iter().all(is_type));
        assert!(!["MAX", "run", "_Hidden", "A_B"].into_iter().any(is_type));
    }
}
