//! The cluster as this node tells it to clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cluster::{PendingVbucket, Revision};

/// A state of the cluster, rendered once.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// The version of what follows.
    pub revision: Revision,
    /// For clients that have selected no bucket.
    pub global_config: String,
    /// For those that have, by the bucket's name.
    pub bucket_configs: BTreeMap<String, String>,
}

/// One configuration as clients are told it: of a bucket, or the global one.
#[derive(Debug)]
pub(crate) struct RenderedMap {
    pub(crate) revision: Revision,
    pub(crate) config: String,
}

/// The one that counts now. Its lock is held for a copy of a pointer.
pub(crate) struct SharedMap(Mutex<Arc<RenderedMap>>);

/// The vBuckets of a bucket that are not yet what the cluster's plan says. Its lock is held for a
/// copy of a pointer.
#[derive(Default)]
pub(crate) struct SharedPending(Mutex<Arc<Vec<PendingVbucket>>>);

impl SharedMap {
    pub(crate) fn new(revision: Revision, config: String) -> Self {
        Self(Mutex::new(Arc::new(RenderedMap { revision, config })))
    }

    pub(crate) fn get(&self) -> Arc<RenderedMap> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another one into the place of the one that was there.
    pub(crate) fn replace(&self, revision: Revision, config: String) {
        let map = Arc::new(RenderedMap { revision, config });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = map;
    }
}

impl SharedPending {
    pub(crate) fn get(&self) -> Arc<Vec<PendingVbucket>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts others into the place of those that were there.
    pub(crate) fn replace(&self, pending: Vec<PendingVbucket>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(pending);
    }
}
