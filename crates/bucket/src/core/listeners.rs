//! Who hears what becomes of a bucket's vBuckets and of requests that wait.

use std::sync::Arc;

use vbucket::Waiter;

use super::completion::{Completion, Completions};
use super::stream_observer::{Observer, StreamObserver};

/// The server, and once there is one the observer of streams. Neither is told anything under a
/// lock of the bucket.
pub(crate) struct Listeners {
    completions: Arc<dyn Completions>,
    observer: Observer,
}

impl Listeners {
    pub(crate) fn new(completions: Arc<dyn Completions>) -> Self {
        Self { completions, observer: Observer::default() }
    }

    /// From now on `observer` hears what streams have to know.
    pub(crate) fn observe_streams(&self, observer: Arc<dyn StreamObserver>) {
        self.observer.set(observer);
    }

    /// Tells the observer if there is one.
    pub(crate) fn tell_streams(&self, news: impl FnOnce(&dyn StreamObserver)) {
        self.observer.tell(news);
    }

    /// Reports what `waiter` has waited for.
    pub(crate) fn complete(&self, waiter: Waiter, completion: Completion) {
        self.completions.complete(waiter, completion);
    }

    /// See [`Completions::release_memory`].
    pub(crate) fn release_memory(&self) {
        self.completions.release_memory();
    }
}
