//! Histograms of the bucket's background work, under the names that operators know.

use std::time::Duration;

use document::DurabilityLevel;
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
    /// The compaction of one vBucket's file.
    pub compact: Histogram,
    /// Waits of SEQNO_PERSISTENCE requests that were met.
    pub seqno_persistence: Histogram,
    /// Durable writes of this level, from the prepare to the commit.
    pub sync_write_commit_majority: Histogram,
    /// Durable writes of this level, from the prepare to the commit.
    pub sync_write_commit_majority_and_persist_on_master: Histogram,
    /// Durable writes of this level, from the prepare to the commit.
    pub sync_write_commit_persist_to_majority: Histogram,
}

impl Timings {
    /// That of durable writes of a level.
    pub fn sync_write_commit(&self, level: DurabilityLevel) -> &Histogram {
        match level {
            DurabilityLevel::Majority => &self.sync_write_commit_majority,
            DurabilityLevel::MajorityAndPersistOnMaster => {
                &self.sync_write_commit_majority_and_persist_on_master
            }
            DurabilityLevel::PersistToMajority => &self.sync_write_commit_persist_to_majority,
        }
    }

    /// All histograms with their names.
    pub fn all(&self) -> [(&'static str, &Histogram); 12] {
        [
            ("disk_commit", &self.disk_commit),
            ("disk_apply", &self.disk_apply),
            ("storage_age", &self.storage_age),
            ("bg_wait", &self.bg_wait),
            ("bg_load", &self.bg_load),
            ("bg_batch_size", &self.bg_batch_size),
            ("item_pager", &self.item_pager),
            ("compact", &self.compact),
            ("seqno_persistence", &self.seqno_persistence),
            ("sync_write_commit_majority", &self.sync_write_commit_majority),
            (
                "sync_write_commit_majority_and_persist_on_master",
                &self.sync_write_commit_majority_and_persist_on_master,
            ),
            ("sync_write_commit_persist_to_majority", &self.sync_write_commit_persist_to_majority),
        ]
    }
}

/// A duration as histograms take it.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
