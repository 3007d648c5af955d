//! `settee why-slow`: operations that took long, and where their time went.

use std::process::ExitCode;

use anyhow::Context;
use client::Connection;
use serde::Deserialize;

use crate::backup::dates;
use crate::histogram_table::duration_text;
use crate::output::print;
use crate::output_format::OutputFormat;
use crate::printable::escaped;
use crate::property;
use crate::server_arguments::ServerArguments;
use crate::stats::explain_group;
use crate::table::Table;

const GROUP: &str = "slow-operations";
/// Statistics of the group that are operations begin so.
const OPERATION: &str = "slow_";
/// Operations that are shown unless somebody says otherwise.
const LIMIT_DEFAULT: usize = 20;
const NANOS_PER_MICRO: u64 = 1000;
/// A part of an operation's time that is worth a word, in percent.
const SHOWN_PERCENT_MIN: u64 = 1;

/// Shows what took long on a running node, and where the time went
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct WhySlowArguments {
    /// From now on a command is slow from so many milliseconds on: GET=20, or all=20
    #[arg(long = "set", value_name = "COMMAND=MS", value_parser = parse_threshold)]
    thresholds: Vec<(String, u64)>,
    /// Show so many operations, the newest ones
    #[arg(long, value_name = "N", default_value_t = LIMIT_DEFAULT)]
    limit: usize,
    /// How they are shown: for people, or one JSON object a line
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Table)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArguments,
}

const HELP: &str = "\
A node keeps the newest slow operations of each bucket in memory, and logs one a second. Commands on
documents are slow from 100 ms on, most others from 500 ms on; --set changes that until the node
stops.

Where the time went:
  queue        behind requests of the same connection that had come before; not a part of TOOK
  lock         for the vBucket, which another request or task had
  fetch        for what was read from the file, because it was not in memory
  journal      for writes to be durable on this node
  replication  for the end of a durable write: the disks and nodes that its level names
  task         for work in the background, such as a scan or a flush
  work         the rest: the work itself, or the wait for a CPU

Examples:
  settee why-slow --password secret
  settee why-slow --set GET=5 --set SET=5 -P secret
  settee why-slow -o json --bucket travel -P secret | jq 'select(.fetch_us > 1000)'";

/// A slow operation as the node tells it. Durations are microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Operation {
    ended_at_ms: u64,
    command: String,
    key: String,
    client: String,
    took_us: u64,
    queue_us: u64,
    lock_us: u64,
    fetch_us: u64,
    journal_us: u64,
    replication_us: u64,
    task_us: u64,
}

