//! From a path in code to the module that defines what it names, through every re-export.

use super::modules::{Module, Modules};

/// Longer chains of imports are taken for a circle of them.
const IMPORTS_MAX: usize = 16;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Module(usize),
    /// Something that the module defines.
    Item(usize),
}

impl Modules {
    /// What `path` names in `module`; none if it leads out of the crate.
    pub(super) fn resolve(&self, module: usize, path: &[String]) -> Option<Place> {
        self.resolve_within(module, path, IMPORTS_MAX)
    }

    fn resolve_within(&self, module: usize, path: &[String], steps: usize) -> Option<Place> {
        let steps = steps.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut place = match first.as_str() {
            "crate" => Place::Module(0),
            "self" => Place::Module(module),
            "super" => Place::Module(self.modules[module].parent),
            name => self.named(module, name, rest.is_empty(), steps)?,
        };
        while let (Place::Module(at), Some((name, behind))) = (place, rest.split_first()) {
            rest = behind;
            place = match name.as_str() {
                "super" => Place::Module(self.modules[at].parent),
                name => self.named(at, name, rest.is_empty(), steps).unwrap_or(Place::Item(at)),
            };
        }
        Some(place)
    }

    /// What `name` is in `module`. Where a module and something else have one name, a path that
    /// goes on (`is_last` is false) means the module.
    fn named(&self, module: usize, name: &str, is_last: bool, steps: usize) -> Option<Place> {
        let at = &self.modules[module];
        let child = at.children.get(name).map(|&(child, _)| Place::Module(child));
        if child.is_some() && !is_last {
            return child;
        }
        if at.definitions.contains_key(name) {
            return Some(Place::Item(module));
        }
        if let Some((path, _)) = at.imports.get(name) {
            return self.resolve_within(module, path, steps);
        }
        let in_glob = |(path, _): &(Vec<String>, bool)| {
            let Place::Module(source) = self.resolve_within(module, path, steps)? else {
                return None;
            };
            self.named(source, name, is_last, steps.checked_sub(1)?)
        };
        child.or_else(|| at.globs.iter().find_map(in_glob))
    }

    /// The first name of `path` that is no module, if it is one that the root only imports.
    pub(super) fn root_import<'p>(&self, module: usize, path: &'p [String]) -> Option<&'p str> {
        let mut at = module;
        for (index, name) in path.iter().enumerate() {
            at = match name.as_str() {
                "crate" => 0,
                "self" => at,
                "super" => self.modules[at].parent,
                name => match self.modules[at].children.get(name) {
                    Some(&(child, _)) => child,
                    None if index > 0 && at == 0 && !self.modules[0].defines(name) => {
                        return Some(name);
                    }
                    None => return None,
                },
            };
        }
        None
    }

    /// The module other than `module` that hands on what `path` names, if it defines other things
    /// itself: then it is a file of its own. One that only hands on is a door, which is looked
    /// through.
    pub(super) fn handed_on_by(&self, module: usize, path: &[String]) -> Option<usize> {
        let mut walked = Vec::new();
        for name in path {
            let at = match self.resolve(module, &walked) {
                Some(Place::Module(at)) => at,
                Some(Place::Item(_)) => return None,
                None => module,
            };
            let is_own = at == module || self.modules[at].defines(name);
            if !is_own && !self.modules[at].children.contains_key(name) {
                return (!self.modules[at].definitions.is_empty()).then_some(at);
            }
            walked.push(name.clone());
        }
        None
    }

    /// The public names of a module that are no modules, with the module that defines each.
    pub(super) fn public_names(&self) -> Vec<(String, usize)> {
        let mut names = Vec::new();
        self.add_public_names(0, &mut names);
        names
    }

    fn add_public_names(&self, module: usize, names: &mut Vec<(String, usize)>) {
        let at = &self.modules[module];
        let own = at.definitions.iter().filter(|(_, is_public)| **is_public);
        names.extend(own.map(|(name, _)| (name.clone(), module)));
        for (name, (path, is_public)) in &at.imports {
            if let (true, Some(Place::Item(source))) = (is_public, self.resolve(module, path)) {
                names.push((name.clone(), source));
            }
        }
        for &(child, is_public) in at.children.values() {
            if is_public {
                self.add_public_names(child, names);
            }
        }
    }
}

