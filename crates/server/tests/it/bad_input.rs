//! Requests that are wrong: each gets its status or its end, and its counter.

use std::io::Read;

use document::compression::deflate;

use crate::support::{Client, Port, RawFrame, frame, get, set};

const COLLECTIONS: u16 = 0x12;
const XERROR: u16 = 0x07;

const OK: u16 = 0;
const E2BIG: u16 = 3;
const EINVAL: u16 = 4;
const EACCESS: u16 = 0x24;
const AUTH_ERROR: u16 = 0x20;
const UNKNOWN_COMMAND: u16 = 0x81;
const NOT_SUPPORTED: u16 = 0x83;
const UNKNOWN_COLLECTION: u16 = 0x88;

/// Sends `bytes`, expects the end, and that `counter` went up by one.
fn closes(port: &Port, mut client: Client, bytes: &[u8], counter: &str) {
    let before = port.counter(counter);
    client.send(bytes);
    assert!(client.is_closed(), "{counter}: {bytes:x?}");
    port.wait_for(counter, |_| port.counter(counter) == before + 1);
}

fn with_body_size(request: RawFrame, size: u32) -> Vec<u8> {
    let mut bytes = request.bytes();
    bytes[8..12].copy_from_slice(&size.to_be_bytes());
    bytes
}

#[test]
fn what_is_no_frame_ends_the_connection_and_nothing_else() {
    let port = Port::open();
    let mut witness = port.client(&[XERROR]);
    let mut impossible = get(b"key").bytes();
    impossible[3] = 200;
    let over_limit = with_body_size(set(b"key", b""), 31 << 20);
    for bytes in [impossible, over_limit] {
        closes(&port, port.client(&[]), &bytes, "malformed_frames");
    }
    closes(&port, port.connect(), &with_body_size(get(b"k"), 17 << 10), "malformed_frames");
    for magic in [0x82, 0x83, 0x81] {
        let mut unauthenticated = port.connect();
        unauthenticated.send(&get(b"k").magic(magic).bytes());
        assert!(unauthenticated.is_closed(), "{magic:#x}");
    }
    for magic in [0x00, 0x47, 0xff, 0x18] {
        let mut client = port.client(&[]);
        client.send(&get(b"k").magic(magic).bytes());
        assert!(client.is_closed(), "{magic:#x}");
    }
    // Other protocols, on either side of a header's size, hear why in their own words.
    for (text, answer) in [
        (&b"version\r\n"[..], &b"SERVER_ERROR "[..]),
        (b"set key 0 0 5\r\nvalue\r\nget key\r\n", b"SERVER_ERROR "),
        (b"GET /pools HTTP/1.1\r\nHost: here\r\n\r\n", b"HTTP/1.1 400 "),
        (b"*1\r\n$4\r\nPING\r\n", b"-ERR "),
        (b"\x16\x03\x01\x00\x05hello", b"\x15\x03\x03\x00\x02\x02"),
    ] {
        let mut client = port.connect();
        client.send(text);
        let mut said = Vec::new();
        client.stream.read_to_end(&mut said).unwrap();
        assert!(said.starts_with(answer), "{text:?}: {said:?}");
    }
    for size in 1..28 {
        let mut client = port.client(&[]);
        client.send(&get(b"keys").bytes()[..size]);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(client.is_closed(), "{size} bytes");
    }
    assert_eq!(witness.ask(frame(0x0a)).status, OK);
    port.wait_for("nothing leaks", |statistics| statistics.curr_connections == 1);
}

