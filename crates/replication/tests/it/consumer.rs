//! A consumer that believes nothing: it checks every message against the rules.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use document::key::encode_collection;
use document::{CollectionId, Item, Seqno, VbUuid, Vbid, VbucketState};
use protocol::dcp::{
    EndReason, Envelope, Marker, MarkerFlags, Message, OpenFlags, StreamFlags, StreamRequest,
};
use protocol::{Feature, FeatureSet, Frame, Opcode, Parsed, Status};
use replication::{Answer, MessageSink, Opening, Producer};

use crate::support::Machine;

/// The number of the event.
const COLLECTION_DROPPED: u32 = 1;

/// Room for messages.
#[derive(Default)]
pub(crate) struct Room {
    bytes: Vec<u8>,
    /// Bytes after which there is none.
    pub(crate) bytes_max: usize,
}

impl MessageSink for Room {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn push_value(&mut self, item: Item) {
        self.bytes.extend_from_slice(item.value());
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= self.bytes_max
    }
}

pub(crate) struct Consumer {
    pub(crate) producer: Producer,
    pub(crate) wakes: Arc<AtomicUsize>,
    room: Room,
    pub(crate) streams: BTreeMap<Vbid, Received>,
    /// Bytes by the rule of flow control that were received since the last acknowledgement.
    pub(crate) unacked_bytes: usize,
    pub(crate) noops: Vec<u32>,
}

/// What has come of a vBucket.
#[derive(Default)]
pub(crate) struct Received {
    /// Live documents: value and seqno.
    pub(crate) documents: BTreeMap<Vec<u8>, (Vec<u8>, Seqno)>,
    pub(crate) markers: Vec<Marker>,
    pub(crate) seqno: Seqno,
    pub(crate) end: Option<EndReason>,
    /// No marker has come yet in this stream.
    is_new: bool,
    /// A snapshot in the order of keys comes, with the last key of it.
    by_key: Option<Vec<u8>>,
    pub(crate) by_key_count: usize,
    /// A marker waits to be answered.
    owes_answer: bool,
    /// Roles that the vBucket was told to have.
    pub(crate) roles: Vec<VbucketState>,
    /// Durable writes, step by step.
    pub(crate) steps: Vec<Step>,
    /// Durable writes that have not ended: seqno and value, none of a deletion.
    prepares: BTreeMap<Vec<u8>, (Seqno, Option<Vec<u8>>)>,
    pub(crate) deletions: usize,
    pub(crate) advanced: usize,
}

/// A step of a durable write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Prepare(Seqno),
    /// Of a prepare, at a seqno of its own.
    Commit(Seqno, Seqno),
    /// The same.
    Abort(Seqno, Seqno),
}

impl Received {
    /// Whether the last snapshot has come whole.
    pub(crate) fn is_whole(&self) -> bool {
        self.markers.last().is_none_or(|marker| self.seqno >= marker.end)
    }

    /// What has to be answered now.
    fn answers(&mut self, message: &Message<'_>) -> Vec<Opcode> {
        let mut answers = Vec::new();
        if self.owes_answer && self.is_whole() {
            self.owes_answer = false;
            answers.push(Opcode::DcpSnapshotMarker);
        }
        if matches!(message, Message::SetVbucketState { .. }) {
            answers.push(Opcode::DcpSetVbucketState);
        }
        answers
    }

    fn note_key(&mut self, key: &[u8]) {
        if let Some(last) = &mut self.by_key {
            assert!(key > &**last, "keys rise");
            *last = key.to_vec();
            self.by_key_count += 1;
        }
    }

    fn note_seqno(&mut self, seqno: Seqno) {
        if self.by_key.is_some() {
            self.seqno = self.seqno.max(seqno);
            return;
        }
        let marker = self.markers.last().expect("a marker comes before items");
        assert!(seqno > self.seqno, "{seqno:?} does not rise above {:?}", self.seqno);
        assert!(marker.start <= seqno && seqno <= marker.end, "{seqno:?} is not in {marker:?}");
        self.seqno = seqno;
    }
}

impl Consumer {
    pub(crate) fn new(machine: &Machine) -> Self {
        Self::open(machine, "consumer", 0x25, &[Feature::Collections])
    }

