//! A connection that a manager relays, with a made-up manager and producer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use blessed::{Line, shown};
use document::{Seqno, VbUuid, Vbid, VbucketState};
use protocol::dcp::{Envelope, Message, encode_failover_log};
use protocol::response::{ResponseHead, encode_with_value};
use protocol::{Feature, FeatureSet, Frame, Header, Opcode, Parsed, Status};
use replication::{Answer, Relay, RelayOpening};
use vbucket::Now;

use super::notation::{Numbers, shown_message, state, status, with_message};
use crate::support::{Machine, key};

const RUNS_MAX: usize = 100_000;

/// Relayed connections of one bucket.
pub(super) struct RelayPlay {
    machine: Machine,
    relays: Vec<Party>,
    /// Which of them is spoken to.
    current: usize,
    numbers: Numbers,
}

/// One connection, and what its other end knows.
struct Party {
    relay: Relay,
    out: Vec<u8>,
    /// Requests that were not answered.
    asked: VecDeque<Header>,
    /// The newest stream of each of two vBuckets.
    opaques: [u32; 2],
}

impl RelayPlay {
    /// vBuckets 0 and 1 are replicas; nobody has connected.
    pub(super) fn begin() -> Self {
        let machine = Machine::new();
        for vbid in [Vbid(0), Vbid(1)] {
            machine.bucket.set_vbucket_state(vbid, VbucketState::Dead, None).unwrap();
            machine.bucket.delete_vbucket(vbid).unwrap();
            machine.bucket.set_vbucket_state(vbid, VbucketState::Replica, None).unwrap();
        }
        Self { machine, relays: Vec::new(), current: 0, numbers: Numbers::new() }
    }

    pub(super) fn say(&mut self, line: &Line<'_>) -> Vec<String> {
        let mut answers = Vec::new();
        match line.verb {
            "open" => self.open(line.word(0), line.words.get(1).map(|node| (*node).to_owned())),
            "to" => self.current = usize::try_from(line.number(0)).unwrap(),
            "hang-up" => drop(self.relays.remove(self.current)),
            "agree" => {
                let lines = self.agree(&line.words);
                answers.extend(lines.into_iter().filter(|line| !line.starts_with("control ")));
            }
            "agree-aloud" => answers.extend(self.agree(&line.words)),
            "ready" => {
                self.open("relayed", Some("n_1".to_owned()));
                self.sent();
                self.agree(&[]);
                answers.extend(self.manager(Message::AddStream { flags: 0 }, Vbid(0), 77));
                answers.extend(self.sent());
                self.grant(&["7@0"]);
            }
            "add" => {
                let flags = u32::try_from(line.number_in("flags").unwrap_or(0)).unwrap();
                answers.extend(self.manager(Message::AddStream { flags }, vbid(line), 77));
            }
            "close" => answers.extend(self.manager(Message::CloseStream, vbid(line), 78)),
            "says" => {
                let vbid = vbid(line);
                let bytes = self.encode(line, vbid, 79);
                answers.extend(self.give(&bytes));
            }
            "answer" => answers.extend(self.answer(status(line.word(0)), &line.bytes_in("value"))),
            "grant" => answers.extend(self.grant(&line.words)),
            "hear" => {
                let vbid = vbid(line);
                let opaque = match line.number_in("opaque") {
                    Some(opaque) => u32::try_from(opaque).unwrap(),
                    None => self.party().opaques[usize::from(vbid.0)],
                };
                let bytes = self.encode(line, vbid, opaque);
                answers.extend(self.give(&bytes));
            }
            "pass" => {
                let passed = Duration::from_millis(line.number(0));
                self.machine.driver.advance(passed, RUNS_MAX);
            }
            "role" => {
                let state = state(line.word(0));
                self.machine.bucket.set_vbucket_state(vbid(line), state, None).unwrap();
            }
            "get" => answers.push(self.get(line)),
            "where" => answers.push(self.place(vbid(line))),
            "status" => answers.extend(self.status()),
            _ => panic!("`{}` is no line of a case", line.text),
        }
        answers.extend(self.step());
        answers.extend(self.sent());
        answers
    }

    fn open(&mut self, name: &str, node: Option<String>) {
        let opening = RelayOpening {
            bucket: self.machine.bucket.clone(),
            hub: Arc::clone(&self.machine.hub),
            pool: self.machine.driver.pool().clone(),
            name: name.to_owned(),
            node,
            features: FeatureSet::NONE.with(Feature::Collections).with(Feature::Xattr),
            now: self.now(),
            wake: Box::new(|| {}),
        };
        let mut out = Vec::new();
        let relay = Relay::open(opening, &mut out);
        self.current = self.relays.len();
        self.relays.push(Party { relay, out, asked: VecDeque::new(), opaques: [0; 2] });
    }

    fn party(&mut self) -> &mut Party {
        &mut self.relays[self.current]
    }

    /// Does what has become due. Whether somebody is let go of is told.
    fn step(&mut self) -> Vec<String> {
        let now = self.now();
        let mut lines = Vec::new();
        for (index, Party { relay, out, .. }) in self.relays.iter_mut().enumerate() {
            let stepped = relay.step(now, out);
            lines.extend(stepped.err().map(|error| format!("{index} closes: {error}")));
            if relay.is_closing() {
                lines.push(format!("{index} closes"));
            }
        }
        lines
    }

    /// Has the manager ask for something.
    fn manager(&mut self, message: Message<'_>, vbid: Vbid, opaque: u32) -> Vec<String> {
        let mut bytes = Vec::new();
        message.encode(envelope(vbid, opaque), &mut bytes);
        self.give(&bytes)
    }

