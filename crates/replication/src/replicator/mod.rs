//! Following other nodes: one thread a bucket, one connection a node.

mod event_loop;
mod inbox;
mod link;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bucket::Bucket;
use document::Vbid;
use executor::ExecutorPool;
use platform::threads;

use crate::consumer::StreamStatus;
use crate::hub::Hub;
use event_loop::EventLoop;
pub(crate) use inbox::Inbox;
use inbox::News;

/// Where another node is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerAddress {
    /// Its name in topologies.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Its data port.
    pub port: u16,
}

/// A vBucket that is to follow another node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follow {
    /// The vBucket.
    pub vbid: Vbid,
    /// The node where it is active.
    pub peer: PeerAddress,
}

/// Who this node is when it speaks to others.
#[derive(Clone)]
pub struct Credentials {
    /// Its name in topologies.
    pub node: String,
    /// Who logs in.
    pub user: String,
    /// The password.
    pub password: String,
}

/// How a connection to another node is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// Its name on both nodes.
    pub connection: String,
    /// The node.
    pub peer: PeerAddress,
    /// Whether streams can be asked for.
    pub is_open: bool,
    /// Bytes received and not acknowledged yet.
    pub unacknowledged_bytes: u32,
    /// How often it was connected.
    pub connects: u64,
    /// Its streams.
    pub streams: Vec<StreamStatus>,
}

/// Follows other nodes until it is stopped.
pub struct Replicator {
    inbox: Arc<Inbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Replicator {
    /// Starts the thread, which has nothing to follow yet. Tasks of `pool` wait for files on its
    /// behalf.
    pub fn start(
        bucket: Bucket,
        hub: Arc<Hub>,
        credentials: Credentials,
        pool: ExecutorPool,
    ) -> io::Result<Self> {
        let (event_loop, inbox) = EventLoop::new(bucket, hub, credentials, pool)?;
        let thread = threads::spawn("Replicator", || event_loop.run())?;
        Ok(Self { inbox, thread: Mutex::new(Some(thread)) })
    }

    /// What is to be followed, and nothing else: streams of other vBuckets end.
    pub fn follow(&self, wanted: Vec<Follow>) {
        self.inbox.put(News { wanted: Some(wanted), ..News::default() });
    }

    /// How the connections are doing; a little old.
    pub fn status(&self) -> Vec<LinkStatus> {
        self.inbox.status()
    }

    /// Closes all connections and ends the thread. What was received is kept.
    pub fn stop(&self) {
        self.inbox.put(News { is_stopping: true, ..News::default() });
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the replicator has panicked");
        }
    }
}
