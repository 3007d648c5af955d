//! What clients may have the server hold, and for how long.

use std::time::Duration;

use server::ServerLimits;

use crate::support::{Client, Port, frame, get, set};

const OK: u16 = 0;
const ETMPFAIL: u16 = 0x86;
const UNORDERED: u16 = 0x0e;

/// A server whose clients may have it hold this many bytes.
fn with_budget(client_bytes_max: usize) -> Port {
    Port::with_limits(ServerLimits { client_bytes_max, ..ServerLimits::default() })
}

fn held_bytes(client: &mut Client) -> usize {
    let group = client.statistics("connections").unwrap();
    group.iter().find(|(name, _)| name == "client_bytes").unwrap().1.parse().unwrap()
}

#[test]
fn a_large_request_is_refused_while_others_hold_the_budget_and_costs_no_connection() {
    // Received in place, and, because it is compressed, received as it comes.
    for datatype in [0, 2] {
        let port = with_budget(16 << 20);
        let request = |key: &[u8]| set(key, &vec![0; 3 << 20]).datatype(datatype);
        let mut witness = port.client(&[]);
        let mut holders: Vec<_> = (0..2).map(|_| port.client(&[0x0a])).collect();
        for holder in &mut holders {
            holder.send(&request(b"held").bytes()[..2 << 20]);
        }
        port.wait_for("they hold", |_| held_bytes(&mut witness) > 4 << 20);
        let mut refused = port.client(&[0x0a]);
        for _ in 0..2 {
            assert_eq!(refused.ask(request(b"refused")).status, ETMPFAIL, "{datatype}");
            assert_eq!(refused.ask(set(b"small", b"value")).status, OK, "{datatype}");
            assert_eq!(refused.ask(get(b"small")).value, b"value", "{datatype}");
        }
        drop(holders);
        port.wait_for("they are gone", |_| held_bytes(&mut witness) < 1 << 20);
        assert_ne!(refused.ask(request(b"refused")).status, ETMPFAIL, "{datatype}");
        assert_eq!(port.counter("refused_large_requests"), 2);
    }
}

#[test]
fn a_used_up_budget_lets_nobody_in_and_serves_those_who_read() {
    // More than the buffers of two sockets take.
    const ASKED: usize = 20;
    let port = with_budget(4 << 20);
    let mut reader = port.client(&[]);
    assert_eq!(reader.ask(set(b"large", &vec![b'x'; 1 << 20])).status, OK);
    // Of different sizes: what sockets take is a whole number of them for hardly anybody.
    let size = |number: usize| (1 << 20) - (number << 15);
    for number in 0..16 {
        let set = set(&[number as u8], &vec![b'x'; size(number)]);
        assert_eq!(reader.ask(set).status, OK);
    }
    let mut crowd: Vec<_> = (0..16).map(|_| port.client(&[])).collect();
    for (number, client) in crowd.iter_mut().enumerate() {
        client.send(&get(&[number as u8]).bytes().repeat(ASKED));
    }
    port.wait_for("the budget is used up", |_| held_bytes(&mut reader) > 4 << 20);
    // What one turn adds, for each worker.
    for _ in 0..50 {
        assert!(held_bytes(&mut reader) < 12 << 20);
        assert_eq!(reader.ask(get(b"large")).value.len(), 1 << 20);
    }
    assert!(port.connect().is_closed());
    assert!(port.counter("rejected_connections") > 0);
    // Who reads gets everything.
    for (number, client) in crowd.iter_mut().enumerate() {
        for _ in 0..ASKED {
            assert_eq!(client.receive().value.len(), size(number));
        }
    }
    port.wait_for("nothing is held", |_| held_bytes(&mut reader) < 1 << 20);
    assert_eq!(port.client(&[]).ask(get(b"k")).status, 1);
}

