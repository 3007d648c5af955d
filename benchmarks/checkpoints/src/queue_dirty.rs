//! `QueueDirtyWithManyClosedUnrefCheckpoints`, in both versions of the original
//! (docs/specification/engine.md, section 3.10), and with a front end that has other work, too.
//!
//! A front end that does nothing else than to queue takes an unfair lock again before anybody who
//! waits for it has woken up, and so hardly meets those that keep the lock for long. One that does
//! something else in between meets them as a server does.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use document::Histogram;

use crate::log::Log;

/// Items of an iteration of the first version.
pub const ITEM_COUNT: usize = 100;
/// Checkpoints that the flusher of the first version reads at a time: the original asks for 6000
/// elements, and each checkpoint has three.
const FLUSHER_CHECKPOINTS: usize = 2_000;
/// The same of the second version, which asks for 1000.
const BACKGROUND_CHECKPOINTS: usize = 333;

/// A run of the first version.
#[derive(Clone, Copy, Debug)]
pub struct FirstVersion {
    /// Iterations of the measured loop, each of [`ITEM_COUNT`] items: 5 in the original.
    pub iterations: usize,
    /// Checkpoints that are there before: half of 2000 for each item in the original.
    pub prefilled: usize,
    /// What the front end does between two items; nothing in the original.
    pub other_work: Duration,
}

/// What a run has measured.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Items queued while it was measured.
    pub items: usize,
    /// How long that took.
    pub took: Duration,
    /// Turns of the loop that removes.
    pub remover_runs: usize,
    /// Checkpoints removed.
    pub removed: usize,
    /// Nanoseconds that single items took, where each is timed.
    pub items_ns: Percentiles,
}

/// What single items took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Percentiles {
    /// The middle one.
    pub p50: u64,
    /// All but one in a hundred took no longer.
    pub p99: u64,
    /// All but one in a thousand.
    pub p999: u64,
}

impl Percentiles {
    fn of(histogram: &Histogram) -> Self {
        let all = histogram.snapshot();
        let at = |quantile| all.value_at_quantile(quantile);
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Outcome {
    /// Nanoseconds an item.
    pub fn nanos_per_item(&self) -> f64 {
        self.took.as_nanos() as f64 / self.items.max(1) as f64
    }

    /// As the original counts it.
    pub fn removed_per_run(&self) -> usize {
        self.removed / self.remover_runs.max(1)
    }
}

impl FirstVersion {
    /// As the original runs it.
    pub const ORIGINAL: Self =
        Self { iterations: 5, prefilled: ITEM_COUNT * 2_000 / 2 * 5, other_work: Duration::ZERO };

    /// Measures the front end beside a flusher and a remover, which are at work when it begins.
    pub fn run(self, log: &dyn Log) -> Outcome {
        for _ in 0..self.prefilled {
            log.queue_dirty();
        }
        let gate = Barrier::new(3);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                log.read(FLUSHER_CHECKPOINTS);
                gate.wait();
                while !is_done.load(Ordering::Relaxed) {
                    if log.read(FLUSHER_CHECKPOINTS) == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            let remover = scope.spawn(|| {
                gate.wait();
                let (mut runs, mut removed) = (0, 0);
                while !is_done.load(Ordering::Relaxed) {
                    let (count, garbage) = log.remove();
                    drop(garbage);
                    runs += 1;
                    removed += count;
                }
                (runs, removed)
            });
            gate.wait();
            let (took, items_ns) = self.front_end(log);
            is_done.store(true, Ordering::Relaxed);
            let (remover_runs, removed) = remover.join().expect("the remover does not panic");
            Outcome { items: self.iterations * ITEM_COUNT, took, remover_runs, removed, items_ns }
        })
    }

    /// Queues the items. Returns how long that took, and single ones where there is other work in
    /// between, which is left out.
    fn front_end(self, log: &dyn Log) -> (Duration, Percentiles) {
        let items = self.iterations * ITEM_COUNT;
        if self.other_work.is_zero() {
            let started = Instant::now();
            for _ in 0..items {
                log.queue_dirty();
            }
            return (started.elapsed(), Percentiles::default());
        }
        let (mut took, histogram) = (Duration::ZERO, Histogram::new());
        for _ in 0..items {
            let started = Instant::now();
            log.queue_dirty();
            let queued = Instant::now();
            took += queued - started;
            histogram.record(nanos(queued - started));
            while queued.elapsed() < self.other_work {
                std::hint::spin_loop();
            }
        }
        (took, Percentiles::of(&histogram))
    }
}

/// Measures the front end of the second version until `prefilled` checkpoints less one are removed
/// by a thread that reads and removes in turns.
pub fn run_second_version(log: &dyn Log, prefilled: usize) -> Outcome {
    for _ in 0..prefilled {
        log.queue_dirty();
    }
    let gate = Barrier::new(2);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let background = scope.spawn(|| {
            gate.wait();
            let (mut runs, mut removed) = (0, 0);
            while removed < prefilled - 1 {
                log.read(BACKGROUND_CHECKPOINTS);
                let (count, garbage) = log.remove();
                drop(garbage);
                runs += 1;
                removed += count;
            }
            is_done.store(true, Ordering::Relaxed);
            (runs, removed)
        });
        gate.wait();
        let (mut items, mut took, histogram) = (0, Duration::ZERO, Histogram::new());
        while !is_done.load(Ordering::Relaxed) {
            let started = Instant::now();
            log.queue_dirty();
            let item_took = started.elapsed();
            took += item_took;
            histogram.record(nanos(item_took));
            items += 1;
        }
        let (remover_runs, removed) = background.join().expect("the background does not panic");
        let items_ns = Percentiles::of(&histogram);
        Outcome { items, took, remover_runs, removed, items_ns }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::original_log::{Freeing, OriginalLog};
    use crate::settee_log::SetteeLog;

    #[test]
    fn every_design_queues_reads_and_removes_the_same() {
        let logs: [Box<dyn Log>; 3] = [
            Box::new(SetteeLog::new(false)),
            Box::new(OriginalLog::new(Freeing::UnderTheLock)),
            Box::new(OriginalLog::new(Freeing::AfterTheLock)),
        ];
        for log in logs {
            for _ in 0..10 {
                log.queue_dirty();
            }
            assert_eq!(log.checkpoint_count(), 10);
            assert_eq!(log.read(4), 4);
            assert_eq!(log.remove().0, 4);
            assert_eq!(log.checkpoint_count(), 6);
            assert_eq!(log.read(100), 6);
            assert!(log.remove().0 >= 5);
            assert_eq!(log.checkpoint_count(), 1, "the open one stays");
        }
    }

    #[test]
    fn a_reader_that_never_moves_keeps_everything() {
        let log = SetteeLog::new(true);
        let other_work = Duration::from_nanos(100);
        let outcome = FirstVersion { iterations: 2, prefilled: 1_000, other_work }.run(&log);
        assert_eq!((outcome.items, outcome.removed), (200, 0));
        assert_eq!(log.checkpoint_count(), 1_200);
    }

    #[test]
    fn the_second_version_ends_when_everything_was_removed() {
        let log = SetteeLog::new(false);
        let outcome = run_second_version(&log, 2_000);
        assert!(outcome.removed >= 1_999 && outcome.remover_runs > 0);
        assert!(outcome.items_ns.p50 <= outcome.items_ns.p999);
    }
}
