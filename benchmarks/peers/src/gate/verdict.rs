//! What a step cost on both sides, and whether it became dearer, in words.

use crate::gate::comparison::{Comparison, Whose};
use crate::gate::cost::{CostCounter, TurnCost};

/// A step and what was found of it.
#[derive(Clone, Debug)]
pub struct StepResult {
    /// Its name.
    pub name: String,
    /// What was measured, or why nothing was.
    pub outcome: Result<StepCost, String>,
}

/// Counters of one request, of both sides.
#[derive(Clone, Debug, Default)]
pub struct StepCost {
    /// In units of the counter that decides.
    pub cost: Comparison,
    /// Microseconds of CPU time of the threads that serve connections. It scatters less than the
    /// whole for writes, whose flushes come when they come.
    pub front_end: Comparison,
    /// Minor page faults.
    pub minor_faults: Comparison,
    /// Context switches.
    pub context_switches: Comparison,
    /// System calls; empty where they cannot be counted.
    pub syscalls: Comparison,
}

impl StepCost {
    /// Adds a turn.
    pub fn add(&mut self, whose: Whose, turn: TurnCost) {
        self.cost.push(whose, turn.cost);
        self.front_end.push(whose, turn.front_end);
        self.minor_faults.push(whose, turn.minor_faults);
        self.context_switches.push(whose, turn.context_switches);
    }

    /// Adds what was counted in a turn of its own.
    pub fn add_syscalls(&mut self, whose: Whose, count: f64) {
        self.syscalls.push(whose, count);
    }

    /// Whether it became dearer. Faults and switches are part of the cost and scatter too much to
    /// decide by themselves.
    pub fn is_dearer(&self, limit: f64) -> bool {
        [&self.cost, &self.front_end, &self.syscalls].iter().any(|part| part.is_dearer(limit))
    }
}

impl StepResult {
    /// Whether it was measured and became dearer.
    pub fn is_dearer(&self, limit: f64) -> bool {
        self.outcome.as_ref().is_ok_and(|cost| cost.is_dearer(limit))
    }

    /// What became dearer of a step of which something did.
    pub fn words(&self, counter: CostCounter, limit: f64) -> String {
        let Ok(cost) = &self.outcome else { return format!("{} was not measured", self.name) };
        let parts = [
            (&cost.cost, counter.unit()),
            (&cost.front_end, "us of CPU time in the front end"),
            (&cost.syscalls, "system calls"),
        ];
        let dearer = parts.iter().filter(|(part, _)| part.is_dearer(limit));
        let words: Vec<String> = dearer.map(|(part, unit)| sentence(part, unit)).collect();
        format!("{}: a request takes {}", self.name, words.join(", and "))
    }
}

fn sentence(comparison: &Comparison, unit: &str) -> String {
    let (low, high) = comparison.spread();
    let (before, now) = (comparison.before(), comparison.now());
    let ratio = comparison.ratio();
    format!("{now:.2} {unit} instead of {before:.2}, {ratio:.3} times ({low:.3} to {high:.3})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(costs: [f64; 2], syscalls: [f64; 2]) -> StepResult {
        let mut of = StepCost::default();
        for (index, whose) in [Whose::Before, Whose::Now].into_iter().enumerate() {
            for _ in 0..9 {
                let cost = costs[index];
                let (minor_faults, context_switches) = (0.0, 1.0);
                of.add(whose, TurnCost { cost, front_end: 1.0, minor_faults, context_switches });
                of.add_syscalls(whose, syscalls[index]);
            }
        }
        StepResult { name: "couchbase get".to_owned(), outcome: Ok(of) }
    }

    #[test]
    fn the_words_name_the_step_and_what_became_dearer() {
        let dearer = result([10.0, 12.0], [2.0, 2.0]);
        assert!(dearer.is_dearer(1.05));
        assert_eq!(
            dearer.words(CostCounter::CpuTime, 1.05),
            "couchbase get: a request takes 12.00 us of CPU time instead of 10.00, \
             1.200 times (1.200 to 1.200)"
        );
        let more_calls = result([10.0, 10.0], [2.0, 3.0]);
        assert!(more_calls.is_dearer(1.05));
        let words = more_calls.words(CostCounter::CpuTime, 1.05);
        assert!(words.contains("3.00 system calls") && !words.contains("CPU"), "{words}");
    }

    #[test]
    fn what_stayed_or_was_skipped_is_not_dearer() {
        assert!(!result([10.0, 10.4], [2.0, 2.0]).is_dearer(1.05));
        let skipped = StepResult { name: "text get".to_owned(), outcome: Err("?".to_owned()) };
        assert!(!skipped.is_dearer(1.05));
    }
}
