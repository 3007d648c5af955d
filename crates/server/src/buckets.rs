//! The buckets that the data port serves, by name. Connections look one up when they select it and
//! hold on to it: a request on a document comes past no lock of the registry.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bucket::Bucket;
use cluster::{PendingVbucket, Revision};
use replication::Hub;

use crate::cluster_view::{ClusterView, SharedMap, SharedPending};
use crate::emptying::DelayedFlush;

/// Buckets that the data port serves at a time, at most. Each has its place among the counters.
pub const BUCKET_COUNT_MAX: usize = 128;

/// A bucket that is to be served.
pub struct ServedBucket {
    /// The bucket.
    pub bucket: Bucket,
    /// Where news of its vBuckets reach streams.
    pub hub: Arc<Hub>,
    /// Whether FLUSH empties it; otherwise it is not supported.
    pub flush_enabled: bool,
}

/// A bucket as connections have it.
pub(crate) struct BucketPart {
    pub(crate) bucket: Bucket,
    /// Its counters are found by that. No other bucket that is served has the same one.
    pub(crate) place: usize,
    /// Where news of its vBuckets reach streams.
    pub(crate) hub: Arc<Hub>,
    /// Whether FLUSH empties it.
    flush_enabled: AtomicBool,
    /// Its configuration, as clients are told it.
    pub(crate) map: SharedMap,
    pub(crate) pending: SharedPending,
    /// What FLUSH has ordered for later.
    pub(crate) delayed_flush: DelayedFlush,
}

/// All of them. Its lock is held for a look-up.
pub(crate) struct BucketRegistry {
    served: RwLock<Served>,
    /// The name of the bucket of clients that select none.
    default_name: String,
}

struct Served {
    by_name: BTreeMap<String, Arc<BucketPart>>,
    /// Places that no bucket has, not even one that is going.
    free_places: Vec<usize>,
}

/// The data port serves as many buckets as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyBuckets;

impl BucketPart {
    pub(crate) fn name(&self) -> &str {
        &self.bucket.config().name
    }

    pub(crate) fn flush_enabled(&self) -> bool {
        self.flush_enabled.load(Ordering::Relaxed)
    }
}

impl BucketRegistry {
    /// No bucket yet. Clients that select none are to have the one called `default_name`.
    pub(crate) fn new(default_name: String) -> Self {
        let free_places = (0..BUCKET_COUNT_MAX).rev().collect();
        let served = RwLock::new(Served { by_name: BTreeMap::new(), free_places });
        Self { served, default_name }
    }

    /// From now on connections can select this bucket. `view` has its configuration.
    pub(crate) fn add(
        &self,
        served: ServedBucket,
        view: &ClusterView,
    ) -> Result<(), TooManyBuckets> {
        let ServedBucket { bucket, hub, flush_enabled } = served;
        let name = bucket.config().name.clone();
        let config = view.bucket_configs.get(&name).expect("a bucket has a configuration");
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let part = Arc::new(BucketPart {
            bucket,
            place: served.free_places.pop().ok_or(TooManyBuckets)?,
            hub,
            flush_enabled: AtomicBool::new(flush_enabled),
            map: SharedMap::new(view.revision, config.clone()),
            pending: SharedPending::default(),
            delayed_flush: DelayedFlush::default(),
        });
        let before = served.by_name.insert(name, part);
        assert!(before.is_none(), "buckets have different names");
        Ok(())
    }

    /// From now on no connection can select the bucket of that name. Those that have it still do.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<BucketPart>> {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        served.by_name.remove(name)
    }

    /// Another bucket may have the place of one that nobody has any more.
    pub(crate) fn free(&self, place: usize) {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        assert!(!served.free_places.contains(&place), "a place is given back once: {place}");
        served.free_places.push(place);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<BucketPart>> {
        self.read(|served| served.by_name.get(name).cloned())
    }

    /// The bucket of clients that select none.
    pub(crate) fn default_bucket(&self) -> Option<Arc<BucketPart>> {
        self.get(&self.default_name)
    }

    /// All, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<BucketPart>> {
        self.read(|served| served.by_name.values().cloned().collect())
    }

    /// Whether FLUSH empties one of them.
    pub(crate) fn has_flush(&self) -> bool {
        self.read(|served| served.by_name.values().any(|part| part.flush_enabled()))
    }

    /// From now on FLUSH empties the bucket, or does not.
    pub(crate) fn enable_flush(&self, name: &str, is_enabled: bool) {
        if let Some(part) = self.get(name) {
            part.flush_enabled.store(is_enabled, Ordering::Relaxed);
        }
    }

    /// From now on clients are told these configurations.
    pub(crate) fn publish(&self, revision: Revision, configs: BTreeMap<String, String>) {
        for (name, config) in configs {
            if let Some(part) = self.get(&name) {
                part.map.replace(revision, config);
            }
        }
    }

    /// What is left of the cluster's plan for a bucket.
    pub(crate) fn show_pending(&self, name: &str, pending: Vec<PendingVbucket>) {
        if let Some(part) = self.get(name) {
            part.pending.replace(pending);
        }
    }

    fn read<T>(&self, look: impl FnOnce(&Served) -> T) -> T {
        look(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }
}
