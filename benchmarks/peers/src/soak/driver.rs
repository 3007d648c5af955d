//! The clients: one thread, some connections, any number of requests under way.
//!
//! In a closed loop an answer makes room for the next request. In an open loop requests are due at
//! fixed times, whatever became of those before, and their latency counts from then: a stall of the
//! node is in the latency of every request that was due meanwhile.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use document::{CollectionId, DurabilityLevel, Vbid};
use mio::{Events, Poll, Token};
use protocol::client::{Request, Response, encode_key, store_extras};
use protocol::request::StoreExtras;
use protocol::{DurabilityRequirement, Frame, FrameInfos, Opcode};

use super::documents::{PATH, field};
use super::ledger::{Action, Flight, Ledger};
use super::link::Link;
use super::mix::{Mix, Plan};
use super::window::Window;
use crate::load::key;
use crate::servers::Server;

const CONNECTIONS: usize = 32;
/// Requests under way in a closed loop.
const WIDTH: usize = 64;
/// Requests under way from which on those that are due are not sent.
const IN_FLIGHT_MAX: usize = 50_000;
/// In an open loop, the longest time without a look at the sockets.
const NAP: Duration = Duration::from_micros(100);
/// Requests that are sent before the sockets are looked at.
const BURST: usize = 64;
/// A node that answers nothing for so long has lost something.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Between two attempts to store what was refused.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
const ATTEMPTS_MAX: usize = 300;

