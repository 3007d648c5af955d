//! Documents that leave memory: who, when, and how far.

use std::time::Duration;

use bucket::{BucketConfig, EvictionConfig, MemoryParameter, Refused, WriteBlock};
use document::Vbid;
use platform::Random;
use platform::seeds::seeds;
use vbucket::eviction::{EvictionPolicy, FilterOptions, StrategyKind};
use vbucket::{Found, StoreMode, Waiter};

use crate::support::{Machine, No, Unanswered, VBID, Waits, config};

const MIB: u64 = 1 << 20;

pub(crate) fn with_policy(policy: EvictionPolicy) -> BucketConfig {
    let eviction = EvictionConfig { policy, ..EvictionConfig::default() };
    BucketConfig { eviction, ..config() }
}

/// A machine of 16 MiB with more than that on disk.
fn overfull(policy: EvictionPolicy) -> Machine {
    let mut machine =
        Machine::with(BucketConfig { memory_quota_bytes: 16 * MIB, ..with_policy(policy) });
    fill(&mut machine, 0..1500);
    machine
}

pub(crate) fn name(number: u64) -> String {
    format!("document-{number:06}")
}

fn value(number: u64) -> Vec<u8> {
    format!("{number}-").repeat(4000).into_bytes()
}

/// Stores documents of 8 to 20 KB; background tasks run in between.
fn fill(machine: &mut Machine, numbers: std::ops::Range<u64>) {
    for number in numbers {
        machine.set(Vbid((number % 4) as u16), &name(number), &value(number)).unwrap();
        if number % 20 == 0 {
            machine.run();
        }
    }
    machine.run();
}

/// Runs `operation` until it need not wait any more, like a server with the completed request.
pub(crate) fn finish<T>(
    machine: &mut Machine,
    mut operation: impl FnMut(&mut Machine) -> Result<T, Unanswered>,
) -> Result<T, Unanswered> {
    machine.heard.take();
    machine.session.waiter = Waiter(1);
    for _ in 0..10 {
        match operation(machine) {
            Err(Waits) => machine.run(),
            result => return result,
        }
        for (_, completion) in machine.heard.take() {
            match completion {
                bucket::Completion::Retry(fetched) => machine.session.fetched = fetched,
                other => panic!("{other:?}"),
            }
        }
    }
    panic!("the operation waits for ever");
}

pub(crate) fn get(machine: &mut Machine, name: &str) -> Result<Found, Unanswered> {
    finish(machine, |machine| machine.find(VBID, name))
}

#[test]
fn the_pager_wakes_above_the_high_watermark_and_stops_below_the_low_one() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let config = BucketConfig { memory_quota_bytes: 16 * MIB, ..with_policy(policy) };
        let mut machine = Machine::with(config);
        let mut number = 0;
        let mut highest = 0;
        while machine.bucket.statistics().pager_rounds == 0 {
            highest = machine.bucket.statistics().used_bytes();
            fill(&mut machine, number..number + 1);
            number += 1;
        }
        assert!(highest > 16 * MIB * 84 / 100, "{policy:?}: {highest}");
        let statistics = machine.bucket.statistics();
        let low = statistics.watermarks.low_bytes;
        assert!(statistics.used_bytes() <= low, "{policy:?}: {}", statistics.used_bytes());
        assert!(statistics.used_bytes() > low - MIB, "{policy:?}: {}", statistics.used_bytes());
        assert!(statistics.vbuckets.ejections > 0);
        assert_eq!(statistics.document_count as u64, number, "{policy:?}");
    }
}

#[test]
fn everything_is_found_again_however_much_does_not_fit() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let mut machine = overfull(policy);
        let statistics = machine.bucket.statistics();
        assert_eq!(statistics.document_count, 1500, "{policy:?}");
        assert!(statistics.ejected_count > 300, "{policy:?}: {}", statistics.ejected_count);
        assert_eq!(statistics.evicted_count > 0, policy == EvictionPolicy::Full);
        assert!(statistics.used_bytes() < 16 * MIB * 85 / 100, "{policy:?}");
        for number in 0..1500 {
            let vbid = Vbid((number % 4) as u16);
            let found = finish(&mut machine, |machine| machine.find(vbid, &name(number)));
            assert_eq!(found.unwrap().item.value(), value(number), "{policy:?} {number}");
        }
        machine.run();
        assert_eq!(machine.bucket.statistics().document_count, 1500, "{policy:?}");
        assert!(machine.bucket.statistics().used_bytes() < 16 * MIB * 86 / 100, "{policy:?}");
    }
}

