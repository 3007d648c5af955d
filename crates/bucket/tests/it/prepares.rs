//! Durable writes on their way through a bucket: which writes are durable, and prepares that have
//! not ended across restarts and rollbacks.

use std::time::Duration;

use bucket::{
    Addition, ApplyConfig, Attempted, BucketConfig, CompactionOrder, CounterRequest,
    DurabilityMinLevel, Incoming, Write,
};
use bucket::{Bucket, Refused};
use bucket::{Persistence, Placement};
use document::{
    Cas, DurabilityLevel, Item, ItemBuilder, ItemMeta, Operation, RevSeqno, Seqno, Vbid,
    VbucketState,
};
use vbucket::eviction::EvictionPolicy;
use vbucket::{
    Received, ReceivedSnapshot, StoreMode, SyncWriteRequest, Waiter, WriteCondition, Written,
};

use crate::compaction::compact;
use crate::support::{Machine, No, config, files_config, key};

const VBID: Vbid = Vbid(0);

pub(crate) fn snapshot(start: u64, end: u64, is_disk: bool) -> ReceivedSnapshot {
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
    bucket: &Bucket,
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
    let result =
        bucket.on_vbucket(VBID, |vbucket, now, effects| vbucket.receive(received, now, effects));
    assert_eq!(result, Some(Ok(())));
}

/// Another node has agreed to send what follows.
pub(crate) fn begin(bucket: &Bucket) {
    let begun = bucket.on_vbucket(VBID, |vbucket, _, effects| {
        vbucket.begin_receiving(vbucket.stream_position(), &[], effects)
    });
    assert_eq!(begun, Some(Ok(())));
}

pub(crate) fn announce(bucket: &Bucket, snapshot: ReceivedSnapshot) {
    let result =
        bucket.on_vbucket(VBID, |vbucket, _, effects| vbucket.receive_snapshot(snapshot, effects));
    assert_eq!(result, Some(Ok(())));
}

/// A replica with prepares of three documents and, of a snapshot from a file that is not whole, a
/// newer version and a tombstone of the first two.
#[test]
fn a_prepare_whose_end_is_in_a_part_of_a_snapshot_does_not_come_back() {
    let policies = [EvictionPolicy::ValueOnly, EvictionPolicy::Full];
    for (policy, purges) in policies.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let case = format!("{policy:?}, purges {purges}");
        let mut config = config();
        config.eviction.policy = policy;
        let mut machine = Machine::with(config);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        begin(&machine.bucket);
        let prepare = Operation::Prepare(DurabilityLevel::Majority);
        announce(&machine.bucket, snapshot(1, 3, false));
        for (name, seqno) in [("a", 1), ("b", 2), ("c", 3)] {
            receive(&machine.bucket, name, seqno, prepare, false);
        }
        announce(&machine.bucket, snapshot(4, 9, true));
        receive(&machine.bucket, "a", 4, Operation::Mutation, false);
        receive(&machine.bucket, "b", 5, Operation::Mutation, true);
        receive(&machine.bucket, "d", 6, Operation::Mutation, false);
        machine.run();
        if purges {
            let order = CompactionOrder { drop_deletes: true, ..CompactionOrder::default() };
            compact(&mut machine, VBID, order);
        }
        for stop in [Machine::stop_and_start, Machine::restart] {
            machine = stop(machine);
            machine.run();
            let count = |machine: &Machine| {
                machine.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.prepare_count())
            };
            assert_eq!(count(&machine), Some(1), "{case}");
        }
        let topology = Some(vec![vec![Some("this".to_owned())]]);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Active, topology).unwrap();
        machine.run();
        assert_eq!(machine.get(VBID, "a").unwrap(), b"4", "{case}");
        assert!(machine.get(VBID, "b").is_err(), "{case}");
        assert_eq!(machine.get(VBID, "c").unwrap(), b"3", "{case}");
    }
}

