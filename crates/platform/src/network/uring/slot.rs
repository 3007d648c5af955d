//! One connection of a loop, and the place that it has in the loop's list.

use std::sync::Arc;

use super::incoming::Incoming;
use super::link::Link;
use super::operation::Place;
use super::outgoing::Outgoing;
use super::work::Work;
use crate::network::readiness::Token;

/// One connection. It outlasts its stream until the kernel has nothing to do for it, and holds the
/// socket and what is being sent until then.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) place: Place,
    pub(super) link: Arc<Link>,
    /// What its news come as, while somebody wants them.
    pub(super) token: Option<Token>,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// The round that its news were last put into, and where.
    pub(super) news_at: (u64, usize),
    pub(super) is_closed: bool,
}

impl Slot {
    /// A connection whose first news say how it stands.
    pub(super) fn new(place: Place, link: Arc<Link>, token: Token, work: &mut Work) -> Self {
        let mut slot = Self {
            place,
            link,
            token: Some(token),
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            news_at: (0, 0),
            is_closed: false,
        };
        slot.incoming.expect_more(&slot.link, place, work);
        slot.outgoing.expect_room(&slot.link, place, work);
        slot
    }

    /// Its stream is gone.
    pub(super) fn close(&mut self, work: &mut Work) {
        assert!(!self.is_closed, "a stream is closed once");
        self.is_closed = true;
        self.token = None;
        // In this order: what was taken is tried before anything is cancelled.
        self.outgoing.close(self.place, work);
        self.incoming.close(self.place, work);
    }

    /// Whether nobody needs it.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed && self.incoming.is_idle() && self.outgoing.is_idle()
    }
}
