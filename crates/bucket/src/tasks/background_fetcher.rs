//! Fetches values from files for requests that wait for them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use document::{Item, Map, Vbid};
use executor::{ExecutorPool, OwnerIsGone, TaskHandle, TaskKind, TaskName};
use executor::{VbucketReadyQueue, VbucketReadyTask};
use platform::Instant;
use vbucket::Waiter;

use super::flusher::micros;
use crate::bucket::{Bucket, BucketCore};
use crate::completion::Completion;
use crate::refused::Refused;

static FETCHER: TaskName = TaskName::new("MultiBGFetcherTask", TaskKind::Reader)
    .quick()
    .priority(0)
    .expected(Duration::from_millis(700));

/// Values wanted, by vBucket. Bounded: a client can ask faster than a disk answers.
pub(crate) struct FetchQueue {
    wanted: Mutex<Wanted>,
    count_max: usize,
    /// vBuckets in `wanted`, the longest wait first.
    ready: Arc<VbucketReadyQueue>,
    fetcher: OnceLock<TaskHandle>,
}

#[derive(Default)]
struct Wanted {
    by_vbucket: Map<Vbid, Vec<Fetch>>,
    count: usize,
}

/// One request that waits.
struct Fetch {
    /// The document, without its value.
    metadata: Item,
    waiter: Waiter,
    since: Instant,
}

impl FetchQueue {
    pub(crate) fn new(vbucket_count: u16, count_max: usize) -> Self {
        let ready = Arc::new(VbucketReadyQueue::new(vbucket_count));
        Self { wanted: Mutex::default(), count_max, ready, fetcher: OnceLock::new() }
    }

    /// Queues a fetch and says so, or that there are too many.
    pub(crate) fn push(&self, vbid: Vbid, metadata: Item, waiter: Waiter, now: Instant) -> Refused {
        let mut wanted = self.lock();
        if wanted.count >= self.count_max {
            return Refused::TooManyFetches;
        }
        wanted.count += 1;
        let fetch = Fetch { metadata, waiter, since: now };
        wanted.by_vbucket.entry(vbid).or_default().push(fetch);
        drop(wanted);
        if self.ready.push(vbid)
            && let Some(fetcher) = self.fetcher.get()
        {
            fetcher.wake();
        }
        Refused::Pending
    }

    /// How many requests wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.lock().count
    }

    /// What is wanted of `vbid` by now.
    fn take(&self, vbid: Vbid) -> Vec<Fetch> {
        let mut wanted = self.lock();
        let fetches = wanted.by_vbucket.remove(&vbid).unwrap_or_default();
        wanted.count -= fetches.len();
        fetches
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn fetch_wanted(&self, vbid: Vbid) {
        let fetches = self.fetch_queue.take(vbid);
        // A request that came while the vBucket's turn began was served in that turn.
        if !fetches.is_empty() {
            self.fetch(vbid, &fetches);
        }
    }

    /// Reads the values of one vBucket's fetches and completes them.
    fn fetch(&self, vbid: Vbid, fetches: &[Fetch]) {
        let started = self.clock.now();
        let keys: Vec<_> = fetches.iter().map(|fetch| fetch.metadata.key()).collect();
        let result = self.store.get(vbid, &keys);
        self.timings.bg_batch_size.record(u64::try_from(fetches.len()).unwrap_or(u64::MAX));
        self.timings.bg_load.record(micros(self.clock.now().since(started)));
        let completion = match result {
            Ok(values) => {
                for (fetch, value) in fetches.iter().zip(values) {
                    self.deliver(vbid, fetch, value);
                }
                Completion::Retry
            }
            Err(error) => {
                tracing::error!(%error, vbucket = vbid.0, "values cannot be read");
                self.counters.add(&self.counters.reads_failed, 1);
                Completion::ReadFailed
            }
        };
        for fetch in fetches {
            self.timings.bg_wait.record(micros(started.since(fetch.since)));
            self.complete(fetch.waiter, completion);
        }
        self.counters.add(&self.counters.values_fetched, fetches.len());
    }

    fn deliver(&self, vbid: Vbid, fetch: &Fetch, value: Option<Item>) {
        let Some(slot) = self.slot(vbid) else { return };
        let value = value.map(|value| self.compression.as_kept(value));
        let left_over = match (slot.lock().as_mut(), value) {
            (None, value) => value,
            (Some(vbucket), Some(value)) => vbucket.restore_value(value),
            (Some(vbucket), None) => {
                vbucket.forget_lost_document(fetch.metadata.key(), fetch.metadata.seqno())
            }
        };
        drop(left_over);
    }
}
