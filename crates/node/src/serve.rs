//! `settee serve`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use platform::Clock;
use platform::files::RealFiles;
use platform::process::{Hangup, Termination};

use crate::logging;
use crate::node::{Node, VERSION};
use crate::ready_file::{self, Ready};
use crate::settings::Settings;

/// How often a node that loads looks for a signal.
const STEP: Duration = Duration::from_millis(100);
/// Steps between two log lines about progress.
const PROGRESS_STEPS: u32 = 20;

/// The arguments of `settee serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  settee serve                          data in ./settee-data, ports 11210 and 8091
  settee serve --dev                    try things out; nothing is kept
  settee serve --data-dir /srv/settee --memory-quota 4GiB --password secret
  settee serve --config settee.toml     the same names in a file: data-dir = \"/srv/settee\"

Every flag can be said in the environment, too: SETTEE_DATA_DIR=/srv/settee.")]
pub struct ServeArguments {
    /// A TOML file with any of the settings below, by the same names
    #[arg(long, value_name = "FILE", env = "SETTEE_CONFIG")]
    config: Option<PathBuf>,
    /// Ends in order when the process with this id does, which has started it
    #[arg(long, value_name = "PID", hide = true)]
    end_with_parent: Option<u32>,
    #[command(flatten)]
    settings: Settings,
}

/// Runs a node until it is told to stop.
pub fn serve(arguments: ServeArguments) -> anyhow::Result<ExitCode> {
    let clock = Clock::real();
    let begun = clock.now();
    let ServeArguments { config, end_with_parent, settings } = arguments;
    let settings = match config {
        Some(path) => settings.or(Settings::from_file(&path)?),
        None => settings,
    };
    let config = settings.resolve()?;
    logging::start(&config.log_filter, config.log_json)?;
    warn_of_quota(config.memory_quota_bytes);
    let termination = Termination::watch(Hangup::GoesOn(on_hangup))?;
    if let Some(parent) = end_with_parent {
        ensure!(platform::child::end_with_parent(parent)?, "process {parent} has ended");
    }
    if let Some(path) = &config.ready_file {
        ready_file::remove(&RealFiles, path)?;
    }
    let node = Node::start(config)?;
    greet(&node);
    let signal = match load(&node, &termination) {
        Some(signal) => signal,
        None => {
            node.begin_serving();
            announce(&node, clock.now().since(begun))?;
            termination.wait()
        }
    };
    tracing::info!(signal, "stopping: answering, flushing, closing");
    node.stop()?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Log lines go to standard error, which whoever rotates them opens anew.
fn on_hangup() {
    tracing::info!("SIGHUP: the node goes on; SIGTERM stops it in order");
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

/// Waits until every vBucket serves and logs how far that has come. Returns the signal that came
/// before.
fn load(node: &Node, termination: &Termination) -> Option<&'static str> {
    let mut until_progress = PROGRESS_STEPS;
    while !node.wait_until_serving(STEP) {
        if let Some(signal) = termination.has_come() {
            return Some(signal);
        }
        until_progress -= 1;
        if until_progress == 0 {
            until_progress = PROGRESS_STEPS;
            log_progress(node);
        }
    }
    None
}

fn log_progress(node: &Node) {
    let progress = node.bucket().warmup_progress();
    tracing::info!(
        vbuckets = format!("{}/{}", progress.vbuckets_loaded, progress.vbuckets_total),
        documents = format!("{}/{}", progress.documents_loaded, progress.documents_total),
        "loading documents"
    );
}

/// Tells the person who started the node how to reach it. Nobody may be there to read it.
fn greet(node: &Node) {
    drop(io::stdout().write_all(greeting(node).as_bytes()));
}

fn greeting(node: &Node) -> String {
    let config = node.config();
    let host = &config.host;
    let mut lines = vec![
        format!("settee {VERSION}, pid {}", platform::process::id()),
        format!("  data directory   {}", config.data_dir.display()),
        format!("  data port        {host}:{}", node.port()),
        format!("  management port  {host}:{}", node.management_port()),
    ];
    if let Some(port) = node.memcached_port() {
        lines.push(format!("  memcached port   {host}:{port} (open to everybody)"));
    }
    lines.push(format!("  bucket           {}", config.bucket));
    lines.push(format!("  user             {}", config.user));
    lines.push(match node.password() {
        Some(password) if node.password_is_new() => {
            format!("  password         {password} (generated; it is not shown again)")
        }
        Some(password) if config.is_temporary => format!("  password         {password}"),
        Some(_) => "  password         as given".to_owned(),
        None => "  password         as before".to_owned(),
    });
    let host = &config.advertised_host;
    lines.push(format!("  connect with     couchbase://{host}:{}\n", node.port()));
    lines.join("\n")
}

/// Tells that the node serves, and for how long clients have waited for it: log, and the ready
/// file.
fn announce(node: &Node, waited: Duration) -> anyhow::Result<()> {
    let config = node.config();
    let progress = node.bucket().warmup_progress();
    tracing::info!(
        version = VERSION,
        data_port = node.port(),
        management_port = node.management_port(),
        memcached_port = node.memcached_port(),
        directory = %config.data_dir.display(),
        quota_bytes = config.memory_quota_bytes,
        documents = progress.documents_loaded,
        took_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
        "serving"
    );
    if let Some(path) = &config.ready_file {
        let ready = Ready {
            port: node.port(),
            management_port: node.management_port(),
            memcached_port: node.memcached_port(),
            user: &config.user,
            password: node.password(),
            bucket: &config.bucket,
            pid: platform::process::id(),
        };
        ready_file::write(&RealFiles, path, &ready)?;
    }
    Ok(())
}
