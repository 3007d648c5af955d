//! How an operation that had to wait is completed.

use std::mem::discriminant;

use document::Item;
use vbucket::{SyncWriteEnd, Waiter};

/// What became of what a request waited for.
#[derive(Clone, Debug)]
pub enum Completion {
    /// The file has been read: execute the request again, with what was read in
    /// [`crate::Session::fetched`].
    Retry(Option<Item>),
    /// The file could not be read: answer "temporary failure".
    ReadFailed,
    /// The seqno is persisted.
    Persisted,
    /// The durable write has ended.
    SyncWrite(SyncWriteEnd),
    /// The seqno was not persisted in time, or the vBucket stopped being active.
    NotPersisted,
}

/// Where completions go: the server, which finds the connection that `waiter` names. Called from
/// background threads, never under a lock; must not block.
pub trait Completions: Send + Sync {
    /// Reports `completion` to `waiter`.
    fn complete(&self, waiter: Waiter, completion: Completion);

    /// Asks the threads that allocate documents to give back what others have freed
    /// ([`platform::allocator::release_all_unused`]): nobody else can.
    fn release_memory(&self);
}

/// Two are equal if they say the same, whatever was read.
impl PartialEq for Completion {
    fn eq(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other)
    }
}
