//! The benchmarks, with the names and parameters of the original's.

pub mod idle;
pub mod long_lived;
pub mod one_shot;
pub mod tail;
pub mod timeout_add_cancel;

use serde_json::{Value, json};

use crate::baton::Waiting;

/// Benchmark threads, and NonIO threads of the pool where tasks run.
const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
const TASKS: [usize; 2] = [16, 64];
const TIMEOUTS: [usize; 3] = [1_000, 4_096, 30_000];

/// A benchmark that repeats an operation for a time on several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Schedule a new task for one run, wait for its run.
    OneShotScheduleRun,
    /// Wake a task that sleeps, wait for its run.
    LongLivedScheduleRun,
    /// Arm a timer again that does not fire.
    TimeoutAddCancel,
}

/// One setting of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is repeated.
    pub benchmark: Benchmark,
    /// How many threads do.
    pub threads: usize,
    /// How many tasks or timers all threads have together; 0 where each operation makes its own.
    pub items: usize,
    /// How a thread waits for its task; nobody waits for a timer.
    pub waiting: Option<Waiting>,
}

impl Benchmark {
    /// In the order of their output.
    pub const ALL: [Self; 3] =
        [Self::OneShotScheduleRun, Self::LongLivedScheduleRun, Self::TimeoutAddCancel];

    /// As the original names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneShotScheduleRun => "OneShotScheduleRun",
            Self::LongLivedScheduleRun => "LongLivedScheduleRun",
            Self::TimeoutAddCancel => "TimeoutAddCancel",
        }
    }

    /// What the original calls [`Cell::items`].
    fn items_name(self) -> Option<&'static str> {
        match self {
            Self::OneShotScheduleRun => None,
            Self::LongLivedScheduleRun => Some("Tasks"),
            Self::TimeoutAddCancel => Some("Timeouts"),
        }
    }

    /// All settings; few and small ones for a smoke test.
    pub fn cells(self, quick: bool) -> Vec<Cell> {
        let items: &[usize] = match self {
            Self::OneShotScheduleRun => &[0],
            Self::LongLivedScheduleRun => &TASKS,
            Self::TimeoutAddCancel => &TIMEOUTS,
        };
        let waitings: &[Option<Waiting>] = match self {
            Self::TimeoutAddCancel => &[None],
            _ => &Waiting::ALL.map(Some),
        };
        let (items, threads) =
            if quick { (&items[..1], &THREADS[1..2]) } else { (items, &THREADS[..]) };
        let mut cells = Vec::new();
        for &items in items {
            for &waiting in waitings {
                for &threads in threads {
                    cells.push(Cell { benchmark: self, threads, items, waiting });
                }
            }
        }
        cells
    }
}

impl Cell {
    /// The row's name as Google Benchmark would print it.
    pub fn label(&self, contender: &str) -> String {
        let mut label = format!("{}<{contender}>", self.benchmark.name());
        if let Some(name) = self.benchmark.items_name() {
            label.push_str(&format!("/{name}:{}", self.items));
        }
        if let Some(waiting) = self.waiting {
            label.push_str(&format!("/waiter:{}", waiting.name()));
        }
        label.push_str(&format!("/threads:{}", self.threads));
        label
    }

    /// The same for programs.
    pub fn params(&self) -> Value {
        let mut params = json!({ "threads": self.threads });
        if let Some(name) = self.benchmark.items_name() {
            params[name] = json!(self.items);
        }
        if let Some(waiting) = self.waiting {
            params["waiter"] = json!(waiting.name());
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_of_the_original_for_each_waiter() {
        let count = |benchmark: Benchmark| benchmark.cells(false).len();
        assert_eq!(count(Benchmark::OneShotScheduleRun), 3 * 5);
        assert_eq!(count(Benchmark::LongLivedScheduleRun), 2 * 3 * 5);
        assert_eq!(count(Benchmark::TimeoutAddCancel), 3 * 5);
    }

    #[test]
    fn a_smoke_test_has_a_cell_of_every_benchmark_and_waiter() {
        for benchmark in Benchmark::ALL {
            let cells = benchmark.cells(true);
            assert!((1..=3).contains(&cells.len()));
            assert!(cells.iter().all(|cell| benchmark.cells(false).contains(cell)));
        }
    }

    #[test]
    fn labels_say_all_parameters() {
        let last = |benchmark: Benchmark| benchmark.cells(false).pop().expect("there are cells");
        let label = last(Benchmark::LongLivedScheduleRun).label("cb3");
        assert_eq!(label, "LongLivedScheduleRun<cb3>/Tasks:64/waiter:spin+yield/threads:16");
        let label = last(Benchmark::TimeoutAddCancel).label("tokio");
        assert_eq!(label, "TimeoutAddCancel<tokio>/Timeouts:30000/threads:16");
        let params = last(Benchmark::OneShotScheduleRun).params();
        assert_eq!(params, json!({ "threads": 16, "waiter": "spin+yield" }));
    }
}
