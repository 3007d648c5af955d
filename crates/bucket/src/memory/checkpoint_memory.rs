//! How much of a bucket's memory its checkpoints may take, and what follows when they take more.
//! Source: docs/specification/engine.md, section 3.6.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::BucketConfig;

/// The part of the quota that durable writes may take when it is used up.
const RESERVE_SHARE: u64 = 8;
/// Checkpoints that the quota of one vBucket is cut into.
const CHECKPOINTS_MAX: u64 = 10;

/// The marks, in bytes. They follow the bucket's quota.
#[derive(Debug, Default)]
pub(crate) struct CheckpointMarks {
    quota: AtomicU64,
    upper: AtomicU64,
    lower: AtomicU64,
}

/// What writers have to know of the checkpoints' memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointState {
    /// There is enough.
    Available,
    /// Some has to be recovered; writes go on meanwhile.
    High,
    /// The quota is used up: writes have to wait.
    Full,
}

impl CheckpointMarks {
    /// Sets the marks for a bucket with `memory_quota_bytes`. Returns the size above which an open
    /// checkpoint is closed.
    pub(crate) fn follow(&self, memory_quota_bytes: u64, config: &BucketConfig) -> usize {
        let quota = part_of(memory_quota_bytes, config.checkpoint_memory_ratio);
        let upper = part_of(quota, config.checkpoint_memory_upper_mark);
        let lower = part_of(quota, config.checkpoint_memory_lower_mark);
        assert!(lower <= upper, "recovery ends at a mark below the one where it begins");
        self.quota.store(quota, Ordering::Relaxed);
        self.upper.store(upper, Ordering::Relaxed);
        self.lower.store(lower, Ordering::Relaxed);
        let vbucket_count = u64::from(config.vbucket_count.max(1));
        let size_max = (quota / vbucket_count / CHECKPOINTS_MAX).max(1);
        usize::try_from(size_max).unwrap_or(usize::MAX)
    }

    /// What a use of `used_bytes` means.
    pub(crate) fn state(&self, used_bytes: u64) -> CheckpointState {
        if used_bytes < self.upper.load(Ordering::Relaxed) {
            CheckpointState::Available
        } else if used_bytes < self.quota.load(Ordering::Relaxed) {
            CheckpointState::High
        } else {
            CheckpointState::Full
        }
    }

    /// Whether a use of `used_bytes` leaves room for durable writes. Somebody waits for the end of
    /// each, so they are few, and small beside what waits for nobody.
    pub(crate) fn has_reserve(&self, used_bytes: u64) -> bool {
        let quota = self.quota.load(Ordering::Relaxed);
        used_bytes < quota.saturating_add(quota / RESERVE_SHARE)
    }

    /// Bytes to recover until the lower mark is reached. What waits to be destroyed is on its way.
    pub(crate) fn needed_reduction(&self, used_bytes: u64, pending_bytes: u64) -> u64 {
        let kept = self.lower.load(Ordering::Relaxed).saturating_add(pending_bytes);
        used_bytes.saturating_sub(kept)
    }

    /// Bytes that checkpoints may take.
    pub(crate) fn quota_bytes(&self) -> u64 {
        self.quota.load(Ordering::Relaxed)
    }

    /// Bytes from which on memory is recovered.
    pub(crate) fn upper_bytes(&self) -> u64 {
        self.upper.load(Ordering::Relaxed)
    }

    /// Bytes down to which it is recovered.
    pub(crate) fn lower_bytes(&self) -> u64 {
        self.lower.load(Ordering::Relaxed)
    }
}

/// A part of a quota.
pub(crate) fn part_of(quota_bytes: u64, ratio: f64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a quota is far below 2^52 bytes and the ratio is between 0 and 1"
    )]
    let part = (quota_bytes as f64 * ratio.clamp(0.0, 1.0)) as u64;
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> (CheckpointMarks, usize) {
        let config = BucketConfig { vbucket_count: 4, ..BucketConfig::named("b") };
        let marks = CheckpointMarks::default();
        let size_max = marks.follow(10_000, &config);
        (marks, size_max)
    }

    #[test]
    fn marks_are_parts_of_the_quota() {
        let (marks, size_max) = marks();
        let all = (marks.quota_bytes(), marks.upper_bytes(), marks.lower_bytes());
        assert_eq!(all, (2_000, 1_800, 1_200));
        assert_eq!(size_max, 50, "a tenth of each vBucket's part");
    }

    #[test]
    fn between_the_marks_writes_go_on_and_above_the_quota_they_wait() {
        let (marks, _) = marks();
        let cases = [
            (0, CheckpointState::Available),
            (1_799, CheckpointState::Available),
            (1_800, CheckpointState::High),
            (1_999, CheckpointState::High),
            (2_000, CheckpointState::Full),
        ];
        for (used_bytes, state) in cases {
            assert_eq!(marks.state(used_bytes), state, "{used_bytes}");
            assert!(marks.has_reserve(used_bytes));
        }
    }

    #[test]
    fn what_is_being_destroyed_is_not_recovered_again() {
        let (marks, _) = marks();
        for (used, pending, needed) in [(1_900, 0, 700), (1_900, 300, 400), (1_900, 900, 0)] {
            assert_eq!(marks.needed_reduction(used, pending), needed);
        }
        assert_eq!(marks.needed_reduction(1_200, 0), 0);
    }
}
