//! A consumer and a made-up producer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use auth::{Exchange, Outcome, Users, UsersConfig};
use bucket::{Bucket, BucketConfig, BucketType, Completion, Completions, Surroundings};
use document::{Cas, Datatype, DurabilityLevel, KeyBuf, RevSeqno, Seqno, VbUuid, Vbid};
use document::{Item, VbucketState};
use executor::{ExecutorPool, PoolOptions};
use platform::files::RealFiles;
use platform::{Clock, Entropy, Instant};
use protocol::dcp::{
    DcpDeletion, DeletionForm, Document, EndReason, Envelope, Marker, MarkerFlags,
};
use protocol::dcp::{Message, Prepare, Resolution, StreamRequest, encode_failover_log};
use protocol::response::{ResponseHead, encode_with_value};
use protocol::{Feature, Frame, Header, Opcode, Parsed, Status};
use vbucket::{Now, Waiter};

use super::{Consumer, ConsumerError, ConsumerNames, Reservations};

mod rollbacks;

const VBID: Vbid = Vbid(0);
const BUFFER_BYTES: u32 = 1000;

struct NobodyWaits;

impl Completions for NobodyWaits {
    fn complete(&self, _waiter: Waiter, _completion: Completion) {}
    fn release_memory(&self) {}
}

/// A frame that the consumer has sent.
#[derive(Clone, Debug)]
struct Sent {
    header: Header,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Sent {
    fn opcode(&self) -> Opcode {
        Opcode::from_byte(self.header.opcode).unwrap()
    }

    fn stream_request(&self) -> (u64, u64, u64, u64) {
        let frame = Frame {
            header: self.header,
            framing_extras: &[],
            extras: &self.extras,
            key: &self.key,
            value: &self.value,
        };
        let Ok(Message::StreamRequest(request)) = Message::parse(&frame) else {
            panic!("no stream request: {self:?}");
        };
        let StreamRequest { start, snapshot_start, snapshot_end, uuid, .. } = request;
        (start.0, snapshot_start.0, snapshot_end.0, uuid.0)
    }
}

/// The producer's side, the bucket that receives, and the consumer between them.
struct Play {
    consumer: Consumer,
    bucket: Bucket,
    rollbacks: Arc<Reservations>,
    out: Vec<u8>,
    now: Now,
    opaque: u32,
    pool: ExecutorPool,
    _directory: tempfile::TempDir,
}

impl Play {
    /// Nothing has been said but HELLO.
    fn begin() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::real();
        let pool = ExecutorPool::start(clock.clone(), PoolOptions::for_cpus(2)).unwrap();
        let surroundings = Surroundings {
            clock,
            files: Arc::new(RealFiles),
            pool: pool.clone(),
            completions: Arc::new(NobodyWaits),
            entropy: Entropy::simulated(1),
        };
        let config = BucketConfig {
            vbucket_count: 2,
            bucket_type: Some(BucketType::Ephemeral),
            ..BucketConfig::named("default")
        };
        let bucket = Bucket::open(surroundings, config, &directory.path().join("b")).unwrap();
        assert!(bucket.wait_until_serving(Duration::from_secs(20)));
        bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        let names = ConsumerNames {
            node: "n_1".to_owned(),
            connection: "replication:n_0->n_1:default".to_owned(),
            bucket: "default".to_owned(),
            bucket_uuid: None,
            user: "user".to_owned(),
            password: "password".to_owned(),
            entropy: Entropy::real(),
        };
        let mut out = Vec::new();
        let now = Now { monotonic: Instant(1_000_000_000_000), ..Now::default() };
        let rollbacks = Arc::<Reservations>::default();
        let shared = Arc::clone(&rollbacks);
        let consumer = Consumer::begin(bucket.clone(), names, shared, BUFFER_BYTES, now, &mut out);
        Self { consumer, bucket, rollbacks, out, now, opaque: 0, pool, _directory: directory }
    }

    /// A stream of vBucket 0 is open.
    fn open() -> Self {
        let mut play = Self::begin();
        play.shake_hands(|_| Status::Success).unwrap();
        play.follow();
        play.accept(&[(7, 0)]);
        play
    }

