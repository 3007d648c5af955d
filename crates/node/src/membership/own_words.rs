//! What a node alone says of itself, and the name of its cluster, changed while it runs.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use cluster::{ExternalAddress, NodeAddress};

use super::Membership;
use super::plan_order::PlanOrder;
use crate::own_setup::{OwnSetup, OwnSetupError, check_cluster_name};

impl Membership {
    /// Has clients be told another host name. Durable on return, as are the others.
    ///
    /// # Errors
    /// Everything is as it was. The same goes for the others.
    pub fn rename_host(&self, host: &str) -> Result<(), OwnSetupError> {
        self.change_own_setup(|setup| setup.rename(&self.identity.address.host, host.to_owned()))
    }

    /// Has clients be told where the node is reached from elsewhere, or nothing of that.
    pub fn set_external_address(
        &self,
        external: Option<ExternalAddress>,
    ) -> Result<(), OwnSetupError> {
        self.change_own_setup(|setup| setup.external = external)
    }

    /// Gives the cluster another name. Of several nodes those that cannot be reached get it later;
    /// may take as long as nodes do not answer.
    pub fn set_cluster_name(&self, name: &str) -> Result<(), OwnSetupError> {
        if self.is_alone() {
            return self.change_own_setup(|setup| setup.cluster_name = Some(name.to_owned()));
        }
        check_cluster_name(name)?;
        let ordered = self.order_change(&PlanOrder::Name(name.to_owned()));
        ordered.map(drop).map_err(|refusal| OwnSetupError::Failed(refusal.to_string()))
    }

    fn change_own_setup(&self, change: impl FnOnce(&mut OwnSetup)) -> Result<(), OwnSetupError> {
        let _one_at_a_time = self.carrying_out.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_alone.load(Ordering::Relaxed) {
            let why = "What the nodes of a cluster say of themselves is in its map; change that \
                       with PUT /settee/clusterMap";
            return Err(OwnSetupError::Invalid(why.to_owned()));
        }
        let before = self.lock_own_setup().clone();
        let mut next = before.clone();
        change(&mut next);
        if next == before {
            return Ok(());
        }
        next.check_behind(&before)?;
        // Kept first: clients are told nothing that a start would not say again.
        let written = self.own_setup_file.write(&next);
        written.map_err(|error| OwnSetupError::Failed(error.to_string()))?;
        let mut plan = self.next_plan();
        assert_eq!(plan.nodes.len(), 1, "a node alone has no others");
        for node in &mut plan.nodes {
            node.address = next.applied_to(&self.identity.address);
        }
        *self.lock_own_setup() = next;
        *self.lock_plan() = plan;
        self.tell();
        Ok(())
    }

    /// Where this node is reached.
    pub(super) fn this_address(&self) -> NodeAddress {
        if !self.is_alone.load(Ordering::Relaxed) {
            return self.identity.address.clone();
        }
        self.lock_own_setup().applied_to(&self.identity.address)
    }

    /// The cluster's name, if this node is alone and was told one.
    pub(super) fn own_cluster_name(&self) -> Option<String> {
        let is_alone = self.is_alone.load(Ordering::Relaxed);
        self.lock_own_setup().cluster_name.clone().filter(|_| is_alone)
    }

    /// The lock is held for a look-up.
    fn lock_own_setup(&self) -> MutexGuard<'_, OwnSetup> {
        self.own_setup.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
