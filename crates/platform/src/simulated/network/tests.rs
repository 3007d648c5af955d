//! What a simulated network keeps and loses.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::SimulatedNetwork;
use crate::clock::{Clock, WallTime};
use crate::network::{Listener, Network, Poll, Readiness, Stream, Token};
use crate::random::Random;
use crate::seeds::seeds;

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const STREAM: Token = Token(7);

/// Two machines, and a listener on one.
struct World {
    clock: Clock,
    network: SimulatedNetwork,
    server: Network,
    client: Network,
    listener: Listener,
    poll: Poll,
}

impl World {
    fn new(seed: u64) -> Self {
        let clock = Clock::simulated(WallTime(0));
        let network = SimulatedNetwork::new(clock.clone(), seed);
        let (server, client): (Network, Network) =
            (network.host(SERVER).into(), network.host(CLIENT).into());
        let listener = server.listen(SocketAddr::new(SERVER, 0)).unwrap();
        let poll = server.poll().unwrap();
        Self { clock, network, server, client, listener, poll }
    }

    /// Time passes until something arrives. Whether anything does.
    fn pass(&self) -> bool {
        let next = self.network.next_delivery();
        if let Some(next) = next {
            self.clock.advance(next.since(self.clock.now()));
        }
        next.is_some()
    }

    fn settle(&self) {
        while self.pass() {}
    }

    /// Both ends of a connection.
    fn connection(&self) -> (Stream, Stream) {
        let client = self.client.connect(self.listener.local_address().unwrap()).unwrap();
        self.settle();
        (client, self.listener.accept().unwrap())
    }

    fn ready(&mut self) -> Vec<Readiness> {
        let mut ready = Vec::new();
        self.poll.wait(&mut ready, None).unwrap();
        ready
    }
}

