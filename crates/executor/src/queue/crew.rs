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
    /// When a thread last ran out of tasks, of those that said so under the lock.
    last_dry: Instant,
    /// How long it was of late from when a thread ran out of tasks until the next one came, whoever
    /// took it, nanoseconds. A thread that the others leave nothing to do for says nothing of that,
    /// nor do the tasks of a burst after its first one.
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
            last_dry: Instant(0),
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

    /// A thread has found no task since `idle_since`.
    pub(super) fn note_dry(&mut self, idle_since: Instant) {
        self.last_dry = self.last_dry.max(idle_since);
    }

    /// A task that was pushed at `queued` is taken by a thread that has been waiting for one since
    /// `idle_since`, or has not waited. The gap is a moving average over about four of them.
    pub(super) fn note_arrival(&mut self, queued: Instant, idle_since: Option<Instant>) {
        let dry = idle_since.map_or(self.last_dry, |since| since.max(self.last_dry));
        if dry > self.last_arrival {
            let gap = queued.since(dry).as_nanos();
            let gap_ns = u64::try_from(gap).unwrap_or(u64::MAX).min(GAP_MAX_NS);
            self.gap_ns = self.gap_ns - self.gap_ns / 4 + gap_ns / 4;
        }
        self.last_arrival = self.last_arrival.max(queued);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// What the crew is told, nanoseconds.
    #[derive(Clone, Copy)]
    enum Told {
        /// A thread found nothing, having run out of tasks then.
        Dry(u64),
        /// A task that was pushed then is taken, by a thread that has waited since a time.
        Taken(u64, Option<u64>),
    }
    use Told::{Dry, Taken};

    #[test]
    fn a_search_follows_how_quickly_tasks_come_to_those_who_ran_out_of_them() {
        // What happens again and again, from when on and how often, and whether to search then.
        type Scene = fn(u64) -> Vec<Told>;
        let cases: [(&str, u64, Scene, bool); 7] = [
            ("soon after the last run", 9 * US, |at| vec![Taken(at, Some(at - US))], true),
            ("long after the last run", 9 * MS, |at| vec![Taken(at, Some(at - 8 * MS))], false),
            ("before the last run ends", US, |at| vec![Taken(at, None)], false),
            (
                "for one thread all the time, seldom for another one",
                25 * US,
                |at| {
                    let often = (0..24).map(|n| Taken(at + n * US, Some(at + n * US - 300)));
                    often.chain([Taken(at + 24 * US, Some(at - at.min(5 * MS)))]).collect()
                },
                true,
            ),
            (
                "in turns for two threads",
                2 * US,
                |at| vec![Taken(at, Some(at - 2 * US + 300)), Dry(at + 300)],
                true,
            ),
            (
                "four at once for four threads, seldom",
                10 * MS,
                |at| {
                    let taken = (0..4).map(|n| Taken(at + n * 200, Some(at - 9 * MS + n)));
                    taken.chain((0..4).map(|n| Dry(at + MS + n))).collect()
                },
                false,
            ),
            (
                "four at once for four threads, often",
                30 * US,
                |at| {
                    let taken = (0..4).map(|n| Taken(at + n * 200, Some(at - 10 * US + n)));
                    taken.chain((0..4).map(|n| Dry(at + 20 * US + n))).collect()
                },
                true,
            ),
        ];
        for (name, period_ns, scene, expects) in cases {
            let mut crew = Crew::default();
            for number in 1..=1_000 {
                for told in scene(number * period_ns) {
                    match told {
                        Dry(since) => crew.note_dry(Instant(since)),
                        Taken(queued, since) => {
                            crew.note_arrival(Instant(queued), since.map(Instant));
                        }
                    }
                }
            }
            assert_eq!(crew.expects_task(), expects, "{name}");
        }
    }

    #[test]
    fn a_long_rest_is_forgotten_after_some_tasks() {
        let mut crew = Crew::default();
        for number in 1..=40 {
            let queued = 60_000 * MS + number * US;
            crew.note_arrival(Instant(queued), Some(Instant(queued - 500)));
        }
        assert!(crew.expects_task());
    }
}
