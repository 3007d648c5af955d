//! The process of one node.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use bucket::Named;
use cluster::ClusterPlan;
use platform::child::{self, Child, ChildCommand, ChildSignal};
use platform::files::RealFiles;
use platform::{Clock, Files};
use serde::Deserialize;

use super::arguments::ClusterRunArguments;
use super::directory::{Description, Directory, MemberTls};

/// How long a node may take to read its documents back.
const START_TIME_MAX: Duration = Duration::from_secs(100);
/// How long a node may take to stop before it is ended.
const STOP_TIME_MAX: Duration = Duration::from_secs(30);
/// How often it is looked at meanwhile.
const STEP: Duration = Duration::from_millis(5);
/// Bytes of the end of a log that a person is shown.
const LOG_END_BYTES: usize = 600;
/// Bytes of the end of a log in which the last error is looked for.
const ERROR_SEARCH_BYTES: usize = 1 << 16;
/// How a command that failed begins its last line.
const LAST_WORD: &str = "settee: ";

/// What a node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Runs,
    Hangs,
    Nothing,
}

/// How a node that was asked to stop has done it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// What it has is on disk, or it did not run.
    Cleanly,
    /// It could not do all that stopping is: how it ended, and the last error that it told.
    WithError(String),
    /// It had to be ended.
    Overdue,
}

/// A node's process, whether or not it runs.
pub(super) struct NodeProcess {
    command: ChildCommand,
    ready: PathBuf,
    child: Option<Child>,
    is_paused: bool,
}

#[derive(Deserialize)]
struct Ready {
    pid: u32,
}

impl NodeProcess {
    /// The process of the node with this index, not started yet.
    pub(super) fn new(
        index: usize,
        directory: &Directory,
        cluster: &Description,
        plan: &ClusterPlan,
        arguments: &ClusterRunArguments,
    ) -> anyhow::Result<Self> {
        let member = cluster.nodes.get(index).context("the node is one of the cluster's")?;
        let ready = directory.of_node(index, ".ready");
        let mut line: Vec<OsString> = vec!["serve".into()];
        let mut flag = |name: &str, value: OsString| line.extend([name.into(), value]);
        flag("--end-with-parent", platform::process::id().to_string().into());
        flag("--data-dir", directory.of_node(index, "").into());
        flag("--host", member.host.clone().into());
        flag("--port", member.kv.to_string().into());
        flag("--management-port", member.mgmt.to_string().into());
        match member.tls {
            Some(MemberTls { kv, mgmt }) => {
                flag("--tls-port", kv.to_string().into());
                flag("--management-tls-port", mgmt.to_string().into());
            }
            None => flag("--tls", "off".into()),
        }
        flag("--node-name", member.name.clone().into());
        flag("--cluster-map", directory.plan_path().into());
        flag("--ready-file", ready.clone().into());
        // Nodes make those that came while they ran from the map, and none that was deleted. The
        // first name is that of clients that select none.
        let is_named = |name: &&String| {
            let bucket = plan.buckets.get(*name);
            **name != cluster.bucket && bucket.is_some_and(|bucket| bucket.settings.is_none())
        };
        let others = plan.buckets.keys().filter(is_named).cloned();
        let names: Vec<String> = std::iter::once(cluster.bucket.clone()).chain(others).collect();
        flag("--bucket", names.join(",").into());
        if let Some(bucket) = plan.buckets.get(&cluster.bucket).or(plan.buckets.values().next()) {
            flag("--vbuckets", bucket.chains.len().to_string().into());
        }
        if let Some(mode) = &arguments.persistence {
            flag("--persistence", mode.0.name().into());
        }
        if let Some(quota) = arguments.memory_quota {
            flag("--memory-quota", quota.0.to_string().into());
        }
        line.extend(arguments.node_arguments.iter().map(OsString::from));
        let login = [("SETTEE_USER", &cluster.user), ("SETTEE_PASSWORD", &cluster.password)];
        let login = login.map(|(name, value)| (name.into(), value.into()));
        let mut environment: Vec<(OsString, OsString)> = login.to_vec();
        if cluster.tls_between_nodes {
            // As variables: whoever has certificates of their own says so by --node-argument.
            let (authority, certificate) = (directory.authority(), directory.certificate_of(index));
            for (name, path) in [
                ("SETTEE_TLS_CERTIFICATE", &certificate),
                ("SETTEE_TLS_KEY", &certificate),
                ("SETTEE_TLS_CLIENT_CA", &authority),
                ("SETTEE_TLS_NODE_CA", &authority),
            ] {
                environment.push((name.into(), path.into()));
            }
        }
        let command = ChildCommand {
            program: child::own_program()?,
            arguments: line,
            environment,
            log: directory.of_node(index, ".log"),
        };
        Ok(Self { command, ready, child: None, is_paused: false })
    }

