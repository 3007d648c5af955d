//! Who watches over durable writes, by the role of the vBucket.

use document::{Seqno, VbucketState};

use super::{ActiveMonitor, DurabilityLimits, PassiveMonitor, TrackedWrite, TrackedWrites};
use crate::persistence::Topology;
use crate::waiter::Waiter;

/// The writes of a vBucket that have not ended.
#[derive(Debug)]
pub(crate) enum Monitor {
    Active(ActiveMonitor),
    /// Of a replica or a pending vBucket.
    Passive(PassiveMonitor),
    /// Nothing comes, nothing ends; what was received waits for another role.
    Dead(PassiveMonitor),
}

/// What a change of role leaves over.
#[derive(Debug)]
pub(crate) struct Left {
    /// Clients that wait for writes whose end they will not hear.
    pub(crate) waiters: Vec<Waiter>,
    /// Writes that need not be remembered any more.
    pub(crate) forgotten: Vec<TrackedWrite>,
}

impl Monitor {
    /// That of a vBucket whose file has prepares that are held and have ended up to here.
    pub(crate) fn new(
        state: VbucketState,
        writes: TrackedWrites,
        topology: &Topology,
        limits: DurabilityLimits,
    ) -> Self {
        match state {
            VbucketState::Active => Self::Active(ActiveMonitor::new(writes, topology, limits)),
            VbucketState::Replica | VbucketState::Pending => {
                Self::Passive(PassiveMonitor::new(writes, Seqno(0)))
            }
            VbucketState::Dead => Self::Dead(PassiveMonitor::new(writes, Seqno(0))),
        }
    }

    /// Takes up another role. Up to `whole` the history that is here is consistent.
    pub(crate) fn change(
        &mut self,
        state: VbucketState,
        topology: &Topology,
        limits: DurabilityLimits,
        whole: Seqno,
    ) -> Left {
        let mut left = Left { waiters: Vec::new(), forgotten: Vec::new() };
        let passive = match std::mem::replace(self, Self::Dead(PassiveMonitor::default())) {
            Self::Active(mut active) if state == VbucketState::Active => {
                active.set_topology(topology);
                *self = Self::Active(active);
                return left;
            }
            Self::Active(mut active) => {
                left.waiters = active.writes.disown();
                PassiveMonitor::new(active.writes, whole)
            }
            Self::Passive(passive) | Self::Dead(passive) => passive,
        };
        *self = match state {
            VbucketState::Active => {
                let (writes, completed) = passive.into_uncompleted();
                left.forgotten = completed;
                Self::Active(ActiveMonitor::new(writes, topology, limits))
            }
            VbucketState::Replica | VbucketState::Pending => Self::Passive(passive),
            VbucketState::Dead => Self::Dead(passive),
        };
        left
    }

    /// Tracks one more write.
    pub(crate) fn track(&mut self, write: TrackedWrite) {
        match self {
            Self::Active(active) => active.track(write),
            Self::Passive(passive) | Self::Dead(passive) => passive.track(write),
        }
    }

    /// Takes out writes that have not ended and never will.
    pub(crate) fn drop_writes(
        &mut self,
        is_dropped: impl Fn(&TrackedWrite) -> bool,
    ) -> Vec<TrackedWrite> {
        match self {
            Self::Active(active) => active.drop_writes(is_dropped),
            Self::Passive(passive) | Self::Dead(passive) => passive.drop_writes(is_dropped),
        }
    }

    /// The writes.
    pub(crate) fn writes(&self) -> &TrackedWrites {
        match self {
            Self::Active(active) => &active.writes,
            Self::Passive(passive) | Self::Dead(passive) => &passive.writes,
        }
    }

    /// The writes.
    pub(crate) fn writes_mut(&mut self) -> &mut TrackedWrites {
        match self {
            Self::Active(active) => &mut active.writes,
            Self::Passive(passive) | Self::Dead(passive) => &mut passive.writes,
        }
    }
}
