//! What leaves memory is changed while the bucket is in use.

use document::Vbid;
use vbucket::eviction::EvictionPolicy;

use crate::eviction::{finish, name, with_policy};
use crate::support::{Machine, No, Unanswered};

const COUNT: u64 = 300;
const VBUCKETS: u64 = 4;

fn vbid_of(number: u64) -> Vbid {
    Vbid((number % VBUCKETS) as u16)
}

fn value_of(number: u64) -> Vec<u8> {
    format!("value {number}").into_bytes()
}

fn get(machine: &mut Machine, number: u64) -> Result<Vec<u8>, Unanswered> {
    let found = finish(machine, |machine| machine.find(vbid_of(number), &name(number)));
    found.map(|found| found.item.value().to_vec())
}

fn evict_all(machine: &mut Machine) {
    for number in 0..COUNT {
        machine.evict(vbid_of(number), &name(number)).ok();
    }
}

/// A machine with documents on disk, and one of ten deleted.
fn filled(policy: EvictionPolicy) -> Machine {
    let mut machine = Machine::with(with_policy(policy));
    for number in 0..COUNT {
        machine.set(vbid_of(number), &name(number), &value_of(number)).unwrap();
    }
    for number in (0..COUNT).step_by(10) {
        machine.delete(vbid_of(number), &name(number)).unwrap();
    }
    machine.run();
    machine
}

fn check_all(machine: &mut Machine) {
    for number in 0..COUNT {
        let is_deleted = number.is_multiple_of(10);
        let expected =
            if is_deleted { Err(No(bucket::Refused::NotFound)) } else { Ok(value_of(number)) };
        assert_eq!(get(machine, number), expected, "{number}");
    }
    let count = machine.bucket.statistics().document_count as u64;
    assert_eq!(count, COUNT - COUNT / 10);
}

#[test]
fn documents_leave_whole_from_the_moment_on_in_which_they_may() {
    let mut machine = filled(EvictionPolicy::ValueOnly);
    evict_all(&mut machine);
    assert_eq!(machine.bucket.statistics().evicted_count, 0);
    machine.bucket.set_eviction_policy(EvictionPolicy::Full);
    assert_eq!(machine.bucket.eviction_policy(), EvictionPolicy::Full);
    evict_all(&mut machine);
    assert_eq!(machine.bucket.statistics().evicted_count as u64, COUNT - COUNT / 10);
    check_all(&mut machine);
}

#[test]
fn keys_that_have_left_come_back_from_the_moment_on_in_which_they_stay() {
    let mut machine = filled(EvictionPolicy::Full);
    evict_all(&mut machine);
    machine.bucket.set_eviction_policy(EvictionPolicy::ValueOnly);
    let statistics = machine.bucket.statistics();
    assert_eq!(statistics.loading_keys_count as u64, VBUCKETS);
    assert_eq!(statistics.evicted_count as u64, COUNT - COUNT / 10, "nothing was loaded yet");
    assert_eq!(get(&mut machine, 1), Ok(value_of(1)));
    machine.run();
    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.loading_keys_count, statistics.evicted_count), (0, 0));
    assert!(statistics.ejected_count > 0, "values do not come unasked");
    evict_all(&mut machine);
    assert_eq!(machine.bucket.statistics().evicted_count, 0, "keys stay");
    check_all(&mut machine);
}

#[test]
fn a_policy_that_changes_back_while_keys_come_back_loses_nothing() {
    let mut machine = filled(EvictionPolicy::Full);
    for _ in 0..5 {
        evict_all(&mut machine);
        machine.bucket.set_eviction_policy(EvictionPolicy::ValueOnly);
        machine.driver.run_one();
        machine.bucket.set_eviction_policy(EvictionPolicy::Full);
    }
    evict_all(&mut machine);
    check_all(&mut machine);
    let mut machine = machine.stop_and_start();
    machine.run();
    check_all(&mut machine);
}

#[test]
fn vbuckets_that_come_behind_the_change_follow_it() {
    let machine = filled(EvictionPolicy::Full);
    let mut machine = machine.stop_and_start();
    // Nothing is loaded yet.
    machine.bucket.set_eviction_policy(EvictionPolicy::ValueOnly);
    machine.run();
    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.loading_keys_count, statistics.evicted_count), (0, 0));
    evict_all(&mut machine);
    assert_eq!(machine.bucket.statistics().evicted_count, 0, "keys stay");
    check_all(&mut machine);
    machine.bucket.flush_all().unwrap();
    machine.set(vbid_of(1), &name(1), b"new").unwrap();
    machine.run();
    evict_all(&mut machine);
    assert_eq!(machine.bucket.statistics().evicted_count, 0, "keys stay");
}
