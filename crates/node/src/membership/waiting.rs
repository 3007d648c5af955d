//! vBuckets of which a node that starts has nothing, though the map has them active on it: their
//! documents were in memory alone, or its disk was lost. They are not made active and empty while
//! others may hold them: a replica follows whatever its active copy is.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use cluster::{BucketPlan, ClusterPlan, PendingVbucket, PlannedNode};
use document::{Vbid, VbucketState};

use super::bucket_member::BucketMember;
use super::silent::Silent;
use crate::peer_copies::{AskPeer, Copies};

/// What the members of a plan have answered, by their index in it.
pub(super) type Answers = BTreeMap<usize, Result<Copies, String>>;

const NOT_ASKED: &str = "this node has started without its documents, and the nodes of its \
                         replicas have not been asked yet whether they hold any";

/// The vBuckets that wait, with the reason. Each is active here by the map that the node started
/// with, has replicas elsewhere, and nothing of it is here; it is dead until these turn out to hold
/// nothing, as in a new cluster, or until a map makes something else of it.
#[derive(Debug, Default)]
pub(super) struct Waiting(BTreeMap<u16, String>);

impl Waiting {
    /// Those of a node that starts and has begun some of its vBuckets.
    fn at_start(plan: &BucketPlan, this: usize, has_begun: impl Fn(u16) -> bool) -> Self {
        let all = (0_u16..).zip(&plan.chains).map(|(vbid, _)| vbid);
        let wait = all.filter(|&vbid| !others(plan, this, vbid).is_empty() && !has_begun(vbid));
        Self(wait.map(|vbid| (vbid, NOT_ASKED.to_owned())).collect())
    }

    /// A newer map: who is the only one to have a vBucket, or not active, does not wait.
    fn adapt(&mut self, plan: &BucketPlan, this: usize) {
        self.0.retain(|&vbid, _| !others(plan, this, vbid).is_empty());
    }

    /// Ends the wait where everybody has answered and nobody holds anything.
    fn hear(&mut self, nodes: &[PlannedNode], plan: &BucketPlan, this: usize, answers: &Answers) {
        self.0.retain(|&vbid, reason| {
            let others = others(plan, this, vbid);
            let obstacle = others.iter().find_map(|&other| obstacle(nodes, other, vbid, answers));
            obstacle.map(|obstacle| *reason = obstacle).is_some()
        });
    }

    /// The members that have to be asked.
    fn to_be_asked(&self, plan: &BucketPlan, this: usize) -> Vec<usize> {
        let mut members: Vec<usize> =
            self.0.keys().flat_map(|&vbid| others(plan, this, vbid)).collect();
        members.sort_unstable();
        members.dedup();
        assert!(!members.contains(&this), "a node does not ask itself for what it lacks");
        members
    }
}

/// The members with replicas of a vBucket that is active on `this`.
fn others(plan: &BucketPlan, this: usize, vbid: u16) -> Vec<usize> {
    match plan.chain(vbid) {
        [Some(active), replicas @ ..] if *active == this => {
            replicas.iter().copied().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Why a vBucket may not begin empty, as far as one member says.
fn obstacle(nodes: &[PlannedNode], member: usize, vbid: u16, answers: &Answers) -> Option<String> {
    let name = nodes.get(member).map_or("", |node| node.name.as_str());
    match answers.get(&member) {
        None => Some(NOT_ASKED.to_owned()),
        Some(Ok(copies)) if copies.get(&vbid).is_none_or(|held| held.high_seqno == 0) => None,
        Some(Ok(_)) => Some(format!(
            "this node has started without its documents, and {name} holds a replica of them: hand \
             over a map that promotes it (`settee cluster-run --failover` of this node, then \
             --recover)"
        )),
        Some(Err(error)) => Some(format!(
            "this node has started without its documents, and {name}, which may hold a replica of \
             them, does not answer: start it, or hand over a map without it ({error})"
        )),
    }
}

impl BucketMember {
    /// Which vBuckets wait by a plan that `this` node is about to carry out.
    pub(super) fn adapt_waiting(&self, plan: &ClusterPlan, this: Option<usize>, is_start: bool) {
        let mut waiting = self.lock_waiting();
        match (this, plan.buckets.get(self.name())) {
            (None, _) | (_, None) => *waiting = Waiting::default(),
            (Some(this), Some(plan)) if is_start => {
                *waiting = Waiting::at_start(plan, this, |vbid| self.has_begun(Vbid(vbid)));
            }
            (Some(this), Some(plan)) => waiting.adapt(plan, this),
        }
    }

    /// Whether this node has anything of a vBucket, if it be that a map made it active here, or a
    /// damaged file.
    fn has_begun(&self, vbid: Vbid) -> bool {
        let mut begun = self.bucket.damage_of(vbid).is_some();
        self.bucket.with_vbucket(vbid, |vbucket| {
            let was_active =
                vbucket.state() == VbucketState::Active && !vbucket.topology().is_empty();
            begun |= vbucket.has_history() || was_active;
        });
        begun
    }

    /// A vBucket that waits is left, whatever else is.
    pub(super) fn waits(&self, vbid: u16) -> Option<PendingVbucket> {
        let reason = self.lock_waiting().0.get(&vbid)?.clone();
        Some(PendingVbucket { vbid, wanted: "active", reason })
    }

    /// Asks those for whom vBuckets wait.
    pub(super) fn ask_peers(
        &self,
        plan: &ClusterPlan,
        this: usize,
        ask: &AskPeer,
        silent: &mut Silent<'_>,
    ) -> Answers {
        let Some(bucket) = plan.buckets.get(self.name()) else { return Answers::new() };
        // The lock ends with this line: others are asked without it.
        let members = self.lock_waiting().to_be_asked(bucket, this);
        let node = |member: usize| Some((member, plan.nodes.get(member)?));
        let answer = |(member, node): (usize, &PlannedNode)| {
            let answer = silent.ask(node, || ask(&node.address, (self.name(), bucket.uuid)));
            (member, answer.map_err(|error| format!("{error:#}")))
        };
        members.into_iter().filter_map(node).map(answer).collect()
    }

    /// Takes what was answered about the plan that is carried out.
    pub(super) fn hear_peers(&self, plan: &ClusterPlan, this: Option<usize>, answers: &Answers) {
        if let (Some(this), Some(bucket)) = (this, plan.buckets.get(self.name())) {
            self.lock_waiting().hear(&plan.nodes, bucket, this, answers);
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
