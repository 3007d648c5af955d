//! The bucket's memory: what is refused, what is let in, and that nothing is lost from the count.

use bucket::{BucketConfig, Refused, WriteBlock};
use platform::Random;
use platform::seeds::seeds;

use crate::support::{Machine, VBID, config};

fn small() -> Machine {
    Machine::with(BucketConfig { memory_quota_bytes: 100_000, ..config() })
}

#[test]
fn above_the_ratio_stores_are_refused_and_deletes_let_in() {
    let mut machine = small();
    let mut stored = Vec::new();
    let refused = loop {
        let name = format!("key-{}", stored.len());
        match machine.set(VBID, &name, &[b'x'; 1000]) {
            Ok(_) => stored.push(name),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, Refused::Blocked(WriteBlock::Memory));
    let statistics = machine.bucket.statistics();
    assert!(statistics.used_bytes() >= 93_000);
    assert!(statistics.used_bytes() < 96_000);
    assert_eq!((statistics.memory_refusals, statistics.disk_refusals), (1, 0));
    assert!((70..93).contains(&stored.len()), "{}", stored.len());
    assert_eq!(machine.get(VBID, &stored[0]).unwrap(), [b'x'; 1000]);
    for name in &stored {
        machine.delete(VBID, name).unwrap();
    }
    machine.run();
    machine.set(VBID, "there is room again", b"value").unwrap();
}

#[test]
fn accounts_return_to_zero_whatever_happened() {
    for seed in seeds(20) {
        let mut machine = Machine::new();
        let mut random = Random::from_seed(seed);
        let mut at_rest = None;
        for round in 0..4 {
            for _ in 0..300 {
                let name = format!("key-{}", random.below(40));
                let value = vec![b'x'; random.below(3000) as usize];
                match random.below(8) {
                    0..4 => drop(machine.set(VBID, &name, &value)),
                    4 => drop(machine.delete(VBID, &name)),
                    5 => drop(machine.get(VBID, &name)),
                    6 => drop(machine.evict(VBID, &name)),
                    _ => drop(machine.driver.run_one()),
                }
            }
            for number in 0..40 {
                machine.delete(VBID, &format!("key-{number}")).ok();
            }
            machine.run();
            // Whoever has fetched a document and does not ask again holds it.
            machine.heard.take();
            let statistics = machine.bucket.statistics();
            assert_eq!(statistics.checkpoints_bytes, 0, "seed {seed}, round {round}");
            assert_eq!((statistics.document_count, statistics.tombstone_count), (0, 0));
            // Of the documents only the table's own slots are left.
            let slots = *at_rest.get_or_insert(statistics.documents_bytes);
            assert!(slots < 4096, "seed {seed}: {slots}");
            assert_eq!(statistics.documents_bytes, slots, "seed {seed}, round {round}");
        }
        machine.bucket.flush_all().unwrap();
        assert_eq!(machine.bucket.statistics().documents_bytes, 0, "seed {seed}");
    }
}
