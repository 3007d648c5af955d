//! The plan after a node is given up, or has come.

use std::collections::BTreeMap;

use crate::bucket_plan::BucketPlan;
use crate::plan::{ClusterPlan, PlannedNode};

/// Why a node cannot be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailoverError {
    /// The plan has no such node. Nothing is to be done.
    #[error("the cluster has no such node")]
    NoSuchNode,
    /// It is the only one: nobody could take over.
    #[error("it is the cluster's only node")]
    LastNode,
}

/// Why a node cannot come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The plan has a node of that name or address.
    #[error("the cluster has this node already")]
    AlreadyHere,
}

impl ClusterPlan {
    /// The next plan, with one more node: it holds the copies that are missing, as a replica.
    pub fn joined(&self, node: PlannedNode) -> Result<Self, JoinError> {
        let is_here = |known: &PlannedNode| {
            known.name == node.name
                || (&known.address.host, known.address.data_port)
                    == (&node.address.host, node.address.data_port)
        };
        if self.nodes.iter().any(is_here) {
            return Err(JoinError::AlreadyHere);
        }
        let mut plan = self.clone();
        plan.revision.revision += 1;
        let index = plan.nodes.len();
        plan.nodes.push(node);
        plan.chains_mut().for_each(|chain| hold_missing(chain, index));
        Ok(plan)
    }

    /// The vBuckets that no node has active, by bucket.
    pub fn unserved(&self) -> BTreeMap<String, Vec<u16>> {
        let of_bucket = |(name, bucket): (&String, &BucketPlan)| {
            let chains = (0_u16..).zip(&bucket.chains);
            let unserved = chains.filter(|(_, chain)| chain.first() == Some(&None));
            let unserved: Vec<u16> = unserved.map(|(vbid, _)| vbid).collect();
            (!unserved.is_empty()).then(|| (name.clone(), unserved))
        };
        self.buckets.iter().filter_map(of_bucket).collect()
    }

    /// The next plan, in which vBuckets that no node has active are served again: `choose` names
    /// the node of each whose copy begins to count. Where such a chain has a place left, the node
    /// of the index `and` holds a replica.
    #[must_use]
    pub fn revived(&self, and: usize, mut choose: impl FnMut(&str, u16) -> Option<usize>) -> Self {
        let mut plan = self.clone();
        plan.revision.revision += 1;
        let unserved = |(_, _, chain): &(&str, u16, &mut Vec<_>)| chain.first() == Some(&None);
        for (bucket, vbid, chain) in plan.named_chains_mut().filter(unserved) {
            if let Some(chosen) = choose(bucket, vbid) {
                begin_with(chain, chosen);
                hold_missing(chain, and);
            }
        }
        plan
    }

    /// The next plan, without the node of this index. Of each vBucket of each bucket that was
    /// active there `choose` names the replica to be promoted, one of the indices that it is given;
    /// a vBucket without a replica has no active copy any more. Copies that are lost are not
    /// replaced.
    pub fn failed_over(
        &self,
        lost: usize,
        mut choose: impl FnMut(&str, u16, &[usize]) -> usize,
    ) -> Result<Self, FailoverError> {
        let mut promoted = self.clone();
        for (bucket, vbid, chain) in promoted.named_chains_mut() {
            if chain.first() == Some(&Some(lost)) {
                promote(chain, |replicas| choose(bucket, vbid, replicas));
            }
        }
        promoted.without(lost)
    }

    /// The next plan without a node that is given up, in which nobody takes its place: of what it
    /// had active there are replicas alone. Who carries it out follows the node no more, so that
    /// nothing comes to be held, or acknowledged, while it is found out who is to be promoted.
    pub fn without(&self, lost: usize) -> Result<Self, FailoverError> {
        if lost >= self.nodes.len() {
            return Err(FailoverError::NoSuchNode);
        }
        if self.nodes.len() == 1 {
            return Err(FailoverError::LastNode);
        }
        let mut plan = self.clone();
        plan.revision.revision += 1;
        plan.nodes.remove(lost);
        for holder in plan.chains_mut().flatten() {
            *holder = holder.filter(|&node| node != lost).map(|node| node - after(node, lost));
        }
        Ok(plan)
    }

