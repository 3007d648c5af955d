//! The replicas of what is active on a node that is given up.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{BucketPlan, ClusterPlan};

/// The vBuckets that are active on a member and have replicas, with these, by bucket. Members are
/// their indices in the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas(BTreeMap<String, BTreeMap<u16, Vec<usize>>>);

impl Replicas {
    /// Those of a member.
    pub fn of(plan: &ClusterPlan, member: usize) -> Self {
        let of_bucket = |(name, bucket): (&String, &BucketPlan)| {
            let replicas = of_bucket(bucket, member);
            (!replicas.is_empty()).then(|| (name.clone(), replicas))
        };
        Self(plan.buckets.iter().filter_map(of_bucket).collect())
    }

    /// Whether there are none: nobody can take the member's place.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every vBucket, with its bucket and the members that have a replica.
    pub fn all(&self) -> impl Iterator<Item = (&str, u16, &[usize])> {
        self.0.iter().flat_map(|(bucket, vbuckets)| {
            let vbuckets = vbuckets.iter();
            vbuckets.map(move |(vbid, holders)| (bucket.as_str(), *vbid, holders.as_slice()))
        })
    }

    /// Who has any.
    pub fn members(&self) -> BTreeSet<usize> {
        self.all().flat_map(|(_, _, holders)| holders).copied().collect()
    }

    /// The buckets of which a member has some.
    pub(super) fn buckets_of(&self, member: usize) -> impl Iterator<Item = &str> {
        let has_some = move |vbuckets: &BTreeMap<u16, Vec<usize>>| {
            vbuckets.values().any(|holders| holders.contains(&member))
        };
        let buckets = self.0.iter().filter(move |(_, vbuckets)| has_some(vbuckets));
        buckets.map(|(bucket, _)| bucket.as_str())
    }

    #[cfg(test)]
    pub(super) fn one(bucket: &str, vbid: u16, holders: &[usize]) -> Self {
        let vbuckets = BTreeMap::from([(vbid, holders.to_vec())]);
        Self(BTreeMap::from([(bucket.to_owned(), vbuckets)]))
    }
}

fn of_bucket(plan: &BucketPlan, member: usize) -> BTreeMap<u16, Vec<usize>> {
    let chains = (0_u16..).zip(&plan.chains);
    let active = chains.filter(|(_, chain)| chain.first() == Some(&Some(member)));
    let replicas = active.map(|(vbid, chain)| {
        let replicas: Vec<usize> = chain.iter().skip(1).copied().flatten().collect();
        assert!(!replicas.contains(&member), "copies of a vBucket are on different nodes: {vbid}");
        (vbid, replicas)
    });
    replicas.filter(|(_, replicas)| !replicas.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_those_of_what_is_active_on_a_member() {
        let mut plan = BucketPlan::balanced(4, 2, 4);
        plan.chains = vec![
            vec![Some(0), Some(1), None],
            vec![Some(1), Some(0), Some(2)],
            vec![Some(0), None, None],
            vec![None, Some(0), Some(3)],
        ];
        assert_eq!(of_bucket(&plan, 1), BTreeMap::from([(1, vec![0, 2])]));
        assert_eq!(of_bucket(&plan, 0), BTreeMap::from([(0, vec![1])]));
    }
}
