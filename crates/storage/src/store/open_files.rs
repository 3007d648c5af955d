//! The files of a store that are open: which vBucket has one, and which closes when there are too
//! many.
//!
//! Each handle has one owner, the entry of its vBucket; this is only the list of the entries that
//! have one. Locks: an entry's `handle` before the list; the list never waits for an entry.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use document::{Map, Vbid};

use crate::compaction::progress::CompactionProgress;
use crate::couchstore::FileHeader;
use crate::locks::{lock, lock_shared};
use crate::records::vbucket_record::VbucketRecord;
use crate::store::vbucket_file::Snapshot;
use crate::store::witness::Witness;

/// One vBucket of a store.
pub(crate) struct Entry {
    pub(crate) vbid: Vbid,
    /// Held by whoever writes the file, from beginning to end, syncs included.
    pub(crate) writer: Mutex<()>,
    /// Held for moments, and while the file is opened; never across a write or a sync.
    pub(crate) handle: Mutex<Handle>,
    /// When it was last used, in uses of the store.
    last_used: AtomicU64,
    /// The compaction that is under way. Held for moments; no other lock is taken under it.
    pub(crate) compaction: Mutex<Option<CompactionProgress>>,
}

/// The vBuckets of a store that have or had a file.
pub(crate) type Entries = RwLock<Map<Vbid, Arc<Entry>>>;

/// A vBucket's file.
#[derive(Default)]
pub(crate) struct Handle {
    /// The revision of the file, or of the last one that there was.
    pub(crate) revision: u64,
    /// Where the last header that is known to be durable stands; `None` without a file. Whatever
    /// is behind it in the file is not trusted.
    pub(crate) header_position: Option<u64>,
    /// Where the file was last known to be, for whoever starts next: as of that header; of a file
    /// that is not believed, what it should have; `None` when nobody knows, or while a deletion or
    /// a rollback is about to change it.
    pub(crate) witness: Option<Witness>,
    /// Whether a compaction has put this file into the place of the revision before without being
    /// sure that the directory's new names are durable. Nothing is committed until they are.
    pub(crate) is_name_unsure: bool,
    /// Whether what there is of a file is not to be removed: it is damaged, or was not believed.
    /// It is set aside before another takes its place.
    pub(crate) is_distrusted: bool,
    /// What a rollback, a compaction or a commit that failed may have left.
    pub(crate) doubts: Doubts,
    /// The open file in its last committed state.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
}

/// What a start may bring into force instead of the present state, because a rollback, a compaction
/// or, without a journal, a commit has failed half way. Nothing else becomes durable until that
/// cannot happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    /// A header behind the present one.
    pub(crate) has_header: bool,
    /// A file of the next revision: an empty one, or a copy of the present state.
    pub(crate) has_file: bool,
}

pub(crate) struct OpenFiles {
    /// Handles open at a time, those left out that running calls hold when all are in use.
    count_max: usize,
    listed: Mutex<Listed>,
    uses: AtomicU64,
}

#[derive(Default)]
struct Listed {
    entries: BTreeMap<Vbid, Arc<Entry>>,
    /// Handles beside those of the entries.
    extra_count: usize,
}

/// Room for a handle that belongs to no entry.
pub(crate) struct ExtraHandle<'a>(&'a OpenFiles);

impl Drop for ExtraHandle<'_> {
    fn drop(&mut self) {
        lock(&self.0.listed).extra_count -= 1;
    }
}

impl Handle {
    /// A commit of `record` has become durable.
    pub(crate) fn note_committed(
        &mut self,
        vbid: Vbid,
        header: &FileHeader,
        record: &VbucketRecord,
    ) {
        self.header_position = Some(header.position);
        self.witness = Some(Witness::of(vbid, self.revision, header, record));
    }

    /// The same state as before has become durable in another place.
    pub(crate) fn note_moved(&mut self, header_position: u64) {
        self.header_position = Some(header_position);
        let revision = self.revision;
        self.witness = self.witness.map(|old| Witness { revision, header_position, ..old });
    }
}