    /// The next plan for a node that is to hand over what it has active: it keeps still, and gives
    /// the replicas what they lack. Nobody else is told of it.
    pub fn held_still(&self, node: usize) -> Self {
        let mut plan = self.clone();
        plan.revision.revision += 1;
        let hands_over = |chain: &&mut Vec<Option<usize>>| is_replicated_from(node, chain);
        for chain in plan.chains_mut().filter(hands_over) {
            chain.insert(0, None);
            chain.pop();
        }
        plan
    }

    /// The next plan, in which a node is a replica of what it has active, wherever `choose` names
    /// another node's replica that becomes active in its place.
    pub fn handed_over(
        &self,
        node: usize,
        mut choose: impl FnMut(&str, u16, &[usize]) -> Option<usize>,
    ) -> Self {
        let mut plan = self.clone();
        plan.revision.revision += 1;
        for (bucket, vbid, chain) in plan.named_chains_mut() {
            if !is_replicated_from(node, chain) {
                continue;
            }
            let replicas: Vec<usize> = chain.iter().skip(1).copied().flatten().collect();
            if let Some(chosen) = choose(bucket, vbid, &replicas) {
                promote(chain, |_| chosen);
                if let Some(place) = chain.iter_mut().find(|holder| holder.is_none()) {
                    *place = Some(node);
                }
            }
        }
        plan
    }

    fn chains_mut(&mut self) -> impl Iterator<Item = &mut Vec<Option<usize>>> {
        self.buckets.values_mut().flat_map(|bucket| &mut bucket.chains)
    }

    /// Every chain, with its bucket and vBucket.
    fn named_chains_mut(&mut self) -> impl Iterator<Item = (&str, u16, &mut Vec<Option<usize>>)> {
        self.buckets.iter_mut().flat_map(|(name, bucket)| {
            let chains = (0_u16..).zip(&mut bucket.chains);
            chains.map(|(vbid, chain)| (name.as_str(), vbid, chain))
        })
    }
}

/// Whether a chain begins at `node` and goes on at others.
fn is_replicated_from(node: usize, chain: &[Option<usize>]) -> bool {
    chain.first() == Some(&Some(node)) && chain.iter().skip(1).any(Option::is_some)
}

/// How far the index of `node` moves when `lost` is taken out.
fn after(node: usize, lost: usize) -> usize {
    usize::from(node > lost)
}

/// Has `node` hold a copy that is missing. Without an active one there is nothing to copy.
fn hold_missing(chain: &mut [Option<usize>], node: usize) {
    let has_active = chain.first().copied().flatten().is_some();
    let missing = chain.iter().position(Option::is_none);
    if has_active
        && !chain.contains(&Some(node))
        && let Some(place) = missing.and_then(|missing| chain.get_mut(missing))
    {
        *place = Some(node);
    }
}

/// Has a chain that nobody has active begin with `node`, which may have had a place behind that.
fn begin_with(chain: &mut Vec<Option<usize>>, node: usize) {
    let length = chain.len();
    chain.retain(|holder| holder.is_some_and(|holder| holder != node));
    chain.insert(0, Some(node));
    chain.resize(length, None);
}

