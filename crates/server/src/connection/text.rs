//! Connections that speak memcached's text protocol: from bytes to requests, one after the other,
//! each answered before the next begins.
//!
//! A request that waits to be executed again stays at the head of the input. Of one that waits for
//! its end the line is parked, for its answer.

use bucket::Completion;
use document::ItemBuilder;
use document::key::KeyBuf;
use protocol::text::meta::MetaVerb;
use protocol::text::reader::{Step, Taken, TextPlace, read, read_block_end, read_line};
use protocol::text::request::{Request, TextError};
use protocol::{FrameError, Opcode};

use super::foreign::ForeignProtocol;
use super::holding::LARGE_REQUEST_BYTES_MIN;
use super::known_answer::KnownOfLine;
use super::parked::{Kept, ParkedRequest};
use super::receive::{RECEIVED_IN_PLACE_BYTES_MIN, Receiving};
use super::state::Connection;
use super::turn::Turn;
use crate::commands::text::{Executed, StoreOrder, StoredValue, complete, execute, failed};
use crate::commands::text::{no_memory, without_bucket, wrong};
use crate::completed::Completed;
use crate::statistics::count;

/// Bytes of what ends a data block.
const BLOCK_END_SIZE: usize = 2;

impl Connection {
    /// Executes what is whole at the start of `bytes`; returns how many bytes that took.
    pub(super) fn consume_text(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> usize {
        let mut consumed = 0;
        while !self.is_closing && !self.is_blocked && !turn.is_output_full() {
            let rest = &bytes[consumed..];
            let taken = match &self.receiving {
                Some(receiving) if !receiving.is_full() => None,
                Some(_) => self.take_received(rest, turn),
                None => self.take_step(rest, turn),
            };
            let Some(size) = taken else { break };
            consumed += size;
        }
        if self.is_closing { bytes.len() } else { consumed }
    }

    /// Goes on with a request whose wait is over.
    pub(super) fn finish_parked_text(
        &mut self,
        parked: &ParkedRequest,
        completed: Completed,
        turn: &mut Turn<'_>,
    ) {
        if let Kept::Line(line, known) = &parked.kept {
            let request = read_line(line).expect("a line that was carried out once is one");
            let part = self.bucket.as_ref().expect("a request of lines has its door's bucket");
            turn.begin_request();
            complete(&part.bucket, &request, &completed, *known, turn);
            self.record(&request, turn);
        } else if let Some(lines) = self.dialect.lines() {
            assert!(lines.completed.is_none(), "one request of lines waits at a time");
            lines.completed = Some(completed);
        }
        turn.end_waits();
        self.on_kept(turn);
    }

    /// Takes what `rest` begins with: so many bytes, `None` when it has to wait.
    fn take_step(&mut self, rest: &[u8], turn: &mut Turn<'_>) -> Option<usize> {
        match read(self.dialect.lines()?.place, rest) {
            Step::Incomplete => None,
            Step::Skipped(taken) => Some(self.advance(taken)),
            Step::Request { request, block, line_size, taken } => {
                let line = rest.get(..line_size)?;
                let executed = self.execute_text(&request, StoredValue::Bytes(block), turn);
                self.finish_text(&request, executed, line, taken, turn)
            }
            Step::Begun { request, line_size, block_size } => {
                self.begin_block(&request, rest, line_size, block_size, turn)
            }
            Step::Wrong { error, reply, taken, swallowed } => {
                // Either is no command, and `rest` begins with its line.
                let may_be_foreign =
                    matches!(error, TextError::UnknownCommand | TextError::LineTooLong);
                if may_be_foreign && self.is_foreign(rest, turn) {
                    return Some(rest.len());
                }
                wrong(error, reply, turn);
                // What follows may be its data block, and is not to be taken for commands.
                self.is_closing |= error == TextError::LineTooLong;
                Some(self.pass_over(taken, swallowed, rest.len()))
            }
        }
    }

    fn advance(&mut self, taken: Taken) -> usize {
        if let Some(lines) = self.dialect.lines() {
            lines.place = taken.next;
        }
        taken.size
    }

    /// Takes a step off, and what follows it and is of no use, also what is still to come of that.
    fn pass_over(&mut self, taken: Taken, swallowed: usize, arrived: usize) -> usize {
        let size = self.advance(taken);
        assert!(size <= arrived, "a step takes off what has come");
        assert_eq!(self.skipped_bytes_left, 0, "what is skipped ends before a step begins");
        let there = swallowed.min(arrived - size);
        self.skipped_bytes_left = swallowed - there;
        size + there
    }

    /// Whether what the client says is another protocol; it is told so. HTTP is refused wherever it
    /// begins: what follows its first line may be lines that a page of another site has written.
    fn is_foreign(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> bool {
        let is_known = self.dialect.lines().is_none_or(|lines| lines.is_known);
        let is_refused = match ForeignProtocol::recognize(bytes) {
            ForeignProtocol::Http => true,
            ForeignProtocol::Redis => !is_known,
            _ => false,
        };
        if !is_refused {
            return false;
        }
        let first = bytes.first().copied().unwrap_or_default();
        self.refuse(FrameError::UnknownMagic(first), bytes, turn);
        true
    }

    fn execute_text(
        &mut self,
        request: &Request<'_>,
        value: StoredValue<'_>,
        turn: &mut Turn<'_>,
    ) -> Executed {
        turn.begin_request();
        let completed = self.dialect.lines().and_then(|lines| {
            lines.is_known = true;
            lines.completed.take()
        });
        match completed {
            None => {}
            Some(Completed::Bucket(Completion::Retry(fetched))) => turn.session.fetched = fetched,
            Some(completed) => return failed(request, &completed, turn),
        }
        let Some(part) = self.bucket.clone() else { return without_bucket(turn) };
        if matches!(request, Request::Flush(..)) && part.flush_enabled() {
            self.note_order(Opcode::Flush.name(), &[], None, turn);
        }
        let executed = execute(&part, request, value, turn);
        // The command may have ended before it came to its document.
        turn.session.fetched = None;
        executed
    }

    /// Records what a request took, and parks it or closes behind it when that is what becomes of
    /// it. Returns how many bytes are dealt with.
    fn finish_text(
        &mut self,
        request: &Request<'_>,
        executed: Executed,
        line: &[u8],
        taken: Taken,
        turn: &mut Turn<'_>,
    ) -> Option<usize> {
        let mut taken = taken;
        match executed {
            Executed::Waits => {
                self.park_text(Kept::HeadOfInput, turn);
                return None;
            }
            Executed::Ordered => {
                self.park_text(Kept::Line(line.to_vec(), KnownOfLine::Nothing), turn);
            }
            Executed::Begun(known) => {
                self.park_text(Kept::Line(line.to_vec(), known), turn);
            }
            Executed::Answered => self.record(request, turn),
            Executed::Failed => {
                self.record(request, turn);
                if matches!(taken.next, TextPlace::Keys(_)) {
                    taken.next = TextPlace::RestOfLine;
                }
            }
            Executed::Close => self.is_closing = true,
        }
        Some(self.advance(taken))
    }

    fn park_text(&mut self, kept: Kept, turn: &mut Turn<'_>) {
        assert_eq!(self.parked_count, 0, "requests of lines are answered one after the other");
        count(&turn.bucket.commands.parked_requests);
        self.parked_count += 1;
        self.parked_bytes += kept.held_bytes();
        self.is_blocked = true;
        let parked = turn.parked_request(kept);
        turn.parked.park(turn.session.waiter, parked);
    }

    /// Sees to it that the rest of a data block comes: a large one goes straight to its place.
    fn begin_block(
        &mut self,
        request: &Request<'_>,
        rest: &[u8],
        line_size: usize,
        block_size: usize,
        turn: &mut Turn<'_>,
    ) -> Option<usize> {
        if block_size < RECEIVED_IN_PLACE_BYTES_MIN {
            return None;
        }
        let (line, block) = rest.split_at_checked(line_size)?;
        let request_size = line_size + block_size + BLOCK_END_SIZE;
        let has_room = request_size < LARGE_REQUEST_BYTES_MIN
            || turn.shared.client_memory.has_room_for(self.holder(), request_size);
        // Before room is taken for the block, which is then passed over as it comes.
        if !has_room {
            count(&turn.counters.refused_large_requests);
            no_memory(request.reply(), turn);
            let taken = Taken { size: line_size, next: TextPlace::Line };
            return Some(self.pass_over(taken, request_size - line_size, rest.len()));
        }
        let arrived = block.get(..block_size).unwrap_or(block);
        let builder = self.text_builder_for(request, block_size, turn)?;
        self.receiving = Some(Box::new(Receiving::begin(line.to_vec(), builder, arrived)));
        Some(line_size + arrived.len())
    }

    fn text_builder_for(
        &self,
        request: &Request<'_>,
        size: usize,
        turn: &Turn<'_>,
    ) -> Option<ItemBuilder> {
        let order = StoreOrder::of(request)?;
        let key = KeyBuf::in_default_collection(order.name).ok()?;
        let bucket = &self.bucket.as_ref()?.bucket;
        let operation = bucket.operation_of(None);
        Some(ItemBuilder::with_room(key.as_key(), order.meta(bucket, turn), operation, size))
    }

    /// Executes a store whose data block has come whole, if `rest` ends the block.
    fn take_received(&mut self, rest: &[u8], turn: &mut Turn<'_>) -> Option<usize> {
        let reply = read_line(&self.receiving.as_ref()?.head)?.reply();
        let taken = match read_block_end(rest, reply) {
            Step::Skipped(taken) => taken,
            Step::Wrong { error, taken, .. } => {
                self.receiving = None;
                wrong(error, reply, turn);
                return Some(self.advance(taken));
            }
            _ => return None,
        };
        let Receiving { head, builder, filled } = *self.receiving.take()?;
        let request = read_line(&head)?;
        let mut place = Some(builder);
        let executed = self.execute_text(&request, StoredValue::Built(&mut place), turn);
        if executed == Executed::Waits {
            let builder = place.expect("a store that waits has not given its value away");
            self.park_text(Kept::HeadOfInput, turn);
            self.receiving = Some(Box::new(Receiving { head, builder, filled }));
            return None;
        }
        self.finish_text(&request, executed, &head, taken, turn)
    }
}

impl Connection {
    /// Counts a request that has been answered, and records how long it took.
    fn record(&self, request: &Request<'_>, turn: &mut Turn<'_>) {
        if !matches!(request, Request::EndOfKeys) {
            count(&turn.bucket.commands.cmd_total);
        }
        if let Some(opcode) = timed_as(request) {
            self.record_duration(opcode.byte(), &[], turn);
        }
    }
}

/// The binary command that a request is timed with.
fn timed_as(request: &Request<'_>) -> Option<Opcode> {
    match request {
        Request::Get(..) => Some(Opcode::Get),
        Request::Store(_) => Some(Opcode::Set),
        Request::Delete(..) => Some(Opcode::Delete),
        Request::Touch(..) => Some(Opcode::Touch),
        Request::Count(_) => Some(Opcode::Increment),
        Request::Stats(_) => Some(Opcode::Stat),
        Request::Meta(meta) => match meta.verb {
            MetaVerb::Get | MetaVerb::Debug => Some(Opcode::Get),
            MetaVerb::Store => Some(Opcode::Set),
            MetaVerb::Delete => Some(Opcode::Delete),
            MetaVerb::Count => Some(Opcode::Increment),
        },
        _ => None,
    }
}
