//! Durable writes of an active vBucket: from the prepare to its end.

use platform::Instant;

use super::Vbucket;
use crate::effect::Effect;
use crate::operation::Now;

impl Vbucket {
    /// Ends the durable writes whose deadline has come, in order. Returns the next deadline.
    pub fn end_overdue_sync_writes(
        &mut self,
        _now: Now,
        _effects: &mut Vec<Effect>,
    ) -> Option<Instant> {
        None
    }
}
