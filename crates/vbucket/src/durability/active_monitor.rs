//! Durable writes of an active vBucket: which are held by enough nodes, and which are late.

use document::Seqno;
use platform::Instant;

use super::topology::{Node, Satisfied};
use super::{Chains, ClientWait, DurabilityLimits, TrackedWrite, TrackedWrites};
use crate::persistence::Topology;
use crate::waiter::Waiter;

/// Nodes outside of the topology whose acknowledgements are kept for one that has them.
const STRANGERS_MAX: usize = 16;

/// Tracks the writes of an active vBucket.
#[derive(Debug)]
pub(crate) struct ActiveMonitor {
    pub(crate) writes: TrackedWrites,
    /// How many of `writes`, from the first on, are held here.
    held_count: usize,
    /// How many of `writes`, from the first on, no client waits for.
    ownerless_count: usize,
    /// Nobody has said yet who must hold writes: none ends before that.
    chains: Option<Chains>,
    /// Nodes outside of the topology that hold prepares: it may come later than they do.
    strangers: Vec<Node>,
    limits: DurabilityLimits,
    pub(crate) last_committed: Seqno,
    pub(crate) last_aborted: Seqno,
    /// When the timeout goes off that was asked for last.
    announced: Option<Instant>,
}

impl ActiveMonitor {
    /// Goes on with `writes`, which no client waits for, and which are held up to their high
    /// prepared seqno.
    pub(crate) fn new(
        writes: TrackedWrites,
        topology: &Topology,
        limits: DurabilityLimits,
    ) -> Self {
        let held_count = writes.count_through(writes.high_prepared);
        let ownerless_count = writes.len();
        let (last_committed, last_aborted) = (Seqno(0), Seqno(0));
        let mut monitor = Self {
            writes,
            held_count,
            ownerless_count,
            chains: None,
            strangers: Vec::new(),
            limits,
            last_committed,
            last_aborted,
            announced: None,
        };
        monitor.set_topology(topology);
        monitor
    }

    /// Whether a write can be taken on.
    pub(crate) fn can_begin(&self) -> Result<(), BeginRefusal> {
        let chains = self.chains.as_ref().ok_or(BeginRefusal::NoTopology)?;
        match chains.are_enough(self.limits) {
            true => Ok(()),
            false => Err(BeginRefusal::Impossible),
        }
    }

    /// Sets which writes are taken on.
    pub(crate) fn set_limits(&mut self, limits: DurabilityLimits) {
        self.limits = limits;
    }

    /// Says who must hold writes from now on. How far nodes are stays known of those that were
    /// named before, and of strangers.
    pub(crate) fn set_topology(&mut self, topology: &Topology) {
        let mut chains = Chains::new(topology);
        let old = self.chains.take();
        if let Some(chains) = &mut chains {
            let known = old.iter().flat_map(Chains::nodes).chain(&self.strangers);
            for node in known {
                if let Some(other) = chains.other_mut(&node.name) {
                    other.held = other.held.max(node.held);
                }
            }
            chains.own_mut().held = self.writes.high_prepared;
            let named = |node: &Node| chains.nodes().iter().any(|other| other.name == node.name);
            self.strangers.retain(|node| !named(node));
        }
        self.chains = chains;
    }

    /// Tracks a write that was just prepared, or, before any other, one from the file.
    pub(crate) fn track(&mut self, write: TrackedWrite) {
        if write.client.is_none() {
            assert!(self.ownerless_count == self.writes.len(), "what is in the file comes first");
            self.ownerless_count += 1;
        }
        self.writes.push(write);
    }

    /// The node holds all prepares up to `seqno`. What it has said before stays said.
    pub(crate) fn acknowledge(&mut self, name: &str, seqno: Seqno) {
        if let Some(chains) = &mut self.chains {
            if chains.own_name() == name {
                // Nobody but this node knows what it holds.
                return;
            }
            if let Some(node) = chains.other_mut(name) {
                node.held = node.held.max(seqno);
                return;
            }
        }
        match self.strangers.iter_mut().find(|node| *node.name == *name) {
            Some(node) => node.held = node.held.max(seqno),
            None => {
                if self.strangers.len() >= STRANGERS_MAX {
                    self.strangers.remove(0);
                }
                self.strangers.push(Node { name: name.into(), held: seqno });
            }
        }
    }

    /// The node follows anew from behind `after`: what it has held above that is lost.
    pub(crate) fn restart_node(&mut self, name: &str, after: Seqno) {
        let named = self.chains.as_mut().and_then(|chains| chains.other_mut(name));
        if let Some(node) = named {
            node.held = node.held.min(after);
        }
        self.strangers.retain(|node| *node.name != *name);
    }

