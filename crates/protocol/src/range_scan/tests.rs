//! What clients send when they scan, and what is answered, byte for byte.

use super::*;

fn parse(json: &str) -> Result<RangeScanCreate, &'static str> {
    RangeScanCreate::parse(json.as_bytes())
}

#[test]
fn what_clients_send_is_read() {
    let scan = parse(r#"{"range":{"start":"AA==","end":"/w=="}}"#).unwrap();
    let selection =
        ScanSelection::Range { start: Bound::Included(vec![0]), end: Bound::Included(vec![0xff]) };
    let expected = RangeScanCreate {
        collection: CollectionId::DEFAULT,
        key_only: false,
        include_xattrs: false,
        name: String::new(),
        selection,
        snapshot: None,
    };
    assert_eq!(scan, expected);
    let scan = parse(
        r#"{"collection":"1f","key_only":true,"name":"n","unknown":[1],
            "range":{"excl_start":"YQ==","excl_end":""},
            "snapshot_requirements":{"vb_uuid":"281474976710655","seqno":7,"timeout_ms":10000}}"#,
    )
    .unwrap();
    let selection = ScanSelection::Range {
        start: Bound::Excluded(b"a".to_vec()),
        end: Bound::Excluded(vec![]),
    };
    let snapshot = SnapshotRequirements {
        uuid: VbUuid(0xffff_ffff_ffff),
        seqno: Seqno(7),
        must_exist: false,
        timeout_ms: 10_000,
    };
    assert_eq!((scan.collection, scan.selection), (CollectionId(0x1f), selection));
    assert_eq!((scan.key_only, scan.snapshot), (true, Some(snapshot)));
    let scan = parse(r#"{"sampling":{"samples":3,"seed":5},"include_xattrs":true}"#).unwrap();
    assert_eq!(scan.selection, ScanSelection::Sampling { samples: 3, seed: 5 });
    assert!(scan.include_xattrs);
}

#[test]
fn what_is_no_scan_is_refused() {
    let long_name = format!(r#"{{"sampling":{{"samples":1}},"name":"{}"}}"#, "n".repeat(51));
    let long_key = format!(r#"{{"range":{{"start":"{}","end":"/w=="}}}}"#, "AAAA".repeat(84));
    for json in [
        "",
        "[]",
        "{}",
        r#"{"range":{"start":"AA==","end":"/w=="},"sampling":{"samples":1}}"#,
        r#"{"range":{"start":"AA=="}}"#,
        r#"{"range":{"end":"AA=="}}"#,
        r#"{"range":{"start":"AA==","excl_start":"AA==","end":"/w=="}}"#,
        r#"{"range":{"start":"AA","end":"/w=="}}"#,
        r#"{"range":{"start":"-w==","end":"/w=="}}"#,
        r#"{"sampling":{"samples":0}}"#,
        r#"{"sampling":{"samples":-1}}"#,
        r#"{"sampling":{"samples":1},"collection":"x"}"#,
        r#"{"sampling":{"samples":1},"collection":"+1"}"#,
        r#"{"sampling":{"samples":1},"collection":"100000000"}"#,
        r#"{"sampling":{"samples":1},"key_only":true,"include_xattrs":true}"#,
        r#"{"sampling":{"samples":1},"snapshot_requirements":{"vb_uuid":1,"seqno":1}}"#,
        r#"{"sampling":{"samples":1},"snapshot_requirements":{"vb_uuid":"+1","seqno":1}}"#,
        r#"{"sampling":{"samples":1},"snapshot_requirements":{"vb_uuid":"1"}}"#,
        &long_name,
        &long_key,
    ] {
        assert!(parse(json).is_err(), "{json}");
    }
}

#[test]
fn results_have_their_lengths_in_leb128() {
    let mut out = Vec::new();
    encode_scanned_name(b"a", &mut out);
    encode_scanned_name(&[b'x'; 200], &mut out);
    assert_eq!(out[..4], [1, b'a', 0xc8, 0x01]);
    assert_eq!(out.len(), 2 + 202);
    let document = ScannedDocument {
        flags: [1, 2, 3, 4],
        expiry: 5,
        seqno: Seqno(6),
        cas: Cas(7),
        datatype: Datatype::JSON,
        name: b"k",
        value: &[b'v'; 128],
    };
    let mut out = Vec::new();
    encode_scanned_document(&document, &mut out);
    let head = [1, 2, 3, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 1];
    assert_eq!(out[..25], head);
    assert_eq!(out[25..30], [1, b'k', 0x80, 0x01, b'v']);
    assert_eq!(out.len(), 29 + 128);
}

#[test]
fn a_continue_has_an_id_and_three_limits() {
    let extras: Vec<u8> = [&[9; 16][..], &[0, 0, 0, 1], &[0, 0, 1, 0], &[1, 0, 0, 0]].concat();
    let read = RangeScanContinue::parse(&extras).unwrap();
    assert_eq!((read.id, read.items_max), ([9; 16], 1));
    assert_eq!((read.time_max_ms, read.bytes_max), (256, 1 << 24));
    assert_eq!(RangeScanContinue::parse(&extras[1..]), None);
    assert_eq!(cancelled_scan(&extras[..16]), Some([9; 16]));
    assert_eq!(cancelled_scan(&extras), None);
}
