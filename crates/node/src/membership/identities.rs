//! Who the nodes of a cluster are. Each has made its identity once and keeps it in its data
//! directory; the others ask for it, since a map names nodes by where they are reached. With it
//! they hear what it has.

use cluster::{ClusterPlan, NodeAddress, StorageFigures, Uuid};

use super::Membership;
use super::known_identities::place_of;
use crate::peer_copies::AskIdentity;

impl Membership {
    /// Has the node ask others who they are with `ask`.
    pub(crate) fn ask_identities_with(&self, ask: AskIdentity) {
        self.identities.ask_with(ask);
    }

    /// The identity of the node that is reached there. That of another one which has not answered
    /// since this one started is made of the cluster's and of where it is reached.
    pub fn uuid_of(&self, address: &NodeAddress) -> Uuid {
        let place = place_of(address);
        if place == place_of(&self.this_address()) {
            return self.identity.node_uuid;
        }
        let known = self.identities.find(address).map(|known| known.uuid);
        known.unwrap_or_else(|| {
            let (host, port) = place;
            self.cluster_map().uuid.derived(&format!("{host}:{port}"))
        })
    }

    /// What the other nodes of the map have said last that they have, together. Those that have
    /// said nothing since this one started are not in it.
    pub fn storage_elsewhere(&self) -> StorageFigures {
        let plan = self.plan();
        let others = self.other_members(&plan);
        let known = others.iter().filter_map(|node| self.identities.find(&node.address));
        known.fold(StorageFigures::default(), |mut sum, known| {
            sum += known.storage;
            sum
        })
    }

    /// Asks the others of the map what they have. May take as long as nodes do not answer.
    pub fn ask_others(&self) {
        let plan = self.plan();
        self.identities.ask_again(&self.other_members(&plan), || self.is_stopping());
    }

    /// Asks the others of a map who they are, if one is still to be asked.
    pub(super) fn ask_identities(&self, plan: &ClusterPlan) {
        self.identities.ask_those_due(&self.other_members(plan), || self.is_stopping());
    }
}
