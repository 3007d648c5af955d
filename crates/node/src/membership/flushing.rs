//! A bucket that all nodes empty. Replicas follow their active copies, and until they have a
//! failover would bring back what was in them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use cluster::ClusterPlan;

use server::Followers;

use super::Membership;
use crate::peer_copies::{Copies, Held, OfferPurpose, PlanOffer};

impl Membership {
    /// Has every node of the cluster empty its part of a bucket, this one with `flush_here`, first,
    /// and waits until the replicas have followed: `pause` waits a moment, and says whether to look
    /// again.
    ///
    /// # Errors
    /// In words: some nodes may have emptied theirs. Nobody has where one does not answer before.
    pub fn flush_everywhere(
        &self,
        bucket: &str,
        flush_here: impl FnOnce() -> Result<(), String>,
        mut pause: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let plan = self.plan();
        let Some(peers) = self.plan_peers().filter(|_| !self.is_alone()) else {
            return flush_here();
        };
        let text = plan.to_json();
        let mut before = Vec::new();
        for node in self.other_members(&plan) {
            // A trial changes nothing: it is asked for the sake of the answer.
            let offer = PlanOffer { plan: &text, purpose: OfferPurpose::Trial };
            let asked = self.tell_plan(peers, node, offer);
            asked.map_err(|error| format!("{} does not answer: {error:#}", node.name))?;
            let member = plan.index_of(&node.name).expect("it is one of the plan's nodes");
            let held = self.copies_of_member(bucket, &plan, member);
            before.push((member, node, held.map_err(|error| format!("{error:#}"))?));
        }
        flush_here()?;
        for (member, node, before) in &before {
            if let Err(error) = peers.flush(&node.address, bucket) {
                self.check_emptied(bucket, &plan, *member, before)
                    .map_err(|why| format!("{why}; flush again: {error:#}"))?;
            }
        }
        let of_all = |_: usize| true;
        while let Followers::Behind(reason) | Followers::Silent(reason) =
            self.followers_in(bucket, &plan, of_all)
        {
            if !pause() {
                return Err(format!(
                    "The bucket is empty, but a failover could bring back what was in it: \
                     {reason}; flush again"
                ));
            }
        }
        Ok(())
    }

    /// Whether a member has emptied its part though it has not said so: it has waited in vain for
    /// its replicas, which are waited for here as well, or its answer was lost. What was emptied
    /// has another history than `before`.
    fn check_emptied(
        &self,
        bucket: &str,
        plan: &ClusterPlan,
        member: usize,
        before: &Copies,
    ) -> Result<(), String> {
        let now = self.copies_of_member(bucket, plan, member);
        let now = now.map_err(|error| format!("{error:#} whether it has emptied its part"))?;
        let is_as_before = |chain: &ActiveChain| {
            let held = now.get(&chain.vbid);
            chain.active == member
                && held.is_some_and(|it| {
                    before.get(&chain.vbid).is_some_and(|b| b.uuid() == it.uuid())
                })
        };
        let chains = active_chains(bucket, plan);
        let left: Vec<u16> =
            chains.iter().filter(|it| is_as_before(it)).map(|it| it.vbid).collect();
        match left.first() {
            None => Ok(()),
            Some(first) => Err(format!(
                "{} has not emptied its part: {} of its vBuckets are as they were, {first} among \
                 them",
                name_of(plan, member),
                left.len()
            )),
        }
    }

    /// Whether the replicas of a bucket's vBuckets that are active here have their histories.
    pub(crate) fn followers(&self, bucket: &str) -> Followers {
        if self.is_alone() {
            return Followers::Followed;
        }
        let plan = self.plan();
        let here = self.this_node_in(&plan);
        self.followers_in(bucket, &plan, |active| Some(active) == here)
    }

    /// The same of the vBuckets that are active on some members.
    fn followers_in(
        &self,
        bucket: &str,
        plan: &ClusterPlan,
        is_asked_for: impl Fn(usize) -> bool,
    ) -> Followers {
        let mut chains = active_chains(bucket, plan);
        chains.retain(|it| is_asked_for(it.active) && !it.replicas.is_empty());
        let mut copies = BTreeMap::new();
        // All are asked before anything is said of one: who is silent is to be known first.
        for ActiveChain { active, replicas, .. } in &chains {
            for &member in replicas.iter().chain([active]) {
                if let Entry::Vacant(unasked) = copies.entry(member) {
                    match self.copies_of_member(bucket, plan, member) {
                        Ok(held) => unasked.insert(held),
                        Err(error) => return Followers::Silent(format!("{error:#}")),
                    };
                }
            }
        }
        let mut behind = Vec::new();
        for ActiveChain { vbid, active, replicas } in &chains {
            let history = |member: &usize| copies.get(member)?.get(vbid)?.uuid();
            // A vBucket that the active node does not have has no history that anybody could
            // follow.
            let Some(current) = history(active) else { continue };
            let is_behind = |member: &&usize| history(member).is_some_and(|it| it != current);
            behind.extend(replicas.iter().filter(is_behind).map(|member| (*member, *vbid)));
        }
        match behind.first() {
            None => Followers::Followed,
            Some((member, vbid)) => Followers::Behind(format!(
                "{} still has what vBucket {vbid} was ({} copies have not followed)",
                name_of(plan, *member),
                behind.len()
            )),
        }
    }

    /// The copies that a member has, or this node itself.
    fn copies_of_member(
        &self,
        bucket: &str,
        plan: &ClusterPlan,
        member: usize,
    ) -> anyhow::Result<Copies> {
        let (node, ask) = (plan.nodes.get(member), self.ask_peer.get());
        if let (Some(node), Some(ask)) = (node, ask)
            && self.this_node_in(plan) != Some(member)
        {
            let uuid = plan.buckets.get(bucket).and_then(|planned| planned.uuid);
            let asked = ask(&node.address, (bucket, uuid));
            return asked.map_err(|error| error.context(format!("{} does not say", node.name)));
        }
        let mut copies = Copies::new();
        if let Some(member) = self.member(bucket) {
            member.bucket.for_each_vbucket(|vbid, vbucket| {
                let branches = vbucket.failover_entries().to_vec();
                let held = Held { branches, ..Held::default() };
                copies.insert(vbid.0, held);
            });
        }
        Ok(copies)
    }
}

/// Who holds a vBucket that has an active copy, by their indices in the plan.
struct ActiveChain {
    vbid: u16,
    active: usize,
    replicas: Vec<usize>,
}

/// Those of a bucket.
fn active_chains(bucket: &str, plan: &ClusterPlan) -> Vec<ActiveChain> {
    let chains = plan.buckets.get(bucket).map_or(&[][..], |planned| planned.chains.as_slice());
    let chains = (0_u16..).zip(chains).filter_map(|(vbid, chain)| match chain.as_slice() {
        [Some(active), replicas @ ..] => {
            let replicas = replicas.iter().copied().flatten().collect();
            Some(ActiveChain { vbid, active: *active, replicas })
        }
        _ => None,
    });
    chains.collect()
}

fn name_of(plan: &ClusterPlan, member: usize) -> &str {
    plan.nodes.get(member).map_or("", |node| node.name.as_str())
}
