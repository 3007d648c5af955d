//! Our design: the flusher's confirmation moves the head, and the rest is freed by whoever gets it.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use document::{Item, Seqno};
use vbucket::checkpoint::{
    CheckpointManager, CursorId, Detached, LogPersistence, ReadLimit, Tenure,
};

use crate::log::{Garbage, Log, Mutations, lock};

/// The log under its vBucket's lock.
pub struct SetteeLog {
    inner: Mutex<Inner>,
    cursor: CursorId,
    /// What has left the log and nobody has taken yet.
    detached: Mutex<Vec<Detached>>,
    has_detached: Condvar,
}

/// The task that frees sleeps until there is something; this long at most, to see that it is over.
const SLEEP_MAX: Duration = Duration::from_millis(1);

struct Inner {
    log: CheckpointManager,
    mutations: Mutations,
    newest: Option<Item>,
}

impl SetteeLog {
    /// A log that closes its checkpoint after every item. With `keeps_all` a reader that never
    /// moves keeps everything: the same work without any removal.
    pub fn new(keeps_all: bool) -> Self {
        let mut log = CheckpointManager::continuing(Seqno(0), LogPersistence::File);
        log.set_checkpoint_bytes_max(1);
        if keeps_all {
            log.register("keeps all", Seqno(0), Tenure::WhileMemoryLasts)
                .expect("seqno 0 is there");
        }
        let cursor = log.persistence_cursor().expect("a log with a file has a flusher");
        let inner = Inner { log, mutations: Mutations::default(), newest: None };
        Self {
            inner: Mutex::new(inner),
            cursor,
            detached: Mutex::default(),
            has_detached: Condvar::new(),
        }
    }

    fn note(&self, detached: Option<Detached>) {
        if let Some(detached) = detached {
            lock(&self.detached).push(detached);
            self.has_detached.notify_one();
        }
    }
}

impl Log for SetteeLog {
    fn queue_dirty(&self) {
        let mut inner = lock(&self.inner);
        let item = inner.mutations.next_item();
        let replaced = inner.newest.replace(item.clone());
        let queued = inner.log.queue(item, replaced.as_ref());
        drop(inner);
        self.note(queued.detached);
    }

    fn read(&self, checkpoints_max: usize) -> usize {
        let range = lock(&self.inner).log.begin_read(self.cursor);
        let Some(mut range) = range else { return 0 };
        range.limit(ReadLimit { items_max: checkpoints_max, ..ReadLimit::NONE });
        let items = range.items();
        let detached = lock(&self.inner).log.finish_read(&range, items.len());
        self.note(detached);
        items.len()
    }

    fn remove(&self) -> (usize, Option<Garbage>) {
        let detached = lock(&self.detached);
        let nothing = |detached: &mut Vec<Detached>| detached.is_empty();
        let waited = self.has_detached.wait_timeout_while(detached, SLEEP_MAX, nothing);
        let (mut detached, _) = waited.expect("no thread of a benchmark panics");
        let detached = std::mem::take(&mut *detached);
        let count = detached.iter().map(|detached| detached.extent().items).sum();
        (count, Some(Box::new(detached)))
    }

    fn checkpoint_count(&self) -> u64 {
        lock(&self.inner).log.checkpoint_count()
    }
}
