//! Documents that left memory whole, or as tombstones: every operation finds them again.

use bucket::{
    Addition, Counter, CounterRequest, Incoming, Observed, ObservedState, Placement, Refused, Write,
};
use document::Cas;
use vbucket::eviction::EvictionPolicy;
use vbucket::{Found, Mutation, StoreMode, Waiter, WriteCondition};

use crate::eviction::{finish, get, name, with_policy};
use crate::support::{Machine, No, Unanswered, VBID, Waits, answered, key, written};

fn full_eviction() -> Machine {
    Machine::with(with_policy(EvictionPolicy::Full))
}

fn body(machine: &mut Machine, name: &str) -> Vec<u8> {
    get(machine, name).unwrap().item.value().to_vec()
}

/// A document of which nothing is in memory.
fn evicted(machine: &mut Machine, name: &str, value: &[u8]) -> Mutation {
    let mutation = machine.set(VBID, name, value).unwrap();
    machine.run();
    machine.evict(VBID, name).unwrap();
    assert_eq!(machine.find(VBID, name).unwrap_err(), Waits);
    machine.run();
    machine.heard.take();
    machine.evict(VBID, name).unwrap();
    mutation
}

#[test]
fn every_operation_is_right_on_a_document_that_left_memory_whole() {
    let mut machine = full_eviction();
    let any = WriteCondition::default();
    let with = |cas| WriteCondition { cas, ..any };

    let first = evicted(&mut machine, "get", b"value");
    let found = get(&mut machine, "get").unwrap();
    assert_eq!((found.item.value(), found.cas), (&b"value"[..], first.cas));

    evicted(&mut machine, "add", b"old");
    let add = |machine: &mut Machine| machine.store(StoreMode::Add, VBID, "add", b"new", 0);
    assert_eq!(finish(&mut machine, add).unwrap_err(), Refused::Exists);

    evicted(&mut machine, "replace", b"old");
    let replace =
        |machine: &mut Machine| machine.store(StoreMode::Replace, VBID, "replace", b"new", 0);
    finish(&mut machine, replace).unwrap();
    assert_eq!(body(&mut machine, "replace"), b"new");

    let mutation = evicted(&mut machine, "cas", b"old");
    for (cas, expected) in [(Cas(1), Some(Refused::CasMismatch)), (mutation.cas, None)] {
        let result = finish(&mut machine, |machine| {
            let key = key("cas");
            let set = Write::set(VBID, key.as_key(), Incoming::plain(b"new"));
            let set = Write { condition: with(cas), ..set };
            written(machine.bucket.store(&mut machine.session, set))
        });
        assert_eq!(result.err(), expected.map(No));
    }

    evicted(&mut machine, "set", b"old");
    let before = revision(&mut machine, "set");
    machine.evict(VBID, "set").unwrap();
    finish(&mut machine, |machine| machine.set(VBID, "set", b"new")).unwrap();
    assert_eq!(body(&mut machine, "set"), b"new");
    assert_eq!(revision(&mut machine, "set"), before + 1);

    evicted(&mut machine, "delete", b"old");
    finish(&mut machine, |machine| machine.delete(VBID, "delete")).unwrap();
    assert_eq!(get(&mut machine, "delete").unwrap_err(), Refused::NotFound);

    evicted(&mut machine, "counter", b"41");
    let request =
        CounterRequest { is_increment: true, delta: 1, created_with: Some((7, 0)), expiry: None };
    let counted: Counter = finish(&mut machine, |machine| {
        answered(machine.bucket.count(
            &mut machine.session,
            VBID,
            key("counter").as_key(),
            request,
            WriteCondition::default(),
        ))
    })
    .unwrap();
    assert_eq!(counted.number, 42);

    evicted(&mut machine, "append", b"one");
    finish(&mut machine, |machine| {
        let (bucket, added) = (&machine.bucket, Incoming::plain(b" two"));
        let key = key("append");
        let (key, placement) = (key.as_key(), Placement::Back);
        let addition = Addition { vbid: VBID, key, placement, added, condition: any };
        let concatenated = bucket.concatenate(&mut machine.session, addition);
        written(concatenated.map(|attempted| attempted.map(|it| it.written)))
    })
    .unwrap();
    assert_eq!(body(&mut machine, "append"), b"one two");

    evicted(&mut machine, "touch", b"old");
    let found = finish(&mut machine, |machine| {
        let key = key("touch");
        answered(machine.bucket.touch(&mut machine.session, VBID, key.as_key(), u32::MAX))
    });
    assert_eq!(found.unwrap().item.value(), b"old");

    evicted(&mut machine, "lock", b"old");
    let locked = finish(&mut machine, |machine| {
        answered(machine.bucket.lock(&mut machine.session, VBID, key("lock").as_key(), 10))
    });
    assert_eq!(locked.unwrap().item.value(), b"old");

    let mutation = evicted(&mut machine, "unlock", b"old");
    let unlocked = finish(&mut machine, |machine| {
        let key = key("unlock");
        answered(machine.bucket.unlock(&mut machine.session, VBID, key.as_key(), mutation.cas))
    });
    assert_eq!(unlocked.unwrap_err(), Refused::NotLocked);

    let mutation = evicted(&mut machine, "observe", b"old");
    let observed = finish(&mut machine, |machine| {
        answered(machine.bucket.observe(&mut machine.session, VBID, key("observe").as_key()))
    });
    let expected = Observed { state: ObservedState::Persisted, cas: mutation.cas };
    assert_eq!(observed.unwrap(), expected);

    let mutation = evicted(&mut machine, "meta", b"old");
    assert_eq!(metadata(&mut machine, "meta").unwrap().cas, mutation.cas);

    machine.run();
    assert_eq!(machine.bucket.statistics().document_count, 12);
}

