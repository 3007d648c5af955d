//! The data port as a whole: its workers, how they start and stop.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak, mpsc};
use std::time::Duration;

use auth::{PasswordChecker, Users};
use cluster::PendingVbucket;
use document::histogram::HistogramSnapshot;
use executor::{ExecutorPool, LoopHandle, Shutdown};
use platform::network::{Listener, Network};
use platform::{Clock, Seldom, WallTime};
use protocol::Opcode;
use tls::Acceptor;

use super::event_loop::{EventLoop, Listeners};
use super::mailbox::{Mailboxes, Message};
use crate::adjustable::Adjustable;
use crate::bucket_administrator::BucketAdministrator;
use crate::buckets::{BucketRegistry, ServedBucket, TooManyBuckets};
use crate::client_memory::ClientMemory;
use crate::cluster_view::{ClusterView, SharedMap};
use crate::collection_statistics::{ListedCollection, of_collections};
use crate::command_statistics::{CommandStatistics, timings_of};
use crate::dcp_statistics::{DcpStatistics, by_kind, replication_lag};
use crate::departure::Departure;
use crate::hot_keys::{HotKey, HotKeys};
use crate::recache_marks::RecacheMarks;
use crate::shared::{GUEST_ORDERS_NOTE_INTERVAL, STRANGERS_LOG_INTERVAL, ServerOptions, Shared};
use crate::slow_operations::{SlowOperation, SlowOperations};
use crate::statistics::ServerStatistics;
use crate::strangers::Strangers;
use crate::user_meters::UserMeters;

/// Threads that check passwords: a login takes some 15 ms of one.
const PASSWORD_THREADS: usize = 2;

/// The data port. Stops when [`Server::stop`] is called.
pub struct Server {
    shared: Arc<Shared>,
    workers: Mutex<Vec<LoopHandle>>,
}

/// The doors that the data port opens.
pub struct Doors {
    /// Where clients authenticate.
    pub data: Listener,
    /// Where they speak TLS, and may say by a certificate who they are.
    pub tls: Option<TlsDoor>,
    /// Where classic memcached clients are let in without.
    pub memcached: Option<Listener>,
}

/// A door behind which everybody speaks TLS.
pub struct TlsDoor {
    /// The door.
    pub listener: Listener,
    /// What makes sessions.
    pub acceptor: Arc<Acceptor>,
}

/// What the data port serves, and with what.
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Where the doors are.
    pub network: Network,
    /// Who may come in.
    pub users: Arc<Users>,
    /// The buckets that there are at the start, with different names.
    pub buckets: Vec<ServedBucket>,
    /// The name of the bucket of clients that select none, whenever there is one.
    pub default_bucket: String,
    /// What clients are told about the cluster, with the configuration of each bucket.
    pub cluster: ClusterView,
    /// Threads for what takes long.
    pub pool: ExecutorPool,
    /// The mailboxes that the buckets complete requests through.
    pub mailboxes: Mailboxes,
}

