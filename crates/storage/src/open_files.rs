//! The files of a store that are open: which vBucket has one, and which closes when there are too
//! many.
//!
//! Each handle has one owner, the entry of its vBucket; this is only the list of the entries that
//! have one. Locks: an entry's `handle` before the list; the list never waits for an entry.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use document::Vbid;

use crate::store::lock;
use crate::vbucket_file::Snapshot;

/// One vBucket of a store.
pub(crate) struct Entry {
    pub(crate) vbid: Vbid,
    /// Held by whoever writes the file, from beginning to end, syncs included.
    pub(crate) writer: Mutex<()>,
    /// Held for moments, and while the file is opened; never across a write or a sync.
    pub(crate) handle: Mutex<Handle>,
    /// Set by whoever makes the file another one: a compaction that began before has to end without
    /// having its way. Cleared by a compaction that begins.
    pub(crate) abort_compaction: AtomicBool,
    /// When it was last used, in uses of the store.
    last_used: AtomicU64,
}

/// A vBucket's file.
#[derive(Default)]
pub(crate) struct Handle {
    /// The revision of the file, or of the last one that there was.
    pub(crate) revision: u64,
    /// Where the last header that is known to be durable stands; `None` without a file. Whatever
    /// is behind it in the file is not trusted.
    pub(crate) header_position: Option<u64>,
    /// The open file in its last committed state.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
}

pub(crate) struct OpenFiles {
    /// Handles open at a time, those left out that running calls hold when all are in use.
    count_max: usize,
    entries: Mutex<BTreeMap<Vbid, Arc<Entry>>>,
    uses: AtomicU64,
}

impl Entry {
    pub(crate) fn new(vbid: Vbid, handle: Handle) -> Arc<Self> {
        let (writer, handle) = (Mutex::new(()), Mutex::new(handle));
        let (abort_compaction, last_used) = (AtomicBool::new(false), AtomicU64::new(0));
        Arc::new(Self { vbid, writer, handle, abort_compaction, last_used })
    }

    /// Takes the file out if nobody is using it.
    fn close_if_idle(&self) -> Option<Arc<Snapshot>> {
        let mut handle = self.handle.try_lock().ok()?;
        let snapshot = handle.snapshot.as_ref()?;
        let is_idle = Arc::strong_count(snapshot) == 1 && Arc::strong_count(&snapshot.file) == 1;
        if is_idle { handle.snapshot.take() } else { None }
    }
}

impl OpenFiles {
    pub(crate) fn new(count_max: usize) -> Self {
        assert!(count_max > 0, "a store needs at least one open file");
        Self { count_max, entries: Mutex::default(), uses: AtomicU64::new(0) }
    }

    /// Takes note that an entry is being used.
    pub(crate) fn touch(&self, entry: &Entry) {
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        entry.last_used.store(now, Ordering::Relaxed);
    }

    /// Puts an entry that is about to open its file on the list, and closes the least recently used
    /// idle files until the list fits. The caller holds the entry's `handle`.
    pub(crate) fn reserve(&self, entry: &Arc<Entry>) {
        let mut closed = Vec::new();
        let mut entries = lock(&self.entries);
        if entries.len() >= self.count_max && !entries.contains_key(&entry.vbid) {
            let mut by_use: Vec<_> = entries.values().cloned().collect();
            by_use.sort_unstable_by_key(|entry| entry.last_used.load(Ordering::Relaxed));
            for idle in by_use {
                if entries.len() < self.count_max {
                    break;
                }
                if let Some(snapshot) = idle.close_if_idle() {
                    closed.push(snapshot);
                    entries.remove(&idle.vbid);
                }
            }
        }
        entries.insert(entry.vbid, entry.clone());
        // The files are closed behind the lock.
        drop(entries);
        drop(closed);
    }

    /// Takes an entry whose file is closed off the list. The caller holds the entry's `handle`.
    pub(crate) fn release(&self, entry: &Entry) {
        lock(&self.entries).remove(&entry.vbid);
    }
}
