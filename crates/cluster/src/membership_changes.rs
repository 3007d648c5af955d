//! The plan after a node is given up, or has come.

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
        for chain in &mut plan.chains {
            // Without an active copy there is nothing to copy.
            let has_active = chain.first().copied().flatten().is_some();
            let missing = chain.iter_mut().find(|holder| holder.is_none());
            if let Some(holder) = missing.filter(|_| has_active) {
                *holder = Some(index);
            }
        }
        Ok(plan)
    }

    /// The next plan, without the node of this index. Of each vBucket that was active there
    /// `choose` names the replica to be promoted, one of the indices that it is given; a vBucket
    /// without a replica has no active copy any more. Copies that are lost are not replaced.
    pub fn failed_over(
        &self,
        lost: usize,
        mut choose: impl FnMut(u16, &[usize]) -> usize,
    ) -> Result<Self, FailoverError> {
        if lost >= self.nodes.len() {
            return Err(FailoverError::NoSuchNode);
        }
        if self.nodes.len() == 1 {
            return Err(FailoverError::LastNode);
        }
        let mut plan = self.clone();
        plan.revision.revision += 1;
        plan.nodes.remove(lost);
        for (vbid, chain) in (0_u16..).zip(&mut plan.chains) {
            if chain.first() == Some(&Some(lost)) {
                promote(chain, |replicas| choose(vbid, replicas));
            }
            for holder in chain.iter_mut() {
                *holder = holder.filter(|&node| node != lost).map(|node| node - after(node, lost));
            }
        }
        Ok(plan)
    }

    /// The next plan for a node that is to hand over what it has active: it keeps still, and gives
    /// the replicas what they lack. Nobody else is told of it.
    pub fn held_still(&self, node: usize) -> Self {
        let mut plan = self.clone();
        plan.revision.revision += 1;
        let hands_over = |chain: &&mut Vec<Option<usize>>| is_replicated_from(node, chain);
        for chain in plan.chains.iter_mut().filter(hands_over) {
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
        mut choose: impl FnMut(u16, &[usize]) -> Option<usize>,
    ) -> Self {
        let mut plan = self.clone();
        plan.revision.revision += 1;
        for (vbid, chain) in (0_u16..).zip(&mut plan.chains) {
            if !is_replicated_from(node, chain) {
                continue;
            }
            let replicas: Vec<usize> = chain.iter().skip(1).copied().flatten().collect();
            if let Some(chosen) = choose(vbid, &replicas) {
                promote(chain, |_| chosen);
                if let Some(place) = chain.iter_mut().find(|holder| holder.is_none()) {
                    *place = Some(node);
                }
            }
        }
        plan
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

    #[test]
    fn replicas_take_the_places_of_what_is_lost() {
        let mut plan = ClusterPlan::balanced(nodes(4), 2, 8);
        plan.chains = vec![
            vec![Some(1), Some(0), Some(3)],
            vec![Some(1), Some(2), None],
            vec![Some(1), None, None],
            vec![Some(3), Some(1), Some(2)],
            vec![Some(0), Some(2), Some(3)],
            vec![None, Some(1), Some(0)],
            vec![Some(1), None, Some(3)],
            vec![Some(2), Some(3), Some(1)],
        ];
        let next = plan.failed_over(1, |_, replicas| replicas[replicas.len() - 1]).unwrap();
        assert_eq!(next.revision.revision, plan.revision.revision + 1);
        let names: Vec<&str> = next.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n_0@127.0.0.1", "n_2@127.0.0.1", "n_3@127.0.0.1"]);
        assert_eq!(
            next.chains,
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
        let plan = ClusterPlan::balanced(nodes(2), 1, 4);
        let alone = plan.failed_over(0, |_, _| 0).unwrap();
        assert_eq!(alone.joined(nodes(2)[1].clone()), Err(JoinError::AlreadyHere));
        let mut both = alone.joined(nodes(2)[0].clone()).unwrap();
        assert!(both.chains.iter().all(|chain| *chain == [Some(0), Some(1)]));
        assert_eq!(both.revision.revision, plan.revision.revision + 2);
        both.chains[0] = vec![None, Some(0)];
        let three = both.joined(nodes(3)[2].clone()).unwrap();
        assert_eq!(three.chains[0], [None, Some(0)], "nobody has what is lost");
        assert_eq!(three.chains[1], [Some(0), Some(1)], "no copy is missing");
        assert_eq!(three.check(), Ok(()));
    }

    #[test]
    fn a_node_hands_over_what_others_have_replicas_of() {
        let mut plan = ClusterPlan::balanced(nodes(3), 2, 4);
        plan.chains = vec![
            vec![Some(0), Some(1), Some(2)],
            vec![Some(0), Some(1), None],
            vec![Some(0), None, None],
            vec![Some(2), Some(0), Some(1)],
        ];
        let still = plan.held_still(0);
        assert_eq!(
            still.chains,
            [
                vec![None, Some(0), Some(1)],
                vec![None, Some(0), Some(1)],
                vec![Some(0), None, None],
                vec![Some(2), Some(0), Some(1)],
            ]
        );
        let next = plan.handed_over(0, |_, replicas| replicas.last().copied());
        assert_eq!(
            next.chains,
            [
                vec![Some(2), Some(1), Some(0)],
                vec![Some(1), Some(0), None],
                vec![Some(0), None, None],
                vec![Some(2), Some(0), Some(1)],
            ]
        );
        assert_eq!(plan.handed_over(0, |_, _| None).chains, plan.chains);
        for changed in [still, next] {
            assert_eq!(changed.revision.revision, plan.revision.revision + 1);
            assert_eq!(changed.check(), Ok(()));
        }
    }

    #[test]
    fn the_last_node_and_strangers_are_not_given_up() {
        let plan = ClusterPlan::balanced(nodes(2), 1, 4);
        assert_eq!(plan.failed_over(2, |_, _| 0), Err(FailoverError::NoSuchNode));
        let alone = plan.failed_over(0, |_, _| unreachable!("there is one replica")).unwrap();
        assert!(alone.chains.iter().all(|chain| *chain == [Some(0), None]));
        assert_eq!(alone.failed_over(0, |_, _| 0), Err(FailoverError::LastNode));
    }
}
