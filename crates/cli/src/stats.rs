//! `settee stats`: statistics of a server, one a line.

use std::process::ExitCode;

use anyhow::anyhow;
use client::ClientError;
use protocol::Status;
use serde_json::{Map, Value};

use crate::output::print;
use crate::server_arguments::{ServerArguments, explain};

/// Shows statistics of a server
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct StatsArguments {
    /// The group; general statistics when left out
    pub group: Option<String>,
    /// What the group is asked about: a vBucket, a key, a collection
    pub argument: Vec<String>,
    /// One JSON object instead of lines
    #[arg(long)]
    pub json: bool,
    /// Which server
    #[command(flatten)]
    pub server: ServerArguments,
}

const HELP: &str = "\
Groups, some with an argument; a server that has others says so when it is asked for one that it
does not have:
  (none), all                   everything general: counters, memory, items
  vbucket, prev-vbucket [VB]    the state of each vBucket
  vbucket-details [VB]          items, seqnos, memory
  vbucket-seqno [VB]            high, persisted and durable seqnos
  vbucket-durability-state [VB] durable writes of each vBucket
  durability-monitor [VB]       the durable writes that are under way
  failovers [VB]                the branches of the history
  checkpoint [VB]               checkpoints and their cursors
  hash [VB]                     hash tables
  damaged-vbuckets              vBuckets whose files are damaged, and how
  clustermap                    the map that counts, and what is left of it
  key KEY VB                    one document's metadata, read from disk if need be
  vkey KEY VB                   the same, and whether the file has the document as memory has it
  key-byid, vkey-byid           the same of a collection: KEY VB 0xID
  collections, scopes [PATH]    the items of each
  collections-byid, scopes-byid the same of one: 0xID
  collections-details [VB]      what each vBucket has of each collection
  scopes-details [VB]           and of each scope
  dcp, dcpagg                   replication streams, one by one and together
  dcp-vbtakeover VB NAME        how far a takeover is
  range-scans [VB]              scans, and how far they are
  journal, compaction           the journal, and the compaction of files
  diskinfo, kvstore, kvtimings  files: sizes, counters, times
  memory, warmup                what takes memory, and how far loading is
  config, settings, info        what the bucket and the port are set to
  connections, clocks, uuid     the port's connections, its clocks, the bucket's identity
  tasks, tasks-all              the background tasks and what they are doing
  scheduler, runtimes           how long tasks waited, and how long they ran
  workload                      threads of each kind, and what waits for them
  timings                       histograms; `settee timings` draws them
  slow-operations               what took long; `settee why-slow` tells where the time went
  hot-keys                      what is asked for most; `settee hot-keys` samples it
  items, slabs, sizes, reset    under memcached's names, as far as they apply

Examples:
  settee stats --user Administrator --password password
  settee stats vbucket-details 17
  settee stats key user::1 512 --json
  settee stats --bucket travel vbucket-details
  SETTEE_HOST=10.0.0.1 settee stats memory";

/// Runs the tool.
pub fn run(arguments: &StatsArguments) -> anyhow::Result<ExitCode> {
    let (_, mut connection) = arguments.server.target()?.connect()?;
    let group = group_of(arguments);
    let statistics = connection.statistics(&group).map_err(|error| explain_group(error, &group))?;
    print(&if arguments.json { to_json(statistics) } else { to_lines(&statistics) })?;
    Ok(ExitCode::SUCCESS)
}

/// The group as a server knows it, and what it is asked about.
fn group_of(arguments: &StatsArguments) -> String {
    let words: Vec<&str> =
        arguments.group.iter().chain(&arguments.argument).map(String::as_str).collect();
    if words == ["all"] { String::new() } else { words.join(" ") }
}

/// An unknown group is the user's error, anything else the connection's.
pub(crate) fn explain_group(error: ClientError, group: &str) -> anyhow::Error {
    let status = error.refusal();
    match status {
        Some(Status::KeyEnoent | Status::Einval | Status::NotSupported) => {
            let status = status.map_or("", Status::name);
            let reason = context_of(&error);
            anyhow!("the server has no statistics {group:?} ({status}): {reason}")
        }
        _ => explain(error),
    }
}

/// What the server says about it, if it does.
fn context_of(error: &ClientError) -> String {
    let ClientError::Refused { context, .. } = error else { return String::new() };
    let said = said_context(context.trim_start_matches(": "));
    said.unwrap_or_else(|| "see settee stats --help".to_owned())
}

/// What the body of a refusal says about it, if it does.
pub(crate) fn said_context(body: &str) -> Option<String> {
    let json: Value = serde_json::from_str(body).ok()?;
    json.pointer("/error/context")?.as_str().map(str::to_owned)
}

fn to_lines(statistics: &[(String, String)]) -> String {
    statistics.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

fn to_json(statistics: Vec<(String, String)>) -> String {
    let members = statistics.into_iter().map(|(name, value)| (name, Value::String(value)));
    format!("{}\n", Value::Object(members.collect::<Map<_, _>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_the_general_group() {
        #[derive(clap::Parser)]
        struct Tool {
            #[command(flatten)]
            stats: StatsArguments,
        }
        for (words, group) in [
            (&[][..], ""),
            (&["all"], ""),
            (&["vbucket-details", "17"], "vbucket-details 17"),
            (&["all", "17"], "all 17"),
        ] {
            let words = [&["stats"], words].concat();
            let tool = <Tool as clap::Parser>::parse_from(&words);
            assert_eq!(group_of(&tool.stats), group, "{words:?}");
        }
    }

    #[test]
    fn lines_and_json_say_the_same() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let statistics = vec![pair("uptime", "12"), pair("vb_1", "active"), pair("empty", "")];
        assert_eq!(to_lines(&statistics), "uptime 12\nvb_1 active\nempty \n");
        assert_eq!(to_json(statistics), "{\"empty\":\"\",\"uptime\":\"12\",\"vb_1\":\"active\"}\n");
    }
}
