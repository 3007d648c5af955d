//! One vBucket as its callers see it.

use std::time::Duration;

use document::{
    Cas, Datatype, Deletion, Item, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno, VbUuid, Vbid,
    VbucketState,
};
use platform::{Clock, Instant, Random, WallTime, seeds::seeds};

use super::Vbucket;
use super::restore::Restored;
use crate::effect::Effect;
use crate::hash_table::{HashSeed, VisitPosition};
use crate::memory_account::MemoryAccount;
use crate::operation::{Mutation, Now, Refusal, StoreMode, WriteCondition};
use crate::waiter::Waiter;

/// A vBucket with a clock and the effects of everything done so far.
struct Bench {
    vbucket: Vbucket,
    clock: Clock,
    effects: Vec<Effect>,
    account: MemoryAccount,
}

impl Bench {
    fn new() -> Self {
        let account = MemoryAccount::default();
        let seed = HashSeed::new(1);
        let vbucket = Vbucket::new(Vbid(3), VbucketState::Active, VbUuid(7), seed, account.clone());
        let clock = Clock::simulated(WallTime(1_700_000_000 * 1_000_000_000));
        Self { vbucket, clock, effects: Vec::new(), account }
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock.now(), wall: self.clock.wall_time() }
    }

    fn store(
        &mut self,
        mode: StoreMode,
        name: &str,
        value: &str,
        condition: WriteCondition,
    ) -> Result<Mutation, Refusal> {
        self.store_with(mode, name, value, ItemMeta::default(), condition)
    }

    fn store_with(
        &mut self,
        mode: StoreMode,
        name: &str,
        value: &str,
        meta: ItemMeta,
        condition: WriteCondition,
    ) -> Result<Mutation, Refusal> {
        let mut builder = ItemBuilder::new(key(name).as_key(), meta, value.as_bytes());
        if condition.preserve_expiry {
            builder = builder.with_room_for_expiry();
        }
        let now = self.now();
        let written = self.vbucket.store(mode, builder, condition, now, &mut self.effects)?;
        Ok(written.done().unwrap())
    }

    fn set(&mut self, name: &str, value: &str) -> Mutation {
        self.store(StoreMode::Set, name, value, WriteCondition::default()).unwrap()
    }

    fn set_expiring(&mut self, name: &str, in_seconds: u32) {
        let expiry = self.clock.wall_time().seconds() + in_seconds;
        let meta = ItemMeta { expiry, ..ItemMeta::default() };
        self.store_with(StoreMode::Set, name, "v", meta, WriteCondition::default()).unwrap();
    }

    fn eject(&mut self, name: &str) -> Option<bool> {
        let now = self.now();
        self.vbucket.eject(key(name).as_key(), now, &mut self.effects)
    }

    fn delete(&mut self, name: &str, cas: Cas) -> Result<Mutation, Refusal> {
        let now = self.now();
        let condition = if_cas(cas);
        let written = self.vbucket.delete(key(name).as_key(), condition, now, &mut self.effects)?;
        Ok(written.done().unwrap())
    }

    fn get(&mut self, name: &str) -> Result<(String, Cas), Refusal> {
        let now = self.now();
        let found = self.vbucket.get(key(name).as_key(), now, &mut self.effects)?;
        Ok((String::from_utf8(found.item.value().to_vec()).unwrap(), found.cas))
    }

    fn lock(&mut self, name: &str) -> Result<Cas, Refusal> {
        let now = self.now();
        let for_ = Duration::from_secs(15);
        let found = self.vbucket.lock(key(name).as_key(), for_, now, &mut self.effects)?;
        Ok(found.cas)
    }

    fn unlock(&mut self, name: &str, cas: Cas) -> Result<(), Refusal> {
        let now = self.now();
        self.vbucket.unlock(key(name).as_key(), cas, now)
    }

    /// Flushes everything and returns (seqno, is a tombstone) of what was written.
    fn flush(&mut self) -> Vec<(u64, bool)> {
        let Some(mut batch) = self.vbucket.begin_flush() else { return Vec::new() };
        let items = batch.take_items(usize::MAX).items;
        self.vbucket.flush_succeeded(&batch, Now::default(), &mut self.effects);
        self.vbucket.apply_succeeded(batch.high_seqno());
        let tombstones = tombstones(&items);
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.vbucket.forget_tombstones(&tombstones, from, &mut self.effects);
        }
        items.iter().map(|item| (item.seqno().0, item.is_deleted())).collect()
    }

    fn flusher_wakes(&mut self) -> usize {
        let is_wake = |effect: &Effect| matches!(effect, Effect::Flush(_));
        let count = self.effects.iter().filter(|effect| is_wake(effect)).count();
        self.effects.clear();
        count
    }
}

