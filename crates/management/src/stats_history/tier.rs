//! Figures at even distances in time, up to an age.

use std::collections::{BTreeMap, VecDeque};

use super::packed_values::{CHUNK_VALUES_MAX, PackedValues};
use super::{Point, Series, SeriesName};
use crate::metric::{Metric, MetricKind};

/// What a tier keeps, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierLimits {
    /// Between two samples.
    pub(super) interval_seconds: u64,
    /// Samples: beyond that the oldest ones go.
    pub(super) samples_max: usize,
    /// Figures: later ones are not kept.
    pub(super) series_max: usize,
    /// Bytes of values: beyond that the oldest ones go.
    pub(super) bytes_max: usize,
    /// Which figures.
    pub(super) keeps: fn(&str) -> bool,
}

/// The figures of a node at one distance in time.
#[derive(Debug)]
pub(super) struct Tier {
    limits: TierLimits,
    /// The number of the oldest sample. Samples are numbered from 0.
    first: u64,
    /// When samples were taken, in seconds since 1970, the oldest first.
    times: VecDeque<u64>,
    series: BTreeMap<SeriesName, PackedValues>,
}

impl Tier {
    pub(super) fn new(limits: TierLimits) -> Self {
        Self { limits, first: 0, times: VecDeque::new(), series: BTreeMap::new() }
    }

    /// Takes in what the figures are at a moment, if it is time for a sample. Histograms are left
    /// to `/metrics`.
    pub(super) fn take(&mut self, seconds: u64, metrics: &[Metric]) {
        // A clock that was set back would have figures in no order.
        self.drop_newer_than(seconds);
        let last = self.times.back();
        if last.is_some_and(|last| seconds - last < self.limits.interval_seconds) {
            return;
        }
        let sample = self.first + count(self.times.len());
        self.times.push_back(seconds);
        let is_kept = |metric: &&Metric| {
            metric.kind != MetricKind::Histogram && (self.limits.keeps)(&metric.name)
        };
        for metric in metrics.iter().filter(is_kept) {
            let labels = metric.labels.iter().map(|(label, value)| (*label, value.to_string()));
            let name = SeriesName { name: metric.name.to_string(), labels: labels.collect() };
            if self.series.len() < self.limits.series_max || self.series.contains_key(&name) {
                let is_whole = !is_fraction(&name.name);
                let values = self.series.entry(name).or_insert_with(|| PackedValues::new(is_whole));
                values.push(sample, metric.value);
            }
        }
        let samples = count(self.times.len()).saturating_sub(count(self.limits.samples_max));
        self.drop_oldest(samples);
        // A whole chunk each time: its bytes are given back only with its last value.
        while self.bytes() > self.limits.bytes_max && count(self.times.len()) > CHUNK_VALUES_MAX {
            self.drop_oldest(CHUNK_VALUES_MAX);
        }
    }

    fn drop_newer_than(&mut self, seconds: u64) {
        if self.times.back().is_none_or(|last| *last <= seconds) {
            return;
        }
        let kept = self.times.partition_point(|taken| *taken <= seconds);
        self.times.truncate(kept);
        let end = self.first + count(kept);
        self.series.retain(|_, values| {
            values.drop_from(end);
            !values.is_empty()
        });
    }

    fn drop_oldest(&mut self, samples: u64) {
        if samples == 0 {
            return;
        }
        for _ in 0..samples {
            self.times.pop_front();
        }
        self.first += samples;
        let first = self.first;
        self.series.retain(|_, values| {
            values.drop_before(first);
            !values.is_empty()
        });
    }

    /// Bytes of all values.
    fn bytes(&self) -> usize {
        self.series.values().map(PackedValues::bytes).sum()
    }

    /// The same, and those that say when they were taken and what they are called.
    pub(super) fn held_bytes(&self) -> usize {
        let names: usize = self.series.keys().map(SeriesName::bytes).sum();
        self.bytes() + names + self.times.capacity() * size_of::<u64>()
    }

    /// Figures that it keeps.
    pub(super) fn series_count(&self) -> usize {
        self.series.len()
    }

