//! The files of a bucket: one a vBucket, kept open between flushes.
//!
//! Any number of threads commit to and read from different vBuckets at once. Of one vBucket,
//! commits exclude each other; readers use the last committed state and wait for no commit.

pub(crate) mod compaction_reserve;
pub(crate) mod doubt;
pub(crate) mod file_view;
pub(crate) mod flush_batch;
pub(crate) mod key_view;
pub(crate) mod open_files;
pub(crate) mod rollback;
pub(crate) mod room;
pub(crate) mod set_aside;
pub(crate) mod start_up;
pub(crate) mod vbucket_file;
pub(crate) mod witness;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use document::{CollectionId, Item, Key, Seqno, Vbid};
use platform::{Clock, Entropy, Files, OpenMode};

use crate::behind::backlog::bytes_of;
use crate::behind::journalled::Journalled;
use crate::couchstore::{CouchFile, FileHeader, layout};
use crate::error::StorageError;
use crate::journal::JournalOptions;
use crate::locks::{lock, lock_exclusive, lock_shared};
use crate::records::collection_statistics::{self, CollectionStatistics};
use crate::records::vbucket_record::VbucketRecord;
use crate::removal::remove_if_there;
use crate::store::compaction_reserve::CompactionReserve;
use crate::store::file_view::FileView;
use crate::store::flush_batch::{Applied, CommitReport, FlushBatch};
use crate::store::open_files::{Doubts, Entries, Entry, Handle, OpenFiles, witnesses_of};
use crate::store::start_up::{LastStop, StartReport};
use crate::store::vbucket_file::{CommitBuffers, FailedCommit, FileBatch, ScanReport, Snapshot};
use crate::store::witness::Witnesses;

/// How a store is to work.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where commit times come from.
    pub clock: Clock,
    /// Where the journal's names come from.
    pub entropy: Entropy,
    /// File handles kept open, at most. Beyond it the least recently used idle one is closed.
    pub open_files_max: usize,
    /// The journal in front of the files; `None` for a store whose commits go to the files at once.
    pub journal: Option<JournalOptions>,
}

/// How large a vBucket's file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSizes {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of it that its newest state needs. The rest is for compaction to free.
    pub live_bytes: u64,
}

/// The files of a bucket.
pub struct Store {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) directory: PathBuf,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    entries: Arc<Entries>,
    pub(crate) open_files: OpenFiles,
    /// `None` when commits go to the files at once.
    pub(crate) journalled: Option<Journalled>,
    pub(crate) compaction_reserve: CompactionReserve,
}

impl Store {
    /// Opens the directory of a bucket, which is created if it is missing, brings its files up to
    /// date with its journal, and says what is in it.
    ///
    /// # Errors
    /// [`StorageError::JournalDamaged`] when a part of the journal that was acknowledged cannot be
    /// read, [`StorageError::JournalMissing`] when all of it is gone: nothing is dropped silently.
    /// What concerns single files is in the report.
    pub fn open(
        files: Arc<dyn Files>,
        directory: &Path,
        options: StoreOptions,
    ) -> Result<(Self, StartReport), StorageError> {
        Self::open_after(files, directory, options, &LastStop::default())
    }

    /// The same, with what is known of the last stop.
    ///
    /// # Errors
    /// As for [`Store::open`].
    pub fn open_after(
        files: Arc<dyn Files>,
        directory: &Path,
        options: StoreOptions,
        last_stop: &LastStop,
    ) -> Result<(Self, StartReport), StorageError> {
        let (mut report, handles) = start_up::start(&*files, directory)?;
        let entry = |(vbid, mut handle): (Vbid, Handle)| {
            // What was not believed is for people to look at.
            handle.is_distrusted = handle.header_position.is_none();
            (vbid, Entry::new(vbid, handle))
        };
        let mut store = Self {
            files,
            directory: directory.to_path_buf(),
            clock: options.clock,
            entropy: options.entropy,
            entries: Arc::new(RwLock::new(handles.into_iter().map(entry).collect())),
            open_files: OpenFiles::new(options.open_files_max),
            journalled: None,
            compaction_reserve: CompactionReserve::default(),
        };
        // Also when what is there of a vBucket now is nothing but a file that was set aside.
        report.set_aside().for_each(|(vbid, revision)| store.raise_revision(vbid, revision));
        store.open_journal(options.journal, last_stop, &mut report)?;
        report.unreadable_vbuckets().for_each(|vbid| store.distrust(vbid));
        Ok((store, report))
    }

