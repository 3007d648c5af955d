//! How much a producer may send before it hears that it was taken. Source:
//! docs/specification/protocol.md, section 20.10.

use std::time::Duration;

use platform::Instant;

/// The part of the buffer at which what was taken is acknowledged: a fifth.
const ACK_DIVISOR: u32 = 5;
/// What was taken is acknowledged after this time, however little it is.
const ACK_TIME_MAX: Duration = Duration::from_secs(5);
/// How often a consumer without room looks whether there is some.
const ROOM_PAUSE: Duration = Duration::from_millis(50);

/// What was taken and not acknowledged yet.
pub(super) struct FlowControl {
    buffer_bytes: u32,
    taken_bytes: u32,
    last_ack: Instant,
    /// The memory was full when it was looked at.
    is_withheld: bool,
}

impl FlowControl {
    pub(super) fn new(buffer_bytes: u32, now: Instant) -> Self {
        Self { buffer_bytes, taken_bytes: 0, last_ack: now, is_withheld: false }
    }

    /// So much was taken.
    pub(super) fn take(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.taken_bytes = self.taken_bytes.saturating_add(bytes);
    }

    /// How much is to be acknowledged now; `has_room` says whether there is memory for more.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        has_room: impl FnOnce() -> bool,
    ) -> Option<u32> {
        let is_much = self.taken_bytes > self.buffer_bytes / ACK_DIVISOR;
        let is_late = self.taken_bytes > 0 && now >= self.last_ack.after(ACK_TIME_MAX);
        if !is_much && !is_late {
            return None;
        }
        self.is_withheld = !has_room();
        if self.is_withheld {
            return None;
        }
        assert!(self.taken_bytes > 0, "something is acknowledged");
        self.last_ack = now;
        Some(std::mem::take(&mut self.taken_bytes))
    }

    /// When to look again.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.is_withheld {
            return Some(now.after(ROOM_PAUSE));
        }
        (self.taken_bytes > 0).then(|| self.last_ack.after(ACK_TIME_MAX))
    }

    /// Bytes that were taken and not acknowledged.
    pub(super) fn taken_bytes(&self) -> u32 {
        self.taken_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000_000)
    }

    #[test]
    fn a_fifth_is_acknowledged_at_once_and_less_after_five_seconds() {
        let mut flow = FlowControl::new(1000, second(1));
        assert_eq!(flow.deadline(second(1)), None, "nothing was taken");
        flow.take(200);
        assert_eq!(flow.acknowledge(second(1), || true), None);
        flow.take(1);
        assert_eq!(flow.acknowledge(second(1), || true), Some(201));
        flow.take(7);
        assert_eq!(flow.acknowledge(second(5), || true), None);
        assert_eq!(flow.deadline(second(5)), Some(second(6)));
        assert_eq!(flow.acknowledge(second(6), || true), Some(7));
        assert_eq!(flow.acknowledge(second(60), || true), None);
    }

    #[test]
    fn without_memory_nothing_is_acknowledged_and_it_is_not_lost() {
        let mut flow = FlowControl::new(1000, second(1));
        flow.take(900);
        assert_eq!(flow.acknowledge(second(2), || false), None);
        assert!(flow.deadline(second(2)) < Some(second(3)));
        flow.take(100);
        assert_eq!(flow.acknowledge(second(3), || true), Some(1000));
        assert_eq!(flow.deadline(second(3)), None);
    }
}