fn key(name: &str) -> KeyBuf {
    KeyBuf::in_default_collection(name.as_bytes()).unwrap()
}

fn if_cas(cas: Cas) -> WriteCondition {
    WriteCondition { cas, ..WriteCondition::default() }
}

/// The name of an answer, so that tables of cases can be compared.
fn name<T>(result: &Result<T, Refusal>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(Refusal::NotActive) => "not active",
        Err(Refusal::NotYetActive) => "not yet active",
        Err(Refusal::TooManyParked) => "too many parked",
        Err(Refusal::Loading) => "loading",
        Err(Refusal::FileIsDamaged) => "file is damaged",
        Err(Refusal::NotFound) => "not found",
        Err(Refusal::UnknownCollection) => "unknown collection",
        Err(Refusal::Exists) => "exists",
        Err(Refusal::CasMismatch) => "cas mismatch",
        Err(Refusal::NotNewer) => "not newer",
        Err(Refusal::InvalidCas) => "invalid cas",
        Err(Refusal::Locked) => "locked",
        Err(Refusal::NotLocked) => "not locked",
        Err(Refusal::Ejected(_)) => "ejected",
        Err(Refusal::Absent(_)) => "absent",
        Err(Refusal::TooManyLookups) => "too many look-ups",
        Err(Refusal::Changed) => "changed",
        Err(Refusal::SyncWriteInProgress) => "in progress",
        Err(Refusal::RecommitInProgress) => "recommit in progress",
        Err(Refusal::DurabilityImpossible) => "impossible",
        Err(Refusal::NoTopology) => "no topology",
        Err(Refusal::InvalidDurabilityLevel) => "invalid level",
        Err(Refusal::KeepsXattrs(_)) => "keeps xattrs",
        Err(Refusal::TakeoverIsLate) => "takeover is late",
    }
}

#[test]
fn stores_answer_by_mode_existence_and_cas() {
    const WRONG: Cas = Cas(1);
    let cases = [
        // mode, document exists, cas given, answer
        (StoreMode::Set, false, None, "ok"),
        (StoreMode::Set, true, None, "ok"),
        (StoreMode::Set, true, Some(false), "cas mismatch"),
        (StoreMode::Set, true, Some(true), "ok"),
        (StoreMode::Set, false, Some(false), "not found"),
        (StoreMode::Add, false, None, "ok"),
        (StoreMode::Add, true, None, "exists"),
        (StoreMode::Replace, false, None, "not found"),
        (StoreMode::Replace, true, None, "ok"),
        (StoreMode::Replace, true, Some(false), "cas mismatch"),
        (StoreMode::Replace, true, Some(true), "ok"),
        (StoreMode::Replace, false, Some(false), "not found"),
    ];
    for (mode, exists, cas, expected) in cases {
        // A document that was deleted, or whose time is over, does not exist.
        for absence in ["never there", "deleted", "expired"] {
            let mut bench = Bench::new();
            let mut right = WRONG;
            match (exists, absence) {
                (true, _) => right = bench.set("k", "old").cas,
                (false, "deleted") => {
                    bench.set("k", "old");
                    bench.delete("k", Cas::ANY).unwrap();
                }
                (false, "expired") => {
                    bench.set_expiring("k", 1);
                    bench.clock.advance(Duration::from_secs(3));
                }
                (false, _) => {}
            }
            let given = cas.map_or(Cas::ANY, |is_right| if is_right { right } else { WRONG });
            let result = bench.store(mode, "k", "new", if_cas(given));
            assert_eq!(name(&result), expected, "{mode:?} {exists} {cas:?} {absence}");
            if let Ok(mutation) = result {
                assert_eq!(bench.get("k").unwrap(), ("new".to_owned(), mutation.cas));
            }
        }
    }
}

