//! Who hears what streams of a bucket's vBuckets have to know.

use std::sync::{Arc, OnceLock};

use document::{Seqno, Vbid, VbucketState};
use vbucket::checkpoint::CursorId;
use vbucket::{Effect, Now, Vbucket};

use crate::bucket::{Bucket, BucketCore};

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
    /// ([`Bucket::needs_rebuild`]).
    fn file_damaged(&self, _vbid: Vbid) {}
}

/// The observer, once there is one.
#[derive(Default)]
pub(crate) struct Observer(OnceLock<Arc<dyn StreamObserver>>);

impl Observer {
    /// Tells the observer if there is one.
    pub(crate) fn tell(&self, news: impl FnOnce(&dyn StreamObserver)) {
        if let Some(observer) = self.0.get() {
            news(&**observer);
        }
    }
}

impl Bucket {
    /// From now on `observer` hears what streams have to know.
    ///
    /// # Panics
    /// If there is an observer already.
    pub fn observe_streams(&self, observer: Arc<dyn StreamObserver>) {
        assert!(self.0.observer.0.set(observer).is_ok(), "a bucket has one observer");
    }

    /// Shows the vBucket to `act` under its lock, and carries out the effects after it. `None` if
    /// it is not here, or still being loaded. For streams: requests of clients have operations of
    /// their own.
    pub fn act_on_vbucket<T>(
        &self,
        vbid: Vbid,
        act: impl FnOnce(&mut Vbucket, Now, &mut Vec<Effect>) -> T,
    ) -> Option<T> {
        let slot = self.0.slot(vbid)?;
        let now = self.0.now();
        let mut effects = Vec::new();
        let result = slot.lock().as_mut().map(|vbucket| act(vbucket, now, &mut effects));
        self.0.carry_out(vbid, &mut effects);
        result
    }
}

impl BucketCore {
    /// Tells the observer what an effect says that is for streams.
    pub(crate) fn tell_streams(&self, news: impl FnOnce(&dyn StreamObserver)) {
        self.observer.tell(news);
    }
}
