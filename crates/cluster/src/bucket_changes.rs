//! The plan after a bucket is made, changed or deleted, or the cluster is given a name.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::bucket_plan::BucketPlan;
use crate::plan::{ClusterPlan, DeletedBucket};
use crate::uuid::Uuid;

/// Deletions that a plan remembers. Who has missed more keeps the oldest bucket, and refuses plans
/// without it.
const DELETED_COUNT_MAX: usize = 1000;

impl ClusterPlan {
    /// The next plan, with a new bucket that all nodes share, whose settings come along. It has as
    /// many of the wanted replicas as there are nodes for.
    #[must_use]
    pub fn with_new_bucket(
        &self,
        name: &str,
        uuid: Uuid,
        settings: BTreeMap<String, String>,
        replicas_wanted: usize,
        vbucket_count: u16,
    ) -> Self {
        let node_count = self.nodes.len();
        assert!(node_count > 0, "a plan has nodes");
        assert!(!self.buckets.contains_key(name), "buckets have different names");
        let replica_count = replicas_wanted.min(node_count - 1);
        let bucket = BucketPlan {
            uuid: Some(uuid),
            settings: Some(settings),
            ..BucketPlan::balanced(node_count, replica_count, vbucket_count)
        };
        self.next_change().with_bucket(name, bucket)
    }

    /// The next plan, of a cluster that is called `name`.
    #[must_use]
    pub fn with_cluster_name(&self, name: &str) -> Self {
        Self { cluster_name: Some(name.to_owned()), ..self.next_change() }
    }

    /// The next plan, with other settings of a bucket. `None` if it has no such bucket.
    #[must_use]
    pub fn with_settings(&self, name: &str, settings: BTreeMap<String, String>) -> Option<Self> {
        let mut plan = self.next_change();
        plan.buckets.get_mut(name)?.settings = Some(settings);
        Some(plan)
    }

    /// The next plan, which says that a bucket is deleted. `None` if it has no such bucket.
    #[must_use]
    pub fn without_bucket(&self, name: &str) -> Option<Self> {
        let mut plan = self.next_change();
        let bucket = plan.buckets.remove(name)?;
        plan.note_deleted(DeletedBucket { name: name.to_owned(), uuid: bucket.uuid });
        Some(plan)
    }

    fn note_deleted(&mut self, deleted: DeletedBucket) {
        self.deleted.push(deleted);
        let surplus = self.deleted.len().saturating_sub(DELETED_COUNT_MAX);
        self.deleted.drain(..surplus);
    }

    /// Whether the plan says that the bucket of this name and identity is deleted. That it lacks
    /// a bucket says nothing: it may be an old plan.
    pub fn is_deleted(&self, name: &str, uuid: Option<Uuid>) -> bool {
        self.deleted.iter().any(|deleted| deleted.name == name && deleted.uuid == uuid)
    }

    /// This plan with the buckets of `other`, if those have changed since: `other` itself, unless
    /// this one has gone on in other respects. `None` if they have not.
    #[must_use]
    pub fn with_bucket_changes_of(&self, other: &Self) -> Option<Self> {
        if other.cluster_uuid != self.cluster_uuid || other.changes <= self.changes {
            return None;
        }
        let mut plan = other.clone();
        for (name, theirs) in &mut plan.buckets {
            match self.buckets.get(name) {
                Some(ours) if ours.uuid == theirs.uuid => theirs.chains.clone_from(&ours.chains),
                _ if self.nodes == other.nodes => {}
                _ => theirs.chains.iter_mut().flatten().for_each(|holder| {
                    let node = holder.and_then(|index| other.nodes.get(index));
                    *holder = node.and_then(|node| self.index_of(&node.name));
                }),
            }
        }
        plan.nodes.clone_from(&self.nodes);
        if plan != *other {
            plan.revision = self.revision.max(other.revision);
            plan.revision.revision += 1;
        } else if plan.revision <= self.revision {
            plan.revision = self.revision;
            plan.revision.revision += 1;
        }
        Some(plan)
    }

