//! How a change of the buckets reaches all nodes of a cluster: as the next plan.
//!
//! It is made on any node. That asks every member whether it could carry the plan out, has the
//! first node of the map that answers carry it out, does so itself, and gives it to all. Whoever
//! was not reached is given it when it answers, and so is everybody after a start: a plan in which
//! buckets have changed more often goes to those that have one in which they have less often.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cluster::{ClusterPlan, PlannedNode};
use server::BucketRefusal;

use super::plan_order::PlanOrder;
use super::{CarriedOut, Membership};
use crate::peer_copies::{PeerRefusal, PlanOffer, PlanPeers};

/// How often a change is made anew because others were faster.
const ATTEMPTS_MAX: usize = 32;

/// What is left to be exchanged.
#[derive(Default)]
pub(super) struct PlanExchange {
    peers: OnceLock<PlanPeers>,
    /// Held while a change is made here, and while plans are exchanged.
    exchanging: Mutex<()>,
    /// Whether somebody was not reached.
    is_due: AtomicBool,
}

/// How far an attempt has come.
enum Attempt {
    Done,
    /// Others have changed the plan meanwhile.
    Behind,
}

impl PlanExchange {
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// A plan was carried out in which buckets have changed.
    pub(super) fn note_changes(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.exchanging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Membership {
    /// Has the node give plans to others with `peers`.
    pub(crate) fn exchange_plans_with(&self, peers: PlanPeers) {
        assert!(self.plans.peers.set(peers).is_ok(), "there is one way to exchange plans");
    }

    /// Changes the buckets of the cluster, on all nodes that can be reached; the others get the
    /// change when they can. May take as long as nodes do not answer.
    ///
    /// # Errors
    /// See [`BucketRefusal`]. If it is one of a member, nothing was changed anywhere.
    pub(crate) fn order_buckets(&self, order: &PlanOrder) -> Result<(), BucketRefusal> {
        let Some(peers) = self.plans.peers.get() else {
            return Err(BucketRefusal::Failed("The node is starting".to_owned()));
        };
        let _changing = self.plans.lock();
        for _ in 0..ATTEMPTS_MAX {
            let plan = self.plan();
            if self.this_node_in(&plan).is_none() {
                let why = "The node is not one of the cluster's map";
                return Err(BucketRefusal::Failed(why.to_owned()));
            }
            let next = order.applied(&plan)?;
            match self.attempt(peers, &plan, &next, order.needs_all())? {
                Attempt::Done => return Ok(()),
                Attempt::Behind => {}
            }
        }
        let why = "Buckets keep changing on other nodes, try again";
        Err(BucketRefusal::Failed(why.to_owned()))
    }

    fn attempt(
        &self,
        peers: &PlanPeers,
        plan: &ClusterPlan,
        next: &ClusterPlan,
        needs_all: bool,
    ) -> Result<Attempt, BucketRefusal> {
        if let Attempt::Behind = self.ask_all(peers, plan, next, needs_all)? {
            return Ok(Attempt::Behind);
        }
        if let CarriedOut::Refused(why) = self.try_out(next) {
            return self.refused_here(plan, why);
        }
        if let Attempt::Behind = self.precede_plan(peers, plan, next)? {
            return Ok(Attempt::Behind);
        }
        match self.carry_out(next) {
            CarriedOut::Done => {}
            CarriedOut::Older(_) => return Ok(Attempt::Behind),
            CarriedOut::Refused(why) => return self.refused_here(plan, why),
        }
        let unreached = self.give_plan(peers, next);
        self.plans.is_due.store(!unreached.is_empty(), Ordering::Relaxed);
        if !unreached.is_empty() {
            tracing::warn!(?unreached, "buckets have changed, and not on these nodes yet");
            self.retries.begin(true);
        }
        Ok(Attempt::Done)
    }

    /// This node does not take what follows `plan`: perhaps it has another plan by now.
    fn refused_here(&self, plan: &ClusterPlan, why: String) -> Result<Attempt, BucketRefusal> {
        if self.plan() == *plan { Err(BucketRefusal::Failed(why)) } else { Ok(Attempt::Behind) }
    }

    /// Asks every member whether it could carry `next` out, which follows `plan`.
    fn ask_all(
        &self,
        peers: &PlanPeers,
        plan: &ClusterPlan,
        next: &ClusterPlan,
        needs_all: bool,
    ) -> Result<Attempt, BucketRefusal> {
        let refuse = |why: String| Err(BucketRefusal::Failed(why));
        let (known, offer) = (plan.to_json(), next.to_json());
        for node in self.other_members(plan) {
            let name = &node.name;
            match self.tell_plan(peers, node, PlanOffer { plan: &offer, is_trial: true }) {
                Ok(theirs) if theirs.changes > plan.changes => {
                    return self.adopt_plan(name, &theirs).map(|()| Attempt::Behind);
                }
                Ok(theirs) if theirs.revision > plan.revision => {
                    return refuse(format!("{name} has a newer cluster map; try again"));
                }
                Ok(theirs) if theirs.revision == plan.revision && theirs != *plan => {
                    return refuse(format!("{name} has another cluster map of this revision"));
                }
                Ok(_) => {}
                Err(error) if error.is::<PeerRefusal>() => {
                    // It may have taken somebody else's plan.
                    let known = PlanOffer { plan: &known, is_trial: true };
                    return match self.tell_plan(peers, node, known) {
                        Ok(theirs) if theirs.changes > plan.changes => {
                            self.adopt_plan(name, &theirs).map(|()| Attempt::Behind)
                        }
                        _ => {
                            let why = format!("{name} refuses it: {error:#}");
                            Err(BucketRefusal::Invalid("_".to_owned(), why))
                        }
                    };
                }
                Err(error) if needs_all => {
                    return refuse(format!("{name} does not answer: {error:#}"));
                }
                Err(_) => {}
            }
        }
        Ok(Attempt::Done)
    }

    /// Of two changes on two nodes at a time the one comes behind the other: the first node of the
    /// map that answers has a plan before the node that makes it, and has only one that follows.
    fn precede_plan(
        &self,
        peers: &PlanPeers,
        plan: &ClusterPlan,
        next: &ClusterPlan,
    ) -> Result<Attempt, BucketRefusal> {
        let offer = next.to_json();
        let before = self.this_node_in(plan).unwrap_or(0);
        for node in plan.nodes.iter().take(before) {
            match self.tell_plan(peers, node, PlanOffer { plan: &offer, is_trial: false }) {
                Ok(theirs) if theirs == *next => return Ok(Attempt::Done),
                Ok(theirs) if theirs.changes > plan.changes => {
                    return self.adopt_plan(&node.name, &theirs).map(|()| Attempt::Behind);
                }
                Ok(_) => {
                    let why = format!("{} has a newer cluster map; try again", node.name);
                    return Err(BucketRefusal::Failed(why));
                }
                // It has another plan by now, or does not answer, or its answer was lost.
                Err(error) if error.is::<PeerRefusal>() => return Ok(Attempt::Behind),
                Err(_) => {}
            }
        }
        Ok(Attempt::Done)
    }

    /// Does this node's part of a plan that `name` has and that is newer.
    fn adopt_plan(&self, name: &str, plan: &ClusterPlan) -> Result<(), BucketRefusal> {
        match self.carry_out(plan) {
            CarriedOut::Done | CarriedOut::Older(_) => Ok(()),
            CarriedOut::Refused(why) => {
                let why = format!("the cluster map of {name} cannot be carried out here: {why}");
                Err(BucketRefusal::Failed(why))
            }
        }
    }

    /// Gives all other members a plan. Returns who was not reached.
    fn give_plan(&self, peers: &PlanPeers, plan: &ClusterPlan) -> Vec<String> {
        let text = plan.to_json();
        let mut unreached = Vec::new();
        for node in self.other_members(plan) {
            match self.tell_plan(peers, node, PlanOffer { plan: &text, is_trial: false }) {
                Ok(theirs) if theirs.changes >= plan.changes => {}
                Ok(_) => unreached.push(node.name.clone()),
                Err(error) => {
                    tracing::debug!(node = node.name, "the node has not taken a plan: {error:#}");
                    unreached.push(node.name.clone());
                }
            }
        }
        unreached
    }

    /// Exchanges what is left to be: the plan in which buckets have changed the most often wins.
    pub(super) fn exchange_plans(&self) {
        let Some(peers) = self.plans.peers.get().filter(|_| self.plans.is_due()) else { return };
        let _exchanging = self.plans.lock();
        let plan = self.plan();
        self.plans.is_due.store(false, Ordering::Relaxed);
        let text = plan.to_json();
        let mut all_reached = true;
        for node in self.other_members(&plan) {
            // A trial tells what the node has.
            match self.tell_plan(peers, node, PlanOffer { plan: &text, is_trial: true }) {
                Ok(theirs) if theirs.changes > plan.changes => {
                    if let Err(error) = self.adopt_plan(&node.name, &theirs) {
                        tracing::warn!(%error, "buckets have changed, and not here yet");
                        all_reached = false;
                    }
                }
                Ok(theirs) if theirs.changes < plan.changes => {
                    let offer = PlanOffer { plan: &text, is_trial: false };
                    let told = self.tell_plan(peers, node, offer);
                    all_reached &= told.is_ok_and(|theirs| theirs.changes >= plan.changes);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(node = node.name, "no plans are exchanged: {error:#}");
                    all_reached = false;
                }
            }
        }
        if !all_reached {
            self.plans.note_changes();
        }
    }

    /// Has every node of the cluster empty its part of a bucket; this one with `flush_here`, first.
    ///
    /// # Errors
    /// In words: some nodes may have emptied theirs. Nobody has where one does not answer before.
    pub fn flush_everywhere(
        &self,
        bucket: &str,
        flush_here: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        let plan = self.plan();
        let Some(peers) = self.plans.peers.get().filter(|_| !self.is_alone()) else {
            return flush_here();
        };
        let text = plan.to_json();
        for node in self.other_members(&plan) {
            let asked = self.tell_plan(peers, node, PlanOffer { plan: &text, is_trial: true });
            asked.map_err(|error| format!("{} does not answer: {error:#}", node.name))?;
        }
        flush_here()?;
        for node in self.other_members(&plan) {
            let flushed = (peers.flush)(&node.address, bucket);
            flushed.map_err(|error| {
                format!("{} has not emptied its part; flush again: {error:#}", node.name)
            })?;
        }
        Ok(())
    }

    /// The members of a plan but this node; none if this one is none.
    fn other_members<'a>(&self, plan: &'a ClusterPlan) -> Vec<&'a PlannedNode> {
        let this = self.this_node_in(plan);
        let nodes = plan.nodes.iter().enumerate();
        let others = nodes.filter(|(index, _)| this.is_some_and(|this| this != *index));
        others.map(|(_, node)| node).collect()
    }

    /// Offers a node a plan. Returns the one that it has behind that.
    fn tell_plan(
        &self,
        peers: &PlanPeers,
        node: &PlannedNode,
        offer: PlanOffer<'_>,
    ) -> anyhow::Result<ClusterPlan> {
        let theirs = (peers.exchange)(&node.address, offer)?;
        Ok(self.parse(&theirs)?)
    }
}
