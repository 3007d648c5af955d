//! What the vBuckets of one role have and have done.

use document::VbucketState;
use platform::Instant;
use vbucket::{VbucketFigures, VbucketGauges, VbucketStatistics};

use crate::statistics::narrow;

/// The vBuckets of one role together.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateStatistics {
    /// vBuckets.
    pub vbucket_count: usize,
    /// Documents.
    pub document_count: usize,
    /// Documents whose value is only in a file.
    pub ejected_count: usize,
    /// Bytes of documents in memory.
    pub documents_bytes: usize,
    /// Bytes of the tables that find them.
    pub tables_bytes: usize,
    /// Bytes of the filters of keys.
    pub filter_bytes: usize,
    /// Bytes of checkpoints: items in full although tables hold them, too.
    pub checkpoints_bytes: usize,
    /// Durable writes that have not ended.
    pub sync_write_count: usize,
    /// Items that wait for a flusher.
    pub queued_item_count: usize,
    /// How long these have waited, milliseconds added up, each taken for as old as the oldest of
    /// its vBucket.
    pub queue_age_ms: u64,
    /// What they have done.
    pub done: VbucketStatistics,
}

impl StateStatistics {
    /// One vBucket more.
    pub(crate) fn add(&mut self, vbucket: &VbucketFigures, gauges: &VbucketGauges, now: Instant) {
        self.vbucket_count += 1;
        self.document_count += narrow(vbucket.document_count());
        self.ejected_count += narrow(vbucket.ejected_count());
        self.documents_bytes += narrow(vbucket.items_bytes());
        self.tables_bytes += narrow(gauges.tables_bytes);
        self.filter_bytes += narrow(gauges.filter_bytes);
        self.checkpoints_bytes += narrow(gauges.checkpoints_bytes);
        self.sync_write_count += narrow(gauges.sync_writes);
        self.queued_item_count += narrow(gauges.queued);
        let waited = vbucket.unflushed_since().map(|since| now.since(since)).unwrap_or_default();
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        self.queue_age_ms =
            self.queue_age_ms.saturating_add(waited_ms.saturating_mul(gauges.queued));
        self.done += vbucket.statistics();
    }

    /// Documents whose value is in memory, in percent; of none, all.
    pub fn resident_percent(&self) -> usize {
        let resident = self.document_count.saturating_sub(self.ejected_count);
        (resident * 100).checked_div(self.document_count).unwrap_or(100)
    }
}

/// Where the vBuckets of a role stand among those of all roles.
pub(crate) fn place_of(state: VbucketState) -> usize {
    match state {
        VbucketState::Active => 0,
        VbucketState::Replica => 1,
        VbucketState::Pending => 2,
        VbucketState::Dead => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resident_is_told_in_percent_of_what_there_is() {
        for (document_count, ejected_count, percent) in
            [(0, 0, 100), (10, 0, 100), (3, 1, 66), (10, 10, 0)]
        {
            let statistics =
                StateStatistics { document_count, ejected_count, ..StateStatistics::default() };
            assert_eq!(statistics.resident_percent(), percent, "{document_count} {ejected_count}");
        }
    }
}
