//! How long a cursor keeps its place while memory is short.

use std::time::Duration;

use document::Seqno;
use platform::Instant;

/// How long a replica may read nothing. A node that hangs does not hold writers up longer.
const STANDSTILL_MAX: Duration = Duration::from_secs(2);
/// How long a replica may be behind. Whose log is longer than that goes on from the file.
const LAG_MAX: Duration = Duration::from_secs(5);

/// When a cursor that keeps more of the log than the flusher is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// Never: the flusher's, and who gives the log back soon.
    Always,
    /// As soon as memory is short: the reader goes on from the file.
    WhileMemoryLasts,
    /// When memory is short and the reader does not get on. Durable writes wait for such a reader.
    /// One that reads the file while writers go on has as much in front of it at the end as at the
    /// beginning, and would never come near to them; so writers wait for it instead, a little.
    WhileGettingOn,
}

/// What a cursor has in front of it at some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lag {
    next_seqno: Seqno,
    high_seqno: Seqno,
    since: Instant,
}

impl Lag {
    /// A reader that needs `next_seqno` of a log that ends at `high_seqno`.
    pub(super) fn new(next_seqno: Seqno, high_seqno: Seqno, since: Instant) -> Self {
        assert!(next_seqno <= high_seqno.next(), "a cursor stands at most at the log's end");
        Self { next_seqno, high_seqno, since }
    }

    /// Whether the reader, which needs `next_seqno` now, has read it all.
    pub(super) fn is_over(&self, next_seqno: Seqno) -> bool {
        next_seqno > self.high_seqno
    }

    /// Whether the reader has taken too long already.
    pub(super) fn is_too_long(&self, next_seqno: Seqno, now: Instant) -> bool {
        let stands_still = next_seqno == self.next_seqno;
        now.since(self.since) >= if stands_still { STANDSTILL_MAX } else { LAG_MAX }
    }
}
