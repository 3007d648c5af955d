//! When what has failed is tried again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::Instant;

/// Keeps tries of something that fails again and again apart: each failure doubles the pause.
#[derive(Debug)]
pub(crate) struct BackOff {
    /// How long the first try that follows a failure waits, at least.
    pause_min: Duration,
    /// What each failure doubles it to, at most.
    pause_max: Duration,
    /// The last pause, and its end.
    pause: Mutex<Option<(Duration, Instant)>>,
}

impl BackOff {
    /// Nothing has failed yet.
    pub(crate) fn new(pause_min: Duration, pause_max: Duration) -> Self {
        assert!(pause_min <= pause_max, "a pause grows");
        Self { pause_min, pause_max, pause: Mutex::default() }
    }

    /// Whether a try is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.left(now).is_zero()
    }

    /// How long it is until a try is due.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.lock().map_or(Duration::ZERO, |(_, end)| end.since(now))
    }

    /// Another try has failed. Gives the pause before the next.
    pub(crate) fn note_failure(&self, now: Instant) -> Duration {
        let mut pause = self.lock();
        let next = pause.map_or(self.pause_min, |(last, _)| (last * 2).min(self.pause_max));
        *pause = Some((next, now.after(next)));
        next
    }

    /// It has succeeded, or is about something else now.
    pub(crate) fn clear(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Duration, Instant)>> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour_until_it_succeeds() {
        let (pause_min, pause_max) = (Duration::from_secs(60), Duration::from_secs(60 * 60));
        let (back_off, mut now) = (BackOff::new(pause_min, pause_max), Instant::default());
        assert!(back_off.is_due(now));
        let minutes = (0..8).map(|_| {
            let pause = back_off.note_failure(now);
            assert!(!back_off.is_due(now) && back_off.is_due(now.after(pause)));
            now = now.after(pause);
            pause.as_secs() / 60
        });
        assert_eq!(minutes.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 60, 60]);
        back_off.clear();
        assert!(back_off.is_due(Instant::default()));
        assert_eq!(back_off.note_failure(now), pause_min);
    }
}
