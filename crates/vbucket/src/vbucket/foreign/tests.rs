//! What becomes of versions from elsewhere.

use std::time::Duration;

use document::{
    Datatype, Deletion, DurabilityLevel, ItemBuilder, ItemMeta, KeyBuf, Operation, Placeholders,
    Seqno, VbUuid, Vbid, VbucketState,
};
use platform::{Instant, WallTime};

use super::*;
use crate::hash_table::HashSeed;
use crate::memory_account::MemoryAccount;
use crate::operation::{StoreMode, SyncWriteRequest, WriteCondition};
use crate::vbucket::role::RoleChange;
use crate::version_order::VersionOrder;
use crate::waiter::Waiter;

const NOW: WallTime = WallTime(1_700_000_000_000_000_000);
const ANY_TERMS: ForeignTerms =
    ForeignTerms { only_adds: false, replaces: Cas::ANY, order: None, renames: false };
const NEWER_ONLY: ForeignTerms = ForeignTerms { order: Some(VersionOrder::Revision), ..ANY_TERMS };

struct Bench {
    vbucket: Vbucket,
    rules: ClockRules,
    now: Now,
    effects: Vec<Effect>,
}

impl Bench {
    fn new() -> Self {
        let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
        let rules = ClockRules::default();
        let vbucket = Vbucket::new(Vbid(0), VbucketState::Active, VbUuid(7), seed, account)
            .with_clock_rules(rules.clone());
        let now = Now { monotonic: Instant::default(), wall: NOW };
        Self { vbucket, rules, now, effects: Vec::new() }
    }

    fn bring(
        &mut self,
        meta: ItemMeta,
        cas: u64,
        revision: u64,
        terms: ForeignTerms,
    ) -> Result<Mutation, Refusal> {
        let builder = ItemBuilder::new(key().as_key(), meta, b"");
        let placeholders = Placeholders::default();
        let (cas, revision) = (Cas(cas), RevSeqno(revision));
        let write = ForeignWrite { builder, cas, revision, placeholders, terms };
        self.vbucket.store_foreign(write, self.now, &mut self.effects)
    }

    fn store(&mut self) -> Mutation {
        let builder = ItemBuilder::new(key().as_key(), ItemMeta::default(), b"here");
        let condition = WriteCondition::default();
        let (now, effects) = (self.now, &mut self.effects);
        let written = self.vbucket.store(StoreMode::Set, builder, condition, now, effects);
        written.unwrap().done().unwrap()
    }

    fn version(&mut self) -> (u64, u64, bool) {
        let found = self.vbucket.get_metadata(key().as_key(), self.now).unwrap();
        (found.item.cas().0, found.item.revision().0, found.item.is_deleted())
    }
}

fn key() -> KeyBuf {
    KeyBuf::in_default_collection(b"k").unwrap()
}

fn document() -> ItemMeta {
    ItemMeta::default()
}

fn tombstone(deletion: Deletion) -> ItemMeta {
    ItemMeta { deletion: Some(deletion), expiry: 1_600_000_000, ..ItemMeta::default() }
}