    /// The same of a producer that does not say by itself how far it is.
    fn open_silently() -> Self {
        let mut play = Self::begin();
        play.shake_hands(|_| Status::Success).unwrap();
        play.follow();
        let request = play.request();
        play.grant_silently(&request, &[(70, 0)]);
        play
    }

    fn open_for_takeover() -> Self {
        let mut play = Self::begin();
        play.shake_hands(|_| Status::Success).unwrap();
        play.consumer.take_over(VBID, play.now, &mut play.out);
        play.accept(&[(7, 0)]);
        play
    }

    fn follow(&mut self) {
        self.consumer.follow(&BTreeSet::from([VBID]), self.now, &mut self.out);
    }

    /// What the consumer has sent since this was asked last.
    fn sent(&mut self) -> Vec<Sent> {
        let bytes = std::mem::take(&mut self.out);
        let mut rest = bytes.as_slice();
        let mut sent = Vec::new();
        while let Parsed::Complete { frame, consumed } = Frame::parse(rest, usize::MAX) {
            sent.push(Sent {
                header: frame.header,
                extras: frame.extras.to_vec(),
                key: frame.key.to_vec(),
                value: frame.value.to_vec(),
            });
            rest = &rest[consumed..];
        }
        assert!(rest.is_empty(), "whole frames are sent");
        sent
    }

    fn opcodes(&mut self) -> Vec<Opcode> {
        self.sent().iter().map(Sent::opcode).collect()
    }

    fn give(&mut self, bytes: &[u8]) -> Result<(), ConsumerError> {
        let taken = self.consumer.on_bytes(bytes, self.now, &mut self.out)?;
        assert_eq!(taken, bytes.len());
        Ok(())
    }

    fn answer(&mut self, to: &Sent, status: Status, value: &[u8]) -> Result<(), ConsumerError> {
        let head = ResponseHead::plain(to.header.opcode, to.header.opaque, status, value.len());
        let mut bytes = Vec::new();
        encode_with_value(&mut bytes, &head, value);
        self.give(&bytes)
    }

    /// Answers everything until streams can be asked for; `status` says how each CONTROL fares.
    /// Returns the keys of those.
    fn shake_hands(
        &mut self,
        status: impl Fn(&str) -> Status,
    ) -> Result<Vec<String>, ConsumerError> {
        let users =
            Users::new(UsersConfig { iterations: 4096, verified_max: 1, ..UsersConfig::default() });
        users.set_password("user", b"password");
        let mut exchange = Exchange::default();
        let mut controls = Vec::new();
        loop {
            let sent = self.sent();
            let Some(request) = sent.first() else { return Ok(controls) };
            assert_eq!(sent.len(), 1, "one request at a time");
            let key = String::from_utf8(request.key.clone()).unwrap();
            let outcome = match request.opcode() {
                Opcode::SaslAuth => Some(exchange.start(&users, &key, &request.value)),
                Opcode::SaslStep => Some(exchange.step(&users, &key, &request.value)),
                _ => None,
            };
            match (request.opcode(), outcome) {
                (_, Some(Outcome::Continue(data))) => {
                    self.answer(request, Status::AuthContinue, &data)?;
                }
                (_, Some(Outcome::Done { server_final: data, .. })) => {
                    self.answer(request, Status::Success, &data)?;
                }
                (Opcode::Hello, _) => {
                    let collections = Feature::Collections.code().to_be_bytes();
                    self.answer(request, Status::Success, &collections)?;
                }
                (Opcode::DcpControl, _) => {
                    self.answer(request, status(&key), &[])?;
                    controls.push(key);
                }
                (Opcode::SelectBucket | Opcode::DcpOpen, _) => {
                    self.answer(request, Status::Success, &[])?;
                }
                (Opcode::DcpStreamReq, _) => return Ok(controls),
                (opcode, _) => panic!("{opcode:?}"),
            }
        }
    }

    /// The request for the stream, which is the only thing that was sent.
    fn request(&mut self) -> Sent {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!(sent[0].opcode(), Opcode::DcpStreamReq);
        sent[0].clone()
    }

    /// Accepts the stream that was asked for.
    fn accept(&mut self, log: &[(u64, u64)]) {
        let request = self.request();
        self.grant(&request, log);
    }

