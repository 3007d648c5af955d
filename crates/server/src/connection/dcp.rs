//! A connection of replication: what its streams send, and what is answered to that.

use document::Item;
use platform::redaction::UserData;
use protocol::{Frame, Status};
use replication::MessageSink;

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
    /// Sends what streams have, as far as there is room in this turn.
    pub(crate) fn send_streams(&mut self, turn: &mut Turn<'_>) {
        let Some(producer) = &mut self.producer else { return };
        if self.is_closing {
            return;
        }
        let now = turn.shared.clock.now();
        let (unsent_bytes, unsent_bytes_max) = (turn.unsent_bytes, turn.unsent_bytes_max);
        let mut room = Room { output: turn.output, unsent_bytes, unsent_bytes_max };
        producer.step(&mut room, now);
        self.is_closing |= producer.is_closing();
    }

    /// Whether the peer is a node that holds durable writes.
    pub(crate) fn feeds_replica(&self) -> bool {
        self.producer.as_ref().is_some_and(|producer| producer.feeds_replica())
    }

    /// An answer has come to something that a stream sent.
    pub(super) fn on_stream_response(&mut self, frame: &Frame<'_>, turn: &Turn<'_>) {
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
