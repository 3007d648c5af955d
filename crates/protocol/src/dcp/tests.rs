//! Every message to the byte, and what is none.

use ::document::VbucketState;
use ::document::{Cas, CollectionId, Datatype, DurabilityLevel, RevSeqno, Seqno, VbUuid, Vbid};

use super::*;
use crate::frame::{Frame, Parsed};
use crate::hello::{Feature, FeatureSet};
use crate::opcode::Opcode;
use crate::validate;

const DOCUMENT: Document<'_> = Document {
    key: b"k",
    value: b"vv",
    datatype: Datatype::JSON,
    cas: Cas(0x11),
    seqno: Seqno(5),
    revision: RevSeqno(6),
    flags: [1, 2, 3, 4],
    expiry: 7,
    lock_seconds: 0,
    heat: 9,
};
const DELETION: DcpDeletion<'_> = DcpDeletion {
    key: b"k",
    value: b"",
    datatype: Datatype::RAW,
    cas: Cas(0x11),
    seqno: Seqno(5),
    revision: RevSeqno(6),
    form: DeletionForm::WithTime(8),
};
const RESOLUTION: Resolution<'_> = Resolution { key: b"k", prepare: Seqno(5), seqno: Seqno(6) };
const MARKER: Marker = Marker {
    start: Seqno(1),
    end: Seqno(2),
    flags: MarkerFlags(5),
    max_visible: None,
    high_completed: None,
    purge: None,
    high_prepared: None,
};

/// What a message is: opcode, sizes of extras, key and value, datatype, CAS, the body, and what it
/// counts.
struct Row<'a> {
    message: Message<'a>,
    opcode: u8,
    sizes: (u8, u8, u8),
    datatype: u8,
    cas: u8,
    body: &'a [u8],
    counted: usize,
}

fn row<'a>(message: Message<'a>, opcode: u8, sizes: (u8, u8, u8), body: &'a [u8]) -> Row<'a> {
    Row { message, opcode, sizes, datatype: 0, cas: 0, body, counted: 0 }
}

impl Row<'_> {
    fn counts(self, counted: usize) -> Self {
        Self { counted, ..self }
    }

    fn header(self, datatype: u8, cas: u8) -> Self {
        Self { datatype, cas, ..self }
    }

    fn bytes(&self, framing: &[u8]) -> Vec<u8> {
        let (extras, key, value) = self.sizes;
        let framing_size = u8::try_from(framing.len()).unwrap();
        let magic = if framing.is_empty() { 0x80 } else { 0x08 };
        let body_size = framing_size + extras + key + value;
        let mut bytes = vec![magic, self.opcode, framing_size, key, extras, self.datatype, 0, 3];
        bytes.extend([0, 0, 0, body_size, 0xa, 0xb, 0xc, 0xd, 0, 0, 0, 0, 0, 0, 0, self.cas]);
        bytes.extend(framing);
        bytes.extend(self.body);
        bytes
    }
}

