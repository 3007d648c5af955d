//! FLUSH: the old history is gone for good.

use bucket::{Completion, Refused};
use document::Seqno;
use platform::Random;
use platform::seeds::seeds;

use crate::support::{Machine, OTHER, VBID};

#[test]
fn nothing_of_the_old_history_comes_back_whenever_the_power_goes() {
    for seed in seeds(200) {
        let mut random = Random::from_seed(seed);
        let mut machine = Machine::new();
        for number in 0..random.below(20) {
            machine.set(VBID, &format!("old-{number}"), b"old").unwrap();
            for _ in 0..random.below(3) {
                machine.driver.run_one();
            }
        }
        let old_branches = machine.branches(VBID);
        machine.bucket.flush_all().unwrap();
        assert_eq!(machine.high_seqno(VBID), Seqno(0));
        let mut persisted = Seqno(0);
        for number in 0..random.below(5) {
            machine.set(VBID, &format!("new-{number}"), b"new").unwrap();
            if random.below(2) == 0 {
                machine.driver.run_one();
            }
            persisted = machine.persisted(VBID);
        }
        let mut machine = machine.power_cut(seed);
        machine.run();
        for number in 0..20 {
            let found = machine.get(VBID, &format!("old-{number}"));
            assert_eq!(found, Err(Refused::NotFound), "seed {seed}");
        }
        assert!(machine.high_seqno(VBID) >= persisted, "seed {seed}");
        let branches = machine.branches(VBID);
        assert!(!branches.iter().any(|uuid| old_branches.contains(uuid)), "seed {seed}");
    }
}

#[test]
fn waits_of_the_old_history_end() {
    let mut machine = Machine::new();
    machine.set(VBID, "key", b"value").unwrap();
    assert_eq!(machine.wait(1, VBID, Seqno(1)), Err(Refused::Pending));
    assert_eq!(machine.wait(2, OTHER, Seqno(9)), Err(Refused::Pending));
    machine.bucket.flush_all().unwrap();
    let mut heard = machine.heard.take();
    heard.sort_unstable_by_key(|(waiter, _)| *waiter);
    assert_eq!(heard, [(1, Completion::NotPersisted), (2, Completion::NotPersisted)]);
}

#[test]
fn a_value_fetched_for_the_old_history_is_not_put_into_the_new_one() {
    let mut machine = Machine::new();
    machine.set(VBID, "key", b"old").unwrap();
    machine.run();
    machine.evict(VBID, "key").unwrap();
    assert_eq!(machine.find(VBID, "key").unwrap_err(), Refused::Pending);
    machine.bucket.flush_all().unwrap();
    machine.run();
    assert_eq!(machine.heard.take().len(), 1);
    assert_eq!(machine.find(VBID, "key").unwrap_err(), Refused::NotFound);
}

#[test]
fn a_bucket_that_is_being_loaded_is_emptied_whole() {
    for runs in 0..12 {
        let mut machine = Machine::new();
        for vbid in [VBID, OTHER] {
            machine.set(vbid, "key", b"old").unwrap();
        }
        machine.run();
        let mut machine = machine.restart();
        for _ in 0..runs {
            machine.driver.run_one();
        }
        machine.bucket.flush_all().unwrap();
        machine.run();
        for vbid in [VBID, OTHER] {
            assert_eq!(machine.get(vbid, "key"), Err(Refused::NotFound), "after {runs} runs");
        }
        let mut machine = machine.power_cut(0);
        machine.run();
        for vbid in [VBID, OTHER] {
            assert_eq!(machine.get(vbid, "key"), Err(Refused::NotFound), "after {runs} runs");
        }
    }
}
