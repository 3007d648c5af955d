//! What becomes of the documents of durable writes.

use std::time::Duration;

use document::{
    Cas, DurabilityLevel, Item, ItemBuilder, ItemMeta, Operation, RevSeqno, Seqno, VbUuid, Vbid,
    VbucketState,
};
use platform::{Clock, Instant, WallTime};

use super::script::Bench;
use super::words::{key, topology};
use crate::checkpoint::Tenure;
use crate::effect::Effect;
use crate::eviction::{
    EvictionOptions, EvictionPolicy, EvictionStrategy, FrequencyHistogram, StrategyKind,
};
use crate::hash_table::HashSeed;
use crate::memory_account::MemoryAccount;
use crate::operation::{Now, Refusal, StoreMode, SyncWriteRequest, WriteCondition, Written};
use crate::vbucket::Vbucket;
use crate::vbucket::paging::PagingLimits;
use crate::vbucket::role::RoleChange;
use crate::waiter::Waiter;

const SECOND: u64 = 1_000_000_000;

fn vbucket(account: &MemoryAccount, options: EvictionOptions) -> Vbucket {
    let (state, seed) = (VbucketState::Active, HashSeed::new(1));
    Vbucket::new(Vbid(0), state, VbUuid(1), seed, account.clone()).with_eviction(options)
}

fn set_topology(vbucket: &mut Vbucket, nodes: &str) {
    let change = RoleChange {
        state: VbucketState::Active,
        topology: Some(topology(nodes)),
        is_takeover: false,
        fresh_uuid: VbUuid(2),
    };
    vbucket.change_role(change, Now::default(), &mut Vec::new());
}

fn at(seconds: u64) -> Now {
    let clock = Clock::simulated(WallTime(seconds * SECOND));
    Now { monotonic: clock.now(), wall: clock.wall_time() }
}

fn durably(level: DurabilityLevel) -> WriteCondition {
    let request = SyncWriteRequest { level, deadline: Instant(u64::MAX), waiter: Waiter(1) };
    WriteCondition { sync_write: Some(request), ..WriteCondition::default() }
}

/// Stores `k`, to expire at this second or never.
fn store(vbucket: &mut Vbucket, expiry: u32, condition: WriteCondition, now: Now) -> bool {
    let meta = ItemMeta { expiry, ..ItemMeta::default() };
    let builder = ItemBuilder::step(key("k").as_key(), meta, condition.operation(), b"value");
    vbucket.store(StoreMode::Set, builder, condition, now, &mut Vec::new()).is_ok()
}

fn flush(vbucket: &mut Vbucket) -> Vec<Item> {
    let mut items = Vec::new();
    while let Some(mut batch) = vbucket.begin_flush() {
        items.extend(batch.take_items(usize::MAX).items);
        vbucket.flush_succeeded(&batch, Now::default(), &mut Vec::new());
        vbucket.apply_succeeded(batch.high_seqno());
    }
    items
}

#[test]
fn a_commit_has_the_version_and_the_revision_of_its_prepare() {
    let mut vbucket = vbucket(&MemoryAccount::default(), EvictionOptions::default());
    set_topology(&mut vbucket, "a");
    let condition = durably(DurabilityLevel::Majority);
    assert!(store(&mut vbucket, 0, condition, at(100)));
    let deleted = vbucket.delete(key("k").as_key(), condition, at(100), &mut Vec::new());
    assert!(matches!(deleted, Ok(Written::Begun)));
    assert!(store(&mut vbucket, 0, condition, at(100)));
    let items = flush(&mut vbucket);
    // Of the six, the file has the last of each namespace.
    let facts = |item: &Item| (item.seqno(), item.revision(), item.cas());
    let [prepare, commit] = &items[..] else { panic!("{items:?}") };
    assert_eq!(facts(prepare), (Seqno(5), RevSeqno(3), commit.cas()), "revisions go on");
    assert_eq!(facts(commit), (Seqno(6), RevSeqno(3), prepare.cas()));
}

#[test]
fn a_document_whose_time_is_over_waits_for_the_durable_write_that_replaces_it() {
    let mut vbucket = vbucket(&MemoryAccount::default(), EvictionOptions::default());
    set_topology(&mut vbucket, "a b");
    assert!(store(&mut vbucket, 200, WriteCondition::default(), at(100)));
    assert!(store(&mut vbucket, 300, durably(DurabilityLevel::Majority), at(100)));
    let name = key("k");
    for _ in 0..2 {
        let found = vbucket.get(name.as_key(), at(201), &mut Vec::new());
        assert!(matches!(found, Err(Refusal::NotFound)));
        let from = crate::hash_table::VisitPosition::default();
        vbucket.delete_expired_portion(from, 100, at(201), &mut Vec::new());
    }
    assert_eq!((vbucket.high_seqno(), vbucket.statistics().expirations), (Seqno(2), 0));
    vbucket.acknowledge("b", Seqno(2), at(201), &mut Vec::new());
    assert!(vbucket.get(name.as_key(), at(201), &mut Vec::new()).is_ok());
    // A prepare does not expire; what it has become does.
    assert!(store(&mut vbucket, 300, durably(DurabilityLevel::Majority), at(201)));
    vbucket.acknowledge("b", Seqno(4), at(400), &mut Vec::new());
    assert_eq!(vbucket.statistics().sync_writes_committed, 2);
    let found = vbucket.get(name.as_key(), at(400), &mut Vec::new());
    assert!(matches!(found, Err(Refusal::NotFound)));
    assert_eq!(vbucket.statistics().expirations, 1);
}

