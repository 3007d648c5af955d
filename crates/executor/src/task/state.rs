//! The word that says where a task is.
//!
//! ```text
//!              notify: push                    begin_run
//!   IDLE ----------------------> NOTIFIED ----------------------> RUNNING
//!    ^                              ^                               |  | notify
//!    |                              |  end_run(MoreToDo): push      |  v
//!    |                              +-------------------------------+ RUNNING|NOTIFIED
//!    |                              |  end_run: push                |  |
//!    |                              +----------------------------------+
//!    |  end_run                                                     |
//!    +--------------------------------------------------------------+
//! ```
//!
//! `NOTIFIED` without `RUNNING` means: in a run queue, or on the way into or out of one, exactly
//! once. Whoever brings it about must push. `DEAD` may join any state and never leaves; a
//! cancelled task passes through a queue like a woken one, so that a worker destroys it.

use crate::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const NOTIFIED: u8 = 1;
const RUNNING: u8 = 2;
const DEAD: u8 = 4;

/// One task's word.
#[derive(Debug)]
pub(crate) struct TaskState(AtomicU8);

/// What a caller has to do about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing: it sleeps, or somebody else sees to it.
    Nothing,
    /// Push it to its queue.
    Push,
    /// Destroy it.
    Destroy,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It sleeps, unless it was notified during the run.
    Asleep,
    /// It has more to do.
    MoreToDo,
    /// It was the last run, unless the task was notified during it.
    DoneUnlessNotified,
    /// It was the last run.
    Done,
}

impl TaskState {
    pub(crate) const fn asleep() -> Self {
        Self(AtomicU8::new(IDLE))
    }

    /// A task that is about to be pushed for the first time.
    pub(crate) const fn notified() -> Self {
        Self(AtomicU8::new(NOTIFIED))
    }

    /// A run must begin after this call, unless the task is dead.
    pub(crate) fn notify(&self) -> Then {
        let before = self.0.fetch_or(NOTIFIED, Ordering::AcqRel);
        if before == IDLE { Then::Push } else { Then::Nothing }
    }

    /// No run begins after this call. Also answers whether the task was alive.
    pub(crate) fn cancel(&self) -> (Then, bool) {
        let before = self.0.fetch_or(DEAD | NOTIFIED, Ordering::AcqRel);
        let then = if before == IDLE { Then::Push } else { Then::Nothing };
        (then, before & DEAD == 0)
    }

    /// From queued to running. False when it must be destroyed instead.
    pub(crate) fn begin_run(&self) -> bool {
        let before = self.0.fetch_xor(NOTIFIED | RUNNING, Ordering::AcqRel);
        assert!(before & RUNNING == 0, "a task never runs twice at the same time");
        assert!(before & NOTIFIED != 0, "only a queued task begins to run");
        before & DEAD == 0
    }

    /// From running to whatever follows.
    pub(crate) fn end_run(&self, ended: Ended) -> Then {
        match ended {
            Ended::Done => return Then::Destroy,
            Ended::DoneUnlessNotified if self.die_unless_notified() => return Then::Destroy,
            Ended::MoreToDo => {
                self.0.fetch_or(NOTIFIED, Ordering::AcqRel);
            }
            Ended::DoneUnlessNotified | Ended::Asleep => {}
        }
        let before = self.0.fetch_and(!RUNNING, Ordering::AcqRel);
        assert!(before & RUNNING != 0, "only a run can end");
        if before & DEAD != 0 {
            Then::Destroy
        } else if before & NOTIFIED != 0 {
            Then::Push
        } else {
            Then::Nothing
        }
    }

    fn die_unless_notified(&self) -> bool {
        let dead = RUNNING | DEAD;
        self.0.compare_exchange(RUNNING, dead, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Marks it dead, for whoever destroys it. Nobody pushes it after this.
    ///
    /// In one order with [`Self::is_dead`] and the task's deadline: who sets one asks afterwards
    /// whether the task is dead, and who destroys the task looks afterwards for a deadline.
    pub(crate) fn bury(&self) {
        self.0.fetch_or(DEAD | NOTIFIED, Ordering::SeqCst);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.load(Ordering::SeqCst) & DEAD != 0
    }

    pub(crate) fn is_running(&self) -> bool {
        self.0.load(Ordering::Relaxed) & RUNNING != 0
    }

    pub(crate) fn is_queued(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (RUNNING | NOTIFIED) == NOTIFIED
    }
}