#[test]
fn strangers_who_do_not_read_use_up_no_more_than_their_share() {
    const STRANGERS_BYTES_MAX: usize = 1 << 20;
    let port = with_budget(8 * STRANGERS_BYTES_MAX);
    let mut witness = port.client(&[]);
    let ask = frame(0xfe).value(&[0, 2]).bytes();
    let mut strangers = Vec::new();
    for _ in 0..200 {
        let mut stranger = port.connect();
        // Far more answers than sockets take.
        stranger.send(&ask.repeat(2000));
        strangers.push(stranger);
    }
    port.wait_for("some are let go of", |statistics| statistics.displaced_connections > 0);
    for number in 0..50_u8 {
        assert!(held_bytes(&mut witness) < 3 * STRANGERS_BYTES_MAX);
        let large = set(&[number], &vec![b'x'; 1 << 20]);
        assert_eq!(witness.ask(large).status, OK, "clients do not notice");
        assert_eq!(port.client(&[]).ask(get(&[number])).value.len(), 1 << 20, "nor who comes");
    }
    assert_eq!(port.counter("rejected_connections"), 0);
}

#[test]
fn logins_that_stop_half_way_count_as_what_they_hold() {
    let port = with_budget(8 << 20);
    let mut witness = port.client(&[]);
    let before = held_bytes(&mut witness);
    let nonce = "n".repeat(3000);
    let begin = format!("n,,n=user,r={nonce}");
    let begin = frame(0x21).key(b"SCRAM-SHA512").value(begin.as_bytes());
    let half_way = || {
        let mut stranger = port.connect();
        stranger.send(&begin.bytes());
        stranger
    };
    let mut strangers: Vec<_> = (0..50).map(|_| half_way()).collect();
    port.wait_for("they hold", |_| held_bytes(&mut witness) > before + 50 * nonce.len());
    strangers.extend((0..250).map(|_| half_way()));
    port.wait_for("too many", |statistics| statistics.displaced_connections > 0);
    assert!(held_bytes(&mut witness) < 3 << 20);
    assert_eq!(port.client(&[]).ask(get(b"k")).status, 1, "a login holds less");
    drop(strangers);
    port.wait_for("they are gone", |_| held_bytes(&mut witness) <= before);
}

#[test]
fn values_that_come_from_disk_wait_for_their_reader() {
    let port = Port::open();
    let mut client = port.client(&[UNORDERED]);
    let keys: Vec<String> = (0..32).map(|number| format!("key-{number}")).collect();
    for key in &keys {
        assert_eq!(client.ask(set(key.as_bytes(), &vec![b'x'; 2 << 20])).status, OK);
        while client.ask(frame(0x93).key(key.as_bytes())).status != OK {}
    }
    for key in &keys {
        client.send(&get(key.as_bytes()).bytes());
    }
    let mut witness = port.client(&[]);
    port.wait_for("some wait", |_| held_bytes(&mut witness) > 1 << 20);
    for _ in 0..20 {
        assert!(held_bytes(&mut witness) < 8 << 20, "{}", held_bytes(&mut witness));
    }
    for _ in &keys {
        assert_eq!(client.receive().value.len(), 2 << 20);
    }
}

#[test]
fn who_does_not_log_in_or_does_not_read_is_let_go() {
    let limit = Duration::from_secs(4);
    let port = Port::with_limits(ServerLimits {
        login_time_max: limit,
        stalled_time_max: limit,
        ..ServerLimits::default()
    });
    let mut patient = port.client(&[]);
    assert_eq!(patient.ask(set(b"large", &vec![b'x'; 8 << 20])).status, OK);
    let mut silent: Vec<_> = (0..8).map(|_| port.connect()).collect();
    let mut slow = port.client(&[]);
    slow.send(&get(b"large").bytes().repeat(8));
    for client in &mut silent {
        assert!(client.is_closed());
    }
    port.wait_for("the reader is let go", |statistics| statistics.stalled_writes == 1);
    assert_eq!(port.counter("login_timeouts"), 8);
    assert_eq!(patient.ask(get(b"large")).value.len(), 8 << 20);
}

/// A server that waits two seconds for the rest of a request when memory is short.
fn impatient() -> Port {
    Port::with_limits(ServerLimits {
        client_bytes_max: 16 << 20,
        stalled_time_max: Duration::from_secs(2),
        ..ServerLimits::default()
    })
}

/// Begins so many stores of 60 KiB by the memcached port, and leaves them half sent.
fn half_sent_by_guests(port: &Port, count: usize) -> Vec<Client> {
    let begin = |number: usize| {
        let mut guest = Client::connected_to(port.memcached_address);
        let line = format!("set half-{number} 0 0 {}\r\n", 60 << 10);
        guest.send(&[line.as_bytes(), &vec![b'x'; 8 << 10]].concat());
        guest
    };
    (0..count).map(begin).collect()
}

