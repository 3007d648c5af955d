//! A consumer, and a made-up producer that speaks to it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use auth::{Exchange, Outcome, Users, UsersConfig};
use blessed::{Line, shown};
use bucket::StreamObserver;
use document::{Seqno, VbUuid, Vbid, VbucketState};
use platform::Entropy;
use protocol::dcp::{Envelope, Message, encode_failover_log};
use protocol::response::{ResponseHead, encode_with_value};
use protocol::{Feature, Frame, Header, Opcode, Parsed, Status};
use replication::consumer::{Consumer, ConsumerError, ConsumerNames, Reservations};
use vbucket::Now;
use vbucket::checkpoint::CursorId;

use super::notation::{Numbers, shown_message, state, status, with_message};
use crate::support::{Machine, key};

/// Little, so that cases soon have used a fifth of it.
const BUFFER_BYTES: u32 = 1000;

/// A consumer between its bucket and its producer.
pub(super) struct ConsumerPlay {
    machine: Machine,
    consumer: Consumer,
    rollbacks: Arc<Reservations>,
    held: Arc<Held>,
    out: Vec<u8>,
    /// Requests that the producer has not answered.
    asked: VecDeque<Asked>,
    /// The newest stream of each of two vBuckets.
    opaques: [u32; 2],
    /// Messages that arrive with the next one.
    together: Vec<u8>,
    numbers: Numbers,
    exchange: Exchange,
    users: Users,
}

/// A request of the consumer's.
struct Asked {
    header: Header,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Which prepares the bucket says that it holds.
#[derive(Default)]
struct Held(Mutex<Vec<(Vbid, Seqno)>>);

impl StreamObserver for Held {
    fn log_grew(&self, _vbid: Vbid) {}

    fn cursor_dropped(&self, _vbid: Vbid, _cursor: CursorId) {}

    fn role_changed(&self, _vbid: Vbid, _state: Option<VbucketState>) {}

    fn prepares_held(&self, vbid: Vbid, seqno: Seqno) {
        self.0.lock().unwrap().push((vbid, seqno));
    }
}

impl ConsumerPlay {
    /// Nothing has been answered. vBuckets 0 and 1 are replicas.
    pub(super) fn begin() -> Self {
        let machine = Machine::new();
        let held = Arc::<Held>::default();
        for vbid in [Vbid(0), Vbid(1)] {
            machine.bucket.set_vbucket_state(vbid, VbucketState::Dead, None).unwrap();
            machine.bucket.delete_vbucket(vbid).unwrap();
            machine.bucket.set_vbucket_state(vbid, VbucketState::Replica, None).unwrap();
            let observer: Arc<dyn StreamObserver> = Arc::<Held>::clone(&held);
            machine.hub.subscribe(vbid, observer);
        }
        let names = ConsumerNames {
            node: "n_1".to_owned(),
            connection: "replication:n_0->n_1:default".to_owned(),
            bucket: "default".to_owned(),
            bucket_uuid: None,
            user: "user".to_owned(),
            password: "password".to_owned(),
            entropy: Entropy::simulated(1),
        };
        let iterations = auth::credentials::ITERATIONS_MIN;
        let entropy = Entropy::simulated(2);
        let users = Users::new(UsersConfig { iterations, entropy, ..UsersConfig::default() });
        users.set_password("user", b"password");
        let rollbacks = Arc::<Reservations>::default();
        let (bucket, shared) = (machine.bucket.clone(), Arc::clone(&rollbacks));
        let (now, mut out) = (now(&machine), Vec::new());
        let consumer = Consumer::begin(bucket, names, shared, BUFFER_BYTES, now, &mut out);
        let mut play = Self {
            machine,
            consumer,
            rollbacks,
            held,
            out,
            asked: VecDeque::new(),
            opaques: [0; 2],
            together: Vec::new(),
            numbers: Numbers::new(),
            exchange: Exchange::default(),
            users,
        };
        play.sent();
        play
    }

