//! Figures of the time that has gone by, for who asks for more than those of this moment: all of
//! them for minutes, those that dashboards show for a month, at greater distances.

mod dashboard;
mod packed_values;
mod tier;

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::Clock;
use tokio::time::MissedTickBehavior;

pub(crate) use self::dashboard::is_on_dashboards;
use self::tier::{Tier, TierLimits};
use crate::metric::Metric;
use crate::node_view::NodeView;

/// Between two looks at the figures.
const INTERVAL: Duration = Duration::from_secs(1);
/// Figures that are kept of every second: those of forty buckets.
const SERIES_MAX: usize = 8192;
/// Bytes of the values of a tier that reaches far back: when there are many buckets the oldest
/// values go earlier.
const LONG_BYTES_MAX: usize = 16 << 20;

/// Ten minutes of seconds.
const SECONDS: TierLimits = TierLimits {
    interval_seconds: 1,
    samples_max: 600,
    series_max: SERIES_MAX,
    bytes_max: LONG_BYTES_MAX,
    keeps: |_| true,
};
/// A day of every tenth second.
const DAY: TierLimits =
    TierLimits { interval_seconds: 10, samples_max: 24 * 360, keeps: is_on_dashboards, ..SECONDS };
/// A month of minutes.
const MONTH: TierLimits =
    TierLimits { interval_seconds: INTERVAL_SECONDS_MAX, samples_max: 30 * 24 * 60, ..DAY };

/// Between two samples of those that reach back furthest.
pub(crate) const INTERVAL_SECONDS_MAX: u64 = 60;
/// How far they reach.
pub(crate) const MONTH_SECONDS: u64 = 30 * 24 * 3600;

/// The figures of a node. Kept in memory alone.
#[derive(Debug)]
pub(crate) struct StatsHistory {
    /// The one with the smallest distances first.
    tiers: Mutex<[Tier; 3]>,
}

/// What a figure is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeriesName {
    /// As `/metrics` has it.
    pub(crate) name: String,
    /// Names and values.
    pub(crate) labels: Vec<(&'static str, String)>,
}

impl SeriesName {
    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        let labels: usize = self.labels.iter().map(|(_, value)| value.capacity()).sum();
        let places = self.labels.capacity() * size_of::<(&str, String)>();
        size_of::<Self>() + self.name.capacity() + places + labels
    }
}

/// A figure at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Since 1970.
    pub(crate) seconds: u64,
    pub(crate) value: f64,
}

/// A figure over time, the oldest point first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: SeriesName,
    /// Between two points, where none is missing.
    pub(crate) interval_seconds: u64,
    pub(crate) points: Vec<Point>,
}

impl Default for StatsHistory {
    fn default() -> Self {
        Self { tiers: Mutex::new([SECONDS, DAY, MONTH].map(Tier::new)) }
    }
}

