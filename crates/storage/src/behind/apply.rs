//! Bringing files up to date with the journal.

use std::sync::Arc;

use document::{Item, Vbid};

use crate::behind::backlog::{Backlog, BacklogUsage, Pending, Unapplied};
use crate::behind::journal_note::JournalNote;
use crate::behind::journalled::Journalled;
use crate::error::StorageError;
use crate::journal::{JournalId, JournalUsage};
use crate::locks::lock;
use crate::records::vbucket_record::{JournalPosition, VbucketRecord};
use crate::store::Store;
use crate::store::flush_batch::Applied;
use crate::store::open_files::Entry;
use crate::store::start_up;
use crate::store::vbucket_file::{CommitBuffers, FileBatch};

impl Store {
    /// Brings the file of one vBucket up to date with the journal; `None` when it is. What fails
    /// stays in the journal, to be tried again.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] also for what waits for a file that was found damaged before:
    /// nothing takes that one's place by the way.
    pub fn apply(&self, vbid: Vbid) -> Result<Option<Applied>, StorageError> {
        let Some(journalled) = &self.journalled else { return Ok(None) };
        let entry = self.entry_or_new(vbid);
        let writing = lock(&entry.writer);
        let applied = {
            let (backlog, id) = (&journalled.backlog, journalled.journal.id());
            self.with_spared_room(1, || self.apply_to(backlog, id, &entry))
        };
        drop(writing);
        journalled.release();
        applied
    }

    /// The vBucket that has waited longest of those that `is_due` picks.
    pub fn next_unapplied(&self, is_due: impl Fn(&Unapplied) -> bool) -> Option<Vbid> {
        self.journalled.as_ref()?.backlog.next(is_due)
    }

    /// The vBuckets whose files are behind, those that are being written included, in the order in
    /// which they have waited.
    pub fn unapplied_vbuckets(&self) -> Vec<Vbid> {
        self.journalled.as_ref().map_or_else(Vec::new, |found| found.backlog.vbuckets())
    }

    /// What the journal has for a vBucket and its file has not: the newest versions where an apply
    /// has failed, otherwise perhaps older ones, too. Seqnos rise. Empty when the file has
    /// everything.
    pub fn unapplied_items(&self, vbid: Vbid) -> Vec<Item> {
        self.look_at_backlog(vbid, |pending| pending.items.clone()).unwrap_or_default()
    }

    /// Lets `look` see what waits for the file of a vBucket; `None` if nothing does.
    pub(crate) fn look_at_backlog<R>(
        &self,
        vbid: Vbid,
        look: impl FnOnce(&Pending) -> R,
    ) -> Option<R> {
        self.journalled.as_ref()?.backlog.look(vbid, look)
    }

    /// How far the files are behind the journal.
    pub fn backlog(&self) -> BacklogUsage {
        self.journalled.as_ref().map_or(BacklogUsage::default(), |found| found.backlog.usage())
    }

    /// How full the journal is; `None` for a store without one.
    pub fn journal_usage(&self) -> Option<JournalUsage> {
        self.journalled.as_ref().map(|journalled| journalled.journal.usage())
    }

    /// Makes room ahead of need, so that no commit waits for it, in step with what is written: to
    /// be called often, it takes about as long as writing what has been written since.
    pub fn prepare_journal(&self) -> Result<(), StorageError> {
        let Some(journalled) = &self.journalled else { return Ok(()) };
        journalled.note_segment()?;
        // What compaction needs is no spare room.
        let journal = &journalled.journal;
        let usage = journal.usage();
        if !usage.is_spare_due() {
            return Ok(());
        }
        let Ok(_room) = self.room_to_follow(usage.segment_bytes) else { return Ok(()) };
        while journal.usage().is_spare_due() && journal.fill_spare()? {}
        Ok(())
    }

    /// Lets go of older versions of what waits for the files, where commits have left that because
    /// it takes long. To be called often.
    pub fn trim_backlog(&self) {
        let Some(Journalled { backlog, .. }) = &self.journalled else { return };
        while let Some(vbid) = backlog.next_untrimmed() {
            let entry = self.entry_or_new(vbid);
            let writing = lock(&entry.writer);
            let superfluous = backlog.trim_apart(vbid);
            drop(writing);
            drop(superfluous);
            // The list of what is left may be this thread's now, until the file has it.
            platform::allocator::await_frees();
        }
    }

