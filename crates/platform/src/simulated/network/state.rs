//! What a simulated network remembers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::connections::{Connections, EndNumber};
use crate::clock::{Clock, Instant};
use crate::network::readiness::{Readiness, Token};
use crate::random::Random;

/// A place where a loop looks for news.
pub(super) type PollNumber = u64;
/// Where news of a socket go, and under which name.
pub(super) type Watch = (PollNumber, Token);

/// The first port that a machine takes by itself.
const PORT_MIN: u16 = 20_000;

/// Everything about a network.
#[derive(Debug)]
pub(super) struct State {
    clock: Clock,
    random: Random,
    latency: (Duration, Duration),
    /// Pairs of machines between which nothing passes, the lower address first.
    cuts: BTreeSet<(IpAddr, IpAddr)>,
    listeners: BTreeMap<SocketAddr, Arrivals>,
    pub(super) connections: Connections,
    /// Wakes that nobody has seen yet, by poll.
    wakes: Vec<BTreeSet<Token>>,
    next_port: u16,
}

/// Connections that are to be accepted, each with its arrival and whether that has ended a wait.
#[derive(Debug, Default)]
struct Arrivals {
    waiting: VecDeque<(Instant, EndNumber, bool)>,
    watch: Option<Watch>,
}

impl Arrivals {
    fn have_news(&self, now: Instant) -> bool {
        self.waiting.iter().any(|&(arrival, _, is_told)| arrival <= now && !is_told)
    }
}

impl State {
    pub(super) fn new(clock: Clock, seed: u64) -> Self {
        Self {
            clock,
            random: Random::from_seed(seed),
            latency: (Duration::from_micros(20), Duration::from_micros(200)),
            cuts: BTreeSet::new(),
            listeners: BTreeMap::new(),
            connections: Connections::default(),
            wakes: Vec::new(),
            next_port: PORT_MIN,
        }
    }

    pub(super) fn set_latency(&mut self, min: Duration, max: Duration) {
        self.latency = (min, max);
    }

    pub(super) fn add_poll(&mut self) -> PollNumber {
        self.wakes.push(BTreeSet::new());
        self.wakes.len() as PollNumber - 1
    }

    pub(super) fn wake(&mut self, poll: PollNumber, token: Token) {
        if let Some(wakes) = self.wakes.get_mut(index(poll)) {
            wakes.insert(token);
        }
    }

    pub(super) fn listen(&mut self, machine: IpAddr, port: u16) -> io::Result<SocketAddr> {
        let port = if port == 0 { self.take_port() } else { port };
        let address = SocketAddr::new(machine, port);
        if self.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.listeners.insert(address, Arrivals::default());
        Ok(address)
    }

    pub(super) fn watch_listener(&mut self, address: SocketAddr, watch: Watch) {
        if let Some(listener) = self.listeners.get_mut(&address) {
            listener.watch = Some(watch);
        }
    }

    pub(super) fn close_listener(&mut self, address: SocketAddr) {
        let Some(listener) = self.listeners.remove(&address) else { return };
        for (_, end, _) in listener.waiting {
            self.close(end);
        }
    }

    /// Without a listener the connection is refused; behind a cut nobody is reached.
    pub(super) fn connect(&mut self, from: IpAddr, to: SocketAddr) -> io::Result<EndNumber> {
        if self.is_cut(from, to.ip()) {
            return Err(io::ErrorKind::HostUnreachable.into());
        }
        if !self.listeners.contains_key(&to) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let port = self.take_port();
        let (own, other) = self.connections.add(SocketAddr::new(from, port), to);
        let arrival = self.draw_arrival();
        let listener = self.listeners.get_mut(&to).expect("it was there");
        listener.waiting.push_back((arrival, other, false));
        Ok(own)
    }