impl StatsHistory {
    /// Takes samples until it is dropped.
    pub(crate) async fn follow(&self, node: &dyn NodeView) {
        let mut ticks = tokio::time::interval(INTERVAL);
        // Behind a pause there is nothing to be sampled that was missed.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.take(Clock::real().wall_time().seconds().into(), &node.figures());
        }
    }

    /// Takes in what the figures are at a moment.
    fn take(&self, seconds: u64, metrics: &[Metric]) {
        self.lock().iter_mut().for_each(|tier| tier.take(seconds, metrics));
    }

    /// When the first and the last sample that are kept were taken, in seconds since 1970.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        let tiers = self.lock();
        let spans = || tiers.iter().filter_map(Tier::span);
        spans().map(|(first, _)| first).min().zip(spans().map(|(_, last)| last).max())
    }

    /// The figures of that name, with or without the ending of a counter, that have these labels:
    /// from a moment on, at the smallest distances that reach as far back, and otherwise as far
    /// back as there are any.
    pub(crate) fn find(
        &self,
        name: &str,
        labels: &[(&str, &str)],
        from_seconds: u64,
    ) -> Vec<Series> {
        let is_wanted = |known: &SeriesName| {
            known.name.strip_suffix("_total").unwrap_or(&known.name)
                == name.strip_suffix("_total").unwrap_or(name)
                && labels.iter().all(|(label, value)| {
                    known.labels.iter().any(|(name, is)| name == label && is == value)
                })
        };
        let mut found = Vec::new();
        let Ok(()) = self.visit(is_wanted, from_seconds, |series| {
            found.push(series);
            Ok::<(), Infallible>(())
        });
        found
    }

    /// Has `visit` look at the figures that `is_wanted` says, at the same distances: at one after
    /// another, as all together may be much more memory than the history itself.
    ///
    /// # Errors
    /// The first of `visit`, which sees no more then.
    pub(crate) fn visit<E>(
        &self,
        is_wanted: impl Fn(&SeriesName) -> bool,
        from_seconds: u64,
        visit: impl FnMut(Series) -> Result<(), E>,
    ) -> Result<(), E> {
        let tiers = self.lock();
        let mut best: Option<(u64, &Tier)> = None;
        for (tier, (first, _)) in tiers.iter().filter_map(|tier| Some((tier, tier.span()?))) {
            if best.is_some_and(|(best, _)| first >= best) {
                continue;
            }
            if tier.has(&is_wanted) {
                best = Some((first, tier));
            }
            if best.is_some_and(|(best, _)| best <= from_seconds) {
                break;
            }
        }
        let Some((_, tier)) = best else { return Ok(()) };
        tier.find(from_seconds, &is_wanted).try_for_each(visit)
    }

    /// How full it is.
    pub(crate) fn metrics(&self) -> [Metric; 3] {
        let count = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
        let tiers = self.lock();
        let series_count = tiers.first().map_or(0, Tier::series_count);
        let bytes = tiers.iter().map(Tier::held_bytes).sum();
        [
            Metric::gauge(
                "cm_stats_series",
                "Figures that are kept for /pools/default/stats/range",
                count(series_count),
            ),
            Metric::gauge(
                "cm_stats_series_max",
                "Figures that are kept at most",
                count(SERIES_MAX),
            ),
            Metric::gauge("cm_stats_bytes", "Memory of the figures that are kept", count(bytes)),
        ]
    }

    /// Held for a sample or a look-up.
    fn lock(&self) -> MutexGuard<'_, [Tier; 3]> {
        self.tiers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use platform::counting_allocator::CountingAllocator;

    use super::*;

    fn items(value: f64, bucket: &'static str) -> Metric {
        Metric::gauge("kv_curr_items", "Live documents", value).with_label("bucket", bucket)
    }

    #[test]
    fn a_figure_is_found_by_its_name_and_any_of_its_labels() {
        let history = StatsHistory::default();
        let ops = Metric::counter("settee_groups_total", "Groups", 9.0).with_label("op", "get");
        history.take(5, &[items(1.0, "a"), items(2.0, "b"), ops]);
        let count = |name, labels: &[(&str, &str)]| history.find(name, labels, 0).len();
        assert_eq!(count("kv_curr_items", &[]), 2);
        assert_eq!(count("kv_curr_items", &[("bucket", "b")]), 1);
        assert_eq!(count("kv_curr_items", &[("bucket", "c")]), 0);
        assert_eq!(count("kv_curr_items", &[("op", "get")]), 0);
        let groups = [count("settee_groups", &[]), count("settee_groups_total", &[("op", "get")])];
        assert_eq!(groups, [1, 1]);
        assert_eq!(history.metrics()[0].value, 3.0);
    }

    #[test]
    fn what_is_asked_for_comes_at_the_smallest_distances_that_reach_back_to_it() {
        let history = StatsHistory::default();
        let other = Metric::gauge("kv_other", "Not on dashboards", 1.0);
        let metrics = [items(1.0, "a"), other];
        let (begin, end) = (1_000_000, 1_000_000 + 2 * 24 * 3600);
        (begin..=end).for_each(|seconds| history.take(seconds, &metrics));
        for (ago, distance, first) in [
            (60, 1, end - 60),
            (599, 1, end - 599),
            (3600, 10, end - 3600),
            (24 * 3600 - 10, 10, end - 24 * 3600 + 10),
            (40 * 3600, 60, end - 40 * 3600),
            (99 * 3600, 60, begin),
        ] {
            let found = history.find("kv_curr_items", &[], end - ago);
            let points = &found[0].points;
            assert_eq!(found[0].interval_seconds, distance, "{ago}");
            assert!((first..first + distance).contains(&points[0].seconds), "{ago}");
            assert_eq!(points[1].seconds - points[0].seconds, distance, "{ago}");
            assert!(points.last().unwrap().seconds + distance > end, "{ago}");
        }
        assert_eq!(history.find("kv_other", &[], 0)[0].interval_seconds, 1, "all that there is");
        assert_eq!(history.span(), Some((begin, end)));
    }

    /// What a bucket has about sixty of, which rise at different speeds.
    fn taken_in(history: &StatsHistory, seconds: u64, figures: u64) {
        let metric = |figure: u64| {
            let metric = Metric::counter("kv_ops", "Operations", value(seconds, figure));
            metric.with_label("bucket", "travel").with_label("op", figure.to_string())
        };
        history.take(seconds, &(0..figures).map(metric).collect::<Vec<Metric>>());
    }

    fn value(seconds: u64, figure: u64) -> f64 {
        (seconds * 37 * figure) as f64
    }

    #[test]
    fn a_full_history_holds_what_it_says_that_it_does() {
        const FIGURES: u64 = 6;
        let before = CountingAllocator::taken_by_this_thread();
        let history = StatsHistory::default();
        // Full as after a month: minutes, then tens of seconds of a day, then seconds.
        let (day, minutes) = (MONTH_SECONDS - 24 * 3600, MONTH_SECONDS - 600);
        for seconds in (0..MONTH_SECONDS).filter(|seconds| {
            let is_new = *seconds >= minutes || (*seconds >= day && seconds % 10 == 0);
            is_new || seconds % 60 == 0
        }) {
            taken_in(&history, seconds, FIGURES);
        }
        let held = (CountingAllocator::taken_by_this_thread() - before) as f64;
        let [series, _, said] = history.metrics().map(|metric| metric.value);
        assert_eq!(series, FIGURES as f64);
        let found = history.find("kv_ops", &[("op", "3")], 0);
        assert_eq!(found[0].points.len(), usize::try_from(MONTH_SECONDS / 60).unwrap());
        assert_eq!(found[0].points[5], Point { seconds: 300, value: value(300, 3) });
        println!("{FIGURES} figures: {held} bytes held, {said} said");
        // The allocator rounds what it is asked for.
        assert!((0.95..1.15).contains(&(held / said)), "{held} held, {said} said");
        let a_bucket = said / FIGURES as f64 * 60.0;
        assert!((6e6..19e6).contains(&a_bucket), "{a_bucket}");
    }
}