/// Runs the tool.
pub fn run(arguments: &WhySlowArguments) -> anyhow::Result<ExitCode> {
    let (_, mut connection) = arguments.server.target()?.connect()?;
    for (command, threshold_ms) in &arguments.thresholds {
        property::set(&mut connection, &format!("slow_ms.{command}"), *threshold_ms)?;
    }
    let told = ask(&mut connection, arguments.limit)?;
    if arguments.output == OutputFormat::Json {
        print(&told.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&explained(&parse(&told)?))?;
    Ok(ExitCode::SUCCESS)
}

/// What a node tells of its newest slow operations, for people.
pub(crate) fn told(connection: &mut Connection) -> anyhow::Result<String> {
    Ok(explained(&parse(&ask(connection, LIMIT_DEFAULT)?)?))
}

/// The newest slow operations, each as the node's JSON.
fn ask(connection: &mut Connection, limit: usize) -> anyhow::Result<Vec<String>> {
    let told = connection.statistics(GROUP).map_err(|error| explain_group(error, GROUP))?;
    let told = told.into_iter().filter(|(name, _)| name.starts_with(OPERATION));
    Ok(told.map(|(_, value)| value).take(limit).collect())
}

fn parse(told: &[String]) -> anyhow::Result<Vec<Operation>> {
    let parse = |text: &String| serde_json::from_str::<Operation>(text);
    let operations = told.iter().map(parse).collect::<Result<Vec<_>, _>>();
    operations.context("the node tells of slow operations in another form")
}

fn parse_threshold(text: &str) -> anyhow::Result<(String, u64)> {
    let (command, milliseconds) = text.split_once('=').context("say COMMAND=MILLISECONDS")?;
    let milliseconds = milliseconds.parse().context("milliseconds are a number")?;
    let all = "all";
    let is_all = command.eq_ignore_ascii_case(all);
    let command = if is_all { all.to_owned() } else { command.to_ascii_uppercase() };
    Ok((command, milliseconds))
}

/// The operations, and what to do about what most of their time went for.
fn explained(operations: &[Operation]) -> String {
    if operations.is_empty() {
        return "nothing was slow; --set tells the node from when on something is\n".to_owned();
    }
    let mut table = Table::new(&["ENDED", "COMMAND", "TOOK", "WHERE", "KEY", "CLIENT"]);
    for operation in operations {
        table.push(vec![
            dates::readable(operation.ended_at_ms / 1000),
            operation.command.clone(),
            duration_text(operation.took_us.saturating_mul(NANOS_PER_MICRO)),
            operation.in_words(),
            escaped(operation.key.as_bytes()),
            operation.client.clone(),
        ]);
    }
    format!("{table}\n{}", advice(operations))
}

impl Operation {
    /// What it waited for, and the rest.
    fn parts(&self) -> [(&'static str, u64); 7] {
        let waited =
            [self.lock_us, self.fetch_us, self.journal_us, self.replication_us, self.task_us];
        let work_us = self.took_us.saturating_sub(waited.iter().sum());
        let [lock_us, fetch_us, journal_us, replication_us, task_us] = waited;
        [
            ("queue", self.queue_us),
            ("lock", lock_us),
            ("fetch", fetch_us),
            ("journal", journal_us),
            ("replication", replication_us),
            ("task", task_us),
            ("work", work_us),
        ]
    }

    fn in_words(&self) -> String {
        let whole = self.took_us.saturating_add(self.queue_us).max(1);
        let mut parts = self.parts();
        parts.sort_by_key(|(_, micros)| std::cmp::Reverse(*micros));
        let shown = parts.iter().map(|(name, micros)| (name, micros.saturating_mul(100) / whole));
        let shown = shown.filter(|(_, percent)| *percent >= SHOWN_PERCENT_MIN);
        shown.map(|(name, percent)| format!("{name} {percent}%")).collect::<Vec<_>>().join(" ")
    }
}

/// What most of the time of all of them went for, and what helps against that.
fn advice(operations: &[Operation]) -> String {
    let mut sums = Operation::default().parts().map(|(name, _)| (name, 0_u64));
    for operation in operations {
        for (sum, (_, micros)) in sums.iter_mut().zip(operation.parts()) {
            sum.1 = sum.1.saturating_add(micros);
        }
    }
    let whole: u64 = sums.iter().map(|(_, micros)| micros).sum();
    let (name, most) = sums.iter().max_by_key(|(_, micros)| *micros).copied().unwrap_or_default();
    let percent = most.saturating_mul(100) / whole.max(1);
    format!("{percent} % of the time of these went for {name}: {}\n", what_helps(name))
}

fn what_helps(part: &str) -> &'static str {
    match part {
        "queue" => {
            "clients send many requests at once over one connection; more connections, or smaller \
             batches help"
        }
        "lock" => {
            "many want documents of one vBucket, or one document; settee hot-keys shows which"
        }
        "fetch" => {
            "values are not in memory; settee stats memory shows how much there is, settee bucket \
             edit gives the bucket more, and settee timings bg_load shows the disk"
        }
        "journal" => "the disk is slow to make writes durable; settee timings disk_commit shows it",
        "replication" => {
            "the disks and nodes that durable writes wait for are slow; settee stats dcp shows the \
             nodes, settee timings disk_commit the disk here"
        }
        "task" => "tasks wait for threads; settee stats scheduler and settee stats tasks show them",
        _ => "the node lacks CPU, or values are large; settee top shows what it does",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn operation(value: Value) -> Operation {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_largest_part_is_named_first_and_what_is_left_is_work() {
        let slow = operation(json!({"took_us": 900, "queue_us": 100, "fetch_us": 700,
            "lock_us": 50, "unknown": 1}));
        assert_eq!(slow.in_words(), "fetch 70% work 15% queue 10% lock 5%");
        assert_eq!(operation(json!({"took_us": 7})).in_words(), "work 100%");
        assert_eq!(operation(json!({})).in_words(), "");
    }

    #[test]
    fn what_helps_is_said_of_what_took_most_of_all() {
        let slow = [
            operation(json!({"took_us": 900, "lock_us": 800})),
            operation(json!({"took_us": 5000, "fetch_us": 4000, "key": "a\nb"})),
        ];
        let said = explained(&slow);
        assert!(said.ends_with("shows the disk\n"), "{said}");
        assert!(said.contains("67 % of the time of these went for fetch"), "{said}");
        assert!(said.contains("a\\nb"), "{said}");
        assert!(explained(&[]).starts_with("nothing was slow"));
    }

    #[test]
    fn a_threshold_is_a_commands_name_and_milliseconds() {
        assert_eq!(parse_threshold("get=5").unwrap(), ("GET".to_owned(), 5));
        assert_eq!(parse_threshold("ALL=0").unwrap(), ("all".to_owned(), 0));
        for wrong in ["GET", "GET=", "GET=x"] {
            assert!(parse_threshold(wrong).is_err(), "{wrong}");
        }
    }
}
