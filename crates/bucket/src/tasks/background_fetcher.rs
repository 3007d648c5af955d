//! Fetches values from files for requests that wait for them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use document::{Item, Vbid};
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskClass, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};
use platform::Instant;
use vbucket::Waiter;

use super::flusher::micros;
use crate::bucket::{Bucket, BucketCore};
use crate::completion::Completion;
use crate::refused::Refused;

static FETCHER: TaskName = TaskName {
    name: "MultiBGFetcherTask",
    kind: TaskKind::Reader,
    class: TaskClass::Quick,
    priority: 0,
    expected_duration: Duration::from_millis(700),
};

/// Values wanted, by vBucket. Bounded: a client can ask faster than a disk answers.
pub(crate) struct FetchQueue {
    wanted: Mutex<Wanted>,
    count_max: usize,
    fetcher: OnceLock<TaskHandle>,
}

#[derive(Default)]
struct Wanted {
    by_vbucket: BTreeMap<Vbid, Vec<Fetch>>,
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
    pub(crate) fn new(count_max: usize) -> Self {
        Self { wanted: Mutex::default(), count_max, fetcher: OnceLock::new() }
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
        if let Some(fetcher) = self.fetcher.get() {
            fetcher.wake();
        }
        Refused::Pending
    }

    /// How many requests wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.lock().count
    }

    fn take_next(&self) -> Option<(Vbid, Vec<Fetch>)> {
        let mut wanted = self.lock();
        let (vbid, fetches) = wanted.by_vbucket.pop_first()?;
        wanted.count -= fetches.len();
        Some((vbid, fetches))
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Fetcher(Bucket);

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let handle = pool.schedule_asleep(bucket.0.owner(), &FETCHER, Fetcher(bucket.clone()))?;
    bucket.0.fetch_queue.fetcher.set(handle).expect("the fetcher starts once");
    Ok(())
}

impl Task for Fetcher {
    fn run(&mut self, _context: &TaskContext<'_>) -> Next {
        let core = &self.0.0;
        let Some((vbid, fetches)) = core.fetch_queue.take_next() else { return Next::Sleep };
        core.fetch(vbid, &fetches);
        Next::Again
    }
}

impl BucketCore {
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
