//! Handing the log to the flusher, and who waits for it.

use document::{CollectionId, Item, Seqno, VbucketState};
use platform::Instant;

use super::{SeqnoWaiter, Vbucket, release};
use crate::checkpoint::LogRange;
use crate::effect::Effect;
use crate::operation::Now;
use crate::persistence::{FlushUrgency, FlushWork, StateInFile};
use crate::waiter::Waiter;

/// Tombstones that leave memory in one portion.
const TOMBSTONES_PORTION_MAX: usize = 128;

impl Vbucket {
    /// What is to be flushed now: the log that is not, and the state. `None` when the file is up to
    /// date. Nothing leaves the log until [`Vbucket::flush_succeeded`]; after a failure the same
    /// comes again.
    pub fn begin_flush(&mut self) -> Option<FlushWork> {
        // From here on whatever comes asks for a flush of its own: this one may end before it.
        self.queued_for_flush = None;
        let cursor = self.checkpoints.persistence_cursor()?;
        let range = self.checkpoints.begin_read(cursor);
        if range.is_none() && self.is_state_flushed() {
            return None;
        }
        self.note_state_taken();
        let mut state = self.persistent_state();
        state.high_seqno = range.as_ref().map_or(self.persisted_seqno, LogRange::last_seqno);
        state.purge_seqno = state.purge_seqno.min(state.high_seqno);
        self.settle_account();
        let previous = (self.persisted_seqno, self.persisted_snapshot);
        let mut batch = FlushWork::new(self.vbid, previous, range, state, self.queued_since);
        // A file with events counts them, and documents of dropped collections: it is asked for
        // each collection by itself (`guessed_collections`).
        if self.may_lack_documents() && self.collections.uid() == 0 {
            batch.document_count = Some(self.absent.uncorrected(self.document_count()));
        }
        Some(batch)
    }

    /// The state alone is to be flushed now, as of what is durable already: for a role that has to
    /// become durable where there is no room for the log. `None` when the file has the present one.
    pub fn begin_state_flush(&mut self) -> Option<FlushWork> {
        if self.is_state_flushed() {
            return None;
        }
        self.note_state_taken();
        let high_seqno = self.persisted_seqno;
        let mut state = self.persistent_state();
        state.high_seqno = high_seqno;
        state.snapshot = self.persisted_snapshot;
        state.purge_seqno = state.purge_seqno.min(high_seqno);
        self.settle_account();
        let previous = (high_seqno, self.persisted_snapshot);
        Some(FlushWork::new(self.vbid, previous, None, state, self.queued_since))
    }

    /// The file has `found` live documents where the batch of a flush took them for
    /// `document_count`. What came to a replica was counted without a look into the file.
    pub fn correct_document_count(&mut self, document_count: i64, found: u64) {
        if self.may_lack_documents() {
            self.absent.correct(document_count, found);
            self.publish();
        }
    }

    /// The collections of which documents were counted without a look into the file, once that has
    /// everything up to the seqno that comes with them: then it knows better.
    pub fn guessed_collections(&self) -> Option<(Seqno, Vec<CollectionId>)> {
        let is_due = !self.absent.guessed().is_empty() && self.applied_seqno == self.high_seqno();
        is_due.then(|| (self.applied_seqno, self.absent.guessed().iter().copied().collect()))
    }

    /// Whether documents of some collection were counted without a look into the file: then it may
    /// have more.
    pub fn counts_by_guess(&self) -> bool {
        !self.absent.guessed().is_empty()
    }

    /// The file, which has everything up to `seqno`, has these live documents of collections. What
    /// has come since then makes that old, and it is asked again.
    pub fn correct_collection_counts(&mut self, seqno: Seqno, found: &[(CollectionId, u64)]) {
        if self.high_seqno() != seqno {
            return;
        }
        for &(id, count) in found {
            let known = match self.collection(id) {
                Some(collection) => collection.item_count(),
                None if id == CollectionId::DEFAULT => {
                    u64::try_from(self.default_collection_count()).unwrap_or(u64::MAX)
                }
                // It was dropped meanwhile: nothing counts its documents any more.
                None => count,
            };
            let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            if self.may_lack_documents() {
                self.absent.correct_by(signed(count) - signed(known));
            }
            self.collections.set_item_count(id, count);
            self.absent.end_guess(id);
        }
        self.publish();
    }

