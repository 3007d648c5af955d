//! A reader's place in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use document::Seqno;
use platform::Instant;

use super::reader_places::ReaderPlace;
use super::segment::Segment;
use super::tenure::{Lag, Tenure};

/// Names a cursor; never used twice in a process. A stream may ask for its place when another log
/// has taken that of its own: it must not be given anybody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CursorId(u64);

static NEXT_CURSOR: AtomicU64 = AtomicU64::new(0);

impl CursorId {
    pub(super) fn fresh() -> Self {
        Self(NEXT_CURSOR.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a new cursor begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The cursor.
    pub id: CursorId,
    /// The first seqno that it can read from the log.
    pub next_seqno: Seqno,
    /// Whether history is missing between what the reader has and what the log has: the reader
    /// must get it from the file.
    pub needs_backfill: bool,
}

/// A cursor as statistics show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorStatus {
    /// Whose it is.
    pub name: Arc<str>,
    /// The checkpoint that it reads next.
    pub checkpoint_id: u64,
    /// The first seqno that it has not read.
    pub next_seqno: Seqno,
    /// Items in front of it.
    pub remaining: usize,
    /// How often it has been read from.
    pub visits: u64,
    /// When it is dropped.
    pub tenure: Tenure,
}

/// Stands before the segment that is read next. A read moves it only when it is confirmed: after a
/// failure the same comes again, so a cursor is its own backup.
#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) id: CursorId,
    /// Whose it is, and what of it is read without the lock.
    pub(super) place: Arc<ReaderPlace>,
    pub(super) tenure: Tenure,
    /// Of a replica: what it had to read when memory was short last.
    pub(super) lag: Option<Lag>,
    pub(super) position: Arc<Segment>,
    /// Of that segment, what the reader had before: set at most until the first read.
    pub(super) skips_through: Seqno,
    passed: usize,
    pub(super) visits: u64,
    /// Set while a read is not confirmed.
    pub(super) read: Option<UnconfirmedRead>,
}

/// A read under way.
#[derive(Debug)]
pub(super) struct UnconfirmedRead {
    /// The ordinal of the segment before which it ends.
    pub(super) end_ordinal: u64,
    /// For each item in it that was superseded since it began, the ordinal of its segment.
    pub(super) superseded: Vec<u64>,
}

impl Cursor {
    /// A cursor before `position` that has passed so many items.
    pub(super) fn new(
        name: &str,
        tenure: Tenure,
        (position, skips_through): (Arc<Segment>, Seqno),
        passed: usize,
    ) -> Self {
        let mut cursor = Self {
            id: CursorId::fresh(),
            place: Arc::new(ReaderPlace::new(name)),
            tenure,
            lag: None,
            position,
            skips_through,
            passed: 0,
            visits: 0,
            read: None,
        };
        cursor.set_passed(passed);
        cursor
    }

    /// Items behind it that have not been superseded since, and those that were in the log before.
    pub(super) fn passed(&self) -> usize {
        self.passed
    }

    /// Has whoever looks without the lock see it, too.
    pub(super) fn set_passed(&mut self, passed: usize) {
        self.passed = passed;
        self.place.passed.set(wide(passed));
    }

    /// Whether whoever looks without the lock sees what it has passed.
    pub(super) fn is_shown(&self) -> bool {
        self.place.passed.get() == wide(self.passed)
    }

    /// The first seqno that it has not read.
    pub(super) fn next_seqno(&self) -> Seqno {
        self.position.first_seqno.max(self.skips_through.next())
    }

    /// Whether it is dropped when memory is short and its log ends at `high_seqno`.
    pub(super) fn is_to_go(&mut self, high_seqno: Seqno, now: Instant) -> bool {
        match self.tenure {
            Tenure::Always => false,
            Tenure::WhileMemoryLasts => true,
            Tenure::WhileGettingOn => {
                let next_seqno = self.next_seqno();
                let lag = self.lag.take().filter(|lag| !lag.is_over(next_seqno));
                let lag =
                    self.lag.insert(lag.unwrap_or_else(|| Lag::new(next_seqno, high_seqno, now)));
                lag.is_too_long(next_seqno, now)
            }
        }
    }

    /// Its read under way, if the segment `ordinal` is in that.
    pub(super) fn read_of(&mut self, ordinal: u64) -> Option<&mut UnconfirmedRead> {
        let is_behind = self.position.ordinal <= ordinal;
        self.read.as_mut().filter(|read| is_behind && ordinal < read.end_ordinal)
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
