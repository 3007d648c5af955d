//! One bucket of the node, and what a plan has become of it: who is followed, and what is left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::Context;
use bucket::{Bucket, BucketType};
use cluster::{BucketMap, BucketPlan, ClusterPlan, PendingVbucket, PlannedNode, Uuid, VbucketRole};
use document::Vbid;
use replication::{BucketReplicator, Follow, Hub, PeerAddress, Replicator, Told};
use server::Server;

use super::waiting::Waiting;
use crate::buckets::NodeBucket;

/// A bucket's membership.
pub(super) struct BucketMember {
    pub(super) bucket: Bucket,
    hub: Arc<Hub>,
    /// The bucket's identity where a plan says none.
    uuid: Uuid,
    /// What is left of the plan, in the order of vBuckets.
    pending: Mutex<Vec<PendingVbucket>>,
    /// What of it waits for others.
    pub(super) waiting: Mutex<Waiting>,
    replicator: OnceLock<BucketReplicator>,
}

impl BucketMember {
    pub(super) fn new(bucket: &NodeBucket) -> anyhow::Result<Self> {
        let (bucket, hub) = (bucket.bucket().clone(), Arc::clone(bucket.hub()));
        let uuid = Uuid::parse(bucket.uuid()).context("the bucket's uuid is damaged")?;
        Ok(Self {
            bucket,
            hub,
            uuid,
            pending: Mutex::default(),
            waiting: Mutex::default(),
            replicator: OnceLock::new(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.bucket.config().name
    }

    pub(super) fn vbucket_count(&self) -> u16 {
        self.bucket.config().vbucket_count
    }

    /// What the bucket is to do on a node that is alone.
    pub(super) fn alone(&self) -> BucketPlan {
        BucketPlan::balanced(1, 0, self.vbucket_count())
    }

    /// The map that clients are told, if the bucket is in the plan.
    pub(super) fn map(&self, plan: &ClusterPlan) -> Option<BucketMap> {
        let is_ephemeral = self.bucket.bucket_type() == BucketType::Ephemeral;
        let map = plan.bucket_map(self.name(), self.uuid, is_ephemeral)?;
        Some(BucketMap { manifest_uid: self.bucket.manifest().uid, ..map })
    }

    /// From now on `replicator` follows whom the plan says.
    pub(super) fn replicate_with(&self, replicator: &Replicator) {
        let replicator = replicator.replicate(self.bucket.clone(), Arc::clone(&self.hub));
        assert!(self.replicator.set(replicator).is_ok(), "a bucket has one replicator");
    }

    /// The bucket goes: nobody is followed any more.
    pub(super) fn leave(&self) {
        if let Some(replicator) = self.replicator.get() {
            replicator.leave();
        }
    }

    /// From now on no replica begins to go back because of a node that it does not follow by the
    /// plan.
    pub(super) fn heed(&self, plan: &ClusterPlan, this: Option<usize>) {
        if let Some(replicator) = self.replicator.get() {
            replicator.heed(&self.follows(plan, this));
        }
    }

    /// Has the replicas of `this` node follow the active copies on others. There is nobody to be
    /// told where nothing follows yet.
    pub(super) fn follow(&self, plan: &ClusterPlan, this: Option<usize>) -> Option<Told> {
        Some(self.replicator.get()?.follow(self.follows(plan, this)))
    }

    fn follows(&self, plan: &ClusterPlan, this: Option<usize>) -> Vec<Follow> {
        let is_member = this.is_none_or(|this| this < plan.nodes.len());
        assert!(is_member, "this node's place is one of the map's: {this:?}");
        // Who was away when a bucket was deleted still has that one, and documents that are gone.
        let uuid = plan.buckets.get(self.name()).and_then(|planned| planned.uuid);
        let follow = |number: u16| match plan.role(self.name(), number, this?) {
            VbucketRole::Replica(active) => {
                let PlannedNode { name, address } = plan.nodes.get(active?)?.clone();
                let tls_port = address.tls.map(|ports| ports.data);
                let port = address.data_port;
                let (host, bucket_uuid) = (address.host, uuid.map(|uuid| uuid.to_string()));
                let peer = PeerAddress { name, host, port, tls_port, bucket_uuid };
                Some(Follow { vbid: Vbid(number), peer })
            }
            VbucketRole::Active(_) | VbucketRole::None => None,
        };
        (0..self.vbucket_count()).filter_map(follow).collect()
    }

    /// The vBuckets that are not yet what the plan says.
    pub(super) fn pending(&self) -> Vec<PendingVbucket> {
        self.lock_pending().clone()
    }

    /// Tells what is left: the log, what of it is new, and the clients of `server` that ask.
    pub(super) fn show_pending(&self, pending: Vec<PendingVbucket>, server: Option<&Arc<Server>>) {
        let bucket = self.name();
        let before = std::mem::replace(&mut *self.lock_pending(), pending.clone());
        let mut fresh: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for PendingVbucket { vbid, wanted, reason } in
            pending.iter().filter(|pending| !before.contains(pending))
        {
            fresh.entry((wanted, reason)).or_default().push(vbid.to_string());
        }
        for ((wanted, reason), vbuckets) in fresh {
            let vbuckets = vbuckets.join(", ");
            tracing::warn!(
                bucket,
                vbuckets,
                wanted,
                reason,
                "vBuckets are not yet what the map says"
            );
        }
        if pending.is_empty() && !before.is_empty() {
            tracing::info!(bucket, "every vBucket is what the cluster map says");
        }
        if let Some(server) = server {
            server.show_pending(bucket, pending);
        }
    }

    fn lock_pending(&self) -> MutexGuard<'_, Vec<PendingVbucket>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
