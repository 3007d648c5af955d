//! Durable writes on their way to replicas, and past those who know nothing of them.

use std::collections::BTreeMap;
use std::time::Duration;

use bucket::{BucketConfig, BucketType, Persistence};
use document::key::encode_collection;
use document::{DurabilityLevel, Key, ManifestEdit, Seqno, VbucketState};
use protocol::Feature;
use protocol::dcp::{Message, StreamFlags, StreamRequest};
use replication::Answer;
use vbucket::{Now, Waiter};

use crate::consumer::{Consumer, Step};
use crate::support::{Machine, VBID, config};

fn replica(machine: &Machine) -> Consumer {
    let mut replica = Consumer::open(machine, "n_1", 0x125, &[Feature::Collections]);
    for (key, value) in
        [("enable_sync_writes", "true"), ("consumer_name", "n_1"), ("max_marker_version", "2.2")]
    {
        assert_eq!(replica.control(machine, key, value), Answer::Done);
    }
    replica
}

fn machine(config: BucketConfig) -> Machine {
    let machine = Machine::with(config);
    let name = |name: &str| Some(name.to_owned());
    let topology = Some(vec![vec![name("n_0"), name("n_1")]]);
    machine.bucket.set_vbucket_state(VBID, VbucketState::Active, topology).unwrap();
    machine
}

