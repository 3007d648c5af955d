//! Results: rows as people read them, lines of JSON for programs.

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
    /// The design.
    pub variant: &'static str,
    /// What was measured.
    pub metric: &'static str,
    /// In what.
    pub unit: &'static str,
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
            "unit": self.unit,
            "rounds": self.rounds,
        })
    }
}

/// Appends the figures to a file, one JSON document a line.
pub fn append(path: Option<&Path>, figures: &[Figure]) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let open = OpenOptions::new().create(true).append(true).open(path);
    let mut file = open.with_context(|| format!("{} cannot be written", path.display()))?;
    for figure in figures {
        writeln!(file, "{}", figure.json())?;
    }
    Ok(())
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

/// The median of the ratios of each round, which is what drift of the machine disturbs least.
pub fn median_ratio(ones: &[f64], others: &[f64]) -> f64 {
    let ratios: Vec<f64> = ones.iter().zip(others).map(|(one, other)| one / other).collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median_ratio(&[2.0, 9.0, 8.0], &[1.0, 3.0, 2.0]), 3.0);
    }
}
