//! What a front-end worker brings to every operation.

use std::time::Duration;

use document::Item;
use vbucket::{Effect, Now, Waiter};

/// A worker's scratch space, and who is asking. One for each worker, used again and again, so that
/// operations allocate nothing for their effects.
#[derive(Debug)]
pub struct Session {
    /// Who hears if the operation has to wait.
    pub waiter: Waiter,
    /// The time, if the caller has read it for this request; otherwise the bucket reads it.
    pub now: Option<Now>,
    /// What was read from the file for the request that is executed again. It goes back into memory
    /// in the same moment as the operation runs: so the request is answered however full memory is
    /// and whatever the pager has done since.
    pub fetched: Option<Item>,
    /// How long the request has waited for the lock of its vBucket. The caller sets it back.
    pub lock_waited: Duration,
    pub(crate) effects: Vec<Effect>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            waiter: Waiter(0),
            now: None,
            fetched: None,
            lock_waited: Duration::ZERO,
            effects: Vec::new(),
        }
    }
}