#[test]
fn seqnos_and_versions_rise_with_every_mutation() {
    let mut bench = Bench::new();
    let first = bench.set("a", "1");
    let second = bench.set("b", "1");
    let third = bench.delete("a", Cas::ANY).unwrap();
    let fourth = bench.set("a", "2");
    let all = [first, second, third, fourth];
    assert_eq!(all.map(|mutation| mutation.seqno.0), [1, 2, 3, 4]);
    assert!(all.is_sorted_by(|one, next| one.cas < next.cas));
    let now = bench.now();
    let found = bench.vbucket.get_metadata(key("a").as_key(), now).unwrap();
    assert_eq!(found.item.revision(), RevSeqno(3), "deletion and re-creation both count");
}

#[test]
fn a_document_created_anew_continues_the_revisions_of_flushed_tombstones() {
    let mut bench = Bench::new();
    bench.set("a", "1");
    bench.delete("a", Cas::ANY).unwrap();
    bench.flush();
    assert_eq!(bench.vbucket.tombstone_count(), 0, "a flushed tombstone leaves memory");
    bench.set("a", "2");
    let now = bench.now();
    let found = bench.vbucket.get_metadata(key("a").as_key(), now).unwrap();
    assert_eq!(found.item.revision(), RevSeqno(3));
}

fn tombstones(items: &[Item]) -> Vec<Item> {
    items.iter().filter(|item| item.is_deleted()).cloned().collect()
}

#[test]
fn flushed_tombstones_leave_memory_in_portions_unless_their_key_was_written_meanwhile() {
    let mut bench = Bench::new();
    for number in 0..1_000 {
        bench.set(&format!("{number}"), "v");
        bench.delete(&format!("{number}"), Cas::ANY).unwrap();
    }
    let mut batch = bench.vbucket.begin_flush().unwrap();
    let tombstones = tombstones(&batch.take_items(usize::MAX).items);
    bench.vbucket.flush_succeeded(&batch, Now::default(), &mut bench.effects);
    bench.vbucket.apply_succeeded(batch.high_seqno());
    bench.set("999", "anew");
    let mut next = Some(0);
    let mut left = vec![bench.vbucket.tombstone_count()];
    while let Some(from) = next {
        next = bench.vbucket.forget_tombstones(&tombstones, from, &mut bench.effects);
        left.push(bench.vbucket.tombstone_count());
    }
    assert_eq!((left[0], left.last()), (999, Some(&0)));
    assert!(left.is_sorted_by(|before, after| before - after <= 128), "{left:?}");
    assert!(bench.get("999").is_ok());
}

#[test]
fn only_its_holder_writes_a_locked_document() {
    let mut bench = Bench::new();
    let stored = bench.set("k", "v");
    let lock = bench.lock("k").unwrap();
    assert!(lock > stored.cas);
    assert_eq!(bench.get("k").unwrap().1, Cas::LOCKED);
    assert_eq!(name(&bench.lock("k")), "locked");
    for cas in [Cas::ANY, stored.cas, Cas::LOCKED] {
        assert_eq!(name(&bench.store(StoreMode::Set, "k", "x", if_cas(cas))), "locked");
        assert_eq!(name(&bench.delete("k", cas)), "locked");
    }
    assert_eq!(name(&bench.unlock("k", stored.cas)), "locked");
    assert!(bench.unlock("k", lock).is_ok());
    assert_eq!(bench.get("k").unwrap().1, stored.cas, "the old version shows again");
    assert_eq!(name(&bench.unlock("k", lock)), "not locked");
    assert_eq!(name(&bench.unlock("absent", lock)), "not found");

    let lock = bench.lock("k").unwrap();
    bench.store(StoreMode::Set, "k", "mine", if_cas(lock)).unwrap();
    assert_eq!(name(&bench.unlock("k", lock)), "not locked", "a write with the lock ends it");
    bench.lock("k").unwrap();
    bench.clock.advance(Duration::from_secs(15));
    assert!(bench.store(StoreMode::Set, "k", "late", WriteCondition::default()).is_ok());
}

