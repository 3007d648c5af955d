//! A consumer whose connection a manager has opened and relays: the manager says which streams
//! there are, hears what becomes of them, and passes everything else on to a producer. Source:
//! docs/specification/protocol.md, sections 20.14 and 20.15.

use std::sync::Arc;
use std::time::Duration;

use bucket::Bucket;
use document::{Vbid, VbucketState};
use protocol::dcp::StreamFlags;
use protocol::response::{self, ResponseHead};
use protocol::{FeatureSet, Frame, Opcode, Status};
use vbucket::{Now, ReceiveError};

use super::Consumer;
use super::error::ConsumerError;
use super::messages::{Batch, respond};
use super::negotiation::Negotiation;
use super::opening::{FEATURES, Opening};
use super::reservations::Reservations;
use super::stream::{Stream, StreamState};

/// A producer behind a manager says something at least this often (`dcp_idle_timeout`).
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(360);

/// What the manager and the owner of a relayed connection have to hear.
#[derive(Default)]
pub(super) struct Relayed {
    /// Why the message that is taken now is not: it is answered.
    refusal: Option<Status>,
    /// What has become of streams that were to be added.
    added: Vec<AddedAnswer>,
    /// vBuckets that the producer hands over: what follows waits for files.
    hand_overs: Vec<HandOver>,
    /// Streams that have ended.
    ended: Vec<Vbid>,
}

/// A stream that a manager has added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    /// Of the request: its answer has it, too.
    pub(crate) opaque: u32,
    pub(crate) vbid: Vbid,
    /// How the stream is asked for.
    pub(crate) flags: StreamFlags,
}

/// The answer to a stream that was to be added.
struct AddedAnswer {
    opaque: u32,
    status: Status,
    /// Names the stream, once there is one.
    stream: u32,
}

/// The producer has a vBucket take up a role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOver {
    pub(crate) vbid: Vbid,
    /// Of the message: its answer has it, too.
    pub(crate) opaque: u32,
    pub(crate) state: VbucketState,
}

