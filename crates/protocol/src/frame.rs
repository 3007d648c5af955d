//! Where one frame ends and the next begins. Source: docs/specification/protocol.md, section 1.
//!
//! ```text
//! classic  (0x80-0x83): magic opcode key:2 ...
//! flexible (0x08 0x18): magic opcode framing key ...
//! both: ... extras datatype vbucket|status:2 body:4 opaque:4 cas:8
//! then: framing extras, extras, key, value; together `body` bytes
//! ```

use std::ops::Range;

use crate::fields::Fields;

/// Bytes of every header.
pub const HEADER_SIZE: usize = 24;

/// The first byte of a frame: who speaks, and which of the two header shapes follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Magic {
    /// From client to server, with framing extras.
    AltClientRequest = 0x08,
    /// From server to client, with framing extras.
    AltClientResponse = 0x18,
    /// From client to server; between the ends of a DCP connection in both directions.
    ClientRequest = 0x80,
    /// The answer to a request, without framing extras.
    ClientResponse = 0x81,
    /// From server to client, unasked.
    ServerRequest = 0x82,
    /// The client's answer to [`Magic::ServerRequest`].
    ServerResponse = 0x83,
}

/// How large a frame may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Bytes of a frame, header included.
    pub packet_size_max: usize,
    /// The same, as long as nobody has logged in.
    pub unauthenticated_packet_size_max: usize,
}

/// Why the stream cannot go on. The connection is closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The first byte is none of the six.
    UnknownMagic(u8),
    /// The sections before the value are longer than the whole body.
    SectionsExceedBody,
    /// The frame is larger than the connection's limit.
    TooLarge {
        /// Bytes that the header announces.
        frame_size: usize,
        /// Bytes that are allowed.
        size_max: usize,
    },
}

/// The 24 bytes in front of every body, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Who speaks.
    pub magic: Magic,
    /// The command, not looked at yet.
    pub opcode: u8,
    /// Bytes of framing extras; 0 in classic frames.
    pub framing_extras_size: u8,
    /// Bytes of extras.
    pub extras_size: u8,
    /// Bytes of the key; at most 255 in flexible frames.
    pub key_size: u16,
    /// Datatype bits, not looked at yet.
    pub datatype: u8,
    /// In requests the vBucket, in responses the status.
    pub vbucket_or_status: u16,
    /// Bytes of everything behind the header.
    pub body_size: u32,
    /// What the response repeats.
    pub opaque: u32,
    /// The document's version, or 0.
    pub cas: u64,
}

/// One frame in a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header.
    pub header: Header,
    /// Frame infos; see [`crate::frame_info`].
    pub framing_extras: &'a [u8],
    /// The command's fixed fields.
    pub extras: &'a [u8],
    /// The key, with its collection when collections were negotiated.
    pub key: &'a [u8],
    /// The value. Empty in a frame of [`Frame::parse_without_value`]; its size is always
    /// [`Header::value_size`].
    pub value: &'a [u8],
}

/// What the start of a receive buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Not enough yet.
    Incomplete {
        /// Bytes that the buffer must hold, from its start, before it is worth parsing again.
        needed_bytes: usize,
    },
    /// A frame.
    Complete {
        /// The frame.
        frame: Frame<'a>,
        /// Bytes of the buffer that it took.
        consumed: usize,
    },
    /// Nothing that can ever become a frame.
    Malformed(FrameError),
}

impl Magic {
    /// The magic with this number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x08 => Self::AltClientRequest,
            0x18 => Self::AltClientResponse,
            0x80 => Self::ClientRequest,
            0x81 => Self::ClientResponse,
            0x82 => Self::ServerRequest,
            0x83 => Self::ServerResponse,
            _ => return None,
        })
    }

    /// The number on the wire.
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// Whether byte 2 counts framing extras and byte 3 the key.
    pub fn is_flexible(self) -> bool {
        matches!(self, Self::AltClientRequest | Self::AltClientResponse)
    }

    /// Whether a client's request follows.
    pub fn is_client_request(self) -> bool {
        matches!(self, Self::ClientRequest | Self::AltClientRequest)
    }
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self { packet_size_max: 30 << 20, unauthenticated_packet_size_max: 16 << 10 }
    }
}

impl FrameLimits {
    /// The limit of a connection.
    pub fn size_max(&self, is_authenticated: bool) -> usize {
        if is_authenticated { self.packet_size_max } else { self.unauthenticated_packet_size_max }
    }
}