/// All connections, and what is known of what they did.
pub struct Driver {
    poll: Poll,
    events: Events,
    links: Vec<Link>,
    next_link: usize,
    vbuckets: u16,
    /// By opaque.
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    ledger: Ledger,
    window: Window,
    last_answer: Instant,
    /// Of the request that is being made.
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Driver {
    /// Connects to a node whose bucket has so many vBuckets and no documents.
    pub fn connect(server: &Server, vbuckets: u16, ledger: Ledger) -> Result<Self> {
        let (address, login) = server.data_port.as_ref().context("the node has a data port")?;
        let poll = Poll::new()?;
        let link = |index| Link::open(*address, login, poll.registry(), Token(index));
        Ok(Self {
            links: (0..CONNECTIONS).map(link).collect::<Result<_>>()?,
            events: Events::with_capacity(CONNECTIONS),
            poll,
            next_link: 0,
            vbuckets,
            flights: Vec::new(),
            free: Vec::new(),
            ledger,
            window: Window::default(),
            last_answer: Instant::now(),
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    /// What is known of the documents.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Stores all lasting documents, those that are refused again and again.
    pub fn populate(&mut self) -> Result<Window> {
        for _ in 0..ATTEMPTS_MAX {
            let lasting = 0..self.ledger.documents().lasting();
            let absent: Vec<usize> = lasting.filter(|&it| self.ledger.is_absent(it)).collect();
            if absent.is_empty() {
                return Ok(std::mem::take(&mut self.window));
            }
            let mut plans = absent.into_iter().map(|index| Plan::lasting(Action::Set, index));
            self.run_closed(|_| plans.next())?;
            std::thread::sleep(RETRY_PAUSE);
        }
        anyhow::bail!("the node does not take all documents: {}", self.window.refusals())
    }

    /// Reads these documents.
    pub fn read(&mut self, indexes: impl IntoIterator<Item = usize>) -> Result<Window> {
        let mut plans = indexes.into_iter().map(|index| Plan::lasting(Action::Get, index));
        self.run_closed(|_| plans.next())
    }

    /// As many requests as the node answers in so long.
    pub fn closed(&mut self, mix: &mut Mix, duration: Duration) -> Result<Window> {
        let end = Instant::now() + duration;
        self.run_closed(|ledger| (Instant::now() < end).then(|| mix.next(ledger)))
    }

    /// So many requests a second for `count` times `interval`; sends a window after each. Ends
    /// early when nobody wants them any more. Returns the window of what was answered afterwards.
    pub fn open(
        &mut self,
        mix: &mut Mix,
        rate: f64,
        interval: Duration,
        count: u32,
        windows: &Sender<Window>,
    ) -> Result<Window> {
        let started = Instant::now();
        self.last_answer = started;
        let mut number = 0_u64;
        for window in 1..=count {
            let end = started + interval * window;
            while Instant::now() < end {
                for _ in 0..BURST {
                    let due = started + Duration::from_secs_f64(number as f64 / rate);
                    if due > Instant::now() {
                        break;
                    }
                    self.arrive(mix, due);
                    number += 1;
                }
                if !self.turn(Duration::ZERO)? {
                    let next = started + Duration::from_secs_f64(number as f64 / rate);
                    std::thread::sleep(NAP.min(next.saturating_duration_since(Instant::now())));
                }
            }
            let window = Window { duration: interval, ..std::mem::take(&mut self.window) };
            if windows.send(window).is_err() {
                break;
            }
        }
        self.run_closed(|_| None)
    }

    /// Makes a request that is due, unless the node has too much to do.
    fn arrive(&mut self, mix: &mut Mix, due: Instant) {
        if self.in_flight() >= IN_FLIGHT_MAX {
            self.window.shed += 1;
            return;
        }
        let plan = mix.next(&self.ledger);
        let now = Instant::now();
        self.window.late = self.window.late.max(now - due);
        self.send(plan, due, now);
    }

    /// Until there is no plan any more, and nothing under way.
    fn run_closed(&mut self, mut next: impl FnMut(&Ledger) -> Option<Plan>) -> Result<Window> {
        let started = Instant::now();
        self.last_answer = started;
        let mut is_over = false;
        loop {
            while !is_over && self.in_flight() < WIDTH {
                let now = Instant::now();
                match next(&self.ledger) {
                    Some(plan) => self.send(plan, now, now),
                    None => is_over = true,
                }
            }
            if self.in_flight() == 0 {
                let window = std::mem::take(&mut self.window);
                return Ok(Window { duration: started.elapsed(), ..window });
            }
            self.turn(SILENCE_MAX)?;
        }
    }

    fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    fn send(&mut self, plan: Plan, due: Instant, now: Instant) {
        let Plan { action, index, lifetime } = plan;
        let version = self.ledger.next_version();
        self.ledger.begin(index);
        let flight = Flight { action, index, version, lifetime, due, sent: now };
        let opaque = self.free.pop().unwrap_or(self.flights.len());
        if opaque == self.flights.len() {
            self.flights.push(None);
        }
        self.flights[opaque] = Some(flight);
        self.encode(&flight, opaque as u32);
    }

    /// Puts a request to those of the next connection.
    fn encode(&mut self, flight: &Flight, opaque: u32) {
        let name = key(flight.index);
        self.key.clear();
        encode_key(CollectionId::DEFAULT, &name, &mut self.key);
        let expiry = flight.lifetime.map_or(0, |lifetime| lifetime.as_secs() as u32);
        let store = store_extras(StoreExtras { flags: [0; 4], expiry });
        let path_extras = [0, PATH.len() as u8, 0];
        let (opcode, extras): (Opcode, &[u8]) = match flight.action {
            Action::Get => (Opcode::Get, &[]),
            Action::Delete => (Opcode::Delete, &[]),
            Action::Mutate => (Opcode::SubdocDictUpsert, &path_extras),
            Action::Set | Action::SetExpiring | Action::SetDurably => (Opcode::Set, &store),
        };
        match flight.action {
            Action::Get | Action::Delete => self.value.clear(),
            Action::Mutate => {
                self.value.clear();
                self.value.extend_from_slice(PATH.as_bytes());
                self.value.extend_from_slice(field(flight.version).as_bytes());
            }
            Action::Set | Action::SetExpiring | Action::SetDurably => {
                self.ledger.documents().write(flight.index, flight.version, &mut self.value);
            }
        }
        let durability = (flight.action == Action::SetDurably).then_some(DURABLE);
        let request = Request {
            vbucket: Vbid::of_name(&name, self.vbuckets).0,
            opaque,
            infos: FrameInfos { durability, ..FrameInfos::default() },
            extras,
            key: &self.key,
            value: &self.value,
            ..Request::new(opcode)
        };
        request.encode(&mut self.links[self.next_link].unsent);
        self.next_link = (self.next_link + 1) % self.links.len();
    }

    /// Sends and receives. Whether anything has arrived; waits for that for so long.
    fn turn(&mut self, wait: Duration) -> Result<bool> {
        self.links.iter_mut().try_for_each(Link::flush)?;
        self.poll.poll(&mut self.events, Some(wait))?;
        let before = self.window.answered;
        for event in &self.events {
            let link = &mut self.links[event.token().0];
            let (flights, free) = (&mut self.flights, &mut self.free);
            let (ledger, window) = (&mut self.ledger, &mut self.window);
            link.read(|frame| take_answer(frame, flights, free, ledger, window))?;
        }
        let has_arrived = self.window.answered > before;
        if has_arrived || self.in_flight() == 0 {
            self.last_answer = Instant::now();
        }
        let is_silent = self.last_answer.elapsed() > SILENCE_MAX;
        ensure!(!is_silent, "the node is silent with {} requests under way", self.in_flight());
        Ok(has_arrived)
    }
}

/// Without a time limit: the node's own one.
const DURABLE: DurabilityRequirement =
    DurabilityRequirement { level: DurabilityLevel::PersistToMajority, timeout_ms: None };

fn take_answer(
    frame: &Frame<'_>,
    flights: &mut [Option<Flight>],
    free: &mut Vec<usize>,
    ledger: &mut Ledger,
    window: &mut Window,
) -> Result<()> {
    let response = Response::from_frame(frame).context("the node asks instead of answering")?;
    let place = response.opaque as usize;
    let flight = flights.get_mut(place).and_then(Option::take);
    let flight = flight.context("the node answers what nobody asked")?;
    free.push(place);
    let now = Instant::now();
    let verdict = ledger.settle(&flight, response.status_code, response.value, now);
    window.note(now - flight.due, verdict);
    Ok(())
}
