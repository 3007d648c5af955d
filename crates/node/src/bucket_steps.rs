//! Which buckets a node makes and deletes to have those of a plan: decided here from what it has,
//! and done by whoever keeps the buckets.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{BucketPlan, ClusterPlan};
use server::BucketRefusal;

use crate::buckets::NodeBucket;

/// What a plan asks of a node's set of buckets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BucketSteps {
    /// The plan says that they are deleted. Another one of the same name may be made behind that.
    pub(crate) removed: Vec<String>,
    /// The plan has them with their settings, and the node does not have them.
    pub(crate) made: Vec<String>,
}

impl BucketSteps {
    /// The steps from the buckets that are here, which are those of the plan `before`, to `plan`.
    /// A bucket is deleted only by a plan that says so of it: one that lacks it may be old.
    ///
    /// # Errors
    /// The plan is none for this node, in words for people.
    pub(crate) fn between(
        here: &BTreeSet<String>,
        before: Option<&ClusterPlan>,
        plan: &ClusterPlan,
    ) -> Result<Self, String> {
        let mut steps = Self::default();
        for (name, planned) in &plan.buckets {
            if here.contains(name) {
                continue;
            }
            if planned.settings.is_none() {
                return Err(format!("the map has a bucket `{name}`, and the node has none"));
            }
            steps.made.push(name.clone());
        }
        for name in here {
            let known = before.and_then(|before| before.buckets.get(name));
            let is_deleted = known.is_some_and(|known| plan.is_deleted(name, known.uuid));
            match plan.buckets.get(name) {
                None if is_deleted => steps.removed.push(name.clone()),
                None => {
                    return Err(format!("the node has a bucket `{name}`, and the map has none"));
                }
                Some(planned) => {
                    let is_another = known.is_some_and(|known| known.uuid != planned.uuid);
                    if is_deleted && is_another && planned.settings.is_some() {
                        steps.removed.push(name.clone());
                        steps.made.push(name.clone());
                    }
                }
            }
        }
        Ok(steps)
    }
}

/// Has a node's buckets be those of its plan. Calls may wait for files, and come while the plan is
/// carried out.
pub(crate) trait BucketKeeper: Send + Sync {
    /// Makes a bucket of a plan, or only says whether it could be.
    fn make(
        &self,
        name: &str,
        plan: &BucketPlan,
        is_trial: bool,
    ) -> Result<Option<NodeBucket>, BucketRefusal>;

    /// Deletes buckets, all of them or none. From its return on they are gone, also after a crash.
    fn remove(&self, names: &[&str]) -> Result<(), BucketRefusal>;

    /// Gives a bucket the settings of a plan, or only says whether it could have them.
    fn adapt(
        &self,
        name: &str,
        settings: &BTreeMap<String, String>,
        is_trial: bool,
    ) -> Result<(), BucketRefusal>;
}

#[cfg(test)]
mod tests {
    use cluster::{NodeAddress, PlannedNode, Uuid};
    use platform::Entropy;

    use super::*;

    fn plan() -> ClusterPlan {
        let address = NodeAddress {
            host: "h".to_owned(),
            data_port: 1,
            management_port: 2,
            tls: None,
            external: None,
        };
        let node = PlannedNode { name: "n".to_owned(), address };
        ClusterPlan::of_nodes(vec![node]).with_bucket("default", BucketPlan::balanced(1, 0, 4))
    }

    fn with_orders(plan: &ClusterPlan, seed: u64) -> ClusterPlan {
        let uuid = Uuid::random(&Entropy::simulated(seed));
        plan.with_new_bucket("orders", uuid, BTreeMap::new(), 1, 4)
    }

    fn steps(removed: &[&str], made: &[&str]) -> Option<BucketSteps> {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Some(BucketSteps { removed: names(removed), made: names(made) })
    }

    #[test]
    fn buckets_are_made_and_deleted_by_plans_that_say_so() {
        let made = with_orders(&plan(), 1);
        let deleted = made.without_bucket("orders").unwrap();
        let again = with_orders(&deleted, 2);
        let no_default = made.without_bucket("default").unwrap();
        let none: &[&str] = &[];
        let (one, two) = (&["default"][..], &["default", "orders"][..]);
        let orders = &["orders"][..];
        for (case, here, before, plan, expected) in [
            ("the same", one, Some(plan()), plan(), steps(none, none)),
            ("a new one", one, Some(plan()), made.clone(), steps(none, orders)),
            ("at a start", one, None, made.clone(), steps(none, orders)),
            ("a deleted one", two, Some(made.clone()), deleted.clone(), steps(orders, none)),
            ("it never was here", one, Some(plan()), deleted.clone(), steps(none, none)),
            ("another one", two, Some(made.clone()), again.clone(), steps(orders, orders)),
            ("that one already", two, Some(again.clone()), again, steps(none, none)),
            ("without a uuid", two, Some(made.clone()), no_default, steps(one, none)),
            ("an old plan", two, Some(made), plan(), None),
            ("nobody knows which it is", two, None, deleted.clone(), None),
            ("one of its own", two, Some(plan()), deleted, None),
            ("without settings", none, Some(plan()), plan(), None),
        ] {
            let here = here.iter().map(|&name| name.to_owned()).collect();
            let found = BucketSteps::between(&here, before.as_ref(), &plan).ok();
            assert_eq!(found, expected, "{case}");
        }
    }
}
