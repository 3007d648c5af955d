//! Why a vBucket's role or existence could not be changed.

use std::sync::Arc;

use document::VbucketState;
use storage::StorageError;

use crate::start::OpenError;

/// Why a vBucket's role or existence could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// The bucket has fewer vBuckets.
    #[error("the bucket has fewer vBuckets")]
    OutOfRange,
    /// It is not here.
    #[error("the vBucket is not here")]
    NotHere,
    /// It is still being loaded. Callers try again.
    #[error("the vBucket is being loaded")]
    Loading,
    /// Its file is damaged, so that it is out of service. Callers have another node's copy become
    /// active, or have it begin anew without what is lost ([`crate::Bucket::reset_vbucket`]).
    #[error("the vBucket is out of service, because its file is damaged: {reason}")]
    Damaged {
        /// What is wrong with the file.
        reason: Arc<str>,
    },
    /// Its file is not damaged, or so little that it serves and takes writes: there is no reason to
    /// do this to it.
    #[error("the vBucket's file is not damaged so that it had to begin anew")]
    NotDamaged,
    /// It plays a role in which this cannot be done to it.
    #[error("the vBucket is {}", .0.name())]
    WrongState(VbucketState),
    /// The change has happened in memory; the file is tried again. Callers may ask again.
    #[error("the vBucket's state could not be written")]
    NotPersisted,
    /// A file operation failed. Callers try again.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The list of deleted vBuckets could not be written. Callers try again.
    #[error(transparent)]
    List(#[from] OpenError),
}
