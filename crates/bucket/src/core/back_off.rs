//! When what has failed is tried again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::Instant;

/// How long the first try that follows a failure waits, at least.
const PAUSE_MIN: Duration = Duration::from_secs(60);

/// What each failure doubles it to, at most.
const PAUSE_MAX: Duration = Duration::from_secs(60 * 60);

/// Keeps tries of something that fails again and again apart: each failure doubles the pause.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    /// The last pause, and its end.
    pause: Mutex<Option<(Duration, Instant)>>,
}

impl BackOff {
    /// Whether a try is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.lock().is_none_or(|(_, end)| end <= now)
    }

    /// Another try has failed. Gives the pause before the next.
    pub(crate) fn note_failure(&self, now: Instant) -> Duration {
        let mut pause = self.lock();
        let next = pause.map_or(PAUSE_MIN, |(last, _)| (last * 2).min(PAUSE_MAX));
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
        let (back_off, mut now) = (BackOff::default(), Instant::default());
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
        assert_eq!(back_off.note_failure(now), PAUSE_MIN);
    }
}