#[test]
fn a_durable_write_looks_at_version_and_lock_of_the_document_and_ends_the_lock() {
    let mut vbucket = vbucket(&MemoryAccount::default(), EvictionOptions::default());
    set_topology(&mut vbucket, "a b");
    assert!(store(&mut vbucket, 0, WriteCondition::default(), at(100)));
    let condition = durably(DurabilityLevel::Majority);
    let with = |cas| WriteCondition { cas, ..condition };
    assert!(!store(&mut vbucket, 0, with(Cas(5)), at(100)));
    let (name, effects) = (key("k"), &mut Vec::new());
    let lock = vbucket.lock(name.as_key(), Duration::from_secs(15), at(100), effects).unwrap();
    assert!(!store(&mut vbucket, 0, condition, at(100)));
    assert!(store(&mut vbucket, 0, with(lock.cas), at(100)));
    assert_eq!(vbucket.lock_count(), 0);
}

#[test]
fn without_a_disk_a_write_cannot_be_persisted() {
    let mut bench = Bench::new();
    bench.vbucket = vbucket(&MemoryAccount::default(), EvictionOptions::default()).ephemeral();
    bench.act("topology a b");
    assert_eq!(bench.act("sync_set k active"), "InvalidDurabilityLevel");
    assert_eq!(bench.act("sync_delete k persist"), "InvalidDurabilityLevel");
    assert_eq!(bench.act("sync_set k majority"), "begun@1 timer 30");
    assert!(!bench.vbucket.auto_delete(key("k").as_key(), Seqno(1), at(1), &mut Vec::new()));
    assert_eq!(bench.act("ack b 1"), "commit k@2");
    assert_eq!(bench.act("set k"), "@3");
    assert_eq!(bench.act("sync_set k majority"), "begun@4");
    assert!(!bench.vbucket.auto_delete(key("k").as_key(), Seqno(3), at(1), &mut Vec::new()));
}

#[test]
fn what_a_durable_write_will_replace_stays_in_memory() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let options = EvictionOptions { policy, ..EvictionOptions::default() };
        let mut vbucket = vbucket(&MemoryAccount::default(), options);
        set_topology(&mut vbucket, "a b");
        assert!(store(&mut vbucket, 0, WriteCondition::default(), at(100)));
        assert!(store(&mut vbucket, 0, durably(DurabilityLevel::Majority), at(100)));
        flush(&mut vbucket);
        let mut frequencies = FrequencyHistogram::default();
        (0..=u8::MAX).for_each(|frequency| frequencies.record(frequency));
        let everybody = EvictionStrategy::up_to(StrategyKind::default(), u8::MAX);
        let limits =
            PagingLimits { slots_max: 100, bytes_max: u64::MAX, forgets_tombstones: false };
        let page = |vbucket: &mut Vbucket| {
            vbucket.page(limits, everybody, at(100), &mut Vec::new()).evicted_count
        };
        assert_eq!(page(&mut vbucket), 0, "{policy:?}");
        assert_eq!(vbucket.eject(key("k").as_key(), at(100), &mut Vec::new()), Some(false));
        vbucket.acknowledge("b", Seqno(2), at(100), &mut Vec::new());
        assert_eq!(page(&mut vbucket), 0, "{policy:?}: the commit is not in the file");
        flush(&mut vbucket);
        assert_eq!(page(&mut vbucket), 1, "{policy:?}");
        assert_eq!((vbucket.document_count(), vbucket.ejected_count()), (1, 1));
    }
}