#[test]
fn what_is_read_often_stays() {
    for strategy in [StrategyKind::LastingMfu, StrategyKind::UpfrontMfuOnly] {
        let mut config = with_policy(EvictionPolicy::ValueOnly);
        config.eviction.strategy = strategy;
        config.memory_quota_bytes = 16 * MIB;
        let mut machine = Machine::with(config);
        fill(&mut machine, 0..100);
        for round in 1..14 {
            for _ in 0..50 {
                for number in 0..100 {
                    let vbid = Vbid((number % 4) as u16);
                    drop(finish(&mut machine, |machine| machine.find(vbid, &name(number))));
                }
            }
            fill(&mut machine, round * 100..(round + 1) * 100);
        }
        let resident = (0..100)
            .filter(|&number| machine.find(Vbid((number % 4) as u16), &name(number)).is_ok());
        let resident = resident.count();
        assert!(resident >= 99, "{strategy:?}: {resident} of 100");
        assert!(machine.bucket.statistics().ejected_count > 200);
    }
}

#[test]
fn what_is_not_on_disk_is_never_evicted_and_keeps_writes_out_with_a_reason() {
    let mut machine = Machine::with(BucketConfig {
        memory_quota_bytes: 16 * MIB,
        // Before checkpoints keep writes out, memory does.
        checkpoint_memory_ratio: 1.0,
        ..with_policy(EvictionPolicy::Full)
    });
    let mut stored = 0;
    let refused = loop {
        match machine.set(VBID, &name(stored), &value(stored)) {
            Ok(_) => stored += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, Refused::Blocked(WriteBlock::Memory));
    let unknown = crate::collections::set(&mut machine, b"\x09k").unwrap_err();
    assert_eq!(unknown, Refused::UnknownCollection, "no memory will let it in");
    assert_eq!(machine.bucket.statistics().ejected_count, 0);
    machine.run();
    // The pager pauses when it can do nothing.
    machine.advance(Duration::from_secs(1));
    machine.set(VBID, "there is room again", b"value").unwrap();
    assert_eq!(machine.bucket.statistics().document_count as u64, stored + 1);
}

#[test]
fn a_write_that_finds_memory_full_makes_room_itself() {
    let mut machine = Machine::with(BucketConfig {
        memory_quota_bytes: 16 * MIB,
        ..with_policy(EvictionPolicy::ValueOnly)
    });
    fill(&mut machine, 0..900);
    // Nothing runs from here on: not the pager, not the flusher.
    let writes = (0..).find(|&number| machine.set(VBID, &name(number), &value(number)).is_err());
    assert!(writes.unwrap() > 200, "{writes:?}");
}

#[test]
fn a_full_bucket_that_is_only_read_answers_every_request() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let mut machine = overfull(policy);
        machine.bucket.set_memory_ratio(MemoryParameter::LowWatermark, 0.001).unwrap();
        machine.bucket.set_memory_ratio(MemoryParameter::HighWatermark, 0.002).unwrap();
        machine.run();
        for number in (0..1500).step_by(7) {
            let vbid = Vbid((number % 4) as u16);
            let found = finish(&mut machine, |machine| machine.find(vbid, &name(number)));
            assert_eq!(found.unwrap().item.value(), value(number), "{policy:?}");
        }
    }
}

#[test]
fn a_start_under_full_eviction_loads_until_the_low_watermark_and_counts_all() {
    let mut machine = overfull(EvictionPolicy::Full);
    let deleted = finish(&mut machine, |machine| machine.delete(Vbid(1), &name(1)));
    deleted.unwrap();
    machine.run();
    let mut machine = machine.stop_and_start();
    machine.run();
    let statistics = machine.bucket.statistics();
    assert_eq!(statistics.document_count, 1499);
    let low = statistics.watermarks.low_bytes;
    assert!(statistics.used_bytes() >= low && statistics.used_bytes() < low + 2 * MIB);
    for number in (0..1500).step_by(13) {
        let vbid = Vbid((number % 4) as u16);
        let found = finish(&mut machine, |machine| machine.find(vbid, &name(number)));
        assert_eq!(found.unwrap().item.value(), value(number));
    }
    let gone = finish(&mut machine, |machine| machine.find(Vbid(1), &name(1)));
    assert_eq!(gone.unwrap_err(), Refused::NotFound);
}

#[test]
fn the_filter_answers_for_documents_that_never_were() {
    let mut machine = overfull(EvictionPolicy::Full);
    let before = machine.bucket.statistics().documents_fetched;
    let misses = (0..1000)
        .filter(|number| {
            get(&mut machine, &format!("never-{number}")).err() == Some(No(Refused::NotFound))
        })
        .count();
    assert_eq!(misses, 1000);
    let statistics = machine.bucket.statistics();
    let looked_up = statistics.documents_fetched - before;
    assert!(looked_up <= 20, "{looked_up} of 1000");
    assert!(statistics.filter_bytes > 0 && statistics.filter_key_count > 0);
}

#[test]
fn a_lower_quota_is_reached_in_steps_and_comes_into_force() {
    let quota = 64 * MIB;
    let mut machine = Machine::with(BucketConfig {
        memory_quota_bytes: quota,
        ..with_policy(EvictionPolicy::ValueOnly)
    });
    fill(&mut machine, 0..2000);
    assert!(machine.bucket.statistics().used_bytes() > 16 * MIB);
    machine.bucket.set_memory_quota(16 * MIB).unwrap();
    assert_eq!(machine.bucket.statistics().memory_quota_bytes, quota, "writes go on meanwhile");
    machine.set(VBID, "meanwhile", b"value").unwrap();
    machine.run();
    let statistics = machine.bucket.statistics();
    assert!(statistics.used_bytes() < statistics.watermarks.high_bytes);
    machine.advance(Duration::from_secs(31));
    assert_eq!(machine.bucket.statistics().memory_quota_bytes, 16 * MIB);
    machine.bucket.set_memory_quota(quota).unwrap();
    assert_eq!(machine.bucket.statistics().memory_quota_bytes, quota);
}