#[test]
fn every_wrong_request_has_its_status_and_the_connection_goes_on() {
    let port = Port::open();
    let long = [b'k'; 251];
    let cases: Vec<(&str, RawFrame, u16)> = vec![
        ("unknown opcode", frame(0xe8), UNKNOWN_COMMAND),
        ("retired opcode", frame(0x30), NOT_SUPPORTED),
        ("datatype bits that do not exist", set(b"k", b"v").datatype(0x80), EINVAL),
        ("datatype that was not negotiated", set(b"k", b"v").datatype(0x02), EINVAL),
        ("no key", get(b""), EINVAL),
        ("a key that is too long", get(&long), EINVAL),
        ("extras where none belong", get(b"k").extras(&[0; 4]), EINVAL),
        ("no extras", frame(0x01).key(b"k").value(b"v"), EINVAL),
        ("extras of a wrong size", frame(0x01).extras(&[0; 7]).key(b"k"), EINVAL),
        ("a value where none belongs", get(b"k").value(b"v"), EINVAL),
        ("CAS where none belongs", get(b"k").cas(5), EINVAL),
        ("ADD with CAS", frame(0x02).extras(&[0; 8]).key(b"k").cas(5), EINVAL),
        ("counter with a value", frame(0x05).extras(&[0; 20]).key(b"k").value(b"1"), EINVAL),
        ("NOOP with a key", frame(0x0a).key(b"k"), EINVAL),
        ("frame info that ends too early", get(b"k").framing(&[0x02, 0x00]), EINVAL),
        ("CAS of a document that is not there", set(b"absent", b"v").cas(9), 1),
        ("a document that is not there", get(b"absent"), 1),
        ("a vBucket out of range", get(b"k").vbucket(4), 7),
    ];
    let mut client = port.client(&[XERROR]);
    for (what, request, status) in cases {
        let reply = client.ask(request.opaque(77));
        let text = String::from_utf8_lossy(&reply.value);
        assert_eq!(reply.status, status, "{what}: {text}");
    }
    assert_eq!(port.counter("unknown_commands"), 1);
    assert_eq!(port.counter("unsupported_commands"), 1);
    assert!(port.counter("invalid_requests") >= 13, "{}", port.counter("invalid_requests"));
    assert_eq!(client.ask(set(b"k", b"v")).status, OK);
}

#[test]
fn values_that_are_too_large_are_refused_and_the_connection_goes_on() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, 0x0a, 0x0b]);
    let largest = vec![b'x'; 20 << 20];
    assert_eq!(client.ask(set(b"largest", &largest)).status, OK);
    assert_eq!(client.ask(get(b"largest")).value, largest);
    let larger = vec![b'x'; (20 << 20) + 1];
    assert_eq!(client.ask(set(b"larger", &larger)).status, E2BIG);
    assert_eq!(client.ask(frame(0x0e).key(b"largest").value(b"+")).status, E2BIG);
    for size in [larger.len(), 25 << 20] {
        let packed = deflate(&vec![b'x'; size]);
        for request in [set(b"larger", &packed), frame(0x0e).key(b"largest").value(&packed)] {
            assert_eq!(client.ask(request.datatype(2)).status, E2BIG, "{size} bytes compressed");
        }
    }
    assert_eq!(client.ask(set(b"bad", b"\xff\xff\xff\xff no snappy").datatype(2)).status, EINVAL);
    assert_eq!(client.ask(get(b"larger")).status, 1);
}

#[test]
fn collections_that_cannot_be_name_their_manifest() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, COLLECTIONS, 0x0b]);
    assert_eq!(client.ask(set(b"\0key", b"v")).status, OK);
    for (key, status) in [
        (&b"\x08key"[..], UNKNOWN_COLLECTION),
        (b"\xff\x01key", UNKNOWN_COLLECTION),
        (b"\x80", EINVAL),
        (b"\0", EINVAL),
    ] {
        let reply = client.ask(get(key));
        let text = String::from_utf8(reply.value).unwrap();
        assert_eq!(reply.status, status, "{key:x?}: {text}");
        if status == UNKNOWN_COLLECTION {
            assert!(text.contains("\"manifest_uid\":\"0\""), "{text}");
        }
    }
    for reserved in 1..8 {
        let status = client.ask(get(&[reserved, b'k'])).status;
        assert!([EINVAL, UNKNOWN_COLLECTION].contains(&status), "{reserved}: {status}");
    }
}

