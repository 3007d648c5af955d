//! The memcached binary protocol, with and without Couchbase's extensions.

use super::{Operation, Response};

const HEADER_SIZE: usize = 24;
const REQUEST: u8 = 0x80;
/// Of a request with frame infos. Its key length is one byte.
const REQUEST_WITH_FRAME_INFOS: u8 = 0x08;
/// The second is the magic of a response with frame infos. Its key length is one byte; nobody here
/// needs it.
const RESPONSES: [u8; 2] = [0x81, 0x18];
const UNKNOWN_COMMAND: u16 = 0x81;
const NOT_SUPPORTED: u16 = 0x83;

/// Durability (number 1), one byte long, so without a time limit: persist to majority.
const DURABILITY: [u8; 2] = [0x11, 3];
/// Of the sub-document commands.
const PATH: &[u8] = b"field";
/// The path's length; no flags.
const PATH_TO_READ: [u8; 3] = [0, PATH.len() as u8, 0];
/// The path's length; parents are made (path flag 1) and so is the document (document flag 1).
const PATH_TO_WRITE: [u8; 4] = [0, PATH.len() as u8, 1, 1];

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A document.
    Whole,
    /// A document; writes are durable.
    Durable,
    /// The value at one path of a document.
    Path,
}

pub(super) fn encode(
    form: Form,
    operation: Operation,
    vbucket: u16,
    key: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    // Flags and expiry, both 0.
    let set_extras: &[u8] = &[0; 8];
    let (opcode, extras, value): (u8, &[u8], &[u8]) = match (form, operation) {
        (Form::Path, Operation::Get) => (0xc5, &PATH_TO_READ, PATH),
        (Form::Path, Operation::Set) => (0xc8, &PATH_TO_WRITE, &[PATH, &json(value)].concat()),
        (_, Operation::Get) => (0x00, &[], &[]),
        (_, Operation::Set) => (0x01, set_extras, value),
        (_, Operation::Delete) => (0x04, &[], &[]),
    };
    let is_durable = form == Form::Durable && operation != Operation::Get;
    let frame_infos: &[u8] = if is_durable { &DURABILITY } else { &[] };
    let key_size = key.len() as u16;
    let body_size = u32::from(key_size) + (frame_infos.len() + extras.len() + value.len()) as u32;
    if is_durable {
        let key_size = key_size as u8;
        out.extend([REQUEST_WITH_FRAME_INFOS, opcode, frame_infos.len() as u8, key_size]);
    } else {
        out.extend_from_slice(&[REQUEST, opcode]);
        out.extend_from_slice(&key_size.to_be_bytes());
    }
    out.extend_from_slice(&[extras.len() as u8, 0]);
    out.extend_from_slice(&vbucket.to_be_bytes());
    out.extend_from_slice(&body_size.to_be_bytes());
    out.extend_from_slice(&[0; 12]);
    for section in [frame_infos, extras, key, value] {
        out.extend_from_slice(section);
    }
}

pub(super) fn parse(bytes: &[u8]) -> Option<Response> {
    let header = bytes.get(..HEADER_SIZE)?;
    let body_size = u32::from_be_bytes(header.get(8..12)?.try_into().ok()?);
    let size = HEADER_SIZE + body_size as usize;
    let is_success = RESPONSES.contains(&header[0]) && header[6..8] == [0, 0];
    (bytes.len() >= size).then_some(Response { size, is_success })
}

pub(super) fn says_unknown(response: &[u8]) -> bool {
    status(response).is_some_and(|status| [UNKNOWN_COMMAND, NOT_SUPPORTED].contains(&status))
}

pub(super) fn status(response: &[u8]) -> Option<u16> {
    let bytes = response.get(6..8)?;
    bytes.try_into().ok().map(u16::from_be_bytes)
}

/// A JSON string of as many bytes as `value` has between its quotes.
fn json(value: &[u8]) -> Vec<u8> {
    let letters = value.iter().map(|byte| b'a' + byte % 26);
    [b'"'].into_iter().chain(letters).chain([b'"']).collect()
}
