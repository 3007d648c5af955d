//! Waiting, which on a simulated network is looking.

use super::SimulatedNetwork;
use super::state::PollNumber;
use crate::clock::Instant;
use crate::network::readiness::{Readiness, Token};

/// Where a loop looks for news of its sockets. A handle.
#[derive(Clone, Debug)]
pub struct Poll {
    network: SimulatedNetwork,
    number: PollNumber,
}

impl Poll {
    pub(super) fn new(network: SimulatedNetwork) -> Self {
        let number = network.lock().add_poll();
        Self { network, number }
    }

    pub(super) fn number(&self) -> PollNumber {
        self.number
    }

    pub(crate) fn take_ready(&self, ready: &mut Vec<Readiness>) {
        self.network.lock().take_ready(self.number, ready);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.network.lock().is_ready(self.number)
    }

    pub(crate) fn next_delivery(&self) -> Option<Instant> {
        self.network.next_delivery()
    }

    pub(crate) fn wake(&self, token: Token) {
        self.network.lock().wake(self.number, token);
    }
}
