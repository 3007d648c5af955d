//! How far the copies of vBuckets are that could be promoted.

use std::collections::BTreeMap;

use cluster::BucketPlan;
use node::Held;

/// What members hold, by their index in the plan. Who did not answer is not in it.
#[derive(Default)]
pub(super) struct Standing(BTreeMap<usize, BTreeMap<u16, Held>>);

impl Standing {
    pub(super) fn add(&mut self, member: usize, copies: BTreeMap<u16, Held>) {
        let before = self.0.insert(member, copies);
        assert!(before.is_none(), "a member says once how far it is");
    }

    /// The replica that is the furthest: a whole one, by what it holds of durable writes, then by
    /// what else it has; the first of those that are equally far. `None` if none of them has
    /// answered.
    pub(super) fn furthest(&self, vbid: u16, replicas: &[usize]) -> Option<usize> {
        let held = |replica: &usize| self.0.get(replica).map(|copies| copies.get(&vbid).copied());
        let known = replicas.iter().copied().filter(|replica| self.0.contains_key(replica));
        // `max_by_key` takes the last of several.
        known.rev().max_by_key(held)
    }

    /// The vBuckets of which no replica is whole, as far as these have answered.
    pub(super) fn not_whole(&self, replicas: &BTreeMap<u16, Vec<usize>>) -> Vec<u16> {
        let is_lacking = |(&vbid, replicas): (&u16, &Vec<usize>)| {
            let copies = self.0.get(&self.furthest(vbid, replicas)?)?;
            let is_whole = copies.get(&vbid).is_some_and(|held| held.is_whole);
            (!is_whole).then_some(vbid)
        };
        replicas.iter().filter_map(is_lacking).collect()
    }

    /// Whether some of these replicas has everything up to `high_seqno`.
    pub(super) fn has_reached(&self, vbid: u16, replicas: &[usize], high_seqno: u64) -> bool {
        let has = |replica: &usize| self.0.get(replica)?.get(&vbid).map(|held| held.high_seqno);
        replicas.iter().filter_map(has).any(|reached| reached >= high_seqno)
    }
}

/// The vBuckets that are active on a member and have replicas, with these.
pub(super) fn replicas_of(plan: &BucketPlan, member: usize) -> BTreeMap<u16, Vec<usize>> {
    let chains = (0_u16..).zip(&plan.chains);
    let active = chains.filter(|(_, chain)| chain.first() == Some(&Some(member)));
    let replicas = active.map(|(vbid, chain)| {
        let replicas: Vec<usize> = chain.iter().skip(1).copied().flatten().collect();
        (vbid, replicas)
    });
    replicas.filter(|(_, replicas)| !replicas.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(prepared_seqno: u64, high_seqno: u64) -> BTreeMap<u16, Held> {
        BTreeMap::from([(7, Held { is_whole: true, prepared_seqno, high_seqno })])
    }

    fn in_part(prepared_seqno: u64, high_seqno: u64) -> BTreeMap<u16, Held> {
        BTreeMap::from([(7, Held { is_whole: false, prepared_seqno, high_seqno })])
    }

    #[test]
    fn the_replica_that_is_the_furthest_is_chosen() {
        for (first, second, chosen) in [
            (held(5, 9), held(6, 7), 2),
            (held(5, 8), held(5, 9), 2),
            (held(5, 9), held(5, 9), 1),
            (BTreeMap::new(), held(0, 0), 2),
            (in_part(5, 9), held(0, 1), 2),
            (in_part(5, 9), in_part(6, 1), 2),
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
    fn a_vbucket_lacks_something_where_nobody_who_answers_is_whole() {
        let replicas = BTreeMap::from([(7, vec![1, 2])]);
        for (first, second, not_whole) in [
            (Some(held(0, 0)), Some(in_part(5, 9)), vec![]),
            (Some(in_part(5, 9)), Some(in_part(5, 9)), vec![7]),
            (Some(in_part(5, 9)), None, vec![7]),
            (Some(BTreeMap::new()), None, vec![7]),
            (None, None, vec![]),
        ] {
            let mut standing = Standing::default();
            for (member, copies) in [(1, first), (2, second)] {
                if let Some(copies) = copies {
                    standing.add(member, copies);
                }
            }
            assert_eq!(standing.not_whole(&replicas), not_whole);
        }
    }

    #[test]
    fn replicas_are_those_of_what_is_active_on_a_member() {
        let mut plan = BucketPlan::balanced(4, 2, 4);
        plan.chains = vec![
            vec![Some(0), Some(1), None],
            vec![Some(1), Some(0), Some(2)],
            vec![Some(0), None, None],
            vec![None, Some(0), Some(3)],
        ];
        assert_eq!(replicas_of(&plan, 1), BTreeMap::from([(1, vec![0, 2])]));
        assert_eq!(replicas_of(&plan, 0), BTreeMap::from([(0, vec![1])]));
    }
}
