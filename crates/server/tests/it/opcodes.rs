//! Every opcode there could be, with every body that could come: each is answered, or ends its
//! connection, and neither takes anybody else along.

use std::time::Duration;

use bucket::BucketConfig;
use protocol::Opcode;
use protocol::shape::Presence;

use crate::support::{Client, Port, RawFrame, bucket_config, frame};

const XERROR: u16 = 0x07;
const NOOP: u8 = 0x0a;
/// Of the request that shows that the one before it is over.
const WITNESS: u32 = 0x7fff_ffff;

/// What is sent with an opcode.
fn bodies(byte: u8) -> Vec<RawFrame> {
    let garbage = [0xff, 0x80, 0x00, 0x7f, 0xc1, 0x24, 0x07, 0xfe];
    let mut bodies = vec![
        frame(byte),
        frame(byte).key(b"k"),
        frame(byte).value(b"v"),
        frame(byte).extras(&garbage).key(&garbage).value(&garbage),
        frame(byte).extras(&garbage[..4]).key(b"k").value(b"{\"not\": closed").datatype(1),
        frame(byte).key(b"k").cas(u64::MAX).vbucket(u16::MAX),
        frame(byte).framing(&[0xff, 0xff, 0xff]).key(b"k"),
    ];
    let Some(opcode) = Opcode::from_byte(byte) else { return bodies };
    let shape = opcode.info().shape;
    let key: &[u8] = if shape.key == Presence::Forbidden { b"" } else { b"key" };
    let cas = u64::from(shape.cas == protocol::shape::CasRule::NonZero);
    for &size in shape.extras_sizes.unwrap_or(&[0, 4, 8]) {
        let extras = [0, 1, 0xff].map(|byte| vec![byte; usize::from(size)]);
        let mut values: Vec<&[u8]> = Vec::new();
        if shape.value != Presence::Required {
            values.push(b"");
        }
        if shape.value != Presence::Forbidden {
            values.extend([&b"{}"[..], b"\0\0\0\x08", b"\xff\xff\xff\xff\xff\xff\xff\xff"]);
        }
        for extras in &extras {
            for value in &values {
                bodies.push(frame(byte).extras(extras).key(key).value(value).cas(cas));
            }
        }
    }
    bodies
}

/// Sends the bodies of an opcode, each with a witness behind it, to clients that `connect` makes;
/// a client that was let go is replaced.
fn try_opcode(byte: u8, mut connect: impl FnMut() -> Client) {
    let mut client = connect();
    for body in bodies(byte) {
        client.send(&[body.bytes(), frame(NOOP).opaque(WITNESS).bytes()].concat());
        loop {
            match client.try_receive() {
                Some(reply) if reply.opaque == WITNESS => break,
                Some(_) => {}
                None => {
                    client = connect();
                    break;
                }
            }
        }
    }
}

#[test]
fn every_opcode_with_any_body_is_answered_or_ends_its_connection() {
    for workers in [1, 4] {
        let config =
            BucketConfig { seqno_persistence_timeout: Duration::from_millis(1), ..bucket_config() };
        let port = Port::with_buckets(vec![config], workers);
        let mut witness = port.client(&[XERROR]);
        for byte in 0..=u8::MAX {
            try_opcode(byte, || port.connect());
            try_opcode(byte, || port.client(&[XERROR]));
            assert_eq!(witness.ask(frame(NOOP)).status, 0, "{byte:#x}");
        }
    }
}
