//! Where news of vBuckets reach the streams that they concern.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use bucket::{Bucket, StreamObserver};
use document::{Seqno, Vbid, VbucketState};
use vbucket::checkpoint::CursorId;

use crate::backfill::UnsentOfAll;
use crate::consumer::Reservations;
use crate::producer::ProducerShared;
use crate::relay::{RelayShared, RelayStatus};
use crate::replicator::{BucketInbox, LinkStatus};

/// Passes news of a bucket's vBuckets on to who has subscribed to them, and knows the bucket's
/// producers by name. One a bucket; see [`Bucket::observe_streams`].
pub struct Hub {
    /// By vBucket. Replaced as a whole, so that nobody is called under the lock.
    listeners: Box<[RwLock<Arc<[Listener]>>]>,
    next_subscription: AtomicU64,
    producers: Mutex<BTreeMap<String, Arc<ProducerShared>>>,
    /// Connections on which managers relay what is sent for vBuckets, by name. Locked before
    /// `producers` where both are.
    relays: Mutex<BTreeMap<String, Arc<RelayShared>>>,
    /// What tells the replicator of the bucket, once there is one.
    replicator: OnceLock<Arc<BucketInbox>>,
    reservations: Arc<Reservations>,
    unsent: Arc<UnsentOfAll>,
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
            producers: Mutex::default(),
            relays: Mutex::default(),
            replicator: OnceLock::new(),
            reservations: Arc::default(),
            unsent: Arc::default(),
        })
    }

    /// From now on `observer` hears of the vBucket. It must not block, and may be called by any
    /// thread.
    pub fn subscribe(&self, vbid: Vbid, observer: Arc<dyn StreamObserver>) -> Subscription {
        // Numbers have to be different and order nothing: Relaxed is enough.
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
        let place = self.listeners.get(usize::from(vbid.0));
        let place = place.expect("who listens has found the vBucket");
        let mut listeners = place.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = listeners.to_vec();
        change(&mut changed);
        let before = std::mem::replace(&mut *listeners, changed.into());
        // The old list may be the last to hold an observer, which is freed without the lock.
        drop(listeners);
        drop(before);
    }

    fn tell(&self, vbid: Vbid, news: impl Fn(&dyn StreamObserver)) {
        let Some(place) = self.listeners.get(usize::from(vbid.0)) else { return };
        let listeners = Arc::clone(&place.read().unwrap_or_else(PoisonError::into_inner));
        listeners.iter().for_each(|listener| news(&*listener.observer));
    }

    /// How the connections to nodes that are followed are doing; a second old at most.
    pub fn consumer_status(&self) -> Vec<LinkStatus> {
        self.replicator.get().map_or_else(Vec::new, |replicator| replicator.status())
    }

    /// From now on the replicator with this mailbox is the bucket's.
    pub(crate) fn replicate_with(&self, inbox: Arc<BucketInbox>) {
        assert!(self.replicator.set(inbox).is_ok(), "a bucket has one replicator");
    }

    /// All producers, in the order of their names.
    pub(crate) fn producers(&self) -> Vec<Arc<ProducerShared>> {
        self.lock_producers().values().cloned().collect()
    }

    /// A producer opens. One that has the same name is to close. `false`, and nothing is done,
    /// where that may be a node's and this one may not: replicas would be cut off by whoever may
    /// read.
    pub(crate) fn enter(&self, producer: &Arc<ProducerShared>) -> bool {
        let name = producer.name();
        // Under both locks: of two connections that open at once one finds the other.
        let mut relays = self.lock_relays();
        let mut producers = self.lock_producers();
        let is_nodes = relays.contains_key(name)
            || producers.get(name).is_some_and(|older| older.may_be_nodes());
        if is_nodes && !producer.may_be_nodes() {
            return false;
        }
        let older = producers.insert(name.to_owned(), Arc::clone(producer));
        let relay = relays.remove(name);
        drop(producers);
        drop(relays);
        if let Some(older) = older {
            older.supersede();
        }
        if let Some(relay) = relay {
            relay.supersede();
        }
        true
    }

    /// A producer has gone.
    pub(crate) fn leave(&self, producer: &Arc<ProducerShared>) {
        let mut producers = self.lock_producers();
        let is_it = |known: &Arc<ProducerShared>| Arc::ptr_eq(known, producer);
        // A newer connection may have its name by now, and stays.
        if producers.get(producer.name()).is_some_and(is_it) {
            producers.remove(producer.name());
        }
    }

    /// A relayed connection opens. One that has the same name is to close. It may be a node's, as
    /// nobody else receives.
    pub(crate) fn enter_relay(&self, relay: &Arc<RelayShared>) {
        let name = relay.name().to_owned();
        let mut relays = self.lock_relays();
        let producer = self.lock_producers().remove(&name);
        let older = relays.insert(name, Arc::clone(relay));
        drop(relays);
        if let Some(older) = older {
            older.supersede();
        }
        if let Some(producer) = producer {
            producer.supersede();
        }
    }

    /// A relayed connection has gone.
    pub(crate) fn leave_relay(&self, relay: &Arc<RelayShared>) {
        let mut relays = self.lock_relays();
        // A newer connection may have its name by now, and stays.
        if relays.get(relay.name()).is_some_and(|known| Arc::ptr_eq(known, relay)) {
            relays.remove(relay.name());
        }
    }

    /// How many relayed connections there are.
    pub(crate) fn relay_count(&self) -> usize {
        self.lock_relays().len()
    }

    /// How relayed connections are doing, in the order of their names; a second old at most.
    pub fn relay_status(&self) -> Vec<RelayStatus> {
        self.lock_relays().values().map(|relay| relay.status()).collect()
    }

    /// Who has the bucket's vBuckets receive.
    pub(crate) fn reservations(&self) -> &Arc<Reservations> {
        &self.reservations
    }

    /// What all producers have read ahead.
    pub(crate) fn unsent(&self) -> &Arc<UnsentOfAll> {
        &self.unsent
    }

    fn lock_relays(&self) -> MutexGuard<'_, BTreeMap<String, Arc<RelayShared>>> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_producers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ProducerShared>>> {
        self.producers.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn file_damaged(&self, vbid: Vbid) {
        self.tell(vbid, |observer| observer.file_damaged(vbid));
    }
}
