//! What connections have read from files while nobody takes it.

use bucket::BucketConfig;
use protocol::{Feature, Status};
use replication::Answer;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID, config};

const QUOTA_BYTES: u64 = 64 << 20;
static VALUE: [u8; 120_000] = [7; 120_000];
const DOCUMENT_COUNT: usize = 250;

/// A bucket that has everything in its file.
fn filled(document_count: usize) -> Machine {
    let config = BucketConfig { memory_quota_bytes: QUOTA_BYTES, ..config() };
    let mut machine = Machine::with(config);
    for number in 0..document_count {
        machine.set(&format!("key{number}"), &VALUE);
        machine.run();
    }
    machine
}

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
    let mut machine = filled(DOCUMENT_COUNT);
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

#[test]
fn what_is_read_ahead_is_no_room_for_another_stream_that_reads_a_file() {
    let mut machine = filled(DOCUMENT_COUNT);
    let first = begun(&machine, "first");
    machine.run();
    assert!(unsent(&machine)[0] > QUOTA_BYTES / 10);
    let _held = machine.hold_memory(QUOTA_BYTES / 20);
    let mut second = Consumer::open(&machine, "second", 0x25, &[Feature::Collections]);
    let refused = second.resume(&machine, VBID, u64::MAX);
    assert!(matches!(refused, Answer::Fail(Status::Enomem, _)), "{refused:?}");
    drop(first);
    assert!(matches!(second.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
}

#[test]
fn a_stream_goes_on_a_portion_at_a_time_while_memory_is_short() {
    let mut machine = filled(50);
    let _most = machine.hold_memory(0);
    // What can be evicted is.
    machine.run();
    let mut consumer = begun(&machine, "consumer");
    let _rest = machine.hold_memory(0);
    machine.run();
    let held = unsent(&machine)[0];
    assert!(held > 0 && held < 400_000, "one portion: {held}");
    consumer.take_all(&mut machine);
    assert_eq!(consumer.streams[&VBID].documents.len(), 50);
    assert!(!machine.bucket.has_room_to_backfill(0), "memory is short all the time");
}