    pub(super) fn say(&mut self, line: &Line<'_>) -> Vec<String> {
        let mut answers = Vec::new();
        let now = now(&self.machine);
        let outcome = match line.verb {
            "answer" => {
                let value = line.bytes_in("value");
                self.answer(status(line.word(0)), &value)
            }
            "log-in" => self.log_in(),
            "agree" => self.agree(&line.words).1,
            "agree-aloud" => {
                let (agreed, outcome) = self.agree(&line.words);
                answers.extend(agreed);
                outcome
            }
            "follow" => {
                let wanted = line.words.iter().map(|word| Vbid(word.parse().unwrap()));
                let wanted: BTreeSet<Vbid> = wanted.collect();
                self.consumer.follow(&wanted, now, &mut self.out);
                Ok(())
            }
            "take-over" => {
                self.consumer.take_over(vbid(line), now, &mut self.out);
                Ok(())
            }
            "grant" => self.grant(line),
            "ready" => {
                let [agreed, granted] = ["agree", "grant 7@0"].map(Line::parse);
                self.say(&agreed);
                self.consumer.follow(&BTreeSet::from([Vbid(0)]), now, &mut self.out);
                self.sent();
                self.say(&granted);
                self.say(&Line::parse("high SUCCESS 0"));
                return answers;
            }
            "high" => self.tell_high_seqno(status(line.word(0)), line.number(1)),
            "+" => {
                let bytes = self.encode(line);
                self.together.extend(bytes);
                return answers;
            }
            "hear" => {
                let bytes = self.encode(line);
                let bytes = [std::mem::take(&mut self.together), bytes].concat();
                self.give(&bytes)
            }
            "bytes" => self.give(&blessed::bytes_of(line.rest())),
            "pass" => {
                self.machine.driver.advance(Duration::from_millis(line.number(0)), 100_000);
                let now = self::now(&self.machine);
                self.consumer.on_tick(now, &mut self.out)
            }
            "role" => {
                let state = state(line.word(0));
                self.machine.bucket.set_vbucket_state(vbid(line), state, None).unwrap();
                Ok(())
            }
            "roll-back" => {
                answers.extend(self.roll_back());
                Ok(())
            }
            "damaged" => {
                self.consumer.file_damaged(vbid(line), now, &mut self.out);
                Ok(())
            }
            "get" => {
                answers.push(self.get(line));
                Ok(())
            }
            "where" => {
                answers.push(self.place(vbid(line)));
                Ok(())
            }
            _ => panic!("`{}` is no line of a case", line.text),
        };
        for (vbid, seqno) in std::mem::take(&mut *self.held.0.lock().unwrap()) {
            self.consumer.acknowledge(vbid, seqno, &mut self.out);
        }
        answers.extend(self.sent());
        answers.extend(outcome.err().map(|error| format!("closes: {error}")));
        answers
    }

    fn give(&mut self, bytes: &[u8]) -> Result<(), ConsumerError> {
        let now = now(&self.machine);
        let taken = self.consumer.on_bytes(bytes, now, &mut self.out)?;
        assert_eq!(taken, bytes.len(), "whole frames are taken");
        Ok(())
    }

    /// Answers the oldest request.
    fn answer(&mut self, status: Status, value: &[u8]) -> Result<(), ConsumerError> {
        let asked = self.asked.pop_front().expect("something was asked");
        let Header { opcode, opaque, .. } = asked.header;
        let head = ResponseHead::plain(opcode, opaque, status, value.len());
        let mut bytes = Vec::new();
        encode_with_value(&mut bytes, &head, value);
        self.give(&bytes)
    }

    /// Answers the step of a login that was asked for.
    fn log_in(&mut self) -> Result<(), ConsumerError> {
        let asked = self.asked.front().expect("something was asked");
        let mechanism = String::from_utf8(asked.key.clone()).unwrap();
        let outcome = match Opcode::from_byte(asked.header.opcode) {
            Some(Opcode::SaslAuth) => self.exchange.start(&self.users, &mechanism, &asked.value),
            Some(Opcode::SaslStep) => self.exchange.step(&self.users, &mechanism, &asked.value),
            other => panic!("{other:?} is no step of a login"),
        };
        match outcome {
            Outcome::Continue(data) => self.answer(Status::AuthContinue, &data),
            Outcome::Done { server_final, .. } => self.answer(Status::Success, &server_final),
            _ => panic!("the login fails"),
        }
    }

    /// Answers everything until streams can be asked for. Controls with these names are refused.
    /// Returns what was asked on the way.
    fn agree(&mut self, refused: &[&str]) -> (Vec<String>, Result<(), ConsumerError>) {
        let mut lines = Vec::new();
        while let Some(asked) = self.asked.front() {
            let is_refused = refused.iter().any(|name| name.as_bytes() == asked.key);
            let answered = match Opcode::from_byte(asked.header.opcode) {
                Some(Opcode::DcpStreamReq) => break,
                Some(Opcode::SaslAuth | Opcode::SaslStep) => self.log_in(),
                Some(Opcode::DcpControl) if is_refused => self.answer(Status::Einval, &[]),
                Some(Opcode::Hello) => {
                    let collections = Feature::Collections.code().to_be_bytes();
                    self.answer(Status::Success, &collections)
                }
                _ => self.answer(Status::Success, &[]),
            };
            lines.extend(self.sent());
            if answered.is_err() {
                return (lines, answered);
            }
        }
        (lines, Ok(()))
    }

    /// Grants the stream that was asked for first, with the branches that a line names.
    fn grant(&mut self, line: &Line<'_>) -> Result<(), ConsumerError> {
        let entry = |word: &&str| {
            let (uuid, seqno) = word.split_once('@').expect("branch@seqno");
            (VbUuid(uuid.parse().unwrap()), Seqno(seqno.parse().unwrap()))
        };
        let mut value = Vec::new();
        encode_failover_log(line.words.iter().map(entry), &mut value);
        self.answer(Status::Success, &value)
    }

