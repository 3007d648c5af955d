//! The load generator: one thread, many connections, a closed loop.
//!
//! Each connection sends a batch of requests, waits for all their responses, and sends the next
//! batch. The latency of a request is the time from the sending of its batch to its response.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};
use platform::Random;

use crate::dialect::{Dialect, Operation};
use crate::load::{Cell, KEY_BYTES, Target, Values, key};
use crate::wire::Wire;

/// Bytes that one read takes in: all responses of a batch of 16 times 4 KiB.
const READ_SIZE: usize = 128 * 1024;
/// A server that answers nothing for so long has lost something.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Connections to one server.
pub struct Generator {
    dialect: Dialect,
    values: Values,
    /// What stands before the end of each key.
    key_prefix: Vec<u8>,
    poll: Poll,
    connections: Vec<Connection>,
    random: Random,
    buffer: Vec<u8>,
}

/// What was measured.
pub struct Measured {
    /// Responses received.
    pub requests: u64,
    /// How long that took.
    pub seconds: f64,
    /// Latencies in nanoseconds.
    pub latency: Histogram<u64>,
}

/// Which keys come next.
enum Keys<'a> {
    /// Each once, in order, up to a number.
    Each { next: usize, end: usize },
    /// Any below a number.
    Random { random: &'a mut Random, below: u64 },
    /// So many, in leaps through the keys below a number: the same ones each time, and none twice
    /// before all the others have come.
    Leaps { next: usize, below: usize, left: usize },
}

/// Keys from one to the next in [`Keys::Leaps`]. Prime, so that it meets every key of any number
/// that it does not divide.
const LEAP: usize = 7919;

/// What all requests share.
#[derive(Clone, Copy)]
struct Parts<'a> {
    key_prefix: &'a [u8],
    value: &'a [u8],
}

struct Connection {
    wire: Wire,
    /// Of the request that is being made.
    key: Vec<u8>,
    /// Requests not sent yet.
    out: Vec<u8>,
    /// How much of `out` is sent.
    sent: usize,
    /// The beginning of a response whose end is missing.
    incomplete: Vec<u8>,
    /// Responses that the batch still waits for.
    waiting: usize,
    batch_sent: Instant,
}

impl Generator {
    /// Opens the connections.
    pub fn connect(target: &Target, connections: usize) -> Result<Self> {
        let poll = Poll::new()?;
        let mut all = Vec::new();
        for index in 0..connections {
            let mut wire = Wire::open(target)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(wire.socket(), Token(index), interest)?;
            all.push(Connection::new(wire));
        }
        Ok(Self {
            dialect: target.dialect,
            values: Values::default(),
            key_prefix: Vec::new(),
            poll,
            connections: all,
            random: Random::from_seed(7),
            buffer: vec![0; READ_SIZE],
        })
    }

    /// The same, which stores such values.
    pub fn storing(self, values: Values) -> Self {
        Self { values, ..self }
    }

    /// The same with keys of so many bytes, no fewer than [`KEY_BYTES`].
    pub fn with_keys_of(self, bytes: usize) -> Self {
        Self { key_prefix: vec![b'p'; bytes - KEY_BYTES], ..self }
    }

    /// Stores keys `0..count`, each once.
    pub fn populate(&mut self, count: usize, value_bytes: usize) -> Result<()> {
        let cell = Cell { operation: Operation::Set, pipeline: 16, value_bytes };
        self.run(&cell, Keys::Each { next: 0, end: count }, None)?;
        Ok(())
    }

    /// Reads keys `0..count`, each once. All must be there.
    pub fn read_back(&mut self, count: usize) -> Result<()> {
        let cell = Cell { operation: Operation::Get, pipeline: 16, value_bytes: 0 };
        self.run(&cell, Keys::Each { next: 0, end: count }, None)?;
        Ok(())
    }

    /// Asks for random keys below `key_count` for so long.
    pub fn measure(&mut self, cell: &Cell, key_count: usize, seconds: f64) -> Result<Measured> {
        let mut random = self.random.clone();
        let keys = Keys::Random { random: &mut random, below: key_count as u64 };
        let measured = self.run(cell, keys, Some(Duration::from_secs_f64(seconds)));
        self.random = random;
        measured
    }

    /// Asks for so many keys below `key_count`, which are the same in each call.
    pub fn ask(&mut self, cell: &Cell, key_count: usize, requests: usize) -> Result<Measured> {
        assert!(!key_count.is_multiple_of(LEAP), "leaps of {LEAP} miss keys of {key_count}");
        self.run(cell, Keys::Leaps { next: 0, below: key_count, left: requests }, None)
    }

