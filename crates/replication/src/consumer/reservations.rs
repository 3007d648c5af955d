//! Which vBuckets of a bucket are not to be asked for at the moment, whoever would ask.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use document::Vbid;

/// Says of each vBucket of a bucket who has it receive. A vBucket has one stream: what two bring
/// could leave gaps. Its lock is held for one look or change.
#[derive(Debug, Default)]
pub struct Reservations(Mutex<Reserved>);

#[derive(Debug, Default)]
struct Reserved {
    /// They go back at the moment. Nobody asks for a stream of one: what it would acknowledge may
    /// be gone a moment later. That holds across connections, because the one that has asked for
    /// the rollback may break, or another node be followed, before the task has come to its end.
    rolling_back: BTreeSet<Vbid>,
    /// They follow other nodes by the cluster's map.
    followed: BTreeSet<Vbid>,
    /// The nodes that they are to follow by the newest map, by name. Who follows hears of it a
    /// little later.
    leaders: BTreeMap<Vbid, String>,
    /// A manager relays what is sent for them.
    relayed: BTreeSet<Vbid>,
}

impl Reservations {
    /// The vBucket goes back from now on.
    pub fn begin_rollback(&self, vbid: Vbid) {
        self.lock().rolling_back.insert(vbid);
    }

    /// It does not any more.
    pub fn end_rollback(&self, vbid: Vbid) {
        self.lock().rolling_back.remove(&vbid);
    }

    /// These vBuckets follow other nodes from now on, and no others: one that is relayed, once that
    /// has ended.
    pub(crate) fn follow(&self, followed: BTreeSet<Vbid>) {
        self.lock().followed = followed;
    }

    /// By the map that is carried out these vBuckets follow these nodes, and no others follow any.
    pub(crate) fn lead(&self, leaders: BTreeMap<Vbid, String>) {
        self.lock().leaders = leaders;
    }

    /// Whether this is the node that the vBucket is to follow, or, of `None`, there is none.
    pub(super) fn has_leader(&self, vbid: Vbid, name: Option<&str>) -> bool {
        self.lock().leaders.get(&vbid).map(String::as_str) == name
    }

    /// A manager relays for this vBucket from now on. `false` if it receives already.
    pub(super) fn begin_relay(&self, vbid: Vbid) -> bool {
        // Both under one hold of the lock: of two connections that ask at once one is refused.
        let mut reserved = self.lock();
        !reserved.followed.contains(&vbid) && reserved.relayed.insert(vbid)
    }

    /// It does not any more.
    pub(super) fn end_relay(&self, vbid: Vbid) {
        self.lock().relayed.remove(&vbid);
    }

    pub(super) fn is_rolling_back(&self, vbid: Vbid) -> bool {
        self.lock().rolling_back.contains(&vbid)
    }

    pub(super) fn is_relayed(&self, vbid: Vbid) -> bool {
        self.lock().relayed.contains(&vbid)
    }

    fn lock(&self) -> MutexGuard<'_, Reserved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vbucket_receives_from_one_place() {
        let (reservations, vbid) = (Reservations::default(), Vbid(3));
        assert!(reservations.begin_relay(vbid));
        assert!(!reservations.begin_relay(vbid), "it is relayed already");
        reservations.follow(BTreeSet::from([vbid]));
        assert!(reservations.is_relayed(vbid), "who follows has to wait");
        reservations.end_relay(vbid);
        assert!(!reservations.is_relayed(vbid));
        assert!(!reservations.begin_relay(vbid), "it follows by the map");
        reservations.follow(BTreeSet::new());
        assert!(reservations.begin_relay(vbid));
    }

    #[test]
    fn a_vbucket_has_the_leader_that_the_newest_map_says_or_none() {
        let (reservations, vbid) = (Reservations::default(), Vbid(3));
        let leads = |name| reservations.has_leader(vbid, name);
        assert!(leads(None) && !leads(Some("n_0")));
        reservations.lead(BTreeMap::from([(vbid, "n_0".to_owned())]));
        assert!(leads(Some("n_0")) && !leads(Some("n_1")) && !leads(None));
        reservations.lead(BTreeMap::new());
        assert!(leads(None) && !leads(Some("n_0")));
    }
}
