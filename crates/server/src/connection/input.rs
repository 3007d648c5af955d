//! From bytes to requests: parse until nothing whole is left, execute each.

use bucket::Completion;
use platform::redaction::UserData;
use protocol::{Feature, Frame, FrameError, FrameInfos, FrameLimits, Invalid, Magic, Opcode};
use protocol::{Parsed, Status, validate};

use super::foreign::{ForeignProtocol, PortKind};
use super::receive::Receiving;
use super::request::{Done, Request};
use super::state::Connection;
use super::turn::Turn;
use crate::buckets::BucketRegistry;
use crate::commands;
use crate::completed::Completed;
use crate::connection::{Kept, ParkedAnswer, ParkedRequest};
use crate::shared::Shared;
use crate::statistics::count;

/// A buffer of unexecuted input that has grown beyond this is given back once it is empty.
const INPUT_BYTES_KEPT_MAX: usize = 0;

/// How a frame was taken.
enum Step {
    /// It is dealt with.
    Next,
    /// It has to wait until requests before it have completed.
    Wait,
}

impl Shared {
    pub(super) fn frame_limits(&self) -> FrameLimits {
        FrameLimits {
            packet_size_max: self.options.limits.packet_bytes_max,
            unauthenticated_packet_size_max: self.options.limits.unauthenticated_packet_bytes_max,
        }
    }
}