    /// Accepts the stream of `request`, and says that there is nothing to be had yet, if asked.
    fn grant(&mut self, request: &Sent, log: &[(u64, u64)]) {
        self.grant_silently(request, log);
        let bytes = std::mem::take(&mut self.out);
        let mut rest = bytes.as_slice();
        while let Parsed::Complete { frame, consumed } = Frame::parse(rest, usize::MAX) {
            if Opcode::from_byte(frame.header.opcode) == Some(Opcode::ObserveSeqno) {
                self.tell_high_seqno(Status::Success, 0);
            } else {
                self.out.extend_from_slice(&rest[..consumed]);
            }
            rest = &rest[consumed..];
        }
    }

    /// Answers the question how far the producer is.
    fn tell_high_seqno(&mut self, status: Status, seqno: u64) {
        // Format, vBucket, branch, what is on disk, what there is.
        let numbers = [70_u64, 0, seqno].map(u64::to_be_bytes);
        let value = [&[0; 3], numbers.as_flattened()].concat();
        let opcode = Opcode::ObserveSeqno.byte();
        let head = ResponseHead::plain(opcode, self.opaque, status, value.len());
        let mut bytes = Vec::new();
        encode_with_value(&mut bytes, &head, &value);
        self.give(&bytes).unwrap();
    }

    fn is_whole(&self) -> bool {
        self.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.is_whole()).unwrap()
    }

    /// Accepts the stream of `request`.
    fn grant_silently(&mut self, request: &Sent, log: &[(u64, u64)]) {
        self.opaque = request.header.opaque;
        let mut value = Vec::new();
        let entries = log.iter().map(|&(uuid, seqno)| (VbUuid(uuid), Seqno(seqno)));
        encode_failover_log(entries, &mut value);
        self.answer(request, Status::Success, &value).unwrap();
    }

    fn encode(&self, message: &Message<'_>) -> Vec<u8> {
        let envelope =
            Envelope { opaque: self.opaque, vbid: VBID, stream_id: None, has_collections: true };
        let mut bytes = Vec::new();
        message.encode(envelope, &mut bytes);
        bytes
    }

    fn say(&mut self, messages: &[Message<'_>]) {
        let bytes: Vec<u8> = messages.iter().flat_map(|message| self.encode(message)).collect();
        self.give(&bytes).unwrap();
    }

    fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        let key = KeyBuf::in_default_collection(key).unwrap();
        let value = |item: &Item| item.value().to_vec();
        let found = self.bucket.on_vbucket(VBID, |vbucket, _, effects| {
            vbucket.get_replica(key.as_key(), Now::default(), effects).ok()
        });
        found.flatten().map(|found| value(&found.item))
    }

    fn high_seqno(&self) -> u64 {
        self.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.high_seqno().0).unwrap()
    }

    fn pass(&mut self, time: Duration) -> Result<(), ConsumerError> {
        self.now.monotonic = self.now.monotonic.after(time);
        self.consumer.on_tick(self.now, &mut self.out)
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        assert!(std::thread::panicking() || self.bucket.shut_down().is_ok());
        self.pool.shutdown();
    }
}

fn marker(start: u64, end: u64, flags: MarkerFlags) -> Message<'static> {
    let flags = flags.with(MarkerFlags::CHECKPOINT);
    let (start, end) = (Seqno(start), Seqno(end));
    Message::SnapshotMarker(Marker { start, end, flags, ..Marker::default() })
}

fn document<'a>(key: &'a [u8], value: &'a [u8], seqno: u64) -> Document<'a> {
    Document {
        key,
        value,
        datatype: Datatype::RAW,
        cas: Cas(seqno << 16),
        seqno: Seqno(seqno),
        revision: RevSeqno(seqno),
        flags: [1, 2, 3, 4],
        expiry: 0,
        lock_seconds: 0,
        heat: 0,
    }
}

fn mutation<'a>(key: &'a [u8], value: &'a [u8], seqno: u64) -> Message<'a> {
    Message::Mutation(document(key, value, seqno))
}

