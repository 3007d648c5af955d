//! Buckets that come and go while the node runs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use cluster::ClusterPlan;
use server::{BucketRefusal, Departure};

use super::Membership;
use super::bucket_member::BucketMember;
use crate::buckets::NodeBucket;

impl Membership {
    /// Refuses what only a node alone can do.
    pub(crate) fn check_alone(&self) -> Result<(), BucketRefusal> {
        if self.is_alone.load(Ordering::Relaxed) {
            return Ok(());
        }
        let why = "The buckets of a cluster are those of its map: they are made and deleted where \
                   its nodes are started";
        Err(BucketRefusal::Invalid("_".to_owned(), why.to_owned()))
    }

    /// From now on there is this bucket, too: it is in the map, and clients can select it.
    pub(crate) fn add_bucket(self: &Arc<Self>, bucket: &NodeBucket) {
        let _one_at_a_time = self.carrying_out.lock().unwrap_or_else(PoisonError::into_inner);
        let member = BucketMember::new(bucket).expect("a bucket that was just made has a uuid");
        let plan = self.next_plan().with_bucket(bucket.name(), member.alone());
        if let Some(replicator) = self.replicator.get() {
            member.replicate_with(replicator);
        }
        member.bucket.assume_topology(&self.alone_topology());
        let member = Arc::new(member);
        self.watch_manifest_of(&member);
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        let before = buckets.insert(bucket.name().to_owned(), member);
        drop(buckets);
        assert!(before.is_none(), "buckets have different names");
        *self.lock_plan() = plan;
        if let Some(server) = self.server.get() {
            let added = server.add_bucket(bucket.served(), &self.view());
            added.expect("there was found to be a place for it");
        }
        self.tell();
    }

    /// From now on there is no bucket of that name. Returned are the connections that have it.
    pub(crate) fn remove_bucket(&self, name: &str) -> Option<Departure> {
        let _one_at_a_time = self.carrying_out.lock().unwrap_or_else(PoisonError::into_inner);
        let mut plan = self.next_plan();
        plan.buckets.remove(name);
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        let member = buckets.remove(name);
        drop(buckets);
        if let Some(member) = member {
            member.leave();
        }
        let departure = self.server.get().and_then(|server| server.remove_bucket(name));
        *self.lock_plan() = plan;
        self.tell();
        departure
    }

    /// The plan, to be changed: clients take a map only if it is newer.
    pub(super) fn next_plan(&self) -> ClusterPlan {
        let mut plan = self.plan();
        plan.revision.revision += 1;
        plan
    }
}
