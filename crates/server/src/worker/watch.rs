//! What a worker looks after once a second.

use std::io;
use std::time::Duration;

use platform::Instant;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two log lines about doors.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Connections with deadlines, and doors behind which clients wait that cannot be let in.
#[derive(Debug, Default)]
pub(super) struct Watch {
    due: Due,
    looked: Instant,
    /// When it was last told that nobody can be let in.
    told: Option<Instant>,
}

/// What is to be looked at.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Connections by token and time of their acceptance: a token is used again.
    pub(super) watched: Vec<(usize, Instant)>,
    /// Whether doors are to be tried again.
    pub(super) is_door_stuck: bool,
}

impl Watch {
    /// Looks after a connection.
    pub(super) fn add(&mut self, token: usize, opened: Instant) {
        self.due.watched.push((token, opened));
    }

    /// Has the doors tried again, and tells the reason now and then.
    pub(super) fn note_stuck_door(&mut self, error: io::Error, now: Instant) {
        self.due.is_door_stuck = true;
        if self.told.is_none_or(|told| now.since(told) >= LOG_INTERVAL) {
            self.told = Some(now);
            tracing::warn!(%error, "connections cannot be accepted; trying again each second");
        }
    }

    /// How long the worker may sleep.
    pub(super) fn patience(&self) -> Option<Duration> {
        (self.due.is_door_stuck || !self.due.watched.is_empty()).then_some(INTERVAL)
    }

    /// What is to be looked at, once a second. What is to be looked after further is added again.
    pub(super) fn take_due(&mut self, now: impl FnOnce() -> Instant) -> Option<Due> {
        self.patience()?;
        let now = now();
        if now.since(self.looked) < INTERVAL {
            return None;
        }
        self.looked = now;
        Some(std::mem::take(&mut self.due))
    }
}
