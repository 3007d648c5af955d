//! `settee health`: whether a node serves, by its exit status, for whoever supervises it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use ureq::Agent;

use crate::encryption::TlsArguments;
use crate::output::print;

/// Say whether a node serves, for whoever supervises it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct HealthArguments {
    /// The node's host name or address; one that listens everywhere is asked on this machine
    #[arg(long, env = "SETTEE_HOST", default_value = "127.0.0.1")]
    host: String,
    /// The node's management port
    #[arg(long, value_name = "PORT", env = "SETTEE_MANAGEMENT_PORT", default_value_t = 8091)]
    management_port: u16,
    /// The node's management port behind TLS, for --tls
    #[arg(long, value_name = "PORT", env = "SETTEE_MANAGEMENT_TLS_PORT", default_value_t = 18091)]
    management_tls_port: u16,
    /// The node's REST port, as http://HOST:8091 or https://HOST:18091; takes precedence over the
    /// host and the ports
    #[arg(long, value_name = "URL")]
    management: Option<String>,
    /// Be content with a node that loads its documents
    #[arg(long)]
    alive: bool,
    /// Seconds that the node may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    timeout: u64,
    #[command(flatten)]
    tls: TlsArguments,
}

const HELP: &str = "\
Exits with 0 when the node serves, otherwise with 1. Needs no login.

Examples:
  settee health
  settee health --alive --management-port 9000
  settee health --tls --ca settee-data/certificates/ca.pem";

/// Runs the tool.
pub fn run(arguments: &HealthArguments) -> anyhow::Result<ExitCode> {
    let url = arguments.url();
    let is_encrypted = url.starts_with("https://");
    ensure!(
        is_encrypted || !(arguments.tls.is_wanted || arguments.tls.is_user_certified()),
        "TLS is asked for, and {url} is without it; say --tls, or https:// in --management"
    );
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(arguments.timeout)));
    let agent: Agent = if is_encrypted {
        config.https_only(true).tls_config(arguments.tls.http()?).build().into()
    } else {
        config.build().into()
    };
    let answer = agent.get(format!("{url}/healthz")).call();
    let mut answer = answer.with_context(|| {
        let checked = if is_encrypted {
            "--host, --management-tls-port and --ca"
        } else {
            "--host and --management-port"
        };
        format!("no node answers at {url}; check {checked}")
    })?;
    let body = answer.body_mut().read_to_string().unwrap_or_default();
    print(&line_of(&body))?;
    let serves = answer.status().as_u16() == 200;
    // A node that loads says so with another status; whatever else answers there is no node.
    let is_good = serves || (arguments.alive && answer.status().as_u16() == 503);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl HealthArguments {
    /// The port that is asked.
    fn url(&self) -> String {
        let (scheme, port) = if self.tls.is_wanted {
            ("https", self.management_tls_port)
        } else {
            ("http", self.management_port)
        };
        if let Some(url) = &self.management {
            let url = url.trim_end_matches('/');
            let is_whole = url.contains("://");
            return if is_whole { url.to_owned() } else { format!("{scheme}://{url}") };
        }
        format!("{scheme}://{}:{port}", reached(&self.host))
    }
}

/// Where a node of this machine is reached that listens on `host`, as URLs say it.
fn reached(host: &str) -> String {
    match host.parse() {
        Ok(IpAddr::V4(host)) if host.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(host)) if host.is_unspecified() => format!("[{}]", Ipv6Addr::LOCALHOST),
        Ok(IpAddr::V6(host)) => format!("[{host}]"),
        _ => host.to_owned(),
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
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        health: HealthArguments,
    }

    #[test]
    fn a_node_is_asked_at_one_port() {
        for (line, url) in [
            ("--host 0.0.0.0", "http://127.0.0.1:8091"),
            ("--host ::", "http://[::1]:8091"),
            ("--host 10.1.2.3 --management-port 9000", "http://10.1.2.3:9000"),
            ("--host n1.example --tls", "https://n1.example:18091"),
            ("--host ::1 --tls --management-tls-port 9000", "https://[::1]:9000"),
            ("--management https://n1:9000/ --tls", "https://n1:9000"),
            ("--management http://n1:9000 --host n2", "http://n1:9000"),
            ("--management n1:9000", "http://n1:9000"),
            ("--management n1:9000 --tls", "https://n1:9000"),
        ] {
            let command = Command::try_parse_from(["health"].into_iter().chain(line.split(' ')));
            assert_eq!(command.unwrap().health.url(), url, "{line}");
        }
    }

    #[test]
    fn a_node_that_loads_says_how_far_it_has_come() {
        let body = r#"{"status":"warmup","warmup":{"items_loaded":5,"items_expected":10}}"#;
        assert_eq!(line_of(body), "warmup: 5 of 10 documents are loaded\n");
        assert!(line_of("<html>").starts_with("this is no node"));
    }
}
