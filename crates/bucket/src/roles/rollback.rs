//! A vBucket gives up the last part of its history: another node's is the one that counts.

use std::sync::atomic::Ordering;

use document::{Seqno, Vbid, VbucketState};
use storage::{Rewind, RollbackPlan, StorageError, VbucketRecord};
use vbucket::{PersistentState, RoleChange, StreamPosition, Vbucket, VbucketStatistics};

use super::life_error::LifeError;
use crate::core::{Bucket, BucketCore, VbucketSlot};
use crate::disk::file_state;
use crate::start::{FileContent, MissingInFile, Visit};

/// What of a vBucket outlives a rollback.
struct Before {
    state: PersistentState,
    statistics: VbucketStatistics,
}

impl Bucket {
    /// Takes a replica, or a pending vBucket, back to `seqno` or below: to a state that its file
    /// was in, or to nothing. Mutations that are not persisted are gone, too. Returns where it is
    /// then. It keeps its role. One whose file is damaged goes back to nothing; what is left of the
    /// file is set aside. Not for front-end workers.
    ///
    /// # Errors
    /// See [`LifeError`]; the vBucket is as it was.
    pub fn rollback(&self, vbid: Vbid, seqno: Seqno) -> Result<Seqno, LifeError> {
        self.roll_back(vbid, seqno, || true, |_| true)
    }

    /// The same, unless the vBucket is not at `from` any more: then whoever has decided on a
    /// rollback knew another history, and nothing happens; nor does it where `is_wanted` says no,
    /// which is asked once nobody else can give the vBucket another role. Returns where it is.
    ///
    /// # Errors
    /// See [`LifeError`]; the vBucket is as it was.
    pub fn rollback_from(
        &self,
        vbid: Vbid,
        from: StreamPosition,
        seqno: Seqno,
        is_wanted: impl FnOnce() -> bool,
    ) -> Result<Seqno, LifeError> {
        self.roll_back(vbid, seqno, is_wanted, |vbucket| vbucket.stream_position() == from)
    }

    /// Whether a copy that follows another node's is of no use as it is, because its file is
    /// damaged. Of one that is out of service only the caller knows that it is such a copy.
    pub fn needs_rebuild(&self, vbid: Vbid) -> bool {
        self.0.slot(vbid).is_some_and(|slot| {
            slot.file_is_damaged()
                && slot.lock().as_ref().is_none_or(|vbucket| Before::of(vbucket).is_ok())
        })
    }

    /// Has a replica, or a pending vBucket, whose file is damaged begin empty in its role; one that
    /// is out of service becomes a replica. What is left of the file is set aside. Nothing happens
    /// to one whose file is not damaged, nor where `is_wanted` says no, as in
    /// [`Bucket::rollback_from`]. For whoever follows the active copy: that has everything. Not for
    /// front-end workers.
    ///
    /// # Errors
    /// See [`LifeError`]; it is out of service then. Callers try again.
    pub fn rebuild_replica(
        &self,
        vbid: Vbid,
        is_wanted: impl FnOnce() -> bool,
    ) -> Result<(), LifeError> {
        let core = &self.0;
        let slot = core.slot(vbid).ok_or(LifeError::NotHere)?;
        let history = slot.lock_history();
        let file = slot.lock_file();
        if !slot.file_is_damaged() || !is_wanted() {
            return Ok(());
        }
        let state = match slot.lock().as_ref() {
            Some(vbucket) => Before::of(vbucket)?.state.state,
            None => VbucketState::Replica,
        };
        let (old, made) = core.begin_anew(vbid, slot, state);
        drop(file);
        drop(history);
        drop(old);
        made
    }

    fn roll_back(
        &self,
        vbid: Vbid,
        seqno: Seqno,
        is_wanted: impl FnOnce() -> bool,
        is_as_known: impl FnOnce(&Vbucket) -> bool,
    ) -> Result<Seqno, LifeError> {
        let core = &self.0;
        let slot = core.slot(vbid).ok_or(LifeError::NotHere)?;
        let history = slot.lock_history();
        let file = slot.lock_file();
        // Not under the vBucket's lock: whoever is asked may take another one.
        if !is_wanted() {
            return Ok(slot.lock().as_ref().map_or(Seqno(0), Vbucket::high_seqno));
        }
        let before = match slot.lock().as_ref() {
            None if slot.is_absent() => return Err(LifeError::NotHere),
            None if slot.is_out_of_service() => None,
            None => return Err(LifeError::Loading),
            Some(vbucket) if !is_as_known(vbucket) => return Ok(vbucket.high_seqno()),
            Some(vbucket) => Some(Before::of(vbucket)?),
        };
        let high_before = before.as_ref().map_or(Seqno(0), |before| before.state.high_seqno);
        let (old, high_after) = core.take_back(vbid, slot, seqno, before)?;
        assert!(high_after <= seqno, "a rollback goes back far enough");
        drop(file);
        drop(history);
        drop(old);
        core.counters.rollbacks.fetch_add(1, Ordering::Relaxed);
        let (vbucket, from, to) = (vbid.0, high_before.0, high_after.0);
        tracing::info!(vbucket, from, to, "the vBucket was rolled back");
        Ok(high_after)
    }
}

