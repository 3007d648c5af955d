//! Many requests at once, in slices, to readers that are slow or gone.

use std::io::Write;
use std::time::Duration;

use platform::Random;
use platform::seeds::seeds;
use server::ServerLimits;

use crate::support::{Client, Port, frame, get, set};

/// More than the buffers of two sockets take.
const SOCKET_BYTES_MAX: usize = 16 << 20;

#[test]
fn ten_thousand_requests_in_one_write_come_back_in_order() {
    let port = Port::open();
    let mut client = port.client(&[]);
    let mut bytes = Vec::new();
    for opaque in 0..10_000 {
        let key = format!("key-{}", opaque % 100);
        let request = match opaque % 3 {
            0 => set(key.as_bytes(), b"value"),
            1 => get(key.as_bytes()),
            _ => frame(0x0a),
        };
        bytes.extend(request.opaque(opaque).bytes());
    }
    let mut writer = client.stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| writer.write_all(&bytes).unwrap());
        for opaque in 0..10_000 {
            assert_eq!(client.receive().opaque, opaque);
        }
    });
}

#[test]
fn requests_for_vbuckets_that_are_here_and_for_others_come_back_in_order() {
    const COUNT: u32 = 1_000;
    let port = Port::open();
    for collections in [&[][..], &[0x12]] {
        let mut client = port.client(collections);
        let request = |opaque: u32| {
            let key: &[u8] = match opaque % 4 {
                0..3 => b"\0key",
                _ => &[0xff; 3],
            };
            let vbucket = [0, 1, 2, u16::MAX][opaque as usize / 4 % 4];
            set(key, b"value").vbucket(vbucket).opaque(opaque).bytes()
        };
        client.send(&(0..COUNT).flat_map(request).collect::<Vec<u8>>());
        let together: Vec<_> = (0..COUNT).map(|_| client.receive()).collect();
        for (opaque, answer) in (0..COUNT).zip(together) {
            assert_eq!(answer.opaque, opaque);
            client.send(&request(opaque));
            assert_eq!(client.receive().status, answer.status, "{opaque} {collections:?}");
        }
    }
}

#[test]
fn slices_do_not_matter() {
    let port = Port::open();
    let mut client = port.client(&[]);
    client.stream.set_nodelay(true).unwrap();
    let bytes = [set(b"key", b"value").bytes(), get(b"key").bytes()].concat();
    for byte in bytes {
        client.send(&[byte]);
    }
    assert_eq!(client.receive().status, 0);
    assert_eq!(client.receive().value, b"value");
    for seed in seeds(2) {
        let mut random = Random::from_seed(seed);
        let mut value = vec![0; 20 << 20];
        random.fill(&mut value);
        let bytes = set(b"large", &value).bytes();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let size = usize::try_from(random.below(400_000)).unwrap().min(rest.len());
            client.send(&rest[..size]);
            rest = &rest[size..];
        }
        assert_eq!(client.receive().status, 0, "seed {seed}");
        assert!(client.ask(get(b"large")).value == value, "seed {seed}");
    }
}

#[test]
fn a_reader_that_never_reads_is_paused_and_the_others_are_served() {
    let port = Port::open();
    let mut client = port.client(&[]);
    assert_eq!(client.ask(set(b"large", &vec![b'x'; 1 << 20])).status, 0);
    let requests = get(b"large").bytes().repeat(500);
    client.send(&requests);
    port.wait_for("a pause", |statistics| statistics.slow_reader_pauses > 0);
    let mut others: Vec<_> = (0..4).map(|_| port.client(&[])).collect();
    for other in &mut others {
        assert_eq!(other.ask(get(b"large")).value.len(), 1 << 20);
    }
    // Sent is what the sockets take, and one turn; not five hundred values.
    assert!(port.counter("cmd_get") < 100, "{}", port.counter("cmd_get"));
    for _ in 0..500 {
        assert_eq!(client.receive().value.len(), 1 << 20);
    }
}

/// Sends a request again and again, a segment each, without reading an answer, until nothing of it
/// gets any further for a while or `count_max` were sent.
fn send_without_reading(client: &mut Client, request: &[u8], count_max: usize) {
    client.stream.set_nodelay(true).unwrap();
    client.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    for _ in 0..count_max {
        if client.stream.write_all(request).is_err() {
            break;
        }
        std::thread::yield_now();
    }
}

#[test]
fn answers_to_who_never_reads_are_bounded_however_the_requests_come() {
    // An answer of some 10 KB, a segment for each request.
    const COUNT: u64 = 20_000;
    let error_map = frame(0xfe).value(&[0, 2]).bytes();
    let port = Port::open();
    let limits = ServerLimits::default();
    let before_login = (port.connect(), limits.unauthenticated_unsent_bytes_max);
    let after_login = (port.client(&[]), limits.unsent_bytes_max);
    for (mut client, unsent_bytes_max) in [before_login, after_login] {
        let answer_size = 24 + client.ask(frame(0xfe).value(&[0, 2])).value.len();
        let before = port.counter("cmd_total");
        send_without_reading(&mut client, &error_map, COUNT as usize);
        let executed = port.counter("cmd_total") - before;
        // What sockets of both ends take, of which the system says nothing, and the limit.
        let answered = usize::try_from(executed).unwrap() * answer_size;
        let limit = unsent_bytes_max + answer_size + SOCKET_BYTES_MAX;
        assert!(answered < limit, "{executed} requests, {answered} bytes of answers");
        assert!(executed > 0 && executed < COUNT);
    }
}

