//! Prepares in the files, and what ends them.

use std::time::Duration;

use document::{
    Cas, DurabilityLevel, ItemBuilder, ItemMeta, Operation, RevSeqno, Seqno, Vbid, VbucketState,
};
use vbucket::eviction::EvictionPolicy;
use vbucket::{Received, ReceivedSnapshot};

use crate::support::{Machine, config, files_config, key};

const VBID: Vbid = Vbid(0);

fn snapshot(start: u64, end: u64, is_disk: bool) -> ReceivedSnapshot {
    ReceivedSnapshot {
        start: Seqno(start),
        end: Seqno(end),
        is_disk,
        begins_checkpoint: true,
        max_visible: None,
        high_completed: is_disk.then_some(Seqno(3)),
        high_prepared: None,
        purge_seqno: None,
    }
}

pub(crate) fn receive(
    machine: &Machine,
    name: &str,
    seqno: u64,
    operation: Operation,
    is_deletion: bool,
) {
    let deletion = is_deletion.then_some(document::Deletion::Explicit);
    let meta = ItemMeta { deletion, ..ItemMeta::default() };
    let builder = ItemBuilder::new(key(name).as_key(), meta, seqno.to_string().as_bytes());
    let builder = builder.with_operation(operation);
    let (cas, revision) = (Cas(seqno), RevSeqno(1));
    let received = Received { builder, cas, seqno: Seqno(seqno), revision };
    let result = machine
        .bucket
        .act_on_vbucket(VBID, |vbucket, now, effects| vbucket.receive(received, now, effects));
    assert_eq!(result, Some(Ok(())));
}

pub(crate) fn announce(machine: &Machine, snapshot: ReceivedSnapshot) {
    let result = machine
        .bucket
        .act_on_vbucket(VBID, |vbucket, _, effects| vbucket.receive_snapshot(snapshot, effects));
    assert_eq!(result, Some(Ok(())));
}

/// A replica with prepares of three documents and, of a snapshot from a file that is not whole, a
/// newer version and a tombstone of the first two.
#[test]
fn a_prepare_whose_end_is_in_a_part_of_a_snapshot_does_not_come_back() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let mut config = config();
        config.eviction.policy = policy;
        let mut machine = Machine::with(config);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        let begun = machine
            .bucket
            .act_on_vbucket(VBID, |vbucket, _, effects| vbucket.begin_receiving(&[], effects));
        assert_eq!(begun, Some(Ok(())));
        let prepare = Operation::Prepare(DurabilityLevel::Majority);
        announce(&machine, snapshot(1, 3, false));
        for (name, seqno) in [("a", 1), ("b", 2), ("c", 3)] {
            receive(&machine, name, seqno, prepare, false);
        }
        announce(&machine, snapshot(4, 9, true));
        receive(&machine, "a", 4, Operation::Mutation, false);
        receive(&machine, "b", 5, Operation::Mutation, true);
        machine.run();
        for stop in [Machine::stop_and_start, Machine::restart] {
            machine = stop(machine);
            machine.run();
            let count = |machine: &Machine| {
                machine.bucket.act_on_vbucket(VBID, |vbucket, _, _| vbucket.prepare_count())
            };
            assert_eq!(count(&machine), Some(1), "{policy:?}");
        }
        let topology = Some(vec![vec![Some("this".to_owned())]]);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Active, topology).unwrap();
        machine.run();
        assert_eq!(machine.get(VBID, "a").unwrap(), b"4", "{policy:?}");
        assert!(machine.get(VBID, "b").is_err(), "{policy:?}");
        assert_eq!(machine.get(VBID, "c").unwrap(), b"3", "{policy:?}");
    }
}

/// With a journal the end of a durable write waits for company, but not for long, and not when the
/// node stops; without one it is written at once.
#[test]
fn the_end_of_a_durable_write_is_persisted_in_a_moment() {
    for (config, at_once, stops) in
        [(config(), 1, false), (config(), 1, true), (files_config(), 2, false)]
    {
        let mut machine = Machine::with(config);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        let begun = machine
            .bucket
            .act_on_vbucket(VBID, |vbucket, _, effects| vbucket.begin_receiving(&[], effects));
        assert_eq!(begun, Some(Ok(())));
        announce(&machine, snapshot(1, 2, false));
        let prepare = Operation::Prepare(DurabilityLevel::Majority);
        receive(&machine, "a", 1, prepare, false);
        machine.run();
        assert_eq!(machine.persisted(VBID), Seqno(1));
        let committed = machine.bucket.act_on_vbucket(VBID, |vbucket, now, effects| {
            vbucket.receive_commit(key("a").as_key(), Seqno(1), Seqno(2), now, effects)
        });
        assert_eq!(committed, Some(Ok(())));
        machine.run();
        assert_eq!(machine.persisted(VBID), Seqno(at_once));
        if stops {
            machine = machine.stop_and_start();
            machine.run();
        } else {
            machine.advance(Duration::from_millis(25));
        }
        assert_eq!(machine.persisted(VBID), Seqno(2));
    }
}
