//! The buckets that the data port serves, by name. Connections look one up when they select it and
//! hold on to it: a request on a document comes past no lock of the registry.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use bucket::Bucket;
use cluster::{PendingVbucket, Revision};
use replication::Hub;

use crate::cluster_view::{ClusterView, SharedMap, SharedPending};
use crate::delayed_flush::DelayedFlush;

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
    /// How many came before it. Its counters are found by that.
    pub(crate) place: usize,
    /// Where news of its vBuckets reach streams.
    pub(crate) hub: Arc<Hub>,
    /// Whether FLUSH empties it.
    pub(crate) flush_enabled: bool,
    /// Its configuration, as clients are told it.
    pub(crate) map: SharedMap,
    pub(crate) pending: SharedPending,
    /// What FLUSH has ordered for later.
    pub(crate) delayed_flush: DelayedFlush,
}

/// All of them. Its lock is held for a look-up.
#[derive(Default)]
pub(crate) struct BucketRegistry {
    served: RwLock<Served>,
}

#[derive(Default)]
struct Served {
    by_name: BTreeMap<String, Arc<BucketPart>>,
    /// The one that came first: of clients that select none.
    default: Option<Arc<BucketPart>>,
}

impl BucketPart {
    pub(crate) fn name(&self) -> &str {
        &self.bucket.config().name
    }
}

impl BucketRegistry {
    /// From now on connections can select this bucket. `view` has its configuration.
    pub(crate) fn add(&self, served: ServedBucket, view: &ClusterView) {
        let ServedBucket { bucket, hub, flush_enabled } = served;
        let name = bucket.config().name.clone();
        let config = view.bucket_configs.get(&name).expect("a bucket has a configuration");
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let part = Arc::new(BucketPart {
            bucket,
            place: served.by_name.len(),
            hub,
            flush_enabled,
            map: SharedMap::new(view.revision, config.clone()),
            pending: SharedPending::default(),
            delayed_flush: DelayedFlush::default(),
        });
        served.default.get_or_insert_with(|| Arc::clone(&part));
        let before = served.by_name.insert(name, part);
        assert!(before.is_none(), "buckets have different names");
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<BucketPart>> {
        self.read(|served| served.by_name.get(name).cloned())
    }

    /// The bucket of clients that select none.
    pub(crate) fn default_bucket(&self) -> Option<Arc<BucketPart>> {
        self.read(|served| served.default.clone())
    }

    /// All, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<BucketPart>> {
        self.read(|served| served.by_name.values().cloned().collect())
    }

    /// Whether FLUSH empties one of them.
    pub(crate) fn has_flush(&self) -> bool {
        self.read(|served| served.by_name.values().any(|part| part.flush_enabled))
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
