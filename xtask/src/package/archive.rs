//! The archive: what the Debian package installs, for systems without its tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{capture, root, run};

/// What is for Debian's tools alone.
const LEFT_OUT: &[&str] = &["DEBIAN", "etc/default"];

/// Makes `<name>.tar.gz` in `directory` of what is below `tree`, with one directory in it, and
/// `<name>.tar.gz.sha256` beside it, which `sha256sum --check` reads. What a package has below
/// `usr` has nothing in front of it there, so that it can be unpacked below any prefix.
pub(super) fn make(tree: &Path, directory: &Path, name: &str, time: &str) -> Result<PathBuf> {
    let content = directory.join(name);
    if content.exists() {
        fs::remove_dir_all(&content)?;
    }
    copy(tree, Path::new(""), &content)?;
    fs::copy(root().join("LICENSE"), content.join("LICENSE"))?;
    let file = format!("{name}.tar.gz");
    let mut pack = Command::new("tar");
    // The same sources make the same archive.
    pack.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    pack.args([&format!("--mtime=@{time}"), "--use-compress-program=gzip -9n"]);
    run(pack.args(["--file", &file, name]).current_dir(directory))?;
    fs::remove_dir_all(&content)?;
    let sum = capture(Command::new("sha256sum").arg(&file).current_dir(directory))?;
    if !sum.succeeded {
        bail!("sha256sum: {}", sum.text);
    }
    fs::write(directory.join(format!("{file}.sha256")), sum.text)?;
    Ok(directory.join(file))
}

/// Copies what is in `from` below `tree` to where it belongs below `content`.
fn copy(tree: &Path, from: &Path, content: &Path) -> Result<()> {
    for entry in fs::read_dir(tree.join(from))? {
        let entry = entry?;
        let path = from.join(entry.file_name());
        if LEFT_OUT.iter().any(|left_out| path == Path::new(left_out)) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(tree, &path, content)?;
            continue;
        }
        let to = content.join(path.strip_prefix("usr").unwrap_or(&path));
        fs::create_dir_all(to.parent().context("a file of the package is in a directory")?)?;
        fs::copy(entry.path(), to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::target_directory;

    #[test]
    fn an_archive_has_what_is_no_debians_and_a_sum_that_holds() {
        let directory = target_directory().join("xtask-tests").join("archive");
        let tree = directory.join("tree");
        for (file, text) in [
            ("usr/bin/settee", "binary"),
            ("lib/systemd/system/settee.service", "unit"),
            ("etc/settee/settee.toml", "settings"),
            ("etc/default/settee", "debian's"),
            ("DEBIAN/control", "debian's"),
        ] {
            fs::create_dir_all(tree.join(file).parent().unwrap()).unwrap();
            fs::write(tree.join(file), text).unwrap();
        }
        let archive = make(&tree, &directory, "settee-1-linux-x", "0").unwrap();
        let bytes = fs::read(&archive).unwrap();
        let listed =
            capture(Command::new("tar").arg("--list").arg("--file").arg(&archive)).unwrap();
        let mut files: Vec<_> = listed.text.lines().filter(|line| !line.ends_with('/')).collect();
        files.sort_unstable();
        assert_eq!(
            files,
            [
                "settee-1-linux-x/LICENSE",
                "settee-1-linux-x/bin/settee",
                "settee-1-linux-x/etc/settee/settee.toml",
                "settee-1-linux-x/lib/systemd/system/settee.service",
            ]
        );
        let mut check = Command::new("sha256sum");
        check.args(["--check", "settee-1-linux-x.tar.gz.sha256"]).current_dir(&directory);
        assert!(capture(&mut check).unwrap().succeeded);
        make(&tree, &directory, "settee-1-linux-x", "0").unwrap();
        assert!(fs::read(&archive).unwrap() == bytes, "the same sources make the same archive");
    }
}
