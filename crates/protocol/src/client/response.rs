//! Reading responses.

use document::{Seqno, VbUuid, Vbid};

use crate::fields::Fields;
use crate::frame::{Frame, Magic};
use crate::frame_info::find_server_duration;
use crate::status::Status;

/// A response, section by section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The opcode of the request.
    pub opcode: u8,
    /// The outcome, perhaps one that this version does not know; see [`Response::status`].
    pub status_code: u16,
    /// Datatype bits.
    pub datatype: u8,
    /// The opaque of the request.
    pub opaque: u32,
    /// The document's version.
    pub cas: u64,
    /// How long the server took, encoded; see [`crate::frame_info::decode_duration`].
    pub server_duration: Option<u16>,
    /// The command's fixed fields.
    pub extras: &'a [u8],
    /// The key, of the few commands that return one.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Where a mutation stands in the history of its vBucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutationToken {
    /// The branch of the history.
    pub vbucket_uuid: VbUuid,
    /// The position in it.
    pub seqno: Seqno,
}

/// What OBSERVE_SEQNO tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveSeqno {
    /// The vBucket.
    pub vbucket: Vbid,
    /// The present branch of its history.
    pub vbucket_uuid: VbUuid,
    /// The last seqno on disk.
    pub persisted_seqno: Seqno,
    /// The last seqno.
    pub current_seqno: Seqno,
    /// After a failover: the branch that was asked about, and its last seqno.
    pub failed_over: Option<MutationToken>,
}

/// What GET_META tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaView {
    /// Whether the document is deleted.
    pub is_deleted: bool,
    /// The client's flags.
    pub flags: [u8; 4],
    /// Seconds since the epoch, or 0.
    pub expiry: u32,
    /// How often the document has changed.
    pub revision: u64,
    /// Datatype bits, when they were asked for.
    pub datatype: Option<u8>,
}

impl<'a> Response<'a> {
    /// The response in a frame; `None` when the frame is something else.
    pub fn from_frame(frame: &Frame<'a>) -> Option<Self> {
        let header = &frame.header;
        let magic = header.magic;
        matches!(magic, Magic::ClientResponse | Magic::AltClientResponse).then_some(Self {
            opcode: header.opcode,
            status_code: header.vbucket_or_status,
            datatype: header.datatype,
            opaque: header.opaque,
            cas: header.cas,
            server_duration: find_server_duration(frame.framing_extras),
            extras: frame.extras,
            key: frame.key,
            value: frame.value,
        })
    }

    /// The outcome, unless it is newer than this version.
    pub fn status(&self) -> Option<Status> {
        Status::from_code(self.status_code)
    }

    /// Whether the request succeeded.
    pub fn is_success(&self) -> bool {
        self.status() == Some(Status::Success)
    }

    /// Where a mutation stands: vBucket uuid:8 seqno:8.
    pub fn mutation_token(&self) -> Option<MutationToken> {
        let mut fields = Fields::new(self.extras);
        let token =
            MutationToken { vbucket_uuid: VbUuid(fields.u64()?), seqno: Seqno(fields.u64()?) };
        fields.finish(token)
    }

    /// The flags of a document that was read.
    pub fn flags(&self) -> Option<[u8; 4]> {
        self.extras.try_into().ok()
    }

    /// The new value of a counter.
    pub fn counter(&self) -> Option<u64> {
        self.value.try_into().ok().map(u64::from_be_bytes)
    }

    /// Manifest uid and id of a collection or scope that was looked up.
    pub fn manifest_and_id(&self) -> Option<(u64, u32)> {
        let mut fields = Fields::new(self.extras);
        let ids = (fields.u64()?, fields.u32()?);
        fields.finish(ids)
    }

    /// What GET_META tells.
    pub fn meta(&self) -> Option<MetaView> {
        let mut fields = Fields::new(self.extras);
        let meta = MetaView {
            is_deleted: fields.u32()? != 0,
            flags: fields.array()?,
            expiry: fields.u32()?,
            revision: fields.u64()?,
            datatype: if fields.is_empty() { None } else { fields.u8() },
        };
        fields.finish(meta)
    }

    /// What OBSERVE_SEQNO tells, in either format.
    pub fn observe_seqno(&self) -> Option<ObserveSeqno> {
        let mut fields = Fields::new(self.value);
        let format = fields.u8()?;
        let mut observed = ObserveSeqno {
            vbucket: Vbid(fields.u16()?),
            vbucket_uuid: VbUuid(fields.u64()?),
            persisted_seqno: Seqno(fields.u64()?),
            current_seqno: Seqno(fields.u64()?),
            failed_over: None,
        };
        if format == 1 {
            let vbucket_uuid = VbUuid(fields.u64()?);
            let seqno = Seqno(fields.u64()?);
            observed.failed_over = Some(MutationToken { vbucket_uuid, seqno });
        }
        fields.finish(observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response<'a>(extras: &'a [u8], value: &'a [u8]) -> Response<'a> {
        Response {
            opcode: 0,
            status_code: 0,
            datatype: 0,
            opaque: 0,
            cas: 0,
            server_duration: None,
            extras,
            key: &[],
            value,
        }
    }

    #[test]
    fn fields_stand_where_the_specification_says() {
        let numbers: Vec<u8> = (1..=5_u64).flat_map(u64::to_be_bytes).collect();
        let token = MutationToken { vbucket_uuid: VbUuid(1), seqno: Seqno(2) };
        assert_eq!(response(&numbers[..16], b"").mutation_token(), Some(token));
        assert_eq!(response(b"abcd", b"").flags(), Some(*b"abcd"));
        assert_eq!(response(b"", &numbers[..8]).counter(), Some(1));
        assert_eq!(response(&numbers[..12], b"").manifest_and_id(), Some((1, 0)));

        let observe = [b"\0\0\x07", &numbers[..24]].concat();
        let mut expected = ObserveSeqno {
            vbucket: Vbid(7),
            vbucket_uuid: VbUuid(1),
            persisted_seqno: Seqno(2),
            current_seqno: Seqno(3),
            failed_over: None,
        };
        assert_eq!(response(b"", &observe).observe_seqno(), Some(expected));
        let observe = [b"\x01\0\x07", &numbers[..]].concat();
        expected.failed_over = Some(MutationToken { vbucket_uuid: VbUuid(4), seqno: Seqno(5) });
        assert_eq!(response(b"", &observe).observe_seqno(), Some(expected));

        let meta = b"\0\0\0\x01abcd\0\0\0\x09\0\0\0\0\0\0\0\x03\x01";
        let view = response(meta, b"").meta().unwrap();
        assert_eq!((view.is_deleted, view.flags, view.expiry), (true, *b"abcd", 9));
        assert_eq!((view.revision, view.datatype), (3, Some(1)));
        assert_eq!(response(&meta[..20], b"").meta().unwrap().datatype, None);
    }

    #[test]
    fn sections_of_the_wrong_size_tell_nothing() {
        for size in 0..60 {
            let bytes = vec![0; size];
            let response = response(&bytes, &bytes);
            assert_eq!(response.mutation_token().is_some(), size == 16);
            assert_eq!(response.flags().is_some(), size == 4);
            assert_eq!(response.counter().is_some(), size == 8);
            assert_eq!(response.manifest_and_id().is_some(), size == 12);
            assert_eq!(response.meta().is_some(), size == 20 || size == 21);
            assert_eq!(response.observe_seqno().is_some(), size == 27);
        }
    }
}
