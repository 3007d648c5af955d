//! FLUSH: the old history is gone for good.

use std::path::Path;

use bucket::{BucketConfig, Completion, EvictionConfig, LifeError, Persistence, Refused, Topology};
use document::{Seqno, Vbid, VbucketState};
use platform::Files;
use platform::Random;
use platform::seeds::seeds;
use platform::simulated::{Call, Fault, FaultError};
use vbucket::eviction::EvictionPolicy;

use crate::damage::{kinds, with_damage_at_start};
use crate::support::{Machine, No, OTHER, VBID, Waits, config, files_config};

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
            assert_eq!(found, Err(No(Refused::NotFound)), "seed {seed}");
        }
        assert!(machine.high_seqno(VBID) >= persisted, "seed {seed}");
        let branches = machine.branches(VBID);
        assert!(!branches.iter().any(|uuid| old_branches.contains(uuid)), "seed {seed}");
    }
}

#[test]
fn what_was_counted_before_counts_on() {
    let mut machine = filled(config());
    machine.set(VBID, "key", b"newer").unwrap();
    let before = machine.bucket.statistics().vbuckets;
    assert_eq!((before.creations, before.updates), (4, 1));
    machine.bucket.flush_all().unwrap();
    machine.set(VBID, "key", b"new").unwrap();
    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.vbuckets.creations, statistics.vbuckets.updates), (5, 1));
    assert_eq!(statistics.document_count, 1);
}

/// A machine with a flushed document in every vBucket.
fn filled(config: BucketConfig) -> Machine {
    let mut machine = Machine::with(config);
    for vbid in 0..4 {
        machine.set(Vbid(vbid), "key", b"old").unwrap();
    }
    machine.run();
    machine
}

#[test]
fn the_directory_is_synced_once_for_all_vbuckets() {
    let mut machine = filled(config());
    // The first group that goes to a filled segment makes the segment's name durable.
    machine.set(VBID, "another", b"1").unwrap();
    machine.run();
    let before = machine.files.calls();
    machine.bucket.flush_all().unwrap();
    let after = machine.files.calls();
    assert_eq!(after.of(Call::Remove) - before.of(Call::Remove), 4);
    assert_eq!(after.of(Call::SyncDirectory) - before.of(Call::SyncDirectory), 1);
}

#[test]
fn the_power_takes_no_role_when_the_bucket_was_emptied() {
    let roles =
        [VbucketState::Replica, VbucketState::Pending, VbucketState::Dead, VbucketState::Active];
    for (seed, config) in (0..4).flat_map(|seed| [(seed, config()), (seed, files_config())]) {
        let machine = filled(config);
        let all = || (0..).map(Vbid).zip(roles);
        for (vbid, role) in all() {
            machine.bucket.set_vbucket_state(vbid, role, None).unwrap();
        }
        machine.bucket.flush_all().unwrap();
        let mut machine = machine.power_cut(seed);
        machine.run();
        for (vbid, role) in all() {
            let found = machine.bucket.on_vbucket(vbid, |vbucket, _, _| vbucket.state());
            assert_eq!(found, Some(role), "vBucket {}, seed {seed}", vbid.0);
            // A replica follows its active copy, and goes back with it.
            let expected = Seqno(u64::from(role == VbucketState::Replica));
            assert_eq!(machine.high_seqno(vbid), expected, "vBucket {}, seed {seed}", vbid.0);
        }
    }
}

#[test]
fn who_was_active_by_a_map_is_so_whenever_the_power_goes_after_it_was_emptied() {
    let chains = vec![vec![Some("here".to_owned()), Some("there".to_owned())]];
    for (seed, config) in (0..4).flat_map(|seed| [(seed, config()), (seed, files_config())]) {
        let machine = filled(config);
        let topology = Some(chains.clone());
        machine.bucket.set_vbucket_state(VBID, VbucketState::Active, topology).unwrap();
        machine.bucket.flush_all().unwrap();
        let mut machine = machine.power_cut(seed);
        machine.run();
        let of = |vbid| {
            machine
                .bucket
                .on_vbucket(vbid, |vbucket, _, _| (vbucket.state(), vbucket.topology().clone()))
        };
        assert_eq!(of(VBID), Some((VbucketState::Active, chains.clone())), "seed {seed}");
        assert_eq!(of(OTHER), Some((VbucketState::Active, Vec::new())), "seed {seed}");
    }
}

