//! The bucket's memory: what is refused and what is let in.

use bucket::{BucketConfig, Refused, WriteBlock};

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
