//! How much may be under way to a consumer. Source: docs/specification/protocol.md, section 20.10.

/// The producer's side of flow control.
#[derive(Debug, Default)]
pub(super) struct FlowControl {
    /// What the consumer can hold; none if it does not say.
    buffer_bytes: Option<u64>,
    outstanding_bytes: u64,
    acked_bytes: u64,
}

impl FlowControl {
    /// The consumer has a buffer of this size; 0 for one without end.
    pub(super) fn set_buffer(&mut self, bytes: u32) {
        self.buffer_bytes = (bytes > 0).then_some(u64::from(bytes));
        if self.buffer_bytes.is_none() {
            self.outstanding_bytes = 0;
        }
    }

    /// Whether another message may be sent. It may be larger than what is left.
    pub(super) fn has_room(&self) -> bool {
        self.buffer_bytes.is_none_or(|bytes| self.outstanding_bytes < bytes)
    }

    /// A message that counts `bytes` is sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        if self.buffer_bytes.is_some() {
            self.outstanding_bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
        }
    }

    /// The consumer is done with `bytes`.
    pub(super) fn acked(&mut self, bytes: u32) {
        self.acked_bytes += u64::from(bytes);
        // The number comes from outside, and may be larger than what is under way.
        self.outstanding_bytes = self.outstanding_bytes.saturating_sub(u64::from(bytes));
    }

    /// The buffer's size, and what of it is taken.
    pub(super) fn usage(&self) -> (u64, u64, u64) {
        (self.buffer_bytes.unwrap_or(0), self.outstanding_bytes, self.acked_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_gets_one_message_more_than_fits_at_most() {
        let mut flow = FlowControl::default();
        flow.sent(1_000);
        assert!(flow.has_room(), "nobody limits it");
        flow.set_buffer(100);
        for (sent, acked, has_room) in [
            (99, 0, true),
            (50, 0, false),
            (0, 49, false),
            (0, 1, true),
            (1, 0, false),
            (0, 500, true),
        ] {
            flow.sent(sent);
            flow.acked(acked);
            assert_eq!(flow.has_room(), has_room, "{flow:?}");
        }
        flow.sent(100);
        flow.set_buffer(0);
        assert!(flow.has_room());
    }
}