impl Entry {
    pub(crate) fn new(vbid: Vbid, handle: Handle) -> Arc<Self> {
        let (writer, handle) = (Mutex::new(()), Mutex::new(handle));
        let (last_used, compaction) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self { vbid, writer, handle, last_used, compaction })
    }

    /// Has the compaction that is under way, if there is one, give up: the file's history does not
    /// go on from what it has copied. Before that is so it only spares its work, and the wait for
    /// its `writer`: one that begins a moment later finds under `writer` that its copy cannot go
    /// on, where the file is another one, or its headers say where they come from.
    pub(crate) fn abort_compaction(&self) {
        if let Some(progress) = &*lock(&self.compaction) {
            progress.abort();
        }
    }

    /// Takes the file out if nobody is using it.
    fn close_if_idle(&self) -> Option<Arc<Snapshot>> {
        // Only tried: this lock comes before that of the list, which the caller holds
        // (docs/locks.md).
        let mut handle = self.handle.try_lock().ok()?;
        let snapshot = handle.snapshot.as_ref()?;
        let is_idle = Arc::strong_count(snapshot) == 1 && Arc::strong_count(&snapshot.file) == 1;
        if is_idle { handle.snapshot.take() } else { None }
    }
}

impl OpenFiles {
    pub(crate) fn new(count_max: usize) -> Self {
        assert!(count_max > 0, "a store needs at least one open file");
        Self { count_max, listed: Mutex::default(), uses: AtomicU64::new(0) }
    }

    /// Takes note that an entry is being used.
    pub(crate) fn touch(&self, entry: &Entry) {
        // Relaxed is enough: which file is idle the longest need only be about right.
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        entry.last_used.store(now, Ordering::Relaxed);
    }

    /// Puts an entry that is about to open its file on the list, and closes the least recently used
    /// idle files until the list fits. The caller holds the entry's `handle`.
    pub(crate) fn reserve(&self, entry: &Arc<Entry>) {
        let mut listed = lock(&self.listed);
        let closed = match listed.entries.contains_key(&entry.vbid) {
            true => Vec::new(),
            false => listed.make_room(self.count_max),
        };
        listed.entries.insert(entry.vbid, entry.clone());
        // The files are closed behind the lock.
        drop(listed);
        drop(closed);
    }

    /// Makes room for a handle that belongs to no entry, as long as the result lives.
    pub(crate) fn reserve_extra(&self) -> ExtraHandle<'_> {
        let mut listed = lock(&self.listed);
        let closed = listed.make_room(self.count_max);
        listed.extra_count += 1;
        drop(listed);
        drop(closed);
        ExtraHandle(self)
    }

    /// Takes an entry whose file is closed off the list. The caller holds the entry's `handle`.
    pub(crate) fn release(&self, entry: &Entry) {
        lock(&self.listed).entries.remove(&entry.vbid);
    }
}

impl Listed {
    /// Takes the least recently used idle files off the list until one more fits. They are to be
    /// closed behind the lock.
    fn make_room(&mut self, count_max: usize) -> Vec<Arc<Snapshot>> {
        let mut closed = Vec::new();
        if self.count() < count_max {
            return closed;
        }
        let mut by_use: Vec<_> = self.entries.values().cloned().collect();
        by_use.sort_unstable_by_key(|entry| entry.last_used.load(Ordering::Relaxed));
        for idle in by_use {
            if self.count() < count_max {
                break;
            }
            if let Some(snapshot) = idle.close_if_idle() {
                closed.push(snapshot);
                self.entries.remove(&idle.vbid);
            }
        }
        closed
    }

    fn count(&self) -> usize {
        self.entries.len() + self.extra_count
    }
}

/// Where the files of `entries` are, in the order of vBuckets.
pub(crate) fn witnesses_of(entries: &Entries) -> Vec<Witness> {
    let entries = lock_shared(entries);
    let witness = |entry: &Arc<Entry>| {
        let handle = lock(&entry.handle);
        // The power may take a new name away again.
        handle.witness.filter(|_| !handle.is_name_unsure)
    };
    let mut witnesses: Vec<Witness> = entries.values().filter_map(witness).collect();
    witnesses.sort_unstable_by_key(|witness| witness.vbid);
    witnesses
}
