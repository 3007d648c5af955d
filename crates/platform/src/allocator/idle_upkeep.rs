//! What a thread does for its memory while it has nothing to do.

use std::time::Duration;

use super::{release_unused, take_in_freed};

/// Events after which a thread has allocated so much that looking is worth its while.
const EVENTS_MIN: usize = 256;
/// How long a thread sleeps between two looks.
const PAUSE: Duration = Duration::from_millis(250);
/// Looks after the last events: 15 s, longer than files need to follow the journal, which frees
/// what was written.
const LOOKS: u32 = 60;

/// Lets a thread that waits for events wake up now and then after it was busy, to
/// [take in](take_in_freed) what others free of its memory, while nobody waits for it. At last it
/// [gives back](release_unused) what is free, and sleeps undisturbed afterwards.
#[derive(Debug, Default)]
pub struct IdleUpkeep {
    event_count: usize,
    looks_left: u32,
}

impl IdleUpkeep {
    /// How long to wait for events at most, given how long the thread would.
    pub fn limit(&self, patience: Option<Duration>) -> Option<Duration> {
        if self.looks_left == 0 {
            return patience;
        }
        Some(patience.map_or(PAUSE, |patience| patience.min(PAUSE)))
    }

    /// Hears how many events a wait has brought; without any it looks after memory.
    pub fn after_wait(&mut self, event_count: usize) {
        if event_count > 0 {
            self.event_count += event_count;
            if self.event_count >= EVENTS_MIN {
                (self.event_count, self.looks_left) = (0, LOOKS);
            }
        } else if self.looks_left > 0 {
            self.looks_left -= 1;
            if self.looks_left == 0 {
                release_unused();
            } else {
                take_in_freed();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_busy_looks_for_fifteen_seconds_and_then_sleeps() {
        let mut upkeep = IdleUpkeep::default();
        upkeep.after_wait(EVENTS_MIN - 1);
        assert_eq!(upkeep.limit(None), None, "it was hardly busy");
        upkeep.after_wait(1);
        assert_eq!(upkeep.limit(Some(Duration::ZERO)), Some(Duration::ZERO));
        let mut slept = Duration::ZERO;
        while let Some(wait) = upkeep.limit(None) {
            slept += wait;
            upkeep.after_wait(0);
        }
        assert_eq!(slept, Duration::from_secs(15));
        let deadline = Some(Duration::from_secs(60));
        assert_eq!(upkeep.limit(deadline), deadline);
    }

    #[test]
    fn few_events_now_and_then_add_up() {
        let mut upkeep = IdleUpkeep::default();
        for _ in 0..EVENTS_MIN {
            assert_eq!(upkeep.limit(None), None);
            upkeep.after_wait(1);
            upkeep.after_wait(0);
        }
        assert!(upkeep.limit(None).is_some());
    }
}
