//! One statistic: what it is, what it is called where, and how it is read.

const MICROSECONDS: &str = "microseconds";
const MILLISECONDS: &str = "milliseconds";
const PERCENT: &str = "percent";

/// A number that `S` has. STAT and Prometheus read the tables of them, and docs/metrics.md is made
/// from those.
#[derive(Clone, Copy, Debug)]
pub struct Statistic<S: 'static> {
    /// What the number is.
    pub kind: StatisticKind,
    /// What it counts, where that is a unit.
    pub unit: &'static str,
    help: &'static str,
    /// Its names in STAT, and the groups that show it under each.
    pub shown: &'static [(&'static str, &'static [&'static str])],
    /// What Prometheus reads it as.
    pub metric: Option<MetricName>,
    /// The number now.
    pub read: fn(&S) -> u64,
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatisticKind {
    /// Only rises, from 0 at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// What Prometheus reads a statistic as.
#[derive(Clone, Copy, Debug)]
pub struct MetricName {
    /// The name: the original's where it has the same, and otherwise one that begins with `settee_`
    /// and keeps Prometheus' rules.
    pub name: &'static str,
    /// Labels that tell it from others of that name.
    pub labels: &'static [(&'static str, &'static str)],
    /// What all of that name have in common, where it has labels.
    family_help: Option<&'static str>,
}

impl MetricName {
    /// A name that is of one statistic alone.
    pub(crate) const fn of(name: &'static str) -> Self {
        Self { name, labels: &[], family_help: None }
    }

    /// A name that several statistics share.
    pub(crate) const fn one_of(
        name: &'static str,
        family_help: &'static str,
        labels: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { name, labels, family_help: Some(family_help) }
    }
}

impl<S> Statistic<S> {
    pub(crate) const fn new(kind: StatisticKind, help: &'static str, read: fn(&S) -> u64) -> Self {
        Self { kind, unit: "", help, shown: &[], metric: None, read }
    }

    /// A number that goes up and down.
    pub(crate) const fn gauge(help: &'static str, read: fn(&S) -> u64) -> Self {
        Self::new(StatisticKind::Gauge, help, read)
    }

    /// A number that only rises.
    pub(crate) const fn counter(help: &'static str, read: fn(&S) -> u64) -> Self {
        Self::new(StatisticKind::Counter, help, read)
    }

    /// The same, in bytes.
    pub(crate) const fn bytes(self) -> Self {
        Self { unit: "bytes", ..self }
    }

    /// The same, in microseconds.
    pub(crate) const fn microseconds(self) -> Self {
        Self { unit: MICROSECONDS, ..self }
    }

    /// The same, in milliseconds.
    pub(crate) const fn milliseconds(self) -> Self {
        Self { unit: MILLISECONDS, ..self }
    }

    /// The same, as a part of a hundred.
    pub(crate) const fn percent(self) -> Self {
        Self { unit: PERCENT, ..self }
    }

    /// The unit in which Prometheus reads it: times are in seconds, parts are of one.
    pub fn metric_unit(&self) -> &'static str {
        match self.unit {
            MICROSECONDS | MILLISECONDS => "seconds",
            PERCENT => "ratio",
            unit => unit,
        }
    }

    /// How many of its own units one of those is.
    pub fn units_per_metric_unit(&self) -> f64 {
        match self.unit {
            MICROSECONDS => 1e6,
            MILLISECONDS => 1e3,
            PERCENT => 100.0,
            _ => 1.0,
        }
    }

    /// The same, shown under these names by these groups.
    pub(crate) const fn stat(
        self,
        shown: &'static [(&'static str, &'static [&'static str])],
    ) -> Self {
        Self { shown, ..self }
    }

    /// The same, read by Prometheus.
    pub(crate) const fn metric(self, name: &'static str) -> Self {
        self.read_as(MetricName::of(name))
    }

    /// The same, read by Prometheus under a name with more to it.
    pub(crate) const fn read_as(self, metric: MetricName) -> Self {
        Self { metric: Some(metric), ..self }
    }

    /// What it is, for people: a phrase without a full stop.
    pub fn help(&self) -> &'static str {
        self.help.trim().trim_end_matches('.')
    }

    /// What Prometheus is told about it.
    pub fn metric_help(&self) -> &'static str {
        self.metric.and_then(|metric| metric.family_help).unwrap_or_else(|| self.help())
    }

    /// Its names in a group of STAT.
    pub(crate) fn names_in(&self, group: &'static str) -> impl Iterator<Item = &'static str> {
        self.shown.iter().filter(move |(_, groups)| groups.contains(&group)).map(|(name, _)| *name)
    }
}

/// What a collection holds, as a statistic.
pub(crate) fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