    /// Moves over what is held here now: writes that only have to be in memory, and those that are
    /// persisted. It stops in front of the first that has to be and is not: who is told that all up
    /// to here is held must find it so.
    pub(crate) fn advance(&mut self, persisted: Seqno) {
        use document::DurabilityLevel::Majority;
        while let Some(write) = self.writes.get(self.held_count)
            && (write.level == Majority || write.seqno <= persisted)
        {
            self.writes.high_prepared = self.writes.high_prepared.max(write.seqno);
            self.held_count += 1;
        }
        if let Some(chains) = &mut self.chains {
            chains.own_mut().held = self.writes.high_prepared;
        }
    }

    /// Up to where writes are to be committed. [`ActiveMonitor::take_committed`] takes them.
    pub(crate) fn satisfied(&self) -> Satisfied {
        let chains = self.chains.as_ref();
        chains.map_or(Satisfied::NONE, |chains| chains.satisfied(self.limits))
    }

    /// The first write, if it is to be committed.
    pub(crate) fn take_committed(&mut self, satisfied: Satisfied) -> Option<TrackedWrite> {
        // As long as there are any that no client waits for, the first write is one of them: fewer
        // nodes may be enough for it.
        let through = match self.ownerless_count {
            0 => satisfied.through,
            _ => satisfied.ownerless_through,
        };
        self.writes.front().filter(|write| write.seqno <= through)?;
        let write = self.take_front()?;
        self.last_committed = write.seqno;
        Some(write)
    }

    /// Gives up the first write that a client waits for, if `is_lost` says so of it. It is aborted
    /// unless others are in front of it that this node must not abort: writes end in order, so it
    /// stays, and only its client hears that its end is not known.
    pub(crate) fn give_up(&mut self, is_lost: impl Fn(ClientWait) -> bool) -> Option<GivenUp> {
        let write = self.writes.get_mut(self.ownerless_count)?;
        let client = write.client.filter(|&client| is_lost(client))?;
        if self.ownerless_count > 0 {
            write.client = None;
            self.ownerless_count += 1;
            return Some(GivenUp::Ownerless(client.waiter));
        }
        let write = self.take_front()?;
        self.last_aborted = write.seqno;
        Some(GivenUp::Aborted(write))
    }

    fn take_front(&mut self) -> Option<TrackedWrite> {
        let write = self.writes.pop_front()?;
        self.held_count = self.held_count.saturating_sub(1);
        self.ownerless_count = self.ownerless_count.saturating_sub(1);
        let completed = &mut self.writes.high_completed;
        assert!(*completed < write.seqno, "writes end in order");
        *completed = write.seqno;
        Some(write)
    }

    /// Takes out writes that never end: nobody commits or aborts them.
    pub(crate) fn drop_writes(
        &mut self,
        is_dropped: impl Fn(&TrackedWrite) -> bool,
    ) -> Vec<TrackedWrite> {
        let count = |first: usize| self.writes.count_among(first, |write| is_dropped(write));
        let (held, ownerless) = (count(self.held_count), count(self.ownerless_count));
        self.held_count -= held;
        self.ownerless_count -= ownerless;
        self.writes.take_out(is_dropped)
    }

    /// Whether the nodes are not enough any more for the writes that clients have begun.
    pub(crate) fn is_impossible(&self) -> bool {
        self.can_begin() == Err(BeginRefusal::Impossible)
    }

    /// When the first write that a client waits for becomes ambiguous, if nobody was asked yet to
    /// look again by then. Timeouts that were asked for stay, although the write that they are for
    /// may have ended: nearly all do, and writes that follow are due later.
    pub(crate) fn announce(&mut self) -> Option<Instant> {
        let deadline = self.next_deadline()?;
        if self.announced.is_some_and(|announced| announced <= deadline) {
            return None;
        }
        self.announced = Some(deadline);
        self.announced
    }

    /// The timeout has gone off and goes off again when this says.
    pub(crate) fn announce_anew(&mut self) -> Option<Instant> {
        self.announced = self.next_deadline();
        self.announced
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.writes.get(self.ownerless_count)?.client?.deadline)
    }

    /// Who must hold writes.
    pub(crate) fn chains(&self) -> Option<&Chains> {
        self.chains.as_ref()
    }
}

/// Why a write cannot be taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BeginRefusal {
    /// Nobody has said who must hold it.
    NoTopology,
    /// There are too few nodes, or too many.
    Impossible,
}

/// A write that this node has given up.
#[derive(Debug)]
pub(crate) enum GivenUp {
    /// It ends.
    Aborted(TrackedWrite),
    /// It stays, and its client waits no longer.
    Ownerless(Waiter),
}