    /// `batch` is durable: what every reader has leaves the log, and whoever waited for its seqnos
    /// hears of it, durable writes among them. Nothing leaves the hash table before
    /// [`Vbucket::apply_succeeded`].
    pub fn flush_succeeded(&mut self, batch: &FlushWork, now: Now, effects: &mut Vec<Effect>) {
        let seqno = batch.high_seqno();
        assert!(seqno >= self.persisted_seqno, "what is persisted stays so");
        self.persisted_seqno = seqno;
        self.persisted_whole_seqno = self.persisted_whole_seqno.max(batch.state.whole_seqno());
        self.persisted_snapshot = batch.state.snapshot_in_file();
        self.facts = batch.state.facts;
        // Without a file there is nothing that has to follow.
        if self.is_ephemeral {
            self.applied_seqno = seqno;
        }
        // The state may have changed while the batch was on its way: then what is durable is an
        // older one.
        if self.state_in_file == StateInFile::UnderWay {
            self.state_in_file = StateInFile::Present;
        }
        if let Some(range) = &batch.range {
            let item_count = batch.item_count();
            self.figures.done.queue_drains.add(item_count);
            let detached = self.checkpoints.finish_read(range, item_count);
            self.destroy(detached, effects);
        }
        // Before what is held is acknowledged below: an end of a snapshot that a restart would
        // forget is not persisted yet.
        self.note_whole_in_file(batch.state.whole_seqno());
        self.answer_waiters(effects);
        self.resolve_sync_writes(now, effects);
        let is_behind = !self.is_flushed();
        // What came meanwhile has asked for its flush itself.
        if is_behind && (self.queued_for_flush.is_none() || !self.waiters.is_empty()) {
            self.ask_for_flush(self.urgency_of_the_rest(), effects);
        }
        self.settle_account();
    }

    /// The file holds everything up to `seqno`: values, and whole documents, may leave memory for
    /// it. The tombstones among what it was given leave by [`Vbucket::forget_tombstones`].
    pub fn apply_succeeded(&mut self, seqno: Seqno) {
        assert!(seqno <= self.persisted_seqno, "what is in the file was durable before");
        assert!(seqno >= self.applied_seqno, "what is in the file stays there");
        self.applied_seqno = seqno;
    }

    /// Takes a portion of `tombstones`, which are in the file, out of memory: those from index
    /// `from` on. Returns where to go on, none at the end. There can be more of them than may leave
    /// while requests wait for the lock.
    pub fn forget_tombstones(
        &mut self,
        tombstones: &[Item],
        from: usize,
        effects: &mut Vec<Effect>,
    ) -> Option<usize> {
        let end = tombstones.len().min(from + TOMBSTONES_PORTION_MAX);
        for tombstone in &tombstones[from..end] {
            self.forget_tombstone(tombstone, effects);
        }
        self.settle_account();
        (end < tombstones.len()).then_some(end)
    }

    /// The flush of `batch` failed: what it was to write waits in the log and wants another try, so
    /// soon. It has waited since before what came meanwhile.
    pub fn flush_failed(&mut self, batch: &FlushWork) -> FlushUrgency {
        // The caller queues it again, or has given up its file: nobody else is to ask.
        let urgency = self.urgency_of_the_rest();
        self.queued_for_flush = Some(urgency);
        self.queued_since = batch.queued_since;
        if let Some(cursor) = self.checkpoints.persistence_cursor() {
            self.checkpoints.fail_read(cursor);
        }
        self.publish();
        urgency
    }

    /// How soon what is not durable yet is to be, now that a flush has left it.
    fn urgency_of_the_rest(&self) -> FlushUrgency {
        if self.waiters.is_empty() && !self.holds_by_flush() {
            FlushUrgency::Soon
        } else {
            FlushUrgency::Awaited
        }
    }

    /// Whether somebody waits for the flush that was asked for last, and since when the first of
    /// what it has waits for it.
    pub fn flush_turn(&self) -> (bool, Instant) {
        (self.queued_for_flush == Some(FlushUrgency::Awaited), self.queued_since)
    }

    /// Whether everything is on disk, the state included.
    pub fn is_flushed(&self) -> bool {
        self.checkpoints.is_flushed() && self.is_state_flushed()
    }

    /// Since when the oldest of the writes waits that no flush has made durable; of those that have
    /// come while one is under way, if there are any. `None` when all are durable, or it is not
    /// known: the role changed before the first of them.
    pub fn unflushed_since(&self) -> Option<Instant> {
        let is_known = self.queued_since != Instant::default();
        (is_known && self.checkpoints.unflushed_count() > 0).then_some(self.queued_since)
    }

