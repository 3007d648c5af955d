//! The command line of `settee cluster-run`.

use std::path::PathBuf;

use clap::Args;
use platform::redaction::Secret;

use crate::setting_values::{BucketNames, Choice, MemorySize, Switch};
use bucket::PersistenceMode;

/// Run a cluster of several nodes on this machine, to try things out
#[derive(Args, Debug)]
#[command(after_help = "\
The nodes are called n_0, n_1, ... and listen on the loopback interface, their data ports on 12000,
12002, ... Each keeps its data in <DIRECTORY>/n_<i> and its log in <DIRECTORY>/n_<i>.log. The
cluster goes on where it was when it is run again in the same directory. Ctrl-C stops all nodes.

Examples:
  settee cluster-run --nodes 2 --replicas 1
  settee cluster-run --nodes 3 --replicas 2 --port-base 13000 --dir /tmp/three
  settee cluster-run --bucket orders,travel --dir /tmp/two-buckets

While it runs, from another terminal:
  settee cluster-run --kill 0        end node 0 at once, as a crash does (SIGKILL)
  settee cluster-run --failover 0    promote the replicas of node 0 and go on without it
  settee cluster-run --recover 0     start it if need be, and let it hold what copies are missing
  settee cluster-run --restart 1     stop node 1 in order if it runs, and start it; if documents
                                     are in memory alone, others become active before
  settee cluster-run --pause 1       node 1 hangs ...
  settee cluster-run --resume 1      ... and goes on
  settee cluster-run --status        what runs, which map counts, and what is left of it
  settee cluster-run --stop          stop all nodes and end")]
pub struct ClusterRunArguments {
    /// Where data, logs, the map (map.json) and the way to the running cluster (cluster.json) are
    #[arg(long, value_name = "DIRECTORY", default_value = "settee-cluster")]
    pub(super) dir: PathBuf,
    /// Nodes of a new cluster [default: 2]
    #[arg(long, value_name = "COUNT")]
    pub(super) nodes: Option<u16>,
    /// Copies beside the active one in a new cluster, 0 to 3 [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub(super) replicas: Option<usize>,
    /// Data port of the first node of a new cluster; each other one's is 2 higher [default: 12000]
    #[arg(long, value_name = "PORT")]
    pub(super) port_base: Option<u16>,
    /// Management port of the first node of a new cluster; each other one's is 1 higher
    /// [default: 9000]
    #[arg(long, value_name = "PORT")]
    pub(super) management_port_base: Option<u16>,
    /// vBuckets of a new cluster: a power of two [default: 1024]
    #[arg(long, value_name = "COUNT")]
    pub(super) vbuckets: Option<u16>,
    /// The bucket of a new cluster, or several with commas between them [default: default]; with
    /// --status, those that it is to tell of
    #[arg(long, value_name = "NAMES")]
    pub(super) bucket: Option<BucketNames>,
    /// Whether the nodes of a new cluster speak TLS with each other: `on`, with certificates of an
    /// authority that the cluster has of its own, or `off` [default: on]
    #[arg(long, value_name = "MODE")]
    pub(super) tls_between_nodes: Option<Choice<Switch>>,
    /// Who may log in, to clients and between nodes
    #[arg(long, default_value = "Administrator", env = "SETTEE_USER")]
    pub(super) user: String,
    /// The password
    #[arg(long, default_value = "password", env = "SETTEE_PASSWORD", hide_env_values = true)]
    pub(super) password: Secret,
    /// `journal` or `files`, as of settee serve
    #[arg(long, value_name = "MODE")]
    pub(super) persistence: Option<Choice<PersistenceMode>>,
    /// Memory for documents of each node, as 1GiB [default: the machine's share]
    #[arg(long, value_name = "SIZE")]
    pub(super) memory_quota: Option<MemorySize>,
    /// A further argument of settee serve for every node, such as --node-argument=--threads=2
    #[arg(long = "node-argument", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(super) node_arguments: Vec<String>,
    #[command(flatten)]
    pub(super) order: Order,
    /// With --failover, --restart and --recover: go past nodes that do not say what they hold, and
    /// lose what no other node has received
    #[arg(long, requires = "Order", help_heading = "To a running cluster")]
    pub(super) force: bool,
}

/// What is to happen to the running cluster, if it is not to be started.
#[derive(Args, Debug)]
#[group(multiple = false)]
pub(super) struct Order {
    /// End a node at once
    #[arg(long, value_name = "NODE", help_heading = "To a running cluster")]
    pub(super) kill: Option<u16>,
    /// Stop a node in order if it runs, and start it
    #[arg(long, value_name = "NODE", help_heading = "To a running cluster")]
    pub(super) restart: Option<u16>,
    /// Promote the replicas of a node, and go on without it
    #[arg(long, value_name = "NODE", help_heading = "To a running cluster")]
    pub(super) failover: Option<u16>,
    /// Take a node that was given up in again: it holds the copies that are missing, and serves
    /// what no node has active any more
    #[arg(long, value_name = "NODE", help_heading = "To a running cluster")]
    pub(super) recover: Option<u16>,
    /// Let a node hang
    #[arg(long, value_name = "NODE", help_heading = "To a running cluster")]
    pub(super) pause: Option<u16>,
    /// Let a node that hangs go on
    #[arg(long, value_name = "NODE", help_heading = "To a running cluster")]
    pub(super) resume: Option<u16>,
    /// Show what runs
    #[arg(long, help_heading = "To a running cluster")]
    pub(super) status: bool,
    /// Stop all nodes
    #[arg(long, help_heading = "To a running cluster")]
    pub(super) stop: bool,
}

impl Order {
    /// The order, if there is one.
    pub(super) fn command(
        &self,
        is_forced: bool,
        buckets: Option<&BucketNames>,
    ) -> Option<super::control::Command> {
        use super::control::Command;
        let nodes = [
            self.kill.map(Command::Kill),
            self.restart.map(|node| Command::Restart { node, is_forced }),
            self.failover.map(|node| Command::Failover { node, is_forced }),
            self.recover.map(|node| Command::Recover { node, is_forced }),
            self.pause.map(Command::Pause),
            self.resume.map(Command::Resume),
            self.status.then(|| Command::Status {
                buckets: buckets.map_or_else(Vec::new, |buckets| buckets.names().to_vec()),
            }),
            self.stop.then_some(Command::Stop),
        ];
        nodes.into_iter().flatten().next()
    }
}
