//! One server over each kind of loop: it sends back what it is sent, as the front end does it.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Listener, Network, Poll, Readiness, Registry, Stream, Token, Waker};

const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
/// Bytes that wait for a client before nothing more is read from it.
const UNSENT_BYTES_MAX: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(20);
/// Round trips after which the loop has had every reason to receive ahead.
const WARM_UP: usize = 50;

/// When the server closes a connection by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// When its client has said all and has been sent all.
    AtEnd,
    /// As soon as it has answered something that ends with a full stop.
    AtFullStop,
}

/// A server on a thread of its own.
struct Server {
    address: SocketAddr,
    waker: Arc<Waker>,
    is_stopping: Arc<AtomicBool>,
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

/// What the server has seen.
#[derive(Default)]
struct Seen {
    held_bytes_max: AtomicUsize,
    ahead_bytes_max: AtomicUsize,
    wakes: AtomicUsize,
    connections: AtomicUsize,
}

struct Loop {
    manner: Manner,
    poll: Poll,
    registry: Registry,
    listener: Listener,
    peers: HashMap<usize, Peer>,
    free: Vec<usize>,
    again: Vec<usize>,
    seen: Arc<Seen>,
}

struct Peer {
    stream: Stream,
    unsent: Vec<u8>,
    is_readable: bool,
    is_ending: bool,
    is_at_end: bool,
    is_closing: bool,
}

impl Server {
    fn start(network: &Network, manner: Manner) -> Self {
        let mut listener = network.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_address().unwrap();
        let poll = network.poll_for_clients().unwrap();
        let waker = Arc::new(poll.waker(WAKER).unwrap());
        let registry = poll.registry().unwrap();
        registry.watch_listener(&mut listener, LISTENER).unwrap();
        let (is_stopping, seen): (Arc<AtomicBool>, Arc<Seen>) = Default::default();
        let (peers, free, again) = Default::default();
        let mut running =
            Loop { manner, poll, registry, listener, peers, free, again, seen: Arc::clone(&seen) };
        let stop = Arc::clone(&is_stopping);
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                running.step();
            }
        });
        Self { address, waker, is_stopping, seen, thread: Some(thread) }
    }

    fn client(&self) -> TcpStream {
        let client = super::connect(self.address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        client
    }

    /// A client whose small requests have been answered.
    fn warm_client(&self) -> TcpStream {
        let mut client = self.client();
        (0..WARM_UP).for_each(|number| echo(&mut client, format!("{number} ").as_bytes()));
        client
    }

    fn stop(&mut self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.waker.wake();
    }
}

