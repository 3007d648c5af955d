//! What owners of tasks and the pool agree on.

use std::fmt;

/// How [`crate::Owner::unregister`] ends the tasks that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Every task runs at least once more, and on until it answers anything but
    /// [`crate::Next::Again`]; then it is destroyed. Those that [`crate::TaskName::may_be_dropped`]
    /// are destroyed at once.
    Drain,
    /// No further run begins.
    Force,
}

/// The owner has been unregistered, or its pool has been shut down: the task was refused and is
/// destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerIsGone;

impl fmt::Display for OwnerIsGone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the owner of the task has been unregistered")
    }
}

impl std::error::Error for OwnerIsGone {}

/// Wraps all that is done on behalf of an owner: each run and each destruction of its tasks. For
/// accounting memory to it, say.
pub trait OwnerScope: Send + Sync {
    /// Calls `work` once.
    fn within(&self, work: &mut dyn FnMut());
}
