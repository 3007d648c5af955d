//! A connection of replication: what its streams send, and what is answered to that.

use document::{Item, Vbid};
use platform::redaction::UserData;
use protocol::dcp::Message;
use protocol::{Frame, Status};
use replication::{Answer, MessageSink, Relay, RelayOpening};
use vbucket::Now;

use super::output::{Chunk, Output};
use super::state::Connection;
use super::turn::Turn;

/// The output of a turn, as streams see it.
struct Room<'a> {
    output: &'a mut Output,
    unsent_bytes: usize,
    unsent_bytes_max: usize,
}

impl MessageSink for Room<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.output.buffer
    }

    fn push_value(&mut self, item: Item) {
        self.output.push_large(Chunk::Value(item));
    }

    fn is_full(&self) -> bool {
        self.unsent_bytes + self.output.bytes() > self.unsent_bytes_max
    }
}

impl Connection {
    /// It becomes one that receives, and says what it has to say first.
    pub(crate) fn open_relay(&mut self, opening: RelayOpening, turn: &mut Turn<'_>) {
        self.relay = Some(Box::new(Relay::open(opening, &mut turn.output.buffer)));
    }

    /// A message has come on a connection that receives.
    pub(crate) fn on_relayed(
        &mut self,
        frame: &Frame<'_>,
        message: &Message<'_>,
        turn: &mut Turn<'_>,
    ) -> Answer {
        let Some(relay) = &mut self.relay else {
            return Answer::Close("the connection does not receive");
        };
        relay.on_message(frame, message, turn.now, &mut turn.output.buffer)
    }

    /// A message was refused before its stream has seen it: that ends, because what follows would
    /// leave a gap.
    pub(crate) fn lose_relayed(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) {
        if let Some(relay) = &mut self.relay {
            let vbid = Vbid(frame.header.vbucket_or_status);
            relay.lose(vbid, turn.now, &mut turn.output.buffer);
        }
    }

    /// Sends what streams have, as far as there is room in this turn.
    pub(crate) fn send_streams(&mut self, turn: &mut Turn<'_>) {
        if self.is_closing {
            return;
        }
        self.step_relay(turn);
        let Some(producer) = &mut self.producer else { return };
        let now = turn.shared.clock.now();
        let (unsent_bytes, unsent_bytes_max) = (turn.unsent_bytes, turn.unsent_bytes_max);
        let mut room = Room { output: turn.output, unsent_bytes, unsent_bytes_max };
        producer.step(&mut room, now);
        self.is_closing |= producer.is_closing();
    }

    /// Does what has become due on a connection that receives.
    fn step_relay(&mut self, turn: &mut Turn<'_>) {
        let Some(relay) = &mut self.relay else { return };
        let clock = &turn.shared.clock;
        let now = Now { monotonic: clock.now(), wall: clock.wall_time() };
        if let Err(error) = relay.step(now, &mut turn.output.buffer) {
            tracing::warn!(%error, agent = self.agent, "closing a connection of replication");
            self.is_closing = true;
        }
        self.is_closing |= relay.is_closing();
    }

    /// Whether its streams carry prepares.
    pub(crate) fn receives_prepares(&self) -> bool {
        self.producer.as_ref().is_some_and(|producer| producer.sends_prepares())
    }

    /// Whether the peer is a node that holds durable writes.
    pub(crate) fn feeds_replica(&self) -> bool {
        self.producer.as_ref().is_some_and(|producer| producer.feeds_replica())
    }

    /// An answer has come to something that a stream sent.
    pub(super) fn on_stream_response(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) {
        if let Some(relay) = &mut self.relay {
            let answered = relay.on_response(frame, turn.now, &mut turn.output.buffer);
            if let Err(error) = answered {
                tracing::warn!(%error, agent = self.agent, "closing a connection of replication");
                self.is_closing = true;
            }
            return;
        }
        let Some(producer) = &mut self.producer else { return };
        let header = &frame.header;
        let status = Status::from_code(header.vbucket_or_status);
        let now = turn.shared.clock.now();
        if let Err(why) = producer.on_response(header.opcode, status, header.opaque, now) {
            let (opcode, status) = (header.opcode, header.vbucket_or_status);
            let agent = UserData(&self.agent);
            tracing::warn!(opcode, status, %agent, "closing a connection: {why}");
            self.is_closing = true;
        }
    }
}