    /// Returns when the time is over or the keys are used up, and no response is outstanding.
    fn run(
        &mut self,
        cell: &Cell,
        mut keys: Keys<'_>,
        duration: Option<Duration>,
    ) -> Result<Measured> {
        let value = self.values.of(cell.value_bytes);
        let parts = Parts { key_prefix: &self.key_prefix, value: &value };
        let mut latency = Histogram::new_with_bounds(100, 60_000_000_000, 3)?;
        let mut events = Events::with_capacity(self.connections.len());
        let started = Instant::now();
        let is_over = |now: Instant| duration.is_some_and(|max| now - started >= max);
        let mut requests = 0;
        let mut active = 0;
        for connection in &mut self.connections {
            active += usize::from(connection.begin(self.dialect, cell, &mut keys, parts)?);
        }
        while active > 0 {
            self.poll.poll(&mut events, Some(SILENCE_MAX))?;
            ensure!(!events.is_empty(), "the server is silent with {active} batches under way");
            for event in &events {
                let connection = &mut self.connections[event.token().0];
                let was_waiting = connection.waiting > 0;
                connection.write()?;
                requests += connection.read(self.dialect, &mut self.buffer, &mut latency)?;
                if !was_waiting || connection.waiting > 0 {
                    continue;
                }
                let goes_on = !is_over(Instant::now())
                    && connection.begin(self.dialect, cell, &mut keys, parts)?;
                active -= usize::from(!goes_on);
            }
        }
        Ok(Measured { requests, seconds: started.elapsed().as_secs_f64(), latency })
    }
}

impl Connection {
    fn new(wire: Wire) -> Self {
        Self {
            wire,
            key: Vec::new(),
            out: Vec::new(),
            sent: 0,
            incomplete: Vec::new(),
            waiting: 0,
            batch_sent: Instant::now(),
        }
    }

    /// Sends a batch. Whether there was anything left to ask for.
    fn begin(
        &mut self,
        dialect: Dialect,
        cell: &Cell,
        keys: &mut Keys<'_>,
        parts: Parts<'_>,
    ) -> Result<bool> {
        self.out.clear();
        self.sent = 0;
        while self.waiting < cell.pipeline {
            let Some(index) = keys.next() else { break };
            self.key.clear();
            self.key.extend_from_slice(parts.key_prefix);
            self.key.extend_from_slice(&key(index));
            dialect.encode(cell.operation, &self.key, parts.value, &mut self.out);
            self.waiting += 1;
        }
        self.batch_sent = Instant::now();
        self.write()?;
        Ok(self.waiting > 0)
    }

    /// Sends what the socket takes. The rest goes when it is writable again.
    fn write(&mut self) -> Result<()> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.wire.write(rest) {
                Ok(size) => self.sent += size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("the server closed a connection"),
            }
        }
        match self.wire.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                Err(error).context("the server closed a connection")
            }
            _ => Ok(()),
        }
    }

    /// Reads until the batch is answered or the socket is empty. Returns the responses read.
    fn read(
        &mut self,
        dialect: Dialect,
        buffer: &mut [u8],
        latency: &mut Histogram<u64>,
    ) -> Result<u64> {
        let before = self.waiting;
        while self.waiting > 0 {
            let size = match self.wire.read(buffer) {
                Ok(0) => bail!("the server closed a connection"),
                Ok(size) => size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("cannot read"),
            };
            let now = Instant::now();
            if self.incomplete.is_empty() {
                let used = self.take(dialect, &buffer[..size], now, latency)?;
                self.incomplete.extend_from_slice(&buffer[used..size]);
            } else {
                let mut all = std::mem::take(&mut self.incomplete);
                all.extend_from_slice(&buffer[..size]);
                let used = self.take(dialect, &all, now, latency)?;
                all.drain(..used);
                self.incomplete = all;
            }
            // Such a read emptied the socket; news comes with an event.
            if size < buffer.len() && self.wire.is_empty_after_short_read() {
                break;
            }
        }
        Ok((before - self.waiting) as u64)
    }

    /// Takes all complete responses. Returns their bytes.
    fn take(
        &mut self,
        dialect: Dialect,
        bytes: &[u8],
        now: Instant,
        latency: &mut Histogram<u64>,
    ) -> Result<usize> {
        let mut used = 0;
        while let Some(response) = dialect.parse(&bytes[used..]) {
            let shown = &bytes[used..bytes.len().min(used + 40)];
            ensure!(response.is_success, "the server refuses: {:?}", shown.escape_ascii());
            ensure!(self.waiting > 0, "the server answers what nobody asked");
            used += response.size;
            self.waiting -= 1;
            let nanos = (now - self.batch_sent).as_nanos();
            latency.saturating_record(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        Ok(used)
    }
}

impl Keys<'_> {
    fn next(&mut self) -> Option<usize> {
        match self {
            Self::Each { next, end } => {
                let index = *next;
                *next += 1;
                (index < *end).then_some(index)
            }
            Self::Random { random, below } => usize::try_from(random.below(*below)).ok(),
            Self::Leaps { next, below, left } => {
                *left = left.checked_sub(1)?;
                let index = *next;
                *next = (index + LEAP) % *below;
                Some(index)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaps_meet_every_key_once_and_end() {
        let mut keys = Keys::Leaps { next: 0, below: 1000, left: 1000 };
        let mut met: Vec<usize> = std::iter::from_fn(|| keys.next()).collect();
        assert_eq!(met[..3], [0, 919, 838]);
        met.sort_unstable();
        assert_eq!(met, (0..1000).collect::<Vec<_>>());
        assert_eq!(keys.next(), None);
    }
}
