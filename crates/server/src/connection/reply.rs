//! Answering a request: the shape that every response has. Source: docs/specification/protocol.md,
//! sections 3.2 and 3.3.

use std::borrow::Cow;

use document::{Cas, Datatype, Item};
use protocol::response::{ErrorContext, encode};
use protocol::status::LegacyContext;
use protocol::{Feature, Opcode, ResponseHead, Status, frame_info};
use vbucket::Mutation;

use super::identity::Reply;
use super::output::{Chunk, LARGE_VALUE_BYTES_MIN, Output};
use super::turn::Turn;
use crate::connection::Connection;
use crate::statistics::count;

/// The value of a response.
pub(crate) enum Payload<'a> {
    /// Bytes to be copied.
    Bytes(&'a [u8]),
    /// Bytes made for this response.
    Owned(Vec<u8>),
    /// The whole value of an item, sent from where it lies when it is large.
    Whole(Item),
}

impl<'a> Payload<'a> {
    /// The body of `item`, which [`bucket::body_of`] has found in it.
    pub(crate) fn of_body(item: &Item, body: Cow<'a, [u8]>) -> Self {
        match body {
            Cow::Owned(body) => Self::Owned(body),
            Cow::Borrowed(body) if body.len() == item.value().len() => Self::Whole(item.clone()),
            Cow::Borrowed(body) => Self::Bytes(body),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Whole(item) => item.value(),
        }
    }

    /// Puts the bytes behind what is in the output; large ones stay where they are.
    pub(crate) fn append_to(self, output: &mut Output) {
        let is_large = self.bytes().len() >= LARGE_VALUE_BYTES_MIN;
        match self {
            Self::Whole(item) if is_large => output.push_large(Chunk::Value(item)),
            Self::Owned(bytes) if is_large => output.push_large(Chunk::Bytes(bytes)),
            payload => output.buffer.extend_from_slice(payload.bytes()),
        }
    }
}

/// Everything about a response but its identity.
pub(crate) struct Content<'a> {
    pub(crate) status: Status,
    pub(crate) datatype: Datatype,
    pub(crate) cas: Cas,
    pub(crate) extras: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) payload: Payload<'a>,
}

impl Default for Content<'_> {
    fn default() -> Self {
        Self {
            status: Status::Success,
            datatype: Datatype::RAW,
            cas: Cas::ANY,
            extras: &[],
            key: &[],
            payload: Payload::Bytes(&[]),
        }
    }
}

impl Reply {
    /// Answers with `content`.
    pub(crate) fn send(self, turn: &mut Turn<'_>, content: Content<'_>) {
        let head = ResponseHead {
            opcode: self.opcode,
            status: content.status,
            datatype: content.datatype,
            opaque: self.opaque,
            cas: content.cas.0,
            server_duration: self.server_duration(turn),
            extras: content.extras,
            key: content.key,
            value_size: content.payload.bytes().len(),
        };
        encode(&mut turn.output.buffer, &head);
        content.payload.append_to(turn.output);
    }

    /// Answers that it is done, with nothing to say.
    pub(crate) fn done(self, turn: &mut Turn<'_>) {
        self.send(turn, Content::default());
    }

    /// Answers with JSON, marked as such where that was negotiated. Control replies are never
    /// compressed: some clients cannot read that.
    pub(crate) fn json(self, turn: &mut Turn<'_>, status: Status, json: &str) {
        let payload = Payload::Bytes(json.as_bytes());
        let datatype = self.json_datatype();
        self.send(turn, Content { status, datatype, payload, ..Content::default() });
    }

    /// Answers a mutation: its CAS, and its token where that was negotiated.
    pub(crate) fn mutated(self, turn: &mut Turn<'_>, mutation: Mutation, value: &[u8]) {
        let payload = Payload::Bytes(value);
        self.mutated_with(turn, mutation, Content { payload, ..Content::default() });
    }

    /// Answers a mutation with `content` beside its CAS and token.
    pub(crate) fn mutated_with(
        self,
        turn: &mut Turn<'_>,
        mutation: Mutation,
        content: Content<'_>,
    ) {
        let token = mutation_token(mutation);
        let has_token = self.features.contains(Feature::MutationSeqno);
        let extras = if has_token { &token[..] } else { &[] };
        self.send(turn, Content { cas: mutation.cas, extras, ..content });
    }

