//! A crate as its modules: what each defines and imports, and the paths it uses.
//!
//! Code that only tests compile is left out. Bodies are read for their paths alone.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Token, tokens};

/// The words that begin an item with a name of its own.
const DEFINITIONS: &[&str] = &["struct", "enum", "union", "trait", "type", "fn", "static", "const"];

/// Words that begin an item or stand before one. What begins otherwise is a field or a variant.
const ITEM_WORDS: &[&str] =
    &["pub", "impl", "mod", "use", "unsafe", "async", "extern", "macro_rules"];

/// The module tree of one crate.
#[derive(Debug, Default)]
pub(super) struct Modules {
    /// The first is the crate's root.
    pub(super) modules: Vec<Module>,
    pub(super) references: Vec<Reference>,
}

/// A module: a file, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Relative to the tree's root.
    pub(super) file: String,
    pub(super) parent: usize,
    /// By name, with whether they are public.
    pub(super) children: BTreeMap<String, (usize, bool)>,
    pub(super) definitions: BTreeMap<String, bool>,
    pub(super) imports: BTreeMap<String, (Vec<String>, bool)>,
    pub(super) globs: Vec<(Vec<String>, bool)>,
    /// Where the files of its modules lie.
    folder: String,
}

/// A path that code of a module says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) module: usize,
    pub(super) path: Vec<String>,
    /// `use path::*`: all that the module at the path holds.
    pub(super) is_glob: bool,
    pub(super) line: usize,
}

/// The crate that begins at `root`, a path such as `crates/auth/src/lib.rs`.
pub(super) fn read(root: &str, sources: &BTreeMap<String, String>) -> Modules {
    let mut modules = Modules::default();
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    modules.add_file(root, folder, 0, sources);
    modules
}

impl Modules {
    fn add_file(
        &mut self,
        file: &str,
        folder: &str,
        parent: usize,
        sources: &BTreeMap<String, String>,
    ) -> Option<usize> {
        let text = sources.get(file)?;
        let module = self.add_module(file, folder, parent);
        let tokens = tokens(text);
        Reader { modules: self, sources, tokens: &tokens, at: 0 }.module_body(module);
        Some(module)
    }

    fn add_module(&mut self, file: &str, folder: &str, parent: usize) -> usize {
        let (file, folder) = (file.to_owned(), folder.to_owned());
        self.modules.push(Module { file, folder, parent, ..Module::default() });
        self.modules.len() - 1
    }

    /// The module of a `mod name;`, which lies in one of two places.
    fn add_child_file(
        &mut self,
        name: &str,
        parent: usize,
        sources: &BTreeMap<String, String>,
    ) -> Option<usize> {
        let folder = format!("{}/{name}", self.modules[parent].folder);
        let files = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        files.iter().find_map(|file| self.add_file(file, &folder, parent, sources))
    }
}

/// Goes through the tokens of one file.
struct Reader<'m, 't> {
    modules: &'m mut Modules,
    sources: &'m BTreeMap<String, String>,
    tokens: &'t [Token<'t>],
    at: usize,
}

