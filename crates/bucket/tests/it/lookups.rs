//! Fetches and look-ups that fail, find no place, or meet.

use bucket::{BucketConfig, Completion, EvictionConfig, Refused};
use platform::simulated::{Call, Fault, FaultError};
use vbucket::eviction::EvictionPolicy;

use crate::support::{Machine, VBID, Waits, config};

/// More than a vBucket looks up at once.
const KEY_COUNT: usize = 200;

fn name(number: usize) -> String {
    format!("key-{number}")
}

fn with_policy(policy: EvictionPolicy, fetches_waiting_max: usize) -> Machine {
    let eviction = EvictionConfig { policy, ..EvictionConfig::default() };
    Machine::with(BucketConfig { eviction, fetches_waiting_max, ..config() })
}

/// A machine whose documents are all in the file and none in memory.
fn evicted(fetches_waiting_max: usize) -> Machine {
    let mut machine = with_policy(EvictionPolicy::Full, fetches_waiting_max);
    for number in 0..KEY_COUNT {
        machine.set(VBID, &name(number), b"value").unwrap();
    }
    machine.run();
    for number in 0..KEY_COUNT {
        machine.evict(VBID, &name(number)).unwrap();
    }
    machine
}

fn lookup_count(machine: &Machine) -> usize {
    let mut count = 0;
    machine.bucket.with_vbucket(VBID, |vbucket| count = vbucket.lookup_count());
    count
}

#[test]
fn look_ups_that_found_no_place_in_the_queue_do_not_keep_out_others() {
    let mut machine = evicted(1);
    assert_eq!(machine.find(VBID, &name(0)).unwrap_err(), Waits);
    for number in 1..KEY_COUNT {
        let refused = machine.find(VBID, &name(number)).unwrap_err();
        assert_eq!(refused, Refused::TooManyFetches, "{number}");
    }
    assert_eq!(lookup_count(&machine), 1);
    machine.run();
    assert_eq!(machine.find(VBID, &name(0)).unwrap().item.value(), b"value");
    assert_eq!(machine.get(VBID, &name(KEY_COUNT - 1)).unwrap(), b"value");
}

#[test]
fn who_joins_a_look_up_and_finds_no_place_does_not_end_it() {
    let mut machine = evicted(1);
    assert_eq!(machine.find(VBID, &name(0)).unwrap_err(), Waits);
    assert_eq!(machine.find(VBID, &name(0)).unwrap_err(), Refused::TooManyFetches);
    machine.run();
    assert_eq!(machine.find(VBID, &name(0)).unwrap().item.value(), b"value");
}

#[test]
fn look_ups_that_failed_do_not_keep_out_others() {
    let mut machine = evicted(KEY_COUNT);
    let error = FaultError::Io;
    machine.files.fail(Fault { call: Some(Call::Read), number: 1, error, from_then_on: true });
    for number in 0..KEY_COUNT - 1 {
        assert_eq!(machine.find(VBID, &name(number)).unwrap_err(), Waits, "{number}");
        machine.run();
        assert_eq!(machine.heard.take()[0].1, Completion::ReadFailed, "{number}");
    }
    assert_eq!(lookup_count(&machine), 0);
    machine.files.heal();
    assert_eq!(machine.get(VBID, &name(KEY_COUNT - 1)).unwrap(), b"value");
}

#[test]
fn many_who_wait_for_one_document_get_the_same_copy() {
    const SIZE: usize = 1 << 20;
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let mut machine = with_policy(policy, KEY_COUNT);
        machine.set(VBID, "large", &vec![b'x'; SIZE]).unwrap();
        machine.run();
        machine.evict(VBID, "large").unwrap();
        for _ in 0..20 {
            assert_eq!(machine.find(VBID, "large").unwrap_err(), Waits);
        }
        machine.run();
        // Nobody has taken what was heard.
        let used_bytes = machine.bucket.statistics().used_bytes();
        assert!(used_bytes < 2 * SIZE as u64, "{policy:?}: {used_bytes}");
        assert_eq!(machine.heard.take().len(), 20);
    }
}