impl Server {
    /// Starts one worker for each mailbox.
    pub fn start(parts: Parts, options: ServerOptions, doors: Doors) -> io::Result<Self> {
        let count = parts.mailboxes.count();
        assert!(count > 0, "somebody serves the data port");
        let users = &parts.users;
        let passwords = if parts.pool.has_threads() {
            PasswordChecker::start(Arc::clone(users), "Login", PASSWORD_THREADS)?
        } else {
            PasswordChecker::at_once(Arc::clone(users))
        };
        let buckets = BucketRegistry::new(parts.default_bucket);
        for bucket in parts.buckets {
            let added = buckets.add(bucket, &parts.cluster);
            added.map_err(|TooManyBuckets| io::Error::other("there are too many buckets"))?;
        }
        let (tls_listener, tls) = doors.tls.map(|door| (door.listener, door.acceptor)).unzip();
        let others = [tls_listener.is_some(), doors.memcached.is_some()];
        let shared = Arc::new(Shared {
            listener_count: 1 + others.into_iter().filter(|is_there| *is_there).count(),
            started: parts.clock.now(),
            clock: parts.clock,
            passwords,
            users: parts.users,
            tls,
            buckets,
            global_map: SharedMap::new(parts.cluster.revision, parts.cluster.global_config),
            owner: parts.pool.register_owner("data port"),
            pool: parts.pool,
            mailboxes: parts.mailboxes,
            client_memory: ClientMemory::new(
                options.limits.client_bytes_max,
                doors.memcached.is_some(),
            ),
            strangers: Strangers::new(options.limits.strangers_of_address_max),
            user_meters: UserMeters::default(),
            connection_count: AtomicUsize::new(0),
            options,
            counters: std::iter::repeat_with(Arc::default).take(count).collect(),
            slow_operations: SlowOperations::of_workers(count),
            hot_keys: HotKeys::of_workers(count),
            recache_marks: RecacheMarks::default(),
            guest_orders: Seldom::every(GUEST_ORDERS_NOTE_INTERVAL),
            failed_logins: Seldom::every(STRANGERS_LOG_INTERVAL),
            failed_handshakes: Seldom::every(STRANGERS_LOG_INTERVAL),
            rejected_connections: Seldom::every(STRANGERS_LOG_INTERVAL),
            foreign_clients: Seldom::every(STRANGERS_LOG_INTERVAL),
            by_bucket: std::iter::repeat_with(Default::default).take(count).collect(),
            administrator: OnceLock::new(),
        });
        let mut listeners =
            Listeners { data: Some(doors.data), tls: tls_listener, memcached: doors.memcached };
        // No worker runs before all can be told something.
        let event_loops = (0..count)
            .map(|index| {
                let listeners = std::mem::take(&mut listeners);
                EventLoop::new(index, Arc::clone(&shared), &parts.network, listeners)
            })
            .collect::<io::Result<Vec<_>>>()?;
        let mut handles = Vec::with_capacity(count);
        for (index, event_loop) in event_loops.into_iter().enumerate() {
            handles.push(shared.pool.spawn_loop(&format!("FrontEnd{index}"), event_loop)?);
        }
        assert_eq!(handles.len(), shared.mailboxes.count(), "every mailbox has a worker");
        Ok(Self { shared, workers: Mutex::new(handles) })
    }

    /// From now on clients have buckets made and deleted by `administrator`, while it is there.
    pub fn administrate_with(&self, administrator: Weak<dyn BucketAdministrator>) {
        let set = self.shared.administrator.set(administrator);
        assert!(set.is_ok(), "a data port has one administrator");
    }

    /// From now on clients can select this bucket. `view` has its configuration.
    pub fn add_bucket(
        &self,
        bucket: ServedBucket,
        view: &ClusterView,
    ) -> Result<(), TooManyBuckets> {
        self.shared.buckets.add(bucket, view)
    }

    /// From now on no client can select the bucket of that name, and those that have it lose it,
    /// each in its own time. `None` if there is none.
    pub fn remove_bucket(&self, name: &str) -> Option<Departure> {
        // Before workers are told: nobody can select it behind the message that takes it away.
        let part = self.shared.buckets.remove(name)?;
        part.delayed_flush.withdraw();
        for worker in 0..self.shared.mailboxes.count() {
            self.shared.mailboxes.send(worker, Message::BucketGone(Arc::clone(&part)));
        }
        let shared = Arc::clone(&self.shared);
        Some(Departure::new(part, move |place| {
            shared.by_bucket.iter().for_each(|worker| worker.clear(place));
            shared.buckets.free(place);
        }))
    }

    /// From now on FLUSH empties the bucket of that name, or does not.
    pub fn enable_flush(&self, name: &str, is_enabled: bool) {
        self.shared.buckets.enable_flush(name, is_enabled);
    }

    /// From now on clients are told `view`. Those that have asked for it hear of it at once.
    pub fn publish(&self, view: ClusterView) {
        let ClusterView { revision, global_config, bucket_configs } = view;
        // Before workers are told: the message says nothing of the map, they look it up.
        self.shared.buckets.publish(revision, bucket_configs);
        self.shared.global_map.replace(revision, global_config);
        for worker in 0..self.shared.mailboxes.count() {
            self.shared.mailboxes.send(worker, Message::MapChanged);
        }
    }

    /// What is left of the cluster's plan for a bucket on this node, for whoever asks.
    pub fn show_pending(&self, bucket: &str, pending: Vec<PendingVbucket>) {
        self.shared.buckets.show_pending(bucket, pending);
    }

    /// What the data port has done.
    pub fn statistics(&self) -> ServerStatistics {
        self.shared.statistics()
    }

    /// What it has been asked for, whatever bucket the connections have selected, or none.
    pub fn all_commands(&self) -> CommandStatistics {
        self.shared.all_commands()
    }

    /// What it has done for a bucket; `None` if it serves none of that name.
    pub fn commands_of(&self, bucket: &str) -> Option<CommandStatistics> {
        let part = self.shared.buckets.get(bucket)?;
        Some(CommandStatistics::of(self.shared.counters_of(&part)))
    }