fn rows() -> Vec<Row<'static>> {
    let open = Open { flags: OpenFlags(0x25), name: b"n", value: b"" };
    let request = StreamRequest {
        flags: StreamFlags(0x14),
        start: Seqno(1),
        end: Seqno(u64::MAX),
        uuid: VbUuid(2),
        snapshot_start: Seqno(3),
        snapshot_end: Seqno(4),
        value: b"{}",
    };
    let v2_0 = Marker { max_visible: Some(Seqno(3)), high_completed: Some(Seqno(4)), ..MARKER };
    let v2_2 = Marker { purge: Some(Seqno(0)), high_prepared: Some(Seqno(6)), ..v2_0 };
    let without_time = DcpDeletion { form: DeletionForm::WithoutTime, ..DELETION };
    let level = DurabilityLevel::PersistToMajority;
    let prepare = Prepare { document: DOCUMENT, is_deletion: true, level };
    let event = SystemEvent { seqno: Seqno(5), event: 1, version: 2, name: b"c", value: b"\x00" };
    vec![
        row(Message::Open(open), 0x50, (8, 1, 0), b"\0\0\0\0\0\0\0\x25n"),
        row(Message::AddStream { flags: 1 }, 0x51, (4, 0, 0), b"\0\0\0\x01"),
        row(Message::CloseStream, 0x52, (0, 0, 0), b""),
        row(
            Message::StreamRequest(request),
            0x53,
            (48, 0, 2),
            b"\0\0\0\x14\0\0\0\0\0\0\0\0\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\
                \0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04{}",
        )
        .header(1, 0),
        row(Message::GetFailoverLog, 0x54, (0, 0, 0), b""),
        row(Message::StreamEnd(EndReason::StateChanged), 0x55, (4, 0, 0), b"\0\0\0\x02").counts(28),
        row(
            Message::SnapshotMarker(MARKER),
            0x56,
            (20, 0, 0),
            b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x05",
        )
        .counts(44),
        row(
            Message::SnapshotMarker(v2_0),
            0x56,
            (1, 0, 36),
            b"\x00\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x05\
                \0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04",
        )
        .counts(61),
        row(
            Message::SnapshotMarker(v2_2),
            0x56,
            (1, 0, 52),
            b"\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x05\0\0\0\0\0\0\0\x03\
                \0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x06",
        )
        .counts(77),
        row(
            Message::Mutation(DOCUMENT),
            0x57,
            (31, 1, 2),
            b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\x01\x02\x03\x04\0\0\0\x07\0\0\0\0\0\0\x09kvv",
        )
        .header(1, 0x11)
        .counts(58),
        row(
            Message::Deletion(without_time),
            0x58,
            (18, 1, 0),
            b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0k",
        )
        .header(0, 0x11)
        .counts(43),
        row(
            Message::Deletion(DELETION),
            0x58,
            (21, 1, 0),
            b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\x08\0k",
        )
        .header(0, 0x11)
        .counts(46),
        row(
            Message::Expiration(DELETION),
            0x59,
            (20, 1, 0),
            b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\x08k",
        )
        .header(0, 0x11)
        .counts(45),
        row(Message::SetVbucketState { state: VbucketState::Pending }, 0x5b, (1, 0, 0), b"\x03")
            .counts(25),
        row(Message::Noop, 0x5c, (0, 0, 0), b""),
        row(Message::BufferAck { bytes: 258 }, 0x5d, (4, 0, 0), b"\0\0\x01\x02"),
        row(Message::Control { key: b"a", value: b"b" }, 0x5e, (0, 1, 1), b"ab"),
        row(Message::SystemEvent(event), 0x5f, (13, 1, 1), b"\0\0\0\0\0\0\0\x05\0\0\0\x01\x02c\0")
            .counts(39),
        row(
            Message::Prepare(prepare),
            0x60,
            (31, 1, 2),
            b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\x01\x02\x03\x04\0\0\0\x07\0\0\0\0\
                \x09\x01\x03kvv",
        )
        .header(1, 0x11)
        .counts(60),
        row(Message::SeqnoAcknowledged { seqno: Seqno(9) }, 0x61, (8, 0, 0), b"\0\0\0\0\0\0\0\x09"),
        row(
            Message::Commit(RESOLUTION),
            0x62,
            (16, 1, 0),
            b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06k",
        )
        .counts(41),
        row(Message::Abort(RESOLUTION), 0x63, (16, 1, 0), b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06k")
            .counts(41),
        row(Message::SeqnoAdvanced { seqno: Seqno(9) }, 0x64, (8, 0, 0), b"\0\0\0\0\0\0\0\x09")
            .counts(32),
        row(Message::OsoSnapshot { is_start: true }, 0x65, (4, 0, 0), b"\0\0\0\x01").counts(28),
        row(Message::OsoSnapshot { is_start: false }, 0x65, (4, 0, 0), b"\0\0\0\x02").counts(28),
    ]
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    let Parsed::Complete { frame, consumed } = Frame::parse(bytes, 1 << 20) else {
        panic!("{bytes:?} is no frame")
    };
    assert_eq!(consumed, bytes.len());
    frame
}

#[test]
fn messages_are_written_and_read_as_the_specification_has_them() {
    let features: FeatureSet = [Feature::Json].into_iter().collect();
    for row in rows() {
        for stream_id in [None, Some(0x0102)] {
            let framing: &[u8] = if stream_id.is_some() { &[0x22, 1, 2] } else { &[] };
            let opaque = 0x0a0b_0c0d;
            let envelope = Envelope { opaque, vbid: Vbid(3), stream_id, has_collections: true };
            let mut out = Vec::new();
            row.message.encode(envelope, &mut out);
            assert_eq!(out, row.bytes(framing), "{:?}", row.message);
            let frame = frame(&out);
            assert_eq!(Message::parse(&frame), Ok(row.message));
            let opcode = Opcode::from_byte(row.opcode).unwrap();
            assert_eq!(opcode, row.message.opcode());
            assert_eq!(validate::request(opcode, &frame, features), Ok(()), "{:?}", row.message);
            let counted = row.message.flow_control_bytes(stream_id.is_some());
            let with_id = if row.counted == 0 { 0 } else { row.counted + framing.len() };
            assert_eq!(counted, with_id, "{:?}", row.message);
        }
    }
}