    /// What a node with this plan goes over to when it hears of `other`, so that it misses no
    /// change of the buckets: that one, or, where each has changes that the other lacks, one that
    /// has both. Two nodes that hear of each other come to the same plan. `None` if nothing is
    /// missing here, or the plans differ in more.
    #[must_use]
    pub fn caught_up_with(&self, other: &Self) -> Option<Self> {
        if other.cluster_uuid != self.cluster_uuid {
            return None;
        }
        let (is_behind, is_ahead) =
            (self.lacks_deletions_of(other), other.lacks_deletions_of(self));
        let is_older = self.revision < other.revision;
        match self.changes.cmp(&other.changes) {
            Ordering::Less if !is_ahead && is_older => Some(other.clone()),
            Ordering::Greater if !is_behind => None,
            Ordering::Equal if !is_behind && !is_ahead && self.has_words_of(other) => None,
            _ => self.merged_with(other),
        }
    }

    /// Two changes on nodes that did not reach each other have made two plans of one: this one has
    /// both changes. Of two settings of a bucket, and of two names of the cluster, those of the
    /// newer plan count, or else of either. Only a bucket that was made on both would be two:
    /// `None`.
    fn merged_with(&self, other: &Self) -> Option<Self> {
        if self.nodes != other.nodes {
            return None;
        }
        let rank = |plan: &Self| (plan.revision, plan.changes, plan.to_json());
        let (newer, older) = if rank(self) > rank(other) { (self, other) } else { (other, self) };
        let mut plan = newer.next_change();
        plan.changes = self.changes.max(other.changes) + 1;
        plan.cluster_name = plan.cluster_name.or_else(|| older.cluster_name.clone());
        for deleted in &older.deleted {
            if !newer.deleted.contains(deleted) {
                plan.note_deleted(deleted.clone());
            }
        }
        plan.buckets.retain(|name, bucket| !older.is_deleted(name, bucket.uuid));
        for (name, bucket) in &older.buckets {
            if newer.is_deleted(name, bucket.uuid) {
                continue;
            }
            let known = plan.buckets.entry(name.clone()).or_insert_with(|| bucket.clone());
            if known.uuid != bucket.uuid {
                return None;
            }
        }
        plan.check_numbers().is_ok().then_some(plan)
    }

    /// Whether `other` knows of a deletion that this plan does not, and cannot have forgotten.
    fn lacks_deletions_of(&self, other: &Self) -> bool {
        let may_have_forgotten = self.deleted.len() >= DELETED_COUNT_MAX;
        !may_have_forgotten && !other.deleted.iter().all(|it| self.deleted.contains(it))
    }

    /// Whether the plans say the same of the cluster's name and of which buckets there are, whoever
    /// holds what of them.
    fn has_words_of(&self, other: &Self) -> bool {
        let theirs = |name: &String| other.buckets.get(name);
        let is_same = |(name, ours): (&String, &BucketPlan)| {
            let same = |theirs: &BucketPlan| {
                (theirs.uuid, &theirs.settings) == (ours.uuid, &ours.settings)
            };
            theirs(name).is_some_and(same)
        };
        self.cluster_name == other.cluster_name
            && self.buckets.len() == other.buckets.len()
            && self.buckets.iter().all(is_same)
    }

    fn next_change(&self) -> Self {
        let mut plan = self.clone();
        plan.revision.revision += 1;
        plan.changes += 1;
        plan
    }
}

#[cfg(test)]
mod tests {
    use platform::Entropy;

    use super::*;
    use crate::plan::tests::nodes;

    fn uuid(seed: u64) -> Uuid {
        Uuid::random(&Entropy::simulated(seed))
    }

    fn settings() -> BTreeMap<String, String> {
        BTreeMap::from([("max_size".to_owned(), "104857600".to_owned())])
    }

    fn plan() -> ClusterPlan {
        ClusterPlan::of_nodes(nodes(3)).with_bucket("default", BucketPlan::balanced(3, 1, 4))
    }

