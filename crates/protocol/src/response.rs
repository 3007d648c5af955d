//! Writing responses. Sources: docs/specification/protocol.md, sections 1, 2.2 and 3.2.

use document::Datatype;
use serde_json::{Map, Value, json};

use crate::frame::{Header, Magic};
use crate::frame_info::server_duration_info;
use crate::status::Status;

/// Everything in front of a response's value.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The opcode of the request, whether anybody knows it or not.
    pub opcode: u8,
    /// The outcome.
    pub status: Status,
    /// What the value is.
    pub datatype: Datatype,
    /// The opaque of the request.
    pub opaque: u32,
    /// The document's version; 0 when there is none.
    pub cas: u64,
    /// How long the server took, encoded, on connections that want to know. Left out when the key
    /// is longer than 255 bytes: frames with it have no room for that.
    pub server_duration: Option<u16>,
    /// At most 255 bytes.
    pub extras: &'a [u8],
    /// At most 65,535 bytes.
    pub key: &'a [u8],
    /// Bytes of the value.
    pub value_size: usize,
}

impl ResponseHead<'static> {
    /// The head of a response that says a status and has a value of this many bytes, and nothing
    /// else.
    pub fn plain(opcode: u8, opaque: u32, status: Status, value_size: usize) -> Self {
        Self {
            opcode,
            status,
            datatype: Datatype::RAW,
            opaque,
            cas: 0,
            server_duration: None,
            extras: &[],
            key: &[],
            value_size,
        }
    }
}

/// Appends header, framing extras, extras and key. The value is the caller's to send: a large one
/// leaves from where it lies.
pub fn encode(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    let has_room = head.key.len() <= usize::from(u8::MAX);
    let framing = head.server_duration.filter(|_| has_room).map(server_duration_info);
    let framing_extras = framing.as_ref().map_or(&[][..], |info| info);
    let sections = [framing_extras, head.extras, head.key];
    let body_size =
        sections.iter().fold(head.value_size, |sum, section| sum.saturating_add(section.len()));
    let header = Header {
        magic: if framing.is_some() { Magic::AltClientResponse } else { Magic::ClientResponse },
        opcode: head.opcode,
        framing_extras_size: u8::try_from(framing_extras.len()).expect("three bytes"),
        extras_size: u8::try_from(head.extras.len()).expect("extras have at most 255 bytes"),
        key_size: u16::try_from(head.key.len()).expect("a key has at most 65535 bytes"),
        datatype: head.datatype.bits(),
        vbucket_or_status: head.status.code(),
        body_size: u32::try_from(body_size).expect("a body has less than 4 GiB"),
        opaque: head.opaque,
        cas: head.cas,
    };
    out.extend_from_slice(&header.encode());
    for section in sections {
        out.extend_from_slice(section);
    }
}

/// Appends the whole response.
pub fn encode_with_value(out: &mut Vec<u8>, head: &ResponseHead<'_>, value: &[u8]) {
    assert_eq!(head.value_size, value.len(), "the header announces the value that follows");
    encode(out, head);
    out.extend_from_slice(value);
}

/// What is said about an error besides its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorContext<'a> {
    /// What a person reads.
    pub context: Option<&'a str>,
    /// Where the server's log says more.
    pub reference: Option<&'a str>,
    /// The manifest that lacks the collection or scope.
    pub manifest_uid: Option<u64>,
}

impl ErrorContext<'_> {
    /// The body of the error response, marked as JSON where that was negotiated; `None` when there
    /// is nothing to say. Never for a status that [`Status::has_own_body`].
    pub fn to_json(self) -> Option<String> {
        let mut body = Map::new();
        let mut error = Map::new();
        for (name, text) in [("context", self.context), ("ref", self.reference)] {
            error.extend(text.map(|text| (name.to_owned(), Value::from(text))));
        }
        if !error.is_empty() {
            body.insert("error".to_owned(), Value::Object(error));
        }
        if let Some(uid) = self.manifest_uid {
            body.insert("manifest_uid".to_owned(), json!(format!("{uid:x}")));
        }
        (!body.is_empty()).then(|| Value::Object(body).to_string())
    }
}

#[cfg(test)]
mod tests;
