//! Which streams are granted.

use bucket::{BucketConfig, BucketType, Persistence};
use document::{Cas, ItemBuilder, ItemMeta, RevSeqno, Seqno, VbUuid, Vbid, VbucketState};
use protocol::dcp::{EndReason, Envelope, Message, StreamFlags, StreamRequest};
use protocol::{Feature, Opcode, Status};
use replication::Answer;
use vbucket::{Effect, Now, Received, ReceivedSnapshot, Vbucket};

use crate::consumer::Consumer;
use crate::support::{Machine, VBID, config, key};

fn request(flags: u32, start: u64, end: u64, uuid: u64) -> StreamRequest<'static> {
    StreamRequest {
        flags: StreamFlags(flags),
        start: Seqno(start),
        end: Seqno(end),
        uuid: VbUuid(uuid),
        snapshot_start: Seqno(start),
        snapshot_end: Seqno(start),
        value: b"",
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Granted,
    Rollback(u64),
    Refused(Status),
    UnknownCollection,
    UnknownScope,
}

fn heard(answer: &Answer) -> Expected {
    match answer {
        Answer::Value(_) => Expected::Granted,
        Answer::Rollback(seqno) => Expected::Rollback(seqno.0),
        Answer::Fail(status, _) => Expected::Refused(*status),
        Answer::UnknownCollection => Expected::UnknownCollection,
        Answer::UnknownScope => Expected::UnknownScope,
        other => panic!("{other:?}"),
    }
}

#[test]
fn streams_are_granted_as_the_specification_says() {
    use Expected::{Granted, Refused, Rollback, UnknownCollection, UnknownScope};
    use Status::{DcpStreamIdInvalid, Einval, Erange, NotMyVbucket};
    let mut machine = Machine::new();
    for name in ["a", "b", "c"] {
        machine.set(name, b"v");
    }
    let uuid = machine.uuid();
    let max = u64::MAX;
    let with = |value| StreamRequest { value, ..request(0, 0, max, 0) };
    let snapshot = |start, end| StreamRequest {
        snapshot_start: Seqno(start),
        snapshot_end: Seqno(end),
        ..request(0, 2, max, uuid)
    };
    for (vbid, request, expected) in [
        (0, request(0, 0, max, 0), Granted),
        (0, request(0, 0, max, 12), Granted),
        (0, request(0x20, 0, max, 12), Rollback(0)),
        (0, request(0, 2, max, uuid), Granted),
        (0, request(0, 2, max, uuid ^ 1), Rollback(0)),
        (0, request(0, 9, max, uuid), Rollback(3)),
        (0, request(0, 3, 2, uuid), Refused(Erange)),
        (0, snapshot(3, 4), Refused(Erange)),
        (0, snapshot(0, 1), Refused(Erange)),
        (0, snapshot(1, 3), Granted),
        (0, snapshot(1, 4), Rollback(1)),
        (0, request(0x40, 99, max, 0), Granted),
        (0, request(0x04, 3, max, uuid), Granted),
        (0, request(0x10, 0, max, 0), Granted),
        (1, request(0x10, 0, max, 0), Refused(NotMyVbucket)),
        (1, request(0, 0, max, 0), Granted),
        (2, request(0, 0, max, 0), Refused(NotMyVbucket)),
        (9, request(0, 0, max, 0), Refused(NotMyVbucket)),
        (0, with(b"{}"), Refused(Einval)),
        (0, with(b"{\"uid\":\"0\"}"), Granted),
        (0, with(b"{\"collections\":[\"0\"]}"), Granted),
        (0, with(b"{\"collections\":[\"8\"]}"), UnknownCollection),
        (0, with(b"{\"scope\":\"0\"}"), Granted),
        (0, with(b"{\"scope\":\"8\"}"), UnknownScope),
        (0, with(b"{\"sid\":5}"), Refused(DcpStreamIdInvalid)),
    ] {
        let role = |state| machine.bucket.set_vbucket_state(Vbid(vbid), state, None);
        match vbid {
            1 => role(VbucketState::Replica).unwrap(),
            2 => role(VbucketState::Dead).unwrap(),
            _ => {}
        }
        let mut consumer = Consumer::new(&machine);
        let answer = consumer.request(&machine, Vbid(vbid), request);
        assert_eq!(heard(&answer), expected, "{vbid} {request:?}");
    }
}

