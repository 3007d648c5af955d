//! vBuckets that hold documents in memory alone, and are not made active where that would lose
//! them: a node that starts has nothing, and a replica follows whatever its active copy is.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use bucket::BucketType;
use cluster::{ClusterPlan, PendingVbucket};

use super::Membership;
use crate::peer_copies::{AskPeer, Copies};

/// What the members of a plan have answered, by their index in it.
type Answers = BTreeMap<usize, Result<Copies, String>>;

const NOT_ASKED: &str = "its documents are in memory alone, this node has started without them, \
                         and the nodes of its replicas have not been asked yet whether they hold \
                         any";

/// The vBuckets that wait, with the reason. Each was active here by the map that the node started
/// with, has replicas elsewhere, and is dead until these turn out to hold nothing, as in a new
/// cluster, or until a map makes something else of it.
#[derive(Debug, Default)]
pub(super) struct Waiting(BTreeMap<u16, String>);

impl Waiting {
    /// Those of a node that starts.
    fn at_start(plan: &ClusterPlan, this: usize) -> Self {
        let all = (0_u16..).zip(&plan.chains).map(|(vbid, _)| vbid);
        let wait = all.filter(|&vbid| !others(plan, this, vbid).is_empty());
        Self(wait.map(|vbid| (vbid, NOT_ASKED.to_owned())).collect())
    }

    /// A newer map: who is the only one to have a vBucket, or not active, does not wait.
    fn adapt(&mut self, plan: &ClusterPlan, this: usize) {
        self.0.retain(|&vbid, _| !others(plan, this, vbid).is_empty());
    }

    /// Ends the wait where everybody has answered and nobody holds anything.
    fn hear(&mut self, plan: &ClusterPlan, this: usize, answers: &Answers) {
        self.0.retain(|&vbid, reason| {
            let others = others(plan, this, vbid);
            let obstacle = others.iter().find_map(|&other| obstacle(plan, other, vbid, answers));
            obstacle.map(|obstacle| *reason = obstacle).is_some()
        });
    }

    /// The members that have to be asked.
    fn to_be_asked(&self, plan: &ClusterPlan, this: usize) -> Vec<usize> {
        let mut members: Vec<usize> =
            self.0.keys().flat_map(|&vbid| others(plan, this, vbid)).collect();
        members.sort_unstable();
        members.dedup();
        members
    }
}

/// The members with replicas of a vBucket that is active on `this`.
fn others(plan: &ClusterPlan, this: usize, vbid: u16) -> Vec<usize> {
    match plan.chains.get(usize::from(vbid)).map(Vec::as_slice) {
        Some([Some(active), replicas @ ..]) if *active == this => {
            replicas.iter().copied().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Why a vBucket may not begin empty, as far as one member says.
fn obstacle(plan: &ClusterPlan, member: usize, vbid: u16, answers: &Answers) -> Option<String> {
    let name = plan.nodes.get(member).map_or("", |node| node.name.as_str());
    match answers.get(&member) {
        None => Some(NOT_ASKED.to_owned()),
        Some(Ok(copies)) if copies.get(&vbid).is_none_or(|held| held.high_seqno == 0) => None,
        Some(Ok(_)) => Some(format!(
            "this node has started without its documents, which were in memory alone, and {name} \
             holds a replica of them: hand over a map that promotes it (`settee cluster-run \
             --failover` of this node, then --recover)"
        )),
        Some(Err(error)) => Some(format!(
            "this node has started without its documents, which were in memory alone, and {name}, \
             which may hold a replica of them, does not answer: start it, or hand over a map \
             without it ({error})"
        )),
    }
}

impl Membership {
    /// Has the node ask others with `ask`.
    pub(crate) fn ask_with(&self, ask: AskPeer) {
        assert!(self.ask_peer.set(ask).is_ok(), "there is one way to ask");
    }

    /// Which vBuckets wait by a plan that is about to be carried out.
    pub(super) fn adapt_waiting(&self, plan: &ClusterPlan, is_start: bool) {
        let mut waiting = self.lock_waiting();
        match self.this_node_in(plan) {
            None => *waiting = Waiting::default(),
            Some(this) if is_start && self.bucket.bucket_type() == BucketType::Ephemeral => {
                *waiting = Waiting::at_start(plan, this);
            }
            Some(this) => waiting.adapt(plan, this),
        }
    }

    /// A vBucket that waits is left, whatever else is.
    pub(super) fn waits(&self, vbid: u16) -> Option<PendingVbucket> {
        let reason = self.lock_waiting().0.get(&vbid)?.clone();
        Some(PendingVbucket { vbid, wanted: "active", reason })
    }

    /// Asks those for whom vBuckets wait. Not while a plan is carried out: answers take their time.
    pub(super) fn ask_peers(&self, plan: &ClusterPlan) -> Answers {
        let (Some(this), Some(ask)) = (self.this_node_in(plan), self.ask_peer.get()) else {
            return Answers::new();
        };
        let members = self.lock_waiting().to_be_asked(plan, this);
        let node = |member: usize| Some((member, plan.nodes.get(member)?));
        let answer = |(member, node): (usize, &cluster::PlannedNode)| {
            (member, ask(&node.address).map_err(|error| format!("{error:#}")))
        };
        members.into_iter().filter_map(node).map(answer).collect()
    }

    /// Takes what was answered about the plan that is carried out.
    pub(super) fn hear_peers(&self, plan: &ClusterPlan, answers: &Answers) {
        if let Some(this) = self.this_node_in(plan) {
            self.lock_waiting().hear(plan, this, answers);
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
