//! The cluster as this node tells it to clients.

use std::sync::{Arc, Mutex, PoisonError};

use cluster::{PendingVbucket, Revision};

/// A state of the cluster, rendered once.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// The version of what follows.
    pub revision: Revision,
    /// For clients that have selected no bucket.
    pub global_config: String,
    /// For those that have.
    pub bucket_config: String,
}

/// The state that counts now. Its lock is held for a copy of a pointer.
pub(crate) struct SharedView {
    view: Mutex<Arc<ClusterView>>,
    pending: Mutex<Arc<Vec<PendingVbucket>>>,
}

impl SharedView {
    pub(crate) fn new(view: ClusterView) -> Self {
        Self { view: Mutex::new(Arc::new(view)), pending: Mutex::default() }
    }

    pub(crate) fn get(&self) -> Arc<ClusterView> {
        Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts `view` into the place of the one that was there.
    pub(crate) fn replace(&self, view: ClusterView) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }

    /// The vBuckets that are not yet what the cluster's plan says.
    pub(crate) fn pending(&self) -> Arc<Vec<PendingVbucket>> {
        Arc::clone(&self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace_pending(&self, pending: Vec<PendingVbucket>) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(pending);
    }
}
