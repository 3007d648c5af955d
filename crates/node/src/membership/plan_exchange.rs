//! How a change of the buckets reaches all nodes of a cluster: as the next plan.
//!
//! It is made on any node. That asks every member whether it could carry the plan out, has the
//! first node of the map that answers carry it out, does so itself, and gives it to all. Whoever
//! was not reached is given it when it answers, and so is everybody after a start: nodes go over to
//! the plan in which buckets have changed more often, or to one that has the changes of both.

use std::cmp::Ordering;
use std::sync::OnceLock;

use anyhow::ensure;
use cluster::{ClusterPlan, PlannedNode};
use server::BucketRefusal;

use super::exchange::{ATTEMPTS_MAX, Exchange};
use super::plan_order::PlanOrder;
use super::silent::Silent;
use super::{CarriedOut, Membership};
use crate::peer_copies::{OfferPurpose, PeerRefusal, PlanOffer, PlanPeers};

/// What is left to be exchanged.
#[derive(Default)]
pub(super) struct PlanExchange {
    peers: OnceLock<PlanPeers>,
    pub(super) state: Exchange,
}

/// How far an attempt has come.
enum Attempt {
    Done,
    /// Others have changed the plan meanwhile.
    Behind,
}

impl Membership {
    /// Has the node give plans to others with `peers`.
    pub(crate) fn exchange_plans_with(&self, peers: PlanPeers) {
        assert!(self.plans.peers.set(peers).is_ok(), "there is one way to exchange plans");
    }

    /// Changes the plan, on all nodes that can be reached; the others, which are named, get the
    /// change when they can. May take as long as nodes do not answer.
    ///
    /// # Errors
    /// See [`BucketRefusal`]. If it is one of a member, nothing was changed anywhere.
    pub(crate) fn order_change(&self, order: &PlanOrder) -> Result<Vec<String>, BucketRefusal> {
        let Some(peers) = self.plans.peers.get() else {
            return Err(BucketRefusal::Failed("The node is starting".to_owned()));
        };
        let _changing = self.plans.state.lock();
        // Whoever does not answer the first question is not waited for again: it is given the plan
        // when it does, and whoever asks for the change hears of it in time.
        let mut silent = self.nobody_silent();
        for _ in 0..ATTEMPTS_MAX {
            let plan = self.plan();
            if self.this_node_in(&plan).is_none() {
                let why = "The node is not one of the cluster's map";
                return Err(BucketRefusal::Failed(why.to_owned()));
            }
            let next = order.applied(&plan)?;
            let unreached = self.attempt(peers, &mut silent, &plan, &next, order)?;
            if let Some(unreached) = unreached {
                return Ok(unreached);
            }
        }
        let why = "Other nodes keep changing the cluster map, try again";
        Err(BucketRefusal::Failed(why.to_owned()))
    }

    /// Who does not know of the plan yet that all are to have; `None` if others have changed it
    /// meanwhile.
    fn attempt(
        &self,
        peers: &PlanPeers,
        silent: &mut Silent<'_>,
        plan: &ClusterPlan,
        next: &ClusterPlan,
        order: &PlanOrder,
    ) -> Result<Option<Vec<String>>, BucketRefusal> {
        if let Attempt::Behind = self.ask_all(peers, silent, plan, next, order.needs_all())? {
            return Ok(None);
        }
        // This node is asked before the first one carries it out: a refusal is to change nothing
        // anywhere.
        if let CarriedOut::Refused(why) | CarriedOut::NotNow(why) = self.try_out(next) {
            return self.refused_here(plan, why);
        }
        if let Attempt::Behind = self.precede_plan(peers, silent, plan, next, order.needs_all())? {
            return Ok(None);
        }
        match self.carry_out(next) {
            CarriedOut::Done => {}
            CarriedOut::Older(_) | CarriedOut::Another(_) => return Ok(None),
            CarriedOut::Refused(why) | CarriedOut::NotNow(why) => {
                return self.refused_here(plan, why);
            }
        }
        let unreached = self.give_plan(peers, silent, next, order.purpose());
        self.plans.state.set_due(!unreached.is_empty());
        if !unreached.is_empty() {
            tracing::warn!(?unreached, "the cluster map has changed, and not on these nodes yet");
            self.retries.begin(true);
        }
        match self.obstacle(order) {
            None => Ok(Some(unreached)),
            Some(why) => {
                let why = format!("It is ordered, and not done on this node yet: {why}");
                Err(BucketRefusal::Failed(why))
            }
        }
    }

