//! What a program has changed on a disk, call by call.

use std::fmt;
use std::path::{Path, PathBuf};

/// A call that has changed files or names, or made a change durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedCall {
    /// A file was created.
    Create(PathBuf),
    /// A directory was created.
    CreateDirectory(PathBuf),
    /// Bytes were written.
    Write {
        /// The name under which the file was opened.
        path: PathBuf,
        /// Where, in bytes.
        position: u64,
        /// How many.
        size: u64,
    },
    /// A file was made longer or shorter.
    Resize {
        /// The name under which the file was opened.
        path: PathBuf,
        /// Its size from now on, in bytes.
        size: u64,
    },
    /// A file was synced.
    Sync(PathBuf),
    /// A file got another name.
    Rename {
        /// The old one.
        from: PathBuf,
        /// The new one.
        to: PathBuf,
    },
    /// A file lost its name.
    Remove(PathBuf),
    /// A directory lost its name.
    RemoveDirectory(PathBuf),
    /// A directory was synced.
    SyncDirectory(PathBuf),
}

/// The calls since somebody wanted to know; nothing is kept before.
#[derive(Default)]
pub(super) struct Recording(Option<Vec<RecordedCall>>);

impl Recording {
    pub(super) fn begin(&mut self) {
        self.0.get_or_insert_default();
    }

    pub(super) fn take(&mut self) -> Vec<RecordedCall> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn note(&mut self, call: impl FnOnce() -> RecordedCall) {
        if let Some(calls) = &mut self.0 {
            calls.push(call());
        }
    }

    /// Notes a call that is about one path.
    pub(super) fn note_path(&mut self, call: fn(PathBuf) -> RecordedCall, path: &Path) {
        self.note(|| call(path.to_path_buf()));
    }
}

impl fmt::Display for RecordedCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(path) => write!(formatter, "create {}", path.display()),
            Self::CreateDirectory(path) => {
                write!(formatter, "create directory {}", path.display())
            }
            Self::Write { path, position, size } => {
                write!(formatter, "write {} at {position} {size} bytes", path.display())
            }
            Self::Resize { path, size } => {
                write!(formatter, "resize {} to {size} bytes", path.display())
            }
            Self::Sync(path) => write!(formatter, "sync {}", path.display()),
            Self::Rename { from, to } => {
                write!(formatter, "rename {} to {}", from.display(), to.display())
            }
            Self::Remove(path) => write!(formatter, "remove {}", path.display()),
            Self::RemoveDirectory(path) => {
                write!(formatter, "remove directory {}", path.display())
            }
            Self::SyncDirectory(path) => write!(formatter, "sync directory {}", path.display()),
        }
    }
}
