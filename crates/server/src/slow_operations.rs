//! Which operations were slow, and where their time went.
//!
//! A request costs a load and a comparison; everything else is done for slow ones alone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bucket::Completion;
use platform::{Instant, Seldom, WallTime};
use protocol::Opcode;

use crate::completed::Completed;

/// Slow operations that are kept of each worker, the newest ones.
pub(crate) const KEPT_MAX: usize = 128;
/// A log line about slow operations comes at most as often.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
const OPCODE_COUNT: usize = 256;

const MILLISECOND_NS: u64 = 1_000_000;
/// From which duration on commands are slow, unless somebody says otherwise: those on documents, in
/// general, and those that wait for long work.
const DOCUMENT_MS: u64 = 100;
const OTHER_MS: u64 = 500;
const LONG_MS: u64 = 30 * 60 * 1000;

/// Slow operations of all workers, and from when on one is slow.
#[derive(Debug)]
pub(crate) struct SlowOperations {
    /// Nanoseconds, by opcode.
    thresholds_ns: Box<[AtomicU64; OPCODE_COUNT]>,
    /// The newest ones of each worker, the oldest first.
    by_worker: Box<[Mutex<VecDeque<SlowOperation>>]>,
    log_lines: Seldom,
}

/// Where the time of a request went, as far as it waited. What is left was work, or the wait for a
/// CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// From when its bytes were read until the requests in front of it were done. Not a part of
    /// what it took.
    pub queue: Duration,
    /// For the lock of its vBucket.
    pub lock: Duration,
    /// For what was read from the file.
    pub fetch: Duration,
    /// For the write to be durable on this node.
    pub journal: Duration,
    /// For the end of a durable write: the disks and nodes that its level names, this one's
    /// included.
    pub replication: Duration,
    /// For a task in the background.
    pub task: Duration,
}

/// A request that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowOperation {
    /// When it was answered.
    pub ended_at: WallTime,
    /// The command's byte.
    pub opcode: u8,
    /// The bucket that its connection had selected.
    pub bucket: Option<String>,
    /// The document's name; empty where none is known any more.
    pub key: Vec<u8>,
    /// Where the client is, and what it calls itself.
    pub client: String,
    /// Without the time in the queue.
    pub took: Duration,
    /// Where the time went.
    pub spans: Spans,
}

impl SlowOperations {
    /// None yet, of so many workers.
    pub(crate) fn of_workers(count: usize) -> Self {
        Self {
            thresholds_ns: Box::new(std::array::from_fn(|byte| {
                AtomicU64::new(default_ms(byte).saturating_mul(MILLISECOND_NS))
            })),
            by_worker: std::iter::repeat_with(Mutex::default).take(count).collect(),
            log_lines: Seldom::every(LOG_INTERVAL),
        }
    }

    /// Whether a command that took so long is slow.
    #[inline]
    pub(crate) fn is_slow(&self, opcode: u8, took_ns: u64) -> bool {
        took_ns >= self.thresholds_ns[usize::from(opcode)].load(Ordering::Relaxed)
    }

    /// Milliseconds from which on a command is slow.
    pub(crate) fn threshold_ms(&self, opcode: Opcode) -> u64 {
        let threshold_ns = &self.thresholds_ns[usize::from(opcode.byte())];
        threshold_ns.load(Ordering::Relaxed) / MILLISECOND_NS
    }

    /// From now on a command is slow from so many milliseconds on, its quiet form included.
    pub(crate) fn set_threshold_ms(&self, opcode: Opcode, threshold_ms: u64) {
        let threshold_ns = threshold_ms.saturating_mul(MILLISECOND_NS);
        let alike = Opcode::ALL.iter().filter(|other| other.loud() == opcode.loud());
        for other in alike {
            let place = &self.thresholds_ns[usize::from(other.byte())];
            place.store(threshold_ns, Ordering::Relaxed);
        }
    }

    /// Keeps a slow operation of a worker. Whether a log line may tell of it: then how many before
    /// it were not told of.
    pub(crate) fn note(
        &self,
        worker: usize,
        operation: SlowOperation,
        now: Instant,
    ) -> Option<u64> {
        let mut kept = lock(&self.by_worker[worker]);
        let displaced = if kept.len() < KEPT_MAX { None } else { kept.pop_front() };
        kept.push_back(operation);
        drop(kept);
        // It is freed behind the lock.
        drop(displaced);
        self.log_lines.passes(now)
    }

    /// Those of a bucket, the newest first.
    pub(crate) fn of(&self, bucket: &str) -> Vec<SlowOperation> {
        let is_of = |operation: &&SlowOperation| operation.bucket.as_deref() == Some(bucket);
        let mut all: Vec<SlowOperation> = Vec::new();
        for kept in &self.by_worker {
            all.extend(lock(kept).iter().filter(is_of).cloned());
        }
        all.sort_by_key(|operation| std::cmp::Reverse(operation.ended_at));
        all
    }
}