/// Why a request of the manager's is refused: what it hears, and what a person reads.
type Refused = (Status, &'static str);

impl Consumer {
    /// A connection that a manager has opened, and that has agreed on `features`: the first request
    /// is in `out`. Prepares are acknowledged under the name `node`, if it has one.
    pub(crate) fn relayed(
        bucket: Bucket,
        node: Option<&str>,
        features: FeatureSet,
        reservations: Arc<Reservations>,
        buffer_bytes: u32,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Self {
        let features = features.intersection(FEATURES);
        let negotiation = Negotiation::begin(node, buffer_bytes, features, out);
        let opening = Opening::Negotiation(negotiation);
        let consumer = Self::new(bucket, opening, reservations, buffer_bytes, now);
        Self { relayed: Some(Relayed::default()), ..consumer }
    }

    /// Adds a stream, which is answered when the producer has answered that it is asked for.
    pub(crate) fn add_stream(
        &mut self,
        added: Added,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let Added { opaque, vbid, flags } = added;
        if !flags.is_known() {
            return Err((Status::Einval, "a flag is unknown or retired"));
        }
        if flags.contains(StreamFlags::CACHE_TRANSFER) {
            return Err((Status::NotSupported, "memory is not transferred"));
        }
        if self.streams.contains_key(&vbid) {
            return Err((Status::KeyEexists, "the stream is there already"));
        }
        if self.place(vbid).is_none() {
            return Err((Status::NotMyVbucket, ""));
        }
        // The last of the checks: those before it would have to give the vBucket back.
        if !self.reservations.begin_relay(vbid) {
            let context = "the vBucket receives already: over another connection, or by the \
                           cluster's map";
            return Err((Status::KeyEexists, context));
        }
        let mut stream = Stream::new(now.monotonic).with_flags(flags);
        stream.added_by = Some(opaque);
        self.streams.insert(vbid, stream);
        self.next_request = Some(now.monotonic);
        self.request_due(now, out);
        Ok(())
    }

    /// Ends a stream. The manager has the producer end it, too.
    pub(crate) fn close_added(&mut self, vbid: Vbid) -> Result<(), Refused> {
        if !self.streams.contains_key(&vbid) {
            return Err((self.no_such_stream(), "there is no such stream"));
        }
        self.end_relayed(vbid, Status::Etmpfail);
        Ok(())
    }

    /// A stream ends by itself: what comes for its vBucket cannot be kept.
    pub(crate) fn end_added(&mut self, vbid: Vbid) {
        self.end_relayed(vbid, Status::Etmpfail);
    }

    /// Has prepares acknowledged under this name. Whether that is still possible.
    pub(crate) fn name_node(&mut self, node: &str) -> bool {
        match &mut self.opening {
            Some(Opening::Negotiation(negotiation)) => negotiation.name_node(node),
            Some(Opening::Login(_)) | None => false,
        }
    }

    /// A message of the producer's has been passed on. What does not fit is answered, and ends its
    /// stream.
    pub(crate) fn on_relayed_message(&mut self, frame: &Frame<'_>, now: Now, out: &mut Vec<u8>) {
        self.last_heard = now.monotonic;
        let mut batch = Batch::default();
        let taken = self.on_message(frame, &mut batch, now, out);
        // At once: whether a message fits is answered to that message, so none waits for others.
        self.apply(&mut batch, now, out);
        let header = &frame.header;
        let refusal = self.relayed.as_mut().and_then(|relayed| relayed.refusal.take());
        let refusal = match taken {
            Ok(()) => refusal,
            Err(error) => {
                let vbid = Vbid(header.vbucket_or_status);
                tracing::warn!(%error, vbucket = vbid.0, "a relayed message is refused");
                self.end_relayed(vbid, Status::Einval);
                Some(Status::Einval)
            }
        };
        if let (Some(status), Some(opcode)) = (refusal, Opcode::from_byte(header.opcode)) {
            respond(opcode, header.opaque, status, out);
        }
    }

    /// An answer of the producer's has been passed on. An error ends the connection.
    pub(crate) fn on_relayed_response(
        &mut self,
        frame: &Frame<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), ConsumerError> {
        self.last_heard = now.monotonic;
        self.on_frame(frame, &mut Batch::default(), now, out)
    }

    /// Answers streams that were to be added. Returns those that have ended.
    pub(crate) fn settle(&mut self, out: &mut Vec<u8>) -> Vec<Vbid> {
        let Some(relayed) = &mut self.relayed else { return Vec::new() };
        for AddedAnswer { opaque, status, stream } in relayed.added.drain(..) {
            let extras = stream.to_be_bytes();
            let head = ResponseHead::plain(Opcode::DcpAddStream.byte(), opaque, status, 0);
            response::encode(out, &ResponseHead { extras: &extras, ..head });
        }
        std::mem::take(&mut relayed.ended)
    }

    /// vBuckets that the producer hands over, once each: whoever takes them has the answer sent by
    /// [`Consumer::handed_over`].
    pub(crate) fn take_hand_overs(&mut self) -> Vec<HandOver> {
        self.relayed.as_mut().map(|it| std::mem::take(&mut it.hand_overs)).unwrap_or_default()
    }

    /// The vBucket has taken up the role, or has not.
    pub(crate) fn handed_over(opaque: u32, has_succeeded: bool, out: &mut Vec<u8>) {
        let status = if has_succeeded { Status::Success } else { Status::Etmpfail };
        respond(Opcode::DcpSetVbucketState, opaque, status, out);
    }

    /// The vBucket may have another role: a stream into one that receives no more ends.
    pub(crate) fn role_changed(&mut self, vbid: Vbid) {
        let Some(stream) = self.streams.get(&vbid) else { return };
        // One that goes back is replaced on its way, and one that is taken over becomes active.
        let is_expected = stream.is_takeover() || stream.state == StreamState::RollingBack;
        if !is_expected && self.place(vbid).is_none() {
            self.end_relayed(vbid, Status::NotMyVbucket);
        }
    }

    /// All streams end.
    pub(crate) fn end_all(&mut self) {
        while let Some((&vbid, _)) = self.streams.first_key_value() {
            self.end_relayed(vbid, Status::Etmpfail);
        }
    }

    /// A stream ends. Who waits for it hears `status`.
    pub(super) fn end_relayed(&mut self, vbid: Vbid, status: Status) {
        let (Some(stream), Some(relayed)) = (self.streams.remove(&vbid), &mut self.relayed) else {
            return;
        };
        let answer = |opaque| AddedAnswer { opaque, status, stream: stream.opaque };
        relayed.added.extend(stream.added_by.map(answer));
        relayed.ended.push(vbid);
        self.reservations.end_relay(vbid);
    }

    /// The producer has granted a stream that a manager waits for.
    pub(super) fn tell_added(&mut self, added_by: Option<u32>, has_begun: bool, stream: u32) {
        let status = if has_begun { Status::Success } else { Status::Etmpfail };
        if let Some(relayed) = &mut self.relayed {
            let answer = |opaque| AddedAnswer { opaque, status, stream };
            relayed.added.extend(added_by.map(answer));
        }
    }

    /// A message has come for no stream, or for another one than there is.
    pub(super) fn note_unread(&mut self, vbid: Vbid) {
        let status = match self.streams.contains_key(&vbid) {
            false => self.no_such_stream(),
            true if self.agreed.has_v7_statuses => Status::OpaqueNoMatch,
            true => Status::KeyEexists,
        };
        if let Some(relayed) = &mut self.relayed {
            relayed.refusal = Some(status);
        }
    }

    /// A message does not fit. Whether it is answered; where it is not, the stream is closed.
    pub(super) fn note_unfit(&mut self, error: ReceiveError) -> bool {
        let Some(relayed) = &mut self.relayed else { return false };
        relayed.refusal = Some(match error {
            ReceiveError::NotReceiving | ReceiveError::OtherPosition => Status::NotMyVbucket,
            ReceiveError::OutOfSnapshot | ReceiveError::SeqnoTooLow | ReceiveError::BadSnapshot => {
                Status::Erange
            }
            ReceiveError::NoSuchPrepare
            | ReceiveError::BadEvent
            | ReceiveError::UnexpectedPrepare => Status::Einval,
        });
        true
    }

    /// Has the owner carry out what may wait for files. Whether it does: of a connection that this
    /// node has made, the loop may wait.
    pub(super) fn leave_to_owner(&mut self, hand_over: HandOver) -> bool {
        let Some(relayed) = &mut self.relayed else { return false };
        relayed.hand_overs.push(hand_over);
        true
    }

    fn no_such_stream(&self) -> Status {
        if self.agreed.has_v7_statuses { Status::DcpStreamNotFound } else { Status::KeyEnoent }
    }
}
