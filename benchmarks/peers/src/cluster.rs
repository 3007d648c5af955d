//! Nodes that replicate to each other, started by `settee cluster-run`.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::couchbase::{self, Login};
use crate::ended_child::EndedChild;
use crate::servers::settee_binary;

/// From the first data port to the first management port.
const MANAGEMENT_PORT_OFFSET: u16 = 50;
/// Of the user that cluster-run makes.
pub const USER: &str = "Administrator";
/// Its password.
pub const PASSWORD: &str = "password";

/// A running cluster of two nodes with one replica. Dropping it ends it and removes what it wrote.
pub struct Cluster {
    child: EndedChild,
    binary: PathBuf,
    port: u16,
    directory: TempDir,
}

impl Cluster {
    /// Starts two nodes with these further arguments of `settee cluster-run`, the first on `port`;
    /// returns when they serve.
    pub fn start(port: u16, arguments: &[&str]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("cluster-").tempdir()?;
        Self::start_in(directory, port, arguments)
    }

    /// The same, but the first node has all active vBuckets, and the second the replicas.
    pub fn start_one_sided(port: u16, arguments: &[&str]) -> Result<Self> {
        let mut cluster = Self::start(port, arguments)?;
        cluster.order(&["--stop"])?;
        cluster.child.0.wait()?;
        let map = cluster.directory.path().join("cluster/map.json");
        let mut plan: Value = serde_json::from_str(&std::fs::read_to_string(&map)?)?;
        let revision = plan["rev"][1].as_u64().context("a map has a revision")?;
        plan["rev"][1] = (revision + 1).into();
        let chains = plan["vbuckets"].as_array_mut().context("a map has vBuckets")?;
        chains.iter_mut().for_each(|chain| *chain = json!([0, 1]));
        std::fs::write(&map, plan.to_string())?;
        let directory = std::mem::replace(&mut cluster.directory, tempfile::tempdir()?);
        Self::start_in(directory, port, arguments)
    }

    fn start_in(directory: TempDir, port: u16, arguments: &[&str]) -> Result<Self> {
        let binary = settee_binary()?;
        let mut command = Command::new(&binary);
        command.args(["cluster-run", "--nodes", "2", "--replicas", "1", "--password", PASSWORD]);
        // What is measured is replication, not what encrypts it.
        command.args(["--tls-between-nodes", "off"]);
        command.args(["--port-base", &port.to_string()]);
        command.args(["--management-port-base", &(port + MANAGEMENT_PORT_OFFSET).to_string()]);
        command.arg("--dir").arg(directory.path().join("cluster")).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot start the cluster")?;
        let output = child.stdout.take().context("the cluster says nothing")?;
        let child = EndedChild(child);
        let cluster = Self { child, binary, port, directory };
        for line in BufReader::new(output).lines() {
            if line?.starts_with("serving") {
                return Ok(cluster);
            }
        }
        bail!("the cluster ended at once")
    }

    /// A connection to a node, with its bucket selected.
    pub fn connect(&self, node: u16) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port + 2 * node))?;
        stream.set_nodelay(true)?;
        let bucket = "default".to_owned();
        let login = Login { user: USER.to_owned(), password: PASSWORD.to_owned(), bucket };
        couchbase::bootstrap(&mut stream, &login)?;
        Ok(stream)
    }

    /// Gives an order to the running cluster.
    pub fn order(&self, order: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.binary);
        command.arg("cluster-run").arg("--dir").arg(self.directory.path().join("cluster"));
        command.args(order).stdout(Stdio::null());
        ensure!(command.status()?.success(), "the cluster did not carry out {order:?}");
        Ok(())
    }

    /// Stops both nodes where they are, so that nothing they do in the background is measured with
    /// something else.
    pub fn pause(&self) -> Result<()> {
        self.order(&["--pause", "0"])?;
        self.order(&["--pause", "1"])
    }

    /// Lets both nodes go on.
    pub fn resume(&self) -> Result<()> {
        self.order(&["--resume", "0"])?;
        self.order(&["--resume", "1"])
    }

    /// Where a node keeps its data.
    pub fn data_directory(&self, node: u16) -> PathBuf {
        self.directory.path().join(format!("cluster/n_{node}"))
    }

    /// Puts the cluster under a load, and gives the summary of its last phase.
    pub fn load(&self, arguments: &[&str]) -> Result<Value> {
        let summary = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(&self.binary);
        let port = self.port.to_string();
        command.args(["load", "--host", "127.0.0.1", "--port", &port, "-u", USER, "-P", PASSWORD]);
        command.args(arguments).arg("--json-output").arg(summary.path());
        command.stdout(Stdio::null());
        let status = command.status()?;
        let text = std::fs::read_to_string(summary.path())?;
        let json: Value = serde_json::from_str(&text)
            .with_context(|| format!("the load ended with {status} and no summary"))?;
        let phases = json["phases"].as_array().context("a summary has phases")?;
        let last = phases.last().context("a load has a phase")?.clone();
        ensure!(status.success(), "the load failed: {last}");
        Ok(last)
    }

    /// What the active nodes measured of durable writes since they started: a drawing a node.
    pub fn timings(&self, histogram: &str, nodes: u16) -> Result<String> {
        let mut drawings = String::new();
        for node in 0..nodes {
            let port = (self.port + 2 * node).to_string();
            let mut command = Command::new(&self.binary);
            command.args(["timings", "--host", "127.0.0.1", "--port", &port]);
            command.args(["-u", USER, "-P", PASSWORD, histogram]);
            let output = command.output()?;
            drawings.push_str(&String::from_utf8_lossy(&output.stdout));
        }
        Ok(drawings)
    }
}
