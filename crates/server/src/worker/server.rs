//! The data port as a whole: its workers, how they start and stop.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use auth::{PasswordChecker, Users};
use bucket::Bucket;
use cluster::PendingVbucket;
use document::histogram::HistogramSnapshot;
use executor::{ExecutorPool, Shutdown};
use platform::network::TcpListener;
use platform::{Clock, Seldom, threads};
use replication::Hub;

use super::event_loop::EventLoop;
use super::mailbox::{Mailboxes, Message};
use crate::client_memory::ClientMemory;
use crate::cluster_view::{ClusterView, SharedView};
use crate::delayed_flush::DelayedFlush;
use crate::shared::{STRANGERS_LOG_INTERVAL, ServerOptions, Shared};
use crate::statistics::ServerStatistics;

/// Threads that check passwords: a login takes some 15 ms of one.
const PASSWORD_THREADS: usize = 2;

/// The data port. Stops when [`Server::stop`] is called.
pub struct Server {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The doors that the data port opens.
pub struct Doors {
    /// Where clients authenticate.
    pub data: TcpListener,
    /// Where classic memcached clients are let in without.
    pub memcached: Option<TcpListener>,
}

/// What the data port serves, and with what.
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Who may come in.
    pub users: Arc<Users>,
    /// The bucket.
    pub bucket: Bucket,
    /// Where news of its vBuckets reach streams.
    pub hub: Arc<Hub>,
    /// What clients are told about the cluster.
    pub cluster: ClusterView,
    /// Threads for what takes long.
    pub pool: ExecutorPool,
    /// The mailboxes that the bucket completes requests through.
    pub mailboxes: Mailboxes,
}

impl Server {
    /// Starts one worker for each mailbox.
    pub fn start(parts: Parts, options: ServerOptions, doors: Doors) -> io::Result<Self> {
        let count = parts.mailboxes.count();
        let shared = Arc::new(Shared {
            started: parts.clock.now(),
            clock: parts.clock,
            passwords: PasswordChecker::start(Arc::clone(&parts.users), "Login", PASSWORD_THREADS)?,
            users: parts.users,
            bucket: parts.bucket,
            hub: parts.hub,
            cluster: SharedView::new(parts.cluster),
            owner: parts.pool.register_owner("data port"),
            pool: parts.pool,
            mailboxes: parts.mailboxes,
            client_memory: ClientMemory::with_limit(options.limits.client_bytes_max),
            connection_count: AtomicUsize::new(0),
            options,
            counters: std::iter::repeat_with(Arc::default).take(count).collect(),
            delayed_flush: DelayedFlush::default(),
            failed_logins: Seldom::every(STRANGERS_LOG_INTERVAL),
            foreign_clients: Seldom::every(STRANGERS_LOG_INTERVAL),
            timings: std::iter::repeat_with(Arc::default).take(count).collect(),
        });
        let mut doors = (Some(doors.data), doors.memcached);
        // No worker runs before all can be told something.
        let event_loops = (0..count)
            .map(|index| EventLoop::new(index, Arc::clone(&shared), std::mem::take(&mut doors)))
            .collect::<io::Result<Vec<_>>>()?;
        let mut handles = Vec::with_capacity(count);
        for (index, event_loop) in event_loops.into_iter().enumerate() {
            handles.push(threads::spawn(&format!("FrontEnd{index}"), || event_loop.run())?);
        }
        Ok(Self { shared, threads: Mutex::new(handles) })
    }

    /// From now on clients are told `view`. Those that have asked for it hear of it at once.
    pub fn publish(&self, view: ClusterView) {
        self.shared.cluster.replace(view);
        for worker in 0..self.shared.mailboxes.count() {
            self.shared.mailboxes.send(worker, Message::MapChanged);
        }
    }

    /// What is left of the cluster's plan on this node, for whoever asks.
    pub fn show_pending(&self, pending: Vec<PendingVbucket>) {
        self.shared.cluster.replace_pending(pending);
    }

    /// What the data port has done.
    pub fn statistics(&self) -> ServerStatistics {
        self.shared.statistics()
    }

    /// How long commands took, in nanoseconds, by name.
    pub fn timings(&self) -> Vec<(&'static str, HistogramSnapshot)> {
        self.shared.command_timings()
    }

    /// Closes all connections and ends the workers. Requests that were executed are answered.
    pub fn stop(&self) {
        for worker in 0..self.shared.mailboxes.count() {
            self.shared.mailboxes.send(worker, Message::Stop);
        }
        let handles =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in handles {
            if handle.join().is_err() {
                tracing::error!("a front-end worker has panicked");
            }
        }
        self.shared.owner.unregister(Shutdown::Force);
    }
}

/// A listener for [`Doors`] on `address`, with the port that it got.
pub fn open_door(address: SocketAddr) -> io::Result<(TcpListener, u16)> {
    let listener = platform::network::listen(address)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}
