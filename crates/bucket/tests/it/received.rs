//! What a replica keeps of what it has received, beside documents.

use std::collections::BTreeSet;

use bucket::{Backfill, BackfillOrder, BucketConfig, BucketType, CompactionOrder};
use document::{Operation, Seqno, VbUuid, Vbid, VbucketState};
use platform::Random;
use vbucket::eviction::EvictionPolicy;
use vbucket::{ReceivedSnapshot, RoleChange, StreamStart};

use crate::prepares::{self, announce, begin, receive};
use crate::support::{Machine, config, files_config, key};

const VBID: Vbid = Vbid(0);

/// A snapshot from a file in which tombstones up to the seventh seqno may be missing.
fn snapshot(start: u64) -> ReceivedSnapshot {
    ReceivedSnapshot {
        start: Seqno(start),
        end: Seqno(10),
        is_disk: true,
        begins_checkpoint: true,
        max_visible: None,
        high_completed: Some(Seqno(0)),
        high_prepared: None,
        purge_seqno: Some(Seqno(7)),
    }
}

/// Begins to read all that the vBucket has, which brings its file up to date.
fn begin_backfill(machine: &Machine) -> Option<Backfill> {
    let begun = machine.bucket.try_begin_backfill(VBID, Seqno(0), BackfillOrder::BySeqno);
    begun.expect("nobody writes the file").unwrap()
}

fn purge_seqno(machine: &Machine) -> u64 {
    let mut seqno = Seqno(0);
    machine.bucket.with_vbucket(VBID, |vbucket| seqno = vbucket.purge_seqno());
    seqno.0
}

#[test]
fn what_a_sender_has_purged_is_remembered_whatever_happens_to_the_replica() {
    for config in [config(), files_config()] {
        let mut machine = Machine::with(config);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        begin(&machine.bucket);
        announce(&machine.bucket, snapshot(0));
        for seqno in [1, 2, 5] {
            receive(&machine.bucket, &seqno.to_string(), seqno, Operation::Mutation, false);
        }
        machine.run();
        assert_eq!(purge_seqno(&machine), 5);
        let mut machine = machine.restart();
        machine.run();
        assert_eq!(purge_seqno(&machine), 5, "a crash in the middle of the snapshot");
        begin(&machine.bucket);
        announce(&machine.bucket, snapshot(5));
        receive(&machine.bucket, "8", 8, Operation::Mutation, false);
        receive(&machine.bucket, "10", 10, Operation::Mutation, false);
        machine.run();
        for stop in [Machine::restart, Machine::stop_and_start] {
            machine = stop(machine);
            machine.run();
            assert_eq!(purge_seqno(&machine), 7);
        }
        begin(&machine.bucket);
        let order = CompactionOrder::default();
        machine.bucket.compact(VBID, order, |_| {}).unwrap();
        machine.run();
        assert_eq!(purge_seqno(&machine), 7, "a compaction");
        for seqno in 11..15 {
            let (start, end) = (Seqno(seqno), Seqno(seqno));
            let memory = ReceivedSnapshot { start, end, is_disk: false, ..snapshot(0) };
            announce(&machine.bucket, ReceivedSnapshot { purge_seqno: None, ..memory });
            receive(&machine.bucket, &seqno.to_string(), seqno, Operation::Mutation, false);
            machine.run();
            begin_backfill(&machine).unwrap();
        }
        assert_eq!(machine.bucket.rollback(VBID, Seqno(12)).unwrap(), Seqno(12));
        assert_eq!(purge_seqno(&machine), 7, "a rollback");
        machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
        let mut machine = machine.restart();
        machine.run();
        assert_eq!(begin_backfill(&machine).unwrap().facts().purge, Seqno(7));
        machine.bucket.with_vbucket(VBID, |vbucket| {
            let uuid = vbucket.failover_entries().last().unwrap().uuid;
            for (seqno, point) in [(6, Some(Seqno(0))), (7, None), (10, None)] {
                let (start, snapshot_start, snapshot_end) =
                    (Seqno(seqno), Seqno(seqno), Seqno(seqno));
                let here =
                    StreamStart { uuid, start, snapshot_start, snapshot_end, ..Default::default() };
                assert_eq!(vbucket.rollback_point(&here), point, "{seqno}");
            }
        });
    }
}

#[test]
fn documents_of_a_replica_that_evicts_them_whole_are_counted_as_the_file_has_them() {
    for mut config in [config(), files_config()] {
        config.eviction.policy = EvictionPolicy::Full;
        let mut machine = Machine::with(config);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        begin(&machine.bucket);
        let mut random = Random::from_seed(1);
        let mut alive = BTreeSet::new();
        let mut seqno = 0;
        for round in 0..40 {
            let (start, end) = (Seqno(seqno + 1), Seqno(seqno + 20));
            let memory = ReceivedSnapshot { start, end, is_disk: false, ..snapshot(0) };
            announce(&machine.bucket, ReceivedSnapshot { purge_seqno: None, ..memory });
            for _ in 0..20 {
                seqno += 1;
                let name = random.below(60).to_string();
                let is_deletion = random.below(3) == 0;
                receive(&machine.bucket, &name, seqno, Operation::Mutation, is_deletion);
                let _ = if is_deletion { alive.remove(&name) } else { alive.insert(name) };
            }
            machine.run();
            begin_backfill(&machine).unwrap();
            machine.run();
            let mut count = 0;
            machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
                count = vbucket.document_count();
                for name in 0..60 {
                    if random.below(2) == 0 {
                        vbucket.eject(key(&name.to_string()).as_key(), now, effects);
                    }
                }
            });
            assert_eq!(count, alive.len(), "round {round}");
        }
    }
}

#[test]
fn a_vbucket_promoted_within_a_snapshot_announces_its_own_end_before_its_file_knows() {
    for config in [config(), files_config()] {
        let mut machine = Machine::with(config);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        begin(&machine.bucket);
        announce(&machine.bucket, snapshot(0));
        receive(&machine.bucket, "5", 5, Operation::Mutation, false);
        machine.run();
        assert_eq!(begin_backfill(&machine).unwrap().facts().snapshot_end, Seqno(10));
        machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            let (state, fresh_uuid) = (VbucketState::Active, VbUuid(9));
            let change = RoleChange { state, topology: None, is_takeover: false, fresh_uuid };
            vbucket.change_role(change, now, effects);
        });
        let facts = begin_backfill(&machine).unwrap().facts();
        assert_eq!((facts.high, facts.snapshot_end), (Seqno(5), Seqno(5)));
    }
}

#[test]
fn a_vbucket_promoted_within_a_snapshot_announces_its_own_end() {
    let ephemeral = BucketConfig { bucket_type: Some(BucketType::Ephemeral), ..config() };
    for config in [ephemeral, config(), files_config()] {
        for is_disk in [false, true] {
            let mut machine = Machine::with(config.clone());
            let case = format!("{:?} {is_disk}", config.bucket_type);
            machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
            begin(&machine.bucket);
            announce(&machine.bucket, prepares::snapshot(1, 1000, is_disk));
            for seqno in 1..=5 {
                receive(&machine.bucket, &seqno.to_string(), seqno, Operation::Mutation, false);
            }
            machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
            for seqno in [5, 6] {
                let facts = begin_backfill(&machine).unwrap().facts();
                assert_eq!(
                    (facts.high, facts.snapshot_end),
                    (Seqno(seqno), Seqno(seqno)),
                    "{case}"
                );
                machine.set(VBID, "own", b"value").unwrap();
                machine.run();
            }
        }
    }
}
