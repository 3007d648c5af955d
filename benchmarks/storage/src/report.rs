//! Results: tables as people read them, lines of JSON for programs, goals met and missed.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// One figure with all its rounds.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The benchmark.
    pub bench: String,
    /// Who was measured.
    pub variant: String,
    /// What was measured, its unit last.
    pub metric: &'static str,
    /// Of each round.
    pub rounds: Vec<f64>,
}

impl Figure {
    /// The middle one of all rounds.
    pub fn value(&self) -> f64 {
        median(&self.rounds)
    }

    fn json(&self) -> Value {
        json!({
            "bench": self.bench,
            "variant": self.variant,
            "metric": self.metric,
            "value": self.value(),
            "rounds": self.rounds,
        })
    }
}

/// All figures of a run.
#[derive(Default)]
pub struct Report {
    figures: Vec<Figure>,
}

impl Report {
    /// Adds a round to a figure.
    pub fn add(&mut self, bench: &str, variant: &str, metric: &'static str, value: f64) {
        let same = |figure: &&mut Figure| {
            figure.bench == bench && figure.variant == variant && figure.metric == metric
        };
        match self.figures.iter_mut().find(same) {
            Some(figure) => figure.rounds.push(value),
            None => self.figures.push(Figure {
                bench: bench.to_owned(),
                variant: variant.to_owned(),
                metric,
                rounds: vec![value],
            }),
        }
    }

    /// All rounds of a figure.
    pub fn rounds(&self, bench: &str, variant: &str, metric: &str) -> &[f64] {
        let same = |figure: &&Figure| {
            figure.bench == bench && figure.variant == variant && figure.metric == metric
        };
        self.figures.iter().find(same).map_or(&[], |figure| &figure.rounds)
    }

    /// The middle round of a figure; `None` for one that was not measured.
    pub fn value(&self, bench: &str, variant: &str, metric: &str) -> Option<f64> {
        let rounds = self.rounds(bench, variant, metric);
        if rounds.is_empty() { None } else { Some(median(rounds)) }
    }

    /// The median of the ratios within each round, which drift of the machine disturbs least.
    pub fn ratio(&self, bench: &str, metric: &str, one: &str, other: &str) -> Option<f64> {
        let one = self.rounds(bench, one, metric);
        let other = self.rounds(bench, other, metric);
        let ratios: Vec<f64> = one.iter().zip(other).map(|(one, other)| one / other).collect();
        if ratios.is_empty() { None } else { Some(median(&ratios)) }
    }

    /// Prints a table: one row for each variant, one column for each metric.
    pub fn print_table(&self, title: &str, bench: &str, variants: &[&str], columns: &[Column]) {
        println!("\n{title}\n");
        let headings: Vec<&str> = columns.iter().map(|column| column.heading).collect();
        println!("| | {} |", headings.join(" | "));
        println!("|---|{}", "---|".repeat(columns.len()));
        for variant in variants {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| {
                    let value = self.value(bench, variant, column.metric);
                    value.map_or("-".to_owned(), |value| rounded(value / column.divisor))
                })
                .collect();
            println!("| {variant} | {} |", cells.join(" | "));
        }
    }

    /// Appends the figures to a file, one JSON document a line.
    pub fn append(&self, path: Option<&Path>) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let open = OpenOptions::new().create(true).append(true).open(path);
        let mut file = open.with_context(|| format!("{} cannot be written", path.display()))?;
        for figure in &self.figures {
            writeln!(file, "{}", figure.json())?;
        }
        Ok(())
    }
}

/// A column of a table.
pub struct Column {
    /// Above it.
    pub heading: &'static str,
    /// What stands in it.
    pub metric: &'static str,
    /// In how many of the metric's unit.
    pub divisor: f64,
}

impl Column {
    /// A column in the unit of its metric.
    pub const fn new(heading: &'static str, metric: &'static str) -> Self {
        Self { heading, metric, divisor: 1.0 }
    }

    /// A column in a larger unit.
    pub const fn scaled(heading: &'static str, metric: &'static str, divisor: f64) -> Self {
        Self { heading, metric, divisor }
    }
}

/// Prints a goal, what was reached, and whether that is enough.
pub fn print_goal(goal: &str, reached: Option<f64>, is_met: impl FnOnce(f64) -> bool) {
    match reached {
        None => println!("goal: {goal}: not measured"),
        Some(value) => {
            let verdict = if is_met(value) { "met" } else { "missed" };
            println!("goal: {goal}: {}, {verdict}", rounded(value));
        }
    }
}

/// Three significant digits, or all that stand before the point.
pub fn rounded(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.995 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The middle value; of an even number the mean of the two in the middle; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (count, middle) if count % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (_, middle) => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_medians_and_ratios_are_taken_within_rounds() {
        let mut report = Report::default();
        for (one, other) in [(2.0, 1.0), (30.0, 10.0), (4.0, 4.0)] {
            report.add("bench", "one", "metric_us", one);
            report.add("bench", "other", "metric_us", other);
        }
        assert_eq!(report.value("bench", "one", "metric_us"), Some(4.0));
        assert_eq!(report.ratio("bench", "metric_us", "one", "other"), Some(2.0));
        assert_eq!(report.value("bench", "nobody", "metric_us"), None);
        assert_eq!(report.ratio("bench", "metric_us", "one", "nobody"), None);
    }

    #[test]
    fn figures_are_appended_as_lines_of_json() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("figures");
        let mut report = Report::default();
        report.add("bench", "one", "metric_us", 1.5);
        report.append(Some(&path)).expect("room for it");
        report.append(Some(&path)).expect("room for it");
        let text = std::fs::read_to_string(&path).expect("it was written");
        for line in text.lines() {
            let figure: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(figure["value"], 1.5);
        }
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn numbers_keep_three_digits() {
        let rows = [(0.0, "0.00"), (0.1234, "0.123"), (1.234, "1.23"), (99.96, "100")];
        for (value, expected) in rows {
            assert_eq!(rounded(value), expected);
        }
    }
}