#[test]
fn whatever_call_fails_each_vbucket_is_old_or_empty_and_takes_writes() {
    // The journal says of all at once that they are gone; without it the files say it one by one.
    for (calls, config) in [(1..=5, files_config()), (1..=12, config())] {
        let has_journal = config.persistence != Persistence::Files;
        for (number, seed) in calls.flat_map(|number| (0..8).map(move |seed| (number, seed))) {
            let at = format!("call {number}, seed {seed}, journal {has_journal}");
            let mut machine = filled(config.clone());
            let error = FaultError::Io;
            machine.files.fail(Fault { call: None, number, error, from_then_on: true });
            let emptied = machine.bucket.flush_all();
            machine.files.heal();
            if emptied.is_ok() {
                assert!(has_journal, "{at}");
                continue;
            }
            let all_are_old = machine.get(VBID, "key").is_ok();
            // What the memory says is what the files will say.
            for vbid in (0..4).map(Vbid) {
                machine.evict(vbid, "key").ok();
                let is_old = machine.get(vbid, "key").is_ok();
                let is_file_left = u64::from(vbid.0) + 1 >= number;
                assert_eq!(is_old, if has_journal { all_are_old } else { is_file_left }, "{at}");
                let written = machine.set(vbid, "new", b"new").unwrap();
                assert_eq!(written.seqno, Seqno(1 + u64::from(is_old)), "{at}");
            }
            machine.run();
            let old_count = (0..4).filter(|&vbid| machine.get(Vbid(vbid), "key").is_ok()).count();
            let mut machine = machine.power_cut(seed);
            machine.run();
            let found = (0..4).filter(|&vbid| machine.get(Vbid(vbid), "key").is_ok()).count();
            assert_eq!(found, old_count, "{at}");
            machine.bucket.flush_all().unwrap();
            let mut machine = machine.power_cut(seed);
            machine.run();
            for vbid in (0..4).map(Vbid) {
                assert_eq!(machine.get(vbid, "key"), Err(No(Refused::NotFound)), "{at}");
                assert_eq!(machine.get(vbid, "new"), Err(No(Refused::NotFound)), "{at}");
            }
        }
    }
}

#[test]
fn a_full_disk_takes_writes_again_once_the_bucket_is_emptied() {
    let mut machine = filled(files_config());
    let space = machine.files.disk_space(Path::new("/")).unwrap();
    machine.files.set_capacity(space.total_bytes - space.free_bytes);
    machine.set(VBID, "key", b"too much").unwrap();
    machine.run();
    assert!(matches!(machine.set(OTHER, "key", b"refused"), Err(No(Refused::Blocked(_)))));
    machine.bucket.flush_all().unwrap();
    machine.set(OTHER, "key", b"let in").unwrap();
}

#[test]
fn waits_of_the_old_history_end() {
    let mut machine = Machine::new();
    machine.set(VBID, "key", b"value").unwrap();
    assert_eq!(machine.wait(1, VBID, Seqno(1)), Err(Waits));
    assert_eq!(machine.wait(2, OTHER, Seqno(9)), Err(Waits));
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
    assert_eq!(machine.find(VBID, "key").unwrap_err(), Waits);
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
            assert_eq!(machine.get(vbid, "key"), Err(No(Refused::NotFound)), "after {runs} runs");
        }
        let mut machine = machine.power_cut(0);
        machine.run();
        for vbid in [VBID, OTHER] {
            assert_eq!(machine.get(vbid, "key"), Err(No(Refused::NotFound)), "after {runs} runs");
        }
    }
}

