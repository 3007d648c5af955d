//! What a worker lends a connection for one turn.

use std::time::Duration;

use bucket::Session;
use platform::clock::Lap;
use platform::{Instant, WallTime};
use vbucket::Now;

use super::output::Output;
use super::parked::{Kept, Parked, ParkedRequest};
use crate::buckets::BucketPart;
use crate::command_statistics::BucketCounters;
use crate::completed::Completed;
use crate::shared::Shared;
use crate::slow_operations::Spans;
use crate::statistics::WorkerCounters;

/// How old a reading of the wall clock may be from which the time is reckoned: so late at most it
/// is noticed that the clock was set.
const WALL_READING_AGE_MAX: Duration = Duration::from_millis(1);

/// A turn of one connection.
pub(crate) struct Turn<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) output: &'a mut Output,
    pub(crate) parked: &'a mut Parked,
    pub(crate) counters: &'a WorkerCounters,
    /// Of the bucket that the connection has selected: what it asks for is counted here.
    pub(crate) bucket: &'a BucketCounters,
    /// The worker.
    pub(crate) worker: usize,
    /// The connection's name in its worker.
    pub(crate) token: usize,
    /// The time, as it was read last: once a read from the socket, and after each request.
    pub(crate) now: Now,
    /// The reading of the clock behind which the time is told after each request.
    pub(crate) lap: Lap,
    /// When the turn first read something, if it has.
    pub(crate) began: Option<Instant>,
    /// Bytes that it has read and sent.
    pub(crate) moved_bytes: usize,
    /// Both clocks as the worker has read them together last.
    pub(crate) both_read: &'a mut Option<Now>,
    /// When the request that is executed now began: the end of the one before.
    pub(crate) request_started: Instant,
    /// When the request that is executed now was answered, if its answer says so: that is when it
    /// ended, and the clock is not read once more.
    pub(crate) answered_at: Option<Instant>,
    /// When what is executed now came: its bytes, or what it has waited for.
    pub(crate) read_at: Instant,
    /// What the request that is executed now has waited for before, parked.
    pub(crate) spans: Spans,
    /// Bytes that were answered in turns before this one and wait for the reader.
    pub(crate) unsent_bytes: usize,
    /// Bytes that may wait for the reader before it gets no more answers. The one that goes beyond
    /// it is still given.
    pub(crate) unsent_bytes_max: usize,
}

impl Turn<'_> {
    /// Reads the clocks, before the first request of a turn.
    pub(crate) fn read_clocks(&mut self) {
        let clock = &self.shared.clock;
        self.lap = clock.lap();
        let monotonic = self.lap.start();
        let is_young = |both: &Now| monotonic.since(both.monotonic) < WALL_READING_AGE_MAX;
        self.now = match self.both_read.filter(is_young) {
            Some(both) => moved_on(both, monotonic),
            None => *self.both_read.insert(Now { monotonic, wall: clock.wall_time() }),
        };
        self.request_started = self.now.monotonic;
        self.read_at = self.now.monotonic;
        self.began.get_or_insert(self.now.monotonic);
    }

    /// How long it took up to the end of its last request, if it has read something.
    pub(crate) fn time(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| self.now.monotonic.since(began))
    }

    /// The request that had been parked is dealt with: those behind it begin now.
    pub(crate) fn end_waits(&mut self) {
        self.request_started = self.now.monotonic;
        self.read_at = self.now.monotonic;
        self.spans = Spans::default();
    }

    /// What is parked of the request that is executed now.
    pub(crate) fn parked_request(&self, kept: Kept) -> ParkedRequest {
        ParkedRequest {
            token: self.token,
            kept,
            started: self.request_started,
            parked_at: self.now.monotonic,
            spans: self.spans_now(),
        }
    }

    /// Goes on with a request that was parked, for which `completed` has come.
    pub(crate) fn resume(&mut self, parked: &ParkedRequest, completed: &Completed) {
        self.read_clocks();
        self.answered_at = None;
        self.request_started = parked.started;
        self.read_at = parked.started;
        let waited = self.now.monotonic.since(parked.parked_at);
        self.spans = parked.spans.with_wait(completed, waited);
    }

    /// What the request that is executed now has waited for so far.
    pub(crate) fn spans_now(&self) -> Spans {
        let mut spans = self.spans;
        spans.queue += self.request_started.since(self.read_at);
        spans.lock += self.session.lock_waited;
        spans
    }

    /// Reads the monotonic clock and moves the wall time on as far: one read instead of two.
    pub(crate) fn read_clock(&mut self) -> Instant {
        let monotonic = self.shared.clock.now_in(&self.lap);
        self.now = moved_on(self.now, monotonic);
        monotonic
    }

    /// Tells the bucket who asks next, and when.
    pub(crate) fn begin_request(&mut self) {
        self.answered_at = None;
        self.session.waiter = self.parked.next_waiter();
        self.session.now = Some(self.now);
        self.session.lock_waited = Duration::ZERO;
    }

    /// From now on what is asked for is counted for the bucket that has been selected.
    pub(crate) fn count_for(&mut self, bucket: Option<&BucketPart>) {
        self.bucket = self.shared.by_bucket[self.worker].of(bucket);
    }

    /// Whether the connection has answered as much as it may before its reader has taken it.
    pub(crate) fn is_output_full(&self) -> bool {
        self.unsent_bytes + self.output.bytes() > self.unsent_bytes_max
    }
}

/// The wall time moves on as far as the monotonic one.
fn moved_on(before: Now, monotonic: Instant) -> Now {
    let passed = monotonic.0.saturating_sub(before.monotonic.0);
    Now { monotonic, wall: WallTime(before.wall.0 + passed) }
}
