//! Results: medians for people, lines of JSON for programs.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

/// One figure with all its repetitions.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The benchmark.
    pub bench: &'static str,
    /// Who was measured.
    pub variant: String,
    /// Under which circumstances.
    pub params: Value,
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
            "params": self.params,
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
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
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
        (count, middle) if count % 2 == 0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        (_, middle) => sorted[middle],
    }
}

/// The median of the ratios of each round, which is what drift of the machine disturbs least.
pub fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
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
        assert_eq!(ratio(&[2.0, 30.0, 4.0], &[1.0, 10.0, 2.0]), 2.0);
    }
}
