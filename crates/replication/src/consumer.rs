//! Receiving replicas: the consumer's side of one connection to one node. Bytes in, bytes out; no
//! socket, no thread. Source: docs/specification/protocol.md, sections 20 and 21.

mod changes;
mod error;
mod flow;
mod messages;
mod names;
mod negotiation;
mod opening;
mod relayed;
mod requests;
mod reservations;
mod rollbacks;
mod stream;
mod unfit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bucket::Bucket;
use document::{Seqno, Vbid};
use platform::Instant;
use protocol::client::Response;
use protocol::dcp::{Envelope, Message, StreamFlags};
use protocol::{Feature, Frame, Parsed};
use vbucket::Now;

pub use error::ConsumerError;
pub use names::ConsumerNames;
pub(crate) use relayed::{Added, HandOver};
pub use reservations::Reservations;
pub use rollbacks::Rollback;

use flow::FlowControl;
use messages::Batch;
use negotiation::Agreed;
use opening::Opening;
use relayed::Relayed;
use stream::{Stream, StreamState};

/// A frame of a producer is at most this large: a document and its metadata.
const FRAME_BYTES_MAX: usize = 30 << 20;
/// A producer says something at least every second.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// What a stream is doing, for statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    /// The vBucket.
    pub vbid: Vbid,
    /// In a word: `waiting`, `pending`, `rolling-back` or `reading`.
    pub state: &'static str,
    /// Names the stream on its connection.
    pub opaque: u32,
    /// Messages received.
    pub received: u64,
    /// The highest prepare that was acknowledged.
    pub acknowledged: Seqno,
}

/// One connection to a producer.
pub struct Consumer {
    bucket: Bucket,
    /// What is still to be agreed on before streams are asked for.
    opening: Option<Opening>,
    agreed: Agreed,
    /// What its manager has to hear, where one relays it and says which streams there are.
    relayed: Option<Relayed>,
    streams: BTreeMap<Vbid, Stream>,
    /// Which vBuckets are not to be asked for at the moment.
    reservations: Arc<Reservations>,
    /// What has to go back, and nobody has taken yet.
    wanted_rollbacks: Vec<Rollback>,
    /// When the next stream that waits is to be asked for.
    next_request: Option<Instant>,
    next_opaque: u32,
    flow: FlowControl,
    last_heard: Instant,
}