#[test]
fn the_answer_is_the_failover_log() {
    let machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    let answer = consumer.request(&machine, VBID, request(0, 0, u64::MAX, 0));
    let mut log = machine.uuid().to_be_bytes().to_vec();
    log.extend([0; 8]);
    assert_eq!(answer, Answer::Value(log.clone()));
    let asked = consumer.tell(&machine, VBID, &Message::GetFailoverLog);
    assert_eq!(asked, Answer::Value(log));
    let again = consumer.request(&machine, VBID, request(0, 0, u64::MAX, 0));
    assert_eq!(heard(&again), Expected::Refused(Status::KeyEexists));
}

#[test]
fn what_is_newer_than_the_oldest_clients_needs_noops() {
    let machine = Machine::new();
    for (flags, features, has_noop, is_granted) in [
        (0x01, &[][..], false, true),
        (0x05, &[], false, false),
        (0x05, &[], true, true),
        (0x01, &[Feature::Collections], false, false),
    ] {
        let mut consumer = Consumer::open(&machine, "c", flags, features);
        let value = if has_noop { "true" } else { "false" };
        consumer.control(&machine, "enable_noop", value);
        let answer = consumer.request(&machine, VBID, request(0, 0, u64::MAX, 0));
        let expected =
            if is_granted { Expected::Granted } else { Expected::Refused(Status::NotSupported) };
        assert_eq!(heard(&answer), expected, "{flags:#x} {features:?}");
    }
}

#[test]
fn a_stream_is_closed_by_its_consumer() {
    let mut machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    let closed = consumer.tell(&machine, VBID, &Message::CloseStream);
    assert_eq!(heard(&closed), Expected::Refused(Status::KeyEnoent));
    consumer.control(&machine, "v7_dcp_status_codes", "true");
    let closed = consumer.tell(&machine, VBID, &Message::CloseStream);
    assert_eq!(heard(&closed), Expected::Refused(Status::DcpStreamNotFound));
    for says_so in [false, true] {
        if says_so {
            consumer.control(&machine, "send_stream_end_on_client_close_stream", "true");
        }
        consumer.request(&machine, VBID, request(0, 0, u64::MAX, 0));
        machine.set("a", b"v");
        assert_eq!(consumer.tell(&machine, VBID, &Message::CloseStream), Answer::Done);
        consumer.take_all(&mut machine);
        assert_eq!(consumer.streams[&VBID].end.is_some(), says_so);
        assert!(consumer.streams[&VBID].documents.is_empty());
    }
}

fn ask(consumer: &mut Consumer, machine: &Machine, opaque: u32, message: &Message<'_>) -> Answer {
    let envelope = Envelope { opaque, vbid: VBID, ..Envelope::default() };
    consumer.producer.on_message(envelope, message, machine.clock.now())
}

#[test]
fn a_stream_whose_end_has_not_left_is_asked_for_anew() {
    const END: Opcode = Opcode::DcpStreamEnd;
    let all = Message::StreamRequest(request(0, 0, u64::MAX, 0));
    let mut machine = Machine::new();
    machine.set("a", b"v");
    for is_closed in [true, false] {
        let mut consumer = Consumer::open(&machine, "consumer", 1, &[]);
        consumer.control(&machine, "send_stream_end_on_client_close_stream", "true");
        assert_eq!(heard(&ask(&mut consumer, &machine, 1, &all)), Expected::Granted);
        if is_closed {
            assert_eq!(ask(&mut consumer, &machine, 1, &Message::CloseStream), Answer::Done);
        } else {
            for state in [VbucketState::Dead, VbucketState::Active] {
                machine.bucket.set_vbucket_state(VBID, state, None).unwrap();
            }
        }
        assert_eq!(heard(&ask(&mut consumer, &machine, 2, &all)), Expected::Granted);
        let again = ask(&mut consumer, &machine, 3, &all);
        assert_eq!(heard(&again), Expected::Refused(Status::KeyEexists), "that one lives");
        let expected = [(END, 1), (Opcode::DcpSnapshotMarker, 2), (Opcode::DcpMutation, 2)];
        assert_eq!(consumer.take_heads(&machine, usize::MAX), expected, "{is_closed}");
        machine.set("a", b"v");
        assert_eq!(consumer.take_heads(&machine, usize::MAX).last().unwrap().1, 2);
        assert_eq!(machine.hub.producer_status()[0].streams.len(), 1);
    }
}