impl Module {
    /// A macro may define more than can be seen.
    fn defines(&self, name: &str) -> bool {
        let is_imported = self.imports.contains_key(name) || !self.globs.is_empty();
        self.definitions.contains_key(name) || !is_imported
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::modules::read;
    use super::*;

    /// `pub use` from one file to the next, and names that a module and something else share.
    fn made_up() -> Modules {
        let files = [
            ("lib", "mod a; pub mod b; pub use a::{Deep, Shallow}; pub use b::*; pub struct Own;"),
            ("a", "pub mod deep; mod room; pub use {deep::Deep, room::room}; pub struct Shallow;"),
            ("a/deep", "pub struct Deep; use super::Shallow; use other::Crate;"),
            ("a/room", "pub fn room() {} pub const SIZE: u8 = 1; use crate::a as up;"),
            ("b", "pub struct Wide; struct Narrow; pub(crate) struct Inner;"),
        ];
        let named = files.map(|(name, text)| (format!("src/{name}.rs"), text.to_owned()));
        read("src/lib.rs", &BTreeMap::from(named))
    }

    /// The file of what the path names, and whether it is the module itself.
    fn resolved(module: &str, path: &str) -> Option<(String, bool)> {
        let modules = made_up();
        let names: Vec<_> = path.split("::").map(str::to_owned).collect();
        let found = modules.resolve(index(&modules, module), &names)?;
        let (Place::Module(at) | Place::Item(at)) = found;
        let file = modules.modules[at].file.clone();
        Some((file, matches!(found, Place::Module(_))))
    }

    fn index(modules: &Modules, name: &str) -> usize {
        let file = format!("src/{name}.rs");
        modules.modules.iter().position(|module| module.file == file).unwrap()
    }

    #[test]
    fn paths_lead_to_the_defining_file() {
        let cases = [
            ("b", "crate::Deep", "a/deep"),
            ("b", "crate::a::Deep", "a/deep"),
            ("b", "super::a::deep::Deep", "a/deep"),
            ("a/deep", "super::Shallow", "a"),
            ("a/deep", "Shallow::new", "a"),
            ("a/deep", "crate::Wide", "b"),
            ("a/deep", "super::room", "a/room"),
            ("a/deep", "super::room::SIZE", "a/room"),
            ("a/room", "up::Deep", "a/deep"),
            ("a", "self::deep::hidden_by_a_macro", "a/deep"),
            ("b", "crate::Own", "lib"),
        ];
        for (module, path, file) in cases {
            assert_eq!(resolved(module, path), Some((format!("src/{file}.rs"), false)), "{path}");
        }
    }

    #[test]
    fn modules_and_other_crates_are_told_apart() {
        assert_eq!(resolved("b", "crate::a::deep"), Some(("src/a/deep.rs".to_owned(), true)));
        for path in ["std::fs::File", "Crate::new", "other::Crate", "::a::Deep", "Self::new"] {
            assert_eq!(resolved("a/deep", path), None, "{path}");
        }
    }

    #[test]
    fn imports_in_a_circle_name_nothing() {
        let text = "use a::B as a; use self::*; fn f() { a::c() }".to_owned();
        let modules = read("src/lib.rs", &BTreeMap::from([("src/lib.rs".to_owned(), text)]));
        assert_eq!(modules.resolve(0, &["a".to_owned(), "c".to_owned()]), None);
    }

    #[test]
    fn an_import_through_the_root_is_told_from_what_the_root_defines() {
        let modules = made_up();
        let cases = [
            ("a", "crate::Deep", Some("Deep")),
            ("a", "super::Wide", Some("Wide")),
            ("a/deep", "super::super::Shallow", Some("Shallow")),
            ("a", "crate::Own", None),
            ("a", "crate::a::Deep", None),
            ("a/deep", "super::Shallow", None),
            ("lib", "a::Deep", None),
        ];
        for (module, path, expected) in cases {
            let names: Vec<_> = path.split("::").map(str::to_owned).collect();
            assert_eq!(modules.root_import(index(&modules, module), &names), expected, "{path}");
        }
    }

    #[test]
    fn who_hands_on_and_defines_is_told_from_a_door() {
        let files = [
            ("lib", "mod file; mod door; mod user;"),
            ("file", "mod part; pub use part::Part; pub struct Own;"),
            ("file/part", "pub struct Part;"),
            ("door", "mod room; pub use room::Room;"),
            ("door/room", "pub struct Room;"),
            ("user", "use crate::file as known; use crate::file::Part;"),
        ];
        let named = files.map(|(name, text)| (format!("src/{name}.rs"), text.to_owned()));
        let modules = read("src/lib.rs", &BTreeMap::from(named));
        let cases = [
            ("crate::file::Part", Some("file")),
            ("known::Part::new", Some("file")),
            ("crate::file::part::Part", None),
            ("crate::file::Own", None),
            ("crate::door::Room", None),
            ("Part::new", None),
        ];
        for (path, by) in cases {
            let names: Vec<_> = path.split("::").map(str::to_owned).collect();
            let found = modules.handed_on_by(index(&modules, "user"), &names);
            assert_eq!(found, by.map(|name| index(&modules, name)), "{path}");
        }
    }

    #[test]
    fn public_names_are_those_that_other_crates_can_say() {
        let modules = made_up();
        let names = modules.public_names();
        let mut found: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, ["Deep", "Own", "Shallow", "Wide"]);
    }
}