    /// Answers that the request failed, in the words that the client understands.
    pub(crate) fn fail(self, turn: &mut Turn<'_>, status: Status, context: &str) {
        self.fail_with(turn, status, ErrorContext { context: Some(context), ..Default::default() });
    }

    /// Like [`Reply::fail`], with everything there is to say.
    pub(crate) fn fail_with(self, turn: &mut Turn<'_>, status: Status, context: ErrorContext<'_>) {
        // Counted as what it is, not as what a client without extended statuses is told.
        match status {
            Status::Etmpfail => count(&turn.bucket.commands.temporary_failures),
            Status::Einval => count(&turn.bucket.commands.invalid_requests),
            Status::Locked => count(&turn.bucket.commands.lock_errors),
            Status::E2big => count(&turn.bucket.commands.store_too_large),
            Status::Enomem => count(&turn.bucket.commands.store_no_memory),
            _ => {}
        }
        let status = self.translated(status);
        let explains = self.features.contains(Feature::Json) && !status.has_own_body();
        let json = if explains { context.to_json() } else { None };
        if let Some(json) = json {
            self.json(turn, status, &json);
            return;
        }
        let is_classic = self.features.is_empty();
        let text = if is_classic { classic_text(status, context.context) } else { "" };
        let payload = Payload::Bytes(text.as_bytes());
        self.send(turn, Content { status, payload, ..Content::default() });
    }

    fn json_datatype(self) -> Datatype {
        if self.features.contains(Feature::Json) { Datatype::JSON } else { Datatype::RAW }
    }

    /// Clients that did not ask for extended statuses know only the oldest ones. Where none of
    /// those fits they get the extended one all the same: to an old client that is an error like
    /// any other, which says more than a closed connection. Source: docs/specification/protocol.md,
    /// section 3.3.
    fn translated(self, status: Status) -> Status {
        if self.features.contains(Feature::Xerror) {
            return status;
        }
        let opcode = Opcode::from_byte(self.opcode);
        let context = match opcode {
            Some(Opcode::GetLocked | Opcode::UnlockKey) => LegacyContext::Other,
            Some(opcode) if opcode.is_subdoc() => LegacyContext::Other,
            _ => LegacyContext::Mutation,
        };
        status.without_xerror(context).unwrap_or(status)
    }

    fn server_duration(self, turn: &mut Turn<'_>) -> Option<u16> {
        if !self.features.contains(Feature::Tracing) {
            return None;
        }
        let now = turn.read_clock();
        turn.answered_at = Some(now);
        let took = now.since(turn.request_started);
        Some(frame_info::encode_duration(u64::try_from(took.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Connection {
    /// The identity of the answer to a request with this opcode byte and opaque.
    pub(crate) fn reply(&self, opcode: u8, opaque: u32) -> Reply {
        Reply { opcode, opaque, features: self.features }
    }
}

/// vBucket uuid and seqno, as clients keep them.
fn mutation_token(mutation: Mutation) -> [u8; 16] {
    let mut token = [0; 16];
    token[..8].copy_from_slice(&mutation.uuid.0.to_be_bytes());
    token[8..].copy_from_slice(&mutation.seqno.0.to_be_bytes());
    token
}

/// What a classic client reads behind an error: memcached's words where it has some, otherwise why.
/// Source: memcached's binary protocol, "Response Status", and what memcached sends.
fn classic_text(status: Status, why: Option<&str>) -> &str {
    match status {
        Status::KeyEnoent => "Not found",
        Status::KeyEexists => "Data exists for key.",
        Status::E2big => "Too large.",
        Status::Einval => "Invalid arguments",
        Status::NotStored => "Not stored.",
        Status::DeltaBadval => "Non-numeric server-side value for incr or decr",
        Status::UnknownCommand => "Unknown command",
        Status::Enomem => "Out of memory",
        status if status.has_own_body() => "",
        _ => why.unwrap_or(""),
    }
}
