//! Compaction: a vBucket's file written anew, without what nobody needs any more, while commits and
//! reads go on.
//!
//! ```text
//! copy       a snapshot of the file, purged, into <file>.compact          commits go on
//! catch up   what was committed meanwhile, up to 10 times, then a sync    commits go on
//! switch     the rest, header, sync, rename to the next revision,         commits wait
//!            sync of the directory, new handle, removal of the old file
//! ```
//!
//! Until the rename the old file is in force and the copy is litter, which start-up removes. After
//! it both files hold the same. Nothing is committed to the new one until the rename is durable.

mod damaged_bodies;
mod frozen;
mod local_documents;
mod pace;
mod paced_file;
pub(crate) mod progress;
mod purge;
mod request;
mod stream_file;
mod successor;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::{Seqno, Vbid};
use platform::OpenMode;

use crate::couchstore::{CouchFile, layout};
use crate::error::StorageError;
use crate::locks::lock;
use crate::removal::remove_if_there;
use crate::store::Store;
use crate::store::open_files::Entry;
use crate::store::vbucket_file::Snapshot;
pub use damaged_bodies::{DamagedBodies, DamagedBody};
pub use frozen::{FrozenFacts, FrozenVbucket};
pub use pace::CompactionPace;
use paced_file::PacedFile;
pub use progress::{CompactionObserver, CompactionPhase, CompactionProgress};
pub use request::{CompactionOutcome, CompactionReport, CompactionRequest, Purged};
use successor::Successor;

/// Rounds of catching up before commits are kept out, at most.
const ROUNDS_MAX: u32 = 10;

/// When a round copies no more documents, commits are kept out for the next.
const LAST_ROUND_DOCUMENTS_MAX: u64 = 256;

/// One compaction, and who hears of it.
#[derive(Clone, Copy)]
struct Run<'a> {
    entry: &'a Arc<Entry>,
    request: &'a CompactionRequest,
    progress: &'a CompactionProgress,
    observer: &'a dyn CompactionObserver,
}

/// Takes the compaction of an entry off it at the end.
struct Turn<'a>(&'a Entry);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(progress) = lock(&self.0.compaction).take() {
            progress.set_phase(CompactionPhase::Ended);
        }
    }
}

impl Run<'_> {
    fn enter(&self, phase: CompactionPhase) {
        self.progress.set_phase(phase);
        self.observer.entered(phase);
    }
}

impl Store {
    /// Writes a vBucket's file anew without what `request` wants gone. Commits and reads go on;
    /// only the end keeps commits out. Takes room for the new file on disk.
    ///
    /// # Errors
    /// The old file goes on being used, unless the error is about making the new name durable: then
    /// the new file is, which holds the same.
    pub fn compact(
        &self,
        vbid: Vbid,
        request: &CompactionRequest,
        progress: &CompactionProgress,
        observer: &dyn CompactionObserver,
    ) -> Result<CompactionOutcome, StorageError> {
        let Some(entry) = self.entry(vbid) else { return Ok(CompactionOutcome::NoFile) };
        let mut place = lock(&entry.compaction);
        if place.is_some() {
            return Ok(CompactionOutcome::Busy);
        }
        *place = Some(progress.clone());
        drop(place);
        let _turn = Turn(&entry);
        let Some(source) = self.snapshot_of(&entry)? else { return Ok(CompactionOutcome::NoFile) };
        let run = Run { entry: &entry, request, progress, observer };
        let path = compact_path(source.file.path());
        // All spares go for it: it makes room when it is done.
        let done = self.with_spared_room(0, || self.compact_into(&path, Arc::clone(&source), run));
        if !matches!(done, Ok(Some(_))) {
            // What cannot be removed now, start-up removes.
            drop(remove_if_there(&*self.files, &path));
        }
        Ok(match done? {
            Some(report) => CompactionOutcome::Compacted(Box::new(report)),
            None => CompactionOutcome::Aborted,
        })
    }

    /// The compactions that are under way, in the order of vBuckets.
    pub fn compactions(&self) -> Vec<(Vbid, CompactionProgress)> {
        let entries = self.entries_in_order();
        let running = |entry: &Arc<Entry>| Some((entry.vbid, lock(&entry.compaction).clone()?));
        entries.iter().filter_map(running).collect()
    }

    /// The highest seqno that compactions have dropped from a vBucket's file.
    pub fn purge_seqno(&self, vbid: Vbid) -> Result<Seqno, StorageError> {
        let Some(entry) = self.entry(vbid) else { return Ok(Seqno(0)) };
        let snapshot = self.snapshot_of(&entry)?;
        Ok(Seqno(snapshot.map_or(0, |snapshot| snapshot.header.purge_seqno)))
    }

