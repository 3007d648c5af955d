//! How much memory a bucket may use, which an operator may change at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use vbucket::eviction::Watermarks;

use crate::config::BucketConfig;

/// The smallest quota of a bucket, bytes.
pub const MEMORY_QUOTA_BYTES_MIN: u64 = 16 << 20;

/// What the parts of the quota may be, for people.
pub const MEMORY_RATIOS_RANGE: &str =
    "0 to 1: `mem_low_wat_percent` < `mem_high_wat_percent` <= `mutation_mem_ratio`";

/// The part of the quota above which no stream begins that has to read a file
/// (`backfill_mem_threshold`, percent).
const BACKFILL_PERCENT_MAX: u64 = 96;

/// A part of the quota that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryParameter {
    /// Where the pager stops.
    LowWatermark,
    /// Above which it evicts.
    HighWatermark,
    /// Above which writes are refused.
    MutationRatio,
}

/// Why a limit cannot be set. The caller is told, and nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaError {
    /// The quota is too small to be of use.
    #[error("a bucket's memory quota is at least {MEMORY_QUOTA_BYTES_MIN} bytes")]
    TooSmall,
    /// The part is none, or the order low, high, mutation would be broken.
    #[error(
        "watermarks are parts between 0 and 1, the low one below the high one, and writes are not \
         refused below that"
    )]
    OutOfOrder,
}

/// The quota and its marks.
#[derive(Debug)]
pub(crate) struct MemoryLimits {
    quota_bytes: AtomicU64,
    /// Below `quota_bytes` while a smaller quota waits until it can come into force.
    wanted_bytes: AtomicU64,
    low: Ratio,
    high: Ratio,
    mutation: Ratio,
}

#[derive(Debug)]
struct Ratio(AtomicU64);

impl Ratio {
    fn new(ratio: f64) -> Self {
        Self(AtomicU64::new(ratio.to_bits()))
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, ratio: f64) {
        self.0.store(ratio.to_bits(), Ordering::Relaxed);
    }

    fn of(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.get().clamp(0.0, 1.0)) as u64
    }
}

impl MemoryLimits {
    pub(crate) fn new(config: &BucketConfig) -> Self {
        let (low, high) = (config.memory_low_watermark, config.memory_high_watermark);
        assert!(
            are_ordered(low, high, config.mutation_memory_ratio),
            "the pager stops below where it begins, and begins before writes are refused"
        );
        Self {
            quota_bytes: AtomicU64::new(config.memory_quota_bytes),
            wanted_bytes: AtomicU64::new(config.memory_quota_bytes),
            low: Ratio::new(config.memory_low_watermark),
            high: Ratio::new(config.memory_high_watermark),
            mutation: Ratio::new(config.mutation_memory_ratio),
        }
    }

    /// The quota in force.
    pub(crate) fn quota_bytes(&self) -> u64 {
        self.quota_bytes.load(Ordering::Relaxed)
    }

    /// The quota that will be in force once memory has shrunk to it.
    pub(crate) fn wanted_bytes(&self) -> u64 {
        self.wanted_bytes.load(Ordering::Relaxed)
    }

    /// Bytes in use above which writes are refused.
    pub(crate) fn mutation_bytes_max(&self) -> u64 {
        self.mutation.of(self.quota_bytes())
    }

    /// Bytes in use above which no stream begins that has to read a file.
    pub(crate) fn backfill_bytes_max(&self) -> u64 {
        self.quota_bytes() / 100 * BACKFILL_PERCENT_MAX
    }

    /// Where the pager begins and ends: at once those of a smaller quota that waits.
    pub(crate) fn watermarks(&self) -> Watermarks {
        let bytes = self.wanted_bytes();
        Watermarks { low_bytes: self.low.of(bytes), high_bytes: self.high.of(bytes) }
    }

    /// The parts of the quota: low watermark, high watermark, mutations.
    pub(crate) fn ratios(&self) -> [f64; 3] {
        [self.low.get(), self.high.get(), self.mutation.get()]
    }

    pub(super) fn set_ratio(
        &self,
        parameter: MemoryParameter,
        ratio: f64,
    ) -> Result<(), QuotaError> {
        let [mut low, mut high, mut mutation] = self.ratios();
        let target = match parameter {
            MemoryParameter::LowWatermark => &mut low,
            MemoryParameter::HighWatermark => &mut high,
            MemoryParameter::MutationRatio => &mut mutation,
        };
        *target = ratio;
        if !are_ordered(low, high, mutation) {
            return Err(QuotaError::OutOfOrder);
        }
        self.low.set(low);
        self.high.set(high);
        self.mutation.set(mutation);
        Ok(())
    }

