//! What a vBucket remembers, in the words of its file and back.

use document::{RevSeqno, Seqno};
use storage::VbucketRecord;
use vbucket::{FailoverEntry, PersistentState};

/// What the file is to remember. An active vBucket's snapshot is whole at every seqno.
pub(crate) fn to_file(state: &PersistentState) -> VbucketRecord {
    let to_file =
        |entry: &FailoverEntry| storage::FailoverEntry { uuid: entry.uuid, seqno: entry.seqno };
    VbucketRecord {
        failover_table: state.failover_table.iter().map(to_file).collect(),
        max_deleted_revision: state.max_deleted_revision.0,
        snapshot_start: state.high_seqno,
        snapshot_end: state.high_seqno,
        max_cas: state.max_cas,
        hlc_epoch: 1,
        max_visible_seqno: state.high_seqno,
        ..VbucketRecord::new(state.state)
    }
}

/// What the file remembers.
pub(crate) fn from_file(record: &VbucketRecord, high_seqno: Seqno) -> PersistentState {
    let from_file =
        |entry: &storage::FailoverEntry| FailoverEntry { uuid: entry.uuid, seqno: entry.seqno };
    PersistentState {
        state: record.state,
        failover_table: record.failover_table.iter().map(from_file).collect(),
        high_seqno,
        max_cas: record.max_cas,
        max_deleted_revision: RevSeqno(record.max_deleted_revision),
    }
}
