//! What travels in front of the extras. Source: docs/specification/protocol.md, section 2.
//!
//! ```text
//! byte 0: id (high nibble), payload size (low nibble)
//! id nibble 15: one byte id - 15 follows; size nibble 15: one byte size - 15 follows; payload
//! ```

use std::sync::LazyLock;

use document::DurabilityLevel;

use crate::fields::Fields;
use crate::opcode::Opcode;
use crate::status::Status;
use crate::validate::Invalid;

/// What a durable write asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurabilityRequirement {
    /// Where the write must be.
    pub level: DurabilityLevel,
    /// Milliseconds until it becomes ambiguous; `None` for the server's default. Never 0 or
    /// 65535, which are reserved.
    pub timeout_ms: Option<u16>,
}

/// The frame infos of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameInfos<'a> {
    /// With unordered execution: waits for everything before, and holds up everything behind.
    pub barrier: bool,
    /// The write is to be durable.
    pub durability: Option<DurabilityRequirement>,
    /// The DCP stream that the message belongs to.
    pub dcp_stream_id: Option<u16>,
    /// The user in whose name the command runs; `^` in front means an external user. Never empty.
    pub impersonate: Option<&'a str>,
    /// The document keeps the expiry that it has.
    pub preserve_ttl: bool,
}

const BARRIER: u16 = 0;
const DURABILITY: u16 = 1;
const DCP_STREAM_ID: u16 = 2;
const TRACING_CONTEXT: u16 = 3;
const IMPERSONATE: u16 = 4;
const PRESERVE_TTL: u16 = 5;

/// In responses: how long the server took.
const SERVER_DURATION: u16 = 0;
/// The first byte of a server duration: id 0, two bytes.
const SERVER_DURATION_TAG: u8 = 0x02;
/// Microseconds beyond which durations are all the same.
const DURATION_MICROS_MAX: u64 = 120_125_042;
const DURATION_EXPONENT: f64 = 1.74;

impl<'a> FrameInfos<'a> {
    /// Decodes the framing extras of a request. Ids 6 and 7 (rights beyond those of the
    /// impersonated user) are as unknown to this server as those that were never assigned.
    pub fn parse(opcode: Opcode, framing_extras: &'a [u8]) -> Result<Self, Invalid> {
        let mut infos = Self::default();
        for info in Infos(Fields::new(framing_extras)) {
            let (id, payload) = info.ok_or(Invalid::argument("a frame info is truncated"))?;
            infos.take(opcode, id, payload)?;
        }
        Ok(infos)
    }

    fn take(&mut self, opcode: Opcode, id: u16, payload: &'a [u8]) -> Result<(), Invalid> {
        match id {
            BARRIER if payload.is_empty() => self.barrier = true,
            BARRIER => return Err(Invalid::argument("a barrier has no payload")),
            DURABILITY => self.durability = Some(durability(opcode, payload)?),
            DCP_STREAM_ID => self.dcp_stream_id = Some(dcp_stream_id(opcode, payload)?),
            // Retired; very old clients still send it and expect nothing.
            TRACING_CONTEXT => {}
            IMPERSONATE => self.impersonate = Some(user(payload)?),
            PRESERVE_TTL => {
                preserve_ttl(opcode, payload)?;
                self.preserve_ttl = true;
            }
            _ => {
                let context = "the server does not know this frame info";
                return Err(Invalid { status: Status::UnknownFrameInfo, context });
            }
        }
        Ok(())
    }

    /// Appends the wire form, as a client sends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.barrier {
            out.push(0x00);
        }
        if let Some(DurabilityRequirement { level, timeout_ms }) = self.durability {
            match timeout_ms {
                None => out.extend([0x11, level as u8]),
                Some(timeout_ms) => {
                    out.extend([0x13, level as u8]);
                    out.extend(timeout_ms.to_be_bytes());
                }
            }
        }
        if let Some(id) = self.dcp_stream_id {
            out.push(0x22);
            out.extend(id.to_be_bytes());
        }
        if let Some(user) = self.impersonate {
            encode_tag(IMPERSONATE, user.len(), out);
            out.extend(user.as_bytes());
        }
        if self.preserve_ttl {
            out.push(0x50);
        }
    }
}

fn encode_tag(id: u16, size: usize, out: &mut Vec<u8>) {
    let id = u8::try_from(id).unwrap_or(0) << 4;
    match u8::try_from(size) {
        Ok(size @ 0..15) => out.push(id | size),
        _ => {
            let rest = u8::try_from(size.saturating_sub(15));
            out.extend([id | 15, rest.expect("a frame info has at most 270 bytes")]);
        }
    }
}