    /// `None`: it was told to stop, or the source is not what it was.
    fn compact_into(
        &self,
        path: &Path,
        source: Arc<Snapshot>,
        run: Run<'_>,
    ) -> Result<Option<CompactionReport>, StorageError> {
        run.progress.expect_bytes(source.header.live_bytes());
        run.enter(CompactionPhase::Copying);
        source.file.size_with(&source.header)?;
        let _room = self.open_files.reserve_extra();
        remove_if_there(&*self.files, path)?;
        let file = self.files.open(path, OpenMode::CreateNew)?;
        let file = PacedFile::new(file, run.request, run.progress, &self.clock);
        let file = CouchFile::new(Box::new(file), path);
        let (progress, observer) = (run.progress, run.observer);
        let copied = Successor::copy(&source, &file, run.request, progress, observer)?;
        let Some(mut successor) = copied else { return Ok(None) };
        if successor.damaged.count > 0 {
            // Bodies that are not there any more are not gone around.
            source.file.size_with(&source.header)?;
        }
        if !self.catch_up(&source, &mut successor, run)? {
            return Ok(None);
        }
        // Before the lock: who observes hears of it under none.
        run.enter(CompactionPhase::Switching);
        let writing = lock(&run.entry.writer);
        let Some(newest) = self.continuation(&source, &successor, run)? else { return Ok(None) };
        if !successor.holds(&newest) {
            successor.follow(&newest, run.progress)?;
        }
        // `follow` may have stopped early.
        if run.progress.is_aborted() {
            return Ok(None);
        }
        let mut report = CompactionReport {
            file_bytes_before: newest.file.size()?,
            purged: successor.tally.purged,
            expired_count: successor.expired_count,
            rounds: successor.rounds,
            damaged: std::mem::take(&mut successor.damaged),
            ..CompactionReport::default()
        };
        drop(newest);
        let header = successor.finish()?;
        report.purge_seqno = Seqno(header.purge_seqno);
        report.file_bytes_after = file.size()?;
        drop(file);
        let old_path = self.switch(path, header.position, run.entry)?;
        // Nobody knows the old file any more. Giving its room back may take a file system long.
        drop(writing);
        report.old_file_left = remove_if_there(&*self.files, &old_path).err();
        Ok(Some(report))
    }

    /// Copies what is committed to the source until little is left to copy. Whether there is
    /// anything to go on with.
    fn catch_up(
        &self,
        source: &Snapshot,
        successor: &mut Successor<'_>,
        run: Run<'_>,
    ) -> Result<bool, StorageError> {
        while successor.rounds < ROUNDS_MAX {
            run.enter(CompactionPhase::CatchingUp);
            let Some(newest) = self.continuation(source, successor, run)? else {
                return Ok(false);
            };
            if successor.holds(&newest) {
                break;
            }
            let count = successor.follow(&newest, run.progress)?;
            if count <= LAST_ROUND_DOCUMENTS_MAX {
                break;
            }
        }
        // Little is left to be synced while commits wait.
        successor.sync()?;
        Ok(true)
    }

    /// The newest state of the file that is being compacted; `None` if that has to end.
    fn continuation(
        &self,
        source: &Snapshot,
        successor: &Successor<'_>,
        run: Run<'_>,
    ) -> Result<Option<Arc<Snapshot>>, StorageError> {
        if run.progress.is_aborted() {
            return Ok(None);
        }
        let Some(newest) = self.snapshot_of(run.entry)? else { return Ok(None) };
        // Another file has another revision, and with it another path.
        let is_same = newest.file.path() == source.file.path();
        Ok((is_same && successor.can_follow(&newest)?).then_some(newest))
    }

    /// Puts the file at `path`, which is durable, into force. The caller holds the entry's writer.
    /// Gives the path of the old file.
    fn switch(
        &self,
        path: &Path,
        header_position: u64,
        entry: &Arc<Entry>,
    ) -> Result<PathBuf, StorageError> {
        let old_revision = lock(&entry.handle).revision;
        let revision = old_revision + 1;
        let new_path = self.directory.join(layout::data_file(entry.vbid, revision));
        if let Err(error) = self.files.rename(path, &new_path) {
            // It may have had its effect, and a start would prefer the new name, which lacks what
            // is committed from here on.
            lock(&entry.handle).doubts.has_file = true;
            // If that fails, the next commit does it first.
            drop(self.dispel_doubt(entry));
            return Err(error.into());
        }
        // From here on a start may find either file. They hold the same until something is
        // committed, and that waits for the directory's sync.
        let mut handle = lock(&entry.handle);
        handle.revision = revision;
        handle.note_moved(header_position);
        handle.is_name_unsure = true;
        let closed = handle.snapshot.take();
        self.open_files.release(entry);
        drop(handle);
        drop(closed);
        self.files.sync_directory(&self.directory)?;
        lock(&entry.handle).is_name_unsure = false;
        Ok(self.directory.join(layout::data_file(entry.vbid, old_revision)))
    }

    /// Ends what a compaction could not: the new file's name is made durable, and the old file
    /// goes. What else has failed half way is undone, too. The caller holds the entry's writer.
    pub(crate) fn make_name_sure(&self, entry: &Arc<Entry>) -> Result<(), StorageError> {
        let handle = lock(&entry.handle);
        let (is_unsure, revision) = (handle.is_name_unsure, handle.revision);
        drop(handle);
        if is_unsure {
            self.files.sync_directory(&self.directory)?;
            lock(&entry.handle).is_name_unsure = false;
            let old_path = self.directory.join(layout::data_file(entry.vbid, revision - 1));
            // It is in nobody's way, and start-up removes it.
            drop(remove_if_there(&*self.files, &old_path));
        }
        self.dispel_doubt(entry)
    }
}

/// Where the copy of a file is made.
fn compact_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(layout::COMPACT_SUFFIX);
    PathBuf::from(name)
}
