//! What connections have read from files while nobody takes it.

use bucket::BucketConfig;
use protocol::Feature;
use replication::Answer;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID, config};

const QUOTA_BYTES: u64 = 64 << 20;
static VALUE: [u8; 120_000] = [7; 120_000];
const DOCUMENT_COUNT: usize = 250;

fn begun(machine: &Machine, name: &str) -> Consumer {
    let mut consumer = Consumer::open(machine, name, 0x25, &[Feature::Collections]);
    assert!(matches!(consumer.resume(machine, VBID, u64::MAX), Answer::Value(_)));
    consumer
}

fn unsent(machine: &Machine) -> Vec<u64> {
    machine.hub.producer_status().iter().map(|producer| producer.backfill_bytes).collect()
}

#[test]
fn connections_that_take_nothing_hold_a_part_of_the_quota_together() {
    let config = BucketConfig { memory_quota_bytes: QUOTA_BYTES, ..config() };
    let mut machine = Machine::with(config);
    for number in 0..DOCUMENT_COUNT {
        machine.set(&format!("key{number}"), &VALUE);
        machine.run();
    }
    let mut consumers: Vec<Consumer> =
        (0..10).map(|number| begun(&machine, &format!("consumer{number}"))).collect();
    machine.run();
    let held = unsent(&machine);
    assert!(held.iter().all(|bytes| *bytes > 0), "each has a portion: {held:?}");
    let portions = 11 * 400_000;
    let sum: u64 = held.iter().sum();
    assert!(sum > QUOTA_BYTES / 10 && sum < QUOTA_BYTES / 10 + portions, "{held:?}");

    let mut last = consumers.pop().unwrap();
    last.take_all(&mut machine);
    assert_eq!(last.streams[&VBID].documents.len(), DOCUMENT_COUNT, "it goes on beside them");

    drop((consumers, last));
    let _alone = begun(&machine, "alone");
    machine.run();
    let held = unsent(&machine);
    assert!(held[0] > QUOTA_BYTES / 10, "what the others held is given back: {held:?}");
}
