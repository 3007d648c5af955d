//! `settee reset-vbucket`: damaged vBuckets, and having one begin anew.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::node_port::NodePort;
use crate::output::{note, print};
use crate::server_arguments::ServerArguments;

/// List damaged vBuckets of a running node, or have one begin anew
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct ResetVbucketArguments {
    /// The vBucket; all damaged ones are listed when left out
    #[arg(value_name = "VBUCKET")]
    vbid: Option<u16>,
    /// Have it begin anew, empty; without this, say what that loses and change nothing
    #[arg(long, requires = "vbid")]
    confirm: bool,
    /// The node's REST port, as http://HOST:8091 [default: what the data port tells]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    management: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

const HELP: &str = "\
A vBucket whose file is damaged does not serve, or refuses writes. A replica of it is built anew by
itself. For the active copy there are, from the best to the worst:
  - put its file back as it was, with the node stopped;
  - promote a replica, by a cluster map or settee cluster-run --failover;
  - restore a backup;
  - have it begin anew with this command: empty, and without everything that was in it.
Its file is not removed: it is renamed to <file>.damaged, and settee dump reads it.

Examples:
  settee reset-vbucket --password secret
  settee reset-vbucket 17 --password secret
  settee reset-vbucket 17 --confirm --password secret
  settee reset-vbucket 17 --bucket travel --password secret

Of a node with several buckets --bucket says which; without it those of all are listed.";

/// Runs the tool.
pub fn run(arguments: &ResetVbucketArguments) -> anyhow::Result<ExitCode> {
    let (port, _) = NodePort::find(&arguments.server, arguments.management.as_deref())?;
    let bucket = arguments.server.said_bucket()?;
    let bucket = bucket.as_deref();
    match arguments.vbid {
        None => list(&port, bucket),
        Some(vbid) if arguments.confirm => reset(&port, vbid, bucket),
        Some(vbid) => explain_loss(&port, vbid, bucket),
    }
}

fn list(port: &NodePort, bucket: Option<&str>) -> anyhow::Result<ExitCode> {
    let text = port.get("/settee/vbuckets/damaged")?.read_to_string()?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    let damaged = answer.get("damaged").and_then(Value::as_array);
    let damaged = damaged.with_context(|| format!("{} is no settee node", port.url))?;
    let word = |found: &Value, name: &str| match found.get(name) {
        Some(Value::String(text)) => text.clone(),
        other => other.map(Value::to_string).unwrap_or_default(),
    };
    let line = |found: &Value| {
        let [vbid, kind, reason] = ["vbucket", "kind", "reason"].map(|name| word(found, name));
        // A node with one bucket does not say which.
        let of = match word(found, "bucket") {
            bucket if bucket.is_empty() => String::new(),
            bucket => format!(" of {bucket}"),
        };
        format!("vBucket {vbid}{of} ({kind}): {reason}\n")
    };
    let is_asked = |found: &&Value| {
        let found = found.get("bucket").and_then(Value::as_str);
        bucket.is_none() || found.is_none() || found == bucket
    };
    let lines: String = damaged.iter().filter(is_asked).map(line).collect();
    print(if lines.is_empty() { "no vBucket's file is damaged\n" } else { &lines })?;
    Ok(ExitCode::SUCCESS)
}

fn explain_loss(port: &NodePort, vbid: u16, bucket: Option<&str>) -> anyhow::Result<ExitCode> {
    let (status, answer) = port.post(&path(vbid), &of_bucket(bucket))?;
    let Some(loss) = answer.get("loss").and_then(Value::as_str) else {
        return refuse(port, status, &answer);
    };
    print(&format!("{loss}\n"))?;
    note("nothing was changed; --confirm does it\n");
    Ok(ExitCode::SUCCESS)
}

fn reset(port: &NodePort, vbid: u16, bucket: Option<&str>) -> anyhow::Result<ExitCode> {
    let fields = [of_bucket(bucket), vec![("confirm", "lose")]].concat();
    match port.post(&path(vbid), &fields)? {
        (200, _) => {
            print(&format!("vBucket {vbid} has begun anew: it is empty and active\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        (status, answer) => refuse(port, status, &answer),
    }
}

/// Whose vBucket it is, if that is said.
fn of_bucket(bucket: Option<&str>) -> Vec<(&str, &str)> {
    bucket.map(|bucket| ("bucket", bucket)).into_iter().collect()
}

fn path(vbid: u16) -> String {
    format!("/settee/vbuckets/{vbid}/reset")
}

fn refuse(port: &NodePort, status: u16, answer: &Value) -> anyhow::Result<ExitCode> {
    if answer.pointer("/errors/bucket").is_some() {
        bail!("{} has several buckets; say whose vBucket it is with --bucket", port.url);
    }
    let reason = answer.get("_").and_then(Value::as_str).unwrap_or("it says nothing");
    bail!("{} refuses ({status}): {reason}", port.url)
}
