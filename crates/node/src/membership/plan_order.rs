//! What somebody wants of a cluster and its buckets, and the plan that comes of it.

use std::collections::BTreeMap;

use cluster::{ClusterPlan, Uuid};
use server::{BucketRefusal, BucketWords};

use crate::peer_copies::OfferPurpose;

/// What every node tells itself, or the plan says elsewhere.
const NOT_SHARED: [&str; 2] = ["uuid", "max_vbuckets"];

/// A change of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlanOrder {
    /// A new bucket.
    Make {
        name: String,
        uuid: Uuid,
        settings: BTreeMap<String, String>,
        replicas_wanted: usize,
        vbucket_count: u16,
    },
    /// Other settings: `words` of a bucket that has those of `before` where the plan says none.
    Change { name: String, before: BTreeMap<String, String>, words: BucketWords },
    /// A bucket that goes.
    Delete { name: String },
    /// Another name of the cluster.
    Name(String),
}

impl PlanOrder {
    /// What others are to do with the plan once this node has carried it out: whoever has a bucket
    /// deleted may make another of its name as soon as that is answered.
    pub(super) fn purpose(&self) -> OfferPurpose {
        match self {
            Self::Delete { .. } => OfferPurpose::AwaitedOrder,
            Self::Make { .. } | Self::Change { .. } | Self::Name(_) => OfferPurpose::Order,
        }
    }

    /// The next plan.
    ///
    /// # Errors
    /// There is none: the bucket is there already, or is not there, or no number is left.
    pub(super) fn applied(&self, plan: &ClusterPlan) -> Result<ClusterPlan, BucketRefusal> {
        if !plan.has_next() {
            let why = "The cluster map has the last revision; hand out one of a higher epoch";
            return Err(BucketRefusal::Failed(why.to_owned()));
        }
        match self {
            Self::Make { name, .. }
                if plan.buckets.keys().any(|known| known.eq_ignore_ascii_case(name)) =>
            {
                Err(BucketRefusal::Exists)
            }
            Self::Make { name, uuid, .. } if plan.is_deleted(name, Some(*uuid)) => {
                let why = "the bucket with this uuid was deleted".to_owned();
                Err(BucketRefusal::Invalid("uuid".to_owned(), why))
            }
            Self::Make { name, uuid, settings, replicas_wanted, vbucket_count } => Ok(plan
                .with_new_bucket(name, *uuid, settings.clone(), *replicas_wanted, *vbucket_count)),
            Self::Change { name, before, words } => {
                let known = plan.buckets.get(name).ok_or(BucketRefusal::NotFound)?;
                let mut settings = known.settings.clone().unwrap_or_else(|| before.clone());
                let shared = |(name, _): &&(String, String)| !NOT_SHARED.contains(&name.as_str());
                settings.extend(words.iter().filter(shared).cloned());
                plan.with_settings(name, settings).ok_or(BucketRefusal::NotFound)
            }
            Self::Delete { name } => plan.without_bucket(name).ok_or(BucketRefusal::NotFound),
            Self::Name(name) => Ok(plan.with_cluster_name(name)),
        }
    }

    /// Whether it is begun only while all members answer. A bucket in the making would have
    /// vBuckets that nobody serves; one that goes is to go whoever is there.
    pub(super) fn needs_all(&self) -> bool {
        matches!(self, Self::Make { .. })
    }
}

#[cfg(test)]
mod tests {
    use cluster::{BucketPlan, NodeAddress, PlannedNode};
    use platform::Entropy;

    use super::*;

    #[test]
    fn an_order_makes_the_next_plan_of_whatever_the_plan_is() {
        let address = NodeAddress {
            host: "h".to_owned(),
            data_port: 1,
            management_port: 2,
            tls: None,
            external: None,
        };
        let node = PlannedNode { name: "n".to_owned(), address };
        let plan =
            ClusterPlan::of_nodes(vec![node]).with_bucket("default", BucketPlan::balanced(1, 0, 4));
        let make = |name: &str| PlanOrder::Make {
            name: name.to_owned(),
            uuid: Uuid::random(&Entropy::simulated(1)),
            settings: BTreeMap::new(),
            replicas_wanted: 1,
            vbucket_count: 4,
        };
        let delete = |name: &str| PlanOrder::Delete { name: name.to_owned() };
        let change = |name: &str| PlanOrder::Change {
            name: name.to_owned(),
            before: BTreeMap::from([("flush_enabled".to_owned(), "false".to_owned())]),
            words: vec![
                ("flush_enabled".to_owned(), "true".to_owned()),
                ("uuid".to_owned(), "0".repeat(32)),
            ],
        };
        assert_eq!(make("default").applied(&plan), Err(BucketRefusal::Exists));
        assert_eq!(make("Default").applied(&plan), Err(BucketRefusal::Exists));
        assert_eq!(delete("orders").applied(&plan), Err(BucketRefusal::NotFound));
        assert_eq!(change("orders").applied(&plan), Err(BucketRefusal::NotFound));
        let made = make("orders").applied(&plan).unwrap();
        assert_eq!(made.buckets.len(), 2);
        let changed = change("default").applied(&made).unwrap();
        let expected = BTreeMap::from([("flush_enabled".to_owned(), "true".to_owned())]);
        assert_eq!(changed.buckets["default"].settings, Some(expected));
        let deleted = delete("orders").applied(&changed).unwrap();
        assert_eq!(deleted.buckets.len(), 1);
        assert_eq!((plan.changes, deleted.changes), (0, 3));
        let gone = delete("orders").applied(&made).unwrap();
        let again = make("orders").applied(&gone);
        assert!(matches!(again, Err(BucketRefusal::Invalid(..))), "its uuid is one of the past");
        let mut last = made;
        last.revision.revision = i64::MAX / 2;
        let name = PlanOrder::Name("other".to_owned());
        let named = name.applied(&deleted).unwrap();
        assert_eq!((named.cluster_name.as_deref(), named.changes), (Some("other"), 4));
        for order in [make("travel"), delete("orders"), change("orders"), name] {
            let refused = order.applied(&last);
            assert!(matches!(refused, Err(BucketRefusal::Failed(_))), "no number is left");
        }
        assert!(make("orders").needs_all() && !delete("orders").needs_all());
    }
}
