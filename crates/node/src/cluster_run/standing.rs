//! How far the copies of vBuckets are that could be promoted.

use std::collections::{BTreeMap, BTreeSet};

use cluster::ClusterPlan;

use crate::peer_copies::Held;

/// What members hold, by their index in the plan. Who did not answer is not in it.
#[derive(Default)]
pub(super) struct Standing(BTreeMap<usize, BTreeMap<u16, Held>>);

impl Standing {
    pub(super) fn add(&mut self, member: usize, copies: BTreeMap<u16, Held>) {
        self.0.insert(member, copies);
    }

    /// The replica that is the furthest: by what it holds of durable writes, then by what else it
    /// has; the first of those that are equally far. `None` if none of them has answered.
    pub(super) fn furthest(&self, vbid: u16, replicas: &[usize]) -> Option<usize> {
        let held = |replica: &usize| self.0.get(replica).map(|copies| copies.get(&vbid).copied());
        let known = replicas.iter().copied().filter(|replica| self.0.contains_key(replica));
        // `max_by_key` takes the last of several.
        known.rev().max_by_key(held)
    }

    /// Whether some of these replicas has everything up to `high_seqno`.
    pub(super) fn has_reached(&self, vbid: u16, replicas: &[usize], high_seqno: u64) -> bool {
        let has = |replica: &usize| self.0.get(replica)?.get(&vbid).map(|held| held.high_seqno);
        replicas.iter().filter_map(has).any(|reached| reached >= high_seqno)
    }
}

/// The vBuckets that are active on a member and have replicas, with these.
pub(super) fn replicas_of(plan: &ClusterPlan, member: usize) -> BTreeMap<u16, Vec<usize>> {
    let chains = (0_u16..).zip(&plan.chains);
    let active = chains.filter(|(_, chain)| chain.first() == Some(&Some(member)));
    let replicas = active.map(|(vbid, chain)| {
        let replicas: Vec<usize> = chain.iter().skip(1).copied().flatten().collect();
        (vbid, replicas)
    });
    replicas.filter(|(_, replicas)| !replicas.is_empty()).collect()
}

/// The members between whom there is a choice when one is given up.
pub(super) fn candidates(plan: &ClusterPlan, lost: usize) -> BTreeSet<usize> {
    let replicas = replicas_of(plan, lost).into_values();
    replicas.filter(|replicas| replicas.len() > 1).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(prepared_seqno: u64, high_seqno: u64) -> BTreeMap<u16, Held> {
        BTreeMap::from([(7, Held { prepared_seqno, high_seqno })])
    }

    #[test]
    fn the_replica_that_is_the_furthest_is_chosen() {
        for (first, second, chosen) in [
            (held(5, 9), held(6, 7), 2),
            (held(5, 8), held(5, 9), 2),
            (held(5, 9), held(5, 9), 1),
            (BTreeMap::new(), held(0, 0), 2),
        ] {
            let mut standing = Standing::default();
            standing.add(1, first);
            standing.add(2, second);
            assert_eq!(standing.furthest(7, &[1, 2]), Some(chosen));
        }
    }

    #[test]
    fn who_does_not_answer_is_not_chosen() {
        let mut standing = Standing::default();
        assert_eq!(standing.furthest(7, &[1, 2]), None);
        standing.add(2, held(0, 3));
        assert_eq!(standing.furthest(7, &[1, 2]), Some(2));
        assert!(standing.has_reached(7, &[1, 2], 3) && !standing.has_reached(7, &[1, 2], 4));
    }

    #[test]
    fn candidates_are_those_between_whom_there_is_a_choice() {
        let address = |port| cluster::NodeAddress {
            host: "h".to_owned(),
            data_port: port,
            management_port: port,
        };
        let node = |index: u16| cluster::PlannedNode {
            name: index.to_string(),
            address: address(index + 1),
        };
        let mut plan = ClusterPlan::balanced((0..4).map(node).collect(), 2, 4);
        plan.chains = vec![
            vec![Some(0), Some(1), None],
            vec![Some(1), Some(0), Some(2)],
            vec![Some(0), None, None],
            vec![None, Some(0), Some(3)],
        ];
        assert_eq!(candidates(&plan, 0), BTreeSet::new());
        assert_eq!(candidates(&plan, 1), BTreeSet::from([0, 2]));
        assert_eq!(replicas_of(&plan, 0), BTreeMap::from([(0, vec![1])]));
    }
}
