//! FLUSH: a bucket begins anew.

use document::{Vbid, VbucketState};
use vbucket::{Topology, Vbucket};

use super::life_error::LifeError;
use crate::core::{AwaitedRole, Bucket, BucketCore, VbucketSlot};

impl Bucket {
    /// Empties the bucket: every vBucket begins a new history in its role, its file is removed,
    /// also that of a vBucket which is still being loaded or cannot be. Replicas stay: they go back
    /// when their active copies begin anew, and what these have acknowledged since is not to go
    /// from under the streams that bring it. Durable on return, the roles included. Not for
    /// front-end workers.
    ///
    /// # Errors
    /// [`LifeError::Storage`]: some are empty and the others as they were; empty the bucket again.
    /// [`LifeError::List`]: all are as they were.
    /// [`LifeError::NotPersisted`]: all are empty, and a start may take some for active.
    pub fn flush_all(&self) -> Result<(), LifeError> {
        let core = &self.0;
        let (roles_to_write, deleted) = core.empty_all();
        let not_written = core.flush_roles(roles_to_write);
        deleted?;
        if not_written.is_empty() { Ok(()) } else { Err(LifeError::NotPersisted) }
    }
}

impl BucketCore {
    /// Has all vBuckets but replicas begin anew. Gives those whose roles have to be written: one
    /// without a file is active, and no map has made it so.
    fn empty_all(&self) -> (Vec<Vbid>, Result<(), LifeError>) {
        // Before the locks, so that it is freed behind them (invariant 10).
        let mut emptied: Vec<Vbucket> = Vec::new();
        let _histories: Vec<_> =
            self.vbuckets.slots.iter().map(VbucketSlot::lock_history).collect();
        let _files: Vec<_> = self.vbuckets.slots.iter().map(VbucketSlot::lock_file).collect();
        let roles: Vec<_> = self.slots().map(|(vbid, slot)| self.role_of(vbid, slot)).collect();
        let state_of = |vbid: Vbid| roles.get(usize::from(vbid.0)).map(|(state, _)| *state);
        let is_replica = |vbid: Vbid| state_of(vbid) == Some(VbucketState::Replica);
        // One that was to be deleted or made anew, which failed, may be listed as deleted: a start
        // would take it for that, with what is written to it from now on.
        let begins = |&(vbid, slot): &(Vbid, &VbucketSlot)| !is_replica(vbid) && !slot.is_absent();
        let beginning: Vec<Vbid> = self.slots().filter(begins).map(|(vbid, _)| vbid).collect();
        if let Err(error) = self.directory.make_present(&beginning) {
            return (Vec::new(), Err(error.into()));
        }
        let mut gone = Vec::new();
        let deleted = self.store.delete_where(|vbid| !is_replica(vbid), |vbid| gone.push(vbid));
        if deleted.is_ok() {
            // Also those that never had a file.
            gone = self.slots().map(|(vbid, _)| vbid).filter(|&it| !is_replica(it)).collect();
        }
        let mut roles_to_write = Vec::new();
        for vbid in gone {
            // Also of those that were deleted, whose files may have stayed until now.
            self.forget_failed_writes(vbid);
            let Some(slot) = self.slot(vbid).filter(|slot| !slot.is_absent()) else { continue };
            let Some((state, topology)) = roles.get(usize::from(vbid.0)).cloned() else { continue };
            let mut vbucket = self.vbuckets.factory.new_vbucket(vbid, state);
            // One that a map has made active must not look like one whose disk is lost.
            let writes_role = state != VbucketState::Active || !topology.is_empty();
            let mut effects = Vec::new();
            vbucket.assume_topology(topology, self.now(), &mut effects);
            if let Some(old) = self.supersede(slot, vbucket, writes_role) {
                // What was done is not undone: counters do not fall.
                if let Some(vbucket) = slot.lock().as_mut() {
                    vbucket.continue_statistics(old.statistics());
                }
                emptied.push(old);
            }
            self.carry_out(vbid, &mut effects);
            if writes_role {
                roles_to_write.push(vbid);
            }
        }
        (roles_to_write, deleted.map_err(LifeError::from))
    }

    /// The role of a vBucket and who must hold its durable writes, also of one that is not loaded:
    /// then what was asked of it, or else what its file knows. The caller holds its history.
    fn role_of(&self, vbid: Vbid, slot: &VbucketSlot) -> (VbucketState, Topology) {
        if let Some(vbucket) = slot.lock().as_ref() {
            return (vbucket.state(), vbucket.topology().clone());
        }
        let AwaitedRole { state, topology } = slot.awaited();
        let record = self.store.state(vbid).ok().flatten();
        let state = state.or(record.as_ref().map(|record| record.state));
        // Who is in a file that is not believed may have been in the chain long ago.
        let known = record.filter(|_| topology.is_empty() && !slot.is_out_of_service());
        let topology = known.map_or(topology, |record| (*record.replication_topology).clone());
        (state.unwrap_or(VbucketState::Active), topology)
    }
}