    /// How long the commands of a bucket took that clients have asked for, in nanoseconds.
    pub fn timings_of(&self, bucket: &str) -> Vec<(Opcode, HistogramSnapshot)> {
        let Some(part) = self.shared.buckets.get(bucket) else { return Vec::new() };
        let all = Opcode::ALL.iter();
        all.map(|&opcode| (opcode, timings_of(opcode, self.shared.counters_of(&part))))
            .filter(|(_, snapshot)| snapshot.count() > 0)
            .collect()
    }

    /// What was slow of a bucket, the newest first.
    pub fn slow_operations_of(&self, bucket: &str) -> Vec<SlowOperation> {
        self.shared.slow_operations.of(bucket)
    }

    /// Milliseconds from which on commands are slow. Quiet forms are as the others.
    pub fn slow_thresholds(&self) -> Vec<(Opcode, u64)> {
        let loud = Opcode::ALL.iter().filter(|opcode| opcode.loud() == **opcode);
        loud.map(|&opcode| (opcode, self.shared.slow_operations.threshold_ms(opcode))).collect()
    }

    /// What was asked for most of a bucket in the last sampling, among how many requests, and for
    /// how long the sampling goes on.
    pub fn hot_keys_of(&self, bucket: &str) -> (Vec<HotKey>, u64, Duration) {
        let (hot, counted) = self.shared.hot_keys.of(bucket);
        (hot, counted, self.shared.hot_keys.time_left(self.shared.clock.now()))
    }

    /// Sets a property as a client does with IOCTL_SET.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn set_property(&self, name: &str, value: &str) -> Result<(), &'static str> {
        let named = Adjustable::named(name.as_bytes()).ok_or("there is no such property")?;
        named?.set(value.as_bytes(), &self.shared)
    }

    /// What streams have done for a bucket and have before them, by the kind of their connections.
    pub fn dcp_of(&self, bucket: &str) -> BTreeMap<String, DcpStatistics> {
        let part = self.shared.buckets.get(bucket);
        part.map_or_else(BTreeMap::new, |part| by_kind(&part.bucket, &part.hub, ":"))
    }

    /// Items of a bucket that other nodes do not have yet, by vBucket: of the copy that is the
    /// furthest behind. vBuckets that no node copies are left out.
    pub fn replication_lag_of(&self, bucket: &str) -> BTreeMap<u16, u64> {
        let part = self.shared.buckets.get(bucket);
        part.map_or_else(BTreeMap::new, |part| replication_lag(&part.bucket, &part.hub, ":"))
    }

    /// Sockets on which clients are waited for.
    pub fn listener_count(&self) -> usize {
        self.shared.listener_count
    }

    /// Connections that there may be at a time.
    pub fn connections_max(&self) -> usize {
        self.shared.options.limits.connections_max
    }

    /// What time it is in its world.
    pub fn wall_time(&self) -> WallTime {
        self.shared.clock.wall_time()
    }

    /// The collections of a bucket, and what the active vBuckets have of each.
    pub fn collections_of(&self, bucket: &str) -> Vec<ListedCollection> {
        let part = self.shared.buckets.get(bucket);
        part.map_or_else(Vec::new, |part| of_collections(&part.bucket))
    }

    /// Whether every worker takes up a message within `patience`: one that hangs does not. Not for
    /// workers, and not in a world without threads.
    pub fn answers_within(&self, patience: Duration) -> bool {
        let (answer, answers) = mpsc::channel();
        let count = self.shared.mailboxes.count();
        for worker in 0..count {
            self.shared.mailboxes.send(worker, Message::Answer(answer.clone()));
        }
        drop(answer);
        let clock = &self.shared.clock;
        let deadline = clock.now().after(patience);
        (0..count).all(|_| answers.recv_timeout(deadline.since(clock.now())).is_ok())
    }

    /// Closes all connections and ends the workers. Requests that were executed are answered.
    pub fn stop(&self) {
        for worker in 0..self.shared.mailboxes.count() {
            self.shared.mailboxes.send(worker, Message::Stop);
        }
        let handles =
            std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in handles {
            if handle.join().is_err() {
                tracing::error!("a front-end worker has panicked");
            }
        }
        // Behind the workers, who have tasks of this owner scheduled until they end.
        self.shared.owner.unregister(Shutdown::Force);
    }
}

/// A listener for [`Doors`] on `address`, with the port that it got.
pub fn open_door(network: &Network, address: SocketAddr) -> io::Result<(Listener, u16)> {
    let listener = network.listen(address)?;
    let port = listener.local_address()?.port();
    Ok((listener, port))
}