    /// Tells `waiter` when everything up to `seqno` is persisted, or at `deadline` that it is not.
    /// `true` when it is persisted already and there is nothing to wait for. Of a snapshot that
    /// another node sends nothing is persisted before all is: what it leaves out comes later in it,
    /// and whoever starts from the file begins it anew.
    pub fn wait_for_persistence(
        &mut self,
        seqno: Seqno,
        deadline: Instant,
        waiter: Waiter,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if seqno <= self.persisted_for_waiters() {
            return true;
        }
        self.waiters.push(SeqnoWaiter { seqno, deadline, waiter });
        self.hurry_flush(effects);
        false
    }

    /// Tells those who wait for what is persisted by now.
    pub(super) fn answer_waiters(&mut self, effects: &mut Vec<Effect>) {
        if self.waiters.is_empty() {
            return;
        }
        let persisted = self.persisted_for_waiters();
        self.waiters.retain(|waiting| {
            let is_waiting = waiting.seqno > persisted;
            if !is_waiting {
                effects.push(Effect::Persisted(waiting.waiter));
            }
            is_waiting
        });
    }

    /// What is persisted as clients may hear it: whole snapshots, and at the end of the log also
    /// the seqnos without items that end the last one.
    fn persisted_for_waiters(&self) -> Seqno {
        let ends_whole = self.state == VbucketState::Active || self.ends_whole_in_file();
        if ends_whole && self.is_state_flushed() {
            self.persisted_through()
        } else {
            self.persisted_whole_seqno
        }
    }

    /// Somebody has heard that not everything is persisted, and is going to ask again.
    pub fn hurry_flush(&mut self, effects: &mut Vec<Effect>) {
        if !self.checkpoints.is_flushed() {
            self.ask_for_flush(FlushUrgency::Awaited, effects);
        }
    }

    /// Ends the waits whose deadline has come. Returns the next deadline.
    pub fn end_overdue_waits(
        &mut self,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Option<Instant> {
        self.waiters.retain(|waiting| {
            let is_waiting = waiting.deadline > now;
            if !is_waiting {
                effects.push(Effect::NotPersisted(waiting.waiter));
            }
            is_waiting
        });
        self.waiters.iter().map(|waiting| waiting.deadline).min()
    }

    /// If the file has everything of the last snapshot, because what that ends with are seqnos
    /// without items, and knows it as whole up to `whole` only: has the state flushed anew. What
    /// is acknowledged for that would be forgotten by a restart otherwise.
    pub(super) fn note_whole_in_file(&mut self, whole: Seqno) {
        if self.ends_whole_in_file() && whole < self.persisted_seqno {
            self.facts.note_whole(self.snapshot_kind, &self.checkpoints.open_snapshot());
            self.state_in_file = StateInFile::Outdated;
        }
    }

    /// Whether what is durable ends where a snapshot of another node does. One that lacks
    /// tombstones behind its last item goes on.
    pub(super) fn ends_whole_in_file(&self) -> bool {
        self.state != VbucketState::Active
            && self.checkpoints.is_flushed()
            && self.is_snapshot_whole()
            && self.stream_purge_seqno() <= self.persisted_seqno
    }

    /// Whether the file has the present state, the role among it.
    pub fn is_state_flushed(&self) -> bool {
        self.state_in_file == StateInFile::Present
    }

    /// A flush has the present state. Should it fail, the next one takes it again.
    fn note_state_taken(&mut self) {
        if self.state_in_file == StateInFile::Outdated {
            self.state_in_file = StateInFile::UnderWay;
        }
    }

    /// Tells everybody who waits for persistence that it will not happen here.
    pub(super) fn end_waits(&mut self, effects: &mut Vec<Effect>) {
        let waiters = std::mem::take(&mut self.waiters);
        effects.extend(waiters.iter().map(|waiting| Effect::NotPersisted(waiting.waiter)));
    }

    /// Asks for a flush when the file does not have the present state.
    pub fn flush_state(&mut self, effects: &mut Vec<Effect>) {
        if !self.is_state_flushed() {
            self.ask_for_flush(FlushUrgency::Awaited, effects);
        }
    }

    /// A tombstone that is in the file need not stay in memory, unless it is no longer the newest
    /// version of its key.
    fn forget_tombstone(&mut self, tombstone: &Item, effects: &mut Vec<Effect>) {
        if self.is_ephemeral {
            return;
        }
        let newest = self.hash_table.get(tombstone.key()).map(Item::seqno);
        if newest == Some(tombstone.seqno()) {
            release(self.hash_table.remove(tombstone.key()), effects);
            self.note_departure(tombstone.key());
        }
    }
}
