//! The stream between the nodes.

use document::{FailoverEntry, Seqno};
use protocol::dcp::{Message, StreamFlags, StreamRequest};
use protocol::{Frame, Opcode, Parsed, Status};
use replication::Answer;

use super::acknowledged::Lost;
use super::client::{heard, open};
use super::receive::receive;
use super::{COLLECTIONS, Run};
use crate::support::VBID;

impl Run {
    /// The replica asks for its stream anew.
    pub(super) fn follow(&mut self) {
        let mut link = open(self.source(), "link", COLLECTIONS);
        for (key, value) in [
            ("enable_sync_writes", "true"),
            ("consumer_name", "other"),
            ("max_marker_version", "2.2"),
        ] {
            assert_eq!(link.control(self.source(), key, value), Answer::Done);
        }
        let mut entry = 0;
        loop {
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
                    let entry = |(uuid, seqno)| FailoverEntry { uuid, seqno };
                    let log: Vec<FailoverEntry> = log.into_iter().map(entry).collect();
                    let begun = self.target().bucket.on_vbucket(VBID, |vbucket, _, effects| {
                        vbucket.begin_receiving(position, &log, effects)
                    });
                    assert_eq!(begun, Some(Ok(())), "seed {}", self.seed);
                    self.note_stream();
                    self.link = Some(link);
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
                    self.target().bucket.rollback(VBID, seqno).unwrap();
                }
                None => self.source().run(),
            }
        }
    }

    /// So many messages go over.
    pub(super) fn replicate(&mut self, count: u64) {
        let Some(mut link) = self.link.take() else { return };
        for _ in 0..count {
            let source = &self.nodes[self.active].machine;
            let bytes = link.take_bytes(source, 1);
            let Parsed::Complete { frame, .. } = Frame::parse(&bytes, usize::MAX) else { break };
            let message = Message::parse(&frame).unwrap();
            if message == Message::Noop {
                let (noop, status) = (Opcode::DcpNoop.byte(), Some(Status::Success));
                let opaque = frame.header.opaque;
                link.producer.on_response(noop, status, opaque, source.clock.now()).unwrap();
                continue;
            }
            if matches!(message, Message::StreamEnd(_)) {
                return;
            }
            let received = self
                .target()
                .bucket
                .on_vbucket(VBID, |vbucket, now, effects| receive(vbucket, &message, now, effects));
            assert_eq!(received, Some(Ok(())), "seed {}: {message:?}", self.seed);
        }
        let mut seqno = Seqno(0);
        self.target().bucket.with_vbucket(VBID, |vbucket| seqno = vbucket.high_prepared_seqno());
        let held = Message::SeqnoAcknowledged { seqno };
        let acknowledged = link.tell(self.source(), VBID, &held);
        assert_eq!(acknowledged, Answer::Nothing, "seed {}", self.seed);
        self.link = Some(link);
    }
}
