//! Which vBuckets there are, and which roles they play.
//!
//! A change of role is durable before it is reported. So is a deletion: a list in the bucket's
//! directory says which vBuckets are gone, because one without a file would begin empty. What is on
//! the list has no memory and serves nothing; its file goes after it was listed, and a file that
//! is made for it counts only once it is off the list again.

use document::{VbUuid, Vbid, VbucketState};
use storage::StorageError;
use vbucket::{Effect, RoleChange, Topology, Vbucket};

use super::life_error::LifeError;
use crate::core::{AwaitedRole, Bucket, BucketCore, DamageKind, VbucketSlot};

/// Which role a vBucket is to play.
#[derive(Clone, Debug)]
pub struct NewRole {
    /// The vBucket.
    pub vbid: Vbid,
    /// Its role.
    pub state: VbucketState,
    /// Who must hold durable writes, if it is active.
    pub topology: Option<Topology>,
}

/// How a role comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Succession {
    /// Somebody decided it.
    Decided,
    /// The node that played it before gives it up, and its branch of history goes on.
    TakenOver,
    /// Another node goes on with this branch.
    HandedOver(VbUuid),
}

impl VbucketSlot {
    /// Why a vBucket that is not there, and not deleted either, gets no other role.
    pub(crate) fn why_no_role(&self) -> LifeError {
        match self.damage.get() {
            Some((DamageKind::OutOfService, reason)) => LifeError::Damaged { reason },
            _ => LifeError::Loading,
        }
    }
}

impl Bucket {
    /// Has vBuckets play these roles, and makes those that are not here; one that plays its role
    /// already is left alone. Durable on return, but for those that are returned with what is in
    /// their way: no vBucket keeps others from their roles, and asking again does no harm. Not for
    /// front-end workers.
    #[must_use = "what has failed is to be tried again"]
    pub fn set_vbucket_states(&self, roles: Vec<NewRole>) -> Vec<(Vbid, LifeError)> {
        let core = &self.0;
        let mut left = Vec::new();
        let mut changed: Vec<Vbid> = Vec::new();
        for role in roles {
            let vbid = role.vbid;
            match core.take_up_role(role, Succession::Decided) {
                Ok(()) => changed.push(vbid),
                Err(error) => left.push((vbid, error)),
            }
        }
        let not_durable = core.flush_roles(changed).into_iter();
        left.extend(not_durable.map(|vbid| (vbid, LifeError::NotPersisted)));
        left
    }

    /// Takes a vBucket's role over from the node that gives it up. Durable on return.
    ///
    /// # Errors
    /// See [`LifeError`].
    pub fn take_over(&self, vbid: Vbid, state: VbucketState) -> Result<(), LifeError> {
        self.succeed(vbid, state, Succession::TakenOver)
    }

    /// Makes a vBucket dead that another node goes on with: the one of the branch `uuid`, and no
    /// other that has come into its place since. Durable on return.
    ///
    /// # Errors
    /// See [`LifeError`]; [`LifeError::NotHere`] if there is another one.
    pub fn hand_over(&self, vbid: Vbid, uuid: VbUuid) -> Result<(), LifeError> {
        self.succeed(vbid, VbucketState::Dead, Succession::HandedOver(uuid))
    }

    fn succeed(
        &self,
        vbid: Vbid,
        state: VbucketState,
        succession: Succession,
    ) -> Result<(), LifeError> {
        let core = &self.0;
        core.take_up_role(NewRole { vbid, state, topology: None }, succession)?;
        let is_durable = core.flush_roles([vbid]).is_empty();
        if is_durable { Ok(()) } else { Err(LifeError::NotPersisted) }
    }

    /// Says who must hold durable writes of all vBuckets that are active, for as long as they are
    /// in memory.
    pub fn assume_topology(&self, topology: &Topology) {
        for (vbid, slot) in self.0.slots() {
            // FLUSH puts vBuckets into their places that have what the ones before had.
            let history = slot.lock_history();
            let assumed = self.on_vbucket(vbid, |vbucket, now, effects| {
                vbucket.assume_topology(topology.clone(), now, effects);
            });
            if assumed.is_none() {
                slot.await_topology(topology.clone());
            }
            drop(history);
            // What has no file begins here, and in no other place.
            self.0.have_manifest_followed(vbid);
        }
    }

    /// Says that a vBucket which is not here has no role on this node: it is dead if the bucket is
    /// emptied, and its file stays until then.
    pub fn expect_no_role(&self, vbid: Vbid) {
        let Some(slot) = self.0.slot(vbid) else { return };
        slot.await_role(AwaitedRole::new(VbucketState::Dead, None));
    }

