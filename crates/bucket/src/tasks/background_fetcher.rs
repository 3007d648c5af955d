//! Fetches values, and whole documents, from files for requests that wait for them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use document::{Item, Key, Map, Vbid};
use executor::{ExecutorPool, OwnerIsGone, TaskHandle, TaskKind, TaskName};
use executor::{VbucketReadyQueue, VbucketReadyTask};
use platform::Instant;
use vbucket::Waiter;
use vbucket::eviction::Lookup;

use super::flusher::micros;
use crate::bucket::{Bucket, BucketCore};
use crate::completion::Completion;
use crate::refused::Refused;

static FETCHER: TaskName = TaskName::new("MultiBGFetcherTask", TaskKind::Reader)
    .quick()
    .priority(0)
    .expected(Duration::from_millis(700));

/// What is wanted, by vBucket. Bounded: a client can ask faster than a disk answers.
pub(crate) struct FetchQueue {
    waiting: Mutex<Waiting>,
    count_max: usize,
    /// vBuckets in `waiting`, the longest wait first.
    ready: Arc<VbucketReadyQueue>,
    fetcher: OnceLock<TaskHandle>,
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
    fn key(&self) -> Key<'_> {
        match self {
            Self::Value(metadata) => metadata.key(),
            Self::Document(lookup) => Key::from_trusted(&lookup.key),
        }
    }
}

/// One request that waits.
struct Fetch {
    wanted: Wanted,
    waiter: Waiter,
    since: Instant,
}

impl FetchQueue {
    pub(crate) fn new(vbucket_count: u16, count_max: usize) -> Self {
        let ready = Arc::new(VbucketReadyQueue::new(vbucket_count));
        Self { waiting: Mutex::default(), count_max, ready, fetcher: OnceLock::new() }
    }

    /// Queues a fetch; gives it back when there are too many.
    fn push(&self, vbid: Vbid, wanted: Wanted, waiter: Waiter, now: Instant) -> Result<(), Wanted> {
        let mut waiting = self.lock();
        if waiting.count >= self.count_max {
            return Err(wanted);
        }
        waiting.count += 1;
        let fetch = Fetch { wanted, waiter, since: now };
        waiting.by_vbucket.entry(vbid).or_default().push(fetch);
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
    fn take(&self, vbid: Vbid) -> Vec<Fetch> {
        let mut waiting = self.lock();
        let fetches = waiting.by_vbucket.remove(&vbid).unwrap_or_default();
        waiting.count -= fetches.len();
        fetches
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let queue = &bucket.0.fetch_queue;
    let fetching = bucket.clone();
    let serve = move |vbid| fetching.0.fetch_wanted(vbid);
    let task = VbucketReadyTask::new(pool.clock().clone(), queue.ready.clone(), serve);
    let fetcher = pool.schedule_asleep(bucket.0.owner(), &FETCHER, task)?;
    queue.fetcher.set(fetcher.clone()).expect("the fetcher starts once");
    // Only now: a fetch that was queued before its fetcher was known has woken nobody.
    fetcher.wake();
    Ok(())
}

impl BucketCore {
    /// Queues a fetch for `waiter` and says so, or that there are too many.
    pub(crate) fn begin_fetch(&self, vbid: Vbid, wanted: Wanted, waiter: Waiter) -> Refused {
        match self.fetch_queue.push(vbid, wanted, waiter, self.clock.now()) {
            Ok(()) => return Refused::Pending,
            Err(Wanted::Document(lookup)) if !lookup.is_joined => self.abandon(vbid, &lookup),
            Err(_) => {}
        }
        Refused::TooManyFetches
    }

    /// Nobody will deliver what `lookup` finds.
    fn abandon(&self, vbid: Vbid, lookup: &Lookup) {
        let Some(slot) = self.slot(vbid) else { return };
        if let Some(vbucket) = slot.lock().as_mut() {
            vbucket.abandon_lookup(lookup);
        }
    }

    fn fetch_wanted(&self, vbid: Vbid) {
        let fetches = self.fetch_queue.take(vbid);
        // A request that came while the vBucket's turn began was served in that turn.
        if !fetches.is_empty() {
            self.fetch(vbid, &fetches);
        }
    }

    /// Reads what one vBucket's fetches want and completes them.
    fn fetch(&self, vbid: Vbid, fetches: &[Fetch]) {
        let started = self.clock.now();
        let keys: Vec<_> = fetches.iter().map(|fetch| fetch.wanted.key()).collect();
        let result = self.store.get(vbid, &keys);
        self.timings.bg_batch_size.record(u64::try_from(fetches.len()).unwrap_or(u64::MAX));
        self.timings.bg_load.record(micros(self.clock.now().since(started)));
        for fetch in fetches {
            self.timings.bg_wait.record(micros(started.since(fetch.since)));
        }
        // Before anybody is answered, who may ask for them.
        let is_value = |fetch: &&Fetch| matches!(fetch.wanted, Wanted::Value(_));
        let value_count = fetches.iter().filter(is_value).count();
        self.counters.add(&self.counters.values_fetched, value_count);
        self.counters.add(&self.counters.documents_fetched, fetches.len() - value_count);
        match result {
            Ok(found) => {
                let mut shared = Map::default();
                for (fetch, found) in fetches.iter().zip(found) {
                    let found = found.map(|item| self.as_kept(item, &mut shared));
                    self.deliver(vbid, fetch, found.clone());
                    self.complete(fetch.waiter, Completion::Retry(found));
                }
            }
            Err(error) => {
                tracing::error!(%error, vbucket = vbid.0, "values cannot be read");
                self.counters.add(&self.counters.reads_failed, 1);
                for fetch in fetches {
                    if let Wanted::Document(lookup) = &fetch.wanted {
                        self.abandon(vbid, lookup);
                    }
                    self.complete(fetch.waiter, Completion::ReadFailed);
                }
            }
        }
        self.page_if_full();
    }

    /// `item` as memory keeps it. Those who wait for one document share what was read, and
    /// `shared` sees to it that they still do.
    fn as_kept(&self, item: Item, shared: &mut Map<usize, Item>) -> Item {
        let address = item.address();
        if let Some(kept) = shared.get(&address) {
            return kept.clone();
        }
        let is_shared = item.is_shared();
        // Charged while nobody else holds it: a copy is saved.
        let kept = self.compression.as_kept(item).charged_to(self.account.id());
        if is_shared {
            shared.insert(address, kept.clone());
        }
        kept
    }

    fn deliver(&self, vbid: Vbid, fetch: &Fetch, found: Option<Item>) {
        let Some(slot) = self.slot(vbid) else { return };
        let left_over = match (slot.lock().as_mut(), &fetch.wanted, found) {
            (None, _, found) => found,
            (Some(vbucket), Wanted::Document(lookup), found) => {
                vbucket.finish_lookup(lookup, found)
            }
            (Some(vbucket), Wanted::Value(_), Some(value)) => vbucket.restore_value(value),
            (Some(vbucket), Wanted::Value(metadata), None) => {
                vbucket.forget_lost_document(metadata)
            }
        };
        drop(left_over);
    }
}