fn kind<T: std::fmt::Debug>(result: std::io::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn readable(is_ending: bool) -> Readiness {
    Readiness { token: STREAM, is_readable: true, is_ending }
}

#[test]
fn bytes_arrive_once_in_their_order_and_not_before_their_time() {
    for seed in seeds(50) {
        let world = World::new(seed);
        let (mut client, mut server) = world.connection();
        let mut random = Random::from_seed(seed);
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let mut target = [0; 300];
        let mut is_late = false;
        while sent.len() < 20_000 {
            let mut bytes = vec![0; 1 + random.below(400) as usize];
            random.fill(&mut bytes);
            let count = client.write(&bytes).unwrap();
            sent.extend_from_slice(&bytes[..count]);
            is_late |= received.len() + count < sent.len();
            for _ in 0..random.below(3) {
                world.pass();
                if let Ok(count) = server.read(&mut target) {
                    received.extend_from_slice(&target[..count]);
                }
            }
        }
        assert!(is_late, "what was just sent is on its way, seed {seed}");
        drop(client);
        world.settle();
        loop {
            match server.read(&mut target).unwrap() {
                0 => break,
                count => received.extend_from_slice(&target[..count]),
            }
        }
        assert!(received == sent, "seed {seed}");
    }
}

#[test]
fn a_wait_is_told_of_each_arrival_once() {
    let mut world = World::new(1);
    let (mut client, server) = world.connection();
    let mut server = world.poll.registry().unwrap().watch(server, STREAM).unwrap();
    assert_eq!(world.ready(), []);
    client.write_all(b"one").unwrap();
    assert_eq!(world.ready(), [], "it is on its way");
    world.settle();
    assert!(world.poll.is_ready());
    assert_eq!(world.ready(), [readable(false)]);
    assert_eq!(world.ready(), [], "it was said");
    client.write_all(b"two").unwrap();
    world.settle();
    assert_eq!(world.ready(), [readable(false)]);
    assert_eq!(server.read(&mut [0; 8]).unwrap(), 6);
    drop(client);
    world.settle();
    assert_eq!(world.ready(), [readable(true)]);
    assert_eq!(server.read(&mut [0; 8]).unwrap(), 0);
    world.poll.waker(Token(1)).unwrap().wake();
    assert_eq!(world.ready()[0].token, Token(1));
    assert!(!world.poll.is_ready());
}

#[test]
fn a_listener_is_told_of_who_comes() {
    let mut world = World::new(1);
    let address = world.listener.local_address().unwrap();
    world.poll.registry().unwrap().watch_listener(&mut world.listener, STREAM).unwrap();
    let _first = world.client.connect(address).unwrap();
    assert_eq!(kind(world.listener.accept()), ErrorKind::WouldBlock);
    world.settle();
    assert_eq!(world.ready(), [readable(false)]);
    assert_eq!(world.listener.accept().unwrap().peer_address().unwrap().ip(), CLIENT);
    assert_eq!(kind(world.listener.accept()), ErrorKind::WouldBlock);
    assert_eq!(kind(world.server.listen(address)), ErrorKind::AddrInUse);
    drop(world.listener);
    assert_eq!(kind(world.client.connect(address)), ErrorKind::ConnectionRefused);
}

#[test]
fn who_does_not_read_is_sent_no_more_until_it_does() {
    let mut world = World::new(1);
    let (mut client, server) = world.connection();
    let mut server = world.poll.registry().unwrap().watch(server, STREAM).unwrap();
    let mut unread = 0;
    let refused = loop {
        match server.write(&[0; 10_000]) {
            Ok(count) => unread += count,
            Err(error) => break error.kind(),
        }
    };
    assert_eq!((refused, unread), (ErrorKind::WouldBlock, 256 << 10));
    world.settle();
    assert_eq!(world.ready(), []);
    assert_eq!(client.read(&mut [0; 1000]).unwrap(), 1000);
    world.settle();
    assert_eq!(world.ready(), [Readiness { token: STREAM, is_readable: false, is_ending: false }]);
    assert_eq!(server.write(&[0; 10_000]).unwrap(), 1000);
}

#[test]
fn a_cut_holds_back_and_loses_nothing() {
    let world = World::new(1);
    let (mut client, mut server) = world.connection();
    client.write_all(b"before ").unwrap();
    world.network.cut(SERVER, CLIENT);
    client.write_all(b"after").unwrap();
    world.settle();
    let mut target = [0; 32];
    assert_eq!(server.read(&mut target).unwrap(), 7);
    assert_eq!(kind(server.read(&mut target)), ErrorKind::WouldBlock);
    let address = world.listener.local_address().unwrap();
    assert_eq!(kind(world.client.connect(address)), ErrorKind::HostUnreachable);
    world.network.heal();
    world.settle();
    assert_eq!(server.read(&mut target).unwrap(), 5);
    assert_eq!(&target[..5], b"after");
}

#[test]
fn a_machine_without_power_says_nothing_and_answers_with_a_reset() {
    let world = World::new(1);
    let (mut client, mut server) = world.connection();
    world.network.power_cut(SERVER);
    world.settle();
    assert_eq!(kind(client.read(&mut [0; 8])), ErrorKind::WouldBlock);
    assert_eq!(kind(server.write(b"x")), ErrorKind::ConnectionReset);
    client.write_all(b"are you there").unwrap();
    assert_eq!(kind(client.read(&mut [0; 8])), ErrorKind::WouldBlock);
    world.settle();
    assert_eq!(kind(client.read(&mut [0; 8])), ErrorKind::ConnectionReset);
    // The sockets of before are of no meaning to those that are opened now.
    let listener = world.server.listen(world.listener.local_address().unwrap()).unwrap();
    let _again = world.client.connect(listener.local_address().unwrap()).unwrap();
    drop(server);
    world.settle();
    assert!(listener.accept().is_ok());
}

#[test]
fn a_seed_gives_the_same_times_and_another_seed_others() {
    let times = |seed| {
        let world = World::new(seed);
        world.network.set_latency(Duration::from_micros(1), Duration::from_millis(5));
        let (mut client, _server) = world.connection();
        (0..20)
            .map(|_| {
                client.write_all(b"x").unwrap();
                world.settle();
                world.clock.now()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(times(3), times(3));
    assert_ne!(times(3), times(4));
}
