//! What the producer says unasked: documents, above all.

use document::{Vbid, VbucketState};
use protocol::dcp::{EndReason, MarkerFlags, Message};
use protocol::response::{self, ResponseHead};
use protocol::{Frame, Opcode, Status};
use vbucket::{Now, ReceiveError};

use super::Consumer;
use super::changes::Change;
use super::error::ConsumerError;
use super::relayed::HandOver;
use super::stream::{Stream, StreamState};
use super::unfit::Unfit;

/// Changes that are carried out under one lock, at most.
const CHANGES_MAX: usize = 64;

/// Changes to one vBucket that follow each other.
#[derive(Default)]
pub(super) struct Batch {
    vbid: Vbid,
    changes: Vec<Change>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl Consumer {
    pub(super) fn on_message(
        &mut self,
        frame: &Frame<'_>,
        batch: &mut Batch,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), ConsumerError> {
        let message =
            Message::parse(frame).map_err(|invalid| ConsumerError::Protocol(invalid.context))?;
        let (vbid, opaque) = (Vbid(frame.header.vbucket_or_status), frame.header.opaque);
        // Also of messages that are passed over: the producer counts them, and waits for room.
        self.flow.take(message.flow_control_bytes(!frame.framing_extras.is_empty()));
        if message == Message::Noop {
            respond(Opcode::DcpNoop, opaque, Status::Success, out);
            return Ok(());
        }
        // A stream that has ended here may still have something on its way.
        if !self.is_reading(vbid, opaque) {
            self.note_unread(vbid);
            return Ok(());
        }
        let change = Change::of(&message, self.agreed.features, now.wall.seconds())?;
        let marker_answer = match &message {
            Message::SnapshotMarker(marker) => Some(marker.flags.contains(MarkerFlags::ACK)),
            _ => None,
        };
        // An end and a new role, which are no changes, come behind all that was said before them.
        if self.comes_alone(vbid, marker_answer)
            || change.is_none()
            || batch.vbid != vbid
            || batch.changes.len() >= CHANGES_MAX
        {
            self.apply(batch, now, out);
            // What follows something that did not fit would leave a gap.
            if !self.is_reading(vbid, opaque) {
                return Ok(());
            }
        }
        if let Some(must_answer) = marker_answer
            && let Some(stream) = self.streams.get_mut(&vbid)
        {
            stream.must_answer_marker = must_answer;
        }
        if let Some(change) = change {
            assert!(batch.is_empty() || batch.vbid == vbid, "a batch is of one vBucket");
            batch.vbid = vbid;
            batch.changes.push(change);
            return Ok(());
        }
        match message {
            Message::StreamEnd(reason) => self.on_end(vbid, reason, now),
            Message::SetVbucketState { state } => self.on_new_state(vbid, opaque, state, out),
            _ => return Err(ConsumerError::Protocol("this is nothing that a producer says")),
        }
        Ok(())
    }

    /// Whether the stream's messages count.
    fn is_reading(&self, vbid: Vbid, opaque: u32) -> bool {
        let stream = self.streams.get(&vbid);
        stream.is_some_and(|it| it.opaque == opaque && it.state == StreamState::Open)
    }

    /// Whether the message is a marker and the one before, or this one, is to be answered: the one
    /// before is answered before this one is announced.
    fn comes_alone(&self, vbid: Vbid, marker_answer: Option<bool>) -> bool {
        let must_answer = || self.streams.get(&vbid).is_some_and(|it| it.must_answer_marker);
        marker_answer.is_some_and(|answer| answer || must_answer())
    }

    /// Carries out what has been gathered, under one lock.
    pub(super) fn apply(&mut self, batch: &mut Batch, now: Now, out: &mut Vec<u8>) {
        if batch.is_empty() {
            return;
        }
        assert!(batch.changes.len() <= CHANGES_MAX, "a vBucket is locked for so many at most");
        let vbid = batch.vbid;
        let count = batch.changes.len();
        let changes = std::mem::take(&mut batch.changes);
        // What is left after an error is dropped after the lock.
        let mut changes = changes.into_iter();
        let applied: Option<Result<bool, Box<Unfit>>> =
            self.bucket.on_vbucket(vbid, |vbucket, now, effects| {
                for change in changes.by_ref() {
                    let told = change.told();
                    change
                        .apply(vbucket, now, effects)
                        .map_err(|error| Unfit::new(error, told, vbucket))?;
                }
                Ok(vbucket.is_snapshot_whole())
            });
        let Some(stream) = self.streams.get_mut(&vbid) else { return };
        let opaque = stream.opaque;
        let unfit = match applied {
            Some(Ok(is_whole)) => {
                stream.has_received(count);
                if is_whole && std::mem::take(&mut stream.must_answer_marker) {
                    respond(Opcode::DcpSnapshotMarker, opaque, Status::Success, out);
                }
                return;
            }
            Some(Err(unfit)) => {
                unfit.log(vbid);
                unfit.error
            }
            None => ReceiveError::NotReceiving,
        };
        if !self.note_unfit(unfit) {
            self.close(vbid, opaque, out);
        }
        self.wait(vbid, now);
    }

    fn on_end(&mut self, vbid: Vbid, reason: EndReason, now: Now) {
        tracing::debug!(vbucket = vbid.0, ?reason, "a stream has ended");
        self.wait(vbid, now);
    }

    /// The producer hands the vBucket over, if that is what the stream is for: any other could make
    /// a second active vBucket.
    fn on_new_state(&mut self, vbid: Vbid, opaque: u32, state: VbucketState, out: &mut Vec<u8>) {
        let is_asked_for = self.streams.get(&vbid).is_some_and(Stream::is_takeover);
        if is_asked_for && self.leave_to_owner(HandOver { vbid, opaque, state }) {
            return;
        }
        let taken_over = is_asked_for.then(|| self.bucket.take_over(vbid, state));
        let status = match taken_over {
            None => {
                tracing::warn!(vbucket = vbid.0, "a vBucket is not taken over without being asked");
                Status::Einval
            }
            Some(Ok(())) => Status::Success,
            Some(Err(error)) => {
                tracing::warn!(%error, vbucket = vbid.0, "a vBucket was not taken over");
                Status::Etmpfail
            }
        };
        respond(Opcode::DcpSetVbucketState, opaque, status, out);
    }
}

pub(super) fn respond(opcode: Opcode, opaque: u32, status: Status, out: &mut Vec<u8>) {
    let head = ResponseHead::plain(opcode.byte(), opaque, status, 0);
    response::encode(out, &head);
}