fn name(refusal: Result<Mutation, Refusal>) -> &'static str {
    match refusal {
        Ok(_) => "stored",
        Err(Refusal::NotNewer) => "not newer",
        Err(Refusal::Exists) => "exists",
        Err(Refusal::NotFound) => "not found",
        Err(Refusal::CasMismatch) => "CAS mismatch",
        Err(Refusal::Locked) => "locked",
        Err(Refusal::InvalidCas) => "invalid CAS",
        Err(Refusal::SyncWriteInProgress) => "sync write in progress",
        Err(Refusal::NotActive) => "not active",
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_version_keeps_its_cas_and_revision_and_the_history_goes_on_behind_it() {
    let mut bench = Bench::new();
    let far = NOW.0 + (1 << 40);
    let stored = bench.bring(document(), far, 9, NEWER_ONLY).unwrap();
    assert_eq!((stored.cas, stored.seqno), (Cas(far), Seqno(1)));
    assert_eq!(bench.version(), (far, 9, false));
    let next = bench.store();
    assert_eq!((next.cas, next.seqno), (Cas(far + 1), Seqno(2)));
    assert_eq!(bench.version(), (far + 1, 10, false));
    let deleted = bench.bring(tombstone(Deletion::Expired), far + 9, 77, NEWER_ONLY).unwrap();
    assert_eq!(deleted.seqno, Seqno(3));
    assert_eq!(bench.version(), (far + 9, 77, true));
    bench.store();
    assert_eq!(bench.version(), (far + 10, 78, false));
    let statistics = bench.vbucket.statistics();
    assert_eq!((statistics.foreign_stores, statistics.foreign_deletions), (1, 1));
    assert_eq!((statistics.creations, statistics.updates, statistics.deletions), (2, 1, 1));
}

#[test]
fn a_version_that_does_not_win_changes_nothing() {
    let mut bench = Bench::new();
    bench.bring(document(), 50, 5, NEWER_ONLY).unwrap();
    for (cas, revision) in [(50, 5), (99, 4), (49, 5)] {
        assert_eq!(name(bench.bring(document(), cas, revision, NEWER_ONLY)), "not newer");
    }
    let deletion = bench.bring(tombstone(Deletion::Explicit), 50, 5, NEWER_ONLY);
    assert_eq!(name(deletion), "not newer");
    assert_eq!(bench.version(), (50, 5, false));
    assert_eq!(bench.vbucket.high_seqno(), Seqno(1));
    let statistics = bench.vbucket.statistics();
    assert_eq!((statistics.foreign_stores_lost, statistics.foreign_deletions_lost), (3, 1));
    let by_cas = ForeignTerms { order: Some(VersionOrder::Cas), ..ANY_TERMS };
    assert_eq!(name(bench.bring(document(), 51, 1, by_cas)), "stored");
    assert_eq!(name(bench.bring(document(), 1, 1, ANY_TERMS)), "stored");
    assert_eq!(bench.version(), (1, 1, false));
}

#[test]
fn tombstones_take_part() {
    let mut bench = Bench::new();
    bench.bring(tombstone(Deletion::Explicit), 50, 5, NEWER_ONLY).unwrap();
    assert_eq!(name(bench.bring(document(), 60, 4, NEWER_ONLY)), "not newer");
    assert_eq!(name(bench.bring(document(), 60, 6, NEWER_ONLY)), "stored");
}

#[test]
fn what_is_here_may_forbid_it() {
    let adds = ForeignTerms { only_adds: true, ..ANY_TERMS };
    let replaces = |cas| ForeignTerms { replaces: Cas(cas), ..ANY_TERMS };
    let mut bench = Bench::new();
    assert_eq!(name(bench.bring(document(), 50, 5, replaces(50))), "not found");
    assert_eq!(name(bench.bring(document(), 50, 5, adds)), "stored");
    assert_eq!(name(bench.bring(document(), 60, 6, adds)), "exists");
    assert_eq!(name(bench.bring(document(), 60, 6, replaces(51))), "CAS mismatch");
    assert_eq!(name(bench.bring(document(), 60, 6, replaces(50))), "stored");
    bench.bring(tombstone(Deletion::Explicit), 70, 7, ANY_TERMS).unwrap();
    assert_eq!(name(bench.bring(document(), 80, 8, replaces(70))), "not found");
    assert_eq!(name(bench.bring(document(), 80, 8, adds)), "stored");
    let expired = ItemMeta { expiry: 1, ..ItemMeta::default() };
    bench.bring(expired, 90, 9, ANY_TERMS).unwrap();
    assert_eq!(name(bench.bring(document(), 99, 10, adds)), "stored", "its time is over");
}

#[test]
fn a_locked_document_is_written_by_the_holder_of_its_lock() {
    let mut bench = Bench::new();
    bench.store();
    let (now, effects) = (bench.now, &mut bench.effects);
    let lock = bench.vbucket.lock(key().as_key(), Duration::from_secs(9), now, effects).unwrap();
    let far = NOW.0 * 2;
    assert_eq!(name(bench.bring(document(), far, 9, NEWER_ONLY)), "locked");
    let held = ForeignTerms { replaces: lock.cas, ..NEWER_ONLY };
    assert_eq!(name(bench.bring(document(), far, 9, held)), "stored");
    assert_eq!(bench.vbucket.lock_count(), 0);
}

#[test]
fn a_durable_write_that_has_not_ended_stands_in_the_way() {
    let mut bench = Bench::new();
    let change = RoleChange {
        state: VbucketState::Active,
        topology: Some(vec![vec![Some("a".to_owned()), Some("b".to_owned())]]),
        is_takeover: false,
        fresh_uuid: VbUuid(8),
    };
    bench.vbucket.change_role(change, bench.now, &mut bench.effects);
    let level = DurabilityLevel::Majority;
    let builder =
        ItemBuilder::step(key().as_key(), document(), Operation::Prepare(level), b"durable");
    let deadline = Instant::default().after(Duration::from_secs(9));
    let request = SyncWriteRequest { level, deadline, waiter: Waiter(1) };
    let condition = WriteCondition { sync_write: Some(request), ..WriteCondition::default() };
    let (now, effects) = (bench.now, &mut bench.effects);
    bench.vbucket.store(StoreMode::Set, builder, condition, now, effects).unwrap();
    let result = bench.bring(document(), 50, 5, ANY_TERMS);
    assert_eq!(name(result), "sync write in progress");
}

#[test]
fn names_that_no_version_can_have_are_refused_and_far_ones_treated_as_the_rules_say() {
    let mut bench = Bench::new();
    for cas in [0, u64::MAX] {
        assert_eq!(name(bench.bring(document(), cas, 1, ANY_TERMS)), "invalid CAS");
    }
    let far = NOW.0 + 3_900_000_000_000;
    bench.rules.set_future_cas(FutureCas::Refuse);
    assert_eq!(name(bench.bring(document(), far, 1, ANY_TERMS)), "invalid CAS");
    bench.rules.set_future_cas(FutureCas::Replace);
    let replaced = bench.bring(document(), far, 1, ANY_TERMS).unwrap();
    assert_eq!(replaced.cas, Cas(NOW.0 & !0xffff));
    assert_eq!(bench.vbucket.drift().count, 0);
    bench.rules.set_future_cas(FutureCas::Ignore);
    assert_eq!(bench.bring(document(), far, 1, ANY_TERMS).unwrap().cas, Cas(far));
    assert_eq!(bench.vbucket.drift().ahead_exceeded, 1);
    bench.vbucket.set_max_cas(Cas(5), &mut bench.effects);
    assert_eq!(bench.store().cas, Cas(NOW.0 & !0xffff), "the clock was set back");
    let renamed = ForeignTerms { renames: true, ..ANY_TERMS };
    assert_eq!(bench.bring(document(), 50, 3, renamed).unwrap().cas, Cas((NOW.0 & !0xffff) + 1));
    assert_eq!(bench.version().1, 3);
}

#[test]
fn revisions_stay_below_their_limit() {
    let mut bench = Bench::new();
    bench.bring(tombstone(Deletion::Explicit), 50, u64::MAX, NEWER_ONLY).unwrap();
    assert_eq!(bench.version().1, U48_MAX);
    bench.store();
    assert_eq!(bench.version().1, U48_MAX);
    assert_eq!(name(bench.bring(document(), 50, u64::MAX, NEWER_ONLY)), "not newer");
}

#[test]
fn xattrs_of_a_tombstone_are_kept() {
    let mut bench = Bench::new();
    let value = b"\0\0\0\x09\0\0\0\x05_k\x001\0";
    let meta = ItemMeta { datatype: Datatype::XATTR, ..tombstone(Deletion::Explicit) };
    let builder = ItemBuilder::new(key().as_key(), meta, value);
    let (cas, revision, placeholders) = (Cas(9), RevSeqno(9), Placeholders::default());
    let write = ForeignWrite { builder, cas, revision, placeholders, terms: NEWER_ONLY };
    bench.vbucket.store_foreign(write, bench.now, &mut bench.effects).unwrap();
    let found = bench.vbucket.get_metadata(key().as_key(), bench.now).unwrap();
    assert_eq!((found.item.value(), found.item.expiry()), (&value[..], 1_600_000_000));
}

#[test]
fn only_an_active_vbucket_takes_them() {
    let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
    let mut bench = Bench::new();
    bench.vbucket = Vbucket::new(Vbid(0), VbucketState::Replica, VbUuid(7), seed, account);
    assert_eq!(name(bench.bring(document(), 50, 5, ANY_TERMS)), "not active");
}
