//! Producers of a bucket, and what consumers say to them.

use std::time::Duration;

use blessed::{Line, bytes_of};
use bucket::{BucketConfig, BucketType, Incoming, Persistence, Write};
use document::{ItemMeta, Key, ManifestEdit, Seqno, Vbid};
use protocol::dcp::{Envelope, Message, OpenFlags, parse_failover_log};
use protocol::{Feature, FeatureSet, Frame, Parsed};
use replication::{Answer, MessageSink, Opening, Producer};

use super::notation::{Numbers, level, opcode, shown_message, state, status, with_message};
use crate::consumer::Room;
use crate::support::{Machine, config, key};

/// A bucket and its producers.
pub(super) struct ProducerPlay {
    config: BucketConfig,
    machine: Option<Machine>,
    peers: Vec<Peer>,
    /// Whose consumer speaks.
    current: usize,
    /// Room of a turn of sending, in bytes.
    bytes_max: usize,
    numbers: Numbers,
}

struct Peer {
    producer: Producer,
    has_collections: bool,
    /// Its end was told.
    is_closed: bool,
}

impl Default for ProducerPlay {
    fn default() -> Self {
        Self {
            config: config(),
            machine: None,
            peers: Vec::new(),
            current: 0,
            bytes_max: usize::MAX,
            numbers: Numbers::new(),
        }
    }
}

impl ProducerPlay {
    pub(super) fn say(&mut self, line: &Line<'_>) -> Vec<String> {
        let mut answers = Vec::new();
        match line.verb {
            "bucket" => {
                self.configure(line);
                return answers;
            }
            "open" => self.open(line),
            "to" => self.current = usize::try_from(line.number(0)).unwrap(),
            "tell" => answers.extend(self.tell(line)),
            "answer" => answers.extend(self.answer(line)),
            "room" => self.bytes_max = usize::try_from(line.number(0)).unwrap_or(usize::MAX),
            "run" => self.machine().run(),
            "pass" => {
                let time = Duration::from_millis(line.number(0));
                self.machine().driver.advance(time, 100_000);
            }
            "drop" => {
                let producer = self.peers.remove(self.current);
                drop(producer);
            }
            _ => answers.extend(self.act_on_bucket(line)),
        }
        answers.extend(self.sent());
        answers
    }

    fn configure(&mut self, line: &Line<'_>) {
        for word in &line.words {
            match *word {
                "ephemeral" => self.config.bucket_type = Some(BucketType::Ephemeral),
                "files" => self.config.persistence = Persistence::Files,
                _ => panic!("`{word}` is nothing that a bucket can be"),
            }
        }
    }

    fn machine(&mut self) -> &mut Machine {
        self.machine.get_or_insert_with(|| Machine::with(self.config.clone()))
    }

    /// What happens to the vBucket, vBucket 0 unless it is said.
    fn act_on_bucket(&mut self, line: &Line<'_>) -> Option<String> {
        line.allow(&["vb", "expiry", "flags", "level", "nodes", "collection", "scope", "ttl"]);
        let vbid = vbid(line);
        let value = line.words.get(1).map(|value| bytes_of(value)).unwrap_or_default();
        match line.verb {
            "set" => {
                let number = |name| u32::try_from(line.number_in(name).unwrap_or(0)).unwrap();
                let (expiry, flags) = (number("expiry"), number("flags").to_be_bytes());
                let meta = ItemMeta { expiry, flags, ..ItemMeta::default() };
                let collection = u8::try_from(number("collection")).unwrap();
                let key = [&[collection][..], line.word(0).as_bytes()].concat();
                let key = Key::from_encoded(&key).unwrap();
                let set = Write::set(vbid, key, Incoming::plain(&value));
                self.machine().write(Write { meta, ..set });
            }
            "delete" => {
                self.machine().delete(line.word(0));
            }
            "make" | "unmake" | "change" => {
                let max_ttl = line.number_in("ttl").map(|ttl| u32::try_from(ttl).unwrap());
                let (scope, history) = (line.field("scope").unwrap_or("_default"), false);
                let edit = match (line.verb, line.words.first().copied()) {
                    ("make", None) => ManifestEdit::CreateScope { scope },
                    ("make", Some(collection)) => {
                        ManifestEdit::CreateCollection { scope, collection, max_ttl, history }
                    }
                    ("unmake", None) => ManifestEdit::DropScope { scope },
                    ("unmake", Some(collection)) => {
                        ManifestEdit::DropCollection { scope, collection }
                    }
                    (_, collection) => {
                        let (collection, history) = (collection.unwrap(), None);
                        let max_ttl = max_ttl.map(Some);
                        ManifestEdit::ChangeCollection { scope, collection, max_ttl, history }
                    }
                };
                self.machine().bucket.edit_manifest(edit).unwrap();
            }
            "touch" => {
                let key = key(line.word(0));
                let machine = self.machine();
                let found = machine.bucket.get(&mut bucket::Session::default(), vbid, key.as_key());
                return Some(if found.is_ok() { "found" } else { "not found" }.to_owned());
            }
            "durable" => {
                let level = level(line.number_in("level").unwrap_or(1));
                let is_begun = self.machine().set_durable(line.word(0), &value, level);
                assert!(is_begun, "`{}` is under way", line.text);
            }
            "role" => {
                let node = |name: &str| (name != "nobody").then(|| name.to_owned());
                let chain =
                    line.field("nodes").map(|nodes| vec![nodes.split(',').map(node).collect()]);
                let state = state(line.word(0));
                self.machine().bucket.set_vbucket_state(vbid, state, chain).unwrap();
            }
            "remove" => self.machine().bucket.delete_vbucket(vbid).unwrap(),
            "committed" => {
                let committed = self.machine().committed.take();
                let seqnos = committed.iter().map(|(_, Seqno(seqno))| seqno.to_string());
                return Some(seqnos.collect::<Vec<_>>().join(" "));
            }
            _ => panic!("`{}` is no line of a case", line.text),
        }
        None
    }

