//! What of a vBucket is read without its lock.

use std::sync::Arc;

use document::Key;
use platform::prefetch::prefetch;

use super::Vbucket;
use crate::statistics::{VbucketFigures, VbucketGauges};

impl Vbucket {
    /// What anybody may read of this vBucket without its lock, for as long as it is there.
    pub fn figures(&self) -> &Arc<VbucketFigures> {
        &self.figures
    }

    /// Has what every write touches fetched while the caller does something else.
    pub fn expect(&self) {
        prefetch(&*self.figures);
        prefetch(self.hash_table.cells());
    }

    /// The same of what an operation on `key` touches.
    pub fn expect_key(&self, key: Key<'_>) {
        match key.is_in_default_collection() {
            true => self.hash_table.prefetch(key),
            false => self.expect_named_key(key),
        }
    }

    /// What leads to the counts of its collection comes while the key is looked for.
    fn expect_named_key(&self, key: Key<'_>) {
        self.collections.prefetch_last();
        self.hash_table.prefetch_last_named();
        self.hash_table.prefetch(key);
        self.collections.prefetch_counts(key.collection());
    }

    /// Has whoever looks without the lock see what this vBucket has now. Called by everything that
    /// changes one of these figures, as the last thing that it does.
    pub(super) fn publish(&self) {
        self.figures.publish(self.state, &self.gauges(), self.clock.drift());
    }

    /// Whether that was done: what debug builds check when they let the lock go.
    pub fn is_published(&self) -> bool {
        let is_shown = self.figures.shows(self.state, &self.gauges(), self.clock.drift());
        is_shown && self.checkpoints.shows_readers()
    }

    #[inline]
    fn gauges(&self) -> VbucketGauges {
        let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let filter = self.absent.filter();
        VbucketGauges {
            evicted: wide(self.absent.document_count),
            table_items: wide(self.hash_table.len()),
            tables_bytes: wide(self.hash_table.slots_bytes()),
            filter_keys: wide(filter.key_count()),
            filter_bytes: wide(filter.bytes()),
            lookups: wide(self.absent.lookup_count()),
            locks: wide(self.locks.count()),
            parked: wide(self.parked.len()),
            sync_writes: wide(self.prepares.len()),
            log_items: wide(self.checkpoints.total_items()),
            queued: wide(self.checkpoints.unflushed_count()),
            queued_since_ns: self.queued_since.0,
            checkpoints: self.checkpoints.checkpoint_count(),
            checkpoints_bytes: wide(self.checkpoints.extent().bytes()),
            incomplete: u64::from(!self.is_whole()),
            loading_keys: u64::from(self.has_keys_to_load()),
            leaving: self.leaving_document_count(),
        }
    }
}
