//! `settee hot-keys`: the documents that are asked for most.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use client::Connection;
use platform::Clock;
use serde::Deserialize;
use serde_json::json;

use crate::output::{note, print};
use crate::output_format::OutputFormat;
use crate::pause::pause;
use crate::printable::escaped;
use crate::property;
use crate::server_arguments::ServerArguments;
use crate::stats::explain_group;
use crate::table::Table;

const GROUP: &str = "hot-keys";
/// The property that begins a sampling, of so many seconds.
const SAMPLE_SECONDS: &str = "hot_keys.sample_seconds";
/// How many requests were counted.
const COUNTED: &str = "hot_keys_counted";
/// Statistics of the group that are documents begin so.
const HOT: &str = "hot_";

/// Samples for a while which documents of a running node are asked for most
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct HotKeysArguments {
    /// How long
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Show so many documents
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// How they are shown: for people, or one JSON object a line
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Table)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArguments,
}

const HELP: &str = "\
One of eight requests of the binary protocol is counted, while this tool runs and not otherwise. The
node counts at most 256 keys a front-end thread: where more are asked for, small numbers are
estimates and the largest are right.

Examples:
  settee hot-keys --password secret
  settee hot-keys --for 30 --limit 5 --bucket travel -P secret";

/// A document that is asked for often.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Hot {
    pub(crate) key: String,
    /// Of the requests that were counted.
    pub(crate) count: u64,
}

/// What was asked for most, and how many requests were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sampled {
    pub(crate) hot: Vec<Hot>,
    pub(crate) counted: u64,
}

/// Runs the tool.
pub fn run(arguments: &HotKeysArguments) -> anyhow::Result<ExitCode> {
    let (_, mut connection) = arguments.server.target()?.connect()?;
    let sampled = sample(&mut connection, arguments.seconds)?;
    print(&match arguments.output {
        OutputFormat::Table => sampled.to_table(arguments.limit),
        OutputFormat::Json => sampled.to_lines(arguments.limit),
    })?;
    if sampled.counted == 0 {
        note("settee: no request about a document came meanwhile\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// Has a node sample for so many seconds, and asks it what it has found.
pub(crate) fn sample(connection: &mut Connection, seconds: u64) -> anyhow::Result<Sampled> {
    property::set(connection, SAMPLE_SECONDS, seconds)?;
    pause(&Clock::real(), Duration::from_secs(seconds));
    let told = connection.statistics(GROUP).map_err(|error| explain_group(error, GROUP))?;
    Sampled::parse(&told)
}

impl Sampled {
    fn parse(statistics: &[(String, String)]) -> anyhow::Result<Self> {
        let mut sampled = Self::default();
        for (name, value) in statistics {
            let is_numbered =
                name.strip_prefix(HOT).is_some_and(|rest| rest.parse::<usize>().is_ok());
            if name == COUNTED {
                sampled.counted = value.parse().context("a count is a number")?;
            } else if is_numbered {
                let hot = serde_json::from_str(value);
                sampled.hot.push(hot.context("the node tells of hot documents in another form")?);
            }
        }
        Ok(sampled)
    }

    pub(crate) fn to_table(&self, limit: usize) -> String {
        let mut table = Table::new(&["SHARE", "COUNTED", "KEY"]);
        for Hot { key, count } in self.hot.iter().take(limit) {
            let share = 100.0 * *count as f64 / self.counted.max(1) as f64;
            let row = [format!("{share:.1}%"), count.to_string(), escaped(key.as_bytes())];
            table.push(row.to_vec());
        }
        table.to_string()
    }

    fn to_lines(&self, limit: usize) -> String {
        let counted = self.counted;
        let line = |Hot { key, count }: &Hot| {
            format!("{}\n", json!({"key": key, "count": count, "counted": counted}))
        };
        self.hot.iter().take(limit).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_shown_with_their_share_of_what_was_counted() {
        let told = [
            ("hot_keys_sampling", "0"),
            ("hot_keys_counted", "8"),
            ("hot_keys_sampled_every", "8"),
            ("hot_0", "{\"key\": \"a\\n\", \"count\": 6}"),
            ("hot_1", "{\"key\": \"b\", \"count\": 1}"),
        ];
        let told = told.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let sampled = Sampled::parse(&told).unwrap();
        let expected = "SHARE  COUNTED  KEY\n75.0%  6        a\\n\n";
        assert_eq!(sampled.to_table(1), expected);
        assert_eq!(sampled.to_lines(9).lines().count(), 2);
        assert!(Sampled::parse(&[("hot_0".to_owned(), "?".to_owned())]).is_err());
    }
}