/// A replica with a prepare, and of a snapshot from a file the abort of a later one of the same
/// document, whose newest version, which stands for the end of the first, comes behind that.
#[test]
fn a_prepare_outlives_the_abort_of_a_later_one_until_its_end_has_come() {
    for (persistence, is_whole, restarts) in [config().persistence, Persistence::Files]
        .into_iter()
        .flat_map(|it| [(it, false, false), (it, false, true), (it, true, false), (it, true, true)])
    {
        let case = format!("{persistence:?} {is_whole} {restarts}");
        let mut machine = Machine::with(BucketConfig { persistence, ..config() });
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        begin(&machine.bucket);
        announce(&machine.bucket, snapshot(1, 1, false));
        let prepare = Operation::Prepare(DurabilityLevel::Majority);
        receive(&machine.bucket, "a", 1, prepare, false);
        machine.run();
        let high_completed = Some(Seqno(5));
        announce(&machine.bucket, ReceivedSnapshot { high_completed, ..snapshot(2, 9, true) });
        let (name, later) = (key("a"), Seqno(5));
        let aborted = machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            vbucket.receive_abort(name.as_key(), later, Seqno(6), now, effects)
        });
        assert_eq!(aborted, Some(Ok(())));
        receive(&machine.bucket, "b", 7, Operation::Mutation, false);
        if is_whole {
            receive(&machine.bucket, "a", 9, Operation::Mutation, false);
        }
        machine.run();
        if restarts {
            machine = machine.restart();
            machine.run();
        }
        let count = machine.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.prepare_count());
        assert_eq!(count, Some(usize::from(!is_whole)), "{case}");
        let topology = Some(vec![vec![Some("this".to_owned())]]);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Active, topology).unwrap();
        machine.run();
        let value = if is_whole { b"9" } else { b"1" };
        assert_eq!(machine.get(VBID, "a").unwrap(), value, "{case}");
    }
}

/// Time until files follow the journal.
const CYCLE: Duration = Duration::from_secs(10);

/// A replica whose file is behind the journal for a while.
fn lazy_replica(policy: EvictionPolicy) -> Machine {
    let apply = ApplyConfig { cycle: CYCLE, applier_count: 1 };
    let mut config = BucketConfig { apply, ..config() };
    config.eviction.policy = policy;
    let machine = Machine::with(config);
    machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
    begin(&machine.bucket);
    machine
}

/// A replica on a full disk whose file has prepares of `a` and `b`, and whose journal has the end
/// of the first and a prepare of `c`.
#[test]
fn prepares_and_ends_that_only_the_journal_has_are_known_on_a_full_disk() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let mut machine = lazy_replica(policy);
        let prepare = Operation::Prepare(DurabilityLevel::Majority);
        announce(&machine.bucket, snapshot(1, 2, false));
        receive(&machine.bucket, "a", 1, prepare, false);
        receive(&machine.bucket, "b", 2, prepare, false);
        machine.run();
        machine.advance(CYCLE * 4);
        announce(&machine.bucket, snapshot(3, 4, false));
        let committed = machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            vbucket.receive_commit(key("a").as_key(), Seqno(1), Seqno(3), now, effects)
        });
        assert_eq!(committed, Some(Ok(())));
        receive(&machine.bucket, "c", 4, prepare, false);
        machine.run();
        machine.files.set_capacity(0);
        machine = machine.power_cut(0);
        machine.run();
        let applied = machine.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.applied_seqno());
        assert_eq!(applied, Some(Seqno(2)), "{policy:?}");
        let keys = |machine: &Machine| {
            let mut keys = Vec::new();
            machine.bucket.with_vbucket(VBID, |vbucket| {
                let prepared = vbucket.prepared_items();
                keys = prepared.iter().map(|item| item.key().name().to_vec()).collect();
            });
            keys.sort();
            keys
        };
        assert_eq!(keys(&machine), [b"b", b"c"], "{policy:?}");
        machine.files.set_capacity(1 << 30);
        machine.advance(CYCLE * 4);
        for stop in [Machine::stop_and_start, Machine::restart] {
            machine = stop(machine);
            machine.run();
            assert_eq!(keys(&machine), [b"b", b"c"], "{policy:?}");
        }
        let mut machine = active_with(machine, &["this"]);
        for (name, value) in [("a", b"1"), ("b", b"2"), ("c", b"4")] {
            assert_eq!(machine.get(VBID, name).unwrap(), value, "{policy:?}");
        }
    }
}

