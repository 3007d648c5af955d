//! Results: rows as Google Benchmark prints them, lines of JSON for programs.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::benchmarks::Cell;
use crate::harness::Measured;

/// One figure with all its repetitions.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The benchmark.
    pub bench: &'static str,
    /// The pool.
    pub variant: &'static str,
    /// Under which circumstances.
    pub params: Value,
    /// What was measured.
    pub metric: &'static str,
    /// In what.
    pub unit: &'static str,
    /// Of each round.
    pub rounds: Vec<f64>,
    /// The share of the machine that other processes used meanwhile.
    pub foreign_load: f64,
}

impl Figure {
    /// The middle one of all rounds.
    pub fn value(&self) -> f64 {
        median(&self.rounds)
    }

    fn json(&self) -> Value {
        let (min, max) = extremes(&self.rounds);
        json!({
            "bench": self.bench,
            "variant": self.variant,
            "params": self.params,
            "metric": self.metric,
            "value": self.value(),
            "min": min,
            "max": max,
            "unit": self.unit,
            "rounds": self.rounds,
            "foreign_load": self.foreign_load,
        })
    }
}

/// Appends the figures to a file, one JSON document a line.
pub fn append(path: Option<&Path>, figures: &[Figure]) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    for figure in figures {
        writeln!(file, "{}", figure.json())?;
    }
    Ok(())
}

/// All rounds of one pool in one cell.
#[derive(Clone, Debug)]
pub struct Row {
    /// The pool.
    pub contender: &'static str,
    /// Of each round.
    pub rounds: Vec<Measured>,
}

/// The heading of rows.
pub fn heading() -> String {
    let line = "-".repeat(190);
    let columns = format!(
        "{:<72} {:>13} {:>13} {:>12} UserCounters...",
        "Benchmark", "Time", "CPU", "Iterations"
    );
    format!("{line}\n{columns}\n{line}")
}

impl Row {
    /// The row as people read it: medians, extremes of the time, and the median of the ratios to
    /// `base` in the same round: above 1 this pool is slower.
    pub fn text(&self, cell: &Cell, base: Option<&Self>) -> String {
        let times = self.each(Measured::nanos_per_operation);
        let (min, max) = extremes(&times);
        let iterations: Vec<f64> =
            self.rounds.iter().map(|measured| measured.operations as f64).collect();
        let ratio = base.map_or(String::new(), |base| {
            let base_times = base.each(Measured::nanos_per_operation);
            format!(" time/{}={:.2}", base.contender, ratio(&times, &base_times))
        });
        format!(
            "{:<72} {:>10} ns {:>10} ns {:>12.0} items_per_second={}/s switches={:.3} min={} \
             max={}{ratio}",
            cell.label(self.contender),
            short(median(&times)),
            short(median(&self.each(Measured::cpu_nanos_per_operation))),
            median(&iterations),
            thousands(1e9 / median(&times)),
            median(&self.each(Measured::switches_per_operation)),
            short(min),
            short(max),
        )
    }

    /// The row as programs read it.
    pub fn figures(&self, cell: &Cell, foreign_load: f64) -> Vec<Figure> {
        let figure = |metric, unit, of: fn(&Measured) -> f64| Figure {
            bench: cell.benchmark.name(),
            variant: self.contender,
            params: cell.params(),
            metric,
            unit,
            rounds: self.each(of),
            foreign_load,
        };
        vec![
            figure("time_per_operation", "ns", Measured::nanos_per_operation),
            figure("cpu_per_operation", "ns", Measured::cpu_nanos_per_operation),
            figure("switches_per_operation", "switches", Measured::switches_per_operation),
            figure("items_per_second", "1/s", |measured| 1e9 / measured.nanos_per_operation()),
        ]
    }

    fn each(&self, of: fn(&Measured) -> f64) -> Vec<f64> {
        self.rounds.iter().map(of).collect()
    }
}

/// Three digits for what is small, whole numbers for what is large.
pub fn short(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// As Google Benchmark prints rates.
fn thousands(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.4}M", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.3}k", rate / 1e3),
        rate => format!("{rate:.3}"),
    }
}

/// The middle value; of an even number the mean of the two in the middle; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (count, middle) if count % 2 == 0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        (_, middle) => sorted[middle],
    }
}

/// The smallest and the largest value; 0 of none.
pub fn extremes(values: &[f64]) -> (f64, f64) {
    let min = values.iter().copied().reduce(f64::min);
    let max = values.iter().copied().reduce(f64::max);
    (min.unwrap_or(0.0), max.unwrap_or(0.0))
}

/// The median of the ratios of each round, which is what drift of the machine disturbs least.
fn ratio(theirs: &[f64], base: &[f64]) -> f64 {
    let ratios: Vec<f64> = theirs.iter().zip(base).map(|(theirs, base)| theirs / base).collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::benchmarks::Benchmark;

    fn row(contender: &'static str, nanos: [u64; 3]) -> Row {
        let measured = |nanos| Measured {
            operations: 1_000,
            wall: Duration::from_nanos(nanos * 1_000),
            cpu: Duration::from_micros(2_000),
            voluntary_switches: 100,
        };
        Row { contender, rounds: nanos.map(measured).to_vec() }
    }

    fn cell() -> Cell {
        Benchmark::OneShotScheduleRun.cells(false)[0]
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(extremes(&[3.0, 1.0, 2.0]), (1.0, 3.0));
    }

    #[test]
    fn a_row_reads_as_google_benchmark_prints_it() {
        let base = row("settee", [500, 400, 600]);
        let text = row("cb3", [5_000, 4_000, 12_000]).text(&cell(), Some(&base));
        let words: Vec<&str> = text.split_whitespace().collect();
        let expected = "OneShotScheduleRun<cb3>/waiter:yield/threads:1 5000 ns 2000 ns 1000 \
                        items_per_second=200.000k/s switches=0.100 min=4000 max=12000 \
                        time/settee=10.00";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn figures_are_appended_as_lines_of_json() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("figures");
        let figures = row("settee", [500, 400, 600]).figures(&cell(), 0.03);
        append(Some(&path), &figures).expect("writable");
        append(Some(&path), &figures[..1]).expect("writable");
        let text = std::fs::read_to_string(&path).expect("readable");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), figures.len() + 1);
        assert_eq!(lines[0]["variant"], "settee");
        assert_eq!(lines[0]["metric"], "time_per_operation");
        assert_eq!(lines[0]["value"], 500.0);
        assert_eq!(lines[0]["min"], 400.0);
        assert_eq!(lines[0]["foreign_load"], 0.03);
        assert_eq!(lines[0]["params"]["threads"], 1);
    }

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        for (value, text) in [(6.666, "6.67"), (66.66, "66.7"), (666.6, "667"), (6666.6, "6667")] {
            assert_eq!(short(value), text);
        }
        assert_eq!(thousands(1_234_567.0), "1.2346M");
        assert_eq!(thousands(12.0), "12.000");
    }
}