#[test]
fn what_an_ended_stream_has_yet_to_send_goes_before_its_successor() {
    let mut machine = Machine::new();
    machine.set("a", b"v");
    machine.set("b", b"v");
    let mut consumer = Consumer::open(&machine, "consumer", 1, &[]);
    let first = Message::StreamRequest(request(0, 0, 1, 0));
    assert_eq!(heard(&ask(&mut consumer, &machine, 1, &first)), Expected::Granted);
    assert_eq!(consumer.take_heads(&machine, 1), [(Opcode::DcpSnapshotMarker, 1)]);
    let next = Message::StreamRequest(request(0, 1, 2, machine.uuid()));
    assert_eq!(heard(&ask(&mut consumer, &machine, 2, &next)), Expected::Granted);
    let (mutation, end) = (Opcode::DcpMutation, Opcode::DcpStreamEnd);
    let marker = Opcode::DcpSnapshotMarker;
    let expected = [(mutation, 1), (end, 1), (marker, 2), (mutation, 2), (end, 2)];
    assert_eq!(consumer.take_heads(&machine, usize::MAX), expected);
    assert_eq!(machine.hub.producer_status()[0].streams.len(), 0);
}

#[test]
fn a_close_of_the_successor_leaves_what_an_ended_stream_has_yet_to_send() {
    let mut machine = Machine::new();
    machine.set("a", b"v");
    machine.set("b", b"v");
    let mut consumer = Consumer::open(&machine, "consumer", 1, &[]);
    let first = Message::StreamRequest(request(0, 0, 1, 0));
    assert_eq!(heard(&ask(&mut consumer, &machine, 1, &first)), Expected::Granted);
    assert_eq!(consumer.take_heads(&machine, 1), [(Opcode::DcpSnapshotMarker, 1)]);
    let next = Message::StreamRequest(request(0, 1, u64::MAX, machine.uuid()));
    assert_eq!(heard(&ask(&mut consumer, &machine, 2, &next)), Expected::Granted);
    assert_eq!(ask(&mut consumer, &machine, 2, &Message::CloseStream), Answer::Done);
    let expected = [(Opcode::DcpMutation, 1), (Opcode::DcpStreamEnd, 1)];
    assert_eq!(consumer.take_heads(&machine, usize::MAX), expected);
    assert_eq!(machine.hub.producer_status()[0].streams.len(), 0);
    assert_eq!(heard(&ask(&mut consumer, &machine, 3, &next)), Expected::Granted);
    let expected = [(Opcode::DcpSnapshotMarker, 3), (Opcode::DcpMutation, 3)];
    assert_eq!(consumer.take_heads(&machine, usize::MAX), expected);
}

#[test]
fn what_an_ended_stream_has_read_ahead_counts_until_it_is_sent() {
    let mut machine = Machine::new();
    for number in 0..200 {
        machine.set(&format!("key{number}"), &[7; 5_000]);
    }
    // The log has nothing of it any more.
    machine.run();
    let mut consumer = Consumer::open(&machine, "consumer", 1, &[]);
    let range = |end| Message::StreamRequest(request(0, 0, end, 0));
    assert_eq!(heard(&ask(&mut consumer, &machine, 1, &range(200))), Expected::Granted);
    let held = |machine: &Machine| machine.hub.producer_status()[0].backfill_bytes;
    while held(&machine) == 0 {
        assert!(consumer.take_heads(&machine, 1).len() < 2);
        machine.run();
    }
    consumer.take_heads(&machine, 1);
    let waits = held(&machine);
    assert!(waits > 900_000, "{waits}");
    assert_eq!(heard(&ask(&mut consumer, &machine, 2, &range(0))), Expected::Granted);
    assert_eq!(held(&machine), waits);
    assert!(consumer.take_heads(&machine, usize::MAX).len() > 200);
    assert_eq!(held(&machine), 0);
}

