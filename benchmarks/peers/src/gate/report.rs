//! The table for people and the file for programs.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::gate::comparison::Comparison;
use crate::gate::cost::CostCounter;
use crate::gate::verdict::StepResult;

/// The table's head.
pub fn head(counter: CostCounter) -> String {
    format!(
        "{:<36} {:>9} {:>9} {:>6} {:>12}  {:>19} {:>11} {:>11} {:>11}   ({})",
        "step",
        "before",
        "now",
        "ratio",
        "spread",
        "front end",
        "syscalls",
        "switches",
        "faults",
        counter.unit()
    )
}

/// A row of it. The front end has its ratio and spread, the last three columns before and now.
pub fn row(result: &StepResult, limit: f64) -> String {
    let cost = match &result.outcome {
        Ok(cost) => cost,
        Err(reason) => return format!("{:<36} skipped: {reason}", result.name),
    };
    let row = format!(
        "{:<36} {:>9.2} {:>9.2} {:>6.3} {:>12}  {:>6.3} {:>12} {:>11} {:>11} {:>11}",
        result.name,
        cost.cost.before(),
        cost.cost.now(),
        cost.cost.ratio(),
        spread(&cost.cost),
        cost.front_end.ratio(),
        spread(&cost.front_end),
        pair(&cost.syscalls),
        pair(&cost.context_switches),
        pair(&cost.minor_faults),
    );
    if result.is_dearer(limit) { row + "   dearer" } else { row }
}

fn spread(comparison: &Comparison) -> String {
    let (low, high) = comparison.spread();
    format!("{low:.3}-{high:.3}")
}

fn pair(comparison: &Comparison) -> String {
    if comparison.before.is_empty() || comparison.now.is_empty() {
        return "-".to_owned();
    }
    format!("{:.3} {:.3}", comparison.before(), comparison.now())
}

/// Writes everything that was found.
pub fn write(path: Option<&Path>, document: &Value) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    Ok(std::fs::write(path, format!("{document:#}\n"))?)
}

/// Results as JSON.
pub fn json(results: &[StepResult], limit: f64) -> Value {
    results.iter().map(|result| step_json(result, limit)).collect()
}

fn step_json(result: &StepResult, limit: f64) -> Value {
    let cost = match &result.outcome {
        Ok(cost) => cost,
        Err(reason) => return json!({ "step": result.name, "skipped": reason }),
    };
    json!({
        "step": result.name,
        "is_dearer": result.is_dearer(limit),
        "cost": comparison_json(&cost.cost),
        "front_end_us": comparison_json(&cost.front_end),
        "syscalls": comparison_json(&cost.syscalls),
        "context_switches": comparison_json(&cost.context_switches),
        "minor_faults": comparison_json(&cost.minor_faults),
    })
}

fn comparison_json(comparison: &Comparison) -> Value {
    if comparison.before.is_empty() || comparison.now.is_empty() {
        return Value::Null;
    }
    let (low, high) = comparison.spread();
    json!({
        "before": comparison.before(),
        "now": comparison.now(),
        "ratio": comparison.ratio(),
        "spread": [low, high],
        "turns_before": comparison.before,
        "turns_now": comparison.now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::verdict::StepCost;

    #[test]
    fn a_step_that_was_skipped_says_why() {
        let outcome = Err("the node does not answer".to_owned());
        let skipped = StepResult { name: "text get".to_owned(), outcome };
        assert!(row(&skipped, 1.05).ends_with("skipped: the node does not answer"));
        assert_eq!(step_json(&skipped, 1.05)["skipped"], "the node does not answer");
    }

    #[test]
    fn what_cannot_be_counted_is_a_dash_and_null() {
        let cost = Comparison { before: vec![2.0], now: vec![4.0] };
        let outcome = Ok(StepCost { cost, ..StepCost::default() });
        let measured = StepResult { name: "get".to_owned(), outcome };
        let row = row(&measured, 1.05);
        assert!(row.contains(" 2.000 ") && row.contains(" - "), "{row}");
        let json = step_json(&measured, 1.05);
        assert_eq!((&json["cost"]["ratio"], &json["syscalls"]), (&json!(2.0), &Value::Null));
    }
}
