//! Who the nodes of a cluster are. Each has made its identity once and keeps it in its data
//! directory; the others ask for it, since a map names nodes by where they are reached.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cluster::{ClusterPlan, NodeAddress, Uuid};

use super::Membership;
use super::exchange::Exchange;
use crate::peer_copies::AskIdentity;

/// Where a node is asked: its host and its management port.
type Place = (String, u16);

/// What the others have said, and whether one is still to be asked.
#[derive(Default)]
pub(super) struct Identities {
    ask: OnceLock<AskIdentity>,
    /// Those of the nodes of the last map, as far as they have answered.
    known: Mutex<BTreeMap<Place, Uuid>>,
    pub(super) state: Exchange,
}

impl Membership {
    /// Has the node ask others who they are with `ask`.
    pub(crate) fn ask_identities_with(&self, ask: AskIdentity) {
        assert!(self.identities.ask.set(ask).is_ok(), "there is one way to ask who somebody is");
    }

    /// The identity of the node that is reached there. That of another one which has not answered
    /// since this one started is made of the cluster's and of where it is reached.
    pub fn uuid_of(&self, address: &NodeAddress) -> Uuid {
        let place = place_of(address);
        if place == place_of(&self.this_address()) {
            return self.identity.node_uuid;
        }
        let known = self.identities.lock_known().get(&place).copied();
        known.unwrap_or_else(|| {
            let (host, port) = place;
            self.cluster_map().uuid.derived(&format!("{host}:{port}"))
        })
    }

    /// Asks the others of a map who they are, if one is still to be asked. What is known stays
    /// until there is another answer: a node may have been replaced.
    pub(super) fn ask_identities(&self, plan: &ClusterPlan) {
        let Some(ask) = self.identities.ask.get().filter(|_| self.identities.state.is_due()) else {
            return;
        };
        let _asking = self.identities.state.lock();
        self.identities.state.set_due(false);
        let others = self.other_members(plan);
        let is_of_map = |place: &Place| others.iter().any(|it| place_of(&it.address) == *place);
        self.identities.lock_known().retain(|place, _| is_of_map(place));
        for node in others {
            match ask(&node.address) {
                Ok(uuid) => {
                    self.identities.lock_known().insert(place_of(&node.address), uuid);
                }
                Err(error) => {
                    tracing::debug!(node = node.name, "it does not say who it is: {error:#}");
                    self.identities.state.set_due(true);
                }
            }
        }
    }
}

impl Identities {
    fn lock_known(&self) -> MutexGuard<'_, BTreeMap<Place, Uuid>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place_of(address: &NodeAddress) -> Place {
    (address.host.clone(), address.management_port)
}