#[test]
fn ends_that_nobody_takes_do_not_pile_up() {
    let mut machine = Machine::new();
    machine.set("a", b"v");
    let all = Message::StreamRequest(request(0, 0, u64::MAX, 0));
    let mut consumer = Consumer::open(&machine, "consumer", 1, &[]);
    consumer.control(&machine, "send_stream_end_on_client_close_stream", "true");
    for opaque in [1, 2] {
        assert_eq!(heard(&ask(&mut consumer, &machine, opaque, &all)), Expected::Granted);
        assert_eq!(ask(&mut consumer, &machine, opaque, &Message::CloseStream), Answer::Done);
    }
    let third = ask(&mut consumer, &machine, 3, &all);
    assert_eq!(heard(&third), Expected::Refused(Status::Etmpfail));
    let ends = [(Opcode::DcpStreamEnd, 1), (Opcode::DcpStreamEnd, 2)];
    assert_eq!(consumer.take_heads(&machine, usize::MAX), ends);
    assert_eq!(heard(&ask(&mut consumer, &machine, 3, &all)), Expected::Granted);
}

#[test]
fn streams_with_ids_do_not_get_in_each_others_way() {
    let mut machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    consumer.control(&machine, "enable_stream_id", "true");
    let with = |value| StreamRequest { value, ..request(0, 0, u64::MAX, 0) };
    let without = consumer.request(&machine, VBID, request(0, 0, u64::MAX, 0));
    assert_eq!(heard(&without), Expected::Refused(Status::DcpStreamIdInvalid));
    for (value, expected) in [
        (&b"{\"sid\":1}"[..], Expected::Granted),
        (b"{\"sid\":2}", Expected::Granted),
        (b"{\"sid\":2}", Expected::Refused(Status::KeyEexists)),
    ] {
        let answer = consumer.tell(&machine, VBID, &Message::StreamRequest(with(value)));
        assert_eq!(heard(&answer), expected);
    }
    let close = |consumer: &mut Consumer, stream_id| {
        let envelope = Envelope { vbid: VBID, stream_id, ..Envelope::default() };
        let now = machine.clock.now();
        consumer.producer.on_message(envelope, &Message::CloseStream, now)
    };
    assert_eq!(heard(&close(&mut consumer, None)), Expected::Refused(Status::DcpStreamIdInvalid));
    assert_eq!(close(&mut consumer, Some(1)), Answer::Done);
    assert_eq!(heard(&close(&mut consumer, Some(1))), Expected::Refused(Status::KeyEnoent));
    machine.set("a", b"v");
    assert_eq!(machine.hub.producer_status()[0].streams.len(), 1);
}

#[test]
fn a_connection_has_so_many_streams_of_a_vbucket_and_no_more() {
    let mut machine = Machine::new();
    let mut consumer = Consumer::new(&machine);
    consumer.control(&machine, "enable_stream_id", "true");
    let mut ask = |vbid, id: u16| {
        let value = format!("{{\"sid\":{id}}}");
        let asked = StreamRequest { value: value.as_bytes(), ..request(0, 0, u64::MAX, 0) };
        heard(&consumer.tell(&machine, vbid, &Message::StreamRequest(asked)))
    };
    for id in 1..=256 {
        assert_eq!(ask(VBID, id), Expected::Granted, "{id}");
    }
    assert_eq!(ask(VBID, 257), Expected::Refused(Status::Ebusy));
    assert_eq!(ask(VBID, 256), Expected::Refused(Status::KeyEexists));
    assert_eq!(machine.hub.producer_status()[0].streams.len(), 256);
    let envelope = Envelope { vbid: VBID, stream_id: Some(7), ..Envelope::default() };
    let now = machine.clock.now();
    assert_eq!(consumer.producer.on_message(envelope, &Message::CloseStream, now), Answer::Done);
    let value = b"{\"sid\":257}";
    let asked = StreamRequest { value, ..request(0, 0, u64::MAX, 0) };
    let answer = consumer.tell(&machine, VBID, &Message::StreamRequest(asked));
    assert_eq!(heard(&answer), Expected::Granted, "one has gone");
    machine.set("a", b"v");
    assert_eq!(machine.hub.producer_status()[0].streams.len(), 256);
}

