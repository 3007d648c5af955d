//! What a thread does for its memory after it was busy.

use std::time::Duration;

use crate::sync::atomic::{AtomicU32, Ordering};

/// Runs after which a thread has allocated so much that looking is worth its while.
const RUNS_MIN: u32 = 256;

/// How long a thread sleeps before each look, in seconds: 15 in all, longer than the files of a
/// bucket need to follow its journal. What a thread has allocated, others free while it sleeps.
const PAUSES_S: [u64; 4] = [1, 2, 4, 8];

/// Which looks are to come. Only the thread itself changes it.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// Runs since the looks began anew.
    runs: AtomicU32,
    /// Looks that are done, at most as many as there are pauses.
    looks: AtomicU32,
}

impl Upkeep {
    pub(super) fn new() -> Self {
        Self { runs: AtomicU32::new(0), looks: AtomicU32::new(PAUSES_S.len() as u32) }
    }

    /// The thread has run a task. After so many of them all looks are to come, and after one that
    /// has said that others are going to free what it has allocated.
    pub(super) fn note_run(&self) {
        let runs = self.runs.load(Ordering::Relaxed) + 1;
        self.runs.store(runs % RUNS_MIN, Ordering::Relaxed);
        if runs == RUNS_MIN || platform::allocator::take_awaited_frees() {
            self.looks.store(0, Ordering::Relaxed);
        }
    }

    /// How long the thread should sleep before the next look; `None` if there is none to come.
    pub(super) fn pause(&self) -> Option<Duration> {
        let looks = self.looks.load(Ordering::Relaxed) as usize;
        PAUSES_S.get(looks).map(|seconds| Duration::from_secs(*seconds))
    }

    /// The thread has slept that long: gives back to the system what it has of free memory.
    pub(super) fn look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        platform::allocator::release_unused();
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;

    /// Looks until there is none to come; the seconds in between.
    fn look_on(upkeep: &Upkeep) -> Vec<u64> {
        std::iter::from_fn(|| {
            let pause = upkeep.pause()?;
            upkeep.look();
            Some(pause.as_secs())
        })
        .collect()
    }

    #[test]
    fn looks_begin_anew_after_many_runs() {
        let upkeep = Upkeep::new();
        let none: [u64; 0] = [];
        for _ in 0..2 {
            (1..RUNS_MIN).for_each(|_| upkeep.note_run());
            assert_eq!(look_on(&upkeep), none, "it was hardly busy");
            upkeep.note_run();
            assert_eq!(look_on(&upkeep), PAUSES_S);
            assert_eq!(look_on(&upkeep), none);
        }
        (0..RUNS_MIN).for_each(|_| upkeep.note_run());
        upkeep.look();
        upkeep.note_run();
        assert_eq!(look_on(&upkeep), PAUSES_S[1..], "a few runs change nothing");
    }

    #[test]
    fn looks_begin_anew_after_a_run_that_awaits_frees() {
        let upkeep = Upkeep::new();
        platform::allocator::await_frees();
        upkeep.note_run();
        assert_eq!(look_on(&upkeep), PAUSES_S);
    }
}