impl<'t> Reader<'_, 't> {
    fn peek(&self, ahead: usize) -> &'t str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    /// Items, up to the brace that closes the module.
    fn module_body(&mut self, module: usize) {
        while self.at < self.tokens.len() && self.peek(0) != "}" {
            self.item(module);
        }
        self.at += 1;
    }

    fn item(&mut self, module: usize) {
        if self.skip_test_code() {
            return;
        }
        let is_public = self.visibility();
        match (self.peek(0), self.peek(1)) {
            ("mod", name) => self.child(module, name, is_public),
            ("use", _) => self.import(module, is_public),
            ("macro_rules", _) => {
                self.define(module, self.peek(2), is_public);
                self.body(module);
            }
            ("const", "fn" | "unsafe" | "async" | "extern") => self.at += 1,
            (word, name) if DEFINITIONS.contains(&word) => {
                self.define(module, name, is_public);
                self.body(module);
            }
            ("unsafe" | "async" | "extern" | ";", _) => self.at += 1,
            _ => self.body(module),
        }
    }

    /// `pub` alone; what is `pub(crate)` is not public.
    fn visibility(&mut self) -> bool {
        if self.peek(0) != "pub" {
            return false;
        }
        self.at += 1;
        let is_limited = self.peek(0) == "(";
        if is_limited {
            self.skip_group();
        }
        !is_limited
    }

    fn define(&mut self, module: usize, name: &str, is_public: bool) {
        self.modules.modules[module].definitions.insert(name.to_owned(), is_public);
    }

    fn child(&mut self, module: usize, name: &str, is_public: bool) {
        let is_inline = self.peek(2) == "{";
        self.at += 3;
        let child = if is_inline {
            let parent = &self.modules.modules[module];
            let (file, folder) = (parent.file.clone(), format!("{}/{name}", parent.folder));
            let child = self.modules.add_module(&file, &folder, module);
            self.module_body(child);
            Some(child)
        } else {
            self.modules.add_child_file(name, module, self.sources)
        };
        if let Some(child) = child {
            let children = &mut self.modules.modules[module].children;
            children.insert(name.to_owned(), (child, is_public));
        }
    }

    fn import(&mut self, module: usize, is_public: bool) {
        self.at += 1;
        self.import_tree(module, &[], is_public);
        self.at += usize::from(self.peek(0) == ";");
    }

    /// One branch of a `use`, up to the comma, brace or semicolon behind it.
    fn import_tree(&mut self, module: usize, prefix: &[String], is_public: bool) {
        let mut path = prefix.to_vec();
        let line = self.line();
        loop {
            match self.peek(0) {
                "{" => return self.import_group(module, &path, is_public),
                "*" => {
                    self.at += 1;
                    let globs = &mut self.modules.modules[module].globs;
                    globs.push((path.clone(), is_public));
                    return self.refer(module, path, true, line);
                }
                "::" => {
                    // One in front leads out of the crate; the others stand between names.
                    if path.is_empty() {
                        path.push(String::new());
                    }
                    self.at += 1;
                    continue;
                }
                "self" if !path.is_empty() => {}
                word if is_name(word) => path.push(word.to_owned()),
                _ => return,
            }
            self.at += 1;
            if self.peek(0) != "::" {
                return self.import_name(module, path, is_public, line);
            }
        }
    }

    fn import_group(&mut self, module: usize, path: &[String], is_public: bool) {
        self.at += 1;
        while !matches!(self.peek(0), "}" | "") {
            let start = self.at;
            self.import_tree(module, path, is_public);
            self.at += usize::from(self.peek(0) == "," || self.at == start);
        }
        self.at += 1;
    }

    fn import_name(&mut self, module: usize, path: Vec<String>, is_public: bool, line: usize) {
        let mut name = path.last().map_or("", String::as_str);
        if self.peek(0) == "as" {
            name = self.peek(1);
            self.at += 2;
        }
        let imports = &mut self.modules.modules[module].imports;
        imports.insert(name.to_owned(), (path.clone(), is_public));
        self.refer(module, path, false, line);
    }

    fn refer(&mut self, module: usize, path: Vec<String>, is_glob: bool, line: usize) {
        self.modules.references.push(Reference { module, path, is_glob, line });
    }

    /// The paths of an item, up to its semicolon or the end of its braces.
    fn body(&mut self, module: usize) {
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            if self.skip_test_code() {
                continue;
            }
            match self.peek(0) {
                "use" if self.peek(1) != "<" => {
                    self.import(module, false);
                    continue;
                }
                "{" | "(" | "[" => depth += 1,
                "}" if depth <= 1 => {
                    // The brace of an enclosing module stays.
                    self.at += depth;
                    return;
                }
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => {
                    self.at += 1;
                    return;
                }
                word if is_name(word) && self.peek(1) == "::" => {
                    self.path(module);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// A path in the middle of code: names with `::` between.
    fn path(&mut self, module: usize) {
        let line = self.line();
        let mut path = vec![self.peek(0).to_owned()];
        let is_global = self.at > 0 && self.tokens[self.at - 1].text == "::";
        self.at += 1;
        while self.peek(0) == "::" && is_name(self.peek(1)) {
            path.push(self.peek(1).to_owned());
            self.at += 2;
        }
        if !is_global {
            self.refer(module, path, false, line);
        }
    }

    /// Skips attributes, and if one of them is for tests alone, what it stands at as well.
    fn skip_test_code(&mut self) -> bool {
        let mut is_test = false;
        while self.peek(0) == "#" && (self.peek(1) == "[" || self.peek(2) == "[") {
            self.at += 1 + usize::from(self.peek(1) == "!");
            let start = self.at;
            self.skip_group();
            let words: Vec<_> =
                self.tokens[start..self.at].iter().map(|token| token.text).collect();
            is_test |= matches!(words[..], ["[", "cfg", "(", "test", ..])
                || matches!(words[..], ["[", "cfg", "(", "all", "(", "test", ..]);
        }
        if is_test {
            self.skip_item();
        }
        is_test
    }

    /// An item ends with a semicolon or with its braces; a field, variant or statement also with a
    /// comma, or where the braces around it close.
    fn skip_item(&mut self) {
        let first = self.peek(0);
        let is_item = DEFINITIONS.contains(&first) || ITEM_WORDS.contains(&first);
        let is_field = first == "pub" && !is_keyword_ahead(&self.tokens[self.at..]);
        let mut angles = 0_usize;
        while self.at < self.tokens.len() {
            match self.peek(0) {
                "<" => angles += 1,
                ">" => angles = angles.saturating_sub(1),
                _ => {}
            }
            match self.peek(0) {
                ";" => {
                    self.at += 1;
                    return;
                }
                "," if angles == 0 && (!is_item || is_field) => {
                    self.at += 1;
                    return;
                }
                "}" => return,
                "{" => {
                    self.skip_group();
                    return;
                }
                "(" | "[" => self.skip_group(),
                _ => self.at += 1,
            }
        }
    }

    /// From an opening bracket to behind the one that closes it.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            match self.peek(0) {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }
}

/// Behind `pub` and its limits: is it an item rather than a field?
fn is_keyword_ahead(tokens: &[Token<'_>]) -> bool {
    let words = tokens.iter().take(6).map(|token| token.text);
    let keywords: BTreeSet<_> = DEFINITIONS.iter().chain(&ITEM_WORDS[1..]).copied().collect();
    words.take_while(|word| *word != ":").any(|word| keywords.contains(word))
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_lib(text: &str) -> Modules {
        let sources = BTreeMap::from([("src/lib.rs".to_owned(), text.to_owned())]);
        read("src/lib.rs", &sources)
    }

    fn paths(text: &str) -> Vec<String> {
        let references = read_lib(text).references;
        references.iter().map(|reference| reference.path.join("::")).collect()
    }

    #[test]
    fn imports_are_read_branch_by_branch() {
        let text = "pub use crate::{a::{self, B as C}, d::*}; use ::std::fs;";
        assert_eq!(paths(text), ["crate::a", "crate::a::B", "crate::d", "::std::fs"]);
        let root = &read_lib(text).modules[0];
        let names: Vec<_> = root.imports.keys().map(String::as_str).collect();
        assert_eq!(names, ["C", "a", "fs"]);
        assert_eq!(root.globs, [(vec!["crate".to_owned(), "d".to_owned()], true)]);
    }

    #[test]
    fn paths_in_bodies_are_read() {
        let text = "fn f<T: a::B>() -> [u8; 2] { use super::c; d::e::<F>(g::H { i }) }";
        assert_eq!(paths(text), ["a::B", "super::c", "d::e", "g::H"]);
    }

    #[test]
    fn test_code_is_left_out() {
        let cases = [
            "#[cfg(test)] mod tests { use crate::a; } b::c!();",
            "#[cfg(test)] use crate::a; const B: u8 = b::c;",
            "#[cfg(all(test, feature = \"model\"))] mod models; fn f() { b::c }",
            "struct S { #[cfg(test)] a: a::A, b: b::c }",
            "struct S { #[cfg(test)] pub(crate) a: Map<K, a::A> } fn f() { b::c }",
            "impl S { #[cfg(test)] pub(crate) fn f<A, B>() { a::A } fn g() { b::c } }",
            "fn f() { #[cfg(test)] a::call(1, 2); b::c }",
            "#[cfg(test)] #[derive(Debug)] struct A(a::A); #[derive(B)] struct B(b::c);",
        ];
        for case in cases {
            assert_eq!(paths(case).last().map(String::as_str), Some("b::c"), "{case}");
            assert!(!paths(case).iter().any(|path| path.contains('a')), "{case}");
        }
    }

    #[test]
    fn definitions_are_of_the_module_and_not_of_its_bodies() {
        let text = "pub struct A; pub(crate) const fn b() { struct C; } const D: u8 = 1;\
                    unsafe impl E for A { fn f() {} } pub trait G { type H; }";
        let definitions = &read_lib(text).modules[0].definitions;
        let found: Vec<_> = definitions.iter().map(|(name, &is)| (name.as_str(), is)).collect();
        assert_eq!(found, [("A", true), ("D", false), ("G", true), ("b", false)]);
    }

    #[test]
    fn modules_are_found_in_files_in_folders_and_inline() {
        let sources = BTreeMap::from([
            (
                "src/lib.rs".to_owned(),
                "pub mod a; mod b; mod c { mod d; use super::a; }".to_owned(),
            ),
            ("src/a.rs".to_owned(), "mod e;".to_owned()),
            ("src/a/e.rs".to_owned(), String::new()),
            ("src/b/mod.rs".to_owned(), "#[cfg(test)] mod tests;".to_owned()),
            ("src/b/tests.rs".to_owned(), String::new()),
            ("src/c/d.rs".to_owned(), String::new()),
        ]);
        let modules = read("src/lib.rs", &sources).modules;
        let files: Vec<_> = modules.iter().map(|module| module.file.as_str()).collect();
        let expected =
            ["src/lib.rs", "src/a.rs", "src/a/e.rs", "src/b/mod.rs", "src/lib.rs", "src/c/d.rs"];
        assert_eq!(files, expected);
        assert_eq!(modules[0].children["a"], (1, true));
        assert_eq!(modules[0].children["b"], (3, false));
    }

    #[test]
    fn text_that_does_not_compile_comes_to_an_end() {
        for text in
            ["use a::{b", "use {{,", "mod", "fn f( {", "#[cfg(test)]", "}}", "pub(", "use ;"]
        {
            read_lib(text);
        }
    }
}
