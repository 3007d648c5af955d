//! `settee serve`.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use cluster::host_and_port;
use management::{ManagementServer, Ports, SetUp, TlsPort};
use node::{Node, NodeBucket, VERSION, cannot_listen};
use platform::files::RealFiles;
use platform::process::{Hangup, Termination};
use platform::service_manager::ServiceNews;
use platform::{Clock, Entropy, Files};

use crate::audit;
use crate::configuration_check;
use crate::init_files::{InitFiles, InitTarget};
use crate::log_file::LogFile;
use crate::logging;
use crate::node_view::View;
use crate::ready_file::{self, Ready};
use crate::real_world::real_world;
use crate::reload::{self, Reload};
use crate::service::{self, MoreTime};
use crate::setting_values::SetupMode;
use crate::settings::{ServeConfig, Settings};
use crate::unknown_variables;

/// How often a node that loads looks for a signal.
const STEP: Duration = Duration::from_millis(100);

/// The arguments of `settee serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  settee serve                          data in ./settee-data, ports 11210 and 8091
  settee serve --dev                    try things out; nothing is kept
  settee serve --data-dir /srv/settee --memory-quota 4GiB --password secret
  settee serve --config settee.toml     the same names in a file: data-dir = \"/srv/settee\"
  settee serve --config settee.toml --check

Every flag can be said in the environment, too: SETTEE_DATA_DIR=/srv/settee.")]
pub struct ServeArguments {
    /// A TOML file with any of the settings below, by the same names
    #[arg(long, value_name = "FILE", env = "SETTEE_CONFIG")]
    config: Option<PathBuf>,
    /// Say whether a node could start with these settings and this data directory, and start none
    #[arg(long)]
    check: bool,
    /// Ends in order when the process with this id does, which has started it
    #[arg(long, value_name = "PID", hide = true)]
    end_with_parent: Option<u32>,
    #[command(flatten)]
    settings: Settings,
}

impl ServeArguments {
    /// What is said: flags and environment, and the file behind them.
    pub(crate) fn merged(&self) -> anyhow::Result<Settings> {
        let settings = self.settings.clone();
        match &self.config {
            Some(path) => Ok(settings.or(Settings::from_file(path)?)),
            None => Ok(settings),
        }
    }
}

