//! Who hears what streams of a bucket's vBuckets have to know.

use std::sync::{Arc, OnceLock};

use document::{Seqno, Vbid, VbucketState};
use vbucket::checkpoint::CursorId;

/// Hears what happens to vBuckets that streams read or write. Called from any thread, never under a
/// lock of the bucket; must not block.
pub trait StreamObserver: Send + Sync {
    /// There is more in the vBucket's log. Said once until a stream looks again.
    fn log_grew(&self, vbid: Vbid);

    /// The stream's cursor is gone because memory is short: it goes on from the file.
    fn cursor_dropped(&self, vbid: Vbid, cursor: CursorId);

    /// The vBucket plays this role now; `None` when it was deleted, emptied or rolled back, so that
    /// no stream of it goes on.
    fn role_changed(&self, vbid: Vbid, state: Option<VbucketState>);

    /// A replica holds all prepares up to `seqno` as their levels demand.
    fn prepares_held(&self, vbid: Vbid, seqno: Seqno);

    /// The vBucket's file cannot be written any more: a replica is to be built anew
    /// ([`crate::Bucket::needs_rebuild`]).
    fn file_damaged(&self, _vbid: Vbid) {}
}

/// The observer, once there is one.
#[derive(Default)]
pub(crate) struct Observer(OnceLock<Arc<dyn StreamObserver>>);

impl Observer {
    /// From now on `observer` hears.
    pub(crate) fn set(&self, observer: Arc<dyn StreamObserver>) {
        assert!(self.0.set(observer).is_ok(), "a bucket has one observer");
    }

    /// Tells the observer if there is one.
    pub(crate) fn tell(&self, news: impl FnOnce(&dyn StreamObserver)) {
        if let Some(observer) = self.0.get() {
            news(&**observer);
        }
    }
}