    /// Where the files are, for who starts next; `is_whole` tells of each whether its vBucket has
    /// begun the branch that a crash asks for. Nothing is committed meanwhile.
    pub fn witnesses(&self, is_whole: impl Fn(Vbid) -> bool) -> Witnesses {
        let mut witnesses = Witnesses::default();
        for witness in witnesses_of(&self.entries) {
            witnesses.add(witness, is_whole(witness.vbid));
        }
        witnesses
    }

    /// Makes the batches durable and reports each, in their order, as soon as it is, or is not.
    /// What fails leaves the vBucket as it was; its batch is to be handed in again, with whatever
    /// came since.
    pub fn commit(
        &self,
        batches: Vec<FlushBatch>,
        mut report: impl FnMut(Vbid, Result<CommitReport, StorageError>),
    ) {
        if let Some(journalled) = &self.journalled {
            return match self.room_to_commit(journalled, &batches) {
                Ok(_room) => match self.dispel_doubts(&batches) {
                    doubtful if doubtful.is_empty() => journalled.commit(batches, report),
                    doubtful => commit_others(journalled, batches, &doubtful, report),
                },
                Err(error) => {
                    batches.iter().for_each(|batch| report(batch.vbid, Err(error.clone())));
                }
            };
        }
        let mut buffers = CommitBuffers::new();
        for batch in batches {
            let committed = self.commit_one(&batch, &mut buffers).map(|applied| CommitReport {
                high_seqno: applied.high_seqno,
                item_count: batch.items.len(),
                applied: Some(applied),
            });
            report(batch.vbid, committed);
        }
    }

