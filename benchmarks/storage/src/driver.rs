//! Concurrent durable writers, played by one thread as a front-end worker plays its connections:
//! each stores a document, waits for SEQNO_PERSISTENCE, and goes on.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use bucket::{Attempted, Completion, Completions, Refused, Session};
use platform::{Clock, Instant, Random};
use vbucket::Waiter;

use crate::documents::Documents;
use crate::measurement::Latencies;
use crate::served_bucket::ServedBucket;

/// How fast writers write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each begins its next write when the last one is durable.
    Closed,
    /// So many writes a second of all together, evenly. One that finds no writer free is left out.
    PerSecond(u32),
}

/// What writers came to.
#[derive(Default)]
pub struct Outcome {
    /// From before the store until it was durable.
    pub latencies: Latencies,
    /// Writes for which no writer was free.
    pub left_out: u64,
    /// Writes that were refused for a while, because memory was full.
    pub refused: u64,
    /// Seconds in which the writes ended that count.
    pub seconds: f64,
}

/// Hears what is durable, and when.
#[derive(Default)]
pub struct Heard {
    completed: Mutex<Vec<(Waiter, Instant, bool)>>,
    bell: Condvar,
    clock: Clock,
}

impl Completions for Heard {
    fn complete(&self, waiter: Waiter, completion: Completion) {
        let now = self.clock.now();
        let is_persisted = completion == Completion::Persisted;
        let mut completed = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
        completed.push((waiter, now, is_persisted));
        if completed.len() == 1 {
            self.bell.notify_one();
        }
    }

    fn release_memory(&self) {}
}

impl Heard {
    /// Takes what has completed, after waiting for the first of it for at most `patience`.
    fn take(&self, patience: Duration) -> Vec<(Waiter, Instant, bool)> {
        let mut completed = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
        if completed.is_empty() && !patience.is_zero() {
            let waited = self.bell.wait_timeout(completed, patience);
            completed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::take(&mut *completed)
    }
}

/// How long to look for completions when nothing is due.
const PATIENCE: Duration = Duration::from_millis(10);
/// How long a refused writer waits.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);
/// Documents that are made beforehand and written again and again, to different keys.
const BODY_COUNT: usize = 256;

/// The writers.
pub struct Driver<'a> {
    served: &'a ServedBucket,
    heard: Arc<Heard>,
    clock: Clock,
    session: Session,
    random: Random,
    bodies: Vec<crate::documents::Document>,
    /// When each writer began what it waits for.
    begun: Vec<Instant>,
    free: Vec<usize>,
    outcome: Outcome,
    counts_from: Instant,
}

impl<'a> Driver<'a> {
    /// So many writers, who draw documents by a seed.
    pub fn new(served: &'a ServedBucket, heard: Arc<Heard>, writers: usize, seed: u64) -> Self {
        let count = served.size().documents;
        let bodies = Documents::new(count, seed).draw(BODY_COUNT.min(count as usize));
        Self {
            served,
            heard,
            clock: Clock::real(),
            session: Session::default(),
            random: Random::from_seed(seed),
            bodies,
            begun: vec![Instant::default(); writers],
            free: (0..writers).rev().collect(),
            outcome: Outcome::default(),
            counts_from: Instant::default(),
        }
    }

    /// Writes for `before`, then for `duration`, in which writes that end count; then waits for all
    /// that were begun.
    pub fn run(mut self, pace: Pace, before: Duration, duration: Duration) -> Result<Outcome> {
        let start = self.clock.now();
        self.counts_from = start.after(before);
        let end = self.counts_from.after(duration);
        let mut due_count = 0;
        loop {
            let now = self.clock.now();
            if now >= end {
                break;
            }
            let patience = match pace {
                Pace::Closed => self.begin_all()?,
                Pace::PerSecond(rate) => self.begin_due(start, rate, &mut due_count, end)?,
            };
            self.note_completed(patience, end)?;
        }
        self.outcome.seconds = duration.as_secs_f64();
        while self.free.len() < self.begun.len() {
            self.note_completed(PATIENCE, end)?;
        }
        Ok(self.outcome)
    }

