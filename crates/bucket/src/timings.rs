//! Histograms of the bucket's background work, under the names that operators know.

use document::histogram::Histogram;

/// Durations in microseconds unless said otherwise.
#[derive(Debug, Default)]
pub struct Timings {
    /// Making a batch durable: one commit of a vBucket's file or, with a journal, the group that it
    /// was part of.
    pub disk_commit: Histogram,
    /// Bringing one vBucket's file up to date with the journal.
    pub disk_apply: Histogram,
    /// From the first unflushed mutation of a vBucket until its batch is durable.
    pub storage_age: Histogram,
    /// From the request for a value until the fetch of it begins.
    pub bg_wait: Histogram,
    /// Reading one batch of values.
    pub bg_load: Histogram,
    /// Requests that one batch of values serves (a count).
    pub bg_batch_size: Histogram,
    /// One round of the item pager.
    pub item_pager: Histogram,
    /// Waits of SEQNO_PERSISTENCE requests that were met.
    pub seqno_persistence: Histogram,
}

impl Timings {
    /// All histograms with their names.
    pub fn all(&self) -> [(&'static str, &Histogram); 8] {
        [
            ("disk_commit", &self.disk_commit),
            ("disk_apply", &self.disk_apply),
            ("storage_age", &self.storage_age),
            ("bg_wait", &self.bg_wait),
            ("bg_load", &self.bg_load),
            ("bg_batch_size", &self.bg_batch_size),
            ("item_pager", &self.item_pager),
            ("seqno_persistence", &self.seqno_persistence),
        ]
    }
}
