//! The node's buckets, by name. Which there are changes while it runs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bucket::{Bucket, Surroundings};
use executor::ExecutorPool;
use platform::Clock;
use replication::Hub;
use server::ServedBucket;

use crate::bucket_settings::BucketSettings;
use crate::document_access::{DocumentAccess, Waiters};

/// How often a node that loads before it serves says so.
const LOADING_STEP: Duration = Duration::from_secs(2);

/// A bucket that the node has open. A handle, with the settings that it had when it was looked up.
#[derive(Clone)]
pub struct NodeBucket {
    bucket: Bucket,
    hub: Arc<Hub>,
    documents: DocumentAccess,
    settings: BucketSettings,
}

/// All of them. The lock is held for a look-up.
pub struct NodeBuckets {
    by_name: RwLock<BTreeMap<String, NodeBucket>>,
    default_name: String,
}

impl NodeBucket {
    /// A bucket of which nobody knows yet who reads it, and which reports to `waiters`. What it is
    /// tells it itself, and `settings` the rest.
    pub(crate) fn new(bucket: Bucket, settings: BucketSettings, waiters: &Arc<Waiters>) -> Self {
        let hub = Hub::new(&bucket);
        bucket.observe_streams(hub.clone());
        let settings = BucketSettings {
            vbuckets: Some(bucket.config().vbucket_count),
            bucket_type: Some(bucket.bucket_type()),
            conflict_resolution: Some(bucket.conflict_resolution()),
            uuid: Some(bucket.uuid().to_owned()),
            ..settings
        };
        let documents = DocumentAccess::new(bucket.clone(), Arc::clone(waiters));
        Self { bucket, hub, documents, settings }
    }

    /// The bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Its documents, for callers that may wait.
    pub fn documents(&self) -> &DocumentAccess {
        &self.documents
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.bucket.config().name
    }

    /// What it is to be.
    pub fn settings(&self) -> &BucketSettings {
        &self.settings
    }

    /// Whether clients may empty it.
    pub fn flush_enabled(&self) -> bool {
        self.settings.enable_flush
    }

    /// Where news of its vBuckets reach streams.
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The same bucket with other settings.
    pub(crate) fn with_settings(&self, settings: BucketSettings) -> Self {
        Self { settings, ..self.clone() }
    }

    /// As the data port takes it.
    pub(crate) fn served(&self) -> ServedBucket {
        let Self { bucket, hub, .. } = self.clone();
        ServedBucket { bucket, hub, flush_enabled: self.flush_enabled() }
    }

    /// Loads all documents' keys. In a world without threads its tasks run meanwhile.
    pub(crate) fn load(&self, pool: &ExecutorPool) {
        while !self.bucket.wait_until_serving(Duration::ZERO) {
            if !pool.help() && !self.bucket.wait_until_serving(LOADING_STEP) {
                tracing::info!(bucket = self.name(), "loading documents before it is served");
            }
        }
    }
}

impl NodeBuckets {
    /// These. Clients that select none are to have the one called `default_name`.
    pub(crate) fn of(buckets: Vec<NodeBucket>, default_name: &str) -> Self {
        let count = buckets.len();
        let by_name: BTreeMap<String, NodeBucket> =
            buckets.into_iter().map(|bucket| (bucket.name().to_owned(), bucket)).collect();
        assert_eq!(by_name.len(), count, "buckets have different names");
        Self { by_name: RwLock::new(by_name), default_name: default_name.to_owned() }
    }

    /// All, in the order of their names.
    pub fn all(&self) -> Vec<NodeBucket> {
        self.read(|by_name| by_name.values().cloned().collect())
    }

    /// The bucket of that name.
    pub fn get(&self, name: &str) -> Option<NodeBucket> {
        self.read(|by_name| by_name.get(name).cloned())
    }

    /// The one of clients that select none, and of cluster maps that name none, if it is there.
    pub fn default_bucket(&self) -> Option<NodeBucket> {
        self.get(&self.default_name)
    }

    /// The name of that one.
    pub(crate) fn default_name(&self) -> &str {
        &self.default_name
    }

    /// Memory for documents of all of them.
    pub fn memory_quota_bytes(&self) -> u64 {
        self.read(|by_name| by_name.values().map(|it| it.settings.memory_quota_bytes).sum())
    }

    /// Puts a bucket into its place, perhaps that of the same one with other settings.
    pub(crate) fn put(&self, bucket: NodeBucket) {
        let name = bucket.name().to_owned();
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).insert(name, bucket);
    }

    /// Takes a bucket out.
    pub(crate) fn remove(&self, name: &str) -> Option<NodeBucket> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// As the data port takes them.
    pub(crate) fn served(&self) -> Vec<ServedBucket> {
        self.all().iter().map(NodeBucket::served).collect()
    }

    /// Blocks until every vBucket serves, at most for `patience`.
    pub(crate) fn wait_until_serving(&self, clock: &Clock, patience: Duration) -> bool {
        let deadline = clock.now().after(patience);
        self.all().iter().all(|it| it.bucket.wait_until_serving(deadline.since(clock.now())))
    }

    /// Loads all documents' keys. In a world without threads its tasks run meanwhile.
    pub(crate) fn load(&self, pool: &ExecutorPool) {
        self.all().iter().for_each(|bucket| bucket.load(pool));
    }

    /// Flushes and closes all. An error is how many vBuckets have documents that could not be
    /// written.
    pub(crate) fn shut_down(&self) -> Result<(), usize> {
        let all = self.all();
        let unflushed = all.iter().filter_map(|it| it.bucket.shut_down().err());
        match unflushed.sum() {
            0 => Ok(()),
            count => Err(count),
        }
    }

    fn read<T>(&self, look: impl FnOnce(&BTreeMap<String, NodeBucket>) -> T) -> T {
        look(&self.by_name.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a bucket has around it in a node: what its requests wait for is reported to `waiters`.
pub(crate) fn surroundings(world: &crate::world::World, waiters: &Arc<Waiters>) -> Surroundings {
    let waiters = Arc::clone(waiters);
    Surroundings {
        clock: world.clock.clone(),
        files: Arc::clone(&world.files),
        pool: world.pool.clone(),
        completions: waiters,
        entropy: world.entropy.clone(),
    }
}