impl Connection {
    /// `bytes` have arrived. Executes every whole request that need not wait; keeps the rest.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8], turn: &mut Turn<'_>) {
        let bytes = self.skip(bytes);
        if self.input.is_empty() {
            let consumed = self.consume(bytes, turn);
            self.keep(&bytes[consumed..], turn);
        } else {
            self.input.extend_from_slice(bytes);
            self.on_kept(turn);
        }
    }

    /// Goes on with what was kept: a completion has come, or a slow reader has caught up.
    pub(super) fn on_kept(&mut self, turn: &mut Turn<'_>) {
        let mut input = std::mem::take(&mut self.input);
        let consumed = self.consume(&input, turn);
        input.drain(..consumed);
        if input.is_empty() && input.capacity() > INPUT_BYTES_KEPT_MAX {
            input = Vec::new();
        }
        self.input = input;
    }

    /// The request that was parked is answered or executed again.
    pub(super) fn finish_parked(
        &mut self,
        parked: &ParkedRequest,
        completion: Completed,
        turn: &mut Turn<'_>,
    ) {
        if self.dialect.is_text() {
            self.begin_to_finish(parked, &completion, turn);
            return self.finish_parked_text(parked, completion, turn);
        }
        self.answer_parked(parked, completion, turn);
        turn.end_waits();
        self.on_kept(turn);
    }

    /// Of a request of frames: answers it, or executes it again.
    pub(super) fn answer_parked(
        &mut self,
        parked: &ParkedRequest,
        completion: Completed,
        turn: &mut Turn<'_>,
    ) {
        self.begin_to_finish(parked, &completion, turn);
        match (&parked.kept, completion) {
            (Kept::Answer(answer), Completed::Bucket(Completion::SyncWrite(end))) => {
                commands::answer_ended(self, answer, end, turn);
                count(&turn.bucket.commands.cmd_total);
                self.record_duration(answer.reply.opcode, &[], turn);
            }
            (Kept::Frame(frame), completion) => self.complete(frame, completion, turn),
            (kept, other) => panic!("{kept:?} does not end by {other:?}"),
        }
    }

    /// It does not wait any more.
    fn begin_to_finish(
        &mut self,
        parked: &ParkedRequest,
        completion: &Completed,
        turn: &mut Turn<'_>,
    ) {
        let held_bytes = parked.kept.held_bytes();
        assert!(self.parked_count > 0, "what goes on has waited");
        assert!(self.parked_bytes >= held_bytes, "what is given back was held");
        self.parked_count -= 1;
        self.parked_bytes -= held_bytes;
        // One that blocks waits alone: either it is the one that goes on, or none blocks.
        self.is_blocked = false;
        turn.resume(parked, completion);
    }

    /// Executes the frames at the start of `bytes`; returns how many bytes they took.
    fn consume(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> usize {
        self.dialect.decide(bytes);
        if self.dialect.is_text() {
            return self.consume_text(bytes, turn);
        }
        let (mut consumed, mut looked_up_to) = (0, 0);
        while !self.is_closing && !turn.is_output_full() {
            let rest = &bytes[consumed..];
            let size_max = self.frame_size_max(turn.shared.frame_limits());
            if consumed >= looked_up_to {
                looked_up_to = consumed.saturating_add(self.look_ahead(rest, size_max));
            }
            match Frame::parse(rest, size_max) {
                Parsed::Incomplete { .. } => {
                    // In this order: a value received in its place takes all its room at once.
                    if self.refuses(rest, turn) || self.begin_receiving(rest, turn) {
                        consumed = bytes.len();
                    }
                    break;
                }
                Parsed::Malformed(error) => {
                    self.refuse(error, rest, turn);
                    break;
                }
                Parsed::Complete { frame, consumed: size } => match self.take(&frame, turn) {
                    Step::Next => consumed += size,
                    Step::Wait => break,
                },
            }
        }
        assert!(consumed <= bytes.len(), "no more is executed than has come");
        if self.is_closing { bytes.len() } else { consumed }
    }

    /// Keeps what is not executed yet, with room for the whole frame that has begun.
    fn keep(&mut self, rest: &[u8], turn: &Turn<'_>) {
        if rest.is_empty() {
            return;
        }
        if self.dialect.is_text() {
            self.input.extend_from_slice(rest);
            return;
        }
        let size_max = self.frame_size_max(turn.shared.frame_limits());
        let needed = match Frame::parse(rest, size_max) {
            Parsed::Incomplete { needed_bytes } => needed_bytes.min(size_max),
            _ => rest.len(),
        };
        let room = if self.may_reserve(needed) { needed.max(rest.len()) } else { rest.len() };
        self.input.reserve_exact(room);
        self.input.extend_from_slice(rest);
    }

    /// Tells a client of another protocol so, as far as it can be told, and is done with it.
    pub(super) fn refuse(&mut self, error: FrameError, bytes: &[u8], turn: &mut Turn<'_>) {
        count(&turn.counters.malformed_frames);
        let mut protocol = "frames that cannot be";
        if matches!(error, FrameError::UnknownMagic(_)) {
            let foreign = ForeignProtocol::recognize(bytes);
            let port = if self.is_anonymous { PortKind::Memcached } else { PortKind::Data };
            turn.output.buffer.extend_from_slice(&foreign.answer(port));
            protocol = foreign.name();
        }
        if let Some(unlogged) = turn.shared.foreign_clients.passes(turn.now.monotonic) {
            let (peer, agent) = (self.peer_name(), UserData(&self.agent));
            tracing::warn!(
                ?error,
                protocol,
                peer,
                %agent,
                unlogged,
                "closing a connection that does not speak the protocol of this port"
            );
        }
        self.is_closing = true;
    }

    /// Checks a frame and executes it. Source of the order: docs/specification/protocol.md,
    /// section 3.1.
    fn take(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) -> Step {
        // The room that was found was for the request that is taken now.
        self.is_admitted = false;
        match frame.header.magic {
            Magic::ClientRequest | Magic::AltClientRequest => {}
            Magic::ServerResponse if self.is_authenticated() => return Step::Next,
            Magic::ClientResponse | Magic::AltClientResponse if self.is_of_replication() => {
                self.on_stream_response(frame, turn);
                return Step::Next;
            }
            _ => {
                count(&turn.counters.unexpected_magics);
                self.is_closing = true;
                return Step::Next;
            }
        }
        let Some(opcode) = Opcode::from_byte(frame.header.opcode) else {
            // Nothing says that it may overtake others.
            if self.parked_count > 0 {
                return Step::Wait;
            }
            count(&turn.bucket.commands.unknown_commands);
            self.fail(frame, turn, Status::UnknownCommand, "there is no such command");
            return Step::Next;
        };
        if !self.may_overtake(opcode, frame, turn) {
            return Step::Wait;
        }
        if !self.is_authenticated() && !is_for_anybody(opcode) {
            count(&turn.counters.unauthenticated_requests);
            self.fail(frame, turn, Status::Eaccess, "authenticate first");
            return Step::Next;
        }
        match self.checked(opcode, frame, turn) {
            Ok(request) => self.execute(&request, turn),
            Err(invalid) => {
                if opcode.is_dcp() {
                    self.lose_relayed(frame, turn);
                }
                self.fail(frame, turn, invalid.status, invalid.context);
            }
        }
        Step::Next
    }

    fn checked<'a>(
        &self,
        opcode: Opcode,
        frame: &Frame<'a>,
        turn: &Turn<'_>,
    ) -> Result<Request<'a>, Invalid> {
        let is_flush = matches!(opcode, Opcode::Flush | Opcode::FlushQ);
        let is_enabled_flush = is_flush && self.may_flush(&turn.shared.buckets);
        if !is_enabled_flush {
            validate::request(opcode, frame, self.features)?;
        }
        let request = request_of(opcode, frame)?;
        let is_durable = request.infos.durability.is_some();
        if is_durable && matches!(request.opcode, Opcode::Touch | Opcode::Gat) {
            let context = "this command cannot be durable; store the document instead";
            return Err(Invalid { status: Status::NotSupported, context });
        }
        Ok(request)
    }

    /// Whether FLUSH is supported. Where no bucket is selected, that is what is answered wherever
    /// it is supported by any.
    fn may_flush(&self, buckets: &BucketRegistry) -> bool {
        self.bucket.as_ref().map_or_else(|| buckets.has_flush(), |part| part.flush_enabled())
    }

    fn execute(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) {
        turn.begin_request();
        let done = self.in_named_rights(request, turn, |connection, turn| {
            if !connection.may(request, turn) {
                return Done::Answered;
            }
            commands::execute(connection, request, turn)
        });
        self.finish(request, done, turn);
    }

    /// Records what a request took, and parks it or closes behind it when it says so.
    fn finish(&mut self, request: &Request<'_>, done: Done, turn: &mut Turn<'_>) {
        match done {
            Done::Answered => {}
            Done::Close => self.is_closing = true,
            Done::Parked => {
                self.park(request, Kept::Frame(frame_bytes(&request.frame)), turn);
                return;
            }
            Done::Begun(known) => {
                let (reply, is_quiet) = (request.reply(self), request.is_quiet);
                let answer = ParkedAnswer { reply, is_quiet, known };
                self.park(request, Kept::Answer(answer), turn);
                return;
            }
        }
        // Once, however often it was executed: what is parked is counted at its end.
        count(&turn.bucket.commands.cmd_total);
        self.record_duration(request.frame.header.opcode, request.frame.key, turn);
    }

    fn park(&mut self, request: &Request<'_>, kept: Kept, turn: &mut Turn<'_>) {
        assert!(!self.is_blocked, "nothing overtakes a request that blocks");
        count(&turn.bucket.commands.parked_requests);
        self.parked_count += 1;
        self.is_blocked = !self.is_reorderable(request.opcode) || request.infos.barrier;
        self.parked_bytes += kept.held_bytes();
        let parked = turn.parked_request(kept);
        turn.parked.park(turn.session.waiter, parked);
    }

    /// Carries on with the request of a parked frame whose completion has come.
    fn complete(&mut self, frame: &[u8], completion: Completed, turn: &mut Turn<'_>) {
        let size_max = turn.shared.options.limits.packet_bytes_max;
        let parsed = Frame::parse(frame, size_max);
        let Parsed::Complete { frame, consumed } = parsed else {
            panic!("a frame that was executed once is whole: {parsed:?}");
        };
        assert_eq!(consumed, frame.header.frame_size(), "one frame is kept of one request");
        let opcode = Opcode::from_byte(frame.header.opcode).expect("a command that was executed");
        // What was let in is answered, whatever is forbidden since.
        let request = request_of(opcode, &frame).expect("a request that was understood");
        turn.begin_request();
        let has_happened = completion.is_end_of_change();
        let go_on = |connection: &mut Self, turn: &mut Turn<'_>| {
            commands::complete(connection, &request, completion, turn)
        };
        // Whoever asked for a change hears of its end, also when the user in whose name it was
        // asked for is gone by then.
        let done = match has_happened {
            true => go_on(self, turn),
            false => self.in_named_rights(&request, turn, go_on),
        };
        self.finish(&request, done, turn);
    }

    /// Executes a store whose value has been received in place.
    pub(super) fn execute_received(&mut self, receiving: Receiving, turn: &mut Turn<'_>) {
        self.is_admitted = false;
        let Receiving { head, builder, .. } = receiving;
        let size_max = turn.shared.options.limits.packet_bytes_max;
        let parsed = Frame::parse_without_value(&head, size_max);
        let Parsed::Complete { frame, .. } = parsed else {
            panic!("the head of a value that was received is whole: {parsed:?}");
        };
        let opcode = Opcode::from_byte(frame.header.opcode).expect("a store that was begun");
        let value_size = frame.header.value_size();
        assert_eq!(value_size, builder.value().len(), "the place is as large as the value");
        match self.checked(opcode, &frame, turn) {
            Ok(request) => {
                turn.begin_request();
                // In another's name it goes the way of frames, where those rights are looked up.
                if request.infos.impersonate.is_some() {
                    let frame = Frame { value: builder.value(), ..request.frame };
                    return self.execute(&Request { frame, ..request }, turn);
                }
                if !self.may(&request, turn) {
                    return self.finish(&request, Done::Answered, turn);
                }
                // Before the value is given away: a request that waits is executed again with it.
                if commands::must_received_wait(self, &request, &builder, turn) {
                    let frame = Frame { value: builder.value(), ..request.frame };
                    self.finish(&Request { frame, ..request }, Done::Parked, turn);
                    return;
                }
                let done = commands::store_received(self, &request, builder, turn);
                self.finish(&request, done, turn);
            }
            Err(invalid) => self.fail(&frame, turn, invalid.status, invalid.context),
        }
    }

    fn fail(&self, frame: &Frame<'_>, turn: &mut Turn<'_>, status: Status, context: &str) {
        if status == Status::NotSupported {
            count(&turn.bucket.commands.unsupported_commands);
        }
        self.reply(frame.header.opcode, frame.header.opaque).fail(turn, status, context);
    }

    /// Whether a request may be executed although others of this connection wait.
    fn may_overtake(&self, opcode: Opcode, frame: &Frame<'_>, turn: &Turn<'_>) -> bool {
        if self.parked_count == 0 {
            return true;
        }
        let is_barrier =
            FrameInfos::parse(opcode, frame.framing_extras).is_ok_and(|infos| infos.barrier);
        self.is_reorderable(opcode)
            && !is_barrier
            && !self.is_waiting(turn.shared.options.limits.parked_requests_max)
    }

    fn is_reorderable(&self, opcode: Opcode) -> bool {
        opcode.flags().is_reorderable() && self.features.contains(Feature::UnorderedExecution)
    }
}

/// A frame as a request; whether it may be one is not asked.
fn request_of<'a>(opcode: Opcode, frame: &Frame<'a>) -> Result<Request<'a>, Invalid> {
    let infos = FrameInfos::parse(opcode, frame.framing_extras)?;
    let is_quiet = opcode.flags().is_quiet() || opcode == Opcode::FlushQ;
    let loud = if opcode == Opcode::FlushQ { Opcode::Flush } else { opcode.loud() };
    Ok(Request { opcode: loud, is_quiet, frame: *frame, infos })
}

/// What a client may ask before it has said who it is.
fn is_for_anybody(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Hello
            | Opcode::SaslListMechs
            | Opcode::SaslAuth
            | Opcode::SaslStep
            | Opcode::GetErrorMap
    )
}

/// The frame as it came.
fn frame_bytes(frame: &Frame<'_>) -> Vec<u8> {
    let header = frame.header.encode();
    [&header, frame.framing_extras, frame.extras, frame.key, frame.value].concat()
}
