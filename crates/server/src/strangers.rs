//! Connections of which nobody knows yet who they are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use platform::Instant;

/// The strangers of all workers. Where there are too many connections, or too many strangers from
/// one address, the one that came first gives way to the next: who means to log in does so at once.
/// The lock is taken when a connection comes, logs in and goes, never for a request, and no other
/// is taken under it.
#[derive(Debug)]
pub(crate) struct Strangers {
    /// Those of one address, at most.
    of_address_max: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    all: BTreeSet<Stranger>,
    /// The same by where they come from, as far as that is known. No set is empty.
    by_address: BTreeMap<IpAddr, BTreeSet<Stranger>>,
}

/// One of them. A token is used again, so it is known by its time, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stranger {
    /// Since when it is one.
    pub(crate) since: Instant,
    /// Whose connection it is.
    pub(crate) worker: usize,
    /// Its place there.
    pub(crate) token: usize,
    /// Where it comes from, as limits count it.
    pub(crate) address: Option<IpAddr>,
}

impl Table {
    fn insert(&mut self, stranger: Stranger) -> bool {
        if let Some(address) = stranger.address {
            self.by_address.entry(address).or_default().insert(stranger);
        }
        self.all.insert(stranger)
    }

    fn remove(&mut self, stranger: Stranger) {
        self.all.remove(&stranger);
        let Some(address) = stranger.address else { return };
        if let Some(neighbours) = self.by_address.get_mut(&address) {
            neighbours.remove(&stranger);
            if neighbours.is_empty() {
                self.by_address.remove(&address);
            }
        }
    }
}

impl Strangers {
    /// None yet, and of one address never more than so many.
    pub(crate) fn new(of_address_max: usize) -> Self {
        assert!(of_address_max > 0, "who comes is a stranger at first");
        Self { of_address_max, table: Mutex::default() }
    }

    /// A connection has come, or has forgotten who it is. Returned is the one that gives way to it,
    /// if its address has too many, who is not one of them any more.
    pub(crate) fn enter(&self, stranger: Stranger) -> Option<Stranger> {
        let mut table = self.lock();
        let is_new = table.insert(stranger);
        assert!(is_new, "a connection is a stranger once: {stranger:?}");
        let neighbours = table.by_address.get(&stranger.address?)?;
        let oldest = neighbours.first().filter(|_| neighbours.len() > self.of_address_max);
        let oldest = oldest.copied()?;
        table.remove(oldest);
        Some(oldest)
    }

    /// It has said who it is, or has gone.
    pub(crate) fn leave(&self, stranger: Stranger) {
        self.lock().remove(stranger);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().all.len()
    }

    /// The one that came first, who is not one of them any more.
    pub(crate) fn take_oldest(&self) -> Option<Stranger> {
        let mut table = self.lock();
        let oldest = table.all.first().copied()?;
        table.remove(oldest);
        Some(oldest)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(since: u64, token: usize, address: Option<[u8; 4]>) -> Stranger {
        let address = address.map(IpAddr::from);
        Stranger { since: Instant(since), worker: 0, token, address }
    }

    #[test]
    fn the_oldest_that_is_still_a_stranger_goes_first() {
        let strangers = Strangers::new(10);
        let stranger = |opened, token| stranger(opened, token, None);
        for one in [stranger(3, 1), stranger(1, 2), stranger(2, 3), stranger(2, 4)] {
            assert_eq!(strangers.enter(one), None);
        }
        strangers.leave(stranger(1, 2));
        strangers.leave(stranger(9, 3));
        let order = std::iter::from_fn(|| strangers.take_oldest());
        assert_eq!(order.map(|one| one.token).collect::<Vec<_>>(), [3, 4, 1]);
    }

    #[test]
    fn one_too_many_of_an_address_gives_way_and_those_of_others_stay() {
        let strangers = Strangers::new(2);
        let (crowd, other) = (Some([10, 0, 0, 1]), Some([10, 0, 0, 2]));
        for (one, given_way) in [
            (stranger(1, 1, other), None),
            (stranger(2, 2, crowd), None),
            (stranger(3, 3, crowd), None),
            (stranger(4, 4, crowd), Some(2)),
            (stranger(5, 5, None), None),
            (stranger(6, 6, None), None),
            (stranger(7, 7, None), None),
            (stranger(8, 8, other), None),
            (stranger(9, 9, crowd), Some(3)),
        ] {
            assert_eq!(strangers.enter(one).map(|one| one.token), given_way, "{one:?}");
        }
        // Who has logged in, or has gone, is not counted.
        strangers.leave(stranger(4, 4, crowd));
        assert_eq!(strangers.enter(stranger(10, 10, crowd)), None);
        assert_eq!(strangers.count(), 7);
        while strangers.take_oldest().is_some() {}
        assert!(strangers.lock().by_address.is_empty(), "nothing is left of addresses");
    }
}
