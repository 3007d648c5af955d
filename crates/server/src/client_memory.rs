//! Memory that clients make the node hold beside documents.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The part of the budget that strangers may use up: what they hold is not missed by clients.
const STRANGERS_SHARE: usize = 8;
/// Bytes that a stranger may hold when the share of all of them is used up. A login takes less.
pub(crate) const STRANGER_BYTES_MIN: usize = 1 << 10;

/// The part of what strangers leave that guests may use up, where there is a door for them.
const GUESTS_SHARE: usize = 2;

/// Bytes that are received and not executed yet, of requests that wait, and of answers that their
/// readers have not taken, of all connections. One budget bounds them, of which clients, guests and
/// strangers have a share each. When that of the clients is used up large requests of theirs are
/// refused, none of them gets more answers than it reads, and nobody new is let in by the doors
/// that ask for a name; when half of it is used up those are let go of who have left a request
/// half sent for long. For guests and their door their share means the same. When that of the
/// strangers is used up those who hold more than a login takes are let go of.
///
/// A connection that keeps up with its client holds nothing, so the counts are seldom written.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ClientMemory {
    by_clients: AtomicUsize,
    by_guests: AtomicUsize,
    by_strangers: AtomicUsize,
    bytes_max: usize,
    /// Bytes of those that guests may have the node hold.
    guests_bytes_max: usize,
}

/// Who makes the node hold something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Holder {
    /// It is known who it is.
    #[default]
    Client,
    /// Nobody asks who it is, as it came by the door for clients of memcached.
    Guest,
    /// It has not said who it is.
    Stranger,
}

/// What a connection makes the node hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) holder: Holder,
    pub(crate) bytes: usize,
}

impl ClientMemory {
    /// A budget of which guests have a share if there is a door for them.
    pub(crate) fn new(bytes_max: usize, has_guests: bool) -> Self {
        let left_bytes = bytes_max - bytes_max / STRANGERS_SHARE;
        Self {
            by_clients: AtomicUsize::new(0),
            by_guests: AtomicUsize::new(0),
            by_strangers: AtomicUsize::new(0),
            bytes_max,
            guests_bytes_max: if has_guests { left_bytes / GUESTS_SHARE } else { 0 },
        }
    }

    /// A connection that held `before` holds `now`.
    pub(crate) fn settle(&self, before: Held, now: Held) {
        // In this order: for a moment too much is counted rather than too little.
        self.used_by(now.holder).fetch_add(now.bytes, Ordering::Relaxed);
        let used_bytes = self.used_by(before.holder).fetch_sub(before.bytes, Ordering::Relaxed);
        assert!(used_bytes >= before.bytes, "what is given back was held");
    }

    /// Bytes that are held.
    pub(crate) fn used_bytes(&self) -> usize {
        [Holder::Client, Holder::Guest, Holder::Stranger]
            .map(|holder| self.used_by(holder).load(Ordering::Relaxed))
            .iter()
            .sum()
    }

    /// Bytes that may be held. What a turn adds beyond them is still taken.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes of those that strangers may have the node hold.
    pub(crate) fn strangers_bytes_max(&self) -> usize {
        self.bytes_max / STRANGERS_SHARE
    }

    /// Bytes of those that are held for guests.
    pub(crate) fn guests_bytes(&self) -> usize {
        self.by_guests.load(Ordering::Relaxed)
    }

    /// Bytes of those that guests may have the node hold.
    pub(crate) fn guests_bytes_max(&self) -> usize {
        self.guests_bytes_max
    }

    /// Whether `bytes` more may be held.
    pub(crate) fn has_room_for(&self, holder: Holder, bytes: usize) -> bool {
        let used_bytes = self.used_by(holder).load(Ordering::Relaxed);
        used_bytes.saturating_add(bytes) <= self.share_bytes_max(holder)
    }

    /// Whether more than half of a share is used, so that a large request may find no room.
    pub(crate) fn is_short_for(&self, holder: Holder) -> bool {
        !self.has_room_for(holder, self.share_bytes_max(holder) / 2)
    }

    fn share_bytes_max(&self, holder: Holder) -> usize {
        match holder {
            Holder::Client => self.bytes_max - self.strangers_bytes_max() - self.guests_bytes_max(),
            Holder::Guest => self.guests_bytes_max(),
            Holder::Stranger => self.strangers_bytes_max(),
        }
    }

    /// Whether somebody who holds this has to go.
    pub(crate) fn is_too_much(&self, held: Held) -> bool {
        held.holder == Holder::Stranger
            && held.bytes > STRANGER_BYTES_MIN
            && !self.has_room_for(Holder::Stranger, 0)
    }

    fn used_by(&self, holder: Holder) -> &AtomicUsize {
        match holder {
            Holder::Client => &self.by_clients,
            Holder::Guest => &self.by_guests,
            Holder::Stranger => &self.by_strangers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn held(holder: Holder, bytes: usize) -> Held {
        Held { holder, bytes }
    }

    #[test]
    fn what_strangers_hold_is_not_missed_by_clients() {
        let memory = ClientMemory::new(8 * MIB, false);
        memory.settle(Held::default(), held(Holder::Stranger, 2 * MIB));
        assert!(!memory.has_room_for(Holder::Stranger, 0));
        assert!(memory.has_room_for(Holder::Client, 7 * MIB));
        memory.settle(Held::default(), held(Holder::Client, 8 * MIB));
        assert!(!memory.has_room_for(Holder::Client, 0));
        assert_eq!(memory.used_bytes(), 10 * MIB);
    }

    #[test]
    fn guests_and_clients_do_not_miss_what_the_others_hold() {
        for (full, other) in [(Holder::Guest, Holder::Client), (Holder::Client, Holder::Guest)] {
            let memory = ClientMemory::new(16 * MIB, true);
            assert!(memory.has_room_for(full, 7 * MIB));
            memory.settle(Held::default(), held(full, 7 * MIB));
            assert!(!memory.has_room_for(full, 1));
            assert!(memory.has_room_for(other, 7 * MIB));
            assert!(memory.has_room_for(Holder::Stranger, 2 * MIB));
        }
        let memory = ClientMemory::new(16 * MIB, false);
        assert!(memory.has_room_for(Holder::Client, 14 * MIB), "nobody else comes");
    }

    #[test]
    fn who_logs_in_takes_along_what_it_holds() {
        let memory = ClientMemory::new(8 * MIB, false);
        let stranger = held(Holder::Stranger, 2 * MIB);
        memory.settle(Held::default(), stranger);
        memory.settle(stranger, held(Holder::Client, 3 * MIB));
        assert!(memory.has_room_for(Holder::Stranger, MIB));
        assert!(!memory.has_room_for(Holder::Client, 5 * MIB));
        memory.settle(held(Holder::Client, 3 * MIB), Held::default());
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn a_stranger_with_more_than_a_login_goes_when_the_share_is_used_up() {
        let memory = ClientMemory::new(8 * MIB, false);
        let (small, large) = (STRANGER_BYTES_MIN, STRANGER_BYTES_MIN + 1);
        assert!(!memory.is_too_much(held(Holder::Stranger, large)), "there is room");
        memory.settle(Held::default(), held(Holder::Stranger, MIB + 1));
        assert!(memory.is_too_much(held(Holder::Stranger, large)));
        assert!(!memory.is_too_much(held(Holder::Stranger, small)));
        assert!(!memory.is_too_much(held(Holder::Client, large)));
    }
}
