//! Which documents a round of the pager takes, and which it leaves.

use super::FrequencyHistogram;
use super::frequency_counter;

/// `item_eviction_initial_mfu_percentile`.
const INITIAL_PERCENTILE: f64 = 25.0;
/// One in so many walks that pass a document over takes one from its counter. Of the powers of two
/// this one did best over still, drifting and scanned workloads together.
const LOSSES_ONE_IN: u32 = 8;

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

/// How documents are chosen (`item_eviction_strategy`). Both take a percentile of the frequency
/// counters of all documents that could leave; it is known before the walk begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StrategyKind {
    /// The original's default: documents begin above the lowest quarter of the counters, and every
    /// walk that passes one over takes one from its counter. That comes close to a queue, in which
    /// what was read long ago and often counts for little.
    UpfrontMfuOnly,
    /// Documents begin low, and one in eight walks takes one from a counter: what is read once goes
    /// before what is read often, and fame fades nevertheless.
    #[default]
    LastingMfu,
}

impl StrategyKind {
    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::UpfrontMfuOnly => "upfront_mfu_only",
            Self::LastingMfu => "lasting_mfu",
        }
    }

    /// The frequency counter of documents that come into memory.
    pub fn initial_frequency(self, evictable: &FrequencyHistogram) -> u8 {
        match self {
            Self::UpfrontMfuOnly => {
                let percentile = evictable.percentile(INITIAL_PERCENTILE);
                frequency_counter::initial_above(percentile.unwrap_or(0))
            }
            Self::LastingMfu => frequency_counter::INITIAL,
        }
    }

    /// Takes `ratio` (0 to 1) of the documents in `evictable`, those that are read least.
    pub fn strategy(self, evictable: &FrequencyHistogram, ratio: f64) -> EvictionStrategy {
        let threshold = if ratio > 0.0 { evictable.percentile(ratio * 100.0) } else { None };
        EvictionStrategy { kind: self, threshold }
    }
}

/// Who leaves in one walk, and what happens to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionStrategy {
    kind: StrategyKind,
    /// `None`: nobody leaves.
    threshold: Option<u8>,
}

impl EvictionStrategy {
    /// Takes everybody whose counter does not exceed `threshold`.
    pub fn up_to(kind: StrategyKind, threshold: u8) -> Self {
        Self { kind, threshold: Some(threshold) }
    }

    /// Up to which frequency counter documents leave, if any do.
    pub fn threshold(self) -> Option<u8> {
        self.threshold
    }

    /// What becomes of a document with this frequency counter. `random_bits` are evenly
    /// distributed.
    pub fn judge(self, counter: u8, random_bits: u32) -> Verdict {
        match self.threshold {
            Some(threshold) if counter <= threshold => Verdict::Evict,
            _ if self.kind == StrategyKind::UpfrontMfuOnly => {
                Verdict::Keep(counter.saturating_sub(1))
            }
            _ if random_bits < u32::MAX / LOSSES_ONE_IN => Verdict::Keep(counter.saturating_sub(1)),
            _ => Verdict::Keep(counter),
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
            let strategy = StrategyKind::default().strategy(&histogram(), ratio);
            assert_eq!(strategy.threshold(), threshold, "{ratio}");
        }
    }

    #[test]
    fn the_least_read_leave_and_the_others_lose_one_now_and_then() {
        let strategy = StrategyKind::LastingMfu.strategy(&histogram(), 0.5);
        assert_eq!(strategy.judge(0, 0), Verdict::Evict);
        assert_eq!(strategy.judge(99, u32::MAX), Verdict::Evict);
        assert_eq!(strategy.judge(100, 0), Verdict::Keep(99));
        assert_eq!(strategy.judge(100, u32::MAX / 4), Verdict::Keep(100));
        assert_eq!(strategy.judge(255, u32::MAX), Verdict::Keep(255));
    }

    #[test]
    fn the_original_takes_one_from_everybody_who_stays() {
        let strategy = StrategyKind::UpfrontMfuOnly.strategy(&histogram(), 0.5);
        assert_eq!(strategy.judge(99, 0), Verdict::Evict);
        assert_eq!(strategy.judge(100, u32::MAX), Verdict::Keep(99));
    }

    #[test]
    fn documents_begin_low_or_above_the_lowest_quarter() {
        assert_eq!(StrategyKind::LastingMfu.initial_frequency(&histogram()), 4);
        assert_eq!(StrategyKind::UpfrontMfuOnly.initial_frequency(&histogram()), 50);
        assert_eq!(StrategyKind::UpfrontMfuOnly.initial_frequency(&Default::default()), 4);
    }

    #[test]
    fn without_documents_or_without_need_nobody_leaves() {
        let empty = FrequencyHistogram::default();
        for (evictable, ratio) in [(empty, 1.0), (histogram(), 0.0)] {
            let strategy = StrategyKind::default().strategy(&evictable, ratio);
            assert_eq!(strategy.judge(0, 0), Verdict::Keep(0));
        }
    }
}