    /// Lets the journal go on although files are damaged: what only the journal has for them is
    /// written to its end again, as far as that makes room; where somebody waits for room because
    /// the journal `is_full`, as soon as that makes any. For when the journal fills up.
    pub fn carry_forward(&self, is_full: bool) -> Result<(), StorageError> {
        let Some(journalled) = &self.journalled else { return Ok(()) };
        // What is written again comes behind this, so that each is carried once.
        let newest = journalled.journal.usage().durable_lsn;
        while let Some(vbid) = journalled.next_to_carry(is_full)
            && journalled.backlog.oldest().is_some_and(|oldest| oldest <= newest)
        {
            let entry = self.entry_or_new(vbid);
            let _writing = lock(&entry.writer);
            journalled.carry_forward(vbid)?;
        }
        journalled.release();
        Ok(())
    }

    /// There is nothing to commit for a while: what was committed last is protected against damage
    /// as everything before it is, and what files have is let go of.
    pub fn rest(&self) -> Result<(), StorageError> {
        self.journalled.as_ref().map_or(Ok(()), Journalled::rest)
    }

    /// Whether [`Store::rest`] has something to do.
    pub fn is_restless(&self) -> bool {
        self.journalled.as_ref().is_some_and(Journalled::is_restless)
    }

    /// Gives back memory that commits keep for the next one.
    pub fn give_memory_back(&self) {
        if let Some(journalled) = &self.journalled {
            journalled.journal.give_memory_back();
        }
    }

    /// Lets go of the whole journal when the files have everything: the directory is one of
    /// couchstore files alone then. Says whether that is so. Nothing is committed any more.
    pub fn close_journal(&self) -> bool {
        let Some(journalled) = &self.journalled else { return true };
        let is_applied = journalled.backlog.oldest().is_none();
        // A start that misses a journal must not miss this one.
        if is_applied && JournalNote::remove(self.files(), self.directory()).is_ok() {
            journalled.journal.seal();
        }
        is_applied
    }

    /// The caller holds the entry's `writer`.
    pub(crate) fn apply_to(
        &self,
        backlog: &Backlog,
        journal: JournalId,
        entry: &Arc<Entry>,
    ) -> Result<Option<Applied>, StorageError> {
        if backlog.is_held(entry.vbid) {
            let path = self.path(entry.vbid, lock(&entry.handle).revision);
            return Err(StorageError::corrupt(&path, 0, "the file was found damaged before"));
        }
        let Some(mut pending) = backlog.take(entry.vbid) else { return Ok(None) };
        let superfluous = pending.take_superfluous();
        let applied = self.write_pending(journal, entry, &mut pending);
        match &applied {
            Ok(_) => backlog.finish(entry.vbid),
            Err(error) => {
                if matches!(error, StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. }) {
                    backlog.hold(entry.vbid);
                }
                backlog.put_back(pending);
            }
        }
        drop(superfluous);
        applied.map(Some)
    }

    fn write_pending(
        &self,
        journal: JournalId,
        entry: &Arc<Entry>,
        pending: &mut Pending,
    ) -> Result<Applied, StorageError> {
        if pending.deletes {
            let names = start_up::files_by_vbucket(&*self.files, &self.directory)?;
            self.remove_files(entry, &names)?;
            self.files.sync_directory(&self.directory)?;
            // Done: if the rest fails, the next try goes on with that.
            pending.deletes = false;
        }
        let Some(state) = &pending.state else { return Ok(Applied::default()) };
        let _room = self.room_to_follow(pending.bytes)?;
        let journal = Some(JournalPosition { id: journal.0, lsn: pending.newest.0 });
        let state = VbucketRecord { journal, ..state.clone() };
        let batch = FileBatch { items: &pending.items, state: &state };
        self.write(entry, batch, &mut CommitBuffers::new())
    }
}
