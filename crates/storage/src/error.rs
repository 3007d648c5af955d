//! What can go wrong with files, sorted by what the caller does about it.

use std::path::{Path, PathBuf};

use document::Vbid;
use platform::{FileError, FileErrorKind};

use crate::journal::options::JournalId;

/// A failed storage operation.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// The device is full. Callers answer "temporary failure" and retry after making room.
    #[error("no space left: {0}")]
    NoSpace(FileError),
    /// No file descriptor is left. Callers close something and retry.
    #[error("too many open files: {0}")]
    TooManyOpenFiles(FileError),
    /// Bytes on disk are not what was written. Callers stop serving the vBucket and fail over.
    #[error("{} is corrupt at byte {position}: {what}", file.display())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where the damaged chunk, block or header begins, in bytes.
        position: u64,
        /// What does not hold.
        what: &'static str,
    },
    /// A batch does not continue the history in the file. Nothing was written; a retry of the
    /// same batch cannot succeed.
    #[error("{}: seqno {seqno} does not follow {high_seqno}", file.display())]
    OutOfOrder {
        /// The file.
        file: PathBuf,
        /// The lowest offending seqno of the batch.
        seqno: u64,
        /// The highest seqno in the file.
        high_seqno: u64,
    },
    /// The journal does not continue the file of a vBucket: one of the two is of another time.
    /// Callers report it and leave the vBucket out of service.
    #[error(
        "the file of vBucket {} ends at seqno {reached}, and the journal goes on from {continues}",
        vbid.0
    )]
    OtherHistory {
        /// Which vBucket.
        vbid: Vbid,
        /// The last seqno of the file, with what was replayed to it.
        reached: u64,
        /// The seqno after which the journal goes on.
        continues: u64,
    },
    /// A part of the journal that was acknowledged is not what was written. Nobody can tell whose
    /// writes it holds. Callers report it and do not start.
    #[error(
        "{} is corrupt at byte {position}: {what}; put the file back as it was, or move the \
         directory `journal` away and start with --accept-lost-journal, which loses what only the \
         journal holds",
        file.display()
    )]
    JournalDamaged {
        /// The segment.
        file: PathBuf,
        /// Where the damaged group or header begins, in bytes.
        position: u64,
        /// What does not hold.
        what: &'static str,
    },
    /// The journal is not there, and the last stop was not a clean one. Callers report it and do
    /// not start.
    #[error(
        "{} holds no segment of {}, which was in use when the node ended; mount it or put it back, \
         or start with --accept-lost-journal, which loses what only the journal held",
        directory.display(),
        id.map_or_else(|| "the journal".to_owned(), |id| format!("journal {id}"))
    )]
    JournalMissing {
        /// Where it should be.
        directory: PathBuf,
        /// Its name; `None` when the note that has it is damaged.
        id: Option<JournalId>,
    },
    /// What is noted of the journal cannot be read. Callers report it and do not start.
    #[error(
        "{} cannot be read ({}), and without it nobody can tell whether the end of the journal is \
         missing: let the user of the node read it, or check the disk; or start with \
         --accept-lost-journal, which goes on without it",
        .0.path.display(),
        .0.cause
    )]
    JournalNoteUnreadable(FileError),
    /// The journal has no room until the vBuckets' files have caught up. Nothing was written; a
    /// retry succeeds when something has been released.
    #[error("the journal is full: {used_bytes} of {bytes_max} bytes are in use")]
    JournalFull {
        /// Bytes of the segments in use.
        used_bytes: u64,
        /// What they may come to.
        bytes_max: u64,
    },
    /// Anything else that the system refused. Callers count it, keep the batch and retry.
    #[error(transparent)]
    Failed(FileError),
}

impl StorageError {
    pub(crate) fn corrupt(file: &Path, position: u64, what: &'static str) -> Self {
        Self::Corrupt { file: file.to_path_buf(), position, what }
    }

    /// The same of a segment of the journal.
    pub(crate) fn of_journal(self) -> Self {
        match self {
            Self::Corrupt { file, position, what } => Self::JournalDamaged { file, position, what },
            error => error,
        }
    }
}

impl From<FileError> for StorageError {
    fn from(error: FileError) -> Self {
        match error.kind {
            FileErrorKind::NoSpace => Self::NoSpace(error),
            FileErrorKind::TooManyOpen => Self::TooManyOpenFiles(error),
            FileErrorKind::NotFound
            | FileErrorKind::AlreadyExists
            | FileErrorKind::NotADirectory
            | FileErrorKind::Failed => Self::Failed(error),
        }
    }
}
