//! Circles of imports between the files of a crate, and how large they may be.
//!
//! A circle is a set of files each of which imports every other, if by way of others of the set:
//! none of them can be read, tested or moved alone. Who takes a name from a file that hands it on
//! imports that file, too, unless the file does nothing but hand on.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Modules;
use super::resolve::Place;

/// Circles of more files are larger than what fits a head.
const CIRCLE_FILES_MAX: usize = 5;

/// Which file imports what of which other: from file, to file, path, line.
type Edges = BTreeMap<String, BTreeMap<String, (String, usize)>>;

/// Complaints about one crate.
pub(super) fn check(name: &str, modules: &Modules) -> Vec<String> {
    let edges = edges(modules);
    let circles = circles(&edges);
    let too_large = circles.iter().filter(|circle| circle.len() > CIRCLE_FILES_MAX);
    too_large.map(|circle| describe(name, circle, &edges)).collect()
}

fn edges(modules: &Modules) -> Edges {
    let mut edges = Edges::new();
    for reference in &modules.references {
        let from = &modules.modules[reference.module].file;
        let to = match modules.resolve(reference.module, &reference.path) {
            Some(Place::Item(to)) => to,
            Some(Place::Module(to)) if reference.is_glob => to,
            // A module by itself is a name to say the paths behind it with.
            Some(Place::Module(_)) | None => continue,
        };
        let by = modules.handed_on_by(reference.module, &reference.path);
        for to in by.into_iter().chain([to]).map(|to| &modules.modules[to].file) {
            if from != to {
                let said = (reference.path.join("::"), reference.line);
                let targets = edges.entry(from.clone()).or_default();
                targets.entry(to.clone()).or_insert(said);
            }
        }
    }
    edges
}

/// The sets of two or more files that all reach one another.
fn circles(edges: &Edges) -> BTreeSet<BTreeSet<&str>> {
    let reached: BTreeMap<_, _> =
        edges.keys().map(|file| (file.as_str(), reach(edges, file))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
    let mut circles = BTreeSet::new();
    for (file, files) in &reached {
        let circle: BTreeSet<_> = files.iter().copied().filter(|to| reaches(to, file)).collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles
}

/// The files that `file` imports, and those that they import, and so on.
fn reach<'e>(edges: &'e Edges, file: &str) -> BTreeSet<&'e str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![file];
    while let Some(file) = waiting.pop() {
        for to in edges.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.as_str()) {
                waiting.push(to);
            }
        }
    }
    reached
}

fn describe(name: &str, circle: &BTreeSet<&str>, edges: &Edges) -> String {
    let mut lines = vec![format!(
        "crates/{name}: a circle of imports has {} files, at most {CIRCLE_FILES_MAX}:",
        circle.len()
    )];
    for (from, targets) in edges.iter().filter(|(from, _)| circle.contains(from.as_str())) {
        for (to, (path, line)) in targets.iter().filter(|(to, _)| circle.contains(to.as_str())) {
            lines.push(format!("  {from}:{line} -> {to}: {path}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::modules::read;
    use super::*;

    fn made_up(files: &[(&str, &str)]) -> Modules {
        let named = files.iter().map(|(name, text)| (format!("src/{name}.rs"), (*text).to_owned()));
        read("src/lib.rs", &named.collect())
    }

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let edges = edges(&made_up(files));
        let circles = circles(&edges);
        let joined =
            circles.iter().map(|circle| circle.iter().copied().collect::<Vec<_>>().join(" "));
        joined.collect()
    }

    /// `lib`, and as many files that each import the next.
    fn ring(count: usize) -> Modules {
        let names: Vec<_> = (0..count).map(|index| format!("f{index}")).collect();
        let mut files = vec![("lib", names.iter().map(|name| format!("mod {name};")).collect())];
        for (index, name) in names.iter().enumerate() {
            let next = &names[(index + 1) % count];
            files.push((name, format!("use crate::{next}::In{next}; pub struct In{name};")));
        }
        let files: Vec<_> =
            files.iter().map(|(name, text): &(_, String)| (*name, &**text)).collect();
        made_up(&files)
    }

    #[test]
    fn files_in_a_row_are_no_circle() {
        let lib = ("lib", "mod a; mod b; mod c; pub use a::A;");
        let files = [lib, ("a", "use crate::b::B;"), ("b", "use super::c::C;"), ("c", "")];
        assert!(circles_of(&files).is_empty());
    }

    #[test]
    fn a_circle_is_found_by_every_way_to_say_a_path() {
        for said in [
            "use crate::a::A;",
            "use super::a::{A, More};",
            "use super::{a};\nfn f() { a::call() }",
            "fn f() -> crate::a::A {}",
            "use crate::A;",
            "use super::Other;",
            "use super::a::*;",
        ] {
            let lib = ("lib", "mod a; mod b; pub use a::A; use a::A as Other;");
            let files =
                [lib, ("a", "use crate::b::B; pub struct A; pub struct More;"), ("b", said)];
            assert_eq!(circles_of(&files), ["src/a.rs src/b.rs"], "{said}");
        }
    }

    #[test]
    fn a_parent_and_its_child_can_be_a_circle() {
        let a = ("a", "mod b; use b::B; pub struct A;");
        let files = [("lib", "mod a;"), a, ("a/b", "use super::A; pub struct B;")];
        assert_eq!(circles_of(&files), ["src/a.rs src/a/b.rs"]);
    }

    #[test]
    fn a_child_that_imports_its_brother_through_the_parent_does_not_import_the_parent() {
        let a = ("a", "mod b; mod c; pub use b::B; pub use c::C;");
        let files = [("lib", "mod a;"), a, ("a/b", "use super::C;"), ("a/c", "pub struct C;")];
        assert!(circles_of(&files).is_empty());
    }

    #[test]
    fn tests_comments_and_strings_make_no_circle() {
        let b = "// use crate::a::A;\nconst C: &str = \"crate::a::A\";\
                 #[cfg(test)] mod tests { use crate::a::A; }";
        let files = [("lib", "mod a; mod b;"), ("a", "use crate::b::C;"), ("b", b)];
        assert!(circles_of(&files).is_empty());
    }

    #[test]
    fn a_larger_circle_is_named_with_its_edges() {
        assert!(check("a", &ring(CIRCLE_FILES_MAX)).is_empty());
        let complaints = check("a", &ring(CIRCLE_FILES_MAX + 1));
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with("crates/a: a circle of imports has 6 files, at most 5:"));
        assert!(complaints[0].contains("src/f5.rs:1 -> src/f0.rs: crate::f0::Inf0"));
    }
}
