//! `settee engine-control`: what `cbepctl` changes of a bucket while the node runs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use client::Connection;
use platform::{Clock, threads};
use protocol::Opcode;
use protocol::client::Request;
use serde_json::Value;

use crate::server_arguments::{ServerArguments, explain};

/// Between two looks at what is not durable yet.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The statistic that says how much that is.
const QUEUE_SIZE: &str = "ep_queue_size";

/// Change a bucket's parameters until the node stops, or wait until everything is durable
#[derive(Clone, Debug, clap::Args)]
#[command(mut_args = |argument| argument.global(true))]
pub struct EngineControlArguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Set a parameter until the node stops
    Set {
        /// The group of parameters
        #[arg(value_enum)]
        group: Group,
        /// The parameter's name
        name: String,
        /// The new value
        value: String,
        /// Of which vBucket the parameter is
        #[arg(long, default_value_t = 0)]
        vbucket: u16,
    },
    /// Wait until everything is durable
    Drain {
        /// Give up after so long
        #[arg(long, default_value_t = 600.0, value_name = "SECONDS")]
        wait: f64,
    },
}

/// The groups of parameters and their numbers. Source: docs/specification/protocol.md, section
/// 18.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    #[value(name = "flush_param")]
    Flush = 1,
    #[value(name = "checkpoint_param")]
    Checkpoint = 3,
    #[value(name = "dcp_param")]
    Dcp = 4,
    #[value(name = "vbucket_param")]
    Vbucket = 5,
    #[value(name = "config_param")]
    Config = 6,
}

/// Runs the tool.
pub fn run(arguments: &EngineControlArguments) -> anyhow::Result<ExitCode> {
    let (_, mut connection) = arguments.server.target()?.connect()?;
    match &arguments.action {
        Action::Set { group, name, value, vbucket } => {
            let extras = (*group as u32).to_be_bytes();
            let request = Request {
                vbucket: *vbucket,
                extras: &extras,
                key: name.as_bytes(),
                value: value.as_bytes(),
                ..Request::new(Opcode::SetParam)
            };
            set(&mut connection, &request)?;
        }
        Action::Drain { wait } => drain(&mut connection, *wait)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn set(connection: &mut Connection, request: &Request<'_>) -> anyhow::Result<()> {
    let response = connection.call(request).map_err(explain)?;
    if response.is_success() {
        return Ok(());
    }
    let said: Value = serde_json::from_slice(response.value()).unwrap_or_default();
    let context = said.pointer("/error/context").and_then(Value::as_str);
    let status = client::status_name(response.status_code());
    Err(anyhow!("the server refuses ({status}): {}", context.unwrap_or("it says nothing more")))
}

fn drain(connection: &mut Connection, wait: f64) -> anyhow::Result<()> {
    let wait = Duration::try_from_secs_f64(wait).context("--wait is a time in seconds")?;
    let clock = Clock::real();
    let began = clock.now();
    loop {
        let statistics = connection.statistics("").map_err(explain)?;
        let found = statistics.iter().find(|(name, _)| name == QUEUE_SIZE);
        let (_, queued) =
            found.with_context(|| format!("the server does not tell {QUEUE_SIZE}"))?;
        if queued == "0" {
            return Ok(());
        }
        if clock.now().since(began) >= wait {
            bail!(
                "{queued} writes are not durable after {wait:?}; look at the node's log and disk"
            );
        }
        threads::pause(LOOK_INTERVAL);
    }
}
