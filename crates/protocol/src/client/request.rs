//! Writing requests.

use document::CollectionId;

use crate::frame::{Header, Magic};
use crate::frame_info::FrameInfos;
use crate::opcode::Opcode;
use crate::request::StoreExtras;

/// A request, section by section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The command.
    pub opcode: Opcode,
    /// The vBucket.
    pub vbucket: u16,
    /// What the response repeats.
    pub opaque: u32,
    /// The version that the document must have; 0 for any.
    pub cas: u64,
    /// Datatype bits.
    pub datatype: u8,
    /// Frame infos. Without any, the frame is a classic one.
    pub infos: FrameInfos<'a>,
    /// At most 255 bytes.
    pub extras: &'a [u8],
    /// With its collection once collections were negotiated; see [`encode_key`]. At most 65,535
    /// bytes, with frame infos 255.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl Request<'_> {
    /// A request that is nothing but a header.
    pub fn new(opcode: Opcode) -> Self {
        Self {
            opcode,
            vbucket: 0,
            opaque: 0,
            cas: 0,
            datatype: 0,
            infos: FrameInfos::default(),
            extras: &[],
            key: &[],
            value: &[],
        }
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut framing = Vec::new();
        self.infos.encode(&mut framing);
        let sections = [&framing, self.extras, self.key, self.value];
        let body_size =
            sections.iter().fold(0_usize, |sum, section| sum.saturating_add(section.len()));
        let flexible = !framing.is_empty();
        assert!(!flexible || self.key.len() <= 255, "a flexible frame has one byte for the key");
        let header = Header {
            magic: if flexible { Magic::AltClientRequest } else { Magic::ClientRequest },
            opcode: self.opcode.byte(),
            framing_extras_size: u8::try_from(framing.len()).expect("infos have 255 bytes"),
            extras_size: u8::try_from(self.extras.len()).expect("extras have 255 bytes"),
            key_size: u16::try_from(self.key.len()).expect("a key has 65535 bytes"),
            datatype: self.datatype,
            vbucket_or_status: self.vbucket,
            body_size: u32::try_from(body_size).expect("a body has less than 4 GiB"),
            opaque: self.opaque,
            cas: self.cas,
        };
        out.extend_from_slice(&header.encode());
        for section in sections {
            out.extend_from_slice(section);
        }
    }
}

/// The extras of SET, ADD and REPLACE.
pub fn store_extras(extras: StoreExtras) -> [u8; 8] {
    let [f0, f1, f2, f3] = extras.flags;
    let [e0, e1, e2, e3] = extras.expiry.to_be_bytes();
    [f0, f1, f2, f3, e0, e1, e2, e3]
}

/// The extras of INCREMENT and DECREMENT. An expiry `None` leaves a missing counter missing.
pub fn counter_extras(delta: u64, initial: u64, create_expiry: Option<u32>) -> [u8; 20] {
    let fields = [
        &delta.to_be_bytes()[..],
        &initial.to_be_bytes(),
        &create_expiry.unwrap_or(u32::MAX).to_be_bytes(),
    ];
    let mut extras = [0; 20];
    for (place, byte) in extras.iter_mut().zip(fields.concat()) {
        *place = byte;
    }
    extras
}

/// Appends the key of `name` as it is sent once collections were negotiated: the collection as
/// unsigned LEB128, then the name.
pub fn encode_key(collection: CollectionId, name: &[u8], out: &mut Vec<u8>) {
    let mut rest = collection.0;
    while rest > 0x7f {
        let [.., low] = rest.to_be_bytes();
        out.push(low | 0x80);
        rest >>= 7;
    }
    let [.., low] = rest.to_be_bytes();
    out.push(low);
    out.extend_from_slice(name);
}

#[cfg(test)]
mod tests {
    use document::Key;

    use super::*;
    use crate::frame_info::DurabilityRequirement;
    use crate::request::CounterExtras;
    use document::DurabilityLevel;

    #[test]
    fn the_specifications_example_is_written() {
        let request = Request {
            vbucket: 1,
            opaque: 0x0102_0304,
            key: b"\x08hi",
            ..Request::new(Opcode::Get)
        };
        let mut out = Vec::new();
        request.encode(&mut out);
        let expected = b"\x80\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x03\x01\x02\x03\x04\
            \0\0\0\0\0\0\0\0\x08hi";
        assert_eq!(out, expected);
    }

    #[test]
    fn a_durable_request_is_a_flexible_frame() {
        let requirement =
            DurabilityRequirement { level: DurabilityLevel::Majority, timeout_ms: Some(3600) };
        let infos = FrameInfos { durability: Some(requirement), ..FrameInfos::default() };
        let mut out = Vec::new();
        Request { infos, key: b"\x00k", ..Request::new(Opcode::Delete) }.encode(&mut out);
        let expected = b"\x08\x04\x04\x02\x00\x00\x00\x00\x00\x00\x00\x06\0\0\0\0\0\0\0\0\0\0\0\0\
            \x13\x01\x0e\x10\x00k";
        assert_eq!(out, expected);
    }

    #[test]
    fn keys_and_extras_are_understood() {
        for id in [0, 8, 127, 128, 300, 0x1f_ffff, u32::MAX] {
            let mut encoded = Vec::new();
            encode_key(CollectionId(id), b"name", &mut encoded);
            let key = Key::from_encoded(&encoded).unwrap();
            assert_eq!((key.collection(), key.name()), (CollectionId(id), &b"name"[..]));
        }
        let store = StoreExtras { flags: [1, 2, 3, 4], expiry: 9 };
        assert_eq!(StoreExtras::parse(&store_extras(store)), Some(store));
        for create_expiry in [None, Some(5)] {
            let extras = CounterExtras::parse(&counter_extras(1, 2, create_expiry)).unwrap();
            assert_eq!(extras, CounterExtras { delta: 1, initial: 2, create_expiry });
        }
    }
}