    /// When the first and the last sample that are kept were taken, in seconds since 1970.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        self.times.front().copied().zip(self.times.back().copied())
    }

    /// The figures that `is_wanted` names, from a moment on.
    pub(super) fn find(
        &self,
        from_seconds: u64,
        is_wanted: impl Fn(&SeriesName) -> bool,
    ) -> impl Iterator<Item = Series> {
        let before = self.times.partition_point(|seconds| *seconds < from_seconds);
        let from = self.first + count(before);
        let found = self.series.iter().filter(move |(name, _)| is_wanted(name));
        found.map(move |(name, values)| Series {
            name: name.clone(),
            interval_seconds: self.limits.interval_seconds,
            points: values.since(from).filter_map(|(at, value)| self.point(at, value)).collect(),
        })
    }

    /// Whether it has any of them.
    pub(super) fn has(&self, is_wanted: impl Fn(&SeriesName) -> bool) -> bool {
        self.series.keys().any(is_wanted)
    }

    fn point(&self, sample: u64, value: f64) -> Option<Point> {
        let place = usize::try_from(sample.checked_sub(self.first)?).ok()?;
        Some(Point { seconds: *self.times.get(place)?, value })
    }
}

/// Figures whose names end so are no whole numbers.
fn is_fraction(name: &str) -> bool {
    ["_seconds", "_ratio", "_rate", "_utilization"].iter().any(|ending| name.ends_with(ending))
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TierLimits = TierLimits {
        interval_seconds: 10,
        samples_max: 300,
        series_max: 3,
        bytes_max: usize::MAX,
        keeps: |name| name != "kv_other",
    };

    fn found(tier: &Tier, from_seconds: u64) -> Vec<Series> {
        tier.find(from_seconds, |_| true).collect()
    }

    fn items(value: f64, bucket: &'static str) -> Metric {
        Metric::gauge("kv_curr_items", "Live documents", value).with_label("bucket", bucket)
    }

    fn times(tier: &Tier) -> Vec<u64> {
        found(tier, 0)[0].points.iter().map(|point| point.seconds).collect()
    }

    #[test]
    fn samples_have_their_distance_and_what_is_not_wanted_is_not_kept() {
        let mut tier = Tier::new(LIMITS);
        let histogram = Metric { kind: MetricKind::Histogram, ..items(1.0, "b") };
        let metrics = [items(1.0, "b"), Metric::gauge("kv_other", "What", 1.0), histogram];
        for seconds in [100, 100, 109, 110, 125, 134, 135] {
            tier.take(seconds, &metrics);
        }
        assert_eq!(times(&tier), [100, 110, 125, 135]);
        assert_eq!(tier.series_count(), 1);
        let later = found(&tier, 111);
        assert_eq!(later[0].points[0], Point { seconds: 125, value: 1.0 });
    }

    #[test]
    fn the_oldest_samples_go_and_with_them_figures_that_are_no_more() {
        let mut tier = Tier::new(LIMITS);
        tier.take(1_000, &[items(1.0, "gone")]);
        for sample in 1..500 {
            tier.take(1_000 + sample * 10, &[items(2.0, "b")]);
        }
        assert_eq!(tier.span(), Some((1_000 + 200 * 10, 1_000 + 499 * 10)));
        let found = found(&tier, 0);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].points.len(), LIMITS.samples_max);
        let mut tier = Tier::new(TierLimits { bytes_max: 500, ..LIMITS });
        for sample in 0..400 {
            tier.take(sample * 10, &[items(2.0, "b")]);
            assert!(tier.bytes() <= 500 || sample < CHUNK_VALUES_MAX, "{}", tier.bytes());
        }
    }

    #[test]
    fn a_clock_that_is_set_back_costs_what_was_taken_since() {
        let mut tier = Tier::new(LIMITS);
        for seconds in (100..=300).step_by(10) {
            tier.take(seconds, &[items(1.0, "b")]);
        }
        tier.take(310, &[items(1.0, "b"), items(1.0, "new")]);
        tier.take(308, &[items(2.0, "b")]);
        assert_eq!((tier.span(), tier.series_count()), (Some((100, 300)), 1), "it is not time");
        tier.take(310, &[items(3.0, "b")]);
        let expected: Vec<u64> = (100..=310).step_by(10).collect();
        assert_eq!(times(&tier), expected);
        let last = found(&tier, 310);
        assert_eq!(last[0].points, [Point { seconds: 310, value: 3.0 }]);
        tier.take(200, &[items(4.0, "b")]);
        assert_eq!(tier.span(), Some((100, 200)));
    }

    #[test]
    fn a_clock_that_is_set_back_far_begins_anew_and_figures_have_a_limit() {
        let mut tier = Tier::new(LIMITS);
        tier.take(100, &["a", "b", "c", "d"].map(|bucket| items(1.0, bucket)));
        assert_eq!(tier.series_count(), 3);
        tier.take(50, &[items(1.0, "a")]);
        assert_eq!((tier.span(), tier.series_count()), (Some((50, 50)), 1));
    }
}