/// More memory is used than a backfill may find, by what another node sends and nobody has flushed.
fn fill_memory(machine: &Machine) {
    let other = Vbid(1);
    machine.bucket.set_vbucket_state(other, VbucketState::Replica, None).unwrap();
    let snapshot = ReceivedSnapshot {
        start: Seqno(1),
        end: Seqno(1_000),
        is_disk: false,
        begins_checkpoint: true,
        max_visible: None,
        high_completed: None,
        high_prepared: None,
        purge_seqno: None,
    };
    let act = |act: &mut dyn FnMut(&mut Vbucket, &mut Vec<Effect>)| {
        machine.bucket.on_vbucket(other, |vbucket, _, effects| act(vbucket, effects)).unwrap();
    };
    act(&mut |vbucket, effects| {
        vbucket.begin_receiving(vbucket.stream_position(), &[], effects).unwrap();
        vbucket.receive_snapshot(snapshot, effects).unwrap();
    });
    let mut seqno = 1;
    while machine.bucket.has_room_to_backfill(0) {
        act(&mut |vbucket, effects| {
            let (key, value) = (key(&seqno.to_string()), vec![7; 100_000]);
            let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), &value);
            let (cas, revision) = (Cas(seqno), RevSeqno(1));
            let received = Received { builder, cas, seqno: Seqno(seqno), revision };
            vbucket.receive(received, Now::default(), effects).unwrap();
        });
        seqno += 1;
    }
}

#[test]
fn no_stream_begins_that_has_to_read_a_file_when_memory_is_short() {
    use Expected::{Granted, Refused, Rollback};
    let (memory_quota_bytes, persistence) = (16 << 20, Persistence::Files);
    let mut machine = Machine::with(BucketConfig { memory_quota_bytes, persistence, ..config() });
    machine.set("a", b"v");
    machine.set("b", b"v");
    // The log does not have them any more.
    machine.run();
    machine.set("c", b"v");
    let (max, uuid) = (u64::MAX, machine.uuid());
    let cases = [
        (request(0, 0, max, 0), Refused(Status::Enomem)),
        (request(0, 1, max, uuid), Refused(Status::Enomem)),
        (request(0, 2, max, uuid), Granted),
        (request(0, 3, max, uuid), Granted),
        (request(0x02, 0, max, 0), Refused(Status::Enomem)),
        // What is wrong in another way is said first.
        (request(0, 9, max, uuid), Rollback(3)),
        (request(0, 3, 2, uuid), Refused(Status::Erange)),
    ];
    for (request, expected) in &cases {
        let mut consumer = Consumer::new(&machine);
        let answer = heard(&consumer.request(&machine, VBID, *request));
        let before = if matches!(expected, Refused(Status::Enomem)) { &Granted } else { expected };
        assert_eq!(answer, *before, "there is memory: {request:?}");
    }
    fill_memory(&machine);
    for (request, expected) in cases {
        let mut consumer = Consumer::new(&machine);
        let answer = consumer.request(&machine, VBID, request);
        assert_eq!(heard(&answer), expected, "{request:?}");
        // A stream that was refused has no place in the log.
        let mut cursors = 0;
        machine.bucket.with_vbucket(VBID, |vbucket| {
            let all = vbucket.checkpoints().cursors();
            cursors = all.iter().filter(|cursor| cursor.name.starts_with("eq_dcpq")).count();
        });
        assert_eq!(cursors, usize::from(expected == Granted), "{request:?}");
    }
    // A replica comes all the same: durable writes wait for it.
    let mut replica = Consumer::open(&machine, "n_1", 0x125, &[Feature::Collections]);
    for (key, value) in [("enable_sync_writes", "true"), ("consumer_name", "n_1")] {
        assert_eq!(replica.control(&machine, key, value), Answer::Done);
    }
    assert_eq!(heard(&replica.request(&machine, VBID, request(0, 0, max, 0))), Granted);
    // It is flushed, and who has asked has had it evicted: there is memory again.
    machine.run();
    let mut consumer = Consumer::new(&machine);
    assert_eq!(heard(&consumer.request(&machine, VBID, request(0, 0, max, 0))), Granted);
}

#[test]
fn a_stream_of_what_is_on_disk_has_what_is_changed_before_that_is_read() {
    let ephemeral = BucketConfig { bucket_type: Some(BucketType::Ephemeral), ..config() };
    let files = BucketConfig { persistence: Persistence::Files, ..config() };
    for config in [config(), files, ephemeral] {
        let mut machine = Machine::with(config);
        machine.set("a", b"old");
        machine.set("b", b"v");
        machine.run();
        let mut consumer = Consumer::new(&machine);
        let granted = consumer.request(&machine, VBID, request(0x02, 0, u64::MAX, 0));
        assert_eq!(heard(&granted), Expected::Granted);
        machine.set("a", b"new");
        consumer.take_all(&mut machine);
        let received = &consumer.streams[&VBID];
        assert_eq!(received.documents.len(), 2);
        assert_eq!(received.end, Some(EndReason::Ok));
        assert!(received.is_whole());
    }
}
