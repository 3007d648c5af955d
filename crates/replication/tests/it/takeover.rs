//! vBuckets that go over to another node.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bucket::{Refused, WriteBlock};
use document::{Seqno, VbucketState};
use protocol::dcp::{EndReason, Message, StreamFlags, StreamRequest};
use replication::Answer;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID};

#[test]
fn a_vbucket_is_dead_here_before_it_is_active_there() {
    let mut machine = Machine::new();
    for name in ["a", "b", "c"] {
        machine.set(name, b"v");
    }
    let mut consumer = Consumer::new(&machine);
    let (flags, end) = (StreamFlags::TAKEOVER, Seqno(u64::MAX));
    let request = StreamRequest { flags, end, ..StreamRequest::default() };
    assert!(matches!(consumer.request(&machine, VBID, request), Answer::Value(_)));
    consumer.take(&machine, usize::MAX, 1);
    assert_eq!(consumer.streams[&VBID].roles, []);
    // Clients write until the last moment.
    machine.set("d", b"v");
    while consumer.streams[&VBID].roles.is_empty() {
        assert!(consumer.take(&machine, usize::MAX, 1) > 0);
    }
    assert_eq!(consumer.streams[&VBID].roles, [VbucketState::Pending]);
    machine.set("e", b"v");
    consumer.take_all(&mut machine);
    let received = &consumer.streams[&VBID];
    assert_eq!(received.roles, [VbucketState::Pending, VbucketState::Active]);
    assert_eq!(received.end, Some(EndReason::Ok));
    assert_eq!((received.documents.len(), received.seqno), (5, Seqno(5)));
    let mut state = None;
    machine.bucket.with_vbucket(VBID, |vbucket| state = Some(vbucket.state()));
    assert_eq!(state, Some(VbucketState::Dead));
    assert!(machine.try_set("f", b"v").is_none());
}

#[test]
fn a_vbucket_that_was_emptied_meanwhile_lives_on() {
    let mut machine = Machine::new();
    machine.set("a", b"v");
    let mut consumer = Consumer::new(&machine);
    let (flags, end) = (StreamFlags::TAKEOVER, Seqno(u64::MAX));
    let request = StreamRequest { flags, end, ..StreamRequest::default() };
    assert!(matches!(consumer.request(&machine, VBID, request), Answer::Value(_)));
    while consumer.streams[&VBID].roles.is_empty() {
        assert!(consumer.take(&machine, usize::MAX, 1) > 0);
    }
    // The other node has answered, and no thread has made the vBucket dead yet.
    machine.bucket.flush_all().unwrap();
    machine.run();
    let mut state = None;
    machine.bucket.with_vbucket(VBID, |vbucket| state = Some(vbucket.state()));
    assert_eq!(state, Some(VbucketState::Active));
    machine.set("b", b"v");
}

/// A node that takes a vBucket over and stops reading before it has everything.
fn stuck_takeover(machine: &mut Machine) -> Consumer {
    for number in 0..100 {
        machine.set(&format!("key{number}"), &[7; 100]);
    }
    let mut consumer = Consumer::new(machine);
    assert_eq!(consumer.control(machine, "connection_buffer_size", "500"), Answer::Done);
    let (flags, end) = (StreamFlags::TAKEOVER, Seqno(u64::MAX));
    let request = StreamRequest { flags, end, ..StreamRequest::default() };
    assert!(matches!(consumer.request(machine, VBID, request), Answer::Value(_)));
    consumer.take_all(machine);
    assert!(consumer.streams[&VBID].documents.len() < 100);
    consumer
}

fn is_late(machine: &Machine) -> bool {
    let mut is_late = false;
    machine.bucket.with_vbucket(VBID, |vbucket| is_late = vbucket.is_takeover_late());
    is_late
}

#[test]
fn writers_are_held_up_when_a_takeover_lasts_longer_than_a_minute() {
    for has_noop in ["true", "false"] {
        let mut machine = Machine::new();
        let mut consumer = stuck_takeover(&mut machine);
        consumer.control(&machine, "enable_noop", has_noop);
        let before = consumer.wakes.load(Ordering::Relaxed);
        machine.driver.advance(Duration::from_secs(59), usize::MAX);
        assert!(consumer.wakes.load(Ordering::Relaxed) > before, "somebody looks at the time");
        consumer.take(&machine, usize::MAX, 10);
        machine.set("not yet", b"v");
        machine.driver.advance(Duration::from_secs(1), usize::MAX);
        consumer.take(&machine, usize::MAX, 10);
        assert!(is_late(&machine));
        assert_eq!(machine.refused("now", b"v"), Refused::Blocked(WriteBlock::Takeover));
        // The rest goes over, and nobody is held up for a vBucket that is dead.
        let bytes = 100_000;
        consumer.tell(&machine, VBID, &Message::BufferAck { bytes });
        assert_eq!(consumer.control(&machine, "connection_buffer_size", "0"), Answer::Done);
        consumer.take_all(&mut machine);
        let received = &consumer.streams[&VBID];
        assert_eq!(received.roles, [VbucketState::Pending, VbucketState::Active]);
        assert_eq!((received.end, received.documents.len()), (Some(EndReason::Ok), 101));
        assert_eq!(machine.refused("then", b"v"), Refused::NotMyVbucket);
        assert!(!is_late(&machine));
    }
}

#[test]
fn writers_go_on_when_a_late_takeover_is_given_up() {
    for closes in [true, false] {
        let mut machine = Machine::new();
        let mut consumer = stuck_takeover(&mut machine);
        machine.clock.advance(Duration::from_secs(61));
        consumer.take(&machine, usize::MAX, 10);
        assert!(is_late(&machine));
        if closes {
            assert_eq!(consumer.tell(&machine, VBID, &Message::CloseStream), Answer::Done);
        } else {
            drop(consumer);
        }
        assert!(!is_late(&machine));
        machine.set("k", b"v");
    }
}

#[test]
fn the_time_of_a_takeover_begins_behind_its_backfill() {
    let mut machine = Machine::new();
    machine.set("a", b"v");
    // The log does not have it any more.
    machine.run();
    let mut consumer = Consumer::new(&machine);
    let (flags, end) = (StreamFlags::TAKEOVER, Seqno(u64::MAX));
    let request = StreamRequest { flags, end, ..StreamRequest::default() };
    assert!(matches!(consumer.request(&machine, VBID, request), Answer::Value(_)));
    for _ in 0..2 {
        // No thread reads the file.
        machine.clock.advance(Duration::from_secs(61));
        consumer.take(&machine, usize::MAX, 10);
        assert!(!is_late(&machine));
    }
    consumer.take_all(&mut machine);
    assert_eq!(consumer.streams[&VBID].end, Some(EndReason::Ok));
}
