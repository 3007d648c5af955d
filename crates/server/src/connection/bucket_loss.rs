//! What becomes of a connection whose bucket goes. Source: docs/specification/protocol.md, sections
//! 2.4 and 18.2: requests are answered, and the connection is closed.

use protocol::{Frame, Parsed, Status};
use vbucket::{Ambiguity, SyncWriteEnd};

use super::parked::{Kept, ParkedRequest};
use super::state::Connection;
use super::turn::Turn;
use crate::commands;

impl Connection {
    /// The bucket goes. What waits for it is answered, and the connection closes behind that; but
    /// one that has a bucket made or deleted hears of the end, and so does whoever has not read yet
    /// how a change of his has ended.
    pub(crate) fn lose_bucket(&mut self, turn: &mut Turn<'_>) {
        let lost = turn.parked.take_of(turn.token);
        for request in &lost {
            self.abandon(request, turn);
        }
        for (request, completed) in std::mem::take(&mut self.completed) {
            if completed.is_end_of_change() && !self.dialect.is_text() {
                self.answer_parked(&request, completed, turn);
                turn.end_waits();
            } else {
                self.abandon(&request, turn);
            }
        }
        self.producer = None;
        self.relay = None;
        self.select(None, turn);
        self.is_blocked &= self.parked_count > 0;
        self.is_closing |= self.parked_count == 0;
    }

    /// Answers what has waited. A request of lines is not: its client sees the end of the
    /// connection.
    fn abandon(&mut self, request: &ParkedRequest, turn: &mut Turn<'_>) {
        assert!(self.parked_count > 0, "what is given up has waited");
        self.parked_count -= 1;
        self.parked_bytes -= request.kept.held_bytes();
        match &request.kept {
            Kept::Answer(answer) => {
                // It has begun, and nobody here will hear of its end: it may be committed all the
                // same.
                let end = SyncWriteEnd::Ambiguous(Ambiguity::NotActive);
                commands::answer_ended(self, answer, end, turn);
            }
            Kept::Frame(bytes) => {
                let size_max = turn.shared.options.limits.packet_bytes_max;
                if let Parsed::Complete { frame, .. } = Frame::parse(bytes, size_max) {
                    let reply = self.reply(frame.header.opcode, frame.header.opaque);
                    reply.fail(turn, Status::NoBucket, "the bucket is being deleted");
                }
            }
            Kept::Line(..) | Kept::HeadOfInput => {}
        }
    }
}
