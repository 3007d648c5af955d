//! What the REST port needs to know of its node.

use std::sync::Arc;
use std::time::Duration;

use auth::{Editor, UsersEdit, UsersEditError};
use cluster::{ClusterMap, ExternalAddress, NodeAddress, StorageFigures, Uuid};

use crate::audit_log::AuditLog;
use crate::bucket_order::{BucketOrder, BucketOrderError};
use crate::bucket_view::BucketView;
use crate::metric::Metric;
use crate::set_up::SetUp;

/// A node, as the REST port sees it. Calls come from several threads, must not wait for disks or
/// locks held long, and must not panic.
pub trait NodeView: Send + Sync {
    /// The cluster and this node's place in it.
    fn cluster_map(&self) -> ClusterMap;

    /// The identity of the node that is reached there, this one or another of the cluster.
    fn node_uuid(&self, address: &NodeAddress) -> Uuid;

    /// What the other nodes of the cluster have together, as they have said last; those that have
    /// said nothing since this one started are not in it.
    fn storage_elsewhere(&self) -> StorageFigures {
        StorageFigures::default()
    }

    /// Asks them for that. Has a thread of its own and may take as long as nodes do not answer.
    fn ask_others(&self) {}

    /// All buckets, in the order of their names.
    fn buckets(&self) -> Vec<Arc<dyn BucketView>>;

    /// The bucket of that name.
    fn bucket(&self, name: &str) -> Option<Arc<dyn BucketView>>;

    /// Makes a bucket, or only says whether it could be. Clients can select it on return. Has a
    /// thread of its own and may take seconds.
    fn create_bucket(
        &self,
        name: &str,
        order: &BucketOrder,
        is_trial: bool,
    ) -> Result<(), BucketOrderError>;

    /// Changes a bucket, or only says whether it could be; which nodes do not know of it yet. Has a
    /// thread of its own.
    fn change_bucket(
        &self,
        name: &str,
        order: &BucketOrder,
        is_trial: bool,
    ) -> Result<Vec<String>, BucketOrderError>;

    /// Deletes a bucket. Clients cannot select it on return; `gone` is called when nothing of it is
    /// left, and dropped if that is for the next start. Returns the names of the nodes that do not
    /// know of it yet. Has a thread of its own and may take seconds, but does not wait for those
    /// who hold the bucket.
    fn delete_bucket(
        &self,
        name: &str,
        gone: Box<dyn FnOnce() + Send>,
    ) -> Result<Vec<String>, BucketOrderError>;

    /// What all nodes of the cluster are to do, as JSON.
    fn cluster_plan(&self) -> String;

    /// Has the node do its part of another plan, and its clients told of it, or only say whether it
    /// could; what is left is pending. Has a thread of its own and may take seconds.
    fn carry_out(&self, plan: &str, is_trial: bool) -> Result<(), CarryOutError>;

    /// Why nobody may rest on the plan that is carried out yet.
    fn unsettled(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether something is left of a bucket that was deleted less than `age` ago.
    fn has_leaving_buckets(&self, age: Duration) -> bool;

    /// Changes what the node says of itself: durable on return, and its clients are told. Has a
    /// thread of its own.
    fn change_setup(&self, change: &SetupChange) -> Result<(), SetupError>;

    /// Who may set the node up, whatever login is said; `None` once the administrator has a
    /// password.
    fn set_up(&self) -> Option<SetUp> {
        None
    }

    /// The administrator has a password: from now on it is asked for.
    fn end_set_up(&self) {}

    /// Changes users on all nodes. Returns the names of those that get the change later. Has a
    /// thread of its own and may take seconds.
    fn edit_users(&self, edit: &UsersEdit, editor: Editor) -> Result<Vec<String>, UsersEditError>;

    /// Where changes are noted, if they are.
    fn audit_log(&self) -> Option<&AuditLog> {
        None
    }

    /// Which lines are logged, in the words of `--log-level`; `None` where none are.
    fn log_filter(&self) -> Option<String> {
        None
    }

    /// Has other lines logged, until the node stops.
    ///
    /// # Errors
    /// Why not, for people.
    fn set_log_filter(&self, _filter: &str) -> Result<(), String> {
        Err("This node does not log".to_owned())
    }

    /// The last lines of the node's log, the oldest first.
    fn log_lines(&self) -> Vec<String>;

    /// Milliseconds from which on commands are slow, by the commands' names.
    fn slow_thresholds(&self) -> Vec<(&'static str, u64)>;

    /// From now on a command, or `all`, is slow from so many milliseconds on.
    ///
    /// # Errors
    /// Why not, for people.
    fn set_slow_threshold(&self, command: &str, milliseconds: &str) -> Result<(), String>;

    /// Has the documents that are asked for most sampled for so many seconds.
    ///
    /// # Errors
    /// Why not, for people.
    fn sample_hot_keys(&self, seconds: &str) -> Result<(), String>;

    /// Has `notify` called whenever the maps have changed. Called once.
    fn watch_maps(&self, notify: Box<dyn Fn() + Send + Sync>);

    /// The node in figures.
    fn node(&self) -> NodeFacts;

    /// Samples for Prometheus, without histograms: what the node remembers. Samples of one family
    /// need not stand together.
    fn figures(&self) -> Vec<Metric>;

    /// The histograms beside them.
    fn histograms(&self) -> Vec<Metric>;

    /// The same of what is told by commands and collections, of which there may be thousands.
    fn metrics_of_high_cardinality(&self) -> Vec<Metric>;
}

impl dyn NodeView {
    /// What `/metrics` tells.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let mut metrics = self.figures();
        metrics.extend(self.histograms());
        metrics
    }
}

/// Why a plan was not carried out. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarryOutError {
    /// It never will be.
    Invalid(String),
    /// It may be later.
    NotNow(String),
    /// The node has a newer one.
    Older(String),
    /// The node is stopping.
    Stopping,
}

/// What a node alone can be told of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupChange {
    /// The host name that clients are told.
    Host(String),
    /// Where it is reached from elsewhere, if it is.
    External(Option<ExternalAddress>),
    /// The cluster's name, for people.
    ClusterName(String),
}

/// Why a node goes on saying of itself what it did. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// It never will say that.
    Invalid(String),
    /// It cannot be kept.
    Failed(String),
}

/// The node in figures.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// The version as clients read it: three numbers, then a build, such as `7.6.0-1-enterprise`.
    pub version: String,
    /// Time since the process started.
    pub uptime: Duration,
    /// CPUs that the process may use.
    pub cpu_count: usize,
    /// Memory that the process may use.
    pub memory_total_bytes: u64,
    /// The part of it that nobody uses.
    pub memory_free_bytes: u64,
    /// Swap space of the machine.
    pub swap_total_bytes: u64,
    /// The part of it in use.
    pub swap_used_bytes: u64,
    /// CPU time of the machine in use, in percent of all.
    pub cpu_busy_percent: f64,
    /// Where it keeps everything.
    pub data_directory: String,
    /// What the file system of that holds in all.
    pub disk_total_bytes: u64,
    /// The part of it that this process may still write.
    pub disk_free_bytes: u64,
    /// Memory for documents of all buckets, at most.
    pub quota_bytes_max: u64,
    /// Buckets that it can have, at most.
    pub bucket_count_max: usize,
    /// Operations in the last second, of all buckets.
    pub operations_per_second: f64,
}
