//! Which documents a round of the pager takes, and which it leaves.

use super::FrequencyHistogram;
use super::frequency_counter::after_passed_over;

/// What leaves memory when there is too little of it (`item_eviction_policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// Values. Keys and metadata of all documents stay.
    #[default]
    ValueOnly,
    /// Documents, whole.
    Full,
}

impl EvictionPolicy {
    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::ValueOnly => "value_only",
            Self::Full => "full_eviction",
        }
    }
}

/// What becomes of a document that could leave memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves.
    Evict,
    /// It stays, with this frequency counter.
    Keep(u8),
}

/// The strategy `upfront_mfu_only`: the threshold is known before the walk begins, as a percentile
/// of the frequency counters of all documents that could leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionStrategy {
    /// `None`: nobody leaves.
    threshold: Option<u8>,
}

impl EvictionStrategy {
    /// Takes `ratio` (0 to 1) of the documents in `evictable`, those that are read least.
    pub fn upfront_mfu_only(evictable: &FrequencyHistogram, ratio: f64) -> Self {
        let threshold = if ratio > 0.0 { evictable.percentile(ratio * 100.0) } else { None };
        Self { threshold }
    }

    /// Up to which frequency counter documents leave, if any do.
    pub fn threshold(self) -> Option<u8> {
        self.threshold
    }

    /// What becomes of a document with this frequency counter. One that stays loses a little, or
    /// a walk that finds nothing would be followed by others like it.
    pub fn judge(self, counter: u8) -> Verdict {
        match self.threshold {
            Some(threshold) if counter <= threshold => Verdict::Evict,
            _ => Verdict::Keep(after_passed_over(counter)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram() -> FrequencyHistogram {
        let mut histogram = FrequencyHistogram::default();
        (0..200).for_each(|counter| histogram.record(counter));
        histogram
    }

    #[test]
    fn the_threshold_is_the_percentile_of_the_ratio() {
        let cases = [(0.0, None), (0.005, Some(0)), (0.5, Some(99)), (1.0, Some(199))];
        for (ratio, threshold) in cases {
            let strategy = EvictionStrategy::upfront_mfu_only(&histogram(), ratio);
            assert_eq!(strategy.threshold(), threshold, "{ratio}");
        }
    }

    #[test]
    fn the_least_read_leave_and_the_others_lose_one() {
        let strategy = EvictionStrategy::upfront_mfu_only(&histogram(), 0.5);
        assert_eq!(strategy.judge(0), Verdict::Evict);
        assert_eq!(strategy.judge(99), Verdict::Evict);
        assert_eq!(strategy.judge(100), Verdict::Keep(99));
        assert_eq!(strategy.judge(255), Verdict::Keep(254));
    }

    #[test]
    fn without_documents_or_without_need_nobody_leaves() {
        let empty = FrequencyHistogram::default();
        for (evictable, ratio) in [(empty, 1.0), (histogram(), 0.0)] {
            let strategy = EvictionStrategy::upfront_mfu_only(&evictable, ratio);
            assert_eq!(strategy.judge(0), Verdict::Keep(0));
        }
    }
}
