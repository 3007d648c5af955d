//! Where news of vBuckets reach the streams that they concern.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bucket::{Bucket, StreamObserver};
use document::{Seqno, Vbid, VbucketState};
use vbucket::checkpoint::CursorId;

/// Passes news of a bucket's vBuckets on to who has subscribed to them, and knows the bucket's
/// producers by name. One a bucket; see [`Bucket::observe_streams`].
pub struct Hub {
    /// By vBucket. Replaced as a whole, so that nobody is called under the lock.
    listeners: Box<[RwLock<Arc<[Listener]>>]>,
    next_subscription: AtomicU64,
}

#[derive(Clone)]
struct Listener {
    subscription: Subscription,
    observer: Arc<dyn StreamObserver>,
}

/// Names a subscription, to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription(u64);

impl Hub {
    /// A hub for `bucket`, which does not know of it yet.
    pub fn new(bucket: &Bucket) -> Arc<Self> {
        let count = usize::from(bucket.config().vbucket_count);
        let nobody = || RwLock::new(Vec::new().into());
        Arc::new(Self {
            listeners: std::iter::repeat_with(nobody).take(count).collect(),
            next_subscription: AtomicU64::new(0),
        })
    }

    /// From now on `observer` hears of the vBucket. It must not block, and may be called by any
    /// thread.
    pub fn subscribe(&self, vbid: Vbid, observer: Arc<dyn StreamObserver>) -> Subscription {
        let number = self.next_subscription.fetch_add(1, Ordering::Relaxed);
        let subscription = Subscription(number);
        self.change(vbid, |listeners| listeners.push(Listener { subscription, observer }));
        subscription
    }

    /// Ends a subscription. A call that has begun may still reach its observer.
    pub fn unsubscribe(&self, vbid: Vbid, subscription: Subscription) {
        self.change(vbid, |listeners| {
            listeners.retain(|listener| listener.subscription != subscription);
        });
    }

    fn change(&self, vbid: Vbid, change: impl FnOnce(&mut Vec<Listener>)) {
        let Some(place) = self.listeners.get(usize::from(vbid.0)) else { return };
        let mut listeners = place.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = listeners.to_vec();
        change(&mut changed);
        let before = std::mem::replace(&mut *listeners, changed.into());
        drop(listeners);
        drop(before);
    }

    fn tell(&self, vbid: Vbid, news: impl Fn(&dyn StreamObserver)) {
        let Some(place) = self.listeners.get(usize::from(vbid.0)) else { return };
        let listeners = Arc::clone(&place.read().unwrap_or_else(PoisonError::into_inner));
        listeners.iter().for_each(|listener| news(&*listener.observer));
    }
}

impl StreamObserver for Hub {
    fn log_grew(&self, vbid: Vbid) {
        self.tell(vbid, |observer| observer.log_grew(vbid));
    }

    fn cursor_dropped(&self, vbid: Vbid, cursor: CursorId) {
        self.tell(vbid, |observer| observer.cursor_dropped(vbid, cursor));
    }

    fn role_changed(&self, vbid: Vbid, state: Option<VbucketState>) {
        self.tell(vbid, |observer| observer.role_changed(vbid, state));
    }

    fn prepares_held(&self, vbid: Vbid, seqno: Seqno) {
        self.tell(vbid, |observer| observer.prepares_held(vbid, seqno));
    }
}