fn metadata(machine: &mut Machine, name: &str) -> Result<Found, Unanswered> {
    finish(machine, |machine| {
        answered(machine.bucket.get_metadata(&mut machine.session, VBID, key(name).as_key()))
    })
}

fn revision(machine: &mut Machine, name: &str) -> u64 {
    metadata(machine, name).unwrap().item.revision().0
}

#[test]
fn a_locked_document_loses_its_value_and_not_its_lock() {
    let mut machine = full_eviction();
    machine.set(VBID, "k", b"value").unwrap();
    machine.run();
    let bucket = machine.bucket.clone();
    let locked = bucket.lock(&mut machine.session, VBID, key("k").as_key(), 10);
    let locked = answered(locked).unwrap();
    machine.evict(VBID, "k").unwrap();
    assert_eq!(machine.bucket.statistics().evicted_count, 0);
    let found = get(&mut machine, "k").unwrap();
    assert_eq!((found.item.value(), found.cas), (&b"value"[..], Cas::LOCKED));
    assert_eq!(machine.set(VBID, "k", b"x").unwrap_err(), Refused::Locked);
    let unlocked = bucket.unlock(&mut machine.session, VBID, key("k").as_key(), locked.cas);
    answered(unlocked).unwrap();
    machine.evict(VBID, "k").unwrap();
    assert_eq!(machine.bucket.statistics().evicted_count, 1);
}

#[test]
fn metadata_of_deleted_documents_comes_from_the_file() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let mut machine = Machine::with(with_policy(policy));
        machine.set(VBID, "k", b"value").unwrap();
        machine.run();
        let deleted = machine.delete(VBID, "k").unwrap();
        machine.run();
        assert_eq!(machine.bucket.statistics().tombstone_count, 0);
        for start in 0..2 {
            let found = metadata(&mut machine, "k").unwrap();
            assert!(found.item.is_deleted(), "{policy:?}, start {start}");
            assert_eq!(found.cas, deleted.cas);
            assert_eq!(metadata(&mut machine, "never").unwrap_err(), Refused::NotFound);
            assert_eq!(get(&mut machine, "k").unwrap_err(), Refused::NotFound);
            machine = machine.stop_and_start();
            machine.run();
        }
        machine.set(VBID, "k", b"again").unwrap_or_else(|_| {
            finish(&mut machine, |machine| machine.set(VBID, "k", b"again")).unwrap()
        });
        assert!(revision(&mut machine, "k") > 2, "{policy:?}");
        assert_eq!(machine.bucket.statistics().document_count, 1);
    }
}

#[test]
fn a_document_that_is_written_while_it_is_looked_up_is_not_overwritten_by_the_past() {
    let mut machine = full_eviction();
    evicted(&mut machine, "k", b"old");
    machine.session.waiter = Waiter(5);
    assert_eq!(machine.find(VBID, "k").unwrap_err(), Waits);
    // Emptied and written again, flushed and evicted, before the fetcher runs.
    machine.bucket.flush_all().unwrap();
    machine.set(VBID, "k", b"new").unwrap();
    machine.run();
    assert_eq!(body(&mut machine, "k"), b"new");
    machine.evict(VBID, "k").unwrap();
    assert_eq!(body(&mut machine, "k"), b"new");
    assert_eq!(machine.bucket.statistics().document_count, 1);
}

#[test]
fn look_ups_are_bounded() {
    let mut machine = full_eviction();
    for number in 0..200 {
        evicted(&mut machine, &name(number), b"value");
    }
    machine.run();
    let mut pending = 0;
    let refused = loop {
        match machine.find(VBID, &name(pending)).unwrap_err() {
            Waits => pending += 1,
            refused => break refused,
        }
    };
    assert_eq!((refused, pending), (No(Refused::TooManyLookups), 64));
    assert_eq!(machine.bucket.statistics().lookup_count, 64);
    machine.run();
    assert!(get(&mut machine, &name(199)).is_ok());
}
