//! What statistics say of how far a stream is.

use bucket::{BucketConfig, Persistence};
use document::Seqno;
use replication::Answer;
use replication::producer::StreamStatus;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID, config};

fn status(machine: &Machine) -> StreamStatus {
    machine.hub.producer_status()[0].streams[0].clone()
}

fn in_log(machine: &Machine) -> usize {
    let (name, mut remaining) = (status(machine).cursor_name, None);
    machine.bucket.with_vbucket(VBID, |vbucket| {
        let cursors = vbucket.checkpoints().cursors();
        let cursor = cursors.iter().find(|cursor| *cursor.name == name);
        remaining = cursor.map(|cursor| cursor.remaining);
    });
    remaining.unwrap()
}

#[test]
fn items_are_counted_in_the_file_in_the_log_and_where_they_wait() {
    let mut machine = Machine::new();
    for round in 0..2 {
        for number in 0..200 {
            // Only the last version of each is in the file.
            machine.set(&format!("key{number}"), &[round; 5_000]);
        }
    }
    machine.delete("key7");
    // The log has nothing of it any more.
    machine.run();
    let mut consumer = Consumer::new(&machine);
    assert_eq!(consumer.control(&machine, "connection_buffer_size", "20000"), Answer::Done);
    assert!(matches!(consumer.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    assert_eq!(status(&machine).backfill_remaining, None, "nobody has looked yet");
    machine.run();
    assert!(consumer.take(&machine, usize::MAX, 1) > 0);
    machine.set("new", b"v");
    // Everything is read at once, and few documents are sent.
    let now = status(&machine);
    assert_eq!(now.backfill_remaining, Some(0));
    assert_eq!(now.backfill_items + now.waiting_messages, 200, "a tombstone is one, too");
    assert_eq!(in_log(&machine), 1);
    assert_eq!(consumer.control(&machine, "connection_buffer_size", "0"), Answer::Done);
    consumer.take_all(&mut machine);
    let now = status(&machine);
    assert_eq!((now.backfill_remaining, now.waiting_messages), (Some(0), 0));
    assert_eq!((in_log(&machine), now.last_sent), (0, Seqno(402)));
}

#[test]
fn what_a_file_has_in_front_of_a_stream_is_known_before_it_is_read() {
    let persistence = Persistence::Files;
    let mut machine = Machine::with(BucketConfig { persistence, ..config() });
    for number in 0..250 {
        // Together more than is read ahead.
        machine.set(&format!("key{number}"), &[7; 120_000]);
        machine.run();
    }
    let mut consumer = Consumer::new(&machine);
    consumer.streams.entry(VBID).or_default().seqno = Seqno(50);
    assert!(matches!(consumer.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    machine.run();
    consumer.take(&machine, 1, 1);
    let now = status(&machine);
    let remaining = now.backfill_remaining.unwrap();
    assert!((1..200).contains(&remaining));
    let read = now.backfill_items + now.waiting_messages;
    assert_eq!(read + remaining, 200, "what the consumer has is not counted");
}
