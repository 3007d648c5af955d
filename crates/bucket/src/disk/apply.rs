//! Files follow the journal: how urgent that is, and how one is brought up to date.

use std::cell::Cell;
use std::sync::MutexGuard;
use std::time::Duration;

use document::Vbid;
use platform::{Instant, allocator};
use storage::{Applied, StorageError, Unapplied};
use vbucket::{Effect, Vbucket};

use super::apply_pace::{self, ApplyPressure};
use super::write_gate::WritePath;
use crate::core::{BucketCore, VbucketSlot, micros};

impl BucketCore {
    /// There is more in the journal: whoever is to bring it to the files hears of it.
    pub(super) fn wake_appliers(&self) {
        self.disk.appliers.wake_if_needed(&self.store);
        if let Some(hurried) = self.disk.appliers.hurried.get()
            && self.apply_pressure().is_critical()
        {
            hurried.wake();
        }
    }

    /// How urgent it is that files follow the journal.
    pub(super) fn apply_pressure(&self) -> ApplyPressure {
        let backlog = self.store.backlog();
        let journal = self.store.journal_usage().unwrap_or_default();
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        ApplyPressure {
            vbuckets: backlog.vbuckets,
            journal_ratio: ratio(journal.used_bytes, journal.bytes_max - journal.reserve_bytes),
            is_journal_full: self.disk.flush_queues.is_journal_full(),
            is_gate_closed: self.disk.gate.disk_block().is_some(),
            // What waits for damaged files is left out: however urgent, nobody can write it.
            pinned_ratio: ratio(
                backlog.bytes - backlog.held_bytes,
                self.memory.limits().wanted_bytes(),
            ),
            waited: backlog
                .oldest_since
                .map_or(Duration::ZERO, |since| self.clock.now().since(since)),
        }
    }

    /// Lets the journal go on although files are damaged, as far as the disk allows.
    pub(super) fn carry_forward(&self, is_full: bool, now: Instant) {
        if let Err(error) = self.store.carry_forward(is_full)
            && self.disk.appliers.damage_lines.passes(now).is_some()
        {
            tracing::warn!(%error, "what waits for damaged files fills the journal");
        }
    }

    /// The vBucket whose file is to be written next, if the turn of any is worth it. One whose file
    /// has just failed comes behind the others: it has waited longest, and would be the next again
    /// and again.
    pub(super) fn next_to_apply(&self, pressure: ApplyPressure, now: Instant) -> Option<Vbid> {
        let is_due = |unapplied: &Unapplied| {
            let waited = now.since(unapplied.since);
            apply_pace::is_due(&self.config.apply, pressure, unapplied, waited)
        };
        let later = Cell::new(None);
        let next = self.store.next_unapplied(|unapplied| {
            // Of what is not in the bucket nothing is ever applied.
            let Some(slot) = self.slot(unapplied.vbid) else { return false };
            if !is_due(unapplied) {
                return false;
            }
            let is_later = slot.applies_later(now);
            if is_later && later.get().is_none() {
                later.set(Some(unapplied.vbid));
            }
            !is_later
        });
        next.or(later.get())
    }

    /// Brings the file of one vBucket up to date with the journal.
    ///
    /// # Errors
    /// Those of [`storage::Store::apply`], which are noted and logged here.
    pub(crate) fn apply(&self, vbid: Vbid) -> Result<(), StorageError> {
        let Some(slot) = self.slot(vbid) else { return Ok(()) };
        self.apply_under(slot.lock_history(), slot, vbid)
    }

    /// The same, unless that has to wait for others that write the file or change the vBucket's
    /// history: then `None`.
    pub(super) fn try_apply(&self, vbid: Vbid) -> Option<Result<(), StorageError>> {
        let Some(slot) = self.slot(vbid) else { return Some(Ok(())) };
        Some(self.apply_under(slot.try_lock_history()?, slot, vbid))
    }

