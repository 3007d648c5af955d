//! Lines of the log that say again what is still so.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use platform::Instant;

/// Says when the next line of a kind is due, whoever writes it: at once, and then once in an
/// interval.
#[derive(Debug)]
pub(crate) struct LogPace {
    interval: Duration,
    next: Mutex<Instant>,
}

impl LogPace {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, next: Mutex::default() }
    }

    /// Whether the caller is to write a line.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = *next <= now;
        if is_due {
            *next = now.after(self.interval);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_at_once_and_then_once_in_an_interval() {
        let pace = LogPace::new(Duration::from_secs(5));
        let due_at: Vec<u64> = (0..16)
            .filter(|second| pace.is_due(Instant::default().after(Duration::from_secs(*second))))
            .collect();
        assert_eq!(due_at, [0, 5, 10, 15]);
    }
}