    /// Answers how far the producer is.
    fn tell_high_seqno(&mut self, status: Status, seqno: u64) -> Result<(), ConsumerError> {
        // Format, vBucket, branch, what is on disk, what there is.
        let numbers = [7, 0, seqno].map(u64::to_be_bytes);
        self.answer(status, &[&[0; 3], numbers.as_flattened()].concat())
    }

    /// The frame of the message that a line describes.
    fn encode(&self, line: &Line<'_>) -> Vec<u8> {
        let vbid = vbid(line);
        let opaque = match line.number_in("opaque") {
            Some(opaque) => u32::try_from(opaque).unwrap(),
            None => self.opaques[usize::from(vbid.0)],
        };
        let envelope = Envelope { opaque, vbid, stream_id: None, has_collections: true };
        let mut bytes = Vec::new();
        with_message(line, true, &self.numbers, |message| message.encode(envelope, &mut bytes));
        bytes
    }

    /// Carries out what has to go back.
    fn roll_back(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for rollback in self.consumer.take_rollbacks() {
            self.rollbacks.begin_rollback(rollback.vbid);
            let has_succeeded = rollback.carry_out(&self.machine.bucket, || true).is_ok();
            self.rollbacks.end_rollback(rollback.vbid);
            let how = if has_succeeded { "goes back" } else { "cannot go back" };
            lines.push(format!("vBucket {} {how} to {}", rollback.vbid.0, rollback.seqno.0));
            let now = now(&self.machine);
            self.consumer.rolled_back(rollback.vbid, has_succeeded, now, &mut self.out);
        }
        lines
    }

    /// What a replica has under a key.
    fn get(&self, line: &Line<'_>) -> String {
        let key = key(line.word(0));
        let found = self.machine.bucket.on_vbucket(vbid(line), |vbucket, now, effects| {
            vbucket.get_replica(key.as_key(), now, effects).ok()
        });
        match found.flatten() {
            Some(found) => shown(found.item.value()),
            None => "nothing".to_owned(),
        }
    }

    /// How far a replica is.
    fn place(&self, vbid: Vbid) -> String {
        let place = self.machine.bucket.on_vbucket(vbid, |vbucket, _, _| {
            let whole = if vbucket.is_whole() { "whole" } else { "not whole" };
            let (state, seqno) = (vbucket.state().name(), vbucket.high_seqno().0);
            format!("{state}, at {seqno}, {whole}")
        });
        place.unwrap_or_else(|| "there is none".to_owned())
    }

    /// What the consumer has sent since this was asked before.
    fn sent(&mut self) -> Vec<String> {
        let bytes = std::mem::take(&mut self.out);
        let (mut rest, mut lines) = (bytes.as_slice(), Vec::new());
        while let Parsed::Complete { frame, consumed } = Frame::parse(rest, usize::MAX) {
            rest = &rest[consumed..];
            lines.push(self.note(&frame));
        }
        assert!(rest.is_empty(), "whole frames are sent");
        lines
    }

    fn note(&mut self, frame: &Frame<'_>) -> String {
        let header = frame.header;
        let opcode = Opcode::from_byte(header.opcode).unwrap();
        if !header.magic.is_client_request() {
            let status = Status::from_code(header.vbucket_or_status).unwrap();
            return format!("answers {} {}", opcode.name(), status.name());
        }
        let vbid = header.vbucket_or_status;
        if opcode == Opcode::DcpStreamReq {
            self.opaques[usize::from(vbid)] = header.opaque;
        }
        // Nobody answers these.
        if !matches!(opcode, Opcode::DcpBufferAck | Opcode::DcpSeqnoAcknowledged) {
            let (key, value) = (frame.key.to_vec(), frame.value.to_vec());
            self.asked.push_back(Asked { header, key, value });
        }
        let stream = if vbid == 0 { String::new() } else { format!("vb={vbid} ") };
        let opaque =
            if header.opaque == 0 { String::new() } else { format!(" opaque={}", header.opaque) };
        match Message::parse(frame) {
            Ok(message) => {
                let shown = shown_message(&message, true, &mut self.numbers);
                format!("{stream}{shown}{opaque}")
            }
            Err(_) if matches!(opcode, Opcode::SaslAuth | Opcode::SaslStep) => {
                format!("{} {}", opcode.name(), frame.key.escape_ascii())
            }
            Err(_) => {
                let key = frame.key.escape_ascii();
                format!("{stream}{} {key} value={}{opaque}", opcode.name(), shown(frame.value))
            }
        }
    }
}

fn vbid(line: &Line<'_>) -> Vbid {
    Vbid(u16::try_from(line.number_in("vb").unwrap_or(0)).unwrap())
}

fn now(machine: &Machine) -> Now {
    Now { monotonic: machine.clock.now(), wall: machine.clock.wall_time() }
}