/// Runs a node until it is told to stop.
pub fn serve(arguments: ServeArguments) -> anyhow::Result<ExitCode> {
    let clock = Clock::real();
    let begun = clock.now();
    let begun_with = arguments.merged()?;
    let config = begun_with.clone().resolve()?;
    logging::start(&config.log_level, config.log_json, open_log_file(&config)?)?;
    warn_of_quota(config.memory_quota.0);
    unknown_variables::warn(&ServeArguments::augment_args(clap::Command::new("serve")));
    if arguments.check {
        let files: Arc<dyn Files> = Arc::new(RealFiles);
        return configuration_check::run(&clock, &files, &Entropy::real(), &config);
    }
    // Before the node starts: a signal that comes meanwhile ends it in order.
    let termination = Termination::watch(Hangup::GoesOn(reload::on_hangup))?;
    let more_time = MoreTime::begin();
    if let Some(parent) = arguments.end_with_parent {
        ensure!(platform::child::end_with_parent(parent)?, "process {parent} has ended");
    }
    if let Some(path) = &config.ready_file {
        ready_file::remove(&RealFiles, path)?;
    }
    let init_files = InitFiles::read(&RealFiles, config.init_dir.as_deref())?;
    let (node, management) = start_with_management(&config)?;
    let ServeArguments { settings: said, config: file, .. } = arguments;
    let certificates = node.certificates().cloned();
    Reload { said, file, begun_with, certificates }.arm();
    greet(&node);
    let progress_interval = Duration::from_millis(config.progress_interval_ms);
    let signal = match load(&node, &termination, progress_interval) {
        Some(signal) => signal,
        None => {
            let waited = || clock.now().since(begun);
            let serves = begin(&node, &init_files, config.ready_file.as_deref(), waited);
            if let Err(error) = serves {
                management.shutdown();
                return Err(ended(node, error));
            }
            drop(more_time);
            service::watch_until_signal(&node, &termination)
        }
    };
    tracing::info!(signal, "stopping: answering, flushing, closing");
    service::report(ServiceNews::Stopping);
    service::report(ServiceNews::Status("stopping: answering, flushing, closing"));
    let more_time = MoreTime::begin();
    // First: what is asked over REST reaches into the node.
    management.shutdown();
    node.stop()?;
    drop(more_time);
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Has a node that has loaded serve, and tells whoever waits for that.
fn begin(
    node: &Node,
    init_files: &InitFiles,
    ready_file: Option<&Path>,
    waited: impl FnOnce() -> Duration,
) -> anyhow::Result<()> {
    initialise(node, init_files)?;
    node.begin_serving();
    announce(node, ready_file, waited())
}

/// Ends a node in order that cannot go on for this reason: it may have taken writes already.
fn ended(node: Node, reason: anyhow::Error) -> anyhow::Error {
    match node.stop() {
        Ok(()) => reason,
        Err(error) => reason.context(format!("{error:#}; it was to stop for another reason")),
    }
}

/// The file that log lines go to, if they go to one.
fn open_log_file(config: &ServeConfig) -> anyhow::Result<Option<LogFile>> {
    let Some(path) = &config.log_file else { return Ok(None) };
    let file = LogFile::open(Arc::new(RealFiles), path, config.log_file_size.0);
    let file = file.with_context(|| format!("--log-file {} cannot be written", path.display()));
    file.map(Some)
}

/// Has the node have what files say that it has from its first start on.
fn initialise(node: &Node, init_files: &InitFiles) -> anyhow::Result<()> {
    let view = View::new(node, None, None);
    let now_seconds = node.clock().wall_time().seconds().into();
    let target = InitTarget { node: &view, users: node.users(), now_seconds };
    init_files.apply(&target, &RealFiles, &node.config().data_dir)
}

/// Starts a node of this process's world, and what administers it. That ends first.
pub(crate) fn start_with_management(
    config: &ServeConfig,
) -> anyhow::Result<(Node, management::Handle)> {
    let (plain, management_port) =
        open_management_door(config, config.management_port, "--management-port")?;
    let tls = config.management_tls_port();
    let tls = tls.map(|port| open_management_door(config, port, "--management-tls-port"));
    let (tls, management_tls_port) = tls.transpose()?.unzip();
    let query_stub = config.query_stub_port;
    let query_stub = query_stub.map(|port| open_management_door(config, port, "--query-stub-port"));
    let query_stub = query_stub.transpose()?.map(|(listener, _)| listener);
    let (has_audit_log, setup) = (config.audit_log, config.setup.0);
    let network_loop = config.network_loop.0;
    let mut config = config.node_config();
    if let (Some(tls), Some(port)) = (&mut config.tls, management_tls_port) {
        tls.management_port = port;
    }
    let world = real_world(config.pool_options(), network_loop)?;
    let node = Node::start(world, config, management_port)?;
    let certificates = node.certificates().cloned();
    let tls = tls.zip(certificates);
    let tls = tls.map(|(listener, certificates)| TlsPort { listener, certificates });
    let ports = Ports { plain, tls, query_stub };
    // The node serves already.
    match start_management(&node, ports, has_audit_log, setup) {
        Ok(management) => Ok((node, management)),
        Err(error) => Err(ended(node, error)),
    }
}

fn start_management(
    node: &Node,
    ports: Ports,
    has_audit_log: bool,
    setup: SetupMode,
) -> anyhow::Result<management::Handle> {
    let users = Arc::clone(node.users());
    let audit_log = has_audit_log.then(|| audit::open(node, Arc::new(RealFiles))).transpose()?;
    // A password that somebody has said, now or before, is asked for.
    let is_open = setup != SetupMode::Off && node.password_is_new();
    let set_up = is_open.then(|| SetUp {
        administrator: node.config().user.clone(),
        from_anywhere: setup == SetupMode::Anywhere,
    });
    let view = Arc::new(View::new(node, audit_log, set_up));
    Ok(ManagementServer::start(ports, view, users)?)
}

fn open_management_door(
    config: &ServeConfig,
    port: u16,
    flag: &str,
) -> anyhow::Result<(TcpListener, u16)> {
    let address = SocketAddr::new(config.host, port);
    let listener = platform::network::listen_standard(address);
    let listener = listener.map_err(|error| cannot_listen(address, flag, error))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

fn warn_of_quota(quota_bytes: u64) {
    let machine_bytes = platform::process::memory_limit_bytes();
    if quota_bytes > machine_bytes {
        tracing::warn!(
            quota_bytes,
            machine_bytes,
            "--memory-quota is more than this process may use: the system will end it before the \
             quota is reached"
        );
    }
}

/// Waits until every vBucket serves and logs in each `interval` how far that has come. Returns the
/// signal that came before.
fn load(node: &Node, termination: &Termination, interval: Duration) -> Option<&'static str> {
    let began = node.clock().now();
    let mut due_at = began.after(interval);
    while !node.wait_until_serving(STEP.min(interval)) {
        if let Some(signal) = termination.has_come() {
            return Some(signal);
        }
        let now = node.clock().now();
        if now >= due_at {
            due_at = now.after(interval);
            log_progress(node, now.since(began));
        }
    }
    None
}

fn log_progress(node: &Node, elapsed: Duration) {
    for bucket in node.buckets().all() {
        let progress = bucket.bucket().warmup_progress();
        let (loaded, total) = (progress.documents_loaded, progress.documents_total);
        let (documents_per_second, seconds_left) = pace(loaded, total, elapsed);
        let vbuckets = format!("{}/{}", progress.vbuckets_loaded, progress.vbuckets_total);
        let documents = format!("{loaded}/{total}");
        let name = bucket.name();
        let status = format!("loading bucket {name}: {documents} documents, {vbuckets} vBuckets");
        service::report(ServiceNews::Status(&status));
        tracing::info!(
            bucket = name,
            vbuckets,
            documents,
            documents_per_second,
            seconds_left,
            "loading documents"
        );
    }
}

/// How much of `total` is done in a second, and in how many seconds the rest will be, once anything
/// is.
fn pace(done: u64, total: u64, elapsed: Duration) -> (u64, Option<u64>) {
    let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let per_second = done.saturating_mul(1000) / milliseconds;
    let left = total.saturating_sub(done).saturating_mul(milliseconds) / 1000;
    (per_second, left.checked_div(done))
}

/// Tells the person who started the node how to reach it. Nobody may be there to read it.
fn greet(node: &Node) {
    drop(io::stdout().write_all(greeting(node).as_bytes()));
}

fn greeting(node: &Node) -> String {
    let config = node.config();
    let at = |port| SocketAddr::new(config.host, port);
    let mut lines = vec![
        format!("settee {VERSION}, pid {}", platform::process::id()),
        format!("  data directory   {}", config.data_dir.display()),
        format!("  data port        {}", at(node.port())),
        format!("  management port  {}", at(node.management_port())),
    ];
    lines.extend(tls_lines(node));
    if let Some(port) = node.memcached_port() {
        lines.push(format!("  memcached port   {} (open to everybody)", at(port)));
    }
    let buckets = node.buckets().all();
    let names: Vec<&str> = buckets.iter().map(NodeBucket::name).collect();
    let what = if names.len() == 1 { "bucket " } else { "buckets" };
    lines.push(format!("  {what}          {}", names.join(", ")));
    lines.push(format!("  user             {}", config.user));
    lines.push(match node.password() {
        Some(password) if node.password_is_new() => {
            format!("  password         {password} (generated; it is not shown again)")
        }
        Some(password) if config.is_temporary => format!("  password         {password}"),
        Some(_) => "  password         as given".to_owned(),
        None => "  password         as before".to_owned(),
    });
    let address = host_and_port(&config.advertised_host(), node.port());
    lines.push(format!("  connect with     couchbase://{address}\n"));
    lines.join("\n")
}

/// How to reach the node by TLS, and how to know that it is this one.
fn tls_lines(node: &Node) -> Vec<String> {
    let (Some(ports), Some(certificates)) = (node.tls_ports(), node.certificates()) else {
        return Vec::new();
    };
    let at = |port| SocketAddr::new(node.config().host, port);
    let fingerprint = certificates.trusted().map(|facts| facts.fingerprint).unwrap_or_default();
    vec![
        format!("  TLS              {}, management {}", at(ports.data), at(ports.management)),
        format!("  clients trust    {}", certificates.trusted_path().display()),
        format!("    of SHA-256     {fingerprint}"),
    ]
}

/// Tells that the node serves, and for how long clients have waited for it: log, and the ready
/// file.
fn announce(node: &Node, ready_file: Option<&Path>, waited: Duration) -> anyhow::Result<()> {
    let config = node.config();
    let documents: u64 = node
        .buckets()
        .all()
        .iter()
        .map(|bucket| bucket.bucket().warmup_progress().documents_loaded)
        .sum();
    let trusted = node.certificates().and_then(|certificates| certificates.trusted());
    tracing::info!(
        version = VERSION,
        data_port = node.port(),
        management_port = node.management_port(),
        memcached_port = node.memcached_port(),
        tls_port = node.tls_ports().map(|ports| ports.data),
        management_tls_port = node.tls_ports().map(|ports| ports.management),
        clients_trust = trusted.map(|facts| facts.fingerprint),
        directory = %config.data_dir.display(),
        quota_bytes = config.buckets_bytes_max,
        documents,
        took_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
        "serving"
    );
    if let Some(path) = ready_file {
        let ready = Ready {
            port: node.port(),
            management_port: node.management_port(),
            memcached_port: node.memcached_port(),
            tls_port: node.tls_ports().map(|ports| ports.data),
            management_tls_port: node.tls_ports().map(|ports| ports.management),
            user: &config.user,
            password: node.password(),
            bucket: config.default_bucket(),
            pid: platform::process::id(),
        };
        ready_file::write(&RealFiles, path, &ready)?;
    }
    let status = format!("serving {documents} documents at {}:{}", config.host, node.port());
    service::report(ServiceNews::Status(&status));
    service::report(ServiceNews::Ready);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_of_loading_tells_how_long_the_rest_takes() {
        for (done, total, seconds, expected) in [
            (0, 100, 2, (0, None)),
            (50, 100, 2, (25, Some(2))),
            (10, 100, 2, (5, Some(18))),
            (100, 100, 4, (25, Some(0))),
            (3, 0, 0, (3000, Some(0))),
        ] {
            assert_eq!(pace(done, total, Duration::from_secs(seconds)), expected);
        }
    }
}
