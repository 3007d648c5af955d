//! Following other nodes: one readiness loop, and of each bucket one connection a node.

mod event_loop;
mod followed_bucket;
mod following;
mod inbox;
mod line_socket;
mod link;
mod peer_addresses;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bucket::Bucket;
use executor::{ExecutorPool, LoopHandle};
use platform::network::Network;

use crate::hub::Hub;
use event_loop::{EventLoop, Joining};
use followed_bucket::FollowedBucket;
pub use following::{Follow, FollowerLogin, LinkStatus, PeerAddress};
pub(crate) use inbox::BucketInbox;
use inbox::{BucketId, BucketNews, Inbox, News};

/// Follows other nodes until it is stopped.
pub struct Replicator {
    credentials: FollowerLogin,
    pool: ExecutorPool,
    inbox: Arc<Inbox>,
    joining: Joining,
    next_id: AtomicU64,
    running: Mutex<Option<LoopHandle>>,
}

/// Says what is to be followed of one bucket.
pub struct BucketReplicator(Arc<BucketInbox>);

impl Replicator {
    /// Starts the loop, which has no bucket yet. Tasks of `pool` wait for files on its behalf.
    pub fn start(
        credentials: FollowerLogin,
        pool: ExecutorPool,
        network: Network,
    ) -> io::Result<Self> {
        let joining = Joining::default();
        let clock = pool.clock().clone();
        let (event_loop, inbox) = EventLoop::new(clock, network, Arc::clone(&joining))?;
        let running = Mutex::new(Some(pool.spawn_loop("Replicator", event_loop)?));
        Ok(Self { credentials, pool, inbox, joining, next_id: AtomicU64::new(0), running })
    }

    /// From now on vBuckets of this bucket can be followed. `hub` is the bucket's, and no other
    /// replicator's.
    pub fn replicate(&self, bucket: Bucket, hub: Arc<Hub>) -> BucketReplicator {
        // Numbers have to be different and order nothing: Relaxed is enough.
        let id = BucketId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let inbox = Arc::new(BucketInbox::new(id, Arc::clone(&self.inbox)));
        hub.replicate_with(Arc::clone(&inbox));
        let (credentials, pool) = (self.credentials.clone(), self.pool.clone());
        let followed = FollowedBucket::new(bucket, hub, credentials, pool, Arc::clone(&inbox));
        // Before the caller can send news of it: those of a bucket that has not joined are lost.
        self.joining.lock().unwrap_or_else(PoisonError::into_inner).push((id, followed));
        BucketReplicator(inbox)
    }

    /// Closes all connections and ends the loop. What was received is kept.
    pub fn stop(&self) {
        self.inbox.put(News { is_stopping: true, ..News::default() });
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if running.is_some_and(|running| running.join().is_err()) {
            tracing::error!("the replicator has panicked");
        }
    }
}

impl BucketReplicator {
    /// What is to be followed, and nothing else: streams of other vBuckets end.
    pub fn follow(&self, wanted: Vec<Follow>) {
        self.0.put(BucketNews { wanted: Some(wanted), ..BucketNews::default() });
    }

    /// The bucket goes: its connections close, and the loop lets go of it.
    pub fn leave(&self) {
        self.0.put(BucketNews { is_leaving: true, ..BucketNews::default() });
    }
}
