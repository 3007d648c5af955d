//! The results of a phase, for people and for machines.

use std::collections::BTreeMap;
use std::time::Duration;

use document::HistogramSnapshot;
use serde_json::{Value, json};

use super::counters::Totals;
use crate::histogram_table::{HistogramTable, Unit};

/// A phase that has ended.
#[derive(Clone, Debug)]
pub(super) struct PhaseSummary {
    /// `population` or `mixed`.
    pub(super) name: &'static str,
    pub(super) elapsed: Duration,
    pub(super) totals: Totals,
}

impl PhaseSummary {
    /// Operations per second.
    pub(super) fn throughput(&self) -> f64 {
        self.totals.answered() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Throughput, errors and histograms: one of all operations, or one of each kind.
    pub(super) fn render(&self, is_detailed: bool, columns: usize) -> String {
        let Totals { gets, sets, errors, retries, losses, unanswered } = &self.totals;
        let mut text = format!(
            "{}: {} operations in {:.3} s, {:.0} operations/s\n",
            self.name,
            self.totals.answered(),
            self.elapsed.as_secs_f64(),
            self.throughput(),
        );
        push_counts(&mut text, "failed", errors);
        push_counts(&mut text, "repeated after a temporary failure", retries);
        push_counts(&mut text, "lost connections", losses);
        if *unanswered > 0 {
            text.push_str(&format!("  operations without an answer: {unanswered}\n"));
        }
        let all = self.totals.all();
        let shown: Vec<(&str, &HistogramSnapshot)> =
            if is_detailed { vec![("get", gets), ("set", sets)] } else { vec![("all", &all)] };
        for (name, snapshot) in shown.into_iter().filter(|(_, shown)| shown.count() > 0) {
            let table = HistogramTable::from_snapshot(Unit::Nanoseconds, snapshot);
            text.push_str(&format!("\n{}", table.render(name, columns)));
        }
        text
    }

    /// The same for machines.
    pub(super) fn to_json(&self) -> Value {
        let table = |snapshot: &HistogramSnapshot| {
            HistogramTable::from_snapshot(Unit::Nanoseconds, snapshot).to_json()
        };
        let Totals { gets, sets, errors, retries, losses, unanswered } = &self.totals;
        json!({
            "phase": self.name,
            "seconds": self.elapsed.as_secs_f64(),
            "operations": self.totals.answered(),
            "operations_per_second": self.throughput(),
            "errors": errors,
            "retries": retries,
            "lost_connections": losses,
            "unanswered": unanswered,
            "all": table(&self.totals.all()),
            "get": table(gets),
            "set": table(sets),
        })
    }
}

fn push_counts(text: &mut String, title: &str, counts: &BTreeMap<String, u64>) {
    if counts.is_empty() {
        return;
    }
    text.push_str(&format!("  {title}:\n"));
    for (name, count) in counts {
        text.push_str(&format!("    {name} {count}\n"));
    }
}