#[test]
fn a_bucket_that_is_being_loaded_may_have_a_longer_history_once_it_was_emptied() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let eviction = EvictionConfig { policy, ..EvictionConfig::default() };
        let mut machine = Machine::with(BucketConfig { eviction, ..config() });
        for vbid in (0..4).map(Vbid) {
            machine.set(vbid, "key", b"old").unwrap();
        }
        machine.run();
        let mut machine = machine.restart();
        machine.bucket.flush_all().unwrap();
        // Flushers that run before warmup does.
        for number in 0..10 {
            for vbid in (0..4).map(Vbid) {
                machine.set(vbid, &format!("new-{number}"), b"new").unwrap();
            }
        }
        machine.run();
        for vbid in (0..4).map(Vbid) {
            assert_eq!(machine.get(vbid, "key"), Err(No(Refused::NotFound)));
            assert_eq!(machine.get(vbid, "new-9").unwrap(), b"new");
            assert_eq!(machine.persisted(vbid), Seqno(10));
        }
        assert_eq!(machine.bucket.statistics().document_count, 40);
    }
}

fn chain_of(machine: &Machine, vbid: Vbid) -> Option<(VbucketState, Topology)> {
    machine.bucket.on_vbucket(vbid, |vbucket, _, _| (vbucket.state(), vbucket.topology().clone()))
}

#[test]
fn what_was_out_of_service_takes_durable_writes_once_a_bucket_alone_is_emptied() {
    for config in kinds() {
        let (machine, ..) = with_damage_at_start(config);
        let alone = vec![vec![Some("here".to_owned())]];
        machine.bucket.assume_topology(&alone);
        machine.bucket.flush_all().unwrap();
        for vbid in [VBID, OTHER] {
            assert_eq!(chain_of(&machine, vbid), Some((VbucketState::Active, alone.clone())));
        }
    }
}

#[test]
fn what_was_out_of_service_has_the_last_role_that_it_was_to_have_once_the_bucket_is_emptied() {
    let chains = vec![vec![Some("here".to_owned()), Some("there".to_owned())]];
    for config in kinds() {
        let (machine, ..) = with_damage_at_start(config.clone());
        machine.bucket.assume_topology(&vec![vec![Some("here".to_owned())]]);
        let topology = Some(chains.clone());
        let asked = machine.bucket.set_vbucket_state(VBID, VbucketState::Active, topology);
        assert!(matches!(asked, Err(LifeError::Damaged { .. })), "{asked:?}");
        machine.bucket.flush_all().unwrap();
        assert_eq!(chain_of(&machine, VBID), Some((VbucketState::Active, chains.clone())));

        let (machine, ..) = with_damage_at_start(config);
        machine.bucket.expect_no_role(VBID);
        machine.bucket.flush_all().unwrap();
        assert_eq!(chain_of(&machine, VBID), Some((VbucketState::Dead, Vec::new())));
    }
}

#[test]
fn a_replica_out_of_service_is_not_made_active_by_emptying_the_bucket() {
    for config in kinds() {
        let (machine, ..) = with_damage_at_start(config);
        let error = FaultError::NoSpace;
        machine.files.fail(Fault { call: None, number: 3, error, from_then_on: true });
        machine.bucket.rebuild_replica(VBID, || true).unwrap_err();
        machine.files.heal();
        machine.bucket.flush_all().unwrap();
        assert_eq!(chain_of(&machine, VBID), None);
        machine.bucket.rebuild_replica(VBID, || true).unwrap();
        assert_eq!(chain_of(&machine, VBID), Some((VbucketState::Replica, Vec::new())));
    }
}

#[test]
fn what_is_still_loaded_when_the_bucket_is_emptied_has_its_role_and_chain() {
    let chain = |name: &str| vec![vec![Some("here".to_owned()), Some(name.to_owned())]];
    for config in kinds() {
        let machine = filled(config);
        for vbid in [VBID, OTHER] {
            let topology = Some(chain("file"));
            machine.bucket.set_vbucket_state(vbid, VbucketState::Active, topology).unwrap();
        }
        let mut machine = machine.stop_and_start();
        let topology = Some(chain("asked"));
        let asked = machine.bucket.set_vbucket_state(OTHER, VbucketState::Active, topology);
        assert!(matches!(asked, Err(LifeError::Loading)), "{asked:?}");
        machine.bucket.flush_all().unwrap();
        machine.run();
        for (vbid, name) in [(VBID, "file"), (OTHER, "asked")] {
            assert_eq!(chain_of(&machine, vbid), Some((VbucketState::Active, chain(name))));
        }
    }
}
