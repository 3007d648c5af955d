//! What a node tells of a bucket at one moment, and what has come since another.

use std::collections::BTreeMap;

use client::Connection;
use platform::{Clock, Instant};

use crate::histogram_table::{HistogramTable, Row, Unit};
use crate::stats::explain_group;
use crate::timings::parse_row;

/// Statistics at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) taken_at: Instant,
    numbers: BTreeMap<String, u64>,
    /// Counts of histograms, by name and bounds. Microseconds.
    rows: BTreeMap<(String, u64, u64), u64>,
}

impl Sample {
    /// Asks a node.
    pub(super) fn take(connection: &mut Connection, clock: &Clock) -> anyhow::Result<Self> {
        let mut ask =
            |group: &str| connection.statistics(group).map_err(|error| explain_group(error, group));
        let (general, timings) = (ask("")?, ask("timings")?);
        Ok(Self::parse(clock.now(), &general, &timings))
    }

    pub(super) fn parse(
        taken_at: Instant,
        general: &[(String, String)],
        timings: &[(String, String)],
    ) -> Self {
        let number =
            |(name, value): &(String, String)| Some((name.clone(), value.parse::<u64>().ok()?));
        let rows = timings.iter().filter_map(|(key, value)| {
            let (name, Row { low, high, count }) = parse_row(key, value)?;
            Some(((name.to_owned(), low, high), count))
        });
        Self {
            taken_at,
            numbers: general.iter().filter_map(number).collect(),
            rows: rows.collect(),
        }
    }

    /// A statistic; 0 where the node does not tell it.
    pub(super) fn get(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    /// What has come of a counter since `before`, in a second.
    pub(super) fn rate_since(&self, before: &Self, name: &str) -> f64 {
        let seconds = self.taken_at.since(before.taken_at).as_secs_f64();
        let more = self.get(name).saturating_sub(before.get(name));
        if seconds > 0.0 { more as f64 / seconds } else { 0.0 }
    }

    /// The durations that have come since `before`, in microseconds.
    pub(super) fn durations_since(&self, before: &Self, name: &str) -> HistogramTable {
        let own = self.rows.iter().filter(|((of, _, _), _)| of == name);
        let rows = own.map(|(bounds, count)| {
            let earlier = before.rows.get(bounds).copied().unwrap_or(0);
            Row { low: bounds.1, high: bounds.2, count: count.saturating_sub(earlier) }
        });
        HistogramTable::new(Unit::Microseconds, rows.collect(), 0)
    }
}