    /// Lets every free writer begin. Says how long to wait for completions.
    fn begin_all(&mut self) -> Result<Duration> {
        while let Some(writer) = self.free.pop() {
            if !self.begin(writer)? {
                return Ok(REFUSED_PAUSE);
            }
        }
        Ok(PATIENCE)
    }

    /// Lets as many writers begin as are due. Says how long it is until the next one is.
    fn begin_due(
        &mut self,
        start: Instant,
        rate: u32,
        due_count: &mut u32,
        end: Instant,
    ) -> Result<Duration> {
        let interval = Duration::from_secs(1) / rate;
        loop {
            let due = start.after(interval * *due_count);
            let now = self.clock.now();
            if due > now {
                return Ok(due.since(now));
            }
            if now >= end {
                return Ok(Duration::ZERO);
            }
            *due_count += 1;
            match self.free.pop() {
                Some(writer) if self.begin(writer)? => {}
                _ if now >= self.counts_from => self.outcome.left_out += 1,
                _ => {}
            }
        }
    }

    /// Lets a writer begin. Says whether it could.
    fn begin(&mut self, writer: usize) -> Result<bool> {
        let drawn = self.random.next_u64();
        let document = &mut self.bodies[drawn as usize % BODY_COUNT.min(self.begun.len())];
        document.number = self.random.below(self.served.size().documents);
        // A body of its own for each write.
        document.body[..8].copy_from_slice(&drawn.to_be_bytes());
        let vbid = self.served.size().vbid(document.number);
        self.begun[writer] = self.clock.now();
        self.session.waiter = Waiter(writer as u64);
        let seqno = match self.served.store(&mut self.session, document) {
            Ok(seqno) => seqno,
            Err(Refused::Blocked(_)) => {
                self.outcome.refused += 1;
                self.free.push(writer);
                return Ok(false);
            }
            Err(refused) => bail!("a store was refused: {refused:?}"),
        };
        match self.served.bucket.wait_for_persistence(&mut self.session, vbid, seqno) {
            Ok(Attempted::Waits) => {}
            Ok(Attempted::Answered(())) => {
                let now = self.clock.now();
                self.finish(writer, now);
            }
            Err(refused) => bail!("a wait was refused: {refused:?}"),
        }
        Ok(true)
    }

    fn note_completed(&mut self, patience: Duration, end: Instant) -> Result<()> {
        for (waiter, at, is_persisted) in self.heard.take(patience) {
            if !is_persisted {
                bail!("a write was not persisted in time");
            }
            if at < end {
                self.finish(waiter.0 as usize, at);
            } else {
                self.free.push(waiter.0 as usize);
            }
        }
        Ok(())
    }

    fn finish(&mut self, writer: usize, at: Instant) {
        if at >= self.counts_from {
            self.outcome.latencies.record(at.since(self.begun[writer]));
        }
        self.free.push(writer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served_bucket::{JOURNAL, PLAIN, REOPENED, Size};

    #[test]
    fn every_write_that_is_begun_is_persisted_at_every_pace_and_in_every_mode() {
        let size = Size { documents: 200, vbuckets: 4 };
        for mode in [JOURNAL, PLAIN, REOPENED] {
            for pace in [Pace::Closed, Pace::PerSecond(500)] {
                let directory = tempfile::tempdir().expect("a directory");
                let heard = Arc::new(Heard::default());
                let served = ServedBucket::open(directory.path(), mode, size, heard.clone());
                let served = served.expect(mode.name);
                served.wait_until_warm().expect(mode.name);
                // A busy machine may persist nothing in a short time.
                let mut outcome = Outcome::default();
                for tenths in [1, 10, 100, 600] {
                    let driver = Driver::new(&served, heard.clone(), 20, 1);
                    let duration = Duration::from_millis(100) * tenths;
                    outcome = driver.run(pace, Duration::ZERO, duration).expect(mode.name);
                    if outcome.latencies.count() > 0 {
                        break;
                    }
                }
                assert!(outcome.latencies.count() > 0, "{} {pace:?}", mode.name);
                assert!(outcome.latencies.quantile_us(0.5) > 0.0, "{} {pace:?}", mode.name);
                served.close().expect(mode.name);
            }
        }
    }
}
