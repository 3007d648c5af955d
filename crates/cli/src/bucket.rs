//! `settee bucket`: buckets of a running node.

use std::process::ExitCode;

use serde_json::Value;

use crate::node_port::{NodePort, in_path};
use crate::output::print;
use crate::server_arguments::ServerArguments;

const BUCKETS: &str = "/pools/default/buckets";

/// List, create, change, empty and delete the buckets of a running node
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct BucketArguments {
    #[command(subcommand)]
    action: Action,
    /// The node's REST port, as http://HOST:8091 [default: what the data port tells]
    #[arg(long, value_name = "URL", help_heading = "Server", global = true)]
    management: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Show all buckets
    List {
        /// The JSON that the node answers
        #[arg(long)]
        json: bool,
    },
    /// Make a bucket
    Create {
        /// The bucket's name
        name: String,
        /// Memory for its documents, in MiB
        #[arg(long, value_name = "MIB", default_value_t = 100)]
        quota_mib: u64,
        /// `couchbase` keeps documents on disk, `ephemeral` in memory alone
        #[arg(long = "type", value_name = "TYPE", default_value = "couchbase")]
        bucket_type: String,
        /// vBuckets: a power of two
        #[arg(long, value_name = "COUNT")]
        vbuckets: Option<u16>,
        /// Which version of a document wins: `seqno`, `lww` or `custom`
        #[arg(long, value_name = "RULE")]
        conflict_resolution: Option<String>,
        #[command(flatten)]
        settings: ChangingSettings,
    },
    /// Change a bucket: what is not said stays as it is
    Change {
        /// The bucket's name
        name: String,
        /// Memory for its documents, in MiB
        #[arg(long, value_name = "MIB")]
        quota_mib: Option<u64>,
        #[command(flatten)]
        settings: ChangingSettings,
    },
    /// Delete a bucket with everything in it
    Delete {
        /// The bucket's name
        name: String,
    },
    /// Delete all documents of a bucket that allows it
    Flush {
        /// The bucket's name
        name: String,
    },
}

/// What can be said of a bucket when it is made, and later.
#[derive(Clone, Debug, Default, clap::Args)]
struct ChangingSettings {
    /// Copies beside the active one
    #[arg(long, value_name = "COUNT")]
    replicas: Option<u8>,
    /// Whether `flush` is allowed
    #[arg(long, value_name = "BOOL")]
    enable_flush: Option<bool>,
    /// What leaves memory when it is full: `valueOnly` or `fullEviction`, and of ephemeral buckets
    /// `noEviction` or `nruEviction`
    #[arg(long, value_name = "POLICY")]
    eviction_policy: Option<String>,
    /// What happens to compressed values: `off`, `passive` or `active`
    #[arg(long, value_name = "MODE")]
    compression: Option<String>,
    /// How durable every write is at least: `none`, `majority`, `majorityAndPersistActive` or
    /// `persistToMajority`
    #[arg(long, value_name = "LEVEL")]
    durability_min_level: Option<String>,
}

const HELP: &str = "\
Who asks is said in front of the action: its options are the server's.

Examples:
  settee bucket --password secret list
  settee bucket --password secret create travel --quota-mib 256 --enable-flush true
  settee bucket --password secret change travel --quota-mib 512
  settee bucket --password secret flush travel
  settee bucket --password secret delete travel";

