//! What all workers share.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use auth::{PasswordChecker, Users};
use executor::{ExecutorPool, Owner};
use platform::{Clock, Seldom};
use tls::Acceptor;

use crate::bucket_administrator::BucketAdministrator;
use crate::buckets::{BucketPart, BucketRegistry};
use crate::client_memory::ClientMemory;
use crate::cluster_view::SharedMap;
use crate::command_statistics::{BucketCounters, CommandStatistics, CountersByBucket};
use crate::hot_keys::HotKeys;
use crate::limits::ServerLimits;
use crate::recache_marks::RecacheMarks;
use crate::slow_operations::SlowOperations;
use crate::statistics::{ServerStatistics, WorkerCounters};
use crate::strangers::Strangers;
use crate::user_meters::UserMeters;
use crate::worker::Mailboxes;

/// What the node decides about its data port.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// What connections may take.
    pub limits: ServerLimits,
    /// The version that clients are told.
    pub version: String,
}

/// Log lines about what strangers do come at most as often.
pub(crate) const STRANGERS_LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Orders of those whom nobody asks for a name are noted in the audit log at most as often.
pub(crate) const GUEST_ORDERS_NOTE_INTERVAL: Duration = Duration::from_secs(2);

/// Shared by all workers, immutable but for counters, the buckets and the view of the cluster.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) options: ServerOptions,
    pub(crate) users: Arc<Users>,
    /// What makes sessions, if a door wants TLS.
    pub(crate) tls: Option<Arc<Acceptor>>,
    /// Where passwords are checked.
    pub(crate) passwords: PasswordChecker,
    /// What connections can select.
    pub(crate) buckets: BucketRegistry,
    /// Who changes which buckets there are, once somebody does. It has the data port, too.
    pub(crate) administrator: OnceLock<Weak<dyn BucketAdministrator>>,
    /// What clients are told that have selected no bucket.
    pub(crate) global_map: SharedMap,
    pub(crate) pool: ExecutorPool,
    pub(crate) owner: Owner,
    pub(crate) mailboxes: Mailboxes,
    /// What connections hold.
    pub(crate) client_memory: ClientMemory,
    /// What users with limits have taken.
    pub(crate) user_meters: UserMeters,
    /// Connections without a login, of all workers.
    pub(crate) strangers: Strangers,
    /// Connections that were accepted and are not closed yet, those on their way to their worker
    /// included.
    pub(crate) connection_count: AtomicUsize,
    /// One for each worker.
    pub(crate) counters: Vec<Arc<WorkerCounters>>,
    /// One for each worker.
    pub(crate) by_bucket: Vec<CountersByBucket>,
    /// Sockets on which clients are waited for.
    pub(crate) listener_count: usize,
    /// What took long.
    pub(crate) slow_operations: SlowOperations,
    /// What is asked for most, while somebody wants to know.
    pub(crate) hot_keys: HotKeys,
    /// What clients of the text protocol have to make anew.
    pub(crate) recache_marks: RecacheMarks,
    /// Bounds the log lines about logins that fail.
    pub(crate) failed_logins: Seldom,
    /// Orders of those whom nobody asks for a name, for the audit log.
    pub(crate) guest_orders: Seldom,
    /// Bounds the log lines about TLS sessions that do not begin.
    pub(crate) failed_handshakes: Seldom,
    /// Bounds the log lines about connections that are not let in.
    pub(crate) rejected_connections: Seldom,
    /// Bounds the log lines about clients of other protocols.
    pub(crate) foreign_clients: Seldom,
    /// When the data port opened.
    pub(crate) started: platform::Instant,
}

impl Shared {
    /// Who changes which buckets there are, if somebody does.
    pub(crate) fn administrator(&self) -> Option<Arc<dyn BucketAdministrator>> {
        self.administrator.get()?.upgrade()
    }

    /// The counters of all workers.
    pub(crate) fn statistics(&self) -> ServerStatistics {
        let mut sum = ServerStatistics::default();
        self.counters.iter().for_each(|worker| sum.add(worker));
        sum
    }

    /// What all workers have counted of a bucket.
    pub(crate) fn counters_of(
        &self,
        bucket: &BucketPart,
    ) -> impl Iterator<Item = &BucketCounters> + use<'_> {
        let place = bucket.place;
        self.by_bucket.iter().map(move |worker| worker.at(place))
    }

    /// What each worker counts of each bucket, and of connections that have selected none.
    pub(crate) fn all_counters(&self) -> impl Iterator<Item = &BucketCounters> {
        self.by_bucket.iter().flat_map(CountersByBucket::all)
    }

    /// What connections have asked for, whatever bucket they have selected, or none.
    pub(crate) fn all_commands(&self) -> CommandStatistics {
        CommandStatistics::of(self.all_counters())
    }
}
