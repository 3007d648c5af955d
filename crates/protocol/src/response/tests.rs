//! Responses, byte by byte.

use super::*;
use crate::client::Response;
use crate::frame::{Frame, Parsed};
use crate::frame_info::encode_duration;

fn head() -> ResponseHead<'static> {
    ResponseHead {
        opcode: 0,
        status: Status::Success,
        datatype: Datatype::JSON,
        opaque: 0x0102_0304,
        cas: 0x1122_3344_5566_7788,
        server_duration: None,
        extras: b"\x02\x00\x00\x00",
        key: b"",
        value_size: 7,
    }
}

fn encoded(head: &ResponseHead<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_with_value(&mut out, head, br#"{"a":1}"#);
    out
}

#[test]
fn the_specifications_example_is_written() {
    let expected = b"\x81\x00\x00\x00\x04\x01\x00\x00\x00\x00\x00\x0b\x01\x02\x03\x04\
        \x11\x22\x33\x44\x55\x66\x77\x88\x02\x00\x00\x00{\"a\":1}";
    assert_eq!(encoded(&head()), expected);
}

#[test]
fn a_duration_changes_the_magic() {
    let bytes = encoded(&ResponseHead {
        server_duration: Some(encode_duration(100)),
        key: b"\x08hi",
        ..head()
    });
    let expected = b"\x18\x00\x03\x03\x04\x01\x00\x00\x00\x00\x00\x11\x01\x02\x03\x04\
        \x11\x22\x33\x44\x55\x66\x77\x88\x02\x00\x15\x02\x00\x00\x00\x08hi{\"a\":1}";
    assert_eq!(bytes, expected);
}

#[test]
fn a_long_key_displaces_the_duration() {
    let key = [b'k'; 256];
    let bytes = encoded(&ResponseHead { server_duration: Some(1), key: &key, ..head() });
    assert_eq!(bytes[0], 0x81);
}

#[test]
fn clients_read_what_servers_write() {
    for seed in platform::seeds::seeds(200) {
        let mut random = platform::Random::from_seed(seed);
        let index = usize::try_from(random.below(83)).unwrap();
        let mut key = vec![0; usize::try_from(random.below(250)).unwrap()];
        random.fill(&mut key);
        let head = ResponseHead {
            status: Status::ALL[index],
            opaque: 7,
            cas: random.next_u64(),
            server_duration: (random.below(2) == 0).then_some(77),
            key: &key,
            ..head()
        };
        let bytes = encoded(&head);
        let Parsed::Complete { frame, consumed } = Frame::parse(&bytes, 1 << 20) else {
            panic!("seed {seed}")
        };
        let response = Response::from_frame(&frame).unwrap();
        assert_eq!(consumed, bytes.len(), "seed {seed}");
        assert_eq!(response.status(), Some(head.status), "seed {seed}");
        assert_eq!((response.cas, response.key), (head.cas, head.key), "seed {seed}");
        assert_eq!(response.server_duration, head.server_duration, "seed {seed}");
        assert_eq!((response.extras, response.value), (head.extras, &br#"{"a":1}"#[..]));
    }
}

#[test]
fn errors_explain_themselves() {
    let json = |context: ErrorContext<'_>| context.to_json();
    assert_eq!(json(ErrorContext::default()), None);
    let quoted = ErrorContext { context: Some("a \"b\"\n\u{1}"), ..ErrorContext::default() };
    let expected = r#"{"error":{"context":"a \"b\"\n\u0001"}}"#;
    assert_eq!(json(quoted).as_deref(), Some(expected));
    let manifest = ErrorContext { manifest_uid: Some(0x1f), ..ErrorContext::default() };
    assert_eq!(json(manifest).as_deref(), Some(r#"{"manifest_uid":"1f"}"#));
    let everything =
        ErrorContext { context: Some("c"), reference: Some("r"), manifest_uid: Some(0) };
    let expected = r#"{"error":{"context":"c","ref":"r"},"manifest_uid":"0"}"#;
    assert_eq!(json(everything).as_deref(), Some(expected));
}