    /// This node does not take what follows `plan`: perhaps it has another plan by now.
    fn refused_here(
        &self,
        plan: &ClusterPlan,
        why: String,
    ) -> Result<Option<Vec<String>>, BucketRefusal> {
        if self.plan() == *plan { Err(BucketRefusal::Failed(why)) } else { Ok(None) }
    }

    /// Asks every member whether it could carry `next` out, which follows `plan`.
    fn ask_all(
        &self,
        peers: &PlanPeers,
        silent: &mut Silent<'_>,
        plan: &ClusterPlan,
        next: &ClusterPlan,
        needs_all: bool,
    ) -> Result<Attempt, BucketRefusal> {
        let (known, offer) = (plan.to_json(), next.to_json());
        for node in self.other_members(plan) {
            let name = &node.name;
            let purpose = OfferPurpose::Trial;
            let mut ask = |plan: &str| {
                silent.ask(node, || self.tell_plan(peers, node, PlanOffer { plan, purpose }))
            };
            match ask(&offer) {
                Ok(theirs) if self.catch_up(name, plan, &theirs)? => return Ok(Attempt::Behind),
                Ok(theirs) => check_follows(name, plan, &theirs)?,
                Err(error) if error.is::<PeerRefusal>() => {
                    // It may have taken somebody else's plan.
                    if let Ok(theirs) = ask(&known)
                        && self.catch_up(name, plan, &theirs)?
                    {
                        return Ok(Attempt::Behind);
                    }
                    let why = format!("{name} refuses it: {error:#}");
                    return Err(BucketRefusal::Invalid("_".to_owned(), why));
                }
                Err(error) if needs_all => return Err(no_answer(name, &error)),
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
        silent: &mut Silent<'_>,
        plan: &ClusterPlan,
        next: &ClusterPlan,
        needs_all: bool,
    ) -> Result<Attempt, BucketRefusal> {
        let offer = next.to_json();
        let before = self.this_node_in(plan).unwrap_or(0);
        for node in plan.nodes.iter().take(before) {
            let name = &node.name;
            let offered = PlanOffer { plan: &offer, purpose: OfferPurpose::Order };
            match silent.ask(node, || self.tell_plan(peers, node, offered)) {
                Ok(theirs) if theirs == *next => return Ok(Attempt::Done),
                Ok(theirs) if self.catch_up(name, plan, &theirs)? => return Ok(Attempt::Behind),
                Ok(_) => {
                    let why = format!("{name} has a newer cluster map; try again");
                    return Err(BucketRefusal::Failed(why));
                }
                // It has another plan by now.
                Err(error) if error.is::<PeerRefusal>() => return Ok(Attempt::Behind),
                // Two nodes could make two buckets of one name. It may have taken the plan, though.
                Err(error) if needs_all => return Err(no_answer(name, &error)),
                Err(_) => {}
            }
        }
        Ok(Attempt::Done)
    }

    /// Takes over what `name`, which has the plan `theirs`, knows of the buckets and `plan` does
    /// not. Whether there is anything.
    fn catch_up(
        &self,
        name: &str,
        plan: &ClusterPlan,
        theirs: &ClusterPlan,
    ) -> Result<bool, BucketRefusal> {
        let newer = plan.caught_up_with(theirs);
        newer.map_or(Ok(false), |newer| self.adopt_plan(name, &newer).map(|()| true))
    }

    /// Does this node's part of a plan that follows from the one of `name`.
    fn adopt_plan(&self, name: &str, plan: &ClusterPlan) -> Result<(), BucketRefusal> {
        match self.carry_out(plan) {
            // Whoever was faster has told this node more.
            CarriedOut::Done | CarriedOut::Older(_) | CarriedOut::Another(_) => Ok(()),
            CarriedOut::Refused(why) | CarriedOut::NotNow(why) => {
                let why = format!("the cluster map of {name} cannot be carried out here: {why}");
                Err(BucketRefusal::Failed(why))
            }
        }
    }

    /// Gives all other members a plan. Returns who was not reached.
    fn give_plan(
        &self,
        peers: &PlanPeers,
        silent: &mut Silent<'_>,
        plan: &ClusterPlan,
        purpose: OfferPurpose,
    ) -> Vec<String> {
        let text = plan.to_json();
        let mut unreached = Vec::new();
        for node in self.other_members(plan) {
            let offer = PlanOffer { plan: &text, purpose };
            match silent.ask(node, || self.tell_plan(peers, node, offer)) {
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

    /// Exchanges what is left to be, so that all nodes have what has changed of the buckets.
    pub(super) fn exchange_plans(&self) {
        let Some(peers) = self.plans.peers.get().filter(|_| self.plans.state.is_due()) else {
            return;
        };
        let _exchanging = self.plans.state.lock();
        // Before the exchange: a map that is carried out meanwhile sets it again, and that counts.
        self.plans.state.set_due(false);
        let members = self.plan();
        for node in self.other_members(&members) {
            if self.is_stopping() {
                return;
            }
            if let Err(error) = self.exchange_plan_with(peers, node) {
                tracing::debug!(node = node.name, "no plans are exchanged: {error:#}");
                self.plans.state.set_due(true);
            }
        }
    }

    fn exchange_plan_with(&self, peers: &PlanPeers, node: &PlannedNode) -> anyhow::Result<()> {
        let plan = self.plan();
        let text = plan.to_json();
        let tell = |purpose| self.tell_plan(peers, node, PlanOffer { plan: &text, purpose });
        // A trial tells what the node has.
        let theirs = tell(OfferPurpose::Trial)?;
        if self.catch_up(&node.name, &plan, &theirs)? || theirs.changes >= plan.changes {
            return Ok(());
        }
        let theirs = tell(OfferPurpose::Order)?;
        ensure!(theirs.changes >= plan.changes, "it has a plan that it prefers");
        Ok(())
    }

    /// The other nodes, if this one speaks with any.
    pub(super) fn plan_peers(&self) -> Option<&PlanPeers> {
        self.plans.peers.get()
    }

    /// The members of a plan but this node; none if this one is none.
    pub(super) fn other_members<'a>(&self, plan: &'a ClusterPlan) -> Vec<&'a PlannedNode> {
        let this = self.this_node_in(plan);
        let nodes = plan.nodes.iter().enumerate();
        let others = nodes.filter(|(index, _)| this.is_some_and(|this| this != *index));
        others.map(|(_, node)| node).collect()
    }

    /// Offers a node a plan. Returns the one that it has behind that.
    pub(super) fn tell_plan(
        &self,
        peers: &PlanPeers,
        node: &PlannedNode,
        offer: PlanOffer<'_>,
    ) -> anyhow::Result<ClusterPlan> {
        let theirs = peers.exchange(&node.address, offer)?;
        Ok(self.parse(&theirs)?)
    }
}

/// Whoever has another plan of this revision, or a newer one, would refuse what follows this one.
fn check_follows(
    name: &str,
    plan: &ClusterPlan,
    theirs: &ClusterPlan,
) -> Result<(), BucketRefusal> {
    let why = match theirs.revision.cmp(&plan.revision) {
        Ordering::Greater => "has a newer cluster map; try again",
        Ordering::Equal if theirs != plan => {
            "has another cluster map of this revision; hand both nodes one of a higher revision"
        }
        Ordering::Equal | Ordering::Less => return Ok(()),
    };
    Err(BucketRefusal::Failed(format!("{name} {why}")))
}

fn no_answer(name: &str, error: &anyhow::Error) -> BucketRefusal {
    let why = format!("{name} does not take part, try again when it does: {error:#}");
    BucketRefusal::Failed(why)
}