#[test]
fn a_document_read_for_ever_has_all_counters_halved() {
    let mut machine = Machine::new();
    machine.set(VBID, "hot", b"value").unwrap();
    machine.set(VBID, "warm", b"value").unwrap();
    for _ in 0..500 {
        machine.find(VBID, "warm").unwrap();
    }
    let warm = machine.find(VBID, "warm").unwrap().item;
    let before = warm.heat();
    let mut reads = 0_u64;
    while machine.find(VBID, "hot").unwrap().item.heat() < u8::MAX {
        reads += 1;
    }
    assert!(reads > 10_000, "{reads}");
    machine.run();
    assert_eq!(machine.bucket.statistics().decayer_rounds, 1);
    assert_eq!(warm.heat(), before / 2);
    let hot = machine.find(VBID, "hot").unwrap().item.heat();
    assert!((127..=128).contains(&hot), "{hot}");
}

#[test]
fn new_versions_inherit_their_frequency_and_fetched_values_begin_anew() {
    let mut machine = Machine::new();
    machine.set(VBID, "k", b"value").unwrap();
    assert!((4..=5).contains(&machine.find(VBID, "k").unwrap().item.heat()));
    for _ in 0..100 {
        machine.find(VBID, "k").unwrap();
    }
    let heat = machine.find(VBID, "k").unwrap().item.heat();
    assert!(heat > 10);
    machine.set(VBID, "k", b"new").unwrap();
    let inherited = machine.find(VBID, "k").unwrap().item.heat();
    assert!((heat..=heat + 1).contains(&inherited), "{heat} {inherited}");
    machine.run();
    machine.evict(VBID, "k").unwrap();
    assert!(get(&mut machine, "k").unwrap().item.heat() <= 5);
}

#[test]
fn the_pager_deletes_what_is_over_on_its_way() {
    let mut machine = Machine::with(BucketConfig {
        memory_quota_bytes: 16 * MIB,
        ..with_policy(EvictionPolicy::ValueOnly)
    });
    let expiry = machine.clock.wall_time().seconds() + 10;
    machine.store(StoreMode::Set, VBID, "over", b"value", expiry).unwrap();
    machine.run();
    machine.advance(Duration::from_secs(20));
    fill(&mut machine, 0..1000);
    assert_eq!(machine.bucket.statistics().vbuckets.expirations, 1);
}

/// Random operations against a map, with next to no memory, restarts included.
#[test]
fn a_bucket_with_next_to_no_memory_is_a_map() {
    for seed in seeds(12) {
        let policy = if seed % 2 == 0 { EvictionPolicy::ValueOnly } else { EvictionPolicy::Full };
        let mut config = with_policy(policy);
        config.memory_quota_bytes = 48_000;
        config.eviction.filter = FilterOptions { key_count: 100, ..FilterOptions::default() };
        let mut machine = Machine::with(config);
        let mut random = Random::from_seed(seed);
        let mut model = std::collections::BTreeMap::new();
        for step in 0..3000 {
            let name = name(random.below(120));
            let what = format!("seed {seed}, step {step}, {name}");
            match random.below(20) {
                0..7 => {
                    let value = vec![b'x'; random.below(1500) as usize];
                    let result = finish(&mut machine, |machine| machine.set(VBID, &name, &value));
                    match result {
                        Ok(_) => drop(model.insert(name, value)),
                        Err(refused) => {
                            let reasons = [WriteBlock::Memory, WriteBlock::Checkpoints];
                            let reasons = reasons.map(|block| No(Refused::Blocked(block)));
                            let is_known = reasons.contains(&refused);
                            assert!(is_known, "{what}: {refused:?}");
                            machine.advance(Duration::from_secs(1));
                        }
                    }
                }
                7..9 => {
                    let result = finish(&mut machine, |machine| machine.delete(VBID, &name));
                    assert_eq!(result.is_ok(), model.remove(&name).is_some(), "{what}");
                }
                9..17 => {
                    let found = get(&mut machine, &name).ok();
                    let found = found.map(|found| found.item.value().to_vec());
                    assert_eq!(found, model.get(&name).cloned(), "{what}");
                }
                17 => drop(machine.evict(VBID, &name)),
                18 => drop(machine.driver.run_one()),
                _ if random.below(40) == 0 => machine = machine.stop_and_start(),
                _ => machine.run(),
            }
            if machine.bucket.wait_until_serving(Duration::ZERO) {
                assert_eq!(machine.bucket.statistics().document_count, model.len(), "{what}");
            } else {
                machine.run();
            }
        }
    }
}