impl BucketCore {
    /// Takes the vBucket back, or has it begin anew if its file is damaged. Gives the one that was
    /// there, to be dropped behind its history and file, which the caller holds.
    fn take_back(
        &self,
        vbid: Vbid,
        slot: &VbucketSlot,
        seqno: Seqno,
        before: Option<Before>,
    ) -> Result<(Option<Vbucket>, Seqno), LifeError> {
        let state = before.as_ref().map_or(VbucketState::Replica, |before| before.state.state);
        if let Some(before) = before.filter(|_| !slot.file_is_damaged()) {
            match self.rolled_back(vbid, seqno, &before) {
                Ok((vbucket, is_state_in_file)) => {
                    let high_seqno = vbucket.high_seqno();
                    return Ok((self.supersede(slot, vbucket, !is_state_in_file), high_seqno));
                }
                // Everything comes again, from another node.
                Err(error @ (StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. })) => {
                    self.give_up_file(vbid, &error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let (old, made) = self.begin_anew(vbid, slot, state);
        made.map(|()| (old, Seqno(0)))
    }

    fn begin_anew(
        &self,
        vbid: Vbid,
        slot: &VbucketSlot,
        state: VbucketState,
    ) -> (Option<Vbucket>, Result<(), LifeError>) {
        let fresh_uuid = self.vbuckets.factory.new_uuid();
        let change = RoleChange { state, topology: None, is_takeover: false, fresh_uuid };
        self.build_anew(vbid, slot, change)
    }

    /// Takes the file back and makes a vBucket of it; says whether the file has its state.
    fn rolled_back(
        &self,
        vbid: Vbid,
        seqno: Seqno,
        before: &Before,
    ) -> Result<(Vbucket, bool), StorageError> {
        // What is rolled back is what the file has.
        if let Some(applied) = self.store.apply(vbid)? {
            self.tell_of_apply(vbid, &applied);
        }
        if let Some(rewound) = self.rewound_vbucket(vbid, seqno, before)? {
            return Ok(rewound);
        }
        let mut vbucket = self.vbuckets.factory.new_vbucket(vbid, before.state.state);
        before.continue_in(&mut vbucket);
        self.store.reset(vbid, &file_state::to_file(&vbucket.persistent_state()))?;
        Ok((vbucket, false))
    }

    /// The same, if the file can go back.
    fn rewound_vbucket(
        &self,
        vbid: Vbid,
        seqno: Seqno,
        before: &Before,
    ) -> Result<Option<(Vbucket, bool)>, StorageError> {
        while let RollbackPlan::Rewind(mut rewind) = self.store.plan_rollback(vbid, seqno)? {
            // All that can fail by reading comes before anything is changed.
            let mut vbucket = self.rebuild_from(vbid, seqno, &mut rewind, before)?;
            // What was purged is missing in all states that the file can go back to.
            let purge_seqno = self.store.purge_seqno(vbid)?;
            if self.store.rewind(&rewind)? {
                vbucket.note_purged(purge_seqno);
                return Ok(Some((vbucket, !rewind.is_present())));
            }
        }
        Ok(None)
    }

    fn rebuild_from(
        &self,
        vbid: Vbid,
        seqno: Seqno,
        rewind: &mut Rewind,
        before: &Before,
    ) -> Result<Vbucket, StorageError> {
        let then = file_state::from_file(&rewind.record, rewind.high_seqno());
        let now = before.state.clone();
        // What is given up beyond that is the active copy's still, and may have been acknowledged
        // here: until it has come anew this copy is not to be promoted.
        let goes_too_far = then.high_seqno < seqno.min(now.high_seqno);
        let whole_from_seqno =
            if goes_too_far { PersistentState::WHOLE_FROM_UNKNOWN } else { now.whole_from_seqno };
        // Branches that began later are dropped with what they wrote.
        let state = PersistentState {
            high_seqno: then.high_seqno,
            snapshot: then.snapshot,
            facts: then.facts,
            whole_from_seqno,
            ..now
        };
        let item_count = rewind.item_count();
        let missing = MissingInFile::none(state.high_seqno);
        let content = FileContent { vbid, state, item_count, is_whole: true, missing };
        let scan = |from: Seqno, with_values: bool, visit: &mut Visit<'_>| {
            rewind.scan(from, with_values, visit)
        };
        let mut vbucket = self.rebuild(content, scan)?.vbucket;
        before.continue_in(&mut vbucket);
        rewind.record = VbucketRecord {
            on_disk_prepares: rewind.record.on_disk_prepares,
            on_disk_prepare_bytes: rewind.record.on_disk_prepare_bytes,
            journal: rewind.record.journal,
            ..file_state::to_file(&vbucket.persistent_state())
        };
        Ok(vbucket)
    }
}

impl Before {
    fn of(vbucket: &Vbucket) -> Result<Self, LifeError> {
        match vbucket.state() {
            VbucketState::Replica | VbucketState::Pending => {}
            state => return Err(LifeError::WrongState(state)),
        }
        Ok(Self { state: vbucket.persistent_state(), statistics: vbucket.statistics() })
    }

    /// Has `vbucket` count on from here.
    fn continue_in(&self, vbucket: &mut Vbucket) {
        let discarded = self.state.high_seqno.0.saturating_sub(vbucket.high_seqno().0);
        vbucket.continue_statistics(VbucketStatistics {
            rollback_items: self.statistics.rollback_items + discarded,
            ..self.statistics
        });
    }
}
