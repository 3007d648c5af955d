//! What a worker counts while the main thread looks on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use client::status_name;
use document::Histogram;

/// Statuses with a counter of their own; all others share the last one.
const STATUS_COUNT: usize = 257;

/// Counters of one worker in one phase.
#[derive(Debug)]
pub(super) struct Counters {
    /// Nanoseconds from the start of the batch to the answer of a read, whatever it says.
    pub(super) gets: Histogram,
    /// The same for writes.
    pub(super) sets: Histogram,
    errors: StatusCounters,
    retries: StatusCounters,
    /// Connections that ended, by cause.
    losses: Mutex<BTreeMap<String, u64>>,
    /// Operations whose outcome nobody knows because their connection ended.
    unanswered: AtomicU64,
}

#[derive(Debug)]
struct StatusCounters([AtomicU64; STATUS_COUNT]);

/// The counters of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) gets: document::HistogramSnapshot,
    pub(super) sets: document::HistogramSnapshot,
    /// Operations that failed for good, by the status's name.
    pub(super) errors: BTreeMap<String, u64>,
    /// Temporary failures after which the operation was sent again.
    pub(super) retries: BTreeMap<String, u64>,
    pub(super) losses: BTreeMap<String, u64>,
    pub(super) unanswered: u64,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self {
            gets: Histogram::new(),
            sets: Histogram::new(),
            errors: StatusCounters::new(),
            retries: StatusCounters::new(),
            losses: Mutex::default(),
            unanswered: AtomicU64::new(0),
        }
    }

    pub(super) fn count_error(&self, status: u16) {
        self.errors.count(status);
    }

    pub(super) fn count_retry(&self, status: u16) {
        self.retries.count(status);
    }

    pub(super) fn count_loss(&self, cause: String, unanswered: u64) {
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        *losses.entry(cause).or_default() += 1;
        self.unanswered.fetch_add(unanswered, Ordering::Relaxed);
    }
}

impl StatusCounters {
    fn new() -> Self {
        Self([const { AtomicU64::new(0) }; STATUS_COUNT])
    }

    fn count(&self, status: u16) {
        let place = usize::from(status).min(STATUS_COUNT - 1);
        self.0[place].fetch_add(1, Ordering::Relaxed);
    }

    fn add_to(&self, totals: &mut BTreeMap<String, u64>) {
        for (status, count) in (0..).zip(&self.0) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let is_other = usize::from(status) == STATUS_COUNT - 1;
                let name = if is_other { "others".into() } else { status_name(status) };
                *totals.entry(name.into_owned()).or_default() += count;
            }
        }
    }
}

impl Totals {
    /// The sums of what has been counted until now.
    pub(super) fn of<'a>(all: impl IntoIterator<Item = &'a Counters>) -> Self {
        let mut totals = Self::default();
        for counters in all {
            totals.gets.merge(&counters.gets.snapshot());
            totals.sets.merge(&counters.sets.snapshot());
            counters.errors.add_to(&mut totals.errors);
            counters.retries.add_to(&mut totals.retries);
            let losses = counters.losses.lock().unwrap_or_else(PoisonError::into_inner);
            for (cause, count) in losses.iter() {
                *totals.losses.entry(cause.clone()).or_default() += count;
            }
            totals.unanswered += counters.unanswered.load(Ordering::Relaxed);
        }
        totals
    }

    /// Operations that were answered, well or badly.
    pub(super) fn answered(&self) -> u64 {
        self.gets.count() + self.sets.count()
    }

    /// Reads and writes in one histogram.
    pub(super) fn all(&self) -> document::HistogramSnapshot {
        let mut all = self.gets.clone();
        all.merge(&self.sets);
        all
    }

    /// Whether everything was answered, with success or with "no such document".
    pub(super) fn is_good(&self) -> bool {
        let missing = status_name(protocol::Status::KeyEnoent.code());
        self.losses.is_empty() && self.errors.keys().all(|name| *name == missing)
    }
}

#[cfg(test)]
mod tests {
    use protocol::Status;

    use super::*;

    #[test]
    fn counters_of_all_workers_add_up_by_name() {
        let all = [Counters::new(), Counters::new()];
        for counters in &all {
            counters.gets.record(5);
            counters.sets.record(7);
            counters.count_retry(Status::Etmpfail.code());
            counters.count_error(Status::KeyEnoent.code());
        }
        let totals = Totals::of(&all);
        assert_eq!((totals.answered(), totals.all().sum()), (4, 24));
        assert_eq!(totals.retries, BTreeMap::from([("ETMPFAIL".to_owned(), 2)]));
        assert!(totals.is_good());
        all[1].count_error(0x1234);
        all[0].count_loss("reset".to_owned(), 3);
        all[1].count_loss("reset".to_owned(), 4);
        let totals = Totals::of(&all);
        let expected = [("KEY_ENOENT".to_owned(), 2), ("others".to_owned(), 1)];
        assert_eq!(totals.errors, BTreeMap::from(expected));
        assert_eq!(totals.losses, BTreeMap::from([("reset".to_owned(), 2)]));
        assert_eq!(totals.unanswered, 7);
        assert!(!totals.is_good());
    }
}
