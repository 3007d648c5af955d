//! How an operation that had to wait is completed.

use vbucket::Waiter;

/// What became of what a request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The value is in memory now: execute the request again.
    Retry,
    /// The file could not be read: answer "temporary failure".
    ReadFailed,
    /// The seqno is persisted.
    Persisted,
    /// The seqno was not persisted in time, or the vBucket stopped being active.
    NotPersisted,
}

/// Where completions go: the server, which finds the connection that `waiter` names. Called from
/// background threads, never under a lock; must not block.
pub trait Completions: Send + Sync {
    /// Reports `completion` to `waiter`.
    fn complete(&self, waiter: Waiter, completion: Completion);

    /// Asks the threads that allocate documents to give back what others have freed
    /// ([`platform::allocator::release_unused`]): nobody else can.
    fn release_memory(&self);
}
