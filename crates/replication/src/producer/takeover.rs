//! Handing a vBucket over to another node. Source: docs/specification/protocol.md, section 22.
//!
//! ```text
//! Send -> WaitPending -> WaitDead -> SendRest -> WaitActive -> Done
//!      pending         answered   dead here    active       answered
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use std::time::Duration;

use document::VbucketState;
use platform::Instant;

/// A takeover that has not come to its end by then holds writers up until it does
/// (`dcp_takeover_max_time`).
const SENDING_TIME_MAX: Duration = Duration::from_secs(60);
/// How often it is looked at.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How far a takeover is.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    phase: Phase,
    /// Snapshots that the consumer has not said it has.
    unanswered_count: u32,
    death: Death,
    /// When writers are held up; none while a file is read.
    late_at: Option<Instant>,
    /// They are.
    is_late: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// What there is goes over, while clients go on writing.
    #[default]
    Send,
    /// The other vBucket is to be pending.
    WaitPending,
    /// This one is to be dead.
    WaitDead,
    /// What clients wrote meanwhile goes over.
    SendRest,
    /// The other one is to be active.
    WaitActive,
    /// It is.
    Done,
}

/// Whether the vBucket here is dead yet; told by the thread that kills it.
#[derive(Clone, Debug, Default)]
pub(super) struct Death(Arc<AtomicU8>);

const DEAD: u8 = 1;
const ALIVE: u8 = 2;

/// What is to be done when everything there is has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Wait.
    Wait,
    /// Tell the other node its role.
    Tell(VbucketState),
    /// Look whether there is more.
    Look,
    /// Give up: the vBucket here has not become dead.
    GiveUp,
}

/// What follows from the other node's answer.
#[derive(Clone, Debug)]
pub(super) enum Answered {
    /// Nothing.
    Nothing,
    /// The vBucket here is to become dead, and that to be told.
    Die(Death),
    /// The stream ends.
    Finish,
}

impl Death {
    /// The vBucket is dead, or could not be killed.
    pub(super) fn tell(&self, is_dead: bool) {
        self.0.store(if is_dead { DEAD } else { ALIVE }, Ordering::Release);
    }
}

impl Takeover {
    /// A snapshot was announced.
    pub(super) fn marker_sent(&mut self) {
        self.unanswered_count += 1;
    }

    /// The other node has a whole snapshot.
    pub(super) fn marker_answered(&mut self) {
        // Answers come from outside, and may be more than the markers.
        self.unanswered_count = self.unanswered_count.saturating_sub(1);
    }

    /// Everything there is has been sent.
    pub(super) fn idle(&mut self) -> Idle {
        let has_arrived = self.unanswered_count == 0;
        let (phase, idle) = match self.phase {
            Phase::Send if has_arrived => (Phase::WaitPending, Idle::Tell(VbucketState::Pending)),
            Phase::SendRest if has_arrived => (Phase::WaitActive, Idle::Tell(VbucketState::Active)),
            Phase::WaitDead => match self.death.0.load(Ordering::Acquire) {
                DEAD => (Phase::SendRest, Idle::Look),
                ALIVE => (Phase::Done, Idle::GiveUp),
                _ => return Idle::Wait,
            },
            _ => return Idle::Wait,
        };
        self.phase = phase;
        idle
    }

    /// The other node's vBucket has the role that it was told. An answer to nothing is passed over.
    pub(super) fn state_answered(&mut self) -> Answered {
        match self.phase {
            Phase::WaitPending => {
                self.phase = Phase::WaitDead;
                Answered::Die(self.death.clone())
            }
            Phase::WaitActive => {
                self.phase = Phase::Done;
                Answered::Finish
            }
            _ => Answered::Nothing,
        }
    }

    /// What is in memory goes over: the time runs. Whether writers are to be held up from now on,
    /// which is said once.
    pub(super) fn becomes_late(&mut self, now: Instant) -> bool {
        let late_at = *self.late_at.get_or_insert(now.after(SENDING_TIME_MAX));
        let is_late = now >= late_at && !self.kills();
        is_late && !std::mem::replace(&mut self.is_late, true)
    }

    /// Whether writers are held up for it.
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Whether the vBucket here is dead because of this, or is going to be.
    pub(super) fn kills(&self) -> bool {
        !matches!(self.phase, Phase::Send | Phase::WaitPending)
    }

    /// Whether it waits for the other node's role.
    pub(super) fn waits(&self) -> bool {
        matches!(self.phase, Phase::WaitPending | Phase::WaitDead | Phase::WaitActive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vbucket_goes_over_step_by_step() {
        let mut takeover = Takeover::default();
        takeover.marker_sent();
        takeover.marker_sent();
        takeover.marker_answered();
        assert_eq!(takeover.idle(), Idle::Wait, "a snapshot is under way");
        takeover.marker_answered();
        assert!(matches!(takeover.state_answered(), Answered::Nothing), "nobody asked");
        assert_eq!(takeover.idle(), Idle::Tell(VbucketState::Pending));
        assert_eq!(takeover.idle(), Idle::Wait);
        assert!(!takeover.kills());
        let Answered::Die(death) = takeover.state_answered() else { panic!("it is to die") };
        assert!(takeover.kills());
        assert_eq!(takeover.idle(), Idle::Wait);
        death.tell(true);
        assert_eq!(takeover.idle(), Idle::Look);
        takeover.marker_sent();
        assert_eq!(takeover.idle(), Idle::Wait);
        takeover.marker_answered();
        assert_eq!(takeover.idle(), Idle::Tell(VbucketState::Active));
        assert!(matches!(takeover.state_answered(), Answered::Finish));
        assert!(matches!(takeover.state_answered(), Answered::Nothing));
    }

    #[test]
    fn a_takeover_is_late_once_and_not_when_the_vbucket_is_dying() {
        let second = |seconds: u64| Instant(seconds * 1_000_000_000);
        let mut takeover = Takeover::default();
        for (at, becomes_late) in [(100, false), (159, false), (160, true), (161, false)] {
            assert_eq!(takeover.becomes_late(second(at)), becomes_late, "{at}");
        }
        assert!(takeover.is_late());
        let mut takeover = Takeover::default();
        assert!(!takeover.becomes_late(second(100)));
        assert_eq!(takeover.idle(), Idle::Tell(VbucketState::Pending));
        assert!(matches!(takeover.state_answered(), Answered::Die(_)));
        assert!(!takeover.becomes_late(second(160)), "nobody writes any more");
    }

    #[test]
    fn nobody_becomes_active_beside_a_vbucket_that_lives() {
        let mut takeover = Takeover::default();
        assert_eq!(takeover.idle(), Idle::Tell(VbucketState::Pending));
        let Answered::Die(death) = takeover.state_answered() else { panic!("it is to die") };
        death.tell(false);
        assert_eq!(takeover.idle(), Idle::GiveUp);
        assert_eq!(takeover.idle(), Idle::Wait);
    }
}