/// Puts a replica into the first place; the others move up.
fn promote(chain: &mut Vec<Option<usize>>, choose: impl FnOnce(&[usize]) -> usize) {
    let length = chain.len();
    let mut replicas: Vec<usize> = chain.iter().skip(1).copied().flatten().collect();
    let chosen = match replicas.as_slice() {
        [] => None,
        [only] => Some(*only),
        several => Some(choose(several)),
    };
    assert!(chosen.is_none_or(|chosen| replicas.contains(&chosen)), "a replica is promoted");
    replicas.retain(|&replica| Some(replica) != chosen);
    *chain = std::iter::once(chosen).chain(replicas.into_iter().map(Some)).collect();
    chain.resize(length, None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::nodes;

    /// A plan of one bucket.
    fn balanced(node_count: u16, replica_count: usize, vbucket_count: u16) -> ClusterPlan {
        let bucket = BucketPlan::balanced(node_count.into(), replica_count, vbucket_count);
        ClusterPlan::of_nodes(nodes(node_count)).with_bucket("b", bucket)
    }

    fn with_chains(mut plan: ClusterPlan, chains: Vec<Vec<Option<usize>>>) -> ClusterPlan {
        plan.buckets.get_mut("b").unwrap().chains = chains;
        plan
    }

    fn chains(plan: &ClusterPlan) -> &[Vec<Option<usize>>] {
        &plan.buckets["b"].chains
    }

    #[test]
    fn replicas_take_the_places_of_what_is_lost() {
        let chains_before = vec![
            vec![Some(1), Some(0), Some(3)],
            vec![Some(1), Some(2), None],
            vec![Some(1), None, None],
            vec![Some(3), Some(1), Some(2)],
            vec![Some(0), Some(2), Some(3)],
            vec![None, Some(1), Some(0)],
            vec![Some(1), None, Some(3)],
            vec![Some(2), Some(3), Some(1)],
        ];
        let plan = with_chains(balanced(4, 2, 8), chains_before);
        let next = plan.failed_over(1, |_, _, replicas| replicas[replicas.len() - 1]).unwrap();
        assert_eq!(next.revision.revision, plan.revision.revision + 1);
        let names: Vec<&str> = next.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n_0@127.0.0.1", "n_2@127.0.0.1", "n_3@127.0.0.1"]);
        assert_eq!(
            chains(&next),
            [
                vec![Some(2), Some(0), None],
                vec![Some(1), None, None],
                vec![None, None, None],
                vec![Some(2), None, Some(1)],
                vec![Some(0), Some(1), Some(2)],
                vec![None, None, Some(0)],
                vec![Some(2), None, None],
                vec![Some(1), Some(2), None],
            ]
        );
        assert_eq!(next.check(), Ok(()));
    }

    #[test]
    fn who_comes_back_holds_the_copies_that_are_missing() {
        let plan = balanced(2, 1, 4);
        let alone = plan.failed_over(0, |_, _, _| 0).unwrap();
        assert_eq!(alone.joined(nodes(2)[1].clone()), Err(JoinError::AlreadyHere));
        let mut both = alone.joined(nodes(2)[0].clone()).unwrap();
        assert!(chains(&both).iter().all(|chain| *chain == [Some(0), Some(1)]));
        assert_eq!(both.revision.revision, plan.revision.revision + 2);
        both.buckets.get_mut("b").unwrap().chains[0] = vec![None, Some(0)];
        let three = both.joined(nodes(3)[2].clone()).unwrap();
        assert_eq!(chains(&three)[0], [None, Some(0)], "nobody has what is lost");
        assert_eq!(chains(&three)[1], [Some(0), Some(1)], "no copy is missing");
        assert_eq!(three.check(), Ok(()));
    }

    #[test]
    fn what_nobody_serves_is_revived_where_a_copy_is_and_copied_to_who_comes() {
        let chains_before =
            vec![vec![None, None], vec![None, Some(1)], vec![Some(0), None], vec![None, None]];
        let plan = with_chains(balanced(2, 1, 4), chains_before);
        assert_eq!(plan.unserved(), BTreeMap::from([("b".to_owned(), vec![0, 1, 3])]));
        let mut asked = Vec::new();
        let next = plan.revived(1, |bucket, vbid| {
            asked.push((bucket.to_owned(), vbid));
            [Some(1), Some(0), None, None][usize::from(vbid)]
        });
        assert_eq!(asked, [0, 1, 3].map(|vbid| ("b".to_owned(), vbid)));
        assert_eq!(
            chains(&next),
            [vec![Some(1), None], vec![Some(0), Some(1)], vec![Some(0), None], vec![None, None],],
            "what is served already stays as it is"
        );
        assert_eq!(chains(&plan.revived(0, |_, _| Some(1)))[0], [Some(1), Some(0)]);
        assert_eq!(next.revision.revision, plan.revision.revision + 1);
        assert_eq!(next.unserved(), BTreeMap::from([("b".to_owned(), vec![3])]));
        assert_eq!(next.check(), Ok(()));
        assert!(balanced(2, 1, 4).unserved().is_empty());
    }

    #[test]
    fn a_node_hands_over_what_others_have_replicas_of() {
        let chains_before = vec![
            vec![Some(0), Some(1), Some(2)],
            vec![Some(0), Some(1), None],
            vec![Some(0), None, None],
            vec![Some(2), Some(0), Some(1)],
        ];
        let plan = with_chains(balanced(3, 2, 4), chains_before);
        let still = plan.held_still(0);
        assert_eq!(
            chains(&still),
            [
                vec![None, Some(0), Some(1)],
                vec![None, Some(0), Some(1)],
                vec![Some(0), None, None],
                vec![Some(2), Some(0), Some(1)],
            ]
        );
        let next = plan.handed_over(0, |_, _, replicas| replicas.last().copied());
        assert_eq!(
            chains(&next),
            [
                vec![Some(2), Some(1), Some(0)],
                vec![Some(1), Some(0), None],
                vec![Some(0), None, None],
                vec![Some(2), Some(0), Some(1)],
            ]
        );
        assert_eq!(chains(&plan.handed_over(0, |_, _, _| None)), chains(&plan));
        for changed in [still, next] {
            assert_eq!(changed.revision.revision, plan.revision.revision + 1);
            assert_eq!(changed.check(), Ok(()));
        }
    }

    #[test]
    fn the_last_node_and_strangers_are_not_given_up() {
        let plan = balanced(2, 1, 4);
        assert_eq!(plan.failed_over(2, |_, _, _| 0), Err(FailoverError::NoSuchNode));
        let alone = plan.failed_over(0, |_, _, _| unreachable!("there is one replica")).unwrap();
        assert!(chains(&alone).iter().all(|chain| *chain == [Some(0), None]));
        assert_eq!(alone.failed_over(0, |_, _, _| 0), Err(FailoverError::LastNode));
    }

    #[test]
    fn every_bucket_changes_with_the_nodes_and_is_chosen_for_by_name() {
        let plan = balanced(3, 2, 1).with_bucket("c", BucketPlan::balanced(3, 2, 2));
        let mut asked = Vec::new();
        let next = plan.failed_over(0, |bucket, vbid, replicas| {
            asked.push((bucket.to_owned(), vbid));
            replicas[if bucket == "b" { 0 } else { 1 }]
        });
        let next = next.unwrap();
        assert_eq!(asked, [("b".to_owned(), 0), ("c".to_owned(), 0)]);
        assert_eq!(chains(&next), [[Some(0), Some(1), None]]);
        assert_eq!(next.buckets["c"].chains, [[Some(1), Some(0), None], [Some(0), Some(1), None]]);
        let back = next.joined(nodes(1)[0].clone()).unwrap();
        let mut holders = back.buckets.values().flat_map(|bucket| bucket.chains.iter().flatten());
        assert!(holders.all(Option::is_some));
        let still = plan.held_still(0);
        assert_eq!(chains(&still)[0][0], None);
        assert_eq!(still.buckets["c"].chains[0][0], None);
        for changed in [next, back, still] {
            assert_eq!(changed.check(), Ok(()));
        }
    }
}
