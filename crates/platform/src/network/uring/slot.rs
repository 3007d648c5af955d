//! One connection of a loop, and the place that it has in the loop's list.

use std::sync::Arc;

use super::incoming::Incoming;
use super::link::Link;
use super::operation::Place;
use super::outgoing::Outgoing;
use super::work::Work;
use crate::network::readiness::Token;

/// One connection. It outlasts its stream until the kernel has nothing to do for it, and holds the
/// socket and what is being sent until then. Most are idle, and many: what only traffic needs lies
/// elsewhere.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) place: Place,
    pub(super) link: Arc<Link>,
    /// What its news come as, while somebody wants them.
    token: Token,
    is_watched: bool,
    pub(super) is_closed: bool,
    /// Where its news of this round are, if these are its.
    pub(super) told_at: u32,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
}

impl Slot {
    /// A connection whose first news say how it stands.
    pub(super) fn new(place: Place, link: Arc<Link>, token: Token, work: &mut Work) -> Self {
        let mut slot = Self {
            place,
            link,
            token,
            is_watched: true,
            is_closed: false,
            told_at: 0,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
        };
        slot.incoming.expect_more(&slot.link, place, work);
        slot.outgoing.expect_room(&slot.link, place, work);
        slot
    }

    /// What its news come as, if somebody wants them.
    pub(super) fn token(&self) -> Option<Token> {
        self.is_watched.then_some(self.token)
    }

    /// Nobody wants its news any more.
    pub(super) fn forget(&mut self) {
        self.is_watched = false;
    }

    /// Its stream is gone.
    pub(super) fn close(&mut self, work: &mut Work) {
        assert!(!self.is_closed, "a stream is closed once");
        self.is_closed = true;
        self.is_watched = false;
        // In this order: what was taken is tried before anything is cancelled.
        self.outgoing.close(self.place, work);
        self.incoming.close(self.place, work);
    }

    /// Whether nobody needs it.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed && self.incoming.is_idle() && self.outgoing.is_idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of the allocator; the next larger one has 128.
    const SLOT_BYTES_MAX: usize = 112;

    #[test]
    fn an_idle_connection_has_a_slot_of_112_bytes_and_a_small_link() {
        assert!(size_of::<Slot>() <= SLOT_BYTES_MAX, "{}", size_of::<Slot>());
        // The socket, which knows more of itself in debug builds, and two counts.
        let link_bytes_max = size_of::<mio::net::TcpStream>() + 2 * size_of::<u32>();
        assert!(size_of::<Link>() <= link_bytes_max, "{}", size_of::<Link>());
    }
}