    fn open(&mut self, line: &Line<'_>) {
        line.allow(&["flags"]);
        let features = line.words[1..].iter().map(|word| feature(word));
        let features: FeatureSet = features.collect();
        let machine = self.machine();
        let producer = Producer::open(Opening {
            bucket: machine.bucket.clone(),
            hub: machine.hub.clone(),
            pool: machine.driver.pool().clone(),
            name: line.word(0).to_owned(),
            may_be_nodes: true,
            flags: OpenFlags(u32::try_from(line.number_in("flags").unwrap_or(1)).unwrap()),
            features,
            now: machine.clock.now(),
            wake: Box::new(|| {}),
        })
        .expect("a node takes any name");
        let has_collections = features.contains(Feature::Collections);
        self.current = self.peers.len();
        self.peers.push(Peer { producer, has_collections, is_closed: false });
    }

    fn tell(&mut self, line: &Line<'_>) -> Option<String> {
        let now = self.machine().clock.now();
        let peer = &mut self.peers[self.current];
        let vbid = vbid(line);
        let opaque = line.number_in("opaque").unwrap_or_else(|| 100 + u64::from(vbid.0));
        let envelope = Envelope {
            opaque: u32::try_from(opaque).unwrap(),
            vbid,
            stream_id: line.number_in("sid").map(|id| u16::try_from(id).unwrap()),
            has_collections: peer.has_collections,
        };
        let (producer, has_collections) = (&mut peer.producer, peer.has_collections);
        let answer = with_message(line, has_collections, &self.numbers, |message| {
            producer.on_message(envelope, message, now)
        });
        Some(match answer {
            Answer::Nothing => return None,
            Answer::Done => "done".to_owned(),
            Answer::Value(value) => match parse_failover_log(&value) {
                Some(log) => format!("log {}", self.numbers.log(&log)),
                None => panic!("an answer has a log: {value:x?}"),
            },
            Answer::Rollback(seqno) => format!("rollback to {}", seqno.0),
            Answer::Fail(status, "") => status.name().to_owned(),
            Answer::Fail(status, context) => format!("{}: {context}", status.name()),
            Answer::UnknownCollection => "there is no such collection".to_owned(),
            Answer::UnknownScope => "there is no such scope".to_owned(),
            Answer::Close(why) => {
                self.peers[self.current].is_closed = true;
                format!("closes: {why}")
            }
        })
    }

    /// The consumer answers to something that was sent.
    fn answer(&mut self, line: &Line<'_>) -> Option<String> {
        let now = self.machine().clock.now();
        let opaque = u32::try_from(line.number_in("opaque").unwrap_or(100)).unwrap();
        let (opcode, status) = (opcode(line.word(0)).byte(), Some(status(line.word(1))));
        let peer = &mut self.peers[self.current];
        let why = peer.producer.on_response(opcode, status, opaque, now).err()?;
        peer.is_closed = true;
        Some(format!("closes: {why}"))
    }

    /// One turn of sending of each producer. What does not come from the one whose consumer speaks
    /// has its number before it.
    fn sent(&mut self) -> Vec<String> {
        let Some(machine) = &mut self.machine else { return Vec::new() };
        let now = machine.clock.now();
        let mut lines = Vec::new();
        for (index, peer) in self.peers.iter_mut().enumerate() {
            if peer.is_closed {
                continue;
            }
            let mut room = Room::default();
            room.bytes_max = self.bytes_max;
            peer.producer.step(&mut room, now);
            let bytes = std::mem::take(room.buffer());
            let mut sent = shown_messages(&bytes, peer.has_collections, &mut self.numbers);
            if peer.producer.is_closing() {
                peer.is_closed = true;
                sent.push("closes".to_owned());
            }
            let is_current = index == self.current;
            let numbered =
                |line: String| if is_current { line } else { format!("[{index}] {line}") };
            lines.extend(sent.into_iter().map(numbered));
        }
        lines
    }
}

fn shown_messages(mut bytes: &[u8], has_collections: bool, numbers: &mut Numbers) -> Vec<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let Parsed::Complete { frame, consumed } = Frame::parse(bytes, usize::MAX) else {
            panic!("half a message was sent")
        };
        bytes = &bytes[consumed..];
        let message = Message::parse(&frame).unwrap();
        let vbid = frame.header.vbucket_or_status;
        let stream = if vbid == 0 { String::new() } else { format!("vb={vbid} ") };
        let id = match frame.framing_extras {
            [] => String::new(),
            [_, id @ ..] => format!("sid={} ", u16::from_be_bytes(id.try_into().unwrap())),
        };
        let shown = shown_message(&message, has_collections, numbers);
        let opaque = match message {
            Message::Noop => format!(" opaque={}", frame.header.opaque),
            _ => {
                assert!(frame.header.opaque != 0, "a stream has an opaque: {message:?}");
                String::new()
            }
        };
        lines.push(format!("{stream}{id}{shown}{opaque}"));
    }
    lines
}

fn vbid(line: &Line<'_>) -> Vbid {
    Vbid(u16::try_from(line.number_in("vb").unwrap_or(0)).unwrap())
}

fn feature(word: &str) -> Feature {
    let known = Feature::ALL.iter().find(|feature| format!("{feature:?}") == word);
    *known.unwrap_or_else(|| panic!("`{word}` is no feature"))
}