#[test]
fn everything_is_agreed_on_before_a_stream_is_asked_for() {
    let mut play = Play::begin();
    play.follow();
    let controls = play.shake_hands(|_| Status::Success).unwrap();
    assert_eq!(controls.first().map(String::as_str), Some("enable_noop"));
    assert_eq!(controls.last().map(String::as_str), Some("connection_buffer_size"));
    for name in ["enable_sync_writes", "consumer_name", "max_marker_version"] {
        assert!(controls.iter().any(|control| control == name), "{name}");
    }
    assert!(play.consumer.is_open());
}

#[test]
fn a_producer_may_refuse_what_replication_can_do_without() {
    for (refused, goes_on) in [
        ("enable_noop", false),
        ("enable_expiry_opcode", false),
        ("connection_buffer_size", false),
        ("enable_sync_writes", true),
        ("v7_dcp_status_codes", true),
        ("max_marker_version", true),
    ] {
        let mut play = Play::begin();
        let status = |key: &str| if key == refused { Status::Einval } else { Status::Success };
        assert_eq!(play.shake_hands(status).is_ok(), goes_on, "{refused}");
        assert_eq!(play.consumer.is_open(), goes_on, "{refused}");
    }
}

#[test]
fn a_copy_that_begins_empty_is_whole_when_it_has_what_the_producer_had_then() {
    let mut play = Play::open_silently();
    let asked = play.sent();
    assert_eq!(asked.iter().map(Sent::opcode).collect::<Vec<_>>(), [Opcode::ObserveSeqno]);
    let (header, value) = (asked[0].header, &asked[0].value);
    assert_eq!((header.vbucket_or_status, header.opaque), (VBID.0, play.opaque));
    assert_eq!(value, &70_u64.to_be_bytes());
    play.say(&[marker(1, 2, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    play.tell_high_seqno(Status::Success, 2);
    assert!(!play.is_whole());
    play.say(&[mutation(b"\0b", b"two", 2)]);
    assert!(play.is_whole());
    // It lags from then on, as every copy does.
    play.say(&[marker(3, 9, MarkerFlags::MEMORY)]);
    play.tell_high_seqno(Status::Success, 9);
    assert!(play.is_whole());
}

#[test]
fn a_producer_that_cannot_say_how_far_it_is_has_copies_that_are_not_whole() {
    let mut play = Play::open_silently();
    play.tell_high_seqno(Status::UnknownCommand, 0);
    play.say(&[marker(1, 1, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    assert_eq!((play.high_seqno(), play.is_whole()), (1, false));
}

#[test]
fn a_producer_that_does_not_say_yet_how_far_it_is_is_asked_again() {
    let mut play = Play::open_silently();
    assert_eq!(play.opcodes(), [Opcode::ObserveSeqno]);
    play.tell_high_seqno(Status::Etmpfail, 0);
    assert_eq!(play.opcodes(), [Opcode::DcpCloseStream]);
    // What is late is of a stream that is over.
    play.tell_high_seqno(Status::Success, 0);
    assert!(!play.is_whole());
    play.pass(Duration::from_secs(1)).unwrap();
    let request = play.request();
    play.grant_silently(&request, &[(70, 0)]);
    assert_eq!(play.opcodes(), [Opcode::ObserveSeqno]);
    play.tell_high_seqno(Status::Success, 0);
    assert!(play.is_whole());
}

#[test]
fn what_is_received_can_be_read_and_its_bytes_are_acknowledged() {
    let mut play = Play::open();
    let large = vec![b'x'; 300];
    let tombstone = Message::Deletion(DcpDeletion {
        key: b"\0a",
        value: b"",
        datatype: Datatype::RAW,
        cas: Cas(3 << 16),
        seqno: Seqno(3),
        revision: RevSeqno(2),
        form: DeletionForm::WithTime(5),
    });
    play.say(&[marker(1, 3, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    assert_eq!(play.value(b"a"), Some(b"one".to_vec()));
    assert_eq!(play.opcodes(), [], "a fifth of the buffer is not used up");
    play.say(&[mutation(b"\0b", &large, 2), tombstone]);
    assert_eq!((play.value(b"a"), play.value(b"b")), (None, Some(large.clone())));
    assert_eq!(play.high_seqno(), 3);
    let sent = play.sent();
    let bytes = u32::from_be_bytes(sent[0].extras.clone().try_into().unwrap());
    // Marker, two documents, a tombstone.
    let expected = 44 + (55 + 2 + 3) + (55 + 2 + 300) + (45 + 2);
    assert_eq!((sent[0].opcode(), bytes), (Opcode::DcpBufferAck, expected));
    play.say(&[Message::Noop]);
    assert_eq!(play.opcodes(), [Opcode::DcpNoop]);
}

#[test]
fn a_frame_may_come_in_parts() {
    let mut play = Play::open();
    let bytes = play.encode(&marker(1, 1, MarkerFlags::MEMORY));
    for part in 0..bytes.len() {
        let taken = play.consumer.on_bytes(&bytes[..part], play.now, &mut play.out);
        assert_eq!(taken, Ok(0), "{part}");
    }
    play.give(&bytes).unwrap();
    play.say(&[mutation(b"\0a", b"one", 1)]);
    assert_eq!(play.value(b"a"), Some(b"one".to_vec()));
}

#[test]
fn a_marker_that_asks_for_it_is_answered_when_its_snapshot_is_whole() {
    let mut play = Play::open();
    let flags = MarkerFlags::MEMORY.with(MarkerFlags::ACK);
    play.say(&[marker(1, 2, flags), mutation(b"\0a", b"one", 1)]);
    assert_eq!(play.opcodes(), []);
    play.say(&[mutation(b"\0b", b"two", 2), marker(3, 3, MarkerFlags::MEMORY)]);
    let sent = play.sent();
    assert_eq!(sent[0].opcode(), Opcode::DcpSnapshotMarker);
    assert_eq!(sent[0].header.opaque, play.opaque);
    play.say(&[mutation(b"\0c", b"three", 3)]);
    let answers = play.opcodes();
    assert!(!answers.contains(&Opcode::DcpSnapshotMarker), "the next one does not ask for it");
}

#[test]
fn a_prepare_is_seen_when_it_is_committed() {
    let mut play = Play::open();
    let prepare = |seqno| {
        Message::Prepare(Prepare {
            document: document(b"\0a", b"one", seqno),
            is_deletion: false,
            level: DurabilityLevel::Majority,
        })
    };
    let resolution =
        |prepare, seqno| Resolution { key: b"\0a", prepare: Seqno(prepare), seqno: Seqno(seqno) };
    play.say(&[marker(1, 1, MarkerFlags::MEMORY), prepare(1)]);
    assert_eq!(play.value(b"a"), None);
    play.consumer.acknowledge(VBID, Seqno(1), &mut play.out);
    play.consumer.acknowledge(VBID, Seqno(1), &mut play.out);
    let sent = play.sent();
    assert_eq!(sent.len(), 1, "the same is said once");
    assert_eq!(sent[0].opcode(), Opcode::DcpSeqnoAcknowledged);
    assert_eq!(
        (sent[0].header.opaque, sent[0].extras.as_slice()),
        (play.opaque, &1_u64.to_be_bytes()[..])
    );
    play.say(&[marker(2, 2, MarkerFlags::MEMORY), Message::Commit(resolution(1, 2))]);
    assert_eq!(play.value(b"a"), Some(b"one".to_vec()));
    play.say(&[marker(3, 3, MarkerFlags::MEMORY), prepare(3)]);
    play.say(&[marker(4, 4, MarkerFlags::MEMORY), Message::Abort(resolution(3, 4))]);
    assert_eq!((play.value(b"a"), play.high_seqno()), (Some(b"one".to_vec()), 4));
}

#[test]
fn a_stream_that_ends_is_asked_for_again_and_what_is_late_does_not_count() {
    let mut play = Play::open();
    play.say(&[marker(1, 2, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    play.say(&[Message::StreamEnd(EndReason::StateChanged)]);
    play.say(&[mutation(b"\0a", b"two", 2)]);
    assert_eq!(play.high_seqno(), 1, "the stream had ended");
    assert_eq!(play.opcodes(), []);
    play.pass(Duration::from_millis(60)).unwrap();
    let request = play.request();
    assert_eq!(request.stream_request(), (1, 0, 2, 7));
    assert_ne!(request.header.opaque, play.opaque);
    play.answer(&request, Status::NotMyVbucket, b"{}").unwrap();
    play.pass(Duration::from_millis(60)).unwrap();
    assert_eq!(play.opcodes(), [], "the pauses become longer");
    play.pass(Duration::from_millis(60)).unwrap();
    play.accept(&[(7, 0)]);
    play.say(&[marker(1, 2, MarkerFlags::MEMORY), mutation(b"\0a", b"two", 2)]);
    assert_eq!(play.high_seqno(), 2);
}

#[test]
fn a_vbucket_that_a_manager_relays_for_is_asked_for_when_that_is_over() {
    let mut play = Play::begin();
    play.shake_hands(|_| Status::Success).unwrap();
    assert!(play.rollbacks.begin_relay(VBID));
    play.follow();
    play.pass(Duration::from_millis(60)).unwrap();
    assert_eq!(play.opcodes(), []);
    play.rollbacks.end_relay(VBID);
    play.pass(Duration::from_millis(120)).unwrap();
    assert_eq!(play.request().stream_request(), (0, 0, 0, 0));
}

#[test]
fn what_does_not_fit_closes_the_stream_and_not_the_connection() {
    let mut play = Play::open();
    play.say(&[marker(1, 2, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 9)]);
    assert_eq!(play.opcodes(), [Opcode::DcpCloseStream]);
    play.pass(Duration::from_millis(60)).unwrap();
    assert_eq!(play.opcodes(), [Opcode::DcpStreamReq]);
    let seqno = Seqno(1 << 48);
    let bytes = play.encode(&Message::SeqnoAdvanced { seqno });
    assert!(play.give(&bytes).is_ok(), "of no stream that is open");
    assert!(matches!(play.give(&[0; 24]), Err(ConsumerError::Frame(_))));
}

/// A stream is asked for from the first seqno on, and is granted when its vBucket has become
/// another one.
#[test]
fn a_stream_that_is_granted_to_one_vbucket_is_not_received_by_another() {
    let mut play = Play::open();
    play.say(&[marker(1, 1, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    play.say(&[Message::StreamEnd(EndReason::StateChanged)]);
    play.pass(Duration::from_millis(60)).unwrap();
    let request = play.request();
    assert_eq!(request.stream_request(), (1, 1, 1, 7));
    play.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
    play.bucket.delete_vbucket(VBID).unwrap();
    play.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
    play.grant(&request, &[(7, 0)]);
    assert_eq!(play.opcodes(), [Opcode::DcpCloseStream]);
    play.say(&[marker(2, 2, MarkerFlags::MEMORY), mutation(b"\0b", b"two", 2)]);
    assert_eq!(play.high_seqno(), 0);
    play.pass(Duration::from_millis(120)).unwrap();
    let sent = play.sent();
    let request = sent.last().unwrap();
    assert_eq!(request.stream_request(), (0, 0, 0, 0), "where the vBucket is that is there now");
    play.grant(request, &[(7, 0)]);
    play.say(&[marker(0, 2, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    assert_eq!(play.value(b"a"), Some(b"one".to_vec()));
}

#[test]
fn a_snapshot_that_begins_behind_a_gap_closes_the_stream() {
    let mut play = Play::open();
    play.say(&[marker(1, 1, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    play.say(&[marker(3, 3, MarkerFlags::MEMORY), mutation(b"\0c", b"three", 3)]);
    assert_eq!(play.high_seqno(), 1);
    assert!(play.opcodes().contains(&Opcode::DcpCloseStream));
}

#[test]
fn nothing_is_received_behind_something_that_does_not_fit() {
    let mut play = Play::open();
    let mut messages = vec![marker(1, 200, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)];
    // The second one is a repetition; the rest is read with it, and is more than one portion.
    messages.extend((1..=150).map(|seqno| mutation(b"\0a", b"two", seqno)));
    play.say(&messages);
    assert_eq!(play.high_seqno(), 1);
    let opcodes = play.opcodes();
    let closes = opcodes.iter().filter(|&&opcode| opcode == Opcode::DcpCloseStream);
    assert_eq!(closes.count(), 1);
    play.say(&[marker(1, 2, MarkerFlags::MEMORY.with(MarkerFlags::ACK))]);
    assert!(play.opcodes().is_empty(), "it has ended");
}

#[test]
fn a_branch_that_brought_nothing_is_left_out_before_anything_is_rolled_back() {
    let mut play = Play::open();
    play.say(&[marker(1, 2, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    play.say(&[mutation(b"\0a", b"two", 2)]);
    // It was active for a moment and wrote nothing.
    for state in [VbucketState::Active, VbucketState::Replica] {
        play.bucket.set_vbucket_state(VBID, state, None).unwrap();
    }
    play.say(&[Message::StreamEnd(EndReason::StateChanged)]);
    play.pass(Duration::from_millis(60)).unwrap();
    let request = play.request();
    let (start, _, _, uuid) = request.stream_request();
    assert_eq!(start, 2);
    assert_ne!(uuid, 7);
    play.answer(&request, Status::Rollback, &0_u64.to_be_bytes()).unwrap();
    let second = play.request();
    assert_eq!((second.stream_request().0, second.stream_request().3), (2, 7));
    assert_eq!(second.header.opaque, request.header.opaque);
    // The older branch is not known, either: back to the beginning.
    play.answer(&second, Status::Rollback, &0_u64.to_be_bytes()).unwrap();
    assert!(play.roll_back());
    let third = play.request();
    assert_eq!(third.stream_request(), (0, 0, 0, 0));
    assert_eq!((play.high_seqno(), play.value(b"a")), (0, None));
}

#[test]
fn a_branch_that_begins_later_is_left_out_before_anything_is_rolled_back() {
    let mut play = Play::begin();
    play.shake_hands(|_| Status::Success).unwrap();
    play.follow();
    play.accept(&[(8, 5), (7, 0)]);
    play.say(&[marker(1, 2, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    play.say(&[mutation(b"\0b", b"two", 2), Message::StreamEnd(EndReason::StateChanged)]);
    play.pass(Duration::from_millis(60)).unwrap();
    let request = play.request();
    assert_eq!(request.stream_request(), (2, 2, 2, 8));
    // A producer that was promoted before it heard of that branch.
    play.answer(&request, Status::Rollback, &0_u64.to_be_bytes()).unwrap();
    assert_eq!(play.request().stream_request(), (2, 2, 2, 7));
    assert_eq!(play.high_seqno(), 2);
}

#[test]
fn a_silent_producer_is_given_up() {
    let mut play = Play::open();
    for _ in 0..3 {
        assert_eq!(play.pass(Duration::from_secs(15)), Ok(()));
        play.say(&[Message::Noop]);
    }
    assert_eq!(play.pass(Duration::from_secs(21)), Err(ConsumerError::Silent));
}

#[test]
fn what_is_not_wanted_any_more_is_closed() {
    let mut play = Play::open();
    play.consumer.follow(&BTreeSet::new(), play.now, &mut play.out);
    assert_eq!(play.opcodes(), [Opcode::DcpCloseStream]);
    play.say(&[marker(1, 1, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    assert_eq!(play.high_seqno(), 0);
}

#[test]
fn a_producer_hands_over_only_what_it_was_asked_for() {
    for state in
        [VbucketState::Pending, VbucketState::Active, VbucketState::Replica, VbucketState::Dead]
    {
        let mut play = Play::open();
        play.say(&[marker(1, 1, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
        play.say(&[Message::SetVbucketState { state }]);
        let sent = play.sent();
        assert_eq!(sent[0].opcode(), Opcode::DcpSetVbucketState);
        assert_eq!(sent[0].header.vbucket_or_status, Status::Einval.code(), "{state:?}");
        assert_eq!(play.value(b"a"), Some(b"one".to_vec()), "it is a replica still");
    }
}

#[test]
fn a_vbucket_is_taken_over_with_its_history() {
    let mut play = Play::open_for_takeover();
    play.say(&[marker(1, 1, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
    for state in [VbucketState::Pending, VbucketState::Active] {
        play.say(&[Message::SetVbucketState { state }]);
        let sent = play.sent();
        assert_eq!(sent[0].opcode(), Opcode::DcpSetVbucketState);
        assert_eq!(sent[0].header.vbucket_or_status, 0);
    }
    let uuid = play.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.uuid());
    assert_eq!(uuid, Some(VbUuid(7)), "the branch goes on");
}
