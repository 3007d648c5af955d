//! Which documents are asked for most, sampled while somebody wants to know.
//!
//! While nobody does a request costs one load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::Instant;

/// Names that are counted by each worker at once.
const COUNTED_MAX: usize = 256;
/// One of so many requests is counted.
pub const SAMPLED_EVERY: u64 = 8;
/// A sampling goes on for this long at most.
pub(crate) const SECONDS_MAX: u64 = 600;

/// The keys of one sampling.
#[derive(Debug)]
pub(crate) struct HotKeys {
    /// Nanoseconds of the monotonic clock until which requests are sampled; 0 for not at all.
    until_ns: AtomicU64,
    by_worker: Box<[Mutex<Sample>]>,
}

/// What one worker has counted, by the bucket's name and the key as it was sent. When there is no
/// place left the one that was counted least makes room, and the new one inherits its count: what
/// is asked for often is never missing, and counted too often by at most that.
#[derive(Debug, Default)]
struct Sample {
    requests: u64,
    counted: u64,
    counts: BTreeMap<(String, Vec<u8>), u64>,
}

/// A document that is asked for often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    /// As it was sent.
    pub key: Vec<u8>,
    /// Of the requests that were counted.
    pub count: u64,
}

impl HotKeys {
    /// Nothing is sampled yet, by so many workers.
    pub(crate) fn of_workers(count: usize) -> Self {
        let by_worker = std::iter::repeat_with(Mutex::default).take(count).collect();
        Self { until_ns: AtomicU64::new(0), by_worker }
    }

    /// Begins anew, and goes on for a while.
    pub(crate) fn sample_for(&self, time: Duration, now: Instant) {
        for sample in &self.by_worker {
            let before = std::mem::take(&mut *lock(sample));
            // It is freed behind the lock.
            drop(before);
        }
        self.until_ns.store(now.after(time).0, Ordering::Relaxed);
    }

    /// For how long requests are still sampled.
    pub(crate) fn time_left(&self, now: Instant) -> Duration {
        Instant(self.until_ns.load(Ordering::Relaxed)).since(now)
    }

    /// Whether requests are to be told of.
    #[inline]
    pub(crate) fn is_sampling(&self) -> bool {
        self.until_ns.load(Ordering::Relaxed) != 0
    }

    /// A worker has carried out a request about a document.
    #[cold]
    pub(crate) fn note(&self, worker: usize, bucket: &str, key: &[u8], now: Instant) {
        let until_ns = self.until_ns.load(Ordering::Relaxed);
        if now.0 >= until_ns {
            // Another sampling may have begun meanwhile, which goes on.
            let (old, ordering) = (until_ns, Ordering::Relaxed);
            if self.until_ns.compare_exchange(old, 0, ordering, ordering).is_ok() {
                tracing::debug!("a sampling of hot documents has ended");
            }
            return;
        }
        lock(&self.by_worker[worker]).note(bucket, key);
    }

    /// What was asked for most of a bucket, and how many requests were counted in all.
    pub(crate) fn of(&self, bucket: &str) -> (Vec<HotKey>, u64) {
        let (mut sums, mut counted): (BTreeMap<Vec<u8>, u64>, u64) = (BTreeMap::new(), 0);
        for sample in &self.by_worker {
            let sample = lock(sample);
            counted += sample.counted;
            let own = sample.counts.iter().filter(|((name, _), _)| name == bucket);
            own.for_each(|((_, key), count)| *sums.entry(key.clone()).or_default() += count);
        }
        let mut hot: Vec<HotKey> =
            sums.into_iter().map(|(key, count)| HotKey { key, count }).collect();
        hot.sort_by(|left, right| right.count.cmp(&left.count).then(left.key.cmp(&right.key)));
        (hot, counted)
    }
}

impl Sample {
    fn note(&mut self, bucket: &str, key: &[u8]) {
        self.requests += 1;
        if !self.requests.is_multiple_of(SAMPLED_EVERY) {
            return;
        }
        self.counted += 1;
        let name = (bucket.to_owned(), key.to_vec());
        if let Some(count) = self.counts.get_mut(&name) {
            *count += 1;
            return;
        }
        let inherited = if self.counts.len() < COUNTED_MAX { 0 } else { self.make_room() };
        self.counts.insert(name, inherited + 1);
    }

    /// Forgets the key that was counted least; returns how often it was.
    fn make_room(&mut self) -> u64 {
        let least =
            self.counts.iter().min_by(|left, right| (left.1, left.0).cmp(&(right.1, right.0)));
        let Some((name, count)) = least.map(|(name, count)| (name.clone(), *count)) else {
            return 0;
        };
        self.counts.remove(&name);
        count
    }
}

fn lock(sample: &Mutex<Sample>) -> MutexGuard<'_, Sample> {
    sample.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_often_is_found_among_much_else() {
        let hot_keys = HotKeys::of_workers(2);
        assert!(!hot_keys.is_sampling());
        hot_keys.sample_for(Duration::from_secs(1), Instant(0));
        assert!(hot_keys.is_sampling());
        for number in 0..100_000_u64 {
            let worker = usize::from(number % 16 == 0);
            let name = format!("cold {number}");
            // Every third request that is counted is of the hot document.
            let is_hot = number % (3 * SAMPLED_EVERY) < SAMPLED_EVERY;
            let key = if is_hot { b"hot" } else { name.as_bytes() };
            hot_keys.note(worker, "b", key, Instant(1));
        }
        let (hot, counted) = hot_keys.of("b");
        assert!(counted > 10_000, "{counted}");
        assert_eq!(hot[0].key, b"hot");
        assert!(hot[0].count >= counted / 4, "{} of {counted}", hot[0].count);
        assert!(hot[0].count > 4 * hot[1].count, "{:?}", hot[1]);
        assert!(hot.len() <= 2 * COUNTED_MAX);
        assert!(hot_keys.of("c").0.is_empty());
    }

    #[test]
    fn a_sampling_ends_by_itself_and_the_next_begins_anew() {
        let hot_keys = HotKeys::of_workers(1);
        hot_keys.sample_for(Duration::from_nanos(10), Instant(0));
        (0..SAMPLED_EVERY).for_each(|_| hot_keys.note(0, "b", b"k", Instant(9)));
        hot_keys.note(0, "b", b"k", Instant(10));
        assert!(!hot_keys.is_sampling());
        let expected = HotKey { key: b"k".to_vec(), count: 1 };
        assert_eq!(hot_keys.of("b"), (vec![expected], 1), "the result stays");
        hot_keys.sample_for(Duration::from_nanos(10), Instant(20));
        assert_eq!(hot_keys.of("b"), (vec![], 0));
    }
}
