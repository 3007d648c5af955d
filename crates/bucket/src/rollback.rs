//! A vBucket gives up the last part of its history: another node's is the one that counts.

use std::sync::atomic::Ordering;

use document::{Seqno, Vbid, VbucketState};
use storage::{Rewind, RollbackPlan, StorageError, VbucketRecord};
use vbucket::{PersistentState, StreamPosition, Vbucket, VbucketStatistics};

use crate::bucket::{Bucket, BucketCore};
use crate::file_state;
use crate::rebuild::{FileContent, MissingInFile, Visit};
use crate::vbucket_life::LifeError;

/// What of a vBucket outlives a rollback.
struct Before {
    state: PersistentState,
    statistics: VbucketStatistics,
}

impl Bucket {
    /// Takes a replica, or a pending vBucket, back to `seqno` or below: to a state that its file
    /// was in, or to nothing. Mutations that are not persisted are gone, too. Returns where it is
    /// then. It keeps its role. Not for front-end workers.
    ///
    /// # Errors
    /// See [`LifeError`]; the vBucket is as it was.
    pub fn rollback(&self, vbid: Vbid, seqno: Seqno) -> Result<Seqno, LifeError> {
        self.roll_back(vbid, seqno, |_| true)
    }

    /// The same, unless the vBucket is not at `from` any more: then whoever has decided on a
    /// rollback knew another history, and nothing happens. Returns where it is.
    ///
    /// # Errors
    /// See [`LifeError`]; the vBucket is as it was.
    pub fn rollback_from(
        &self,
        vbid: Vbid,
        from: StreamPosition,
        seqno: Seqno,
    ) -> Result<Seqno, LifeError> {
        self.roll_back(vbid, seqno, |vbucket| vbucket.stream_position() == from)
    }

    fn roll_back(
        &self,
        vbid: Vbid,
        seqno: Seqno,
        is_wanted: impl FnOnce(&Vbucket) -> bool,
    ) -> Result<Seqno, LifeError> {
        let core = &self.0;
        let slot = core.slot(vbid).ok_or(LifeError::NotHere)?;
        let history = slot.lock_history();
        let file = slot.lock_file();
        let before = match slot.lock().as_ref() {
            None if slot.is_absent() => return Err(LifeError::NotHere),
            None => return Err(LifeError::Loading),
            Some(vbucket) if !is_wanted(vbucket) => return Ok(vbucket.high_seqno()),
            Some(vbucket) => Before::of(vbucket)?,
        };
        // What is rolled back is what the file has.
        if let Some(applied) = core.store.apply(vbid)? {
            core.tell_of_apply(vbid, &applied, Vec::new());
        }
        let high_before = before.state.high_seqno;
        let (vbucket, is_state_in_file) = core.rolled_back(vbid, seqno, &before)?;
        let high_after = vbucket.high_seqno();
        assert!(high_after <= seqno, "a rollback goes back far enough");
        let old = core.supersede(slot, vbucket, !is_state_in_file);
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
    /// Takes the file back and makes a vBucket of it; says whether the file has its state.
    fn rolled_back(
        &self,
        vbid: Vbid,
        seqno: Seqno,
        before: &Before,
    ) -> Result<(Vbucket, bool), LifeError> {
        match self.rewound_vbucket(vbid, seqno, before) {
            Ok(Some(rewound)) => return Ok(rewound),
            Ok(None) => {}
            Err(error @ StorageError::Corrupt { .. }) => {
                // Everything comes again, from another node.
                tracing::warn!(%error, vbucket = vbid.0, "a damaged file is given up");
            }
            Err(error) => return Err(error.into()),
        }
        let mut vbucket = self.new_vbucket(vbid, before.state.state);
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
            let mut vbucket = self.rebuild_from(vbid, &mut rewind, before)?;
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
        rewind: &mut Rewind,
        before: &Before,
    ) -> Result<Vbucket, StorageError> {
        let then = file_state::from_file(&rewind.record, rewind.high_seqno());
        let now = before.state.clone();
        // Branches that began later are dropped with what they wrote.
        let state = PersistentState {
            high_seqno: then.high_seqno,
            snapshot: then.snapshot,
            facts: then.facts,
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