const SCRAM_MECHANISMS: [&[u8]; 3] = [b"SCRAM-SHA1", b"SCRAM-SHA256", b"SCRAM-SHA512"];

#[test]
fn who_tries_every_mechanism_may_and_who_goes_on_is_let_go_of() {
    let port = Port::open();
    let mut client = port.connect();
    let wrong = || frame(0x21).key(b"PLAIN").value(b"\0user\0wrong");
    for mechanism in SCRAM_MECHANISMS {
        let first = b"n,,n=user,r=abcdefghijkl";
        assert_eq!(client.ask(frame(0x21).key(mechanism).value(first)).status, 0x21);
        assert_eq!(client.ask(frame(0x22).key(mechanism).value(b"x")).status, AUTH_ERROR);
    }
    assert_eq!(client.ask(wrong()).status, AUTH_ERROR);
    // A login that succeeds begins anew.
    assert_eq!(client.ask(frame(0x21).key(b"PLAIN").value(b"\0user\0password")).status, OK);
    let guesses: Vec<Vec<u8>> = (0..8).map(|_| wrong().bytes()).collect();
    client.send(&guesses.concat());
    for _ in 0..5 {
        assert_eq!(client.receive().status, AUTH_ERROR);
    }
    assert!(client.is_closed(), "the others are not even looked at");
    assert_eq!(port.counter("auth_errors"), 9);
}

#[test]
fn nobody_comes_in_without_the_password() {
    let port = Port::open();
    let mut client = port.connect();
    client.hello(&[XERROR]);
    assert_eq!(client.ask(get(b"k")).status, EACCESS);
    assert_eq!(port.counter("unauthenticated_requests"), 1);
    let wrong = [&b"\0user\0wrong"[..], b"\0nobody\0password", b"\0user\0"];
    for (count, value) in wrong.into_iter().enumerate() {
        let reply = client.ask(frame(0x21).key(b"PLAIN").value(value));
        assert_eq!(reply.status, AUTH_ERROR);
        assert_eq!(port.counter("auth_errors"), count as u64 + 1);
    }
    for mechanism in SCRAM_MECHANISMS {
        let mut client = port.connect();
        let first = b"n,,n=user,r=abcdefghijkl";
        assert_eq!(client.ask(frame(0x21).key(mechanism).value(first)).status, 0x21);
        let proof = b"c=biws,r=abcdefghijkl,p=AAAA";
        assert_ne!(client.ask(frame(0x22).key(mechanism).value(proof)).status, OK);
        assert_eq!(client.ask(get(b"k")).status, EACCESS);
    }
    let mut client = port.connect();
    assert_ne!(client.ask(frame(0x22).key(b"SCRAM-SHA1").value(b"c=biws")).status, OK);
    assert_ne!(client.ask(frame(0x21).key(b"NONE").value(b"")).status, OK);
    let mut client = port.client(&[XERROR]);
    assert_ne!(client.ask(frame(0x89).key(b"another")).status, OK);
}

#[test]
fn results_of_many_paths_are_bounded() {
    const SUBDOC_MULTI_LOOKUP: u8 = 0xd0;
    let port = Port::open();
    let mut client = port.client(&[XERROR]);
    assert_eq!(client.ask(set(b"k", &vec![b'x'; 5_000_000])).status, OK);
    // Each wants the whole document.
    for (path_count, status, size) in [(8, OK, 8 * 5_000_006), (9, E2BIG, 0), (16, E2BIG, 0)] {
        let paths = [0; 4].repeat(path_count);
        let answer = client.ask(frame(SUBDOC_MULTI_LOOKUP).key(b"k").value(&paths));
        assert_eq!((answer.status, answer.value.len()), (status, size), "{path_count}");
    }
}