/// The file does not say of a document that it was committed. What replaced one that was read from
/// there took the commit out of the log, and whoever had the prepare was sent another version of
/// the document without its end, which ends a stream.
#[test]
fn a_commit_stays_in_the_log_behind_its_prepare_whatever_leaves_memory() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let options = EvictionOptions { policy, ..EvictionOptions::default() };
        let mut vbucket = vbucket(&MemoryAccount::default(), options);
        set_topology(&mut vbucket, "a");
        let (name, effects) = (key("k"), &mut Vec::new());
        let late = vbucket.open_stream("late", Seqno(0), Tenure::Always).unwrap().id;
        assert!(store(&mut vbucket, 0, durably(DurabilityLevel::Majority), at(100)));
        let [_, commit] = &flush(&mut vbucket)[..] else { panic!("a prepare and its commit") };
        let ejected = vbucket.eject(name.as_key(), at(100), effects);
        let builder = ItemBuilder::new(name.as_key(), commit.meta(), commit.value());
        let in_file = builder.finish(commit.cas(), commit.seqno(), commit.revision());
        match vbucket.get(name.as_key(), at(100), effects) {
            Ok(_) => assert_eq!(ejected, Some(false), "{policy:?}"),
            Err(Refusal::Absent(lookup)) => drop(vbucket.finish_lookup(&lookup, Some(in_file))),
            Err(Refusal::Ejected(_)) => drop(vbucket.restore_value(in_file)),
            Err(other) => panic!("{other:?}"),
        }
        assert!(store(&mut vbucket, 0, WriteCondition::default(), at(100)));
        let log = vbucket.read_stream(late).unwrap();
        let seqnos: Vec<u64> = log.items().iter().map(|item| item.seqno().0).collect();
        assert_eq!(seqnos, [1, 2, 3], "{policy:?}");
        // Once the log has let it go it may leave.
        vbucket.finish_stream_read(&log, 3, effects);
        assert!(store(&mut vbucket, 0, durably(DurabilityLevel::Majority), at(100)));
        flush(&mut vbucket);
        vbucket.close_stream(late, effects);
        assert_eq!(vbucket.eject(name.as_key(), at(100), effects), Some(true), "{policy:?}");
    }
}

#[test]
fn prepares_take_memory_as_long_as_they_wait() {
    let account = MemoryAccount::default();
    let mut vbucket = vbucket(&account, EvictionOptions::default());
    set_topology(&mut vbucket, "a b");
    let effects: &mut Vec<Effect> = &mut Vec::new();
    for number in 0..1_000 {
        let name = key(&format!("k{number}"));
        let condition = durably(DurabilityLevel::PersistToMajority);
        let (meta, operation) = (ItemMeta::default(), condition.operation());
        let builder = ItemBuilder::step(name.as_key(), meta, operation, &[7; 100]);
        let begun = vbucket.store(StoreMode::Set, builder, condition, at(100), effects);
        assert!(matches!(begun, Ok(Written::Begun)));
    }
    let status = vbucket.durability_status();
    assert_eq!((status.tracked_count, vbucket.prepare_count()), (1_000, 1_000));
    assert!(status.prepares_bytes > 100_000);
    vbucket.acknowledge("b", Seqno(1_000), at(100), effects);
    flush(&mut vbucket);
    effects.clear();
    let status = vbucket.durability_status();
    assert_eq!((status.tracked_count, status.tracked_bytes, status.prepares_bytes), (0, 0, 0));
    assert_eq!((vbucket.document_count(), vbucket.high_seqno()), (1_000, Seqno(2_000)));
    drop(vbucket);
    assert_eq!(account.used_bytes(), 0);
}

#[test]
fn a_value_stays_where_it_was_built_whatever_becomes_of_its_write() {
    let account = MemoryAccount::default();
    let mut vbucket = vbucket(&account, EvictionOptions::default());
    set_topology(&mut vbucket, "a b");
    let (name, effects) = (key("k"), &mut Vec::new());
    let condition = durably(DurabilityLevel::Majority);
    let (meta, operation) = (ItemMeta::default(), condition.operation());
    let builder = ItemBuilder::step(name.as_key(), meta, operation, &[7; 10_000]);
    let place = builder.value().as_ptr();
    vbucket.store(StoreMode::Set, builder, condition, at(100), effects).unwrap();
    let prepared = vbucket.prepared_items();
    assert_eq!(prepared.iter().map(|item| item.value().as_ptr()).collect::<Vec<_>>(), [place]);
    drop(prepared);
    let used_bytes = account.used_bytes();
    vbucket.acknowledge("b", Seqno(1), at(100), effects);
    let found = vbucket.get(name.as_key(), at(100), effects).unwrap();
    assert_eq!((found.item.value().as_ptr(), found.item.seqno()), (place, Seqno(2)));
    assert!(account.used_bytes() < used_bytes + 5_000, "the commit has no value of its own");
    let items = flush(&mut vbucket);
    let in_log = items.iter().map(|item| (item.operation(), item.seqno(), item.value().as_ptr()));
    let commit = Operation::Commit { prepare: Seqno(1) };
    let expected = [(operation, Seqno(1), place), (commit, Seqno(2), place)];
    assert_eq!(in_log.collect::<Vec<_>>(), expected);
    drop((found, items));
    effects.clear();
    drop(vbucket);
    assert_eq!(account.used_bytes(), 0);
}
