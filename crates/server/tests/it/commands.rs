//! What each command answers. Source: docs/specification/protocol.md, section 10.

use document::compression::deflate;

use crate::support::{Port, frame, get, set};

#[test]
fn documents_are_written_read_counted_locked_and_deleted() {
    let port = Port::open();
    let mut client = port.client(&[0x07, 0x04]);
    let first = client.ask(set(b"k", b"one"));
    assert_eq!((first.status, first.extras.len()), (0, 16));
    let found = client.ask(get(b"k"));
    assert_eq!((found.value.as_slice(), found.cas), (&b"one"[..], first.cas));
    assert_eq!(client.ask(frame(0x02).extras(&[0; 8]).key(b"k")).status, 2);
    assert_eq!(client.ask(frame(0x03).extras(&[0; 8]).key(b"absent")).status, 1);
    assert_eq!(client.ask(set(b"k", b"two").cas(first.cas + 1)).status, 2);
    assert_eq!(client.ask(set(b"k", b"two").cas(first.cas)).status, 0);
    assert_eq!(client.ask(frame(0x0e).key(b"k").value(b"+")).status, 0);
    assert_eq!(client.ask(frame(0x0f).key(b"k").value(b"-")).status, 0);
    assert_eq!(client.ask(get(b"k")).value, b"-two+");
    assert_eq!(client.ask(frame(0x0e).key(b"absent").value(b"+")).status, 5);
    let getk = client.ask(frame(0x0c).key(b"k"));
    assert_eq!((getk.key.as_slice(), getk.value.as_slice()), (&b"k"[..], &b"-two+"[..]));
    let locked = client.ask(frame(0x94).key(b"k").extras(&15_u32.to_be_bytes()));
    assert_eq!(locked.status, 0);
    assert_eq!(client.ask(set(b"k", b"x")).status, 9);
    assert_eq!(client.ask(get(b"k")).cas, u64::MAX);
    assert_eq!(client.ask(frame(0x95).key(b"k").cas(locked.cas)).status, 0);
    assert_eq!(client.ask(frame(0x95).key(b"k").cas(locked.cas)).status, 0x0e);
    for (size, extras) in [(20, vec![]), (21, vec![2])] {
        let meta = client.ask(frame(0xa0).key(b"k").extras(&extras));
        assert_eq!((meta.status, meta.extras.len()), (0, size));
    }
    assert_eq!(client.ask(frame(0x04).key(b"k")).status, 0);
    assert_eq!(client.ask(frame(0x04).key(b"k")).status, 1);
    assert_eq!(client.ask(frame(0x08)).status, 0x83);
}

#[test]
fn counters_wrap_and_stop_at_zero() {
    let port = Port::open();
    let mut client = port.client(&[0x07]);
    let extras = |delta: u64, initial: u64, expiry: u32| {
        [&delta.to_be_bytes()[..], &initial.to_be_bytes(), &expiry.to_be_bytes()].concat()
    };
    let number = |value: u64| value.to_be_bytes().to_vec();
    let mut count = |opcode, extras: Vec<u8>| client.ask(frame(opcode).key(b"n").extras(&extras));
    assert_eq!(count(5, extras(1, 7, u32::MAX)).status, 1);
    assert_eq!(count(5, extras(1, u64::MAX, 0)).value, number(u64::MAX));
    assert_eq!(count(5, extras(2, 0, 0)).value, number(1));
    assert_eq!(count(6, extras(9, 0, 0)).value, number(0));
    assert_eq!(client.ask(set(b"n", b"text")).status, 0);
    assert_eq!(client.ask(frame(5).key(b"n").extras(&extras(1, 0, 0))).status, 6);
}

#[test]
fn quiet_forms_say_only_what_is_unusual() {
    let port = Port::open();
    let mut client = port.client(&[0x07]);
    let quiet_set = frame(0x11).extras(&[0; 8]).key(b"k").value(b"v");
    let requests = [
        quiet_set.opaque(1),
        frame(0x09).key(b"absent").opaque(2),
        frame(0x09).key(b"k").opaque(3),
        frame(0x14).key(b"absent").opaque(4),
        frame(0x0a).opaque(5),
    ];
    client.send(&requests.iter().flat_map(|request| request.bytes()).collect::<Vec<_>>());
    let replies: Vec<_> = (0..3).map(|_| client.receive()).collect();
    let seen: Vec<_> = replies.iter().map(|reply| (reply.opaque, reply.status)).collect();
    assert_eq!(seen, [(3, 0), (4, 1), (5, 0)]);
}

#[test]
fn statistics_end_with_an_empty_packet() {
    let port = Port::open();
    let mut client = port.client(&[0x07]);
    for group in ["", "vbucket", "vbucket-details", "failovers", "timings", "workload"] {
        client.send(&frame(0x10).key(group.as_bytes()).bytes());
        loop {
            let reply = client.receive();
            if reply.status != 0 || (reply.key.is_empty() && reply.value.is_empty()) {
                break;
            }
        }
        assert_eq!(client.ask(frame(0x0a)).status, 0, "{group}");
    }
}

#[test]
fn features_are_granted_exactly_and_forgotten_by_the_next_hello() {
    let port = Port::open();
    let mut client = port.client(&[]);
    assert_eq!(client.hello(&[0x0f, 0x07, 0x7fff]), [0, 7, 0, 0x0f]);
    for request in [set(b"k", b"v"), get(b"k"), get(b"absent"), frame(0xe8)] {
        let reply = client.ask(request);
        assert_eq!(reply.framing.len(), 3, "{reply:?}");
    }
    assert_eq!(client.hello(&[]), b"");
    assert_eq!(client.ask(get(b"k")).framing, b"");
}

#[test]
fn compressed_values_come_back_as_the_reader_wants_them() {
    let port = Port::open();
    let plain = vec![b'a'; 1000];
    let packed = deflate(&plain);
    let mut modern = port.client(&[0x0a, 0x0b]);
    assert_eq!(modern.ask(set(b"k", &packed).datatype(2)).status, 0);
    let reply = modern.ask(get(b"k"));
    assert_eq!((reply.datatype, reply.value), (2, packed));
    let reply = port.client(&[]).ask(get(b"k"));
    assert_eq!((reply.datatype, reply.value), (0, plain));
}

#[test]
fn persistence_is_waited_for() {
    let port = Port::open();
    let mut client = port.client(&[0x07, 0x04]);
    let stored = client.ask(set(b"k", b"v"));
    let reply = client.ask(frame(0xb7).extras(&stored.extras[8..]));
    assert_eq!(reply.status, 0);
    let observed = client.ask(frame(0x91).value(&stored.extras[..8])).value;
    assert_eq!((observed.len(), observed[0]), (27, 0));
    assert_eq!(observed[11..19], stored.extras[8..]);
}

#[test]
fn a_vbucket_out_of_range_answers_with_the_map() {
    let port = Port::open();
    let mut client = port.client(&[0x07, 0x0b]);
    let reply = client.ask(get(b"k").vbucket(99));
    assert_eq!((reply.status, reply.value.as_slice()), (7, &b"{\"rev\":1}"[..]));
}
