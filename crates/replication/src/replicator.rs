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
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bucket::Bucket;
use executor::{ExecutorPool, LoopHandle};
use platform::network::Network;

use crate::hub::Hub;
use event_loop::{EventLoop, Joining};
use followed_bucket::FollowedBucket;
pub use following::{Follow, FollowerLogin, LinkStatus, PeerAddress};
pub(crate) use inbox::BucketInbox;
use inbox::{BucketId, BucketNews, Inbox, News, Wanted};

/// How long whoever has told the loop something waits for it at most.
const TURN_TIME_MAX: Duration = Duration::from_secs(5);

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
pub struct BucketReplicator {
    inbox: Arc<BucketInbox>,
    hub: Arc<Hub>,
    has_threads: bool,
}

/// The loop has been told what to follow, and has not looked yet.
pub struct Told(Option<Receiver<()>>);

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
        let has_threads = pool.has_threads();
        let told = (Arc::clone(&hub), Arc::clone(&inbox));
        let followed = FollowedBucket::new(bucket, told.0, credentials, pool, told.1);
        // Before the caller can send news of it: those of a bucket that has not joined are lost.
        self.joining.lock().unwrap_or_else(PoisonError::into_inner).push((id, followed));
        BucketReplicator { inbox, hub, has_threads }
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
    /// From now on no vBucket begins to go back because of a node that it is not to follow: only
    /// rollbacks that are under way come to their end. Roles wait for those.
    pub fn heed(&self, wanted: &[Follow]) {
        let leaders = wanted.iter().map(|follow| (follow.vbid, follow.peer.name.clone()));
        self.hub.reservations().lead(leaders.collect());
    }

    /// What is to be followed, and nothing else: streams of other vBuckets end.
    pub fn follow(&self, wanted: Vec<Follow>) -> Told {
        self.heed(&wanted);
        let (is_taken, taken) = mpsc::channel();
        let wanted = Some(Wanted { follows: wanted, are_taken: vec![is_taken] });
        self.inbox.put(BucketNews { wanted, ..BucketNews::default() });
        Told(self.has_threads.then_some(taken))
    }

    /// The bucket goes: its connections close, and the loop lets go of it.
    pub fn leave(&self) {
        self.inbox.put(BucketNews { is_leaving: true, ..BucketNews::default() });
    }
}

impl Told {
    /// Waits until what is not to be followed any more brings nothing: whether it is so by now. For
    /// a turn of the loop, and not for ever where that has ended; without threads for nothing, as
    /// it would not come.
    pub fn wait(&self) -> bool {
        let is_heard = self.wait_at_most(TURN_TIME_MAX);
        if !is_heard {
            tracing::warn!("the replicator takes long to hear whom it is to follow");
        }
        is_heard
    }

    fn wait_at_most(&self, patience: Duration) -> bool {
        // Nothing is sent: the loop lets go of its end.
        let waited = self.0.as_ref().map(|taken| taken.recv_timeout(patience));
        waited != Some(Err(RecvTimeoutError::Timeout))
    }

    /// Whether what is not to be followed any more brings nothing.
    pub fn is_heard(&self) -> bool {
        self.0.as_ref().is_none_or(|taken| taken.try_recv() != Err(TryRecvError::Empty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loop_has_not_heard_is_not_heard_however_long_somebody_has_waited() {
        let (is_taken, taken) = mpsc::channel();
        let told = Told(Some(taken));
        assert!(!told.wait_at_most(Duration::ZERO) && !told.is_heard());
        drop(is_taken);
        assert!(told.is_heard() && told.wait_at_most(Duration::ZERO));
        assert!(Told(None).is_heard(), "without threads nobody can wait for it");
    }
}