    /// Starts the process without waiting for it to serve. It must not run.
    pub(super) fn spawn(&mut self) -> anyhow::Result<()> {
        assert!(self.child.is_none(), "a node has one process");
        // The file of an earlier process would say that this one serves.
        drop(RealFiles.remove(&self.ready));
        self.child = Some(Child::spawn(&self.command).context("the node cannot be started")?);
        self.is_paused = false;
        Ok(())
    }

    /// Waits until it serves.
    pub(super) fn wait_until_ready(&mut self, clock: &Clock) -> anyhow::Result<()> {
        let deadline = clock.now().after(START_TIME_MAX);
        loop {
            let Some(child) = &mut self.child else { bail!("the node does not run") };
            let id = child.id();
            if let Some(status) = child.has_ended()? {
                self.child = None;
                bail!("it has ended ({status}): {}", self.log_end());
            }
            let ready = RealFiles.read_all(&self.ready).ok();
            let ready = ready.and_then(|text| serde_json::from_slice::<Ready>(&text).ok());
            // The file of an earlier process may not have been removed.
            if ready.is_some_and(|ready| ready.pid == id) {
                return Ok(());
            }
            if clock.now() > deadline {
                bail!("it does not serve yet: {}", self.log_end());
            }
            platform::threads::pause(STEP);
        }
    }

    /// How the process ended by itself, said once.
    pub(super) fn take_end(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.has_ended().ok()??;
        self.child = None;
        Some(format!("{status}: {}", self.log_end()))
    }

    /// Its id, if it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub(super) fn doing(&self) -> Doing {
        match (&self.child, self.is_paused) {
            (None, _) => Doing::Nothing,
            (Some(_), true) => Doing::Hangs,
            (Some(_), false) => Doing::Runs,
        }
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        let Some(mut child) = self.child.take() else { bail!("it does not run") };
        child.signal(ChildSignal::Kill)?;
        Ok(child.wait()?)
    }

    /// Lets it hang, or go on.
    pub(super) fn set_paused(&mut self, is_paused: bool) -> anyhow::Result<()> {
        let Some(child) = &mut self.child else { bail!("it does not run") };
        child.signal(if is_paused { ChildSignal::Pause } else { ChildSignal::Resume })?;
        self.is_paused = is_paused;
        Ok(())
    }

    /// Asks it to stop, if it runs.
    pub(super) fn begin_to_stop(&mut self) -> anyhow::Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        // One that is paused could not hear that it is to end.
        child.signal(ChildSignal::Resume)?;
        Ok(child.signal(ChildSignal::Terminate)?)
    }

    /// Waits until it has stopped.
    pub(super) fn wait_until_stopped(&mut self, clock: &Clock) -> anyhow::Result<Stopped> {
        let deadline = clock.now().after(STOP_TIME_MAX);
        while let Some(child) = &mut self.child {
            if let Some(end) = child.has_ended()? {
                self.child = None;
                if !end.is_success() {
                    return Ok(Stopped::WithError(format!("{end}: {}", self.last_error())));
                }
            } else if clock.now() > deadline {
                self.kill()?;
                return Ok(Stopped::Overdue);
            } else {
                platform::threads::pause(STEP);
            }
        }
        Ok(Stopped::Cleanly)
    }

    /// The last line of the log that is an error; the last one at all if there is none near its
    /// end.
    fn last_error(&self) -> String {
        let log = self.log_tail(ERROR_SEARCH_BYTES);
        let is_error = |line: &&str| line.starts_with(LAST_WORD) || line.contains("ERROR");
        let line = log.lines().rev().find(is_error).or_else(|| log.lines().next_back());
        line.unwrap_or("its log is empty").to_owned()
    }

    fn log_end(&self) -> String {
        let shown = self.command.log.display();
        format!("the end of {shown} is\n{}", self.log_tail(LOG_END_BYTES).trim_end())
    }

    /// Of the log, so many bytes at its end at most.
    fn log_tail(&self, bytes_max: usize) -> String {
        let log = RealFiles.read_all(&self.command.log).unwrap_or_default();
        let end = log.get(log.len().saturating_sub(bytes_max)..).unwrap_or_default();
        String::from_utf8_lossy(end).into_owned()
    }
}
