//! Streams that follow the log.

use std::sync::atomic::Ordering;
use std::time::Duration;

use document::{Seqno, VbucketState};
use protocol::dcp::{EndReason, MarkerFlags, Message};
use replication::Answer;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID};

#[test]
fn a_stream_follows_what_is_written() {
    let mut machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    assert!(matches!(consumer.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    consumer.take_all(&mut machine);
    assert!(consumer.streams[&VBID].markers.is_empty());
    machine.set("a", b"1");
    machine.set("b", &[7; 10_000]);
    machine.set("a", b"2");
    machine.delete("b");
    consumer.take_all(&mut machine);
    machine.set("c", b"3");
    consumer.take_all(&mut machine);
    let received = &consumer.streams[&VBID];
    assert!(received.is_whole());
    assert_eq!(received.seqno, Seqno(5));
    let documents: Vec<_> = received.documents.iter().collect();
    assert_eq!(
        documents,
        [
            (&b"\0a".to_vec(), &(b"2".to_vec(), Seqno(3))),
            (&b"\0c".to_vec(), &(b"3".to_vec(), Seqno(5))),
        ]
    );
    assert!(received.markers[0].flags.contains(MarkerFlags::CHECKPOINT));
    assert!(!received.markers[1].flags.contains(MarkerFlags::CHECKPOINT));
}

#[test]
fn growth_wakes_the_owner_once() {
    let mut machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    consumer.resume(&machine, VBID, u64::MAX);
    consumer.take_all(&mut machine);
    let before = consumer.wakes.load(Ordering::Relaxed);
    for _ in 0..10 {
        machine.set("a", b"1");
    }
    assert_eq!(consumer.wakes.load(Ordering::Relaxed), before + 1);
    consumer.take_all(&mut machine);
    machine.set("a", b"2");
    assert_eq!(consumer.wakes.load(Ordering::Relaxed), before + 2);
}

#[test]
fn a_stream_ends_where_it_was_to_end() {
    let mut machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    consumer.resume(&machine, VBID, 2);
    for name in ["a", "b", "c"] {
        machine.set(name, b"v");
    }
    consumer.take_all(&mut machine);
    let received = &consumer.streams[&VBID];
    assert_eq!((received.end, received.seqno), (Some(EndReason::Ok), Seqno(2)));
    assert!(matches!(consumer.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    consumer.take_all(&mut machine);
    assert_eq!(consumer.streams[&VBID].documents.len(), 3);
}

#[test]
fn a_consumer_gets_no_more_than_its_buffer_holds() {
    let mut machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    assert_eq!(consumer.control(&machine, "connection_buffer_size", "1000"), Answer::Done);
    consumer.resume(&machine, VBID, u64::MAX);
    for number in 0..100 {
        machine.set(&format!("key{number}"), &[0; 100]);
    }
    let mut rounds = 0;
    while consumer.streams[&VBID].documents.len() < 100 {
        consumer.take_all(&mut machine);
        assert!((1_000..1_200).contains(&consumer.unacked_bytes) || rounds > 10);
        let bytes = u32::try_from(std::mem::take(&mut consumer.unacked_bytes)).unwrap();
        let acked = consumer.tell(&machine, VBID, &Message::BufferAck { bytes });
        assert_eq!(acked, Answer::Nothing);
        rounds += 1;
    }
    assert!(rounds > 10);
}

#[test]
fn another_role_ends_a_stream() {
    let mut machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    consumer.resume(&machine, VBID, u64::MAX);
    machine.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
    machine.bucket.delete_vbucket(VBID).unwrap();
    consumer.take_all(&mut machine);
    assert_eq!(consumer.streams[&VBID].end, Some(EndReason::StateChanged));
}

#[test]
fn a_second_connection_of_a_name_closes_the_first() {
    let machine = Machine::new();
    let mut first = Consumer::new(&machine);
    let mut other = Consumer::open(&machine, "other", 1, &[]);
    let mut second = Consumer::new(&machine);
    for consumer in [&mut first, &mut other, &mut second] {
        consumer.take(&machine, usize::MAX, 1);
    }
    assert!(first.producer.is_closing());
    assert!(!other.producer.is_closing() && !second.producer.is_closing());
    drop(first);
    let names: Vec<_> = machine.hub.producer_status().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["consumer", "other"]);
}

#[test]
fn noops_come_at_intervals_and_silence_ends_the_connection() {
    let machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    consumer.control(&machine, "set_noop_interval", "1");
    for _ in 0..3 {
        machine.clock.advance(Duration::from_secs(1));
        consumer.take(&machine, usize::MAX, 10);
    }
    assert_eq!(consumer.noops, [10_000_001, 10_000_002, 10_000_003]);
    machine.clock.advance(Duration::from_secs(361));
    consumer.take(&machine, usize::MAX, 1);
    assert!(consumer.producer.is_closing());
}
