//! One blocking connection that sends batches of writes of any sizes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use platform::Random;

use crate::couchbase::statistic;
use crate::dialect::{Dialect, Operation};
use crate::load::{Target, Values, key};

/// Requests of a batch.
pub const BATCH: usize = 64;
/// Bytes of the largest value.
const SIZE_MAX: usize = 1 << 16;
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
const MISSING: u16 = 0x01;
const TEMPORARY_FAILURE: u16 = 0x86;

/// The connection, and the batch that is being made.
pub struct BatchClient {
    stream: TcpStream,
    dialect: Dialect,
    value: Vec<u8>,
    requests: Vec<u8>,
    waiting: usize,
    received: Vec<u8>,
}

/// What became of the requests of a batch that were not carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// The node had no room just then.
    pub refused: u64,
    /// There was nothing to be deleted.
    pub missing: u64,
}

impl BatchClient {
    /// Connects.
    pub fn connect(target: &Target) -> Result<Self> {
        let stream = target.connect()?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        let value = Values::Incompressible.of(SIZE_MAX);
        let (requests, received) = (Vec::new(), Vec::new());
        Ok(Self { stream, dialect: target.dialect, value, requests, waiting: 0, received })
    }

    /// Puts a request into the batch, and sends that when it is complete.
    pub fn ask(&mut self, operation: Operation, index: usize, size: usize) -> Result<Failed> {
        self.dialect.encode(operation, &key(index), &self.value[..size], &mut self.requests);
        self.waiting += 1;
        if self.waiting == BATCH { self.finish() } else { Ok(Failed::default()) }
    }

    /// Sends what is there and takes the answers.
    pub fn finish(&mut self) -> Result<Failed> {
        self.stream.write_all(&self.requests)?;
        self.requests.clear();
        self.received.clear();
        let mut failed = Failed::default();
        while self.waiting > 0 {
            let mut buffer = [0; 8192];
            let size = self.stream.read(&mut buffer)?;
            ensure!(size > 0, "the node closed the connection");
            self.received.extend_from_slice(&buffer[..size]);
            while let Some(response) = self.dialect.parse(&self.received) {
                if !response.is_success {
                    failed.note(self.dialect, &self.received)?;
                }
                self.received.drain(..response.size);
                self.waiting -= 1;
            }
        }
        Ok(failed)
    }

    /// What the bucket says it uses.
    pub fn used_bytes(&mut self) -> Result<u64> {
        Ok(statistic(&mut self.stream, "mem_used")?.parse()?)
    }
}

impl Failed {
    fn note(&mut self, dialect: Dialect, response: &[u8]) -> Result<()> {
        match dialect.status(response) {
            Some(TEMPORARY_FAILURE) => self.refused += 1,
            Some(MISSING) => self.missing += 1,
            _ => bail!("the node refuses: {}", dialect.shown(response)),
        }
        Ok(())
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        let (refused, missing) = (self.refused + other.refused, self.missing + other.missing);
        Self { refused, missing }
    }

    /// Nothing may have failed.
    pub fn none(self) -> Result<()> {
        ensure!(self == Self::default(), "the node has not carried out {self:?}");
        Ok(())
    }
}

/// A size of 2^n to 2^m bytes, logarithmically uniform.
pub fn log_uniform_size((n, m): (f64, f64), random: &mut Random) -> usize {
    let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
    (n + (m - n) * share).exp2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_often_in_each_power_of_two() {
        let mut random = Random::from_seed(1);
        let mut counts = [0; 15];
        for _ in 0..10_000 {
            counts[log_uniform_size((4.0, 14.0), &mut random).ilog2() as usize] += 1;
        }
        assert_eq!((&counts[..4], counts[14]), (&[0; 4][..], 0));
        assert!(counts[4..14].iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn only_what_a_full_node_answers_is_no_error() {
        let dialect = Dialect::Couchbase { vbuckets: 64 };
        let answer = |status| [0x81, 1, 0, 0, 0, 0, 0, status];
        let mut failed = Failed::default();
        failed.none().expect("nothing has failed");
        for status in [0x86, 0x01, 0x86] {
            failed.note(dialect, &answer(status)).expect("a full node answers so");
        }
        assert_eq!(failed, Failed { refused: 2, missing: 1 });
        assert!(failed.none().is_err() && failed.note(dialect, &answer(0x84)).is_err());
    }
}