#[test]
fn the_lock_of_a_document_whose_time_is_over_does_not_keep_others_from_the_next_one() {
    let mut bench = Bench::new();
    bench.set_expiring("k", 1);
    bench.lock("k").unwrap();
    bench.clock.advance(Duration::from_secs(2));
    let created = bench.set("k", "anew");
    assert_eq!(bench.get("k").unwrap().1, created.cas);
    assert_eq!(bench.vbucket.lock_count(), 0);
    bench.set("k", "again");
}

#[test]
fn an_expired_document_becomes_a_tombstone_when_it_is_read() {
    let mut bench = Bench::new();
    bench.set_expiring("k", 1);
    bench.clock.advance(Duration::from_secs(1));
    assert!(bench.get("k").is_ok(), "the last second counts");
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(name(&bench.get("k")), "not found");
    let now = bench.now();
    let found = bench.vbucket.get_metadata(key("k").as_key(), now).unwrap();
    assert_eq!(found.item.deletion(), Some(Deletion::Expired));
    assert_eq!(found.item.expiry(), bench.clock.wall_time().seconds());
    assert_eq!(bench.vbucket.high_seqno(), Seqno(2));
}

#[test]
fn the_pager_deletes_what_nobody_reads() {
    let mut bench = Bench::new();
    for number in 0..10 {
        bench.set_expiring(&format!("short{number}"), 1);
        bench.set_expiring(&format!("long{number}"), 100);
    }
    bench.clock.advance(Duration::from_secs(5));
    let now = bench.now();
    let mut from = Some(VisitPosition::default());
    while let Some(position) = from {
        from = bench.vbucket.delete_expired_portion(position, 1, now, &mut bench.effects);
    }
    assert_eq!(bench.vbucket.document_count(), 10);
    assert_eq!(bench.vbucket.statistics().expirations, 10);
}

#[test]
fn expiry_is_preserved_on_request() {
    let mut bench = Bench::new();
    bench.set_expiring("k", 50);
    let condition = WriteCondition { preserve_expiry: true, ..WriteCondition::default() };
    bench.store(StoreMode::Set, "k", "new", condition).unwrap();
    bench.clock.advance(Duration::from_secs(52));
    assert_eq!(name(&bench.get("k")), "not found");
}

#[test]
fn a_version_computed_from_an_old_one_is_not_stored_over_a_newer() {
    let mut bench = Bench::new();
    bench.set("k", "1");
    let now = bench.now();
    let seen =
        bench.vbucket.get_for_write(key("k").as_key(), WriteCondition::default(), now).unwrap();
    bench.set("k", "2");
    let computed_from = Some(seen.seqno());
    let condition = WriteCondition { computed_from, ..WriteCondition::default() };
    assert_eq!(name(&bench.store(StoreMode::Set, "k", "1+", condition)), "changed");
    bench.delete("k", Cas::ANY).unwrap();
    assert_eq!(name(&bench.store(StoreMode::Set, "k", "1+", condition)), "changed");
}

#[test]
fn xattrs_are_kept_by_stores_and_system_ones_by_deletions() {
    let mut bench = Bench::new();
    let mut value = vec![0, 0, 0, 17, 0, 0, 0, 4, b'u', 0, b'1', 0];
    value.extend_from_slice(&[0, 0, 0, 5, b'_', b's', 0, b'2', 0]);
    value.extend_from_slice(b"body");
    let meta = ItemMeta { datatype: Datatype::XATTR, ..ItemMeta::default() };
    let builder = ItemBuilder::new(key("k").as_key(), meta, &value);
    let now = bench.now();
    let condition = WriteCondition::default();
    bench.vbucket.store(StoreMode::Set, builder, condition, now, &mut bench.effects).unwrap();

    let refusal = bench.store(StoreMode::Set, "k", "new body", condition).unwrap_err();
    let Refusal::KeepsXattrs(kept) = refusal else { panic!("{refusal:?}") };
    assert_eq!(kept.existing.value(), value);
    assert_eq!(kept.stored.value(), b"new body");
    bench.delete("k", Cas::ANY).unwrap();
    let found = bench.vbucket.get_metadata(key("k").as_key(), now).unwrap();
    assert_eq!(found.item.value(), b"\x00\x00\x00\x09\x00\x00\x00\x05_s\x002\x00");
    assert_eq!(found.item.datatype(), Datatype::XATTR);
}

