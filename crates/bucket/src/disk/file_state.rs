//! What a vBucket remembers, in the words of its file and back.

use std::sync::Arc;

use document::item::U48_MAX;
use document::{RevSeqno, Seqno};
use storage::{CheckpointType, VbucketRecord};
use vbucket::checkpoint::CheckpointKind;
use vbucket::{FileFacts, PersistentState, SnapshotRange};

/// What the file is to remember. The file counts its prepares, and knows its place in the journal,
/// itself.
pub(crate) fn to_file(state: &PersistentState) -> VbucketRecord {
    let (snapshot, facts) = (state.snapshot_in_file(), &state.facts);
    VbucketRecord {
        state: state.state,
        failover_table: Arc::clone(&state.failover_table),
        replication_topology: Arc::clone(&state.topology),
        max_deleted_revision: state.max_deleted_revision.0,
        snapshot_start: snapshot.start,
        snapshot_end: snapshot.end,
        max_cas: state.max_cas,
        hlc_epoch: facts.hlc_epoch,
        might_contain_xattrs: facts.might_contain_xattrs,
        completed_seqno: facts.completed_seqno,
        prepared_seqno: facts.prepared_seqno,
        high_prepared_seqno: facts.high_prepared_seqno,
        max_visible_seqno: facts.max_visible_seqno,
        purge_seqno: state.purge_seqno,
        whole_from_seqno: state.whole_from_seqno,
        checkpoint_type: match facts.checkpoint_kind {
            CheckpointKind::Memory => CheckpointType::Memory,
            CheckpointKind::Disk => CheckpointType::Disk,
            CheckpointKind::InitialDisk => CheckpointType::InitialDisk,
        },
        document_count: None,
        on_disk_prepares: 0,
        on_disk_prepare_bytes: 0,
        journal: None,
    }
}

/// What the file remembers.
pub(crate) fn from_file(record: &VbucketRecord, high_seqno: Seqno) -> PersistentState {
    PersistentState {
        state: record.state,
        failover_table: Arc::clone(&record.failover_table),
        high_seqno,
        max_cas: record.max_cas,
        max_deleted_revision: RevSeqno(record.max_deleted_revision.min(U48_MAX)),
        topology: Arc::clone(&record.replication_topology),
        snapshot: SnapshotRange { start: record.snapshot_start, end: record.snapshot_end },
        purge_seqno: record.purge_seqno,
        whole_from_seqno: record.whole_from_seqno,
        facts: FileFacts {
            hlc_epoch: record.hlc_epoch,
            might_contain_xattrs: record.might_contain_xattrs,
            completed_seqno: record.completed_seqno,
            prepared_seqno: record.prepared_seqno,
            high_prepared_seqno: record.high_prepared_seqno,
            max_visible_seqno: record.max_visible_seqno,
            checkpoint_kind: match record.checkpoint_type {
                CheckpointType::Memory => CheckpointKind::Memory,
                CheckpointType::Disk => CheckpointKind::Disk,
                CheckpointType::InitialDisk => CheckpointKind::InitialDisk,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use document::{Cas, FailoverEntry, VbUuid, VbucketState};

    use super::*;

    #[test]
    fn everything_that_a_file_remembers_survives_a_stay_in_memory() {
        let mut record = VbucketRecord::new(VbucketState::Replica);
        record.failover_table = [FailoverEntry { uuid: VbUuid(7), seqno: Seqno(5) }].into();
        record.replication_topology = Arc::new(vec![vec![Some("a".to_owned()), None]]);
        record.max_deleted_revision = 11;
        record.snapshot_start = Seqno(80);
        record.snapshot_end = Seqno(120);
        record.max_cas = Cas(12);
        record.hlc_epoch = 13;
        record.might_contain_xattrs = true;
        record.completed_seqno = Seqno(14);
        record.prepared_seqno = Seqno(15);
        record.high_prepared_seqno = Seqno(16);
        record.max_visible_seqno = Seqno(99);
        record.purge_seqno = Seqno(17);
        record.whole_from_seqno = Seqno(18);
        record.checkpoint_type = CheckpointType::InitialDisk;
        assert_eq!(to_file(&from_file(&record, Seqno(100))), record);
        record.state = VbucketState::Active;
        let active = to_file(&from_file(&record, Seqno(100)));
        assert_eq!((active.snapshot_start, active.snapshot_end), (Seqno(100), Seqno(100)));
    }
}