#[test]
fn a_durable_write_commits_when_the_replica_has_it() {
    let mut machine = machine(config());
    let mut replica = replica(&machine);
    let mut client = Consumer::new(&machine);
    let mut classic = Consumer::open(&machine, "classic", 1, &[]);
    for consumer in [&mut replica, &mut client, &mut classic] {
        assert!(matches!(consumer.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    }
    machine.set("a", b"1");
    assert!(machine.set_durable("a", b"2", DurabilityLevel::Majority), "it is under way");
    replica.take_all(&mut machine);
    assert_eq!(replica.streams[&VBID].steps, [Step::Prepare(Seqno(2))]);
    for consumer in [&mut client, &mut classic] {
        consumer.take_all(&mut machine);
        assert_eq!(consumer.streams[&VBID].documents.values().next().unwrap().0, b"1");
    }
    assert_eq!(client.streams[&VBID].seqno, Seqno(2), "it is told how far it is");
    assert_eq!(classic.streams[&VBID].seqno, Seqno(1));
    let seqno = Seqno(2);
    let acked = replica.tell(&machine, VBID, &Message::SeqnoAcknowledged { seqno });
    assert_eq!(acked, Answer::Nothing);
    replica.take_all(&mut machine);
    let steps = [Step::Prepare(Seqno(2)), Step::Commit(Seqno(2), Seqno(3))];
    assert_eq!(replica.streams[&VBID].steps, steps);
    for consumer in [&mut client, &mut classic] {
        consumer.take_all(&mut machine);
        let received = &consumer.streams[&VBID];
        assert_eq!(received.documents.values().next().unwrap(), &(b"2".to_vec(), Seqno(3)));
        assert!(received.is_whole());
    }
    // What has not come cannot be acknowledged.
    let seqno = Seqno(9);
    let acked = replica.tell(&machine, VBID, &Message::SeqnoAcknowledged { seqno });
    assert!(matches!(acked, Answer::Close(_)));
}

#[test]
fn what_a_superseded_connection_acknowledges_does_not_count() {
    let mut machine = machine(config());
    let mut before_crash = replica(&machine);
    before_crash.resume(&machine, VBID, u64::MAX);
    machine.set("a", b"1");
    assert!(machine.set_durable("a", b"2", DurabilityLevel::Majority), "it is under way");
    before_crash.take_all(&mut machine);
    // The node has lost what was in its memory, and begins anew while its old words still wait.
    let mut after_crash = replica(&machine);
    assert!(matches!(after_crash.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    let acknowledged = Message::SeqnoAcknowledged { seqno: Seqno(2) };
    assert_eq!(before_crash.tell(&machine, VBID, &acknowledged), Answer::Nothing);
    assert_eq!(machine.high_seqno(), Seqno(2), "nothing was committed");
    after_crash.take_all(&mut machine);
    assert_eq!(after_crash.tell(&machine, VBID, &acknowledged), Answer::Nothing);
    assert_eq!(machine.high_seqno(), Seqno(3));
}

#[test]
fn what_is_acknowledged_of_a_history_that_was_flushed_does_not_count_in_the_next_one() {
    let mut machine = machine(config());
    let mut replica = replica(&machine);
    assert!(matches!(replica.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    machine.set("a", b"1");
    assert!(machine.set_durable("a", b"2", DurabilityLevel::Majority), "it is under way");
    replica.take_all(&mut machine);
    machine.bucket.flush_all().unwrap();
    // On its way since before the flush, and read before the stream has its turn and ends.
    let acknowledged = Message::SeqnoAcknowledged { seqno: Seqno(2) };
    assert_eq!(replica.tell(&machine, VBID, &acknowledged), Answer::Nothing);
    let waiter = Waiter(5);
    assert!(machine.set_durable_for(waiter, "b", b"3", DurabilityLevel::Majority));
    assert_eq!(machine.committed.take(), [], "the replica has nothing of it");
    // The replica goes back, and what it says from then on counts.
    replica.take_all(&mut machine);
    replica.streams.remove(&VBID);
    assert!(matches!(replica.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    replica.take_all(&mut machine);
    let acknowledged = Message::SeqnoAcknowledged { seqno: Seqno(1) };
    assert_eq!(replica.tell(&machine, VBID, &acknowledged), Answer::Nothing);
    assert_eq!(machine.committed.take(), [(waiter, Seqno(2))]);
}

#[test]
fn an_abort_goes_where_its_prepare_went_and_nobody_else_hears_of_it() {
    let mut machine = machine(config());
    let mut replica = replica(&machine);
    let mut client = Consumer::new(&machine);
    for consumer in [&mut replica, &mut client] {
        assert!(matches!(consumer.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
    }
    machine.set("a", b"1");
    for _ in 0..2 {
        assert!(machine.set_durable("a", b"2", DurabilityLevel::Majority), "it is under way");
        machine.run();
        machine.driver.advance(Duration::from_secs(1_001), usize::MAX);
    }
    machine.set("b", b"1");
    for consumer in [&mut replica, &mut client] {
        consumer.take_all(&mut machine);
        let received = &consumer.streams[&VBID];
        assert_eq!(received.documents[&b"\0a"[..]], (b"1".to_vec(), Seqno(1)));
        assert_eq!((received.seqno, received.is_whole()), (Seqno(6), true));
    }
    use Step::{Abort, Prepare};
    let seqno = Seqno;
    let steps = [
        Prepare(seqno(2)),
        Abort(seqno(2), seqno(3)),
        Prepare(seqno(4)),
        Abort(seqno(4), seqno(5)),
    ];
    assert_eq!(replica.streams[&VBID].steps, steps);
    assert_eq!(client.streams[&VBID].steps, []);
    // From the file comes the last of them alone.
    machine.run();
    let mut late = self::replica(&machine);
    late.resume(&machine, VBID, u64::MAX);
    late.take_all(&mut machine);
    let received = &late.streams[&VBID];
    assert_eq!(received.steps, [Abort(seqno(4), seqno(5))]);
    assert_eq!(received.markers[0].high_completed, Some(seqno(4)));
    assert_eq!((received.seqno, received.documents.len()), (seqno(6), 2));
}

#[test]
fn a_vbucket_goes_over_with_its_prepares_and_its_clients_hear_that_nobody_knows() {
    let mut machine = machine(config());
    machine.set("a", b"1");
    assert!(machine.set_durable_for(Waiter(5), "a", b"2", DurabilityLevel::PersistToMajority));
    let mut replica = replica(&machine);
    let (flags, end) = (StreamFlags::TAKEOVER, Seqno(u64::MAX));
    let request = StreamRequest { flags, end, ..StreamRequest::default() };
    assert!(matches!(replica.request(&machine, VBID, request), Answer::Value(_)));
    while replica.streams[&VBID].roles.is_empty() {
        assert!(replica.take(&machine, usize::MAX, 1) > 0);
    }
    // Until the last moment others are begun.
    assert!(machine.set_durable_for(Waiter(6), "b", b"2", DurabilityLevel::Majority));
    replica.take_all(&mut machine);
    let received = &replica.streams[&VBID];
    assert_eq!(received.roles, [VbucketState::Pending, VbucketState::Active]);
    assert_eq!(received.steps, [Step::Prepare(Seqno(2)), Step::Prepare(Seqno(3))]);
    assert_eq!(machine.committed.take(), []);
    assert_eq!(machine.committed.take_ambiguous(), [Waiter(5), Waiter(6)]);
    // What it acknowledges now is nothing to a vBucket that has been given away.
    replica.tell(&machine, VBID, &Message::SeqnoAcknowledged { seqno: Seqno(3) });
    machine.run();
    assert_eq!(machine.high_seqno(), Seqno(3));
}

/// With a journal, with files alone, and without any.
fn buckets_of_every_kind() -> [BucketConfig; 3] {
    [
        config(),
        BucketConfig { persistence: Persistence::Files, ..config() },
        BucketConfig { bucket_type: Some(BucketType::Ephemeral), ..config() },
    ]
}

#[test]
fn backfills_give_prepares_to_replicas_alone() {
    buckets_of_every_kind().into_iter().map(machine).for_each(backfill_prepares);
}

fn backfill_prepares(mut machine: Machine) {
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        machine.set(name, b"1");
        if number == 0 {
            continue;
        }
        machine.set_durable(name, b"2", DurabilityLevel::Majority);
    }
    // Nothing of it is in the log any more.
    machine.run();
    let mut replica = replica(&machine);
    let mut client = Consumer::new(&machine);
    for consumer in [&mut replica, &mut client] {
        consumer.resume(&machine, VBID, u64::MAX);
        consumer.take_all(&mut machine);
        assert!(consumer.streams[&VBID].is_whole());
        assert_eq!(consumer.streams[&VBID].documents.len(), 3);
    }
    let steps = [Step::Prepare(Seqno(3)), Step::Prepare(Seqno(5))];
    assert_eq!(replica.streams[&VBID].steps, steps);
    assert_eq!(client.streams[&VBID].steps, []);
    let marker = replica.streams[&VBID].markers[0];
    assert_eq!(marker.high_completed, Some(Seqno(0)));
    assert_eq!((marker.start, marker.end), (Seqno(0), Seqno(5)));
    replica.tell(&machine, VBID, &Message::SeqnoAcknowledged { seqno: Seqno(5) });
    for consumer in [&mut replica, &mut client] {
        consumer.take_all(&mut machine);
        let received = &consumer.streams[&VBID];
        assert_eq!((received.seqno, received.is_whole()), (Seqno(7), true));
    }
    let values: BTreeMap<_, _> = client.streams[&VBID].documents.clone();
    assert_eq!(values[&b"\0c"[..]], (b"2".to_vec(), Seqno(7)));
    // From the file, a commit is what it has committed.
    machine.run();
    let mut late = self::replica(&machine);
    late.resume(&machine, VBID, u64::MAX);
    late.take_all(&mut machine);
    assert_eq!(late.streams[&VBID].documents, values);
    assert_eq!(late.streams[&VBID].steps, []);
}

#[test]
fn a_replica_has_what_ends_before_the_drop_of_its_collection() {
    buckets_of_every_kind().into_iter().map(machine).for_each(drop_behind_a_backfill);
}

fn drop_behind_a_backfill(mut machine: Machine) {
    let (scope, collection) = ("_default", "c");
    let create =
        ManifestEdit::CreateCollection { scope, collection, max_ttl: None, history: false };
    let manifest = machine.bucket.manifest().edited(create).unwrap();
    machine.bucket.set_manifest(manifest.clone()).unwrap();
    let mut key = encode_collection(manifest.scopes[0].collections[1].id);
    key.push(b'k');
    let level = DurabilityLevel::Majority;
    assert!(machine.set_durable_at(Waiter(1), Key::from_trusted(&key), b"v", level));
    // Nothing of it is in the log any more.
    machine.run();
    let mut replica = replica(&machine);
    replica.resume(&machine, VBID, u64::MAX);
    // It is read, and not sent yet.
    machine.run();
    machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
        let monotonic = now.monotonic.after(Duration::from_secs(2_000));
        vbucket.end_overdue_sync_writes(Now { monotonic, ..now }, effects);
    });
    let drop = ManifestEdit::DropCollection { scope, collection };
    machine.bucket.set_manifest(manifest.edited(drop).unwrap()).unwrap();
    replica.take_all(&mut machine);
    let received = &replica.streams[&VBID];
    let (prepare, abort, drop) = (Seqno(2), Seqno(3), Seqno(4));
    assert_eq!(received.markers[0].end, prepare, "a backfill, and then the log");
    assert_eq!(received.steps, [Step::Prepare(prepare), Step::Abort(prepare, abort)]);
    assert_eq!(received.seqno, drop);
    // Of what is dropped within its backfill nothing comes.
    machine.run();
    let mut late = self::replica(&machine);
    late.resume(&machine, VBID, u64::MAX);
    late.take_all(&mut machine);
    let received = &late.streams[&VBID];
    assert_eq!((received.seqno, &received.steps[..]), (drop, &[][..]));
}
