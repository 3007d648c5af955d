//! A file that is written once, with its digest taken on the way.

use std::fmt::Write;
use std::path::Path;

use platform::{File, FileErrorKind, Files, OpenMode};
use sha2::{Digest, Sha256};

/// A new file.
pub(super) struct SpoolFile {
    file: Box<dyn File>,
    size: u64,
    digest: Sha256,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) bytes: u64,
    /// 64 hexadecimal digits.
    pub(super) sha256: String,
}

impl SpoolFile {
    /// The file must not exist.
    pub(super) fn create(files: &dyn Files, path: &Path) -> anyhow::Result<Self> {
        let file = files.open(path, OpenMode::CreateNew)?;
        Ok(Self { file, size: 0, digest: Sha256::new() })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_at(bytes, self.size)?;
        self.size += bytes.len() as u64;
        self.digest.update(bytes);
        Ok(())
    }

    /// Makes it durable.
    pub(super) fn finish(self) -> anyhow::Result<Written> {
        self.file.sync()?;
        Ok(Written { bytes: self.size, sha256: hex(&self.digest.finalize()) })
    }
}

/// Lowercase hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

/// Removes a file; that there is none is no error.
pub(super) fn remove_if_there(files: &dyn Files, path: &Path) -> anyhow::Result<()> {
    match files.remove(path) {
        Err(error) if error.kind != FileErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
