//! The data directory of a node that keeps nothing: it goes with the node, whatever ends that.

use std::path::{Path, PathBuf};

use platform::Files;
use platform::files::remove_tree;

use crate::data_directory::DataDirectory;

/// What the names of such directories begin with.
const PREFIX: &str = "settee-dev";

/// Where a node that keeps nothing may have its data directory: a path that is not there yet.
pub fn temporary_data_directory() -> PathBuf {
    platform::process::temporary_path(PREFIX)
}

/// Removes the directory when it is dropped. What is in use there has to be dropped before.
pub(crate) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Takes care of `path`, which need not be there yet, and removes those beside it whose nodes
    /// were killed.
    pub(crate) fn new(files: &dyn Files, path: &Path) -> Self {
        sweep(files, path.parent().unwrap_or(path));
        Self(path.to_path_buf())
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Whoever starts next tries again.
        drop(remove_tree(&self.0));
    }
}

fn sweep(files: &dyn Files, directory: &Path) {
    for name in files.list(directory).unwrap_or_default() {
        let path = directory.join(&name);
        if !is_name(&name) {
            continue;
        }
        let Some(_lock) = DataDirectory::take_abandoned(files, &path) else { continue };
        match remove_tree(&path) {
            Ok(()) => {
                tracing::info!(directory = %path.display(), "removed what a killed node left")
            }
            Err(error) => tracing::warn!(%error, "what a killed node has left cannot be removed"),
        }
    }
}

/// Whether [`temporary_data_directory`] may have made it: prefix, process, random part.
fn is_name(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|rest| rest.split_once('-')).is_some_and(|(process, random)| {
        process.parse::<u32>().is_ok()
            && random.len() == 16
            && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use platform::files::RealFiles;

    use super::*;

    #[test]
    fn what_killed_nodes_left_goes_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let make = |name: &str| {
            DataDirectory::open(&RealFiles, &platform::Entropy::real(), &path(name), &["b"])
                .unwrap()
        };
        drop(make("settee-dev-12-0123456789abcdef"));
        let _used = make("settee-dev-13-0123456789abcdef");
        RealFiles.create_directories(&path("settee-dev-14-0123456789abcdef")).unwrap();
        drop(make("settee-dev-mine"));
        drop(make("settee-data"));
        let own = path("settee-dev-15-0123456789abcdef");
        let temporary = TemporaryDirectory::new(&RealFiles, &own);
        drop(DataDirectory::open(&RealFiles, &platform::Entropy::real(), &own, &["b"]).unwrap());
        drop(temporary);
        let left = RealFiles.list(root.path()).unwrap();
        let expected = [
            "settee-data",
            "settee-dev-13-0123456789abcdef",
            "settee-dev-14-0123456789abcdef",
            "settee-dev-mine",
        ];
        assert_eq!(left, expected, "in use, being made, or not made by --dev");
    }
}