    fn give(&mut self, bytes: &[u8]) -> Vec<String> {
        let now = self.now();
        let Parsed::Complete { frame, .. } = Frame::parse(bytes, usize::MAX) else {
            panic!("a frame is whole");
        };
        let Party { relay, out, .. } = &mut self.relays[self.current];
        if !frame.header.magic.is_client_request() {
            let taken = relay.on_response(&frame, now, out);
            return taken.err().into_iter().map(|error| format!("closes: {error}")).collect();
        }
        let message = Message::parse(&frame).unwrap();
        match relay.on_message(&frame, &message, now, out) {
            Answer::Nothing => Vec::new(),
            answer => vec![format!("{answer:?}")],
        }
    }

    /// Answers the oldest request.
    fn answer(&mut self, status: Status, value: &[u8]) -> Vec<String> {
        let Header { opcode, opaque, .. } =
            self.party().asked.pop_front().expect("something was asked");
        let head = ResponseHead::plain(opcode, opaque, status, value.len());
        let mut bytes = Vec::new();
        encode_with_value(&mut bytes, &head, value);
        self.give(&bytes)
    }

    /// Answers everything until streams can be asked for. Controls at these places are refused.
    fn agree(&mut self, refused: &[&str]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut number = 0;
        loop {
            lines.extend(self.sent());
            let Some(asked) = self.party().asked.front().copied() else { return lines };
            if asked.opcode != Opcode::DcpControl.byte() {
                return lines;
            }
            let is_refused = refused.contains(&number.to_string().as_str());
            let status = if is_refused { Status::Einval } else { Status::Success };
            lines.extend(self.answer(status, &[]));
            number += 1;
        }
    }

    /// Grants the stream that was asked for first, with these branches.
    fn grant(&mut self, branches: &[&str]) -> Vec<String> {
        let entry = |word: &&str| {
            let (uuid, seqno) = word.split_once('@').expect("branch@seqno");
            (VbUuid(uuid.parse().unwrap()), Seqno(seqno.parse().unwrap()))
        };
        let mut value = Vec::new();
        encode_failover_log(branches.iter().map(entry), &mut value);
        self.answer(Status::Success, &value)
    }

    fn encode(&self, line: &Line<'_>, vbid: Vbid, opaque: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        with_message(line, true, &self.numbers, |message| {
            message.encode(envelope(vbid, opaque), &mut bytes);
        });
        bytes
    }

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

    fn place(&self, vbid: Vbid) -> String {
        let place = self.machine.bucket.on_vbucket(vbid, |vbucket, _, _| {
            format!("{}, at {}", vbucket.state().name(), vbucket.high_seqno().0)
        });
        place.unwrap_or_else(|| "there is none".to_owned())
    }

    fn status(&self) -> Vec<String> {
        let of = |status: replication::RelayStatus| {
            let streams = status.streams.iter();
            let streams = streams.map(|it| format!(" {}:{}:{}", it.vbid.0, it.state, it.received));
            format!("{} open={}{}", status.connection, status.is_open, streams.collect::<String>())
        };
        self.machine.hub.relay_status().into_iter().map(of).collect()
    }

    /// What was sent since this was asked before; who is not spoken to has its number in front.
    fn sent(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for index in 0..self.relays.len() {
            let bytes = std::mem::take(&mut self.relays[index].out);
            let mut rest = bytes.as_slice();
            while let Parsed::Complete { frame, consumed } = Frame::parse(rest, usize::MAX) {
                rest = &rest[consumed..];
                let line = self.note(index, &frame);
                lines.push(if index == self.current { line } else { format!("{index} {line}") });
            }
            assert!(rest.is_empty(), "whole frames are sent");
        }
        lines
    }

    fn note(&mut self, index: usize, frame: &Frame<'_>) -> String {
        let (header, party) = (frame.header, &mut self.relays[index]);
        let opcode = Opcode::from_byte(header.opcode).unwrap();
        if !header.magic.is_client_request() {
            let status = Status::from_code(header.vbucket_or_status).unwrap();
            let extras = match frame.extras.try_into().map(u32::from_be_bytes) {
                Ok(stream) => format!(" stream={stream}"),
                Err(_) => String::new(),
            };
            let opaque = header.opaque;
            return format!("answers {} {} opaque={opaque}{extras}", opcode.name(), status.name());
        }
        let vbid = header.vbucket_or_status;
        if opcode == Opcode::DcpStreamReq {
            party.opaques[usize::from(vbid)] = header.opaque;
        }
        // Nobody answers these.
        if !matches!(opcode, Opcode::DcpBufferAck | Opcode::DcpSeqnoAcknowledged) {
            party.asked.push_back(header);
        }
        let message = Message::parse(frame).unwrap();
        let shown = shown_message(&message, true, &mut self.numbers);
        let stream = if vbid == 0 { String::new() } else { format!("vb={vbid} ") };
        let opaque =
            if header.opaque == 0 { String::new() } else { format!(" opaque={}", header.opaque) };
        format!("{stream}{shown}{opaque}")
    }

    fn now(&self) -> Now {
        Now { monotonic: self.machine.clock.now(), wall: self.machine.clock.wall_time() }
    }
}

fn envelope(vbid: Vbid, opaque: u32) -> Envelope {
    Envelope { opaque, vbid, stream_id: None, has_collections: true }
}

fn vbid(line: &Line<'_>) -> Vbid {
    Vbid(u16::try_from(line.number_in("vb").unwrap_or(0)).unwrap())
}