#[test]
fn a_client_without_collections_hears_older_reasons_of_an_end() {
    for (reason, with, without) in [
        (EndReason::Ok, 0, 0),
        (EndReason::RolledBack, 2, 2),
        (EndReason::BackfillFailed, 5, 5),
        (EndReason::FilterEmpty, 7, 0),
        (EndReason::LostPrivileges, 8, 0),
    ] {
        assert_eq!((reason.code(true), reason.code(false)), (with, without));
    }
    assert_eq!(EndReason::from_code(9), None);
}

#[test]
fn messages_that_are_not_as_they_should_be_are_invalid() {
    let valid: Vec<Vec<u8>> = rows().iter().map(|row| row.bytes(&[])).collect();
    let of = |opcode: u8, extras: usize| {
        valid.iter().find(|bytes| bytes[1] == opcode && usize::from(bytes[4]) == extras).unwrap()
    };
    for (opcode, extras, at, byte, why) in [
        (0x50, 8, 31, 0x02, "a notifier was retired"),
        (0x50, 8, 31, 0x80, "so were points in time"),
        (0x50, 8, 31, 0x49, "without value in two ways"),
        (0x50, 8, 30, 0x01, "0x125 has xattrs, 0x121 not"),
        (0x53, 48, 27, 0x08, "a retired flag"),
        (0x55, 4, 27, 9, "an unknown reason"),
        (0x56, 1, 24, 1, "version 2.1 never was"),
        (0x56, 20, 31, 3, "a snapshot that ends before it begins"),
        (0x57, 31, 31, 0, "seqno 0"),
        (0x57, 31, 53, 1, "metadata"),
        (0x60, 31, 31, 0, "seqno 0"),
        (0x60, 31, 53, 2, "a prepared expiry is reserved"),
        (0x60, 31, 54, 4, "level 4"),
        (0x58, 18, 41, 1, "metadata"),
        (0x5b, 1, 24, 5, "role 5"),
        (0x65, 4, 27, 3, "neither start nor end"),
    ] {
        let mut bytes = of(opcode, extras).clone();
        assert!(Message::parse(&frame(&bytes)).is_ok());
        bytes[at] = byte;
        if (opcode, at) == (0x50, 30) {
            bytes[31] = 0x21;
        }
        assert!(Message::parse(&frame(&bytes)).is_err(), "{why}");
    }
}

#[test]
fn a_selection_is_a_json_text() {
    let everything = StreamSelection::default();
    let of = |text: &str| StreamSelection::parse(text.as_bytes()).ok();
    assert_eq!(of(""), Some(everything.clone()));
    assert_eq!(of(r#"{"uid":"1f"}"#), Some(everything.clone()));
    let collections = Some(vec![CollectionId(0), CollectionId(0x1a)]);
    let filtered = StreamSelection { collections, ..everything };
    assert_eq!(of(r#"{"collections":["0","1a"],"uid":"0"}"#), Some(filtered));
    assert_eq!(of(r#"{"scope":"8"}"#).unwrap().scope, Some(8));
    let more = of(r#"{"sid":7,"purge_seqno":"12"}"#).unwrap();
    assert_eq!((more.stream_id, more.purge_seqno), (Some(7), Some(Seqno(12))));
    assert!(!more.is_filtered());
    assert!(of(r#"{"cts":{"free_memory":5,"all_keys":true}}"#).unwrap().wants_cache_transfer);
    for text in [
        "{}",
        "[]",
        "x",
        r#"{"other":1}"#,
        r#"{"uid":"g"}"#,
        r#"{"uid":1}"#,
        r#"{"sid":0}"#,
        r#"{"sid":65536}"#,
        r#"{"collections":[]}"#,
        r#"{"collections":["zz"]}"#,
        r#"{"collections":["0"],"scope":"0"}"#,
        r#"{"purge_seqno":"-1"}"#,
    ] {
        assert_eq!(of(text), None, "{text}");
    }
}

#[test]
fn a_failover_log_is_pairs() {
    let log = [(VbUuid(1), Seqno(2)), (VbUuid(3), Seqno(0))];
    let mut bytes = Vec::new();
    encode_failover_log(log, &mut bytes);
    assert_eq!(bytes.len(), 32);
    assert_eq!(parse_failover_log(&bytes), Some(log.to_vec()));
    assert_eq!(parse_failover_log(&bytes[..31]), None);
    assert_eq!(parse_failover_log(&[]), None);
    assert_eq!(parse_rollback_seqno(&[0, 0, 0, 0, 0, 0, 0, 9]), Some(Seqno(9)));
    assert_eq!(parse_rollback_seqno(&[0; 7]), None);
}