    fn apply_under(
        &self,
        history: MutexGuard<'_, ()>,
        slot: &VbucketSlot,
        vbid: Vbid,
    ) -> Result<(), StorageError> {
        let started = self.clock.now();
        match self.store.apply(vbid) {
            Ok(None) => {}
            Ok(Some(applied)) => {
                self.counters.add(&self.counters.applies, 1);
                self.counters.timings.disk_apply.record(micros(self.clock.now().since(started)));
                let persisted = slot.lock().as_ref().map(Vbucket::persisted_seqno);
                if persisted.is_some_and(|persisted| persisted < applied.high_seqno) {
                    // Whoever made this durable is still about to say so.
                    drop(slot.lock_file());
                }
                self.tell_of_apply(vbid, &applied);
                let journal = self.store.journal_usage().unwrap_or_default();
                self.disk.flush_queues.wake_if_journal_has_room(journal.used_bytes);
                // Memory is given back behind the lock (invariant 10).
                drop(history);
                self.memory.account.publish_structure();
                allocator::release_after_work(applied.bytes_written);
            }
            Err(error) => {
                self.counters.add(&self.counters.applies_failed, 1);
                // Twice the pause of who has tried: by then others have had a turn.
                slot.apply_later(self.clock.now().after(2 * self.config.flush_retry_interval));
                // Damage takes this vBucket out alone; a disk that fails keeps all writers out.
                if matches!(error, StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. }) {
                    self.give_up_file(vbid, &error);
                } else {
                    self.note_disk(vbid, WritePath::Apply, Some(&error));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// The file has what it lacked: it keeps nobody out, and the vBucket hears what it has.
    pub(crate) fn tell_of_apply(&self, vbid: Vbid, applied: &Applied) {
        self.note_disk(vbid, WritePath::Apply, None);
        let Some(slot) = self.slot(vbid) else { return };
        if let Some(vbucket) = slot.lock().as_mut() {
            note_applied(vbucket, applied);
        }
        self.follow_apply(vbid, applied, &mut Vec::new());
    }

    /// What comes of a file that has more, which the vBucket knows. Of many tombstones most leave
    /// memory with pauses for others who want the lock. `effects` are carried out after the first
    /// of them.
    pub(super) fn follow_apply(&self, vbid: Vbid, applied: &Applied, effects: &mut Vec<Effect>) {
        self.note_growth();
        let Some(slot) = self.slot(vbid) else { return };
        let mut next_tombstone = Some(0);
        while let Some(from) = next_tombstone {
            let mut place = slot.lock();
            next_tombstone = place
                .as_mut()
                .and_then(|vbucket| vbucket.forget_tombstones(&applied.tombstones, from, effects));
            drop(place);
            self.carry_out(vbid, effects);
        }
        self.count_guessed_collections(vbid);
        self.page_if_full();
    }

    /// Asks the file, if it has everything by now, for the collections whose documents a replica
    /// under full eviction has counted without a look into it.
    fn count_guessed_collections(&self, vbid: Vbid) {
        let Some(slot) = self.slot(vbid) else { return };
        let guessed = slot.lock().as_ref().and_then(Vbucket::guessed_collections);
        let Some((seqno, collections)) = guessed else { return };
        // One that cannot be read is asked for again behind the next change.
        let count = |id| Some((id, self.store.collection_count(vbid, id).ok()?));
        let found: Vec<_> = collections.into_iter().filter_map(count).collect();
        if let Some(vbucket) = slot.lock().as_mut() {
            vbucket.correct_collection_counts(seqno, &found);
        }
    }
}

/// The vBucket's file has what was applied.
pub(super) fn note_applied(vbucket: &mut Vbucket, applied: &Applied) {
    vbucket.apply_succeeded(applied.high_seqno);
    if let Some(count) = applied.document_count {
        vbucket.correct_document_count(count, applied.documents);
    }
}
