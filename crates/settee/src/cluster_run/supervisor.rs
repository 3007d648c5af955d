//! The process that starts the nodes, watches them, and does to them what it is told.

mod promotion;
mod recovery;

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cluster::{ClusterPlan, Revision};
use platform::Clock;
use platform::process::{FileLock, Hangup, Termination};

use super::arguments::ClusterRunArguments;
use super::control::{self, Answer, Command, Ordered};
use super::directory::{Description, Directory};
use super::member_port;
use super::process::{Doing, NodeProcess, Stopped};
use super::say;

/// How often nodes and signals are looked at.
const STEP: Duration = Duration::from_millis(50);
/// How long a node may take to carry out a map.
const CARRY_OUT_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a node that is given up may take: it need not be able to answer at all.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a node may take to say what is left of its map.
const STATUS_TIME_MAX: Duration = Duration::from_secs(1);
/// How long nodes that have just started may take until all vBuckets are what the map says.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a replica may take to say how far it is.
const STATISTICS_TIME_MAX: Duration = Duration::from_secs(5);

/// A running cluster.
pub(super) struct Supervisor {
    clock: Clock,
    directory: Directory,
    cluster: Description,
    plan: ClusterPlan,
    processes: Vec<NodeProcess>,
    orders: mpsc::Receiver<Ordered>,
    termination: Termination,
    _lock: FileLock,
}

impl Supervisor {
    /// Starts all nodes of the map and waits until they serve.
    pub(super) fn start(
        directory: Directory,
        arguments: &ClusterRunArguments,
    ) -> anyhow::Result<Self> {
        let lock = directory.lock()?;
        let termination = Termination::watch(Hangup::Ends)?;
        let (mut cluster, plan) = directory.open_or_create(arguments)?;
        let (sender, orders) = mpsc::channel();
        cluster.control = Some(control::listen(cluster.secret.clone(), sender)?);
        let process = |index| NodeProcess::new(index, &directory, &cluster, &plan, arguments);
        let processes = (0..cluster.nodes.len()).map(process).collect::<Result<_, _>>()?;
        let clock = Clock::real();
        let mut supervisor =
            Self { clock, directory, cluster, plan, processes, orders, termination, _lock: lock };
        if let Err(error) = supervisor.start_nodes() {
            supervisor.stop_nodes().iter().for_each(|problem| say(problem));
            return Err(error);
        }
        // Only now can others tell the cluster what to do: orders are carried out from `run` on.
        supervisor.directory.write_description(&supervisor.cluster)?;
        supervisor.greet();
        Ok(supervisor)
    }

    fn start_nodes(&mut self) -> anyhow::Result<()> {
        let members: Vec<usize> =
            (0..self.processes.len()).filter(|&index| self.is_member(index)).collect();
        for &index in &members {
            say(&format!("starting n_{index}"));
            self.processes[index].spawn()?;
        }
        for &index in &members {
            let port = self.cluster.nodes[index].kv;
            let ready = self.processes[index].wait_until_ready(&self.clock);
            ready.with_context(|| {
                format!("n_{index} did not start; is port {port} taken? --port-base says another")
            })?;
        }
        self.wait_until_settled(&members);
        Ok(())
    }

    /// Nodes whose documents are in memory alone wait for each other before they serve.
    fn wait_until_settled(&self, members: &[usize]) {
        let deadline = self.clock.now().after(SETTLE_TIME_MAX);
        let is_settled = |&index: &usize| {
            let member = &self.cluster.nodes[index];
            let pending = member_port::pending(member, &self.cluster, &[], STATUS_TIME_MAX);
            pending.is_ok_and(|pending| pending.is_empty())
        };
        while !members.iter().all(is_settled) && self.clock.now() < deadline {
            platform::threads::pause(STEP);
        }
    }