/// A replica on a full disk whose file has a prepare, and whose journal has the abort of it in a
/// snapshot from a file that is not whole.
#[test]
fn an_abort_that_only_the_journal_has_ends_its_prepare_within_a_snapshot() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let mut machine = lazy_replica(policy);
        announce(&machine.bucket, snapshot(1, 12, false));
        let prepare = Operation::Prepare(DurabilityLevel::Majority);
        receive(&machine.bucket, "a", 12, prepare, false);
        machine.run();
        machine.advance(CYCLE * 4);
        let high_completed = Some(Seqno(12));
        announce(&machine.bucket, ReceivedSnapshot { high_completed, ..snapshot(13, 20, true) });
        end(&machine, "abort", 13);
        machine.run();
        machine.files.set_capacity(0);
        machine = machine.power_cut(0);
        machine.run();
        let applied = machine.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.applied_seqno());
        assert_eq!(applied, Some(Seqno(12)), "{policy:?}");
        assert_eq!(prepared(&machine), [], "{policy:?}");
        machine.files.set_capacity(1 << 30);
        machine.advance(CYCLE * 4);
        for stop in [Machine::stop_and_start, Machine::restart] {
            machine = stop(machine);
            machine.run();
            assert_eq!(prepared(&machine), [], "{policy:?}");
        }
    }
}

/// With a journal the end of a durable write waits for company, but not for long, and not when the
/// node stops; without one it is written at once.
#[test]
fn the_end_of_a_durable_write_is_persisted_in_a_moment() {
    let deferring = BucketConfig { flush_interval: Duration::from_millis(50), ..config() };
    for (config, at_once, stops) in
        [(deferring.clone(), 2, false), (deferring, 2, true), (files_config(), 3, false)]
    {
        let mut machine = Machine::with(config);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        begin(&machine.bucket);
        machine.run();
        announce(&machine.bucket, snapshot(1, 3, false));
        receive(&machine.bucket, "begins a round", 1, Operation::Mutation, false);
        machine.run();
        let prepare = Operation::Prepare(DurabilityLevel::Majority);
        receive(&machine.bucket, "a", 2, prepare, false);
        machine.run();
        assert_eq!(machine.persisted(VBID), Seqno(2));
        let committed = machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            vbucket.receive_commit(key("a").as_key(), Seqno(2), Seqno(3), now, effects)
        });
        assert_eq!(committed, Some(Ok(())));
        machine.run();
        assert_eq!(machine.persisted(VBID), Seqno(at_once));
        if stops {
            machine = machine.stop_and_start();
            machine.run();
        } else {
            machine.advance(Duration::from_millis(60));
        }
        assert_eq!(machine.persisted(VBID), Seqno(3));
    }
}

/// A request for a durable write, of this level if any.
fn durably(machine: &Machine, level: Option<DurabilityLevel>) -> WriteCondition {
    let deadline = machine.clock.now().after(Duration::from_secs(1_000));
    let request = |level| SyncWriteRequest { level, deadline, waiter: Waiter(7) };
    WriteCondition { sync_write: level.map(request), ..WriteCondition::default() }
}

fn active_with(mut machine: Machine, nodes: &[&str]) -> Machine {
    let chain = nodes.iter().map(|name| Some((*name).to_owned())).collect();
    machine.bucket.set_vbucket_state(VBID, VbucketState::Active, Some(vec![chain])).unwrap();
    machine.run();
    machine
}

fn prepared(machine: &Machine) -> Vec<Operation> {
    let mut prepared = Vec::new();
    machine.bucket.with_vbucket(VBID, |vbucket| {
        prepared = vbucket.prepared_items().iter().map(Item::operation).collect();
    });
    prepared
}

/// Each write, of a document that is there.
fn write(
    machine: &mut Machine,
    verb: &str,
    condition: WriteCondition,
) -> Result<Attempted<Written>, Refused> {
    let (bucket, session, k) = (&machine.bucket, &mut machine.session, key("k"));
    let (k, meta, value) = (k.as_key(), ItemMeta::default(), Incoming::plain(b"8"));
    let mode = match verb {
        "delete" => return bucket.delete(session, VBID, k, condition),
        "append" => {
            let placement = Placement::Back;
            let addition = Addition { vbid: VBID, key: k, placement, added: value, condition };
            let concatenated = bucket.concatenate(session, addition)?;
            return Ok(concatenated.map(|it| it.written));
        }
        "count" => {
            let request =
                CounterRequest { is_increment: true, delta: 1, created_with: None, expiry: None };
            let counted = bucket.count(session, VBID, k, request, condition)?;
            return Ok(counted.map(|it| it.written));
        }
        "add" => {
            let (mode, new) = (StoreMode::Add, key("new"));
            let write = Write { mode, vbid: VBID, key: new.as_key(), meta, value, condition };
            return bucket.store(session, write);
        }
        "replace" => StoreMode::Replace,
        _ => StoreMode::Set,
    };
    bucket.store(session, Write { mode, vbid: VBID, key: k, meta, value, condition })
}