#[test]
fn what_guests_leave_half_sent_keeps_nobody_from_the_data_port() {
    // An eighth for strangers, and half of the rest for each of the others.
    let port = with_budget(16 << 20);
    let mut witness = port.client(&[]);
    let guests = half_sent_by_guests(&port, 120);
    port.wait_for("their share is used up", |_| held_bytes(&mut witness) > 7 << 20);
    assert!(Client::connected_to(port.memcached_address).is_closed(), "nobody comes after them");
    for number in 0..20_u8 {
        let large = set(&[number], &vec![b'x'; 1 << 20]);
        assert_eq!(witness.ask(large).status, OK, "clients do not notice");
        assert_eq!(port.client(&[]).ask(get(&[number])).value.len(), 1 << 20, "nor who comes");
    }
    drop(guests);
    port.wait_for("they are gone", |_| held_bytes(&mut witness) < 1 << 20);
    let mut guest = Client::connected_to(port.memcached_address);
    assert_eq!(guest.ask(get(&[0])).value.len(), 1 << 20);
}

#[test]
fn a_header_counts_as_what_room_is_taken_for() {
    let port = impatient();
    let mut witness = port.client(&[]);
    // Compressed, it is received as it comes.
    let announced = set(b"k", &vec![0; 6 << 20]).datatype(2).bytes();
    let mut guest = Client::connected_to(port.memcached_address);
    assert_eq!(guest.ask(frame(0x0a)).status, 0);
    guest.send(&announced[..24]);
    port.wait_for("room is taken", |_| held_bytes(&mut witness) > 6 << 20);
    port.wait_for("it is let go", |statistics| statistics.stalled_requests == 1);
    port.wait_for("and the room is free", |_| held_bytes(&mut witness) < 1 << 20);
}

#[test]
fn what_stays_half_sent_while_memory_is_short_is_let_go() {
    let port = impatient();
    let mut patient = port.client(&[]);
    let half = set(b"slow", &vec![b'x'; 1 << 20]).bytes();
    patient.send(&half[..100 << 10]);
    let guests = half_sent_by_guests(&port, 120);
    port.wait_for("they are let go", |statistics| statistics.stalled_requests > 0);
    assert_eq!(Client::connected_to(port.memcached_address).ask(get(b"k")).status, 1);
    patient.send(&half[100 << 10..]);
    assert_eq!(patient.receive().status, OK, "whose memory is not short is waited for");
    drop(guests);
}

#[test]
fn logins_that_wait_are_bounded_and_hold_up_nothing_else() {
    // More than may wait, far more than are checked while they come.
    const COUNT: usize = 200;
    let port = Port::open();
    let mut witness = port.client(&[]);
    let login = |number: usize| {
        let password = format!("\0user\0wrong-{number}");
        frame(0x21).key(b"PLAIN").value(password.as_bytes()).bytes()
    };
    let mut guessing: Vec<_> = (0..COUNT).map(|_| port.connect()).collect();
    for (number, client) in guessing.iter_mut().enumerate() {
        client.send(&login(number));
    }
    // Who is in already, and housekeeping, do not wait for a password to be checked.
    assert_eq!(witness.ask(set(b"key", b"value")).status, OK);
    let statuses: Vec<u16> = guessing.iter_mut().map(|client| client.receive().status).collect();
    let refused = statuses.iter().filter(|&&status| status == ETMPFAIL).count();
    let wrong = statuses.iter().filter(|&&status| status == 0x20).count();
    assert_eq!(refused + wrong, COUNT, "{statuses:x?}");
    assert!(refused > 0 && wrong > 0, "{statuses:x?}");
    // What clients that have left asked for is not done.
    let again: Vec<_> = (0..COUNT).map(|_| port.connect()).collect();
    for (number, mut client) in again.into_iter().enumerate() {
        client.send(&login(number));
    }
    port.wait_for("all have left", |statistics| statistics.curr_connections <= 1 + COUNT as u64);
    assert_eq!(port.client(&[]).ask(get(b"key")).value, b"value");
}