fn durability(opcode: Opcode, payload: &[u8]) -> Result<DurabilityRequirement, Invalid> {
    if !opcode.flags().accepts_durability() {
        return Err(Invalid::argument("the command cannot be durable"));
    }
    let (level, timeout_ms) = match *payload {
        [level] => (level, None),
        [level, high, low] => (level, Some(u16::from_be_bytes([high, low]))),
        _ => return Err(Invalid::argument("a durability requirement has one or three bytes")),
    };
    let bad_level = |context| Invalid { status: Status::DurabilityInvalidLevel, context };
    let level = DurabilityLevel::from_byte(level).ok_or(bad_level("there is no such level"))?;
    if matches!(timeout_ms, Some(0 | u16::MAX)) {
        return Err(bad_level("the timeout is reserved"));
    }
    Ok(DurabilityRequirement { level, timeout_ms })
}

fn dcp_stream_id(opcode: Opcode, payload: &[u8]) -> Result<u16, Invalid> {
    if !opcode.is_dcp() {
        return Err(Invalid::argument("only DCP messages have a stream id"));
    }
    let id = payload.try_into().map_err(|_| Invalid::argument("a stream id has two bytes"))?;
    Ok(u16::from_be_bytes(id))
}

fn user(payload: &[u8]) -> Result<&str, Invalid> {
    let user = std::str::from_utf8(payload).ok().filter(|user| !user.is_empty());
    user.ok_or(Invalid::argument("the user to impersonate must be named in UTF-8"))
}

fn preserve_ttl(opcode: Opcode, payload: &[u8]) -> Result<(), Invalid> {
    if !opcode.flags().accepts_preserve_ttl() {
        let context = "the command cannot preserve the expiry";
        return Err(Invalid { status: Status::NotSupported, context });
    }
    if !payload.is_empty() {
        return Err(Invalid::argument("preserving the expiry has no payload"));
    }
    Ok(())
}

/// The infos of a section; an item `None` says that the last one is cut off.
struct Infos<'a>(Fields<'a>);

impl<'a> Iterator for Infos<'a> {
    type Item = Option<(u16, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let info = next_info(&mut self.0);
        // Where another one would begin is not known: this was the last.
        if info.is_none() {
            self.0 = Fields::new(&[]);
        }
        Some(info)
    }
}

fn next_info<'a>(fields: &mut Fields<'a>) -> Option<(u16, &'a [u8])> {
    let tag = fields.u8()?;
    let mut escaped = |nibble: u8| match nibble {
        15 => fields.u8().map(|more| u16::from(more).saturating_add(15)),
        small => Some(u16::from(small)),
    };
    let id = escaped(tag >> 4)?;
    let size = escaped(tag & 15)?;
    Some((id, fields.bytes(size.into())?))
}

/// The frame info of a response that tells how long the server took.
pub fn server_duration_info(encoded: u16) -> [u8; 3] {
    let [high, low] = encoded.to_be_bytes();
    [SERVER_DURATION_TAG, high, low]
}

/// The encoded server duration among the framing extras of a response.
pub fn find_server_duration(framing_extras: &[u8]) -> Option<u16> {
    let (_, payload) = Infos(Fields::new(framing_extras))
        .flatten()
        .find(|(id, payload)| *id == SERVER_DURATION && payload.len() == 2)?;
    payload.try_into().ok().map(u16::from_be_bytes)
}

/// Most requests take fewer microseconds: what these are encoded as is computed once.
const SHORT_DURATIONS: usize = 256;

/// Microseconds in two bytes, less than 0.5 % off from 4 milliseconds on and less than 12
/// microseconds off below.
pub fn encode_duration(micros: u64) -> u16 {
    static SHORT: LazyLock<[u16; SHORT_DURATIONS]> =
        LazyLock::new(|| std::array::from_fn(|micros| computed_duration(micros as u64)));
    let short = usize::try_from(micros).ok().and_then(|micros| SHORT.get(micros));
    short.copied().unwrap_or_else(|| computed_duration(micros))
}

fn computed_duration(micros: u64) -> u16 {
    #[expect(clippy::cast_precision_loss, reason = "120,125,042 fits a float exactly")]
    let doubled = micros.min(DURATION_MICROS_MAX).saturating_mul(2) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion from a float saturates, and the maximum encodes as 65535"
    )]
    let encoded = doubled.powf(DURATION_EXPONENT.recip()).round() as u16;
    encoded
}

/// The microseconds that two bytes stand for.
pub fn decode_duration(encoded: u16) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "65535 decodes to about 120 million"
    )]
    let micros = (f64::from(encoded).powf(DURATION_EXPONENT) / 2.0).round() as u64;
    micros
}

#[cfg(test)]
mod tests;