    /// Has a vBucket play another role, and makes one that is not here. Durable on return. Not for
    /// front-end workers.
    ///
    /// # Errors
    /// See [`LifeError`].
    pub fn set_vbucket_state(
        &self,
        vbid: Vbid,
        state: VbucketState,
        topology: Option<Topology>,
    ) -> Result<(), LifeError> {
        let left = self.set_vbucket_states(vec![NewRole { vbid, state, topology }]);
        left.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Deletes a dead vBucket, its file included, or one that is out of service, whose file is set
    /// aside. Not for front-end workers.
    ///
    /// # Errors
    /// [`LifeError::Storage`]: the vBucket is gone, and its file goes at the next start at the
    /// latest. After any other error it is as it was; after [`LifeError::List`] a start may delete
    /// it, until it takes another role.
    pub fn delete_vbucket(&self, vbid: Vbid) -> Result<(), LifeError> {
        let core = &self.0;
        let slot = core.slot(vbid).ok_or(LifeError::NotHere)?;
        let history = slot.lock_history();
        let file = slot.lock_file();
        let state = slot.lock().as_ref().map(Vbucket::state);
        match state {
            None if slot.is_absent() => return Err(LifeError::NotHere),
            None if slot.is_out_of_service() => {}
            None => return Err(LifeError::Loading),
            Some(VbucketState::Dead) => {}
            Some(state) => return Err(LifeError::WrongState(state)),
        }
        let old = core.take_out(vbid, slot)?;
        let deleted = core.store.delete(vbid);
        drop(file);
        drop(history);
        drop(old);
        Ok(deleted?)
    }
}

impl BucketCore {
    /// Changes the role in memory, unless it is the one asked for.
    fn take_up_role(&self, role: NewRole, succession: Succession) -> Result<(), LifeError> {
        let NewRole { vbid, state, topology } = role;
        let slot = self.slot(vbid).ok_or(LifeError::OutOfRange)?;
        let fresh_uuid = self.vbuckets.factory.new_uuid();
        let is_takeover = succession == Succession::TakenOver;
        let mut effects = Vec::new();
        let history = slot.lock_history();
        let file = slot.lock_file();
        if let Succession::HandedOver(uuid) = succession {
            let is_it = |vbucket: &Vbucket| {
                let had = matches!(vbucket.state(), VbucketState::Active | VbucketState::Dead);
                had && vbucket.uuid() == uuid
            };
            if !slot.lock().as_ref().is_some_and(is_it) {
                return Err(LifeError::NotHere);
            }
        }
        if slot.is_absent() {
            let change = RoleChange { state, topology, is_takeover, fresh_uuid };
            return self.create_vbucket(vbid, slot, change);
        }
        // A copy that receives everything anew does not need what is left of a damaged file. What
        // is given up may still be wanted.
        let receives = matches!(state, VbucketState::Replica | VbucketState::Pending);
        if slot.file_is_damaged() && receives {
            let change = RoleChange { state, topology, is_takeover, fresh_uuid };
            let (old, made) = self.build_anew(vbid, slot, change);
            drop(file);
            drop(history);
            drop(old);
            return made;
        }
        // A deletion that has failed may be on the list for all that, and a start would carry it
        // out: with what was written to the vBucket in its new role.
        if slot.lock().is_some() {
            self.directory.make_present(&[vbid])?;
        }
        let awaited = match slot.lock().as_mut() {
            None => Some(AwaitedRole::new(state, topology)),
            Some(vbucket) => {
                let is_new =
                    |wanted: &Topology| state != vbucket.state() || wanted != vbucket.topology();
                // Said once more it is no change, for which a state would be flushed.
                let topology = topology.filter(is_new);
                let change = RoleChange { state, topology, is_takeover, fresh_uuid };
                vbucket.change_role(change, self.now(), &mut effects);
                None
            }
        };
        if let Some(awaited) = awaited {
            slot.await_role(awaited);
            return Err(slot.why_no_role());
        }
        drop(file);
        drop(history);
        self.carry_out(vbid, &mut effects);
        self.have_manifest_followed(vbid);
        Ok(())
    }

    /// Forgets a vBucket that is to be deleted, durably; to be dropped by the caller, who holds its
    /// history and file, behind these.
    fn take_out(&self, vbid: Vbid, slot: &VbucketSlot) -> Result<Option<Vbucket>, LifeError> {
        // The list comes first: whatever becomes of the file then, a start finds the vBucket
        // deleted.
        if self.has_files() {
            self.directory.note_absent(vbid, self.store.revision(vbid))?;
        }
        let mut old = slot.take_absent();
        self.retire(vbid, old.as_mut());
        Ok(old)
    }

    /// The vBucket that was in a place is not there any more; whoever waits for it hears of it.
    pub(crate) fn retire(&self, vbid: Vbid, old: Option<&mut Vbucket>) {
        let mut effects = Vec::new();
        if let Some(old) = old {
            old.retire(&mut effects);
        }
        self.carry_out(vbid, &mut effects);
        self.range_scans.cancel_all_of(vbid);
        self.tell_streams(|streams| streams.role_changed(vbid, None));
        self.forget_failed_writes(vbid);
    }

