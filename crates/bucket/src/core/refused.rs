//! Why an operation on a bucket did not happen. Each reason has its answer on the wire.

use vbucket::Refusal;

use super::write_block::WriteBlock;

/// Why an operation did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The vBucket is not active here.
    NotMyVbucket,
    /// The vBucket is still being loaded.
    Warming,
    /// No such document.
    NotFound,
    /// No document was met where one search for some document looks.
    NotMet,
    /// There is no such collection.
    UnknownCollection,
    /// There is one already.
    Exists,
    /// It is another version.
    CasMismatch,
    /// The version from elsewhere does not win over the one that is here.
    NotNewer,
    /// No version can have that CAS, or it lies too far in the future.
    InvalidCas,
    /// The value claims to have xattrs, and they cannot be read.
    BadXattrs,
    /// Somebody else holds its lock.
    Locked,
    /// Nobody holds its lock.
    NotLocked,
    /// There is no document to append to.
    NotStored,
    /// The value is not a number.
    NotANumber,
    /// The value is larger than a document may be.
    TooLarge,
    /// The value claims to be compressed and cannot be inflated.
    BadCompression,
    /// The document kept changing while a new version was computed.
    Contended,
    /// It is in memory but not on disk yet (EVICT_KEY).
    NotPersisted,
    /// The bucket has no disk that the request could be about.
    Ephemeral,
    /// Writes are refused for now; reads, too, when the vBucket's file is damaged.
    Blocked(WriteBlock),
    /// Too many requests wait for values from files.
    TooManyFetches,
    /// Too many requests wait until the vBucket takes up another role.
    TooManyParked,
    /// Too many keys are being looked up in the vBucket's file.
    TooManyLookups,
    /// A durable write of the document has not ended.
    SyncWriteInProgress,
    /// It is not known yet whether a durable write of the document has been committed.
    RecommitInProgress,
    /// There are not enough nodes for a durable write.
    DurabilityImpossible,
    /// The bucket cannot have this level of durability.
    InvalidDurabilityLevel,
    /// It is not known yet who must hold durable writes.
    NoTopology,
}

impl Refused {
    /// The answer to a vBucket's refusal. Whoever comes here with [`Refusal::Changed`] or
    /// [`Refusal::KeepsXattrs`] has computed new versions long enough.
    ///
    /// # Panics
    /// If the refusal has the request wait.
    pub(crate) fn from_refusal(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::NotActive => Self::NotMyVbucket,
            Refusal::TakeoverIsLate => Self::Blocked(WriteBlock::Takeover),
            Refusal::NotFound => Self::NotFound,
            Refusal::UnknownCollection => Self::UnknownCollection,
            Refusal::Exists => Self::Exists,
            Refusal::CasMismatch => Self::CasMismatch,
            Refusal::NotNewer => Self::NotNewer,
            Refusal::InvalidCas => Self::InvalidCas,
            Refusal::Locked => Self::Locked,
            Refusal::NotLocked => Self::NotLocked,
            Refusal::Loading => Self::Warming,
            Refusal::FileIsDamaged => Self::Blocked(WriteBlock::VbucketFileDamaged),
            Refusal::TooManyLookups => Self::TooManyLookups,
            Refusal::TooManyParked => Self::TooManyParked,
            Refusal::SyncWriteInProgress => Self::SyncWriteInProgress,
            Refusal::RecommitInProgress => Self::RecommitInProgress,
            Refusal::DurabilityImpossible => Self::DurabilityImpossible,
            Refusal::InvalidDurabilityLevel => Self::InvalidDurabilityLevel,
            Refusal::NoTopology => Self::NoTopology,
            Refusal::Changed | Refusal::KeepsXattrs(_) => Self::Contended,
            Refusal::Ejected(_) | Refusal::Absent(_) | Refusal::NotYetActive => {
                panic!("a request that waits is not answered: {refusal:?}")
            }
        }
    }
}