    fn greet(&self) {
        for line in self.status(&[]) {
            say(&line);
        }
        let nodes = self.cluster.nodes.iter().enumerate();
        let seeds: Vec<String> = nodes
            .filter(|(index, _)| self.is_member(*index))
            .map(|(_, node)| format!("{}:{}", node.host, node.kv))
            .collect();
        say(&format!("  user             {}", self.cluster.user));
        say(&format!("  connect with     couchbase://{}", seeds.join(",")));
        if self.cluster.tls_between_nodes {
            let authority = self.directory.authority();
            say(&format!("  clients trust    {} (couchbases://)", authority.display()));
        }
        say("serving; Ctrl-C stops all nodes, settee cluster-run --help says what else there is");
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// A node did not stop as it should.
    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let end = loop {
            if let Some(signal) = self.termination.has_come() {
                say(&format!("{signal}: stopping"));
                break self.carry_out(Command::Stop);
            }
            self.say_ends();
            let Ok(ordered) = self.orders.recv_timeout(STEP) else { continue };
            // A node that has ended before it was told to stop did so by itself.
            self.say_ends();
            let is_end = ordered.command == Command::Stop;
            let answer = self.carry_out(ordered.command);
            // Whoever does not wait for the answer has it in the terminal of the cluster.
            match &answer {
                Ok(text) | Err(text) => say(text),
            }
            drop(ordered.answer.send(answer.clone()));
            if is_end {
                // The process ends now, and with it the thread that passes the answer on.
                let _passed_on = ordered.passed_on.recv_timeout(control::LINE_TIME_MAX);
                break answer;
            }
        };
        // Whoever reads the description from here on finds that no cluster runs.
        self.cluster.control = None;
        let written = self.directory.write_description(&self.cluster);
        end.map(drop).map_err(anyhow::Error::msg)?;
        written
    }

    fn say_ends(&mut self) {
        for (index, process) in self.processes.iter_mut().enumerate() {
            if let Some(end) = process.take_end() {
                say(&format!("n_{index} has ended by itself: {end}"));
            }
        }
    }

    /// Stops all nodes; returned is which did not as they should, and why.
    fn stop_nodes(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        for (index, process) in self.processes.iter_mut().enumerate() {
            // All are asked before one is waited for: their stops take as long as the slowest of
            // them.
            if let Err(error) = process.begin_to_stop() {
                problems.push(format!("n_{index} cannot be stopped: {error:#}"));
            }
        }
        for (index, process) in self.processes.iter_mut().enumerate() {
            match process.wait_until_stopped(&self.clock) {
                Ok(stopped) => problems.extend(stop_problem(index, &stopped)),
                Err(error) => problems.push(format!("n_{index} cannot be waited for: {error:#}")),
            }
        }
        problems
    }

    fn carry_out(&mut self, command: Command) -> Answer {
        // A disk that is full keeps nobody from stopping: what has changed of the buckets is taken
        // in with the next order or start.
        if !command.needs_no_map() {
            self.take_in_bucket_changes().map_err(|error| format!("{error:#}"))?;
        }
        let done = match command {
            Command::Kill(node) => self.kill(node),
            Command::Restart { node, is_forced } => self.restart(node, is_forced),
            Command::Failover { node, is_forced } => self.failover(node, is_forced),
            Command::Recover { node, is_forced } => self.recover(node, is_forced),
            Command::Pause(node) => self.pause(node),
            Command::Resume(node) => self.resume(node),
            Command::Status { buckets } => self.status_of(&buckets),
            Command::Stop => self.stop(),
        };
        done.map_err(|error| format!("{error:#}"))
    }

    /// What clients have changed of the buckets is in the map from now on.
    fn take_in_bucket_changes(&mut self) -> anyhow::Result<()> {
        match self.directory.with_bucket_changes(&self.plan, &self.cluster) {
            Some(plan) => self.adopt(plan),
            None => Ok(()),
        }
    }

    fn stop(&mut self) -> anyhow::Result<String> {
        let problems = self.stop_nodes();
        ensure!(problems.is_empty(), "{}", problems.join("; "));
        Ok("stopped".to_owned())
    }

    fn kill(&mut self, node: u16) -> anyhow::Result<String> {
        self.process(node)?.kill().with_context(|| format!("n_{node}"))?;
        Ok(format!("n_{node} was killed"))
    }

    fn restart(&mut self, node: u16, is_forced: bool) -> anyhow::Result<String> {
        self.process(node)?;
        let was_active = self.hand_over_roles(node, is_forced)?;
        let clock = self.clock.clone();
        let process = self.process(node)?;
        process.begin_to_stop()?;
        let stopped = process.wait_until_stopped(&clock)?;
        let index = usize::from(node);
        let problem = stop_problem(index, &stopped);
        process.spawn()?;
        let ready = process.wait_until_ready(&clock);
        ready.with_context(|| match &problem {
            Some(problem) => format!("{problem}; then n_{node}"),
            None => format!("n_{node}"),
        })?;
        let aside = match (self.is_member(index), was_active) {
            (false, _) => "; the map is without it",
            (true, true) => "; its vBuckets are active on others, and it receives them",
            (true, false) => "",
        };
        if let Some(problem) = problem {
            bail!("{problem}; n_{node} serves again{aside}");
        }
        Ok(format!("n_{node} serves{aside}"))
    }

