//! Why a bucket cannot be opened.

use std::path::{Path, PathBuf};

use platform::FileError;
use storage::StorageError;

/// Why a bucket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file operation failed. Callers report it and stop.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bucket's files cannot be used. Callers report it and stop.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The bucket's own description is damaged, or of another version.
    #[error("{}: {what}", path.display())]
    BadDescription {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The executor does not take tasks any more.
    #[error("the executor has been shut down")]
    ExecutorIsGone,
}

impl OpenError {
    /// The file or directory that its words begin with, if they do.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::BadDescription { path, .. } => Some(path),
            Self::Storage(StorageError::JournalMissing { directory, .. }) => Some(directory),
            Self::Storage(StorageError::JournalNoteUnreadable(error)) => Some(&error.path),
            Self::File(_) | Self::Storage(_) | Self::ExecutorIsGone => None,
        }
    }
}
