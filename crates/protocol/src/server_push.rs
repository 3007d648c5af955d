//! What the server says unasked: there is a new cluster map. Source: protocol specification,
//! section 23. Some clients end their process when they are sent anything else.

use document::Datatype;

use crate::frame::{Header, Magic};
use crate::request::MapVersion;

/// The number of the notification; server opcodes have numbers of their own.
pub const CLUSTERMAP_CHANGE_NOTIFICATION: u8 = 0x01;

/// A new cluster map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapNotification<'a> {
    /// The bucket; empty for the map of the whole cluster.
    pub bucket: &'a str,
    /// The map's version.
    pub version: MapVersion,
    /// The map as JSON; `None` for clients that only want to know that there is one.
    pub map: Option<&'a str>,
}

impl MapNotification<'_> {
    /// Appends the frame, which may stand between any two others.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let extras = [self.version.epoch.to_be_bytes(), self.version.revision.to_be_bytes()];
        let map = self.map.unwrap_or("");
        let body_size = 16_usize.saturating_add(self.bucket.len()).saturating_add(map.len());
        let datatype = if map.is_empty() { Datatype::RAW } else { Datatype::JSON };
        let header = Header {
            magic: Magic::ServerRequest,
            opcode: CLUSTERMAP_CHANGE_NOTIFICATION,
            framing_extras_size: 0,
            extras_size: 16,
            key_size: u16::try_from(self.bucket.len()).expect("bucket names have 100 bytes"),
            datatype: datatype.bits(),
            vbucket_or_status: 0,
            body_size: u32::try_from(body_size).expect("a cluster map has less than 4 GiB"),
            opaque: 0,
            cas: 0,
        };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(extras.as_flattened());
        out.extend_from_slice(self.bucket.as_bytes());
        out.extend_from_slice(map.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: MapVersion = MapVersion { epoch: 1, revision: 0x0203 };

    #[test]
    fn a_full_notification_has_the_map() {
        let mut out = Vec::new();
        MapNotification { bucket: "b", version: VERSION, map: Some("{}") }.encode(&mut out);
        let expected = b"\x82\x01\x00\x01\x10\x01\x00\x00\x00\x00\x00\x13\0\0\0\0\0\0\0\0\0\0\0\0\
            \0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x02\x03b{}";
        assert_eq!(out, expected);
    }

    #[test]
    fn a_brief_notification_has_only_the_version() {
        let mut out = Vec::new();
        MapNotification { bucket: "", version: VERSION, map: None }.encode(&mut out);
        let expected = b"\x82\x01\x00\x00\x10\x00\x00\x00\x00\x00\x00\x10\0\0\0\0\0\0\0\0\0\0\0\0\
            \0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x02\x03";
        assert_eq!(out, expected);
    }
}
