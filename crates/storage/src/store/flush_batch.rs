//! What becomes durable of a vBucket in one commit, and what comes of it.

use document::{Item, Seqno, Vbid};

use crate::behind::backlog::bytes_of;
use crate::records::vbucket_record::VbucketRecord;

/// Items and state of one vBucket that become durable together.
#[derive(Clone, Debug)]
pub struct FlushBatch {
    /// The vBucket. Its file is made if it has none.
    pub vbid: Vbid,
    /// The last seqno before the batch: what was handed in before ends there.
    pub previous_seqno: Seqno,
    /// Seqnos rise, and all are above the file's; each key once, values not ejected. May be empty.
    pub items: Vec<Item>,
    /// The state as of the last of the items. The file counts its prepares itself.
    pub state: VbucketRecord,
}

/// A commit that is durable.
#[derive(Debug, Default)]
pub struct CommitReport {
    /// Everything up to here is durable.
    pub high_seqno: Seqno,
    /// Items of the batch.
    pub item_count: usize,
    /// What was written to the file; `None` when that comes later, from the journal.
    pub applied: Option<Applied>,
}

/// What a vBucket's file has got.
#[derive(Debug, Default)]
pub struct Applied {
    /// The highest seqno in the file now.
    pub high_seqno: Seqno,
    /// What the last batch said that memory counts as live documents, if it did.
    pub document_count: Option<i64>,
    /// How many the file has.
    pub documents: u64,
    /// Bytes handed to the system.
    pub bytes_written: u64,
    /// Documents alive now that were not before.
    pub inserts: u64,
    /// Documents alive now and before.
    pub updates: u64,
    /// Tombstones written.
    pub deletes: u64,
    /// The tombstones themselves: memory needs them no more.
    pub tombstones: Vec<Item>,
}

impl FlushBatch {
    /// What its items take in memory.
    pub fn item_bytes(&self) -> u64 {
        bytes_of(&self.items)
    }

    /// The last seqno of the batch.
    pub(crate) fn high_seqno(&self) -> Seqno {
        debug_assert!(
            self.items.is_sorted_by_key(Item::seqno),
            "the items of a batch are in order"
        );
        self.items.last().map_or(self.previous_seqno, Item::seqno)
    }
}
