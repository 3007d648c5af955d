//! `settee health`: whether a node serves, by its exit status, for whoever supervises it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use ureq::Agent;

use crate::output::print;

/// Say whether a node serves, for whoever supervises it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct HealthArguments {
    /// The address that the node listens on
    #[arg(long, value_name = "ADDRESS", env = "SETTEE_HOST", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The node's management port
    #[arg(long, value_name = "PORT", env = "SETTEE_MANAGEMENT_PORT", default_value_t = 8091)]
    management_port: u16,
    /// Be content with a node that loads its documents
    #[arg(long)]
    alive: bool,
    /// Seconds that the node may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    timeout: u64,
}

const HELP: &str = "\
Exits with 0 when the node serves, otherwise with 1. Needs no login.

Examples:
  settee health
  settee health --alive --management-port 9000";

/// Runs the tool.
pub fn run(arguments: &HealthArguments) -> anyhow::Result<ExitCode> {
    let address = SocketAddr::new(reached(arguments.host), arguments.management_port);
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(arguments.timeout)));
    let agent: Agent = config.build().into();
    let answer = agent.get(format!("http://{address}/healthz")).call();
    let mut answer = answer.with_context(|| {
        format!("no node answers at {address}; check --host and --management-port")
    })?;
    let body = answer.body_mut().read_to_string().unwrap_or_default();
    print(&line_of(&body))?;
    let serves = answer.status().as_u16() == 200;
    // A node that loads says so with another status; whatever else answers there is no node.
    let is_good = serves || (arguments.alive && answer.status().as_u16() == 503);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where a node of this machine is reached that listens on `host`.
fn reached(host: IpAddr) -> IpAddr {
    match host {
        IpAddr::V4(host) if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(host) if host.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        host => host,
    }
}

/// What the node says of itself, in a line.
fn line_of(body: &str) -> String {
    let said: Value = serde_json::from_str(body).unwrap_or_default();
    let word = |value: Option<&Value>| value.map_or("?".to_owned(), Value::to_string);
    let status = said.get("status").and_then(Value::as_str).unwrap_or("this is no node");
    let warmup = said.get("warmup");
    let loaded = word(warmup.and_then(|warmup| warmup.get("items_loaded")));
    let expected = word(warmup.and_then(|warmup| warmup.get("items_expected")));
    format!("{status}: {loaded} of {expected} documents are loaded\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_everywhere_is_reached_on_this_machine() {
        for (host, expected) in
            [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.1.2.3", "10.1.2.3"), ("::1", "::1")]
        {
            assert_eq!(reached(host.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn a_node_that_loads_says_how_far_it_has_come() {
        let body = r#"{"status":"warmup","warmup":{"items_loaded":5,"items_expected":10}}"#;
        assert_eq!(line_of(body), "warmup: 5 of 10 documents are loaded\n");
        assert!(line_of("<html>").starts_with("this is no node"));
    }
}
