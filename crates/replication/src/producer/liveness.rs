//! Whether anybody is still there. Source: docs/specification/protocol.md, section 20.13.

use std::time::Duration;

use platform::Instant;

/// The time between two NOOPs unless the consumer says otherwise.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(20);
/// A consumer that is silent for so long has gone.
const IDLE_TIMEOUT: Duration = Duration::from_secs(360);
/// Opaques of NOOPs follow this one.
const OPAQUE_BEFORE: u32 = 10_000_000;

/// The producer's NOOPs.
#[derive(Debug)]
pub(super) struct Liveness {
    is_enabled: bool,
    interval: Duration,
    last_sent: Instant,
    last_received: Instant,
    opaque: u32,
    /// Sent, and not answered yet.
    is_pending: bool,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing.
    Nothing,
    /// A NOOP with this opaque.
    Noop(u32),
    /// Giving up.
    GiveUp,
}

impl Liveness {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            is_enabled: false,
            interval: INTERVAL_DEFAULT,
            last_sent: now,
            last_received: now,
            opaque: OPAQUE_BEFORE,
            is_pending: false,
        }
    }

    pub(super) fn enable(&mut self, is_enabled: bool) {
        self.is_enabled = is_enabled;
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    pub(super) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// Something has come.
    pub(super) fn received(&mut self, now: Instant) {
        self.last_received = now;
    }

    /// An answer has come; whether it is that to a NOOP.
    pub(super) fn answered(&mut self, opaque: u32) -> bool {
        let is_noop = self.is_pending && opaque == self.opaque;
        self.is_pending &= !is_noop;
        is_noop
    }

    /// What is to be done now.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        if !self.is_enabled {
            return Due::Nothing;
        }
        if now.since(self.last_received) >= IDLE_TIMEOUT {
            return Due::GiveUp;
        }
        // One at a time: whether a consumer has gone is said by the time since it was last heard.
        if self.is_pending || now.since(self.last_sent) < self.interval {
            return Due::Nothing;
        }
        self.opaque = self.opaque.wrapping_add(1);
        self.is_pending = true;
        self.last_sent = now;
        Due::Noop(self.opaque)
    }

    /// When to look again; none while NOOPs are off.
    pub(super) fn next_look(&self) -> Option<Duration> {
        self.is_enabled.then_some(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_noop_at_a_time_and_an_end_of_patience() {
        let at = |seconds: u64| Instant::default().after(Duration::from_secs(seconds));
        let mut liveness = Liveness::new(at(0));
        assert_eq!(liveness.due(at(1_000)), Due::Nothing, "nobody asked for it");
        liveness.enable(true);
        liveness.received(at(1_000));
        liveness.set_interval(Duration::from_secs(5));
        assert_eq!(liveness.due(at(1_001)), Due::Noop(10_000_001));
        assert_eq!(liveness.due(at(1_010)), Due::Nothing, "it is not answered");
        assert!(!liveness.answered(10_000_000));
        assert!(liveness.answered(10_000_001));
        assert!(!liveness.answered(10_000_001));
        assert_eq!(liveness.due(at(1_005)), Due::Nothing, "too early");
        assert_eq!(liveness.due(at(1_006)), Due::Noop(10_000_002));
        assert_eq!(liveness.due(at(1_359)), Due::Nothing);
        assert_eq!(liveness.due(at(1_360)), Due::GiveUp);
    }
}
