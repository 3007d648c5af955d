//! Readiness loops, on a thread and as steps.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::{DeterministicPool, ExecutorPool, Looping, PoolOptions};
use platform::network::{Network, Poll, Readiness, Stream, Token};
use platform::simulated::SimulatedNetwork;
use platform::{Clock, WallTime};

const STREAM: Token = Token(0);
const WAKER: Token = Token(1);
const TICK: Duration = Duration::from_millis(5);

/// Echoes what comes, and counts its turns at which nothing was ready.
struct Echo {
    poll: Poll,
    stream: Stream,
    ticks: Arc<Mutex<u32>>,
    is_told_to_stop: Arc<AtomicBool>,
    is_over: bool,
}

impl Looping for Echo {
    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn patience(&mut self) -> Option<Duration> {
        Some(TICK)
    }

    fn serve(&mut self, ready: &[Readiness]) {
        *self.ticks.lock().unwrap() += u32::from(ready.is_empty());
        if ready.iter().any(|readiness| readiness.token == STREAM) {
            let mut received = [0; 64];
            while let Ok(count @ 1..) = self.stream.read(&mut received) {
                self.stream.write_all(&received[..count]).unwrap();
            }
        }
        self.is_over = self.is_told_to_stop.load(Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

/// A loop that echoes, the other end of its stream, and what the test does meanwhile.
fn echo(pool: &ExecutorPool, server: &Network, client: &Network, mut wait: impl FnMut()) {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let listener = server.listen(address).unwrap();
    let mut other = client.connect(listener.local_address().unwrap()).unwrap();
    let stream = loop {
        match listener.accept() {
            Ok(stream) => break stream,
            Err(_) => wait(),
        }
    };
    let poll = server.poll().unwrap();
    let waker = poll.waker(WAKER).unwrap();
    let stream = poll.registry().unwrap().watch(stream, STREAM).unwrap();
    let (ticks, is_told_to_stop): (Arc<Mutex<u32>>, Arc<AtomicBool>) = Default::default();
    let echo = Echo {
        poll,
        stream,
        ticks: Arc::clone(&ticks),
        is_told_to_stop: Arc::clone(&is_told_to_stop),
        is_over: false,
    };
    let running = pool.spawn_loop("Echo", echo).unwrap();
    for number in 0..10_u8 {
        other.write_all(&[number; 3]).unwrap();
        let mut received = Vec::new();
        while received.len() < 3 {
            let mut part = [0; 3];
            match other.read(&mut part) {
                Ok(count) => received.extend_from_slice(&part[..count]),
                Err(_) => wait(),
            }
        }
        assert_eq!(received, [number; 3]);
    }
    while *ticks.lock().unwrap() < 3 {
        wait();
    }
    is_told_to_stop.store(true, Ordering::SeqCst);
    waker.wake();
    running.join().unwrap();
}

#[test]
fn a_loop_on_a_thread_serves_its_sockets_its_waker_and_its_time() {
    let pool = ExecutorPool::start(Clock::real(), PoolOptions::for_cpus(1)).unwrap();
    let network = Network::real();
    echo(&pool, &network, &network, std::thread::yield_now);
}

#[test]
fn a_loop_without_a_thread_does_the_same_at_times_that_its_seed_decides() {
    let last_time = |seed| {
        let clock = Clock::simulated(WallTime(0));
        let network = SimulatedNetwork::new(clock.clone(), seed);
        let machine = |last| Network::from(network.host(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))));
        let mut driver = DeterministicPool::new(clock.clone(), seed);
        let pool = driver.pool().clone();
        let step = || {
            if !driver.run_one() {
                let next = driver.next_time().into_iter().chain(network.next_delivery()).min();
                clock.advance(next.expect("something happens").since(clock.now()));
            }
        };
        echo(&pool, &machine(1), &machine(2), step);
        clock.now()
    };
    assert_eq!(last_time(1), last_time(1));
    assert_ne!(last_time(1), last_time(2));
}
