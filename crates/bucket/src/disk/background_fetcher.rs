//! Fetches values, and whole documents, from files for requests that wait for them.

use std::time::Duration;

use document::{Item, Map, Vbid};
use executor::{ExecutorPool, OwnerIsGone, TaskKind, TaskName, VbucketReadyTask};
use vbucket::Waiter;
use vbucket::eviction::Lookup;

use super::fetch_queue::{Fetch, Wanted};
use crate::core::{Bucket, BucketCore, Completion, Refused, micros};

static FETCHER: TaskName = TaskName::new("MultiBGFetcherTask", TaskKind::Reader)
    .quick()
    .priority(0)
    .expected(Duration::from_millis(700));

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let queue = &bucket.0.disk.fetch_queue;
    let fetching = bucket.clone();
    let serve = move |vbid| fetching.0.fetch_wanted(vbid);
    let task = VbucketReadyTask::new(pool.clock().clone(), queue.ready.clone(), serve);
    let fetcher = pool.schedule_asleep(&bucket.0.background.owner, &FETCHER, task)?;
    queue.fetcher.set(fetcher.clone()).expect("the fetcher starts once");
    // Only now: a fetch that was queued before its fetcher was known has woken nobody.
    fetcher.wake();
    Ok(())
}

impl BucketCore {
    /// Queues a fetch for `waiter`, unless there are too many.
    pub(crate) fn begin_fetch(
        &self,
        vbid: Vbid,
        wanted: Wanted,
        waiter: Waiter,
    ) -> Result<(), Refused> {
        match self.disk.fetch_queue.push(vbid, wanted, waiter, self.clock.now()) {
            Ok(()) => return Ok(()),
            // One that was joined is another request's, which reads the file for it.
            Err(Wanted::Document(lookup)) if !lookup.is_joined => self.abandon(vbid, &lookup),
            Err(_) => {}
        }
        Err(Refused::TooManyFetches)
    }

    /// Nobody will deliver what `lookup` finds.
    fn abandon(&self, vbid: Vbid, lookup: &Lookup) {
        let Some(slot) = self.slot(vbid) else { return };
        if let Some(vbucket) = slot.lock().as_mut() {
            vbucket.abandon_lookup(lookup);
        }
    }

    fn fetch_wanted(&self, vbid: Vbid) {
        let fetches = self.disk.fetch_queue.take(vbid);
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
        self.counters
            .timings
            .bg_batch_size
            .record(u64::try_from(fetches.len()).unwrap_or(u64::MAX));
        self.counters.timings.bg_load.record(micros(self.clock.now().since(started)));
        for fetch in fetches {
            self.counters.timings.bg_wait.record(micros(started.since(fetch.since)));
        }
        // Before anybody is answered, who may ask for them.
        let is_value = |fetch: &&Fetch| matches!(fetch.wanted, Wanted::Value(_));
        let value_count = fetches.iter().filter(is_value).count();
        self.counters.add(&self.counters.values_fetched, value_count);
        self.counters.add(&self.counters.documents_fetched, fetches.len() - value_count);
        match result {
            Ok(found) => {
                assert_eq!(found.len(), fetches.len(), "storage answers for each key");
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
        let kept = self.memory.compression().as_kept(item).charged_to(self.memory.account.id());
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