    /// Puts an empty vBucket into the place of one whose file is damaged; the file is set aside.
    /// What fails leaves it out of service, to be tried again. The caller holds its history and
    /// file, and drops what it is given behind these.
    pub(crate) fn build_anew(
        &self,
        vbid: Vbid,
        slot: &VbucketSlot,
        change: RoleChange,
    ) -> (Option<Vbucket>, Result<(), LifeError>) {
        let reason = slot.damage.get().map(|(_, reason)| reason);
        self.store.distrust(vbid);
        let awaited = AwaitedRole::new(change.state, change.topology.clone());
        let old = match self.take_out(vbid, slot) {
            Ok(old) => old,
            Err(error) => {
                slot.await_role(awaited);
                return (None, Err(error));
            }
        };
        let made = self.create_vbucket(vbid, slot, change);
        match &made {
            Ok(()) => tracing::warn!(
                vbucket = vbid.0,
                state = awaited.state.map(VbucketState::name),
                reason = reason.as_deref().unwrap_or_default(),
                "the vBucket begins empty; what is left of its damaged file is set aside"
            ),
            Err(error) => {
                slot.put_out_of_service(&format!("it cannot be made anew: {error}"));
                slot.await_role(awaited);
            }
        }
        (old, made)
    }

    /// Makes a vBucket that is not here. The caller holds its history and file.
    pub(crate) fn create_vbucket(
        &self,
        vbid: Vbid,
        slot: &VbucketSlot,
        change: RoleChange,
    ) -> Result<(), LifeError> {
        // What the last one has left behind is not to be mixed with this.
        self.store.delete(vbid)?;
        // Files may not have followed a deletion, or a creation that failed, and nobody tries again
        // what is not wanted any more.
        self.forget_failed_writes(vbid);
        let mut effects = Vec::new();
        let mut vbucket = self.vbuckets.factory.new_vbucket(vbid, change.state);
        vbucket.change_role(change, self.now(), &mut effects);
        self.flush_new(&mut vbucket)?;
        // The name of its file remembers the revision from here on.
        self.store.apply(vbid)?;
        // Last of all: as long as it is on the list, a start takes what was written for the rest of
        // a deletion.
        if self.has_files() {
            self.directory.note_present(vbid)?;
        }
        slot.put_present(vbucket);
        self.carry_out(vbid, &mut effects);
        self.have_manifest_followed(vbid);
        self.follow_eviction_policy(vbid);
        Ok(())
    }

    /// Writes the state of a vBucket that is not in its place yet.
    fn flush_new(&self, vbucket: &mut Vbucket) -> Result<(), StorageError> {
        let Some(mut batch) = vbucket.begin_flush() else { return Ok(()) };
        let mut written = Ok(());
        let writes = vec![self.storage_batch(&mut batch)];
        self.store.commit(writes, |_, result| written = result.map(drop));
        written?;
        let mut effects = Vec::new();
        vbucket.flush_succeeded(&batch, self.now(), &mut effects);
        self.carry_out(vbucket.vbid(), &mut effects);
        Ok(())
    }

    /// Ends deletions that a crash has cut short, and takes the places of deleted vBuckets.
    pub(crate) fn forget_absent(&self, has_file: impl Fn(Vbid) -> bool) {
        for (vbid, revision) in self.directory.absent_vbuckets() {
            let Some(slot) = self.slot(vbid) else { continue };
            drop(slot.take_absent());
            if has_file(vbid)
                && let Err(error) = self.store.delete(vbid)
            {
                let vbucket = vbid.0;
                tracing::warn!(%error, vbucket, "the file of a deleted vBucket stays for now");
            }
            self.store.raise_revision(vbid, revision);
        }
    }

    /// Puts `vbucket` into the place of the one that was there; requests that wait hear of it.
    /// The caller holds its file, and drops what it is given when it does not any more.
    pub(crate) fn supersede(
        &self,
        slot: &VbucketSlot,
        vbucket: Vbucket,
        flushes_state: bool,
    ) -> Option<Vbucket> {
        let vbid = vbucket.vbid();
        let mut effects: Vec<Effect> = Vec::new();
        let mut old = slot.replace(vbucket);
        if let Some(old) = &mut old {
            old.retire(&mut effects);
        }
        if flushes_state && let Some(vbucket) = slot.lock().as_mut() {
            vbucket.flush_state_anew(&mut effects);
        }
        self.carry_out(vbid, &mut effects);
        self.range_scans.cancel_all_of(vbid);
        self.tell_streams(|streams| streams.role_changed(vbid, None));
        self.have_manifest_followed(vbid);
        self.follow_eviction_policy(vbid);
        // What could not be flushed is not wanted any more.
        slot.forget_file();
        self.forget_failed_writes(vbid);
        old
    }
}
