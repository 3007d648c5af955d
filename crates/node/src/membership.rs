//! The node's part in its cluster: carrying out a plan, and telling clients what follows from it.

mod retry;
mod roles;
mod waiting;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::Context;
use bucket::{Bucket, BucketType};
use cluster::{
    BucketMap, ClusterMap, ClusterPlan, NodeAddress, PendingVbucket, PlannedNode, Revision, Uuid,
    VbucketRole,
};
use document::Vbid;
use replication::{Follow, PeerAddress, Replicator};
use server::{ClusterView, Server};

pub(crate) use retry::RetryThread;
use waiting::Waiting;

use crate::peer_copies::AskPeer;

/// Who this node is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Its name in topologies.
    pub(crate) name: String,
    /// Where it is reached.
    pub(crate) address: NodeAddress,
    /// The cluster's identity where a plan says none.
    pub(crate) cluster_uuid: Uuid,
}

/// What becomes of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CarriedOut {
    /// The node does its part, but for what [`Membership::pending`] says.
    Done,
    /// It has a newer one.
    Older(Revision),
    /// It cannot be carried out here, and never will be.
    Refused(String),
}

/// A node's membership.
pub(crate) struct Membership {
    identity: Identity,
    bucket: Bucket,
    bucket_uuid: Uuid,
    /// Held while a plan is carried out.
    carrying_out: Mutex<()>,
    plan: Mutex<ClusterPlan>,
    /// What is left of the plan, in the order of vBuckets.
    pending: Mutex<Vec<PendingVbucket>>,
    /// What of it waits for others.
    waiting: Mutex<Waiting>,
    ask_peer: OnceLock<AskPeer>,
    retries: retry::Retries,
    replicator: OnceLock<Arc<Replicator>>,
    server: OnceLock<Arc<Server>>,
    notify: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Membership {
    /// The membership of a node that has no plan yet: it is alone.
    pub(crate) fn new(identity: Identity, bucket: Bucket) -> anyhow::Result<Self> {
        let bucket_uuid = Uuid::parse(bucket.uuid()).context("the bucket's uuid is damaged")?;
        let this = PlannedNode { name: identity.name.clone(), address: identity.address.clone() };
        let plan = ClusterPlan::balanced(vec![this], 0, bucket.config().vbucket_count);
        Ok(Self {
            identity,
            bucket,
            bucket_uuid,
            carrying_out: Mutex::default(),
            plan: Mutex::new(plan),
            pending: Mutex::default(),
            waiting: Mutex::default(),
            ask_peer: OnceLock::new(),
            retries: retry::Retries::new(),
            replicator: OnceLock::new(),
            server: OnceLock::new(),
            notify: OnceLock::new(),
        })
    }

    /// From now on `replicator` follows whom the plan says.
    pub(crate) fn replicate_with(&self, replicator: Arc<Replicator>) {
        assert!(self.replicator.set(replicator).is_ok(), "a bucket has one replicator");
        self.follow(&self.plan());
    }

    /// From now on the clients of `server` are told of changes.
    pub(crate) fn serve_with(&self, server: Arc<Server>) {
        server.show_pending(self.pending());
        assert!(self.server.set(server).is_ok(), "a node has one data port");
    }

    /// Has `notify` called after each change.
    pub(crate) fn watch(&self, notify: Box<dyn Fn() + Send + Sync>) {
        assert!(self.notify.set(notify).is_ok(), "a node has one management port");
    }

    /// The plan that the node carries out.
    pub(crate) fn plan(&self) -> ClusterPlan {
        self.lock_plan().clone()
    }

    /// The vBuckets that are not yet what the plan says. They are tried again.
    pub(crate) fn pending(&self) -> Vec<PendingVbucket> {
        self.lock_pending().clone()
    }

    /// This node's place in a plan; `None` if it has none.
    pub(crate) fn this_node_in(&self, plan: &ClusterPlan) -> Option<usize> {
        plan.index_of(&self.identity.name)
    }

    /// The maps that clients are told.
    pub(crate) fn maps(&self) -> (ClusterMap, BucketMap) {
        self.maps_of(&self.lock_plan())
    }

    /// The maps, as the data port tells them.
    pub(crate) fn view(&self) -> ClusterView {
        view_of(&self.maps())
    }

    /// Does this node's part of `plan`: the roles of its vBuckets, durable on return, whom they
    /// follow, and what clients are told. A vBucket that cannot play its role stops none of this:
    /// it is pending, and tried again. The same plan again does no harm.
    pub(crate) fn carry_out(&self, plan: &ClusterPlan) -> CarriedOut {
        let _one_at_a_time = self.carrying_out.lock().unwrap_or_else(PoisonError::into_inner);
        let count = usize::from(self.bucket.config().vbucket_count);
        if plan.chains.len() != count {
            let reason = format!("the map has {} vBuckets, the bucket {count}", plan.chains.len());
            return CarriedOut::Refused(reason);
        }
        let current = self.plan();
        // The plan of a node alone is nobody's: any other comes after it.
        let is_first = current.nodes.len() == 1 && self.server.get().is_none();
        if !is_first && plan.revision < current.revision {
            return CarriedOut::Older(current.revision);
        }
        if !is_first && plan.revision == current.revision && *plan != current {
            let Revision { epoch, revision } = plan.revision;
            let reason =
                format!("the node has another map of revision [{epoch}, {revision}]; raise it");
            return CarriedOut::Refused(reason);
        }
        self.adapt_waiting(plan, is_first);
        let pending = self.take_up_roles(plan, 0..self.bucket.config().vbucket_count);
        self.follow(plan);
        *self.lock_plan() = plan.clone();
        self.tell();
        tracing::info!(
            epoch = plan.revision.epoch,
            revision = plan.revision.revision,
            nodes = plan.nodes.len(),
            is_member = plan.index_of(&self.identity.name).is_some(),
            pending = pending.len(),
            "the cluster map is carried out"
        );
        self.retries.begin(!pending.is_empty());
        self.show_pending(pending);
        CarriedOut::Done
    }

    /// Tries what is left of the plan again.
    fn try_again(&self) {
        let asked = self.plan();
        let answers = self.ask_peers(&asked);
        let _one_at_a_time = self.carrying_out.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = self.plan();
        if plan == asked {
            self.hear_peers(&plan, &answers);
        }
        let before = self.pending();
        let pending = self.take_up_roles(&plan, before.iter().map(|pending| pending.vbid));
        let has_advanced = pending.len() < before.len();
        if has_advanced {
            self.follow(&plan);
        }
        self.retries.tried(!pending.is_empty(), has_advanced);
        self.show_pending(pending);
    }

    fn show_pending(&self, pending: Vec<PendingVbucket>) {
        let before = std::mem::replace(&mut *self.lock_pending(), pending.clone());
        let mut fresh: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for PendingVbucket { vbid, wanted, reason } in
            pending.iter().filter(|pending| !before.contains(pending))
        {
            fresh.entry((wanted, reason)).or_default().push(vbid.to_string());
        }
        for ((wanted, reason), vbuckets) in fresh {
            let vbuckets = vbuckets.join(", ");
            tracing::warn!(vbuckets, wanted, reason, "vBuckets are not yet what the map says");
        }
        if pending.is_empty() && !before.is_empty() {
            tracing::info!("every vBucket is what the cluster map says");
        }
        if let Some(server) = self.server.get() {
            server.show_pending(pending);
        }
    }

    /// Lets a node alone take durable writes: it is the only one that has to hold them. The roles
    /// that an operator has given to vBuckets stay.
    pub(crate) fn serve_alone(&self) {
        self.bucket.assume_topology(&vec![vec![Some(self.identity.name.clone())]]);
    }

    /// Has the replicas of this node follow the active copies on others.
    fn follow(&self, plan: &ClusterPlan) {
        let Some(replicator) = self.replicator.get() else { return };
        let this = plan.index_of(&self.identity.name);
        let follow = |number: u16| match plan.role(number, this?) {
            VbucketRole::Replica(active) => {
                let PlannedNode { name, address } = plan.nodes.get(active?)?.clone();
                let peer = PeerAddress { name, host: address.host, port: address.data_port };
                Some(Follow { vbid: Vbid(number), peer })
            }
            VbucketRole::Active(_) | VbucketRole::None => None,
        };
        let count = self.bucket.config().vbucket_count;
        replicator.follow((0..count).filter_map(follow).collect());
    }

    fn tell(&self) {
        if let Some(server) = self.server.get() {
            server.publish(self.view());
        }
        if let Some(notify) = self.notify.get() {
            notify();
        }
    }

    fn maps_of(&self, plan: &ClusterPlan) -> (ClusterMap, BucketMap) {
        let Identity { name, address, cluster_uuid } = &self.identity;
        let is_ephemeral = self.bucket.bucket_type() == BucketType::Ephemeral;
        let bucket_name = &self.bucket.config().name;
        (
            plan.cluster_map(name, address.clone(), *cluster_uuid),
            plan.bucket_map(bucket_name, self.bucket_uuid, is_ephemeral),
        )
    }

    fn lock_pending(&self) -> MutexGuard<'_, Vec<PendingVbucket>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_plan(&self) -> MutexGuard<'_, ClusterPlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn view_of((map, bucket): &(ClusterMap, BucketMap)) -> ClusterView {
    ClusterView {
        revision: map.revision,
        global_config: map.global_config(),
        bucket_config: map.bucket_config(bucket),
    }
}

#[cfg(test)]
mod tests;