    /// Wants another quota. A larger one is in force at once, a smaller one once
    /// [`MemoryLimits::shrink_to_fit`] has seen that memory fits.
    pub(super) fn set_quota(&self, bytes: u64) -> Result<(), QuotaError> {
        if bytes < MEMORY_QUOTA_BYTES_MIN {
            return Err(QuotaError::TooSmall);
        }
        self.wanted_bytes.store(bytes, Ordering::Relaxed);
        // Tells who lowers the quota what is wanted now.
        self.quota_bytes.fetch_max(bytes, Ordering::Release);
        Ok(())
    }

    /// Brings a smaller quota into force if memory in use lies below its high watermark. Returns
    /// whether the quota in force is the wanted one.
    pub(super) fn shrink_to_fit(&self, used_bytes: u64) -> bool {
        let wanted_bytes = self.wanted_bytes();
        let quota_bytes = self.quota_bytes();
        if quota_bytes > wanted_bytes && used_bytes <= self.watermarks().high_bytes {
            self.lower(quota_bytes, wanted_bytes);
        }
        self.quota_bytes() == self.wanted_bytes()
    }

    /// Brings the quota from what it was to what was wanted then, unless a larger one has been set
    /// since, which is in force at once: either that raises what is written here, or it is seen
    /// here behind it.
    fn lower(&self, from: u64, to: u64) {
        let lowered =
            self.quota_bytes.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed);
        if lowered.is_ok() {
            self.quota_bytes.fetch_max(self.wanted_bytes(), Ordering::Relaxed);
        }
    }
}

/// Were writes refused below the mark where the pager begins, nothing would make room.
fn are_ordered(low: f64, high: f64, mutation: f64) -> bool {
    0.0 < low && low < high && high <= mutation && mutation <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn limits(quota_bytes: u64) -> MemoryLimits {
        MemoryLimits::new(&BucketConfig {
            memory_quota_bytes: quota_bytes,
            ..BucketConfig::named("test")
        })
    }

    #[test]
    fn a_larger_quota_is_in_force_at_once() {
        let limits = limits(100 * MIB);
        limits.set_quota(200 * MIB).unwrap();
        assert!(limits.shrink_to_fit(100 * MIB));
        assert_eq!(limits.quota_bytes(), 200 * MIB);
    }

    #[test]
    fn a_smaller_quota_lowers_the_watermarks_first_and_comes_into_force_when_memory_fits() {
        let limits = limits(100 * MIB);
        limits.set_quota(50 * MIB).unwrap();
        assert_eq!(limits.watermarks().high_bytes, 50 * MIB * 85 / 100);
        assert_eq!(limits.mutation_bytes_max(), 93 * MIB);
        assert!(!limits.shrink_to_fit(43 * MIB));
        assert_eq!(limits.quota_bytes(), 100 * MIB);
        assert!(limits.shrink_to_fit(42 * MIB));
        assert_eq!((limits.quota_bytes(), limits.mutation_bytes_max()), (50 * MIB, 93 * MIB / 2));
    }

    #[test]
    fn a_quota_that_grows_while_a_smaller_one_waits_ends_the_wait() {
        let limits = limits(100 * MIB);
        limits.set_quota(50 * MIB).unwrap();
        limits.set_quota(100 * MIB).unwrap();
        assert!(limits.shrink_to_fit(99 * MIB));
    }

    #[test]
    fn a_larger_quota_stays_in_force_whenever_it_comes_while_a_smaller_one_comes_into_force() {
        for larger in [80 * MIB, 100 * MIB, 200 * MIB] {
            let limits = limits(100 * MIB);
            limits.set_quota(50 * MIB).unwrap();
            // Somebody has read what was wanted, and is about to write it.
            let (from, to) = (limits.quota_bytes(), limits.wanted_bytes());
            limits.set_quota(larger).unwrap();
            limits.lower(from, to);
            assert!(limits.quota_bytes() >= larger, "{larger}");
            assert!(limits.shrink_to_fit(0));
            assert_eq!(limits.quota_bytes(), larger);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_changes_nothing() {
        let limits = limits(100 * MIB);
        assert_eq!(limits.set_quota(MIB), Err(QuotaError::TooSmall));
        let before = limits.ratios();
        let low = MemoryParameter::LowWatermark;
        for ratio in [0.0, 0.85, 1.5, f64::NAN, -1.0] {
            assert_eq!(limits.set_ratio(low, ratio), Err(QuotaError::OutOfOrder), "{ratio}");
        }
        let (high, mutation) = (MemoryParameter::HighWatermark, MemoryParameter::MutationRatio);
        for (parameter, ratio) in [(high, 0.94), (high, 0.75), (mutation, 0.84), (mutation, 1.1)] {
            assert_eq!(limits.set_ratio(parameter, ratio), Err(QuotaError::OutOfOrder), "{ratio}");
        }
        assert_eq!(limits.ratios(), before);
        limits.set_ratio(mutation, 0.85).unwrap();
        limits.set_ratio(low, 0.5).unwrap();
        assert_eq!(limits.watermarks().low_bytes, 50 * MIB);
    }
}
