//! Everything that changes a bucket's memory, again and again: each counter returns to zero.

use std::time::Duration;

use bucket::BucketConfig;
use platform::Random;
use platform::seeds::seeds;
use vbucket::StoreMode;

use crate::support::{Machine, OTHER, VBID, config};

const NAMES: u64 = 2_000;
const ROUNDS: u64 = 6;
const STEPS: u64 = 4_000;
/// Longer than any document that expires lives.
const ALL_EXPIRED: Duration = Duration::from_secs(100);

/// How a round empties the bucket.
#[derive(Clone, Copy, Debug)]
enum Emptying {
    /// Every document is deleted, and the tombstones are flushed.
    Deleting,
    /// As above, after the expiry pager has deleted what could expire.
    Expiring,
    /// All at once, with whatever is not flushed.
    FlushAll,
}

fn name_of(number: u64) -> String {
    format!("key-{number}")
}

/// A random operation: load, update, delete, expire, read, evict, flush.
fn step(machine: &mut Machine, random: &mut Random) {
    let vbid = if random.below(4) == 0 { OTHER } else { VBID };
    let name = name_of(random.below(NAMES));
    let size_max = 16 << random.below(9);
    let value = vec![b'x'; random.below(size_max) as usize];
    match random.below(16) {
        0..6 => drop(machine.set(vbid, &name, &value)),
        6..8 => {
            let expiry = machine.clock.wall_time().seconds() + 1 + random.below(50) as u32;
            machine.store(StoreMode::Set, vbid, &name, &value, expiry).ok();
        }
        8..10 => drop(machine.delete(vbid, &name)),
        10..12 => drop(machine.find(vbid, &name)),
        12 => drop(machine.get(vbid, &name)),
        13 => drop(machine.evict(vbid, &name)),
        14 => machine.clock.advance(Duration::from_millis(random.below(100))),
        _ => drop(machine.driver.run_one()),
    }
}

fn empty(machine: &mut Machine, emptying: Emptying) {
    match emptying {
        Emptying::Deleting => {}
        Emptying::Expiring => machine.advance(ALL_EXPIRED),
        Emptying::FlushAll => machine.bucket.flush_all().unwrap(),
    }
    for vbid in [VBID, OTHER] {
        for number in 0..NAMES {
            let name = name_of(number);
            // One whose time is over is not there to be deleted; a read removes it.
            drop(machine.find(vbid, &name));
            machine.delete(vbid, &name).ok();
        }
    }
    machine.run();
    // Whoever has fetched a document and does not ask again holds it.
    machine.heard.take();
}

#[test]
fn every_counter_returns_to_zero_when_the_bucket_is_emptied() {
    for seed in seeds(5) {
        let expiry_pager_interval = ALL_EXPIRED / 2;
        let mut machine = Machine::with(BucketConfig { expiry_pager_interval, ..config() });
        let mut random = Random::from_seed(seed);
        for round in 0..ROUNDS {
            let mut used_bytes_max = 0;
            for _ in 0..STEPS {
                step(&mut machine, &mut random);
                used_bytes_max = used_bytes_max.max(machine.bucket.statistics().used_bytes());
            }
            assert!(used_bytes_max > 0, "seed {seed}, round {round}");
            let emptying = [Emptying::Deleting, Emptying::Expiring, Emptying::FlushAll];
            let emptying = emptying[usize::try_from(round % 3).unwrap()];
            empty(&mut machine, emptying);
            let now = machine.bucket.statistics();
            // Keys of tombstones on disk are remembered.
            let filter_bytes = now.filter_bytes as u64;
            let counters = [
                ("documents", now.document_count as u64),
                ("ejected", now.ejected_count as u64),
                ("tombstones", now.tombstone_count as u64),
                ("queued items", now.queued_item_count as u64),
                ("queued vBuckets", now.queued_vbucket_count as u64),
                ("locks", now.lock_count as u64),
                ("bytes of documents", now.documents_bytes - filter_bytes),
                ("bytes of logs", now.log_bytes),
                ("bytes of checkpoints", now.checkpoints_bytes),
                ("bytes", now.used_bytes() - filter_bytes),
            ];
            for (what, value) in counters {
                assert_eq!(value, 0, "{what}, seed {seed}, round {round}, {emptying:?}");
            }
        }
    }
}
