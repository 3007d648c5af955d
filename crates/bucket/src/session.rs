//! What a front-end worker brings to every operation.

use vbucket::{Effect, Waiter};

/// A worker's scratch space, and who is asking. One for each worker, used again and again, so that
/// operations allocate nothing for their effects.
#[derive(Debug)]
pub struct Session {
    /// Who hears if the operation has to wait.
    pub waiter: Waiter,
    pub(crate) effects: Vec<Effect>,
}

impl Default for Session {
    fn default() -> Self {
        Self { waiter: Waiter(0), effects: Vec::new() }
    }
}