impl SlowOperation {
    /// The command's name.
    pub fn command(&self) -> &'static str {
        Opcode::from_byte(self.opcode).map_or("UNKNOWN", Opcode::name)
    }
}

impl Spans {
    /// With a wait of a request that has been parked, which `completed` has ended.
    #[must_use]
    pub(crate) fn with_wait(mut self, completed: &Completed, waited: Duration) -> Self {
        let span = match completed {
            Completed::Bucket(Completion::Retry(_) | Completion::ReadFailed) => &mut self.fetch,
            Completed::Bucket(Completion::Persisted | Completion::NotPersisted) => {
                &mut self.journal
            }
            Completed::Bucket(Completion::SyncWrite(_)) => &mut self.replication,
            _ => &mut self.task,
        };
        *span += waited;
        self
    }

    /// All of them by name.
    pub fn named(&self) -> [(&'static str, Duration); 6] {
        let Self { queue, lock, fetch, journal, replication, task } = *self;
        [
            ("queue", queue),
            ("lock", lock),
            ("fetch", fetch),
            ("journal", journal),
            ("replication", replication),
            ("task", task),
        ]
    }
}

fn lock(kept: &Mutex<VecDeque<SlowOperation>>) -> MutexGuard<'_, VecDeque<SlowOperation>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn default_ms(byte: usize) -> u64 {
    let opcode = u8::try_from(byte).ok().and_then(Opcode::from_byte);
    match opcode.map(Opcode::loud) {
        Some(
            Opcode::Get
            | Opcode::Getk
            | Opcode::Gat
            | Opcode::GetLocked
            | Opcode::Set
            | Opcode::Add
            | Opcode::Replace
            | Opcode::Append
            | Opcode::Prepend
            | Opcode::Delete
            | Opcode::Touch
            | Opcode::Increment
            | Opcode::Decrement
            | Opcode::SubdocMultiLookup
            | Opcode::SubdocMultiMutation,
        ) => DOCUMENT_MS,
        Some(
            Opcode::CompactDb
            | Opcode::Flush
            | Opcode::SeqnoPersistence
            | Opcode::CreateBucket
            | Opcode::DeleteBucket,
        ) => LONG_MS,
        _ => OTHER_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(bucket: &str, second: u64) -> SlowOperation {
        SlowOperation {
            ended_at: WallTime(second * 1_000_000_000),
            opcode: Opcode::Get.byte(),
            bucket: Some(bucket.to_owned()),
            key: b"k".to_vec(),
            client: "c".to_owned(),
            took: Duration::from_secs(1),
            spans: Spans::default(),
        }
    }

    #[test]
    fn a_command_is_slow_from_its_threshold_on_and_so_is_its_quiet_form() {
        let slow = SlowOperations::of_workers(1);
        let is_slow = |opcode: Opcode, ms: u64| slow.is_slow(opcode.byte(), ms * MILLISECOND_NS);
        assert!(!is_slow(Opcode::GetQ, DOCUMENT_MS - 1));
        assert!(is_slow(Opcode::GetQ, DOCUMENT_MS));
        slow.set_threshold_ms(Opcode::GetQ, 3);
        for (opcode, ms, expected) in [
            (Opcode::Get, 3, true),
            (Opcode::GetQ, 3, true),
            (Opcode::GetQ, 2, false),
            (Opcode::Set, 3, false),
            (Opcode::CompactDb, 60_000, false),
        ] {
            assert_eq!(is_slow(opcode, ms), expected, "{opcode:?} {ms}");
        }
        assert_eq!(slow.threshold_ms(Opcode::Get), 3);
    }

    #[test]
    fn the_newest_ones_of_a_bucket_are_kept_and_told_first() {
        let slow = SlowOperations::of_workers(2);
        let kept_max = KEPT_MAX as u64;
        for second in 0..kept_max + 2 {
            slow.note(0, operation("a", second), Instant(second));
        }
        slow.note(1, operation("a", 5), Instant(0));
        slow.note(1, operation("b", 6), Instant(0));
        let kept = slow.of("a");
        assert_eq!(kept.len(), KEPT_MAX + 1);
        assert_eq!(kept[0], operation("a", kept_max + 1));
        assert_eq!(kept.last(), Some(&operation("a", 2)));
        assert_eq!(slow.of("b"), [operation("b", 6)]);
        assert!(slow.of("c").is_empty());
    }

    #[test]
    fn waits_are_told_apart_by_what_has_ended_them() {
        let waited = Duration::from_millis(2);
        let spans = Spans::default()
            .with_wait(&Completed::Bucket(Completion::Retry(None)), waited)
            .with_wait(&Completed::Bucket(Completion::Retry(None)), waited)
            .with_wait(&Completed::Bucket(Completion::Persisted), waited)
            .with_wait(&Completed::Flushed(Ok(())), waited);
        let expected =
            Spans { fetch: waited * 2, journal: waited, task: waited, ..Spans::default() };
        assert_eq!(spans, expected);
    }
}