    #[test]
    fn a_new_bucket_has_as_many_replicas_as_there_are_nodes_for() {
        for (wanted, has) in [(0, 0), (1, 1), (2, 2), (3, 2)] {
            let next = plan().with_new_bucket("orders", uuid(1), settings(), wanted, 8);
            let orders = &next.buckets["orders"];
            assert_eq!((orders.replica_count, orders.chains.len()), (has, 8));
            assert_eq!(next.revision.revision, plan().revision.revision + 1);
            assert!(next.check().is_ok());
            assert_eq!(ClusterPlan::parse(&next.to_json(), "x"), Ok(next));
        }
    }

    #[test]
    fn only_the_bucket_that_was_deleted_is_deleted() {
        let first = plan().with_new_bucket("orders", uuid(1), settings(), 1, 8);
        assert!(!plan().is_deleted("orders", Some(uuid(1))), "a plan that lacks it says nothing");
        let without = first.without_bucket("orders").unwrap();
        assert!(without.is_deleted("orders", Some(uuid(1))));
        let again = without.with_new_bucket("orders", uuid(2), settings(), 1, 8);
        assert!(again.is_deleted("orders", Some(uuid(1))));
        assert!(!again.is_deleted("orders", Some(uuid(2))) && !again.is_deleted("default", None));
        assert_eq!(ClusterPlan::parse(&again.to_json(), "x"), Ok(again));
        let none = plan().without_bucket("default").unwrap();
        assert!(none.is_deleted("default", None) && none.buckets.is_empty());
        assert_eq!(ClusterPlan::parse(&none.to_json(), "x"), Ok(none));
        assert_eq!(plan().without_bucket("other"), None);
    }

    #[test]
    fn of_two_names_that_a_cluster_is_given_at_once_one_counts_on_all_nodes() {
        let [one, other] = ["one", "other"].map(|name| plan().with_cluster_name(name));
        assert_eq!(ClusterPlan::parse(&one.to_json(), "x").as_ref(), Ok(&one));
        let both = one.caught_up_with(&other).unwrap();
        assert_eq!(other.caught_up_with(&one), Some(both.clone()));
        assert!(both.cluster_name == one.cluster_name || both.cluster_name == other.cluster_name);
        assert_eq!(both.caught_up_with(&both.clone()), None);
        let made = plan().with_new_bucket("orders", uuid(1), settings(), 1, 8);
        for named in [one.caught_up_with(&made), made.caught_up_with(&one)] {
            assert_eq!(named.unwrap().cluster_name.as_deref(), Some("one"), "made meanwhile");
        }
        let later = one.with_new_bucket("orders", uuid(1), settings(), 1, 8);
        assert_eq!(plan().caught_up_with(&later), Some(later.clone()));
        assert_eq!(later.cluster_name.as_deref(), Some("one"), "it stays");
    }

    #[test]
    fn settings_come_along_in_both_forms() {
        let changed = plan().with_settings("default", settings()).unwrap();
        assert_eq!(changed.buckets["default"].settings, Some(settings()));
        assert_eq!(ClusterPlan::parse(&changed.to_json(), "x"), Ok(changed.clone()));
        let two = changed.with_new_bucket("orders", uuid(1), settings(), 1, 8);
        assert_eq!(ClusterPlan::parse(&two.to_json(), "x"), Ok(two));
        assert_eq!(plan().with_settings("other", settings()), None);
    }

    #[test]
    fn deletions_are_forgotten_before_there_are_too_many() {
        let mut plan = plan();
        for seed in 0..1010 {
            plan = plan.with_new_bucket("orders", uuid(seed), settings(), 1, 1);
            plan = plan.without_bucket("orders").unwrap();
        }
        assert_eq!(plan.deleted.len(), DELETED_COUNT_MAX);
        assert!(plan.is_deleted("orders", Some(uuid(1009))));
    }