/// Fields of a form.
type Form = Vec<(&'static str, String)>;

/// Runs the tool.
pub fn run(arguments: &BucketArguments) -> anyhow::Result<ExitCode> {
    let (port, _) = NodePort::find(&arguments.server, arguments.management.as_deref())?;
    match &arguments.action {
        Action::List { json } => list(&port, *json)?,
        Action::Delete { name } => port.accept(port.delete(&path_of(name))?)?,
        Action::Flush { name } => {
            let path = format!("{}/controller/doFlush", path_of(name));
            port.accept(port.post(&path, &[])?)?;
        }
        Action::Create { name, .. } => send(&port, BUCKETS, name, &arguments.action)?,
        Action::Change { name, .. } => send(&port, &path_of(name), name, &arguments.action)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn send(port: &NodePort, path: &str, name: &str, action: &Action) -> anyhow::Result<()> {
    let form = form_of(action);
    let mut fields: Vec<(&str, &str)> =
        form.iter().map(|(field, value)| (*field, value.as_str())).collect();
    if path == BUCKETS {
        fields.push(("name", name));
    }
    port.accept(port.post(path, &fields)?)
}

/// What is said of the bucket, but for its name.
fn form_of(action: &Action) -> Form {
    match action {
        Action::Create {
            quota_mib,
            bucket_type,
            vbuckets,
            conflict_resolution,
            settings,
            name: _,
        } => {
            let mut form = settings.form();
            form.push(("ramQuotaMB", quota_mib.to_string()));
            form.push(("bucketType", bucket_type.clone()));
            form.extend(vbuckets.map(|count| ("numVBuckets", count.to_string())));
            let rule = conflict_resolution.clone();
            form.extend(rule.map(|rule| ("conflictResolutionType", rule)));
            form
        }
        Action::Change { quota_mib, settings, name: _ } => {
            let mut form = settings.form();
            form.extend(quota_mib.map(|mib| ("ramQuotaMB", mib.to_string())));
            form
        }
        Action::List { .. } | Action::Delete { .. } | Action::Flush { .. } => Form::new(),
    }
}

impl ChangingSettings {
    fn form(&self) -> Form {
        let flush = self.enable_flush.map(|is_enabled| u8::from(is_enabled).to_string());
        let fields = [
            ("replicaNumber", self.replicas.map(|count| count.to_string())),
            ("flushEnabled", flush),
            ("evictionPolicy", self.eviction_policy.clone()),
            ("compressionMode", self.compression.clone()),
            ("durabilityMinLevel", self.durability_min_level.clone()),
        ];
        fields.into_iter().filter_map(|(field, value)| Some((field, value?))).collect()
    }
}

fn list(port: &NodePort, as_json: bool) -> anyhow::Result<()> {
    let text = port.get(BUCKETS)?.read_to_string()?;
    if as_json {
        return print(&format!("{text}\n"));
    }
    let buckets: Value = serde_json::from_str(&text)?;
    print(&buckets.as_array().into_iter().flatten().map(line).collect::<String>())
}

/// A bucket's name, type, quota and documents.
fn line(bucket: &Value) -> String {
    let word = |pointer: &str| bucket.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
    let number = |pointer: &str| bucket.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let bucket_type = match word("/bucketType") {
        "membase" => "couchbase",
        other => other,
    };
    format!(
        "{} {bucket_type} quota={}MiB used={}MiB items={}\n",
        word("/name"),
        number("/quota/rawRAM") >> 20,
        number("/basicStats/memUsed") >> 20,
        number("/basicStats/itemCount"),
    )
}

fn path_of(name: &str) -> String {
    format!("{BUCKETS}/{}", in_path(name))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        bucket: BucketArguments,
    }

    fn form(line: &str) -> Form {
        let command = Command::try_parse_from(line.split(' ')).unwrap();
        let mut form = form_of(&command.bucket.action);
        form.sort_unstable();
        form
    }

    #[test]
    fn what_is_said_becomes_a_form_and_nothing_else_does() {
        let said = |fields: &[(&'static str, &str)]| -> Form {
            fields.iter().map(|(field, value)| (*field, (*value).to_owned())).collect()
        };
        let least = said(&[("bucketType", "couchbase"), ("ramQuotaMB", "100")]);
        assert_eq!(form("bucket create b"), least);
        let line = "bucket create b --quota-mib 256 --type ephemeral --vbuckets 64 --replicas 1 \
                    --enable-flush true --eviction-policy nruEviction --conflict-resolution lww";
        let all = said(&[
            ("bucketType", "ephemeral"),
            ("conflictResolutionType", "lww"),
            ("evictionPolicy", "nruEviction"),
            ("flushEnabled", "1"),
            ("numVBuckets", "64"),
            ("ramQuotaMB", "256"),
            ("replicaNumber", "1"),
        ]);
        assert_eq!(form(line), all);
        let line = "bucket change b --enable-flush false --compression active";
        assert_eq!(form(line), said(&[("compressionMode", "active"), ("flushEnabled", "0")]));
    }

    #[test]
    fn buckets_are_shown_in_a_line_each() {
        let bucket = json!({
            "name": "travel",
            "bucketType": "membase",
            "quota": {"rawRAM": 256 << 20},
            "basicStats": {"memUsed": 3 << 20, "itemCount": 40},
        });
        assert_eq!(line(&bucket), "travel couchbase quota=256MiB used=3MiB items=40\n");
        assert_eq!(line(&json!({})), "- - quota=0MiB used=0MiB items=0\n");
    }
}
