//! Connections that only wait: how many, and what they take.

use std::process::Command;
use std::time::Duration;

use server::ServerLimits;

use crate::support::{Client, Port, get, set};

const COUNT: usize = 2000;
/// Bytes of resident memory per idle connection, both ends of it in this process.
const RESIDENT_BYTES_MAX: u64 = 1200;
/// Clients that come first, and what each reads then: buffers that all connections of a worker
/// have in common are in use from then on.
const FIRST_COUNT: usize = 100;
const FIRST_READS: usize = 60;
const IS_ALONE: &str = "SETTEE_TEST_IS_ALONE";

#[test]
fn an_idle_connection_takes_less_than_1200_bytes() {
    if std::env::var_os(IS_ALONE).is_none() {
        println!("{}", measured_in_a_process_of_its_own());
        return;
    }
    let limit = platform::process::raise_open_files_limit();
    assert!(limit > COUNT as u64 * 2 + 200, "both ends need a file each: {limit}");
    let port = Port::open();
    let serve = |key: &[u8]| {
        let mut client = port.client(&[0x07, 0x0a, 0x0b, 0x0e, 0x12]);
        let key = [b"\0", key].concat();
        assert_eq!(client.ask(set(&key, &[b'x'; 5000])).status, 0);
        assert_eq!(client.ask(get(&key)).value.len(), 5000);
        client
    };
    // What is there once: buffers of the workers, the document, threads.
    let mut clients: Vec<Client> = Vec::with_capacity(COUNT + FIRST_COUNT);
    clients.extend((0..FIRST_COUNT).map(|_| serve(b"key")));
    for client in &mut clients {
        for _ in 0..FIRST_READS {
            assert_eq!(client.ask(get(b"\0key")).value.len(), 5000);
        }
    }
    let before = platform::process::resident_bytes();
    clients.extend((0..COUNT).map(|_| serve(b"key")));
    let took = platform::process::resident_bytes().saturating_sub(before);
    let per_connection = took / COUNT as u64;
    println!("{per_connection} bytes of resident memory for each of {COUNT} idle connections");
    assert!(before == 0 || per_connection < RESIDENT_BYTES_MAX, "{per_connection} bytes");
    for client in clients.iter_mut().rev().step_by(100) {
        assert_eq!(client.ask(get(b"\0key")).value.len(), 5000);
    }
    drop(clients);
    port.wait_for("all are out", |statistics| statistics.curr_connections == 0);
}

/// Other tests of this binary take and free memory meanwhile.
fn measured_in_a_process_of_its_own() -> String {
    let name = "idle::an_idle_connection_takes_less_than_1200_bytes";
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", name, "--nocapture"]).env(IS_ALONE, "1").output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
    text
}

#[test]
fn clients_that_come_before_the_workers_are_served_by_all_of_them() {
    for workers in [1, 4, 6] {
        for _ in 0..3 {
            let (port, mut clients) = Port::open_late(workers, 24);
            for client in &mut clients {
                client.hello(&[]);
            }
            drop(port);
        }
    }
}

#[test]
fn workers_answer_who_looks_after_them_until_they_end() {
    for workers in [1, 4] {
        let (port, clients) = Port::open_late(workers, 1);
        assert!(port.server.answers_within(Duration::from_secs(20)));
        drop(clients);
        port.server.stop();
        assert!(!port.server.answers_within(Duration::from_millis(50)));
    }
}

#[test]
fn connections_beyond_the_limit_are_closed_and_counted() {
    let port = Port::with_limits(ServerLimits { connections_max: 3, ..ServerLimits::default() });
    let mut clients: Vec<_> = (0..3).map(|_| port.client(&[])).collect();
    assert!(port.connect().is_closed());
    assert_eq!(port.counter("rejected_connections"), 1);
    assert_eq!(clients[0].ask(get(b"k")).status, 1);
    clients.pop();
    port.wait_for("one is out", |statistics| statistics.curr_connections == 2);
    assert_eq!(port.client(&[]).ask(get(b"k")).status, 1);
}

#[test]
fn who_has_not_logged_in_gives_way_to_who_comes_later() {
    let port = Port::with_limits(ServerLimits { connections_max: 8, ..ServerLimits::default() });
    let mut members: Vec<_> = (0..2).map(|_| port.client(&[])).collect();
    let mut silent = Vec::new();
    for number in 3..33 {
        silent.push(port.connect());
        port.wait_for("it is in", |statistics| statistics.total_connections == number);
    }
    for _ in 0..6 {
        members.push(port.client(&[]));
    }
    for member in &mut members {
        assert_eq!(member.ask(get(b"k")).status, 1);
    }
    for stranger in &mut silent {
        assert!(stranger.is_closed());
    }
    assert_eq!(port.counter("displaced_connections"), 30);
    assert_eq!(port.counter("rejected_connections"), 0);
    // Those who have logged in give way to nobody.
    assert!(port.connect().is_closed());
    assert_eq!(port.counter("rejected_connections"), 1);
    drop(members);
    port.wait_for("all are out", |statistics| statistics.curr_connections == 0);
    assert_eq!(port.client(&[]).ask(get(b"k")).status, 1);
}

#[test]
fn of_an_address_with_too_many_strangers_the_oldest_goes_and_members_stay() {
    for workers in [1, 4] {
        let limits = ServerLimits { strangers_of_address_max: 5, ..ServerLimits::default() };
        let port = Port::with_workers(workers, limits);
        let mut members: Vec<_> = (0..8).map(|_| port.client(&[])).collect();
        let mut silent = Vec::new();
        for number in 9..29 {
            silent.push(port.connect());
            port.wait_for("it is in", |statistics| statistics.total_connections == number);
        }
        port.wait_for("a crowd", |statistics| statistics.crowded_connections == 15);
        for stranger in &mut silent[..15] {
            assert!(stranger.is_closed());
        }
        members.push(port.client(&[]));
        for member in &mut members {
            assert_eq!(member.ask(get(b"k")).status, 1, "{workers}");
        }
        assert_eq!(port.counter("displaced_connections"), 16, "the newcomer was one, too");
        assert_eq!(port.counter("rejected_connections"), 0);
    }
}

#[test]
fn a_node_without_requests_wakes_no_background_thread() {
    let port = Port::open();
    let mut client = port.client(&[0x07, 0x0a, 0x0b, 0x0e, 0x12]);
    assert_eq!(client.ask(set(b"\0key", b"value")).status, 0);
    let mut wakeups = || {
        let workload = client.statistics("workload").unwrap();
        let count = workload.iter().find(|(name, _)| name == "ep_workload:wakeups").unwrap();
        count.1.parse::<u64>().unwrap()
    };
    // Work that the request has left behind comes to rest: three equal counts in a row.
    let mut last = [u64::MAX; 3];
    for _ in 0..200 {
        last = [last[1], last[2], wakeups()];
        if last == [last[2]; 3] && last[2] > 0 {
            return;
        }
        pause(Duration::from_millis(300));
    }
    panic!("the background never rests: {last:?}");
}

fn pause(duration: Duration) {
    let (_silent, receiver) = std::sync::mpsc::channel::<()>();
    assert!(receiver.recv_timeout(duration).is_err());
}