    pub(super) fn accept(&mut self, address: SocketAddr) -> io::Result<EndNumber> {
        let now = self.clock.now();
        let listener = self.listeners.get_mut(&address);
        let waiting = listener.and_then(|listener| {
            let arrived = listener.waiting.iter().position(|&(arrival, _, _)| arrival <= now)?;
            listener.waiting.remove(arrived)
        });
        waiting.map(|(_, end, _)| end).ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    pub(super) fn write(&mut self, end: EndNumber, bytes: &[u8]) -> io::Result<usize> {
        let arrival = self.arrival_from(end);
        self.connections.write(end, bytes, arrival)
    }

    pub(super) fn read(&mut self, end: EndNumber, target: &mut [u8]) -> io::Result<usize> {
        let arrival = self.arrival_from(end);
        self.connections.read(end, target, self.clock.now(), arrival)
    }

    pub(super) fn close(&mut self, end: EndNumber) {
        let arrival = self.arrival_from(end);
        self.connections.close(end, arrival);
    }

    pub(super) fn cut(&mut self, one: IpAddr, other: IpAddr) {
        self.cuts.insert(pair(one, other));
    }

    pub(super) fn heal(&mut self) {
        self.cuts.clear();
        let (now, latency) = (self.clock.now(), self.latency);
        let random = &mut self.random;
        self.connections.release(|| now.after(draw_latency(random, latency)));
    }

    pub(super) fn power_cut(&mut self, machine: IpAddr) {
        self.connections.power_cut(machine);
        self.listeners.retain(|address, _| address.ip() != machine);
    }

    pub(super) fn is_ready(&self, poll: PollNumber) -> bool {
        let now = self.clock.now();
        let is_woken = self.wakes.get(index(poll)).is_some_and(|wakes| !wakes.is_empty());
        let is_knocked_at = || {
            let mut own = self.listeners.values().filter(|one| is_of(one.watch, poll));
            own.any(|listener| listener.have_news(now))
        };
        is_woken || is_knocked_at() || self.connections.have_news(poll, now)
    }

    pub(super) fn take_ready(&mut self, poll: PollNumber, ready: &mut Vec<Readiness>) {
        let now = self.clock.now();
        let readable = |token| Readiness { token, is_readable: true, is_ending: false };
        if let Some(wakes) = self.wakes.get_mut(index(poll)) {
            ready.extend(std::mem::take(wakes).into_iter().map(readable));
        }
        for listener in self.listeners.values_mut().filter(|one| is_of(one.watch, poll)) {
            if listener.have_news(now) {
                ready.extend(listener.watch.map(|(_, token)| readable(token)));
            }
            let arrived = listener.waiting.iter_mut().filter(|(arrival, ..)| *arrival <= now);
            arrived.for_each(|(_, _, is_told)| *is_told = true);
        }
        self.connections.take_news(poll, now, ready);
    }

    pub(super) fn next_delivery(&self) -> Option<Instant> {
        let now = self.clock.now();
        let waiting = self.listeners.values().flat_map(|listener| &listener.waiting);
        let knocks = waiting.map(|&(arrival, ..)| arrival).filter(|&arrival| arrival > now);
        self.connections.arrivals_after(now).chain(knocks).min()
    }

    fn is_cut(&self, one: IpAddr, other: IpAddr) -> bool {
        self.cuts.contains(&pair(one, other))
    }

    /// When something that an end sends now arrives; `None` while a cut holds it back.
    fn arrival_from(&mut self, end: EndNumber) -> Option<Instant> {
        let is_cut = match self.connections.machines(end) {
            Some((own, other)) => self.is_cut(own, other),
            None => false,
        };
        let arrival = self.draw_arrival();
        (!is_cut).then_some(arrival)
    }

    fn draw_arrival(&mut self) -> Instant {
        self.clock.now().after(draw_latency(&mut self.random, self.latency))
    }

    fn take_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = self.next_port.checked_add(1).unwrap_or(PORT_MIN);
        port
    }
}

fn is_of(watch: Option<Watch>, poll: PollNumber) -> bool {
    watch.is_some_and(|(of, _)| of == poll)
}

fn index(poll: PollNumber) -> usize {
    usize::try_from(poll).unwrap_or(usize::MAX)
}

fn pair(one: IpAddr, other: IpAddr) -> (IpAddr, IpAddr) {
    (one.min(other), one.max(other))
}

fn draw_latency(random: &mut Random, (min, max): (Duration, Duration)) -> Duration {
    let span = u64::try_from((max - min).as_nanos()).unwrap_or(u64::MAX).saturating_add(1);
    min + Duration::from_nanos(random.below(span))
}