#[test]
fn every_write_is_as_durable_as_the_bucket_demands_at_least() {
    use DurabilityLevel::{Majority, MajorityAndPersistOnMaster, PersistToMajority};
    let levels = [None, Some(Majority), Some(MajorityAndPersistOnMaster), Some(PersistToMajority)];
    for level_min in levels {
        for asked in levels {
            for verb in ["set", "add", "replace", "append", "count", "delete"] {
                let case = format!("{verb}: {asked:?} where {level_min:?}");
                let mut machine = Machine::with(config());
                machine.set(VBID, "k", b"7").unwrap();
                machine.run();
                machine = Machine::restart({
                    let level_min = DurabilityMinLevel(level_min);
                    machine.config.durability.level_min = level_min;
                    machine
                });
                machine.run();
                let mut machine = active_with(machine, &["this", "other"]);
                let condition = durably(&machine, asked);
                let written = write(&mut machine, verb, condition);
                match asked.max(level_min) {
                    None => {
                        let is_done = matches!(written, Ok(Attempted::Answered(Written::Done(_))));
                        assert!(is_done, "{case}: {written:?}");
                    }
                    Some(level) => {
                        let begun = Ok(Attempted::Answered(Written::Begun));
                        assert_eq!(written, begun, "{case}");
                        assert_eq!(prepared(&machine), [Operation::Prepare(level)], "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_write_that_has_to_be_done_at_once_is_refused_where_it_would_be_a_durable_one() {
    let mut config = config();
    config.durability.level_min = DurabilityMinLevel(Some(DurabilityLevel::Majority));
    let mut machine = active_with(Machine::with(config), &["this", "other"]);
    let (bucket, session, k) = (&machine.bucket, &mut machine.session, key("k"));
    let write = Write::set(VBID, k.as_key(), Incoming::plain(b"8"));
    let stored = bucket.store_counted(session, write);
    assert_eq!(stored, Err(Refused::InvalidDurabilityLevel));
    let deleted = bucket.delete_counted(session, VBID, k.as_key(), WriteCondition::default());
    assert_eq!(deleted, Err(Refused::InvalidDurabilityLevel));
    assert_eq!(prepared(&machine), [], "nothing has begun");
}

#[test]
fn a_durable_write_finds_the_version_of_a_document_that_left_memory() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        for verb in ["set", "replace", "append", "count", "delete"] {
            let mut config = config();
            config.eviction.policy = policy;
            let mut machine = active_with(Machine::with(config), &["this"]);
            let cas = machine.set(VBID, "k", b"7").unwrap().cas;
            machine.run();
            machine.evict(VBID, "k").unwrap();
            let condition = durably(&machine, Some(DurabilityLevel::Majority));
            let mut finish = |cas| {
                let condition = WriteCondition { cas, ..condition };
                let mut written = write(&mut machine, verb, condition);
                while written == Ok(Attempted::Waits) {
                    machine.run();
                    written = write(&mut machine, verb, condition);
                }
                written
            };
            let case = format!("{verb}, {policy:?}");
            if verb != "count" {
                assert_eq!(finish(Cas(1)), Err(Refused::CasMismatch), "{case}");
            }
            let written = finish(cas);
            assert_eq!(written, Ok(Attempted::Answered(Written::Begun)), "{case}");
            machine.run();
            let expected = match verb {
                "delete" => Err(No(Refused::NotFound)),
                "append" => Ok(b"78".to_vec()),
                _ => Ok(b"8".to_vec()),
            };
            assert_eq!(machine.get(VBID, "k"), expected, "{case}");
            assert_eq!(machine.high_seqno(VBID), Seqno(3), "{case}: a prepare and its commit");
        }
    }
}

#[test]
fn a_value_that_was_received_in_its_place_stays_there_when_it_is_committed() {
    use DurabilityLevel::{Majority, PersistToMajority};
    for (level_min, asked) in [(None, Some(Majority)), (Some(PersistToMajority), None)] {
        let mut config = config();
        config.durability.level_min = DurabilityMinLevel(level_min);
        let mut machine = active_with(Machine::with(config), &["this"]);
        let operation = machine.bucket.operation_of(asked);
        let (name, meta, size) = (key("k"), ItemMeta::default(), 100 << 10);
        let builder = ItemBuilder::with_room(name.as_key(), meta, operation, size);
        let place = builder.value().as_ptr();
        let condition = durably(&machine, asked);
        let session = &mut machine.session;
        let (bucket, mode) = (&machine.bucket, StoreMode::Set);
        let stored = bucket.store_received(session, mode, VBID, builder, condition);
        assert_eq!(stored, Ok(Attempted::Answered(Written::Begun)));
        machine.run();
        let found = machine.find(VBID, "k").unwrap();
        assert_eq!((found.item.value().as_ptr(), found.item.seqno()), (place, Seqno(2)));
    }
}

/// A replica is rolled back to between a prepare and its end, and the end comes again, or another.
#[test]
fn a_prepare_has_not_ended_where_a_rollback_has_taken_its_end() {
    for (persistence, restarts) in [config().persistence, Persistence::Files]
        .into_iter()
        .flat_map(|it| [(it, false), (it, true)])
    {
        for first in ["commit", "abort"] {
            for second in ["commit", "abort"] {
                let mut machine = Machine::with(BucketConfig { persistence, ..config() });
                machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
                let case = format!("{first}, {second}, {restarts}, {persistence:?}");
                begin(&machine.bucket);
                announce(&machine.bucket, snapshot(1, 12, false));
                // A file that would lose most of what it has begins anew.
                for seqno in 1..11 {
                    receive(&machine.bucket, &seqno.to_string(), seqno, Operation::Mutation, false);
                }
                receive(&machine.bucket, "a", 11, Operation::Mutation, false);
                let prepare = Operation::Prepare(DurabilityLevel::PersistToMajority);
                receive(&machine.bucket, "a", 12, prepare, false);
                machine.run();
                announce(&machine.bucket, snapshot(13, 14, false));
                end(&machine, first, 13);
                receive(&machine.bucket, "b", 14, Operation::Mutation, false);
                machine.run();
                let count = |machine: &Machine| {
                    machine.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.prepare_count())
                };
                assert_eq!(count(&machine), Some(0), "{case}");
                assert_eq!(machine.bucket.rollback(VBID, Seqno(13)).unwrap(), Seqno(12), "{case}");
                let mut status = None;
                machine.bucket.with_vbucket(VBID, |vbucket| {
                    status = Some(vbucket.durability_status());
                });
                let status = status.unwrap();
                let held = (status.high_prepared_seqno, status.high_completed_seqno);
                assert_eq!(held, (Seqno(12), Seqno(0)), "{case}");
                assert_eq!((count(&machine), status.tracked_count), (Some(1), 1), "{case}");
                if restarts {
                    machine = machine.restart();
                    machine.run();
                    assert_eq!(count(&machine), Some(1), "{case}");
                }
                begin(&machine.bucket);
                announce(&machine.bucket, snapshot(13, 13, false));
                end(&machine, second, 13);
                machine.run();
                assert_eq!(count(&machine), Some(0), "{case}");
                machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
                let value = if second == "commit" { b"12" } else { b"11" };
                assert_eq!(machine.get(VBID, "a").unwrap(), value, "{case}");
                assert_eq!(machine.get(VBID, "b"), Err(No(Refused::NotFound)), "{case}");
            }
        }
    }
}

/// The prepare of `a` at 12 ends.
fn end(machine: &Machine, how: &str, seqno: u64) {
    let (name, prepare, seqno) = (key("a"), Seqno(12), Seqno(seqno));
    let result = machine.bucket.on_vbucket(VBID, |vbucket, now, effects| match how {
        "commit" => vbucket.receive_commit(name.as_key(), prepare, seqno, now, effects),
        _ => vbucket.receive_abort(name.as_key(), prepare, seqno, now, effects),
    });
    assert_eq!(result, Some(Ok(())));
}