impl Consumer {
    /// A connection that has just been made: the first request is in `out`. `buffer_bytes` is what
    /// the producer may send ahead.
    pub fn begin(
        bucket: Bucket,
        names: ConsumerNames,
        reservations: Arc<Reservations>,
        buffer_bytes: u32,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Self {
        let opening = Opening::begin(names, buffer_bytes, out);
        Self::new(bucket, opening, reservations, buffer_bytes, now)
    }

    fn new(
        bucket: Bucket,
        opening: Opening,
        reservations: Arc<Reservations>,
        buffer_bytes: u32,
        now: Now,
    ) -> Self {
        Self {
            bucket,
            opening: Some(opening),
            agreed: Agreed::default(),
            relayed: None,
            streams: BTreeMap::new(),
            reservations,
            wanted_rollbacks: Vec::new(),
            next_request: None,
            next_opaque: 1,
            flow: FlowControl::new(buffer_bytes, now.monotonic),
            last_heard: now.monotonic,
        }
    }

    /// The vBuckets that are to be followed: streams of others end, new ones are asked for.
    pub fn follow(&mut self, wanted: &BTreeSet<Vbid>, now: Now, out: &mut Vec<u8>) {
        let unwanted: Vec<Vbid> =
            self.streams.keys().copied().filter(|vbid| !wanted.contains(vbid)).collect();
        for vbid in unwanted {
            // Of one that waits or goes back the producer knows nothing: none is closed there.
            if let Some(stream) = self.streams.remove(&vbid)
                && !matches!(stream.state, StreamState::Waiting(_) | StreamState::RollingBack)
            {
                self.close(vbid, stream.opaque, out);
            }
        }
        for &vbid in wanted {
            self.streams.entry(vbid).or_insert_with(|| Stream::new(now.monotonic));
        }
        self.next_request = Some(now.monotonic);
        self.request_due(now, out);
    }

    /// The producer is to hand a vBucket over, which is pending here, or a replica that no stream
    /// follows yet: it makes the vBucket active when it has all of it.
    pub fn take_over(&mut self, vbid: Vbid, now: Now, out: &mut Vec<u8>) {
        let stream = Stream::new(now.monotonic).with_flags(StreamFlags::TAKEOVER);
        self.streams.entry(vbid).or_insert(stream);
        self.next_request = Some(now.monotonic);
        self.request_due(now, out);
    }

    /// Takes what the producer has sent, and answers. Returns how many bytes were taken: whole
    /// frames. An error ends the connection.
    pub fn on_bytes(
        &mut self,
        input: &[u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<usize, ConsumerError> {
        self.last_heard = now.monotonic;
        let mut taken = 0;
        let mut batch = Batch::default();
        loop {
            match Frame::parse(input.get(taken..).unwrap_or_default(), FRAME_BYTES_MAX) {
                Parsed::Incomplete { .. } => break,
                Parsed::Malformed(error) => return Err(ConsumerError::Frame(error)),
                Parsed::Complete { frame, consumed } => {
                    taken += consumed;
                    self.on_frame(&frame, &mut batch, now, out)?;
                }
            }
        }
        self.apply(&mut batch, now, out);
        assert!(batch.is_empty(), "what has been taken is applied before bytes are acknowledged");
        assert!(taken <= input.len(), "no more is taken than has come");
        self.acknowledge_bytes(now, out);
        Ok(taken)
    }

    fn on_frame(
        &mut self,
        frame: &Frame<'_>,
        batch: &mut Batch,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), ConsumerError> {
        let Some(response) = Response::from_frame(frame) else {
            return self.on_message(frame, batch, now, out);
        };
        // An answer may change a stream's state: what has come before it is carried out before.
        self.apply(batch, now, out);
        match &mut self.opening {
            None => {
                self.on_stream_response(&response, now, out);
                Ok(())
            }
            Some(opening) => {
                // Streams are asked for once all is agreed on: nothing is on its way before.
                if let Some(agreed) = opening.on_response(&response, out)? {
                    self.opening = None;
                    self.agreed = agreed;
                    self.request_due(now, out);
                }
                Ok(())
            }
        }
    }

    /// The vBucket holds all prepares up to `seqno`: the producer is to hear of it.
    pub fn acknowledge(&mut self, vbid: Vbid, seqno: Seqno, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(&vbid) else { return };
        // Threads carry effects out without the vBucket's lock: they come in any order.
        if stream.state == StreamState::Open && seqno > stream.acknowledged {
            stream.acknowledged = seqno;
            let envelope = self.envelope(vbid);
            Message::SeqnoAcknowledged { seqno }.encode(envelope, out);
        }
    }

    /// Does what has become due. An error ends the connection.
    pub fn on_tick(&mut self, now: Now, out: &mut Vec<u8>) -> Result<(), ConsumerError> {
        if now.monotonic >= self.last_heard.after(self.silence_max()) {
            return Err(ConsumerError::Silent);
        }
        self.request_due(now, out);
        self.acknowledge_bytes(now, out);
        Ok(())
    }

    /// When [`Consumer::on_tick`] is to be called, at the latest.
    pub fn deadline(&self, now: Now) -> Instant {
        // Before all is agreed on nothing is asked for: a time that has passed would have the loop
        // spin until then.
        let due = self.next_request.filter(|_| self.opening.is_none());
        let flow = self.flow.deadline(now.monotonic);
        let silence = self.last_heard.after(self.silence_max());
        due.into_iter().chain(flow).fold(silence, Instant::min)
    }

    fn silence_max(&self) -> Duration {
        if self.relayed.is_some() { relayed::SILENCE_MAX } else { SILENCE_MAX }
    }

    /// Whether streams can be asked for.
    pub fn is_open(&self) -> bool {
        self.opening.is_none()
    }

    /// Bytes that were received and not acknowledged yet.
    pub fn unacknowledged_bytes(&self) -> u32 {
        self.flow.taken_bytes()
    }

    /// What its streams are doing.
    pub fn status(&self) -> Vec<StreamStatus> {
        let status = |(&vbid, stream): (&Vbid, &Stream)| StreamStatus {
            vbid,
            state: match stream.state {
                StreamState::Waiting(_) => "waiting",
                StreamState::Requested(_) => "pending",
                StreamState::RollingBack => "rolling-back",
                StreamState::Open => "reading",
            },
            opaque: stream.opaque,
            received: stream.received,
            acknowledged: stream.acknowledged,
        };
        self.streams.iter().map(status).collect()
    }

    pub(crate) fn acknowledge_bytes(&mut self, now: Now, out: &mut Vec<u8>) {
        let bucket = &self.bucket;
        let has_room = || bucket.has_room_to_receive();
        if let Some(bytes) = self.flow.acknowledge(now.monotonic, has_room) {
            Message::BufferAck { bytes }.encode(Envelope::default(), out);
        }
    }

    fn close(&self, vbid: Vbid, opaque: u32, out: &mut Vec<u8>) {
        let envelope = Envelope { opaque, ..self.envelope(vbid) };
        Message::CloseStream.encode(envelope, out);
    }

    fn envelope(&self, vbid: Vbid) -> Envelope {
        Envelope {
            opaque: self.streams.get(&vbid).map_or(0, |stream| stream.opaque),
            vbid,
            stream_id: None,
            has_collections: self.agreed.features.contains(Feature::Collections),
        }
    }
}

#[cfg(test)]
mod tests;
