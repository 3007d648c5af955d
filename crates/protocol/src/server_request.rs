//! What the server says unasked, on connections that may be spoken to. Source:
//! docs/specification/protocol.md, section 23.

use document::Datatype;

use crate::frame::{Header, Magic};
use crate::request::MapVersion;

/// The opcode of ClustermapChangeNotification, among the server's own.
const CLUSTER_MAP_CHANGED: u8 = 0x01;

/// There is a newer cluster map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterMapChanged<'a> {
    /// Which.
    pub version: MapVersion,
    /// The bucket; empty for the global map.
    pub bucket: &'a str,
    /// The map as JSON; nothing for those who want to hear its version alone.
    pub map: &'a str,
}

impl ClusterMapChanged<'_> {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut extras = [0; 16];
        extras[..8].copy_from_slice(&self.version.epoch.to_be_bytes());
        extras[8..].copy_from_slice(&self.version.revision.to_be_bytes());
        let body_size = [extras.len(), self.bucket.len(), self.map.len()]
            .into_iter()
            .fold(0_usize, usize::saturating_add);
        let datatype = if self.map.is_empty() { Datatype::RAW } else { Datatype::JSON };
        let header = Header {
            magic: Magic::ServerRequest,
            opcode: CLUSTER_MAP_CHANGED,
            framing_extras_size: 0,
            extras_size: 16,
            key_size: u16::try_from(self.bucket.len()).expect("a bucket's name is short"),
            datatype: datatype.bits(),
            vbucket_or_status: 0,
            body_size: u32::try_from(body_size).expect("a map has less than 4 GiB"),
            opaque: 0,
            cas: 0,
        };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(&extras);
        out.extend_from_slice(self.bucket.as_bytes());
        out.extend_from_slice(self.map.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_these_bytes() {
        let version = MapVersion { epoch: 1, revision: 0x0203 };
        let mut bytes = Vec::new();
        ClusterMapChanged { version, bucket: "b", map: "{}" }.encode(&mut bytes);
        let mut golden = vec![0x82, 0x01, 0, 1, 16, 1, 0, 0, 0, 0, 0, 19];
        golden.extend([0; 12]);
        golden.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3, b'b', b'{', b'}']);
        assert_eq!(bytes, golden);
        bytes.clear();
        ClusterMapChanged { version, bucket: "", map: "" }.encode(&mut bytes);
        assert_eq!((bytes.len(), bytes[5], bytes[11]), (24 + 16, 0, 16), "the version alone");
    }
}
