//! Rules of the tree that no compiler knows. Each rule is a function from text to complaints.

mod circles;
mod doors;
mod exports;
mod layers;
mod manifest;
mod modules;
mod opcodes;
mod resolve;
mod sources;
mod tokens;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{capture, root};
use manifest::Manifest;

/// Larger files do not belong into git.
const FILE_SIZE_MAX: u64 = 4 << 20;

/// Says which versions of files are written and read.
const VERSIONS_PAGE: &str = "docs/versions.md";

/// Checks the whole tree and prints every complaint.
pub(crate) fn tidy() -> Result<()> {
    let root = root();
    let files = files_of(&root)?;
    let mut complaints = Vec::new();
    check_sources(&root, &files, &mut complaints)?;
    check_crates(&root, &mut complaints)?;
    check_modules(&root, &files, &mut complaints)?;
    check_opcodes(&root, &mut complaints)?;
    let read_source = |path: &str| read(&root.join(path)).ok();
    complaints.extend(versions::check(&read(&root.join(VERSIONS_PAGE))?, read_source));
    for complaint in &complaints {
        println!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} complaints", complaints.len());
    }
    Ok(())
}

/// What git knows or would add, relative to the root.
fn files_of(root: &Path) -> Result<Vec<PathBuf>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let listed = capture(&mut list)?;
    if !listed.succeeded {
        bail!("git cannot list the files: {}", listed.text);
    }
    let files = listed.text.lines().map(PathBuf::from);
    Ok(files.filter(|file| root.join(file).is_file()).collect())
}

fn check_sources(root: &Path, files: &[PathBuf], complaints: &mut Vec<String>) -> Result<()> {
    for file in files {
        let size = fs::metadata(root.join(file))?.len();
        if size > FILE_SIZE_MAX {
            complaints.push(format!("{}: {size} bytes, at most {FILE_SIZE_MAX}", file.display()));
        }
        if file.extension().is_some_and(|extension| extension == "rs") {
            let text = read(&root.join(file))?;
            let path = file.to_string_lossy();
            complaints.extend(sources::check(&path, &text));
            complaints.extend(doors::check(&path, &text));
        }
    }
    Ok(())
}

fn check_crates(root: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let mut manifests = Vec::new();
    let mut directories: Vec<_> = fs::read_dir(root.join("crates"))?.collect::<Result<_, _>>()?;
    directories.sort_by_key(fs::DirEntry::file_name);
    for directory in directories {
        let path = directory.path().join("Cargo.toml");
        if path.is_file() {
            let manifest = Manifest::parse(&read(&path)?);
            manifests.push(manifest.with_context(|| path.display().to_string())?);
        }
    }
    let rows = layers::parse(&read(&root.join("ARCHITECTURE.md"))?);
    complaints.extend(layers::check(&rows, &manifests));
    for manifest in &manifests {
        complaints.extend(manifest.check());
    }
    complaints.extend(manifest::check_lock(&read(&root.join("Cargo.lock"))?)?);
    Ok(())
}

/// What imports what inside the crates, and what they show.
fn check_modules(root: &Path, files: &[PathBuf], complaints: &mut Vec<String>) -> Result<()> {
    let names: Vec<_> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    let mut sources = BTreeMap::new();
    for name in names.iter().filter(|name| name.contains("/src/") && name.ends_with(".rs")) {
        sources.insert(name.clone(), read(&root.join(name))?);
    }
    let libraries = names.iter().filter_map(|name| {
        Some((name.strip_prefix("crates/")?.strip_suffix("/src/lib.rs")?, name))
    });
    let crates: Vec<_> = libraries
        .map(|(name, library)| (name.to_owned(), modules::read(library, &sources)))
        .collect();
    for (name, modules) in &crates {
        complaints.extend(circles::check(name, modules));
        complaints.extend(exports::check_root_imports(modules));
    }
    complaints.extend(exports::check_names(&crates));
    complaints.extend(exports::check_module_style(names.iter().map(String::as_str)));
    Ok(())
}

/// The opcode table of the documents is the one of the code, where both exist.
fn check_opcodes(root: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let code = root.join("crates/protocol/src/opcode/table.rs");
    let document = root.join("COMPAT.md");
    if code.is_file() && document.is_file() {
        complaints.extend(opcodes::check(&read(&code)?, &read(&document)?));
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