    pub(crate) fn open(machine: &Machine, name: &str, flags: u32, features: &[Feature]) -> Self {
        let wakes = Arc::new(AtomicUsize::new(0));
        let woken = Arc::clone(&wakes);
        let features: FeatureSet = features.iter().copied().collect();
        let mut consumer = Self {
            producer: Producer::open(Opening {
                bucket: machine.bucket.clone(),
                hub: machine.hub.clone(),
                pool: machine.driver.pool().clone(),
                name: name.to_owned(),
                may_be_nodes: true,
                flags: OpenFlags(flags),
                features,
                now: machine.clock.now(),
                wake: Box::new(move || {
                    woken.fetch_add(1, Ordering::Relaxed);
                }),
            })
            .expect("a node takes any name"),
            wakes,
            room: Room { bytes: Vec::new(), bytes_max: usize::MAX },
            streams: BTreeMap::new(),
            unacked_bytes: 0,
            noops: Vec::new(),
        };
        assert_eq!(consumer.control(machine, "enable_noop", "true"), Answer::Done);
        consumer
    }

    pub(crate) fn tell(&mut self, machine: &Machine, vbid: Vbid, message: &Message<'_>) -> Answer {
        let envelope = Envelope { opaque: 100 + u32::from(vbid.0), vbid, ..Envelope::default() };
        self.producer.on_message(envelope, message, machine.clock.now())
    }

    pub(crate) fn control(&mut self, machine: &Machine, key: &str, value: &str) -> Answer {
        let message = Message::Control { key: key.as_bytes(), value: value.as_bytes() };
        self.tell(machine, Vbid(0), &message)
    }

    pub(crate) fn request(
        &mut self,
        machine: &Machine,
        vbid: Vbid,
        request: StreamRequest<'_>,
    ) -> Answer {
        let answer = self.tell(machine, vbid, &Message::StreamRequest(request));
        if matches!(answer, Answer::Value(_)) {
            let received = self.streams.entry(vbid).or_default();
            (received.end, received.seqno) = (None, request.start);
            received.is_new = true;
        }
        answer
    }

    /// Goes on after what it has, whatever that is.
    pub(crate) fn resume(&mut self, machine: &Machine, vbid: Vbid, end: u64) -> Answer {
        let seqno = self.streams.get(&vbid).map_or(Seqno(0), |received| received.seqno);
        let marker = self.streams.get(&vbid).and_then(|received| received.markers.last());
        let (snapshot_start, snapshot_end) = match marker {
            Some(marker) if seqno < marker.end && seqno >= marker.start => {
                (marker.start, marker.end)
            }
            _ => (seqno, seqno),
        };
        let mut uuid = VbUuid(0);
        machine.bucket.with_vbucket(vbid, |vbucket| uuid = vbucket.uuid());
        let request = StreamRequest {
            flags: StreamFlags(0),
            start: seqno,
            end: Seqno(end),
            uuid,
            snapshot_start,
            snapshot_end,
            value: b"",
        };
        self.request(machine, vbid, request)
    }

    /// Takes what there is, at most so many bytes at a time, so often. Returns how many messages.
    pub(crate) fn take(&mut self, machine: &Machine, bytes_max: usize, times: usize) -> usize {
        let mut count = 0;
        for _ in 0..times {
            self.room.bytes_max = bytes_max;
            self.producer.step(&mut self.room, machine.clock.now());
            let bytes = std::mem::take(&mut self.room.bytes);
            if bytes.is_empty() {
                break;
            }
            count += self.receive(machine, &bytes);
        }
        count
    }

    /// What comes next: opcode and opaque of each message, for at most so many bytes.
    pub(crate) fn take_heads(&mut self, machine: &Machine, bytes_max: usize) -> Vec<(Opcode, u32)> {
        let taken = self.take_bytes(machine, bytes_max);
        let (mut bytes, mut heads) = (taken.as_slice(), Vec::new());
        while !bytes.is_empty() {
            let Parsed::Complete { frame, consumed } = Frame::parse(bytes, usize::MAX) else {
                panic!("half a message was sent")
            };
            bytes = &bytes[consumed..];
            heads.push((Opcode::from_byte(frame.header.opcode).unwrap(), frame.header.opaque));
        }
        heads
    }

    /// The same, as it comes, for who looks into it by itself.
    pub(crate) fn take_bytes(&mut self, machine: &Machine, bytes_max: usize) -> Vec<u8> {
        let mut room = Room { bytes: Vec::new(), bytes_max };
        self.producer.step(&mut room, machine.clock.now());
        room.bytes
    }

    /// Takes everything, background tasks included, until nothing comes any more.
    pub(crate) fn take_all(&mut self, machine: &mut Machine) {
        loop {
            machine.run();
            if self.take(machine, usize::MAX, 1_000) == 0 {
                return;
            }
        }
    }

