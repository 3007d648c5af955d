//! The cluster as this node tells it to clients.

use std::sync::{Arc, Mutex, PoisonError};

use cluster::Revision;

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
pub(crate) struct SharedView(Mutex<Arc<ClusterView>>);

impl SharedView {
    pub(crate) fn new(view: ClusterView) -> Self {
        Self(Mutex::new(Arc::new(view)))
    }

    pub(crate) fn get(&self) -> Arc<ClusterView> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts `view` into the place of the one that was there.
    pub(crate) fn replace(&self, view: ClusterView) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }
}