    fn pause(&mut self, node: u16) -> anyhow::Result<String> {
        self.process(node)?.set_paused(true).with_context(|| format!("n_{node}"))?;
        Ok(format!("n_{node} hangs"))
    }

    fn resume(&mut self, node: u16) -> anyhow::Result<String> {
        self.process(node)?.set_paused(false).with_context(|| format!("n_{node}"))?;
        // What it has missed.
        let member = &self.cluster.nodes[usize::from(node)];
        member_port::hand_over(&self.plan, member, &self.cluster, CARRY_OUT_TIME_MAX)?;
        Ok(format!("n_{node} goes on"))
    }

    /// Hands the map to all members that run. Returned is what of it is left, in words.
    fn hand_over_to_members(&self) -> anyhow::Result<String> {
        let mut problems = Vec::new();
        let mut left = String::new();
        for (index, member) in self.cluster.nodes.iter().enumerate() {
            if !self.is_member(index) || self.processes[index].doing() != Doing::Runs {
                continue;
            }
            let done =
                member_port::hand_over(&self.plan, member, &self.cluster, CARRY_OUT_TIME_MAX);
            match done {
                Ok(pending) => left.extend(pending.iter().map(|one| format!("; n_{index}: {one}"))),
                Err(error) => problems.push(format!("{error:#}")),
            }
        }
        ensure!(
            problems.is_empty(),
            "{}; the map is in {}: the same order again hands it over again, and --restart has a \
             node read it",
            problems.join("; "),
            self.directory.plan_path().display()
        );
        Ok(left)
    }

    /// The status as far as it is about buckets that somebody names.
    fn status_of(&self, buckets: &[String]) -> anyhow::Result<String> {
        let unknown = buckets.iter().find(|&name| !self.plan.buckets.contains_key(name));
        if let Some(name) = unknown {
            let names = self.cluster.bucket_names(&self.plan).join("`, `");
            bail!("there is no bucket `{name}`; the cluster has `{names}`");
        }
        Ok(self.status(buckets).join("\n"))
    }

    /// What runs, and what is left of the map: of these buckets, or of all where none is said.
    fn status(&self, buckets: &[String]) -> Vec<String> {
        let Revision { epoch, revision } = self.plan.revision;
        let mut lines = vec![format!("map [{epoch}, {revision}]: {} nodes", self.plan.nodes.len())];
        for name in self.cluster.bucket_names(&self.plan) {
            if buckets.is_empty() || buckets.contains(&name) {
                let bucket = &self.plan.buckets[&name];
                let (replicas, vbuckets) = (bucket.replica_count, bucket.chains.len());
                lines.push(format!("  bucket {name}  {replicas} replicas, {vbuckets} vBuckets"));
            }
        }
        for (index, node) in self.cluster.nodes.iter().enumerate() {
            let process = &self.processes[index];
            let doing = match (process.doing(), process.id()) {
                (Doing::Runs, Some(id)) => format!("runs, pid {id}"),
                (Doing::Hangs, Some(id)) => format!("hangs, pid {id}"),
                _ => "does not run".to_owned(),
            };
            let membership = if self.is_member(index) { "" } else { ", given up" };
            lines.push(format!(
                "  n_{index}  data port {}:{}  management port {}  {doing}{membership}",
                node.host, node.kv, node.mgmt
            ));
            if process.doing() == Doing::Runs {
                match member_port::pending(node, &self.cluster, buckets, STATUS_TIME_MAX) {
                    Ok(pending) => lines.extend(pending.iter().map(|one| format!("       {one}"))),
                    Err(error) => lines.push(format!("       {error:#}")),
                }
            }
        }
        lines
    }

    fn is_member(&self, index: usize) -> bool {
        let member = self.cluster.nodes.get(index);
        member.is_some_and(|member| self.plan.index_of(&member.name).is_some())
    }

    fn process(&mut self, node: u16) -> anyhow::Result<&mut NodeProcess> {
        let count = self.processes.len();
        match self.processes.get_mut(usize::from(node)) {
            Some(process) => Ok(process),
            None => bail!("there is no n_{node}; the cluster has n_0 to n_{}", count - 1),
        }
    }
}

/// What is to be said of a node that has stopped; nothing when it did as it should.
fn stop_problem(index: usize, stopped: &Stopped) -> Option<String> {
    match stopped {
        Stopped::Cleanly => None,
        Stopped::WithError(reason) => Some(format!("n_{index} stopped with an error: {reason}")),
        Stopped::Overdue => Some(format!("n_{index} did not stop in time and was ended")),
    }
}
