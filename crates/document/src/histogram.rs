//! A histogram of latencies and sizes that any number of threads record into.
//!
//! Log-linear buckets: values below 128 are counted exactly, and each power of two above is cut
//! into 128 buckets of equal width, so a bucket is at most 1/128 (0.8 %) of its values wide.
//! Recording is a few relaxed atomic operations and never locks; a power of two that nobody has
//! recorded takes no memory.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Larger values are recorded as this one. In nanoseconds it is 18 minutes.
pub const VALUE_MAX: u64 = (1 << 40) - 1;

const GROUP_BITS: u32 = 7;
const GROUP_SIZE: usize = 1 << GROUP_BITS;
/// Group 0 holds 0..128; group n holds one power of two, 2^(n+6) .. 2^(n+7).
const GROUP_COUNT: usize = 34;
const _: () = assert!(bucket_of(VALUE_MAX) == GROUP_COUNT * GROUP_SIZE - 1);

type Group = Box<[AtomicU64; GROUP_SIZE]>;

/// Counts of recorded values. Shared by reference; recording needs no exclusive access.
#[derive(Debug)]
pub struct Histogram {
    groups: [OnceLock<Group>; GROUP_COUNT],
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

/// What a [`Histogram`] held at some moment. Snapshots of several histograms can be merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// Number of the bucket and how many values it holds, rising, no empty ones.
    buckets: Vec<(usize, u64)>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

/// A non-empty bucket: `count` values of `from..=to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBucket {
    /// The smallest value that falls into it.
    pub from: u64,
    /// The largest value that falls into it.
    pub to: u64,
    /// How many values fell into it.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub const fn new() -> Self {
        Self {
            groups: [const { OnceLock::new() }; GROUP_COUNT],
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }

    /// Counts `value`, or [`VALUE_MAX`] when that is less.
    pub fn record(&self, value: u64) {
        self.record_by(value, |counter, step| {
            counter.fetch_add(step, Ordering::Relaxed);
        });
    }

    /// The same for a histogram that nobody else records in: it needs no atomic addition.
    pub fn record_alone(&self, value: u64) {
        self.record_by(value, |counter, step| {
            let counted = counter.load(Ordering::Relaxed);
            counter.store(counted.wrapping_add(step), Ordering::Relaxed);
        });
    }

    #[inline]
    fn record_by(&self, value: u64, add: impl Fn(&AtomicU64, u64)) {
        let value = value.min(VALUE_MAX);
        let bucket = bucket_of(value);
        let group = self.groups[bucket / GROUP_SIZE]
            .get_or_init(|| Box::new([const { AtomicU64::new(0) }; GROUP_SIZE]));
        add(&group[bucket % GROUP_SIZE], 1);
        add(&self.sum, value);
        // Extremes are rare; the plain loads keep the common case free of two more writes.
        if value < self.min.load(Ordering::Relaxed) {
            self.min.fetch_min(value, Ordering::Relaxed);
        }
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Forgets what has been recorded. Nobody records meanwhile.
    pub fn clear(&self) {
        for count in self.groups.iter().filter_map(OnceLock::get).flat_map(|group| group.iter()) {
            count.store(0, Ordering::Relaxed);
        }
        self.sum.store(0, Ordering::Relaxed);
        self.min.store(u64::MAX, Ordering::Relaxed);
        self.max.store(0, Ordering::Relaxed);
    }

    /// The average of what has been recorded until now, rounded down; 0 when that is nothing. What
    /// [`HistogramSnapshot::mean`] says, without a copy of everything.
    pub fn mean(&self) -> u64 {
        let groups = self.groups.iter().filter_map(OnceLock::get).flat_map(|group| group.iter());
        let count: u64 = groups.map(|count| count.load(Ordering::Relaxed)).sum();
        self.sum.load(Ordering::Relaxed).checked_div(count).unwrap_or(0)
    }

    /// What has been recorded until now. While others record, the parts of the answer may differ
    /// by the values in flight.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let mut buckets = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            let Some(group) = group.get() else { continue };
            for (offset, count) in group.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    buckets.push((index * GROUP_SIZE + offset, count));
                }
            }
        }
        if buckets.is_empty() {
            return HistogramSnapshot::default();
        }
        HistogramSnapshot {
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
            sum: self.sum.load(Ordering::Relaxed),
            min: self.min.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
        }
    }
}

impl HistogramSnapshot {
    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The smallest value, exactly; 0 when empty.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The largest value, exactly; 0 when empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The average, rounded down; 0 when empty.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// A value that `quantile` (0.0 to 1.0) of all values do not exceed: at least the exact one
    /// and at most 1 % above it. 0 when empty.
    pub fn value_at_quantile(&self, quantile: f64) -> u64 {
        let rank = (quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for bucket in self.buckets() {
            seen += bucket.count;
            if seen >= rank.max(1) {
                return bucket.to.min(self.max);
            }
        }
        self.max
    }

    /// The buckets that hold anything, smallest values first.
    pub fn buckets(&self) -> impl Iterator<Item = HistogramBucket> + '_ {
        self.buckets.iter().map(|&(bucket, count)| {
            let (from, to) = bounds_of(bucket);
            HistogramBucket { from, to, count }
        })
    }

    /// What was recorded after `earlier`, a snapshot of the same histogram, was taken. Its
    /// extremes are those of its buckets.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut before = earlier.buckets.iter().peekable();
        let mut buckets = Vec::new();
        for &(bucket, count) in &self.buckets {
            let old = before.next_if(|(old, _)| *old == bucket).map_or(0, |(_, count)| *count);
            if count > old {
                buckets.push((bucket, count - old));
            }
        }
        Self {
            count: buckets.iter().map(|(_, count)| count).sum(),
            sum: self.sum.saturating_sub(earlier.sum),
            min: buckets.first().map_or(0, |(bucket, _)| bounds_of(*bucket).0),
            max: buckets.last().map_or(0, |(bucket, _)| bounds_of(*bucket).1.min(self.max)),
            buckets,
        }
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.buckets.extend_from_slice(&other.buckets);
        self.buckets.sort_unstable_by_key(|&(bucket, _)| bucket);
        self.buckets.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
    }
}

const fn bucket_of(value: u64) -> usize {
    if value < GROUP_SIZE as u64 {
        return value as usize;
    }
    let exponent = value.ilog2();
    let group = (exponent - GROUP_BITS + 1) as usize;
    let offset = (value >> (exponent - GROUP_BITS)) as usize - GROUP_SIZE;
    group * GROUP_SIZE + offset
}

fn bounds_of(bucket: usize) -> (u64, u64) {
    let (group, offset) = (bucket / GROUP_SIZE, (bucket % GROUP_SIZE) as u64);
    if group == 0 {
        return (offset, offset);
    }
    let width = 1_u64 << (group - 1);
    let from = (offset + GROUP_SIZE as u64) * width;
    (from, from + width - 1)
}

#[cfg(test)]
mod tests;