    /// The items under `keys` in their order, tombstones included; `None` for what the file does
    /// not hold.
    pub fn get(&self, vbid: Vbid, keys: &[Key<'_>]) -> Result<Vec<Option<Item>>, StorageError> {
        match self.snapshot(vbid)? {
            Some(snapshot) => snapshot.get(keys),
            None => Ok(vec![None; keys.len()]),
        }
    }

    /// Visits the items from a seqno on, prepares and aborts included, by seqno, until `visit`
    /// breaks. Holds one item at a time, ejected unless `with_values`. Sees one state of the file,
    /// whatever is committed meanwhile.
    pub fn scan(
        &self,
        vbid: Vbid,
        from: Seqno,
        with_values: bool,
        visit: impl FnMut(Item) -> ControlFlow<()>,
    ) -> Result<ScanReport, StorageError> {
        match self.snapshot(vbid)? {
            Some(snapshot) => snapshot.scan(from, with_values, visit),
            None => Ok(ScanReport::default()),
        }
    }

    /// A vBucket's file as it is now, to be read in portions; `None` without a file.
    pub fn view(&self, vbid: Vbid) -> Result<Option<FileView>, StorageError> {
        Ok(self.snapshot(vbid)?.map(FileView::new))
    }

    /// The state in a vBucket's file.
    pub fn state(&self, vbid: Vbid) -> Result<Option<VbucketRecord>, StorageError> {
        self.snapshot(vbid)?.map_or(Ok(None), |snapshot| snapshot.record())
    }

    /// Documents alive in a vBucket's file, prepares left out.
    pub fn item_count(&self, vbid: Vbid) -> Result<u64, StorageError> {
        let Some(snapshot) = self.snapshot(vbid)? else { return Ok(0) };
        let prepares = snapshot.record()?.map_or(0, |record| record.on_disk_prepares);
        Ok(snapshot.header.alive_count().saturating_sub(prepares))
    }

    /// What a vBucket's file knows about a collection.
    pub fn collection_statistics(
        &self,
        vbid: Vbid,
        collection: CollectionId,
    ) -> Result<CollectionStatistics, StorageError> {
        let Some(snapshot) = self.snapshot(vbid)? else {
            return Ok(CollectionStatistics::default());
        };
        collection_statistics::read(&mut snapshot.file.reader(&snapshot.header), collection)
    }

    /// The highest seqno that is durable in a vBucket's file.
    pub fn high_seqno(&self, vbid: Vbid) -> Result<Seqno, StorageError> {
        Ok(self.snapshot(vbid)?.map_or(Seqno(0), |found| Seqno(found.header.high_seqno)))
    }

    /// How large a vBucket's file is.
    pub fn file_sizes(&self, vbid: Vbid) -> Result<FileSizes, StorageError> {
        let Some(snapshot) = self.snapshot(vbid)? else { return Ok(FileSizes::default()) };
        let file_bytes = snapshot.file.size()?;
        Ok(FileSizes { file_bytes, live_bytes: snapshot.header.live_bytes() })
    }

    /// Removes a vBucket's file; a damaged one is set aside. Scans that are under way go on. After
    /// an error the vBucket may or may not be there; delete it again.
    pub fn delete(&self, vbid: Vbid) -> Result<(), StorageError> {
        let entry = self.entry_or_new(vbid);
        self.delete_entries(&[entry], |_| {})
    }

    /// Removes the files of all vBuckets, damaged ones set aside; the directory is looked through
    /// and made durable once.
    /// Whenever the power goes before this returns, each vBucket is either whole or gone. `gone`
    /// hears of each whose file is no more, also before an error: some of those may come back if
    /// the power goes before another call succeeds.
    pub fn delete_all(&self, gone: impl FnMut(Vbid)) -> Result<(), StorageError> {
        self.delete_where(|_| true, gone)
    }

    /// As [`Self::delete_all`], of those vBuckets that are `wanted` away.
    pub fn delete_where(
        &self,
        wanted: impl Fn(Vbid) -> bool,
        gone: impl FnMut(Vbid),
    ) -> Result<(), StorageError> {
        // Writers are locked in the order of vBuckets.
        let mut entries = self.entries_in_order();
        entries.retain(|entry| wanted(entry.vbid));
        self.delete_entries(&entries, gone)
    }

    /// Removes the files of `entries`, which stand in the order of their vBuckets.
    fn delete_entries(
        &self,
        entries: &[Arc<Entry>],
        mut gone: impl FnMut(Vbid),
    ) -> Result<(), StorageError> {
        let _writing: Vec<_> = entries.iter().map(|entry| lock(&entry.writer)).collect();
        self.set_aside(entries)?;
        if let Some(journalled) = &self.journalled {
            let vbids: Vec<Vbid> = entries.iter().map(|entry| entry.vbid).collect();
            // Behind the deletion no file is expected any more.
            entries.iter().for_each(|entry| lock(&entry.handle).witness = None);
            journalled.delete(&vbids)?;
            // That was it: whatever becomes of the files, nothing of them is believed again.
            for entry in entries {
                self.forget_file(entry);
                gone(entry.vbid);
            }
        }
        let names = start_up::files_by_vbucket(&*self.files, &self.directory)?;
        if self.journalled.is_none() {
            self.remove_hidden(entries, &names)?;
        }
        for entry in entries {
            self.remove_files(entry, &names)?;
            if self.journalled.is_none() {
                gone(entry.vbid);
            }
        }
        self.files.sync_directory(&self.directory)?;
        // Only now may the journal let go of the deletion: the files cannot come back any more.
        if let Some(journalled) = &self.journalled {
            entries.iter().for_each(|entry| journalled.backlog.finish_deletion(entry.vbid));
        }
        Ok(())
    }

    pub(crate) fn files(&self) -> &dyn Files {
        &*self.files
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn path(&self, vbid: Vbid, revision: u64) -> PathBuf {
        self.directory.join(layout::data_file(vbid, revision))
    }

    pub(crate) fn sync_directory(&self) -> Result<(), StorageError> {
        Ok(self.files.sync_directory(&self.directory)?)
    }

    /// Nanoseconds since the epoch.
    pub(crate) fn wall_time(&self) -> u64 {
        self.clock.wall_time().0
    }

    /// Takes an entry whose file is closed off the list of open files. The caller holds its
    /// `handle`.
    pub(crate) fn release(&self, entry: &Entry) {
        self.open_files.release(entry);
    }

    /// Removes older revisions of the files of `entries`, durably: nothing but the newest one says
    /// that they do not count, and the power may bring them back without it.
    fn remove_hidden(
        &self,
        entries: &[Arc<Entry>],
        names: &BTreeMap<Vbid, Vec<String>>,
    ) -> Result<(), StorageError> {
        let of_entries = entries.iter().filter_map(|entry| names.get(&entry.vbid));
        let hidden: Vec<&String> =
            of_entries.flat_map(|names| start_up::hidden_files(names)).collect();
        for name in &hidden {
            remove_if_there(&*self.files, &self.directory.join(name))?;
        }
        if hidden.is_empty() { Ok(()) } else { self.sync_directory() }
    }

    /// Removes the files of one vBucket, and forgets them.
    pub(crate) fn remove_files(
        &self,
        entry: &Entry,
        names: &BTreeMap<Vbid, Vec<String>>,
    ) -> Result<(), StorageError> {
        for name in names.get(&entry.vbid).into_iter().flatten() {
            remove_if_there(&*self.files, &self.directory.join(name))?;
        }
        self.forget_file(entry);
        Ok(())
    }

    /// The vBucket has no file from now on.
    pub(crate) fn forget_file(&self, entry: &Entry) {
        entry.abort_compaction();
        let mut handle = lock(&entry.handle);
        handle.header_position = None;
        handle.witness = None;
        handle.is_name_unsure = false;
        handle.doubts = Doubts::default();
        let closed = handle.snapshot.take();
        self.open_files.release(entry);
        drop(handle);
        drop(closed);
    }

    fn commit_one(
        &self,
        batch: &FlushBatch,
        buffers: &mut CommitBuffers,
    ) -> Result<Applied, StorageError> {
        let _room = self.room_for_flush(bytes_of(&batch.items))?;
        let entry = self.entry_or_new(batch.vbid);
        let _writing = lock(&entry.writer);
        let batch = FileBatch { items: &batch.items, state: &batch.state };
        self.write(&entry, batch, buffers)
    }

    /// Commits a batch to a vBucket's file. The caller holds the entry's `writer`.
    pub(crate) fn write(
        &self,
        entry: &Arc<Entry>,
        batch: FileBatch<'_>,
        buffers: &mut CommitBuffers,
    ) -> Result<Applied, StorageError> {
        self.make_name_sure(entry)?;
        match self.snapshot_of(entry)? {
            Some(snapshot) => {
                self.append(entry, &snapshot, batch, buffers).map_err(|failed| {
                    // Nothing behind the last durable header is trusted: the next use opens the
                    // file anew at that header, and the next commit goes behind the end.
                    self.close(entry);
                    if failed.may_be_found && self.journalled.is_none() {
                        lock(&entry.handle).doubts.has_header = true;
                    }
                    failed.error
                })
            }
            None => self.create(entry, batch, buffers),
        }
    }

    fn append(
        &self,
        entry: &Entry,
        before: &Snapshot,
        batch: FileBatch<'_>,
        buffers: &mut CommitBuffers,
    ) -> Result<Applied, FailedCommit> {
        check_order(batch, before.file.path(), before.header.high_seqno)?;
        let now = self.clock.wall_time().0;
        let (header, report) =
            vbucket_file::write(&before.file, Some(&before.header), batch, now, buffers)?;
        self.compaction_reserve.note_file(header.live_bytes());
        let mut handle = lock(&entry.handle);
        handle.note_committed(entry.vbid, &header, batch.state);
        handle.snapshot = Some(Arc::new(Snapshot { file: before.file.clone(), header }));
        Ok(report)
    }

    fn create(
        &self,
        entry: &Arc<Entry>,
        batch: FileBatch<'_>,
        buffers: &mut CommitBuffers,
    ) -> Result<Applied, StorageError> {
        // A file that was found unusable at start-up ends here at the latest.
        self.set_aside(std::slice::from_ref(entry))?;
        let handle = lock(&entry.handle);
        let old_revision = handle.revision;
        self.open_files.reserve(entry);
        // Not held while the file is made (invariant 10); the caller holds the entry's writer.
        drop(handle);
        let created = self.create_file(entry.vbid, old_revision, batch, buffers);
        let mut handle = lock(&entry.handle);
        self.open_files.release(entry);
        let (header, report) = created?;
        handle.revision = old_revision + 1;
        handle.note_committed(entry.vbid, &header, batch.state);
        Ok(report)
    }

    /// Makes a file under another name, and renames it when its first commit is durable: a file
    /// under a data name has a header.
    fn create_file(
        &self,
        vbid: Vbid,
        old_revision: u64,
        batch: FileBatch<'_>,
        buffers: &mut CommitBuffers,
    ) -> Result<(FileHeader, Applied), StorageError> {
        let boot_path = self.directory.join(layout::boot_file(vbid));
        let path = self.directory.join(layout::data_file(vbid, old_revision + 1));
        check_order(batch, &path, 0)?;
        remove_if_there(&*self.files, &boot_path)?;
        let file = CouchFile::open(&*self.files, &boot_path, OpenMode::CreateNew)?;
        let now = self.clock.wall_time().0;
        let written = vbucket_file::write(&file, None, batch, now, buffers);
        drop(file);
        if written.is_err() {
            // What is left of it would be removed by the next attempt.
            drop(remove_if_there(&*self.files, &boot_path));
        }
        let (header, report) = written?;
        self.files.rename(&boot_path, &path)?;
        self.files.sync_directory(&self.directory)?;
        Ok((header, report))
    }

    fn snapshot(&self, vbid: Vbid) -> Result<Option<Arc<Snapshot>>, StorageError> {
        self.entry(vbid).map_or(Ok(None), |entry| self.snapshot_of(&entry))
    }

    /// The last committed state of a vBucket, its file opened if need be; `None` without a file.
    pub(crate) fn snapshot_of(
        &self,
        entry: &Arc<Entry>,
    ) -> Result<Option<Arc<Snapshot>>, StorageError> {
        self.open_files.touch(entry);
        let mut handle = lock(&entry.handle);
        if handle.snapshot.is_none()
            && let Some(position) = handle.header_position
        {
            self.open_files.reserve(entry);
            match self.open_file(entry.vbid, handle.revision, position) {
                Ok(snapshot) => handle.snapshot = Some(Arc::new(snapshot)),
                Err(error) => {
                    self.open_files.release(entry);
                    return Err(error);
                }
            }
        }
        Ok(handle.snapshot.clone())
    }

    fn open_file(
        &self,
        vbid: Vbid,
        revision: u64,
        header_position: u64,
    ) -> Result<Snapshot, StorageError> {
        let path = self.directory.join(layout::data_file(vbid, revision));
        let file = CouchFile::open(&*self.files, &path, OpenMode::ReadWrite)?;
        let header = file.header_at(header_position)?;
        Ok(Snapshot { file: Arc::new(file), header })
    }

    pub(crate) fn close(&self, entry: &Entry) {
        let mut handle = lock(&entry.handle);
        let closed = handle.snapshot.take();
        self.open_files.release(entry);
        drop(handle);
        drop(closed);
    }

    pub(crate) fn entries(&self) -> Arc<Entries> {
        Arc::clone(&self.entries)
    }

    pub(crate) fn entry(&self, vbid: Vbid) -> Option<Arc<Entry>> {
        lock_shared(&self.entries).get(&vbid).cloned()
    }

    /// Where the file of a vBucket is; `None` when it has none.
    pub(crate) fn path_of(&self, vbid: Vbid) -> Option<PathBuf> {
        let entry = self.entry(vbid)?;
        let handle = lock(&entry.handle);
        handle.header_position?;
        Some(self.directory.join(layout::data_file(vbid, handle.revision)))
    }

    /// All vBuckets that have or had a file, in order.
    pub(crate) fn entries_in_order(&self) -> Vec<Arc<Entry>> {
        let mut entries: Vec<_> = lock_shared(&self.entries).values().cloned().collect();
        entries.sort_unstable_by_key(|entry| entry.vbid);
        entries
    }

    pub(crate) fn entry_or_new(&self, vbid: Vbid) -> Arc<Entry> {
        if let Some(entry) = self.entry(vbid) {
            return entry;
        }
        let mut entries = lock_exclusive(&self.entries);
        entries.entry(vbid).or_insert_with(|| Entry::new(vbid, Handle::default())).clone()
    }
}

/// Commits the batches to the journal but for those of vBuckets that are in doubt: damage takes one
/// vBucket, whoever is in a group with it.
fn commit_others(
    journalled: &Journalled,
    mut batches: Vec<FlushBatch>,
    doubtful: &BTreeMap<Vbid, StorageError>,
    mut report: impl FnMut(Vbid, Result<CommitReport, StorageError>),
) {
    let all: Vec<Vbid> = batches.iter().map(|batch| batch.vbid).collect();
    batches.retain(|batch| !doubtful.contains_key(&batch.vbid));
    let mut committed = Vec::with_capacity(batches.len());
    journalled.commit(batches, |_, result| committed.push(result));
    let mut committed = committed.into_iter();
    for vbid in all {
        let result = match doubtful.get(&vbid) {
            Some(error) => Err(error.clone()),
            None => committed.next().expect("the journal answers for each batch, in its order"),
        };
        report(vbid, result);
    }
}

fn check_order(batch: FileBatch<'_>, path: &Path, high_seqno: u64) -> Result<(), StorageError> {
    let lowest = batch.items.iter().map(|item| item.seqno().0).min();
    match lowest {
        Some(seqno) if seqno <= high_seqno => {
            Err(StorageError::OutOfOrder { file: path.to_path_buf(), seqno, high_seqno })
        }
        _ => Ok(()),
    }
}