#[test]
fn a_request_that_waits_is_overtaken_only_where_that_was_negotiated() {
    let port = Port::open();
    for (features, barrier) in [(vec![], false), (vec![0x0e], false), (vec![0x0e], true)] {
        let mut client = port.client(&features);
        assert_eq!(client.ask(set(b"evicted", b"value")).status, 0);
        while client.ask(frame(0x93).key(b"evicted")).status != 0 {}
        let mut last = get(b"absent").opaque(2);
        if barrier {
            last = last.framing(&[0x00]);
        }
        client.send(&[get(b"evicted").opaque(1).bytes(), last.bytes()].concat());
        let replies = [client.receive(), client.receive()];
        let order = replies.each_ref().map(|reply| reply.opaque);
        let is_unordered = !features.is_empty() && !barrier;
        assert_eq!(order, if is_unordered { [2, 1] } else { [1, 2] }, "{features:?} {barrier}");
        let found = replies.iter().find(|reply| reply.opaque == 1).unwrap();
        assert_eq!(found.value, b"value");
    }
}

#[test]
fn what_is_no_command_or_is_not_supported_is_answered_in_its_turn() {
    const UNKNOWN: u16 = 0x81;
    const NOT_SUPPORTED: u16 = 0x83;
    for workers in [1, 4] {
        let port = Port::with_workers(workers, ServerLimits::default());
        for (opcode, status) in [(0xe8, UNKNOWN), (0x30, NOT_SUPPORTED), (0x28, NOT_SUPPORTED)] {
            for features in [vec![0x07], vec![0x07, 0x0e]] {
                let mut client = port.client(&features);
                assert_eq!(client.ask(set(b"evicted", b"value")).status, 0);
                while client.ask(frame(0x93).key(b"evicted")).status != 0 {}
                let waits = get(b"evicted").opaque(1).bytes();
                let wrong = frame(opcode).opaque(2).bytes();
                client.send(&[waits, wrong, frame(0x0a).opaque(3).bytes()].concat());
                let replies = [(); 3].map(|()| client.receive());
                let order = replies.each_ref().map(|reply| reply.opaque);
                assert_eq!(order, [1, 2, 3], "{opcode:#x} {features:?} {workers}");
                assert_eq!(replies[1].status, status, "{opcode:#x}");
            }
        }
    }
}

#[test]
fn who_stops_asking_still_gets_the_answers() {
    let port = Port::open();
    for features in [vec![0x07], vec![0x07, 0x0e]] {
        for round in 0..50 {
            let mut client = port.client(&features);
            assert_eq!(client.ask(set(b"evicted", b"value")).status, 0);
            while client.ask(frame(0x93).key(b"evicted")).status != 0 {}
            client.send(&get(b"evicted").bytes().repeat(3));
            client.stream.shutdown(std::net::Shutdown::Write).unwrap();
            for _ in 0..3 {
                let reply = client.try_receive();
                let value = reply.unwrap_or_else(|| panic!("{features:?}, round {round}")).value;
                assert_eq!(value, b"value");
            }
            assert!(client.is_closed());
        }
    }
    // A wait that only the peer's last request can end.
    let mut client = port.client(&[0x07, 0x04]);
    let next_seqno = 1 + client.ask(set(b"k", b"v")).mutation_seqno();
    client.send(&frame(0xb7).extras(&next_seqno.to_be_bytes()).bytes());
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(port.client(&[]).ask(set(b"k", b"w")).status, 0);
    assert_eq!(client.receive().status, 0);
    assert!(client.is_closed());
    port.wait_for("all are out", |statistics| statistics.curr_connections == 0);
}

#[test]
fn idle_and_broken_connections_leave_nothing_behind() {
    let port = Port::open();
    let mut idle: Vec<_> = (0..400).map(|_| port.connect()).collect();
    port.wait_for("all are in", |statistics| statistics.curr_connections == 400);
    assert_eq!(port.client(&[]).ask(frame(0x0a)).status, 0);
    idle.clear();
    port.wait_for("all are out", |statistics| statistics.curr_connections == 0);
    let mut client = port.client(&[]);
    let bytes = set(b"half", &vec![b'x'; 10 << 20]).bytes();
    client.send(&bytes[..5 << 20]);
    drop(client);
    port.wait_for("the broken one is out", |statistics| statistics.curr_connections == 0);
    let mut client = port.client(&[]);
    assert_eq!(client.ask(get(b"half")).status, 1);
    assert_eq!(client.ask(frame(0x07)).status, 0);
    assert!(client.is_closed());
    let mut client = port.client(&[]);
    client.send(&frame(0x17).bytes());
    assert!(client.is_closed());
}

#[test]
fn random_bytes_never_stop_the_server() {
    let port = Port::open();
    let mut witness = port.client(&[]);
    for seed in seeds(60) {
        let mut random = Random::from_seed(seed);
        let mut client = port.client(&[0x07, 0x0a, 0x0b, 0x0e, 0x12, 0x10]);
        let mut bytes = Vec::new();
        for _ in 0..30 {
            let mut request = frame(random.below(256) as u8).key(b"\0key");
            request.extras = vec![random.below(3) as u8; random.below(25) as usize];
            request.value = vec![b'7'; random.below(40) as usize];
            request.datatype = random.below(4) as u8;
            bytes.extend(request.bytes());
        }
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        for slice in bytes.chunks(random.below(300) as usize + 1) {
            if client.stream.write_all(slice).is_err() {
                break;
            }
        }
        drop(client);
        assert_eq!(witness.ask(frame(0x0a)).status, 0, "seed {seed}");
    }
    port.wait_for("nothing leaks", |statistics| statistics.curr_connections == 1);
}
