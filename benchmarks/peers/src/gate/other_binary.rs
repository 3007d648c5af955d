//! The node of another commit: built once, in a working tree of its own, and kept by commit.
//!
//! All of it is in `gate` under the target directory: `source`, which is moved from commit to
//! commit so that only crates that differ are built again; `build`, what cargo makes of it; and
//! `binaries`, by commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::servers::{build_node, repository, target_directory};

/// A binary of the node to compare with.
#[derive(Clone, Debug)]
pub struct OtherBinary {
    /// Where.
    pub path: PathBuf,
    /// What it is, for the report.
    pub name: String,
}

impl OtherBinary {
    /// Of a commit or at a path; without either of the commit before what is built here: HEAD while
    /// files differ from it, otherwise its parent.
    pub fn find(against: Option<&str>) -> Result<Self> {
        match against {
            Some(path) if Path::new(path).is_file() => {
                Ok(Self { path: fs::canonicalize(path)?, name: path.to_owned() })
            }
            Some(commit) => Self::of_commit(commit),
            None if is_changed()? => Self::of_commit("HEAD"),
            None => Self::of_commit("HEAD~1"),
        }
    }

    fn of_commit(name: &str) -> Result<Self> {
        let commit = git(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")])
            .with_context(|| format!("{name} is neither a file nor a commit"))?;
        let subject = git(&["show", "--no-patch", "--format=%h %s", &commit])?;
        let home = target_directory().join("gate");
        let binary = home.join("binaries").join(&commit);
        if !binary.is_file() {
            println!("building {subject} ...");
            build(&home, &commit, &binary)?;
        }
        Ok(Self { path: fs::canonicalize(binary)?, name: subject })
    }
}

fn build(home: &Path, commit: &str, binary: &Path) -> Result<()> {
    let source = home.join("source");
    let source_text = source.to_str().context("the target directory's name is text")?;
    if source.join(".git").exists() {
        git(&["-C", source_text, "checkout", "--quiet", "--force", "--detach", commit])?;
    } else {
        // Somebody may have removed the directory, and git remembers it.
        git(&["worktree", "prune"])?;
        git(&["worktree", "add", "--quiet", "--detach", source_text, commit])?;
    }
    let built = build_node(&source, &home.join("build"))?;
    fs::create_dir_all(home.join("binaries"))?;
    // Whole or not at all: who is interrupted here builds again.
    let copy = binary.with_extension("part");
    fs::copy(built, &copy)?;
    Ok(fs::rename(copy, binary)?)
}

/// Whether files that git knows differ from HEAD.
fn is_changed() -> Result<bool> {
    Ok(!git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty())
}

fn git(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    let output = command.args(arguments).current_dir(repository()).output();
    let output = output.context("git is not installed")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), error.trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_binary_and_nonsense_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("there is a disk");
        let path = file.path().to_str().expect("text");
        let found = OtherBinary::find(Some(path)).expect("a file");
        assert_eq!(found.name, path);
        let error = OtherBinary::find(Some("no-such-commit")).expect_err("neither");
        assert!(error.to_string().contains("neither a file nor a commit"), "{error}");
    }
}
