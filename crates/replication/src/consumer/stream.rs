//! One stream into a vBucket.

use std::time::Duration;

use document::Seqno;
use platform::Instant;
use protocol::dcp::StreamFlags;
use vbucket::StreamPosition;

/// The first pause after a stream has ended without being asked to.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What a stream is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamState {
    /// It is asked for at this time.
    Waiting(Instant),
    /// It was asked for, with this entry of the failover table, counted from the newest.
    Requested(usize),
    /// Its vBucket goes back before it is asked for again.
    RollingBack,
    /// Its messages come.
    Open,
}

/// A stream.
pub(super) struct Stream {
    /// Names it in all its messages. Another one after each end, so that late messages of the one
    /// before are known as such.
    pub(super) opaque: u32,
    pub(super) state: StreamState,
    /// How it is asked for.
    pub(super) flags: StreamFlags,
    /// What a manager has had it added by, and waits for the answer.
    pub(super) added_by: Option<u32>,
    /// Where its vBucket was when it was asked for last.
    pub(super) asked_from: Option<StreamPosition>,
    /// The snapshot that comes is to be answered when it is whole.
    pub(super) must_answer_marker: bool,
    /// The highest seqno that was acknowledged.
    pub(super) acknowledged: Seqno,
    /// Messages that were received.
    pub(super) received: u64,
    pause: Duration,
}

impl Stream {
    /// A stream that is to be asked for at once.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            opaque: 0,
            state: StreamState::Waiting(now),
            flags: StreamFlags::default(),
            added_by: None,
            asked_from: None,
            must_answer_marker: false,
            acknowledged: Seqno(0),
            received: 0,
            pause: PAUSE_MIN,
        }
    }

    /// The same, asked for with flags.
    pub(super) fn with_flags(self, flags: StreamFlags) -> Self {
        Self { flags, ..self }
    }

    /// Whether the producer is to hand the vBucket over.
    pub(super) fn is_takeover(&self) -> bool {
        self.flags.contains(StreamFlags::TAKEOVER)
    }

    /// It is asked for again a little later, and later each time.
    pub(super) fn wait(&mut self, now: Instant) {
        let is_bounded = (PAUSE_MIN..=PAUSE_MAX).contains(&self.pause);
        assert!(is_bounded, "a pause is as long as pauses are: {:?}", self.pause);
        self.state = StreamState::Waiting(now.after(self.pause));
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.must_answer_marker = false;
    }

    /// Its messages come from here on.
    pub(super) fn open(&mut self) {
        assert!(matches!(self.state, StreamState::Requested(_)), "what opens was asked for");
        self.state = StreamState::Open;
        self.acknowledged = Seqno(0);
    }

    /// It has brought something: the next end is not one of a row.
    pub(super) fn has_received(&mut self, count: usize) {
        self.received += u64::try_from(count).unwrap_or(u64::MAX);
        self.pause = PAUSE_MIN;
    }

    /// When it is to be asked for, if it waits for that.
    pub(super) fn waits_until(&self) -> Option<Instant> {
        match self.state {
            StreamState::Waiting(at) => Some(at),
            StreamState::Requested(_) | StreamState::RollingBack | StreamState::Open => None,
        }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.waits_until().is_some_and(|at| at <= now)
    }
}
