//! A bucket that goes: no connection can select it any more, and those that have it let go of it,
//! each at its worker.

use std::sync::Arc;

use crate::buckets::BucketPart;

/// A bucket that the data port has served. Whoever has it waits until nobody else does.
pub struct Departure {
    part: Arc<BucketPart>,
    give_place_back: Box<dyn Fn(usize) + Send + Sync>,
}

impl Departure {
    /// `give_place_back` hears of the bucket's place when nobody counts there any more.
    pub(crate) fn new(
        part: Arc<BucketPart>,
        give_place_back: impl Fn(usize) + Send + Sync + 'static,
    ) -> Self {
        Self { part, give_place_back: Box::new(give_place_back) }
    }

    /// Whether no connection has the bucket any more, and no worker is about to tell one.
    pub fn is_complete(&self) -> bool {
        Arc::strong_count(&self.part) == 1
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        // Otherwise somebody still counts there, and the place is lost until the node ends.
        if self.is_complete() {
            // A connection may have ordered one before it heard that the bucket goes.
            self.part.delayed_flush.withdraw();
            (self.give_place_back)(self.part.place);
        }
    }
}