#[test]
fn the_flusher_is_woken_once_until_it_comes() {
    let mut bench = Bench::new();
    bench.set("a", "1");
    bench.set("b", "1");
    assert_eq!(bench.flusher_wakes(), 1);
    assert_eq!(bench.flush(), [(1, false), (2, false)]);
    assert_eq!(bench.flusher_wakes(), 0);
    bench.set("a", "2");
    assert_eq!(bench.flusher_wakes(), 1);
}

#[test]
fn a_failed_flush_offers_the_same_again_and_what_came_since() {
    let mut bench = Bench::new();
    bench.set("a", "1");
    bench.set("b", "1");
    let batch = bench.vbucket.begin_flush().unwrap();
    bench.set("a", "2");
    bench.vbucket.flush_failed(&batch);
    assert_eq!(bench.vbucket.persisted_seqno(), Seqno(0));
    assert_eq!(bench.flush(), [(2, false), (3, false)], "the newest version of each, once");
    assert_eq!(bench.vbucket.persisted_seqno(), Seqno(3));
    assert!(bench.vbucket.is_flushed());
}

#[test]
fn a_clock_that_is_set_back_while_a_flush_is_under_way_is_set_back_in_the_file_too() {
    for fails in [false, true] {
        let mut bench = Bench::new();
        let batch = bench.vbucket.begin_flush().expect("the role is to be flushed");
        bench.vbucket.set_max_cas(Cas(5), &mut bench.effects);
        match fails {
            true => drop(bench.vbucket.flush_failed(&batch)),
            false => bench.vbucket.flush_succeeded(&batch, Now::default(), &mut bench.effects),
        }
        let batch = bench.vbucket.begin_flush().expect("the file has an older state");
        assert_eq!(batch.state.max_cas, Cas(5));
        bench.vbucket.flush_failed(&batch);
        let batch = bench.vbucket.begin_state_flush().expect("it has it still");
        assert!(!bench.vbucket.is_state_flushed(), "not before it has succeeded");
        bench.vbucket.flush_succeeded(&batch, Now::default(), &mut bench.effects);
        assert!(bench.vbucket.is_state_flushed() && bench.vbucket.begin_flush().is_none());
    }
}

#[test]
fn waiters_hear_when_their_seqno_is_persisted_or_their_time_is_over() {
    let mut bench = Bench::new();
    bench.set("a", "1");
    let soon = bench.clock.now().after(Duration::from_secs(1));
    let late = bench.clock.now().after(Duration::from_secs(30));
    let mut wait = |seqno, deadline, waiter| {
        let effects = &mut bench.effects;
        bench.vbucket.wait_for_persistence(Seqno(seqno), deadline, Waiter(waiter), effects)
    };
    assert!(wait(0, late, 1), "nothing to wait for");
    assert!(!wait(1, late, 2));
    assert!(!wait(9, soon, 3));
    bench.effects.clear();
    bench.flush();
    let heard = |effects: &[Effect]| -> Vec<(bool, u64)> {
        let heard = effects.iter().filter_map(|effect| match effect {
            Effect::Persisted(waiter) => Some((true, waiter.0)),
            Effect::NotPersisted(waiter) => Some((false, waiter.0)),
            _ => None,
        });
        heard.collect()
    };
    assert_eq!(heard(&bench.effects), [(true, 2)]);
    bench.effects.clear();
    assert_eq!(bench.vbucket.end_overdue_waits(bench.clock.now(), &mut bench.effects), Some(soon));
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(bench.vbucket.end_overdue_waits(bench.clock.now(), &mut bench.effects), None);
    assert_eq!(heard(&bench.effects), [(false, 3)]);
}

