//! The stream between the nodes.

use std::collections::VecDeque;

use document::{FailoverEntry, Seqno};
use protocol::dcp::{Message, StreamFlags, StreamRequest};
use protocol::{Frame, Opcode, Parsed, Status};
use replication::Answer;
use vbucket::ReceiveError;

use super::acknowledged::Lost;
use super::client::{heard, open};
use super::receive::receive;
use super::{COLLECTIONS, Run};
use crate::consumer::Consumer;
use crate::support::{Machine, VBID};

/// How often a stream is asked for.
const ATTEMPTS_MAX: usize = 100;

/// What a replica receives by.
pub(super) struct Link {
    consumer: Consumer,
    /// Messages that are on their way.
    under_way: VecDeque<Vec<u8>>,
    /// What the replica has said that it holds.
    acknowledged: Seqno,
    /// The replica has no place any more: it gets what is on its way, and is not heard.
    pub(super) is_cut: bool,
}

impl Link {
    fn new(consumer: Consumer) -> Self {
        Self { consumer, under_way: VecDeque::new(), acknowledged: Seqno(0), is_cut: false }
    }

    /// What comes next at the replica.
    fn take(&mut self, source: &Machine) -> Option<Vec<u8>> {
        self.under_way.pop_front().or_else(|| self.send(source))
    }

    fn send(&mut self, source: &Machine) -> Option<Vec<u8>> {
        if self.is_cut {
            return None;
        }
        let bytes = self.consumer.take_bytes(source, 1);
        (!bytes.is_empty()).then_some(bytes)
    }
}

impl Run {
    /// The replica asks for its stream anew, if it has a place.
    pub(super) fn follow(&mut self) {
        if self.is_given_up {
            return;
        }
        let mut link = open(self.source(), "link", COLLECTIONS);
        for (key, value) in [
            ("enable_sync_writes", "true"),
            ("consumer_name", "other"),
            ("max_marker_version", "2.2"),
        ] {
            assert_eq!(link.control(self.source(), key, value), Answer::Done);
        }
        let mut entry = 0;
        for _ in 0..ATTEMPTS_MAX {
            let mut place = None;
            self.target().bucket.with_vbucket(VBID, |vbucket| {
                place = Some((vbucket.stream_position(), vbucket.failover_entries().to_vec()));
            });
            let (position, entries) = place.unwrap();
            let uuid = if entry > 0 { entries[entry].uuid } else { position.uuid };
            let request = StreamRequest {
                flags: StreamFlags(0),
                start: position.start,
                end: Seqno(u64::MAX),
                uuid,
                snapshot_start: position.snapshot_start,
                snapshot_end: position.snapshot_end,
                value: b"",
            };
            match heard(&link.request(self.source(), VBID, request)) {
                Some(Ok(log)) => {
                    // As long as no stream is open nobody is told what is held.
                    self.nodes[1 - self.active].held.take();
                    let entry = |(uuid, seqno)| FailoverEntry { uuid, seqno };
                    let log: Vec<FailoverEntry> = log.into_iter().map(entry).collect();
                    let begun = self.target().bucket.on_vbucket(VBID, |vbucket, _, effects| {
                        vbucket.begin_receiving(position, &log, effects)
                    });
                    assert_eq!(begun, Some(Ok(())), "seed {}", self.seed);
                    self.note_stream();
                    self.link = Some(Link::new(link));
                    return;
                }
                // A newest branch that has brought nothing need not be known.
                Some(Err(Seqno(0)))
                    if entries[entry].seqno >= position.start && entry + 1 < entries.len() =>
                {
                    entry += 1;
                }
                Some(Err(seqno)) => {
                    entry = 0;
                    self.replica_rollbacks += 1;
                    self.note_loss(Lost::Everything);
                    self.nodes[1 - self.active].fill_disk(false);
                    self.target().bucket.rollback(VBID, seqno).unwrap();
                }
                None => {
                    self.nodes[self.active].fill_disk(false);
                    self.source().run();
                }
            }
        }
        panic!("seed {}: the stream is never granted", self.seed);
    }

    /// So many messages leave the active node.
    pub(super) fn send_ahead(&mut self, count: u64) {
        let source = &self.nodes[self.active].machine;
        if let Some(link) = &mut self.link {
            for _ in 0..count {
                let Some(bytes) = link.send(source) else { return };
                link.under_way.push_back(bytes);
            }
        }
    }

    /// So many messages go over.
    pub(super) fn replicate(&mut self, count: u64) {
        let Some(mut link) = self.link.take() else { return };
        for _ in 0..count {
            let source = &self.nodes[self.active].machine;
            let Some(bytes) = link.take(source) else { break };
            let Parsed::Complete { frame, .. } = Frame::parse(&bytes, usize::MAX) else {
                panic!("half a message was sent")
            };
            let message = Message::parse(&frame).unwrap();
            if message == Message::Noop {
                let (noop, status) = (Opcode::DcpNoop.byte(), Some(Status::Success));
                let (opaque, now) = (frame.header.opaque, source.clock.now());
                link.consumer.producer.on_response(noop, status, opaque, now).unwrap();
                continue;
            }
            if matches!(message, Message::StreamEnd(_)) {
                return;
            }
            let received = self
                .target()
                .bucket
                .on_vbucket(VBID, |vbucket, now, effects| receive(vbucket, &message, now, effects));
            if link.is_cut && received == Some(Err(ReceiveError::NotReceiving)) {
                return;
            }
            assert_eq!(received, Some(Ok(())), "seed {}: {message:?}", self.seed);
        }
        self.acknowledge(&mut link);
        self.link = Some(link);
    }

    /// The replica says what it was heard to hold, as `replication::consumer` does.
    fn acknowledge(&mut self, link: &mut Link) {
        let Some(seqno) = self.nodes[1 - self.active].held.take() else { return };
        if link.is_cut || seqno <= link.acknowledged {
            return;
        }
        link.acknowledged = seqno;
        let held = Message::SeqnoAcknowledged { seqno };
        let acknowledged = link.consumer.tell(self.source(), VBID, &held);
        assert_eq!(acknowledged, Answer::Nothing, "seed {}", self.seed);
    }
}
