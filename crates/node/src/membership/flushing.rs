//! A bucket that all nodes empty. Replicas follow their active copies, and until they have a
//! failover would bring back what was in them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use cluster::ClusterPlan;

use server::Followers;

use super::Membership;
use crate::peer_copies::{Copies, Held, PlanOffer};

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
        for node in self.other_members(&plan) {
            let asked = self.tell_plan(peers, node, PlanOffer { plan: &text, is_trial: true });
            asked.map_err(|error| format!("{} does not answer: {error:#}", node.name))?;
        }
        flush_here()?;
        for node in self.other_members(&plan) {
            let flushed = peers.flush(&node.address, bucket);
            flushed.map_err(|error| {
                format!("{} has not emptied its part; flush again: {error:#}", node.name)
            })?;
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
        let Some(planned) = plan.buckets.get(bucket) else { return Followers::Followed };
        // The member with the active copy, and those with others.
        let mut chains: Vec<(u16, usize, Vec<usize>)> = Vec::new();
        for (vbid, chain) in (0_u16..).zip(&planned.chains) {
            if let [Some(active), replicas @ ..] = chain.as_slice()
                && is_asked_for(*active)
            {
                chains.push((vbid, *active, replicas.iter().copied().flatten().collect()));
            }
        }
        chains.retain(|(_, _, replicas)| !replicas.is_empty());
        let mut copies = BTreeMap::new();
        // All are asked before anything is said of one: who is silent is to be known first.
        for (_, active, replicas) in &chains {
            for &member in replicas.iter().chain([active]) {
                if let Entry::Vacant(unasked) = copies.entry(member) {
                    match self.copies_of_member(bucket, plan, member) {
                        Ok(held) => unasked.insert(held),
                        Err(error) => return Followers::Silent(format!("{error:#}")),
                    };
                }
            }
        }
        for (vbid, active, replicas) in &chains {
            let history = |member: &usize| Some(copies.get(member)?.get(vbid)?.uuid);
            let Some(current) = history(active) else { continue };
            let is_behind = |member: &&usize| history(member).is_some_and(|it| it != current);
            if let Some(member) = replicas.iter().find(is_behind) {
                let name = plan.nodes.get(*member).map_or("", |node| node.name.as_str());
                return Followers::Behind(format!("{name} still has what vBucket {vbid} was"));
            }
        }
        Followers::Followed
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
            let asked = ask(&node.address, bucket);
            return asked.map_err(|error| error.context(format!("{} does not say", node.name)));
        }
        let mut copies = Copies::new();
        if let Some(member) = self.member(bucket) {
            member.bucket.for_each_vbucket(|vbid, vbucket| {
                let held = Held { uuid: vbucket.uuid().0, ..Held::default() };
                copies.insert(vbid.0, held);
            });
        }
        Ok(copies)
    }
}