#[test]
fn a_vbucket_that_is_not_active_serves_nothing() {
    let mut bench = Bench::new();
    bench.set("k", "v");
    let deadline = Instant(u64::MAX);
    bench.vbucket.wait_for_persistence(Seqno(5), deadline, Waiter(1), &mut bench.effects);
    let change = crate::RoleChange {
        state: VbucketState::Replica,
        topology: None,
        is_takeover: false,
        fresh_uuid: VbUuid(8),
    };
    bench.vbucket.change_role(change, Now::default(), &mut bench.effects);
    assert!(bench.effects.iter().any(|effect| matches!(effect, Effect::NotPersisted(Waiter(1)))));
    assert_eq!(name(&bench.get("k")), "not active");
    let result = bench.store(StoreMode::Set, "k", "x", WriteCondition::default());
    assert_eq!(name(&result), "not active");
    assert_eq!(name(&bench.delete("k", Cas::ANY)), "not active");
    assert!(!bench.vbucket.is_flushed(), "the new state wants to be on disk");
    bench.flush();
    assert!(bench.vbucket.is_flushed());
}

#[test]
fn a_value_leaves_memory_only_when_the_file_has_it_and_comes_back() {
    let mut bench = Bench::new();
    bench.set("k", "value");
    assert_eq!(bench.eject("k"), Some(false));
    let mut batch = bench.vbucket.begin_flush().unwrap();
    let items = batch.take_items(usize::MAX).items;
    bench.vbucket.flush_succeeded(&batch, Now::default(), &mut bench.effects);
    assert_eq!(bench.eject("k"), Some(false), "the journal is not read for it");
    bench.vbucket.apply_succeeded(batch.high_seqno());
    assert_eq!(bench.eject("k"), Some(true));
    assert_eq!(bench.eject("absent"), None);
    assert_eq!(name(&bench.get("k")), "ejected");
    assert_eq!(bench.vbucket.ejected_count(), 1);
    drop(bench.vbucket.restore_value(items[0].clone()));
    assert_eq!(bench.get("k").unwrap().0, "value");
    assert_eq!(bench.vbucket.ejected_count(), 0);
    bench.set("k", "newer");
    drop(bench.vbucket.restore_value(items[0].clone()));
    assert_eq!(bench.get("k").unwrap().0, "newer", "an old value never replaces a newer one");
}

#[test]
fn a_restored_vbucket_continues_and_a_crash_begins_a_new_branch() {
    for was_clean in [true, false] {
        let mut bench = Bench::new();
        bench.set("a", "1");
        let last = bench.set("b", "2");
        let mut batch = bench.vbucket.begin_flush().unwrap();
        let items = batch.take_items(usize::MAX).items;
        let restored = Restored {
            vbid: Vbid(3),
            state: batch.state.clone(),
            document_count: 2,
            fresh_uuid: VbUuid(99),
            was_clean,
        };
        bench.vbucket = Vbucket::restore(restored, HashSeed::new(2), bench.account.clone());
        for item in items {
            drop(bench.vbucket.restore_document(item.ejected()));
            drop(bench.vbucket.restore_value(item));
        }
        assert_eq!(bench.get("b").unwrap(), ("2".to_owned(), last.cas));
        assert_eq!(bench.vbucket.persisted_seqno(), Seqno(2));
        let next = bench.set("c", "3");
        assert_eq!(next.seqno, Seqno(3));
        assert!(next.cas > last.cas);
        let status = bench.vbucket.seqno_status(VbUuid(7)).unwrap();
        let older = if was_clean { None } else { Some((VbUuid(7), Seqno(2))) };
        assert_eq!((status.uuid, status.older_branch), (next.uuid, older));
        assert_eq!(bench.vbucket.seqno_status(VbUuid(1234)), None);
    }
}

#[test]
fn the_account_returns_to_zero() {
    for seed in seeds(5) {
        let mut random = Random::from_seed(seed);
        let mut bench = Bench::new();
        for _ in 0..3_000 {
            let name = format!("key{}", random.below(50));
            match random.below(10) {
                0..=5 => drop(bench.set(&name, "some value or other")),
                6 | 7 => drop(bench.delete(&name, Cas::ANY)),
                8 => drop(bench.eject(&name)),
                _ => drop(bench.flush()),
            }
            bench.effects.clear();
            let tables = bench.account.tables_bytes();
            assert_eq!(tables, bench.vbucket.accounted.tables_bytes as u64, "seed {seed}");
        }
        bench.flush();
        bench.effects.clear();
        assert_eq!(bench.account.log_bytes(), 0, "seed {seed}");
        let account = bench.account.clone();
        drop(bench);
        assert_eq!(account.used_bytes(), 0, "seed {seed}");
    }
}
