//! What passes between a vBucket and its file.

use std::sync::Arc;

use document::{Cas, Item, RevSeqno, Seqno, Set, VbUuid, Vbid, VbucketState};

use platform::Instant;

use crate::FailoverEntry;
use crate::checkpoint::ClosedCheckpoint;

/// What the file remembers of a vBucket beside its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentState {
    /// Its role.
    pub state: VbucketState,
    /// The branches of its history, newest first.
    pub failover_table: Vec<FailoverEntry>,
    /// The highest seqno.
    pub high_seqno: Seqno,
    /// The highest CAS given out.
    pub max_cas: Cas,
    /// The highest revision that a deleted document had.
    pub max_deleted_revision: RevSeqno,
}

/// What a flush is to make durable: everything up to [`FlushBatch::high_seqno`], whole.
#[derive(Debug)]
pub struct FlushBatch {
    /// Whose.
    pub vbid: Vbid,
    /// The checkpoints, oldest first.
    pub checkpoints: Vec<Arc<ClosedCheckpoint>>,
    /// What to remember with them.
    pub state: PersistentState,
    /// Since when the first of its mutations has waited.
    pub queued_since: Instant,
    /// Whether more waits behind this batch.
    pub has_more: bool,
}

impl FlushBatch {
    /// The last seqno of the batch.
    pub fn high_seqno(&self) -> Seqno {
        self.state.high_seqno
    }

    /// How many items it holds, older versions of the same document included.
    pub fn item_count(&self) -> usize {
        self.checkpoints.iter().map(|closed| closed.item_count()).sum()
    }

    /// The newest version of every document in the batch, seqnos rising, and how many older
    /// versions they make superfluous.
    pub fn newest_versions(&self) -> (Vec<Item>, usize) {
        let count = self.item_count();
        let mut newest = Vec::with_capacity(count);
        if let [only] = self.checkpoints.as_slice() {
            // One checkpoint holds no key twice.
            newest.extend(only.items().cloned());
            return (newest, 0);
        }
        let mut keys: Set<&[u8]> = Set::with_capacity_and_hasher(count, Default::default());
        for closed in self.checkpoints.iter().rev() {
            for item in closed.items().rev() {
                if keys.insert(item.key().encoded()) {
                    newest.push(item.clone());
                }
            }
        }
        newest.reverse();
        let superfluous = count - newest.len();
        (newest, superfluous)
    }
}

/// How far a branch of history has come (OBSERVE_SEQNO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqnoStatus {
    /// The branch that is written now.
    pub uuid: VbUuid,
    /// Everything up to here is on disk.
    pub persisted: Seqno,
    /// Everything up to here is in memory.
    pub high: Seqno,
    /// Set when the branch asked about is an older one: its name and where it ended.
    pub older_branch: Option<(VbUuid, Seqno)>,
}
