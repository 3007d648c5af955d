//! The threads of one class that have no task, and what their tasks were like of late.

use std::sync::Arc;

use platform::Instant;

use crate::threads::patience::{search_ns, wake_cost_ns};
use crate::threads::worker::Worker;

/// Threads of one class that may search at a time. With one only, a thread that has just run dry
/// would have to sleep whenever another one searches, and every push would have to call somebody.
const SEARCHING_MAX: u32 = 2;
/// Gaps between tasks are counted as at most this long, nanoseconds: a long rest is forgotten
/// after a few tasks.
const GAP_MAX_NS: u64 = 1_000_000;

/// The threads of one class that have no task.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(super) searching: u32,
    /// Called, and not here yet.
    pub(super) in_transit: u32,
    /// The last to fall asleep is the first to be called: its caches are the warmest.
    pub(super) sleeping: Vec<Arc<Worker>>,
    /// Threads with a task that is over before a sleeping thread would be awake, probably.
    pub(super) running_short: u32,
    /// When the latest of the tasks that were taken was pushed.
    last_arrival: Instant,
    /// How long a thread waited for a task of late, nanoseconds, but at most since the task before
    /// it came: a thread that the others leave nothing to do for waits long, however quickly tasks
    /// come.
    gap_ns: u64,
    /// How long a run took of late, nanoseconds.
    pub(super) run_ns: u64,
}

/// What a thread without a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Running,
    Searching,
    InTransit,
}

impl Default for Crew {
    fn default() -> Self {
        Self {
            searching: 0,
            in_transit: 0,
            sleeping: Vec::new(),
            running_short: 0,
            last_arrival: Instant(0),
            gap_ns: GAP_MAX_NS,
            run_ns: 0,
        }
    }
}

impl Crew {
    /// Whether a thread without a task is about to look for one.
    pub(super) fn is_looking(&self) -> bool {
        self.searching + self.in_transit > 0
    }

    /// Takes a sleeping thread, which is in transit then; the caller must call it.
    pub(super) fn call(&mut self) -> Option<Arc<Worker>> {
        let worker = self.sleeping.pop()?;
        self.in_transit += 1;
        Some(worker)
    }

    pub(super) fn call_all(&mut self) -> Vec<Arc<Worker>> {
        std::iter::from_fn(|| self.call()).collect()
    }

    /// Counts out a thread that stops being `role`.
    pub(super) fn leave(&mut self, role: Role) {
        match role {
            Role::Running => {}
            Role::Searching => self.searching -= 1,
            Role::InTransit => self.in_transit -= 1,
        }
    }

    /// `worker` takes a task whose runs have taken `run_ns` of late.
    pub(super) fn begin_run(&mut self, worker: &Worker, run_ns: u64) {
        let is_short = run_ns < wake_cost_ns();
        worker.set_runs_short(is_short);
        self.running_short += u32::from(is_short);
        if is_short {
            self.run_ns = self.run_ns - self.run_ns / 8 + run_ns / 8;
        }
    }

    /// `worker` is back from its task, if it had one.
    pub(super) fn finish_run(&mut self, worker: &Worker) {
        self.running_short -= u32::from(worker.take_runs_short());
    }

    /// Whether a search is likely to find something.
    pub(super) fn expects_task(&self) -> bool {
        self.gap_ns <= search_ns()
    }

    pub(super) fn may_search(&self) -> bool {
        self.searching < SEARCHING_MAX && self.expects_task()
    }

    /// A task that was pushed at `queued` is taken by a thread that has been waiting for one since
    /// `idle_since`, or has not waited. The gap is a moving average over about four tasks.
    pub(super) fn note_arrival(&mut self, queued: Instant, idle_since: Option<Instant>) {
        if let Some(idle_since) = idle_since {
            let gap = queued.since(idle_since.max(self.last_arrival)).as_nanos();
            let gap_ns = u64::try_from(gap).unwrap_or(u64::MAX).min(GAP_MAX_NS);
            self.gap_ns = self.gap_ns - self.gap_ns / 4 + gap_ns / 4;
        }
        self.last_arrival = self.last_arrival.max(queued);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    /// A task: when it was pushed, and since when the thread that took it had waited, nanoseconds.
    type Arrival = (u64, Option<u64>);

    #[test]
    fn a_search_follows_how_quickly_tasks_come_not_how_long_threads_wait() {
        let every = |gap_ns: u64, waits: fn(u64) -> Option<u64>| -> Vec<Arrival> {
            let tasks = (1..=1_000).map(|number| number * gap_ns);
            tasks.map(|queued| (queued, waits(queued))).collect()
        };
        let bursts = (1..=1_000).flat_map(|burst: u64| {
            let begin = burst * 10_000_000;
            (0..4).map(move |place| (begin + place, (place == 0).then_some(begin - 9_000_000)))
        });
        let cases: [(&str, Vec<Arrival>, bool); 6] = [
            ("a microsecond after the last one ended", every(9_000, |at| Some(at - 1_000)), true),
            (
                "every microsecond, taken by a thread that had nothing to do",
                every(1_000, |_| Some(0)),
                true,
            ),
            (
                "a second after the last one ended",
                every(1 << 30, |at| Some(at - 1_000_000_000)),
                false,
            ),
            (
                "after a second, taken by a thread that had nothing to do",
                every(1 << 30, |_| Some(0)),
                false,
            ),
            ("never waited for", every(1_000, |_| None), false),
            ("four at a time, every ten milliseconds", bursts.collect(), false),
        ];
        for (name, arrivals, expects) in cases {
            let mut crew = Crew::default();
            for (queued, idle_since) in arrivals {
                crew.note_arrival(Instant(queued), idle_since.map(Instant));
            }
            assert_eq!(crew.expects_task(), expects, "{name}");
        }
    }

    #[test]
    fn a_long_rest_is_forgotten_after_some_tasks() {
        let mut crew = Crew::default();
        for number in 1..=40 {
            let queued = 60_000_000_000 + number * 1_000;
            crew.note_arrival(Instant(queued), Some(Instant(queued - 500)));
        }
        assert!(crew.expects_task());
    }
}
