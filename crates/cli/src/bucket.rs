//! `settee bucket`: buckets of a running node.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use document::uri::escaped;
use serde_json::Value;

use crate::node_arguments::NodeArguments;
use crate::node_port::NodePort;
use crate::table::Table;

const BUCKETS: &str = "/pools/default/buckets";

/// List, create, edit, empty and delete the buckets of a running node
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP, mut_args = |argument| argument.global(true))]
pub struct BucketArguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    node: NodeArguments,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Show all buckets
    List,
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
    Edit {
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
        /// Do it; without this, say what would be lost and change nothing
        #[arg(long)]
        confirm: bool,
    },
    /// Delete all documents of a bucket that allows it
    Flush {
        /// The bucket's name
        name: String,
        /// Do it; without this, say what would be lost and change nothing
        #[arg(long)]
        confirm: bool,
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
Examples:
  settee bucket list --password secret
  settee bucket list --password secret -o json
  settee bucket create travel --quota-mib 256 --enable-flush true --password secret
  settee bucket edit travel --quota-mib 512 --password secret
  settee bucket flush travel --confirm --password secret
  settee bucket delete travel --confirm --password secret";

/// Fields of a form.
type Form = Vec<(&'static str, String)>;

/// Runs the tool.
pub fn run(arguments: &BucketArguments) -> anyhow::Result<ExitCode> {
    let node = &arguments.node;
    let (port, _) = node.find()?;
    let answer = match &arguments.action {
        Action::List => {
            node.show(&port, BUCKETS, table)?;
            return Ok(ExitCode::SUCCESS);
        }
        Action::Delete { name, confirm } => {
            check_loss(&port, name, *confirm)?;
            port.delete(&path_of(name))?
        }
        Action::Flush { name, confirm } => {
            check_loss(&port, name, *confirm)?;
            port.post(&format!("{}/controller/doFlush", path_of(name)), &[])?
        }
        Action::Create { .. } => post(&port, BUCKETS, &arguments.action)?,
        Action::Edit { name, .. } => {
            find(&port, name)?;
            post(&port, &path_of(name), &arguments.action)?
        }
    };
    node.accept(&port, answer)?;
    Ok(ExitCode::SUCCESS)
}

/// The bucket, which must be there.
fn find(port: &NodePort, name: &str) -> anyhow::Result<Value> {
    let bucket = port.get_if_any(&path_of(name))?;
    bucket.with_context(|| format!("{} has no bucket {name}; see settee bucket list", port.url))
}

/// Refuses what loses all that is in a bucket, unless that is confirmed.
fn check_loss(port: &NodePort, name: &str, is_confirmed: bool) -> anyhow::Result<()> {
    let bucket = find(port, name)?;
    let count = bucket.pointer("/basicStats/itemCount").and_then(Value::as_u64).unwrap_or(0);
    ensure!(
        is_confirmed,
        "nothing was changed: {count} documents of the bucket {name} would be gone for good; \
         --confirm does it"
    );
    Ok(())
}

fn post(port: &NodePort, path: &str, action: &Action) -> anyhow::Result<(u16, Value)> {
    let form = form_of(action);
    let fields: Vec<(&str, &str)> =
        form.iter().map(|(field, value)| (*field, value.as_str())).collect();
    port.post(path, &fields)
}

/// What is said of the bucket; of one that is there its name is in the path.
fn form_of(action: &Action) -> Form {
    match action {
        Action::Create {
            quota_mib,
            bucket_type,
            vbuckets,
            conflict_resolution,
            settings,
            name,
        } => {
            let mut form = settings.form();
            form.push(("name", name.clone()));
            form.push(("ramQuotaMB", quota_mib.to_string()));
            form.push(("bucketType", bucket_type.clone()));
            form.extend(vbuckets.map(|count| ("numVBuckets", count.to_string())));
            let rule = conflict_resolution.clone();
            form.extend(rule.map(|rule| ("conflictResolutionType", rule)));
            form
        }
        Action::Edit { quota_mib, settings, name: _ } => {
            let mut form = settings.form();
            form.extend(quota_mib.map(|mib| ("ramQuotaMB", mib.to_string())));
            form
        }
        Action::List | Action::Delete { .. } | Action::Flush { .. } => Form::new(),
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

/// All buckets.
fn table(buckets: &Value) -> Table {
    let mut table = Table::new(&["NAME", "TYPE", "QUOTA-MIB", "USED-MIB", "ITEMS"]);
    buckets.as_array().into_iter().flatten().for_each(|bucket| table.push(row(bucket)));
    table
}

/// A bucket's name, type, quota, memory and documents.
fn row(bucket: &Value) -> Vec<String> {
    let word = |pointer: &str| bucket.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
    let number = |pointer: &str| bucket.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let bucket_type = match word("/bucketType") {
        "membase" => "couchbase",
        other => other,
    };
    vec![
        word("/name").to_owned(),
        bucket_type.to_owned(),
        (number("/quota/rawRAM") >> 20).to_string(),
        (number("/basicStats/memUsed") >> 20).to_string(),
        number("/basicStats/itemCount").to_string(),
    ]
}

fn path_of(name: &str) -> String {
    format!("{BUCKETS}/{}", escaped(name))
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
        let least = said(&[("bucketType", "couchbase"), ("name", "b"), ("ramQuotaMB", "100")]);
        assert_eq!(form("bucket create b"), least);
        let line = "bucket create b --quota-mib 256 --type ephemeral --vbuckets 64 --replicas 1 \
                    --enable-flush true --eviction-policy nruEviction --conflict-resolution lww";
        let all = said(&[
            ("bucketType", "ephemeral"),
            ("conflictResolutionType", "lww"),
            ("evictionPolicy", "nruEviction"),
            ("flushEnabled", "1"),
            ("name", "b"),
            ("numVBuckets", "64"),
            ("ramQuotaMB", "256"),
            ("replicaNumber", "1"),
        ]);
        assert_eq!(form(line), all);
        let line = "bucket edit b --enable-flush false --compression active";
        assert_eq!(form(line), said(&[("compressionMode", "active"), ("flushEnabled", "0")]));
    }

    #[test]
    fn who_asks_is_said_before_the_action_or_behind_it() {
        for line in ["bucket list -P secret -o json", "bucket -P secret -o json list"] {
            assert!(Command::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        assert!(Command::try_parse_from(["bucket", "list", "-o", "xml"]).is_err());
    }

    #[test]
    fn a_bucket_is_shown_as_it_is_said() {
        let bucket = json!({
            "name": "travel",
            "bucketType": "membase",
            "quota": {"rawRAM": 256 << 20},
            "basicStats": {"memUsed": 3 << 20, "itemCount": 40},
        });
        assert_eq!(row(&bucket), ["travel", "couchbase", "256", "3", "40"]);
        assert_eq!(row(&json!({})), ["-", "-", "0", "0", "0"]);
    }
}
