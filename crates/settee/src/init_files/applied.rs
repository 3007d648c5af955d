//! Which files were applied: a node's data directory keeps it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use platform::{FileErrorKind, Files};
use serde::{Deserialize, Serialize};

/// In the data directory.
const NAME: &str = "init-files.json";

/// The files that were applied.
pub(super) struct Applied<'a> {
    files: &'a dyn Files,
    path: PathBuf,
    kept: Kept,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// Names without their directory, which may be another one at the next start.
    applied: BTreeSet<String>,
}

impl<'a> Applied<'a> {
    /// What is kept in `data_directory`.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(files: &'a dyn Files, data_directory: &Path) -> anyhow::Result<Self> {
        let path = data_directory.join(NAME);
        let kept = match files.read_all(&path) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                let path = path.display();
                format!("{path} cannot be read; without it every init file is applied again")
            })?,
            Err(error) if error.kind == FileErrorKind::NotFound => Kept::default(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { files, path, kept })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.kept.applied.contains(name)
    }

    /// Durable on return.
    pub(super) fn add(&mut self, name: &str) -> anyhow::Result<()> {
        self.kept.applied.insert(name.to_owned());
        let text = serde_json::to_vec(&self.kept)?;
        self.files.replace_all(&self.path, &text)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use platform::simulated::SimulatedFiles;

    use super::*;

    #[test]
    fn what_was_applied_is_known_after_a_restart() {
        let files = SimulatedFiles::new();
        let directory = Path::new("/data");
        files.create_directories(directory).unwrap();
        assert!(!Applied::read(&files, directory).unwrap().has("a.json"));
        Applied::read(&files, directory).unwrap().add("a.json").unwrap();
        let applied = Applied::read(&files, directory).unwrap();
        assert!(applied.has("a.json") && !applied.has("b.json"));
        files.replace_all(&directory.join(NAME), b"x").unwrap();
        assert!(Applied::read(&files, directory).err().unwrap().to_string().contains(NAME));
    }
}