    #[test]
    fn two_nodes_that_missed_each_others_changes_come_to_one_plan_with_both() {
        let before = plan().with_new_bucket("orders", uuid(1), settings(), 1, 8);
        let deleted = before.without_bucket("orders").unwrap();
        let changed = before.with_settings("default", settings()).unwrap();
        let both = deleted.caught_up_with(&changed).unwrap();
        assert_eq!(changed.caught_up_with(&deleted), Some(both.clone()));
        assert!(both.is_deleted("orders", Some(uuid(1))) && !both.buckets.contains_key("orders"));
        assert_eq!(both.buckets["default"].settings, Some(settings()));
        assert!(both.revision > deleted.revision && both.changes == deleted.changes + 1);
        assert!(both.check().is_ok());
        // Who has only one of them goes over to it, and not the other way round.
        for one in [&before, &deleted, &changed] {
            assert_eq!(one.caught_up_with(&both), Some(both.clone()));
            assert_eq!(both.caught_up_with(one), None);
            assert_eq!(one.caught_up_with(one), None);
        }
        // A third one has deleted another bucket, and has heard of neither.
        let third = before.without_bucket("default").unwrap();
        let all = both.caught_up_with(&third).unwrap();
        assert_eq!(third.caught_up_with(&both), Some(all.clone()));
        assert!(all.buckets.is_empty() && all.deleted.len() == 2);
    }

    #[test]
    fn plans_that_differ_in_more_than_their_buckets_are_left_to_whoever_gives_the_orders() {
        let before = plan();
        let one = before.with_new_bucket("orders", uuid(1), settings(), 1, 8);
        let another = before.with_new_bucket("orders", uuid(2), settings(), 1, 8);
        assert_eq!(one.caught_up_with(&another), None, "nobody knows which it is");
        let failed = before.failed_over(0, |_, _, replicas| replicas[0]).unwrap();
        let changed = failed.with_settings("default", settings()).unwrap();
        assert_eq!(one.caught_up_with(&changed), None);
        let mut other = one;
        other.cluster_uuid = Some(uuid(3));
        assert_eq!(before.caught_up_with(&other), None);
        // Who serves what is no change of the buckets.
        let mut moved = before.clone();
        moved.revision.revision += 1;
        moved.buckets.insert("default".to_owned(), BucketPlan::balanced(3, 2, 4));
        assert_eq!(before.caught_up_with(&moved), None);
    }

    #[test]
    fn two_changes_behind_the_last_number_do_not_become_one() {
        let mut before = plan();
        before.revision.revision = i64::MAX / 2 - 1;
        assert!(before.has_next() && before.check().is_ok());
        let deleted = before.without_bucket("default").unwrap();
        let changed = before.with_settings("default", settings()).unwrap();
        assert!(!deleted.has_next() && deleted.check().is_ok());
        assert_eq!(deleted.caught_up_with(&changed), None, "others would not take it");
        before.changes = u64::MAX / 4;
        assert!(!before.has_next());
    }

    #[test]
    fn changes_of_buckets_are_taken_over_and_chains_of_the_others_stay() {
        let before = plan();
        let made = before.with_new_bucket("orders", uuid(1), settings(), 1, 8);
        assert_eq!(before.with_bucket_changes_of(&made), Some(made.clone()));
        assert_eq!(made.with_bucket_changes_of(&made), None);
        assert_eq!(made.with_bucket_changes_of(&before), None);
        // Meanwhile a node was given up.
        let failed = before.failed_over(0, |_, _, replicas| replicas[0]).unwrap();
        let both = failed.with_bucket_changes_of(&made).unwrap();
        assert_eq!(both.nodes, failed.nodes);
        assert_eq!(both.buckets["default"], failed.buckets["default"]);
        assert_eq!(both.buckets["orders"].chain(0), [None, Some(0)]);
        assert_eq!(both.buckets["orders"].chain(1)[0], Some(0));
        assert!(both.revision > failed.revision && both.check().is_ok());
        let without = made.without_bucket("default").unwrap();
        let both = failed.with_bucket_changes_of(&without).unwrap();
        assert!(!both.buckets.contains_key("default") && both.is_deleted("default", None));
    }
}
