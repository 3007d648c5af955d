//! Who the other nodes of a map are, and what they have, as they have said it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cluster::{NodeAddress, PlannedNode};

use super::exchange::Exchange;
use crate::peer_copies::{AskIdentity, Introduction};

/// Where a node is asked: its host and its management port.
type Place = (String, u16);

/// What the others have said, and whether one is still to be asked.
#[derive(Default)]
pub(super) struct KnownIdentities {
    ask: OnceLock<AskIdentity>,
    /// Those of the nodes of the last map, as far as they have answered.
    known: Mutex<BTreeMap<Place, Introduction>>,
    pub(super) state: Exchange,
}

impl KnownIdentities {
    /// Has others asked with `ask`.
    pub(super) fn ask_with(&self, ask: AskIdentity) {
        assert!(self.ask.set(ask).is_ok(), "there is one way to ask who somebody is");
    }

    /// What whoever is reached there has said last, if it has.
    pub(super) fn find(&self, address: &NodeAddress) -> Option<Introduction> {
        self.lock().get(&place_of(address)).copied()
    }

    /// Asks the others of a map who they are, if one is still to be asked. What is known stays
    /// until there is another answer: a node may have been replaced. Nobody is asked any more once
    /// `is_over`.
    pub(super) fn ask_those_due(&self, others: &[&PlannedNode], is_over: impl Fn() -> bool) {
        if !self.state.is_due() {
            return;
        }
        let _asking = self.state.lock();
        // Before anybody is asked: a map that is carried out meanwhile sets it again, and that
        // counts.
        self.state.set_due(false);
        let is_of_map = |place: &Place| others.iter().any(|it| place_of(&it.address) == *place);
        self.lock().retain(|place, _| is_of_map(place));
        if !self.ask_each(others, is_over) {
            self.state.set_due(true);
        }
    }

    /// Asks them whether or not one is still to be asked. Who does not answer is not asked again,
    /// and nobody is forgotten: there may be another map by now.
    pub(super) fn ask_again(&self, others: &[&PlannedNode], is_over: impl Fn() -> bool) {
        let _asking = self.state.lock();
        self.ask_each(others, is_over);
    }

    /// Whether all have answered.
    fn ask_each(&self, others: &[&PlannedNode], is_over: impl Fn() -> bool) -> bool {
        let Some(ask) = self.ask.get() else { return false };
        let mut have_all_answered = true;
        for node in others {
            if is_over() {
                return false;
            }
            match ask(&node.address) {
                Ok(introduction) => {
                    self.lock().insert(place_of(&node.address), introduction);
                }
                Err(error) => {
                    tracing::debug!(node = node.name, "it does not say who it is: {error:#}");
                    have_all_answered = false;
                }
            }
        }
        have_all_answered
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, Introduction>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells one node from another while it is not known who it is.
pub(super) fn place_of(address: &NodeAddress) -> Place {
    (address.host.clone(), address.management_port)
}
