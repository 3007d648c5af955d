//! A file that is written once, with its digest taken on the way.

use std::fmt::Write;
use std::path::Path;

use platform::{File, FileErrorKind, Files, OpenMode};
use sha2::{Digest, Sha256};

use super::crew::Moved;

/// Bytes after which what is written is made durable: all of a large file at once takes longer than
/// anybody waits for a sign of life.
const SYNC_BYTES: u64 = 64 << 20;

/// A new file.
pub(super) struct SpoolFile {
    file: Box<dyn File>,
    size: u64,
    /// Of the bytes, so many are durable.
    durable: u64,
    digest: Sha256,
    moved: Moved,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) bytes: u64,
    /// 64 hexadecimal digits.
    pub(super) sha256: String,
}

impl SpoolFile {
    /// The file must not exist. `moved` hears of what is made durable.
    pub(super) fn create(files: &dyn Files, path: &Path, moved: &Moved) -> anyhow::Result<Self> {
        let file = files.open(path, OpenMode::CreateNew)?;
        let (digest, moved) = (Sha256::new(), moved.clone());
        Ok(Self { file, size: 0, durable: 0, digest, moved })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_at(bytes, self.size)?;
        self.size += bytes.len() as u64;
        self.digest.update(bytes);
        if self.size - self.durable >= SYNC_BYTES {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> anyhow::Result<()> {
        self.file.sync()?;
        self.durable = self.size;
        self.moved.beat();
        Ok(())
    }

    /// Makes it durable.
    pub(super) fn finish(mut self) -> anyhow::Result<Written> {
        self.sync()?;
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

#[cfg(test)]
mod tests {
    use platform::simulated::SimulatedFiles;

    use super::*;

    #[test]
    fn a_large_file_becomes_durable_bit_by_bit_and_each_bit_is_a_sign_of_life() {
        let (files, moved) = (SimulatedFiles::new(), Moved::default());
        files.create_directories(Path::new("/d")).unwrap();
        let mut file = SpoolFile::create(&files, Path::new("/d/f"), &moved).unwrap();
        let part = vec![b'x'; 1 << 20];
        for _ in 0..130 {
            file.write(&part).unwrap();
        }
        assert_eq!((file.durable, moved.activity()), (2 * SYNC_BYTES, 2));
        assert_eq!(file.finish().unwrap().bytes, 130 << 20);
        assert_eq!(moved.activity(), 3);
    }
}
