//! The node's part in its cluster: carrying out a plan, and telling clients what follows from it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::Context;
use bucket::{Bucket, BucketType, NewRole};
use cluster::{
    BucketMap, ClusterMap, ClusterPlan, NodeAddress, PlannedNode, Revision, Uuid, VbucketRole,
};
use document::{Vbid, VbucketState};
use replication::{Follow, PeerAddress, Replicator};
use server::{ClusterView, Server};

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
    /// The node does its part.
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
    /// follow, and what clients are told. The same plan again does no harm, and completes what an
    /// error has left undone.
    pub(crate) fn carry_out(&self, plan: &ClusterPlan) -> anyhow::Result<CarriedOut> {
        let _one_at_a_time = self.carrying_out.lock().unwrap_or_else(PoisonError::into_inner);
        let count = usize::from(self.bucket.config().vbucket_count);
        if plan.chains.len() != count {
            let reason = format!("the map has {} vBuckets, the bucket {count}", plan.chains.len());
            return Ok(CarriedOut::Refused(reason));
        }
        let current = self.plan();
        // The plan of a node alone is nobody's: any other comes after it.
        let is_first = current.nodes.len() == 1 && self.server.get().is_none();
        if !is_first && plan.revision < current.revision {
            return Ok(CarriedOut::Older(current.revision));
        }
        if !is_first && plan.revision == current.revision && *plan != current {
            let Revision { epoch, revision } = plan.revision;
            let reason =
                format!("the node has another map of revision [{epoch}, {revision}]; raise it");
            return Ok(CarriedOut::Refused(reason));
        }
        self.take_up_roles(plan)?;
        self.follow(plan);
        *self.lock_plan() = plan.clone();
        self.tell();
        tracing::info!(
            epoch = plan.revision.epoch,
            revision = plan.revision.revision,
            nodes = plan.nodes.len(),
            is_member = plan.index_of(&self.identity.name).is_some(),
            "the cluster map is carried out"
        );
        Ok(CarriedOut::Done)
    }

    /// Lets a node alone take durable writes: it is the only one that has to hold them. The roles
    /// that an operator has given to vBuckets stay.
    pub(crate) fn serve_alone(&self) {
        self.bucket.assume_topology(&vec![vec![Some(self.identity.name.clone())]]);
    }

    fn take_up_roles(&self, plan: &ClusterPlan) -> anyhow::Result<()> {
        let this = plan.index_of(&self.identity.name);
        let mut roles = Vec::new();
        let mut given_up = Vec::new();
        for number in 0..self.bucket.config().vbucket_count {
            let vbid = Vbid(number);
            // A node that is given up keeps what it has, for whoever may want it.
            let role = this.map_or(VbucketRole::None, |this| plan.role(number, this));
            let (state, topology) = match role {
                VbucketRole::Active(chain) => (VbucketState::Active, Some(vec![chain])),
                VbucketRole::Replica(_) => (VbucketState::Replica, None),
                VbucketRole::None => {
                    if !self.is_here(vbid) {
                        continue;
                    }
                    given_up.push(vbid);
                    (VbucketState::Dead, None)
                }
            };
            roles.push(NewRole { vbid, state, topology });
        }
        self.bucket.set_vbucket_states(roles).context("a vBucket did not take up its role")?;
        if this.is_some() {
            for vbid in given_up {
                let deleted = self.bucket.delete_vbucket(vbid);
                deleted.with_context(|| format!("vBucket {} was not deleted", vbid.0))?;
            }
        }
        Ok(())
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

    fn is_here(&self, vbid: Vbid) -> bool {
        let mut is_here = false;
        self.bucket.with_vbucket(vbid, |_| is_here = true);
        is_here
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
