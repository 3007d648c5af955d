//! Why a scan is not made, or does not go on.

use crate::core::Refused;

/// Why a scan is not made, or does not go on. Each reason has its answer on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanRefused {
    /// As for any request on the vBucket.
    Vbucket(Refused),
    /// The vBucket is on another branch of history.
    OtherHistory,
    /// Nothing is in the range.
    Empty,
    /// The seqno that has to be the last change of a document is none.
    NoSuchChange,
    /// What has to be in the snapshot is not persisted.
    NotPersisted,
    /// There are as many scans as there may be.
    TooMany,
    /// There is no such scan in the vBucket, or no longer.
    Unknown,
    /// Somebody is being sent what it finds.
    Busy,
    /// It has been cancelled while it was read.
    Cancelled,
    /// The file cannot be read, or not be brought up to date.
    Unreadable,
}

impl From<Refused> for ScanRefused {
    fn from(refused: Refused) -> Self {
        Self::Vbucket(refused)
    }
}