impl Header {
    /// Decodes the header at the start of `bytes`; `None` when they are too few. A wrong first
    /// byte is an error even when it is the only one.
    pub fn parse(bytes: &[u8], size_max: usize) -> Result<Option<Self>, FrameError> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let magic = Magic::from_byte(first).ok_or(FrameError::UnknownMagic(first))?;
        let Some(header) = Self::decode(magic, bytes) else { return Ok(None) };
        if header.value_offset() > header.frame_size() {
            return Err(FrameError::SectionsExceedBody);
        }
        let frame_size = header.frame_size();
        if frame_size > size_max {
            return Err(FrameError::TooLarge { frame_size, size_max });
        }
        Ok(Some(header))
    }

    fn decode(magic: Magic, bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        fields.u8()?;
        let opcode = fields.u8()?;
        let lengths: [u8; 2] = fields.array()?;
        let [framing_extras_size, key_size] = lengths;
        let (framing_extras_size, key_size) = if magic.is_flexible() {
            (framing_extras_size, u16::from(key_size))
        } else {
            (0, u16::from_be_bytes(lengths))
        };
        Some(Self {
            magic,
            opcode,
            framing_extras_size,
            extras_size: fields.u8()?,
            key_size,
            datatype: fields.u8()?,
            vbucket_or_status: fields.u16()?,
            body_size: fields.u32()?,
            opaque: fields.u32()?,
            cas: fields.u64()?,
        })
    }

    /// The header as it stands on the wire. In flexible headers only the low byte of the key's
    /// size has room.
    pub fn encode(&self) -> [u8; HEADER_SIZE] {
        let [high, low] = self.key_size.to_be_bytes();
        let first_length = if self.magic.is_flexible() { self.framing_extras_size } else { high };
        let [v0, v1] = self.vbucket_or_status.to_be_bytes();
        let [b0, b1, b2, b3] = self.body_size.to_be_bytes();
        let [o0, o1, o2, o3] = self.opaque.to_be_bytes();
        let [c0, c1, c2, c3, c4, c5, c6, c7] = self.cas.to_be_bytes();
        let magic = self.magic.byte();
        [
            magic,
            self.opcode,
            first_length,
            low,
            self.extras_size,
            self.datatype,
            v0,
            v1, //
            b0,
            b1,
            b2,
            b3,
            o0,
            o1,
            o2,
            o3,
            c0,
            c1,
            c2,
            c3,
            c4,
            c5,
            c6,
            c7,
        ]
    }

    /// Bytes of header and body.
    pub fn frame_size(&self) -> usize {
        HEADER_SIZE.saturating_add(usize::try_from(self.body_size).unwrap_or(usize::MAX))
    }

    /// Where the framing extras lie, counted from the start of the frame.
    pub fn framing_extras(&self) -> Range<usize> {
        section(HEADER_SIZE, self.framing_extras_size)
    }

    /// Where the extras lie.
    pub fn extras(&self) -> Range<usize> {
        section(self.framing_extras().end, self.extras_size)
    }

    /// Where the key lies.
    pub fn key(&self) -> Range<usize> {
        section(self.extras().end, self.key_size)
    }

    /// Where the value begins: everything before it is at most 66,069 bytes.
    pub fn value_offset(&self) -> usize {
        self.key().end
    }

    /// Bytes of the value.
    pub fn value_size(&self) -> usize {
        self.frame_size().saturating_sub(self.value_offset())
    }
}

fn section(start: usize, size: impl Into<usize>) -> Range<usize> {
    start..start.saturating_add(size.into())
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, which may be at most `size_max` bytes long.
    pub fn parse(bytes: &'a [u8], size_max: usize) -> Parsed<'a> {
        Self::parse_until(bytes, size_max, Header::frame_size)
    }

    /// The same, but complete as soon as header, extras and key are there: `consumed` is the
    /// offset of the value, which the caller reads straight to its final place.
    pub fn parse_without_value(bytes: &'a [u8], size_max: usize) -> Parsed<'a> {
        Self::parse_until(bytes, size_max, Header::value_offset)
    }

    fn parse_until(bytes: &'a [u8], size_max: usize, end: fn(&Header) -> usize) -> Parsed<'a> {
        let header = match Header::parse(bytes, size_max) {
            Err(error) => return Parsed::Malformed(error),
            Ok(None) => return Parsed::Incomplete { needed_bytes: HEADER_SIZE },
            Ok(Some(header)) => header,
        };
        let consumed = end(&header);
        match Self::slice(header, bytes, consumed) {
            Some(frame) => Parsed::Complete { frame, consumed },
            None => Parsed::Incomplete { needed_bytes: consumed },
        }
    }

    fn slice(header: Header, bytes: &'a [u8], end: usize) -> Option<Self> {
        Some(Self {
            header,
            framing_extras: bytes.get(header.framing_extras())?,
            extras: bytes.get(header.extras())?,
            key: bytes.get(header.key())?,
            value: bytes.get(header.value_offset()..end)?,
        })
    }
}

#[cfg(test)]
mod tests;