impl Loop {
    fn step(&mut self) {
        let mut ready = Vec::new();
        let patience = if self.again.is_empty() { None } else { Some(Duration::ZERO) };
        self.poll.wait(&mut ready, patience).unwrap();
        for Readiness { token, is_readable, is_ending } in ready {
            match token {
                WAKER => _ = self.seen.wakes.fetch_add(1, Ordering::SeqCst),
                LISTENER => self.accept(),
                Token(token) => {
                    if let Some(peer) = self.peers.get_mut(&token) {
                        let ahead_bytes = peer.stream.unread_bytes();
                        self.seen.ahead_bytes_max.fetch_max(ahead_bytes, Ordering::SeqCst);
                        peer.is_ending |= is_ending;
                        peer.is_readable |= is_readable || is_ending;
                        self.turn(token);
                    }
                }
            }
        }
        for token in std::mem::take(&mut self.again) {
            self.turn(token);
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok(stream) => {
                    let number = self.seen.connections.fetch_add(1, Ordering::SeqCst);
                    let token = self.free.pop().unwrap_or(number);
                    let stream = self.registry.watch(stream, Token(token)).unwrap();
                    stream.allow_ahead(true);
                    let (is_ending, is_at_end, is_closing) = Default::default();
                    let unsent = Vec::new();
                    let is_readable = true;
                    let peer =
                        Peer { stream, unsent, is_readable, is_ending, is_at_end, is_closing };
                    self.peers.insert(token, peer);
                    self.turn(token);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn turn(&mut self, token: usize) {
        let Some(peer) = self.peers.get_mut(&token) else { return };
        let is_over = peer.turn(self.manner).unwrap_or(true);
        let ahead_bytes = peer.stream.unread_bytes() + peer.stream.unsent_bytes();
        let held_bytes = peer.unsent.len() + ahead_bytes;
        self.seen.held_bytes_max.fetch_max(held_bytes, Ordering::SeqCst);
        if is_over {
            let mut peer = self.peers.remove(&token).unwrap();
            self.registry.forget(&mut peer.stream).unwrap();
            self.free.push(token);
        } else if peer.may_read() {
            self.again.push(token);
        }
    }
}

impl Peer {
    fn may_read(&self) -> bool {
        let has_room = self.unsent.len() < UNSENT_BYTES_MAX;
        self.is_readable && !self.is_at_end && !self.is_closing && has_room
    }

    /// Whether the connection is over.
    fn turn(&mut self, manner: Manner) -> io::Result<bool> {
        self.send()?;
        let mut buffer = vec![0; 32 << 10];
        if self.may_read() {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_at_end = true,
                Ok(count) => {
                    self.is_readable = count == buffer.len() || self.is_ending;
                    self.unsent.extend_from_slice(&buffer[..count]);
                    let is_last = manner == Manner::AtFullStop && buffer[count - 1] == b'.';
                    self.is_closing |= is_last;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) => return Err(error),
            }
        }
        self.send()?;
        let is_over = self.is_at_end || self.is_closing;
        Ok(is_over && self.unsent.is_empty() && (self.is_closing || self.stream.has_sent()))
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Each kind of loop that works here, by name.
fn networks() -> Vec<(&'static str, Network)> {
    let uring = Network::with_uring().ok().map(|network| ("uring", network));
    std::iter::once(("epoll", Network::real())).chain(uring).collect()
}

fn on_each(manner: Manner, test: impl Fn(&mut Server)) {
    for (name, network) in networks() {
        println!("{name}");
        test(&mut Server::start(&network, manner));
    }
}

fn echo(client: &mut TcpStream, bytes: &[u8]) {
    client.write_all(bytes).unwrap();
    expect(client, bytes);
}

fn expect(client: &mut TcpStream, bytes: &[u8]) {
    let mut answer = vec![0; bytes.len()];
    client.read_exact(&mut answer).unwrap();
    assert!(answer == bytes, "what was sent comes back");
}

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index % 251) as u8).collect()
}

#[test]
fn small_messages_come_back_one_by_one_and_many_at_once() {
    on_each(Manner::AtEnd, |server| {
        let mut client = server.client();
        for size in (1..400).chain((1..40).map(|step| step * 1000)) {
            echo(&mut client, &pattern(size));
        }
        let mut others: Vec<TcpStream> = (0..20).map(|_| server.warm_client()).collect();
        for round in 1..50 {
            let message = pattern(round * 37);
            for other in &mut others {
                other.write_all(&message).unwrap();
                other.write_all(&message).unwrap();
            }
            for other in &mut others {
                expect(other, &message);
                expect(other, &message);
            }
        }
    });
}

#[test]
fn small_requests_are_received_ahead_by_a_ring_alone() {
    for (name, network) in networks() {
        let server = Server::start(&network, Manner::AtEnd);
        drop(server.warm_client());
        let ahead_bytes = server.seen.ahead_bytes_max.load(Ordering::SeqCst);
        assert_eq!(ahead_bytes > 0, name == "uring", "{name}");
    }
}

#[test]
fn more_connections_than_buffers_are_all_answered() {
    on_each(Manner::AtEnd, |server| {
        let mut clients: Vec<TcpStream> = (0..400).map(|_| server.warm_client()).collect();
        for round in 1..10 {
            let message = pattern(round * 100);
            clients.iter_mut().for_each(|client| client.write_all(&message).unwrap());
            clients.iter_mut().for_each(|client| expect(client, &message));
        }
    });
}

#[test]
fn a_large_transfer_arrives_whole_in_both_directions() {
    on_each(Manner::AtEnd, |server| {
        let mut client = server.warm_client();
        let bytes = pattern(20 << 20);
        let mut writer = client.try_clone().unwrap();
        let sent = bytes.clone();
        let writing = thread::spawn(move || writer.write_all(&sent).unwrap());
        expect(&mut client, &bytes);
        writing.join().unwrap();
        // Small ones follow as before.
        (0..WARM_UP).for_each(|_| echo(&mut client, b"after"));
    });
}

#[test]
fn who_says_no_more_is_still_answered() {
    on_each(Manner::AtEnd, |server| {
        for (is_warm, size) in [(false, 10), (true, 10), (false, 1 << 20), (true, 1 << 20)] {
            let mut client = if is_warm { server.warm_client() } else { server.client() };
            let bytes = pattern(size);
            let mut writer = client.try_clone().unwrap();
            let sent = bytes.clone();
            let writing = thread::spawn(move || {
                writer.write_all(&sent).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            assert!(answer == bytes, "everything is answered: {} of {size}", answer.len());
            writing.join().unwrap();
        }
    });
}

#[test]
fn who_does_not_read_makes_the_node_hold_little_and_gets_everything_later() {
    on_each(Manner::AtEnd, |server| {
        let mut client = server.warm_client();
        // More than the system takes for both ends.
        let bytes = pattern(128 << 20);
        client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut sent = 0;
        // Small pieces, which are received ahead.
        while sent < bytes.len() {
            let end = bytes.len().min(sent + 3000);
            match client.write(&bytes[sent..end]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(sent < bytes.len(), "nobody takes so much of who does not read");
        // The node's own buffers, one send and what is received in two waits.
        let held = server.seen.held_bytes_max.load(Ordering::SeqCst);
        assert!(held <= 2 * UNSENT_BYTES_MAX + (16 << 10) + (256 << 10), "held: {held}");
        expect(&mut client, &bytes[..sent]);
        (0..WARM_UP).for_each(|_| echo(&mut client, b"after"));
    });
}

#[test]
fn what_was_written_before_a_close_arrives() {
    on_each(Manner::AtFullStop, |server| {
        for size in [1, 100, 16 << 10, 60_000] {
            for is_warm in [false, true] {
                let mut client = if is_warm { server.warm_client() } else { server.client() };
                let mut bytes = pattern(size);
                bytes.retain(|byte| *byte != b'.');
                bytes.push(b'.');
                client.write_all(&bytes).unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).unwrap();
                assert!(answer == bytes, "all of {size} arrive, not {}", answer.len());
            }
        }
    });
}

#[test]
fn the_end_of_a_loop_ends_its_connections_after_what_was_written() {
    on_each(Manner::AtEnd, |server| {
        let mut clients: Vec<TcpStream> = (0..20).map(|_| server.warm_client()).collect();
        server.stop();
        for client in &mut clients {
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, []);
        }
    });
}

#[test]
fn whoever_comes_into_a_place_meets_nothing_of_the_one_before() {
    on_each(Manner::AtEnd, |server| {
        for round in 0..300_usize {
            let mut client = server.client();
            for _ in 0..round % 12 {
                echo(&mut client, &pattern(round + 1));
            }
            match round % 4 {
                0 => drop(client),
                // It is reset: something was not read.
                1 => client.write_all(&pattern(5000)).unwrap(),
                2 => client.shutdown(Shutdown::Both).unwrap(),
                _ => {
                    client.write_all(b"?").unwrap();
                    client.shutdown(Shutdown::Write).unwrap();
                }
            }
        }
        echo(&mut server.warm_client(), b"at last");
    });
}

#[test]
fn a_wake_from_another_thread_ends_a_wait() {
    on_each(Manner::AtEnd, |server| {
        for number in 1..200 {
            server.waker.wake();
            let deadline = Instant::now() + PATIENCE;
            while server.seen.wakes.load(Ordering::SeqCst) < number {
                assert!(Instant::now() < deadline, "wake {number} is noticed");
                thread::yield_now();
            }
        }
    });
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    for (name, network) in networks() {
        let mut poll = network.poll_for_clients().unwrap();
        let mut ready = vec![Readiness { token: WAKER, is_readable: true, is_ending: false }];
        let begun = Instant::now();
        let mut wait_count = 0;
        // A signal ends a wait early.
        while begun.elapsed() < Duration::from_millis(15) {
            poll.wait(&mut ready, Some(Duration::from_millis(20))).unwrap();
            assert_eq!(ready, [], "{name}");
            wait_count += 1;
        }
        assert!(wait_count < 10, "{name}: {wait_count} waits in the time of one");
        poll.wait(&mut ready, Some(Duration::ZERO)).unwrap();
        assert_eq!(ready, [], "{name}");
    }
}

#[test]
fn a_stream_outlasts_its_loop() {
    for (name, network) in networks() {
        let listener = network.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let mut client = super::connect(listener.local_address().unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let accepted = loop {
            match listener.accept() {
                Ok(stream) => break stream,
                Err(_) => thread::yield_now(),
            }
        };
        let mut poll = network.poll_for_clients().unwrap();
        let mut stream = poll.registry().unwrap().watch(accepted, Token(3)).unwrap();
        let mut ready = Vec::new();
        poll.wait(&mut ready, Some(Duration::ZERO)).unwrap();
        drop(poll);
        client.write_all(b"ping").unwrap();
        let mut answer = [0; 4];
        while stream.read(&mut answer).is_err() {
            thread::yield_now();
        }
        stream.write_all(b"pong").unwrap();
        drop(stream);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        assert_eq!((answer, heard.as_slice()), (*b"ping", b"pong".as_slice()), "{name}");
    }
}

#[test]
fn a_connection_that_is_being_made_says_when_it_is() {
    for (name, network) in networks() {
        let listener = network.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let mut poll = network.poll_for_clients().unwrap();
        let connecting = network.connect(listener.local_address().unwrap()).unwrap();
        let mut stream = poll.registry().unwrap().watch(connecting, Token(3)).unwrap();
        let mut ready = Vec::new();
        while ready.is_empty() {
            poll.wait(&mut ready, Some(PATIENCE)).unwrap();
        }
        assert!(ready.iter().all(|readiness| readiness.token == Token(3)), "{name}");
        stream.write_all(b"hello").unwrap();
    }
}
