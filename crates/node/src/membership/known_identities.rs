//! Who the other nodes of a map are, as they have said it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cluster::{NodeAddress, PlannedNode, Uuid};

use super::exchange::Exchange;
use crate::peer_copies::AskIdentity;

/// Where a node is asked: its host and its management port.
type Place = (String, u16);

/// What the others have said, and whether one is still to be asked.
#[derive(Default)]
pub(super) struct KnownIdentities {
    ask: OnceLock<AskIdentity>,
    /// Those of the nodes of the last map, as far as they have answered.
    known: Mutex<BTreeMap<Place, Uuid>>,
    pub(super) state: Exchange,
}

impl KnownIdentities {
    /// Has others asked with `ask`.
    pub(super) fn ask_with(&self, ask: AskIdentity) {
        assert!(self.ask.set(ask).is_ok(), "there is one way to ask who somebody is");
    }

    /// Who is reached there, if it has said so.
    pub(super) fn find(&self, address: &NodeAddress) -> Option<Uuid> {
        self.lock().get(&place_of(address)).copied()
    }

    /// Asks the others of a map who they are, if one is still to be asked. What is known stays
    /// until there is another answer: a node may have been replaced. Nobody is asked any more once
    /// `is_over`.
    pub(super) fn ask_those_due(&self, others: &[&PlannedNode], is_over: impl Fn() -> bool) {
        let Some(ask) = self.ask.get().filter(|_| self.state.is_due()) else { return };
        let _asking = self.state.lock();
        // Before anybody is asked: a map that is carried out meanwhile sets it again, and that
        // counts.
        self.state.set_due(false);
        let is_of_map = |place: &Place| others.iter().any(|it| place_of(&it.address) == *place);
        self.lock().retain(|place, _| is_of_map(place));
        for node in others {
            if is_over() {
                self.state.set_due(true);
                return;
            }
            match ask(&node.address) {
                Ok(uuid) => {
                    self.lock().insert(place_of(&node.address), uuid);
                }
                Err(error) => {
                    tracing::debug!(node = node.name, "it does not say who it is: {error:#}");
                    self.state.set_due(true);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, Uuid>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells one node from another while it is not known who it is.
pub(super) fn place_of(address: &NodeAddress) -> Place {
    (address.host.clone(), address.management_port)
}
