//! What goes to a vBucket's file in one commit, and what comes of it.

use document::{Item, Seqno, Vbid};

use crate::vbucket_record::VbucketRecord;

/// Items and state of one vBucket that become durable together.
#[derive(Clone, Debug)]
pub struct FlushBatch {
    /// The vBucket. Its file is made if it has none.
    pub vbid: Vbid,
    /// The last seqno before the batch: what was handed in before ends there.
    pub previous_seqno: Seqno,
    /// In any order; each key once, values not ejected, seqnos above the file's. Bodies are
    /// written in this order: by seqno is best for scans. May be empty.
    pub items: Vec<Item>,
    /// The state as of the last of the items. The file counts its prepares itself.
    pub state: VbucketRecord,
}

/// A commit that is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitReport {
    /// The highest seqno in the file now.
    pub high_seqno: Seqno,
    /// Bytes handed to the system.
    pub bytes_written: u64,
    /// Documents alive now that were not before.
    pub inserts: u64,
    /// Documents alive now and before.
    pub updates: u64,
    /// Tombstones written.
    pub deletes: u64,
}
