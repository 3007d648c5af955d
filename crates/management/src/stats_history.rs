//! Figures of the last minutes, for who asks for more than those of this moment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::Clock;

use crate::metric::{Metric, MetricKind};
use crate::node_view::NodeView;

/// Between two samples.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);
/// Samples that are kept: ten minutes, and the one that they begin with.
const SAMPLES_MAX: usize = 61;
/// Figures that are kept: those of thirty buckets. A sample of one takes 16 bytes.
const SERIES_MAX: usize = 4096;

/// The figures of a node. Kept in memory alone.
#[derive(Debug, Default)]
pub(crate) struct StatsHistory {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// When samples were taken, in seconds since 1970, the oldest first.
    times: VecDeque<u64>,
    series: BTreeMap<SeriesName, VecDeque<Point>>,
}

/// What a figure is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeriesName {
    /// As `/metrics` has it.
    pub(crate) name: String,
    /// Names and values.
    pub(crate) labels: Vec<(&'static str, String)>,
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
    pub(crate) points: Vec<Point>,
}

impl StatsHistory {
    /// Takes samples until it is dropped.
    pub(crate) async fn follow(&self, node: &dyn NodeView) {
        loop {
            self.take(Clock::real().wall_time().seconds().into(), &node.metrics());
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Takes in what the figures are at a moment. Histograms are left to `/metrics`.
    fn take(&self, seconds: u64, metrics: &[Metric]) {
        let mut table = self.lock();
        // A clock that was set back would have figures in no order.
        if table.times.back().is_some_and(|last| *last >= seconds) {
            *table = Table::default();
        }
        table.times.push_back(seconds);
        if table.times.len() > SAMPLES_MAX {
            table.times.pop_front();
        }
        let oldest = table.times.front().copied().unwrap_or(seconds);
        for metric in metrics.iter().filter(|metric| metric.kind != MetricKind::Histogram) {
            let labels = metric.labels.iter().map(|(label, value)| (*label, value.to_string()));
            let name = SeriesName { name: metric.name.to_string(), labels: labels.collect() };
            if table.series.len() < SERIES_MAX || table.series.contains_key(&name) {
                let points = table.series.entry(name).or_default();
                points.push_back(Point { seconds, value: metric.value });
            }
        }
        table.series.retain(|_, points| {
            while points.front().is_some_and(|point| point.seconds < oldest) {
                points.pop_front();
            }
            !points.is_empty()
        });
    }

    /// When samples were taken, in seconds since 1970, the oldest first.
    pub(crate) fn times(&self) -> Vec<u64> {
        self.lock().times.iter().copied().collect()
    }

    /// The figures of that name, with or without the ending of a counter, that have these labels.
    pub(crate) fn find(&self, name: &str, labels: &[(&str, &str)]) -> Vec<Series> {
        let table = self.lock();
        let is_wanted = |known: &SeriesName| {
            known.name.strip_suffix("_total").unwrap_or(&known.name)
                == name.strip_suffix("_total").unwrap_or(name)
                && labels.iter().all(|(label, value)| {
                    known.labels.iter().any(|(name, is)| name == label && is == value)
                })
        };
        let found = table.series.iter().filter(|(name, _)| is_wanted(name));
        found
            .map(|(name, points)| Series {
                name: name.clone(),
                points: points.iter().copied().collect(),
            })
            .collect()
    }

    /// How full it is.
    pub(crate) fn metrics(&self) -> [Metric; 2] {
        let count = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
        [
            Metric::gauge(
                "cm_stats_series",
                "Figures that are kept for /pools/default/stats/range",
                count(self.lock().series.len()),
            ),
            Metric::gauge(
                "cm_stats_series_max",
                "Figures that are kept at most",
                count(SERIES_MAX),
            ),
        ]
    }

    /// Held for a sample or a look-up.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(value: f64, bucket: &'static str) -> Metric {
        Metric::gauge("kv_curr_items", "Live documents", value).with_label("bucket", bucket)
    }

    #[test]
    fn ten_minutes_are_kept_and_what_is_gone_goes() {
        let history = StatsHistory::default();
        history.take(5, &[items(1.0, "gone"), Metric::counter("kv_ops_total", "Operations", 1.0)]);
        for sample in 1..100 {
            history.take(5 + sample * 10, &[items(2.0, "b")]);
        }
        let found = history.find("kv_curr_items", &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].name.labels, [("bucket", "b".to_owned())]);
        assert_eq!(found[0].points.len(), SAMPLES_MAX);
        assert_eq!(history.times().first(), Some(&(5 + 39 * 10)));
        assert!(history.find("kv_ops", &[]).is_empty());
    }

    #[test]
    fn a_figure_is_found_by_its_name_and_any_of_its_labels() {
        let history = StatsHistory::default();
        let ops = Metric::counter("kv_ops_total", "Operations", 9.0).with_label("op", "get");
        history.take(5, &[items(1.0, "a"), items(2.0, "b"), ops]);
        let count = |name, labels: &[(&str, &str)]| history.find(name, labels).len();
        assert_eq!(count("kv_curr_items", &[]), 2);
        assert_eq!(count("kv_curr_items", &[("bucket", "b")]), 1);
        assert_eq!(count("kv_curr_items", &[("bucket", "c")]), 0);
        assert_eq!(count("kv_curr_items", &[("op", "get")]), 0);
        assert_eq!((count("kv_ops", &[]), count("kv_ops_total", &[("op", "get")])), (1, 1));
        assert_eq!(history.metrics()[0].value, 3.0);
    }

    #[test]
    fn no_more_figures_are_kept_than_may_be_and_a_clock_may_be_set_back() {
        let history = StatsHistory::default();
        let many: Vec<Metric> = (0..SERIES_MAX + 5)
            .map(|number| {
                let figure = Metric::gauge("kv_figure", "A figure", 1.0);
                figure.with_label("number", number.to_string())
            })
            .collect();
        history.take(100, &many);
        assert_eq!(history.find("kv_figure", &[]).len(), SERIES_MAX);
        history.take(50, &many[..3]);
        assert_eq!(history.times(), [50]);
        assert_eq!(history.find("kv_figure", &[]).len(), 3);
    }
}
