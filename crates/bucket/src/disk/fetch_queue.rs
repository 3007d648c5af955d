//! What requests wait for that is only in files.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use document::{Item, Key, Map, Vbid};
use executor::{TaskHandle, VbucketReadyQueue};
use platform::Instant;
use vbucket::Waiter;
use vbucket::eviction::Lookup;

/// What is wanted, by vBucket. Bounded: a client can ask faster than a disk answers.
pub(crate) struct FetchQueue {
    waiting: Mutex<Waiting>,
    count_max: usize,
    /// vBuckets in `waiting`, the longest wait first.
    pub(super) ready: Arc<VbucketReadyQueue>,
    pub(super) fetcher: OnceLock<TaskHandle>,
}

#[derive(Default)]
struct Waiting {
    by_vbucket: Map<Vbid, Vec<Fetch>>,
    count: usize,
}

/// What a request waits for.
pub(crate) enum Wanted {
    /// The value of the document whose metadata this is.
    Value(Item),
    /// Whatever the file has under a key.
    Document(Box<Lookup>),
}

impl Wanted {
    pub(super) fn key(&self) -> Key<'_> {
        match self {
            Self::Value(metadata) => metadata.key(),
            Self::Document(lookup) => Key::from_trusted(&lookup.key),
        }
    }
}

/// One request that waits.
pub(super) struct Fetch {
    pub(super) wanted: Wanted,
    pub(super) waiter: Waiter,
    pub(super) since: Instant,
}

impl FetchQueue {
    pub(crate) fn new(vbucket_count: u16, count_max: usize) -> Self {
        let ready = Arc::new(VbucketReadyQueue::new(vbucket_count));
        Self { waiting: Mutex::default(), count_max, ready, fetcher: OnceLock::new() }
    }

    /// Queues a fetch; gives it back when there are too many.
    pub(super) fn push(
        &self,
        vbid: Vbid,
        wanted: Wanted,
        waiter: Waiter,
        now: Instant,
    ) -> Result<(), Wanted> {
        let mut waiting = self.lock();
        if waiting.count >= self.count_max {
            return Err(wanted);
        }
        waiting.count += 1;
        let fetch = Fetch { wanted, waiter, since: now };
        waiting.by_vbucket.entry(vbid).or_default().push(fetch);
        // A wake takes locks of the executor (invariant 10).
        drop(waiting);
        if self.ready.push(vbid)
            && let Some(fetcher) = self.fetcher.get()
        {
            fetcher.wake();
        }
        Ok(())
    }

    /// How many requests wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.lock().count
    }

    /// What is wanted of `vbid` by now.
    pub(super) fn take(&self, vbid: Vbid) -> Vec<Fetch> {
        let mut waiting = self.lock();
        let fetches = waiting.by_vbucket.remove(&vbid).unwrap_or_default();
        assert!(waiting.count >= fetches.len(), "who waits for a vBucket is counted");
        waiting.count -= fetches.len();
        fetches
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