    fn receive(&mut self, machine: &Machine, mut bytes: &[u8]) -> usize {
        let mut count = 0;
        while !bytes.is_empty() {
            let Parsed::Complete { frame, consumed } = Frame::parse(bytes, usize::MAX) else {
                panic!("half a message was sent")
            };
            bytes = &bytes[consumed..];
            count += 1;
            let message = Message::parse(&frame).unwrap();
            self.unacked_bytes += message.flow_control_bytes(!frame.framing_extras.is_empty());
            if message == Message::Noop {
                self.noops.push(frame.header.opaque);
                let noop = Opcode::DcpNoop.byte();
                let (status, now) = (Some(Status::Success), machine.clock.now());
                self.producer.on_response(noop, status, frame.header.opaque, now).unwrap();
                continue;
            }
            let vbid = Vbid(frame.header.vbucket_or_status);
            let received = self.streams.get_mut(&vbid).unwrap();
            assert_eq!(received.end, None, "nothing follows an end");
            assert_eq!(frame.header.opaque, 100 + u32::from(vbid.0));
            received.apply(&message);
            let answers = received.answers(&message);
            for opcode in answers {
                let (status, now) = (Some(Status::Success), machine.clock.now());
                let opaque = frame.header.opaque;
                self.producer.on_response(opcode.byte(), status, opaque, now).unwrap();
            }
        }
        count
    }
}

impl Received {
    fn apply(&mut self, message: &Message<'_>) {
        match message {
            Message::SnapshotMarker(marker) => {
                if let Some(last) = self.markers.last() {
                    let goes_on = marker.start > last.end || !self.is_whole() || self.is_new;
                    assert!(goes_on, "{marker:?} {last:?}");
                }
                self.is_new = false;
                self.owes_answer = marker.flags.contains(MarkerFlags::ACK);
                assert!(marker.end > self.seqno, "{marker:?} has nothing new");
                self.markers.push(*marker);
            }
            Message::OsoSnapshot { is_start: true } => self.by_key = Some(Vec::new()),
            Message::OsoSnapshot { is_start: false } => {
                assert!(self.by_key.take().is_some(), "what ends has begun");
            }
            Message::SetVbucketState { state } => self.roles.push(*state),
            Message::Mutation(document) => {
                self.note_key(document.key);
                self.note_seqno(document.seqno);
                let value = (document.value.to_vec(), document.seqno);
                self.documents.insert(document.key.to_vec(), value);
            }
            Message::Deletion(deletion) | Message::Expiration(deletion) => {
                self.note_key(deletion.key);
                self.note_seqno(deletion.seqno);
                self.documents.remove(deletion.key);
                self.deletions += 1;
            }
            Message::SeqnoAdvanced { seqno } => {
                self.note_seqno(*seqno);
                self.advanced += 1;
            }
            Message::Prepare(prepare) => {
                self.note_seqno(prepare.document.seqno);
                self.steps.push(Step::Prepare(prepare.document.seqno));
                let document = &prepare.document;
                let value = (!prepare.is_deletion).then(|| document.value.to_vec());
                self.prepares.insert(document.key.to_vec(), (document.seqno, value));
            }
            Message::Commit(commit) => {
                self.note_seqno(commit.seqno);
                self.steps.push(Step::Commit(commit.prepare, commit.seqno));
                let (prepare, value) = self.prepares.remove(commit.key).expect("it was prepared");
                assert_eq!(prepare, commit.prepare);
                match value {
                    Some(value) => {
                        self.documents.insert(commit.key.to_vec(), (value, commit.seqno));
                    }
                    None => drop(self.documents.remove(commit.key)),
                }
            }
            Message::Abort(abort) => {
                self.note_seqno(abort.seqno);
                self.steps.push(Step::Abort(abort.prepare, abort.seqno));
                self.prepares.remove(abort.key);
            }
            Message::SystemEvent(event) => {
                self.note_seqno(event.seqno);
                if event.event == COLLECTION_DROPPED {
                    let id = event.value[12..16].try_into().unwrap();
                    let prefix = encode_collection(CollectionId(u32::from_be_bytes(id)));
                    self.documents.retain(|key, _| !key.starts_with(&prefix));
                    self.prepares.retain(|key, _| !key.starts_with(&prefix));
                }
            }
            Message::StreamEnd(reason) => self.end = Some(*reason),
            other => panic!("{other:?} is not expected"),
        }
    }
}
