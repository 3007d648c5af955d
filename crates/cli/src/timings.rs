//! `settee timings`: the server's histograms, drawn.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use client::Connection;
use serde_json::{Map, Value};

use crate::histogram_table::{HistogramTable, Row, Unit};
use crate::output::print;
use crate::server_arguments::ServerArguments;
use crate::stats::explain_group;

/// Columns when nobody looks at a terminal.
pub(crate) const COLUMNS_DEFAULT: u16 = 100;

/// Draws a server's histograms: how long its background work takes
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct TimingsArguments {
    /// Which histograms; all that are not empty when left out
    pub histograms: Vec<String>,
    /// One JSON object instead of drawings
    #[arg(long)]
    pub json: bool,
    /// Which server
    #[command(flatten)]
    pub server: ServerArguments,
}

const HELP: &str = "\
Each row is a range of durations: the share of all events up to its end, the number of events in
it, and a bar. Rows end where another 5 % of the events are reached, above 95 % where half of the
rest is.

Examples:
  settee timings --user Administrator --password password
  settee timings disk_commit storage_age
  settee timings --json bg_wait";

/// Runs the tool.
pub fn run(arguments: &TimingsArguments) -> anyhow::Result<ExitCode> {
    let (_, mut connection) = arguments.server.target()?.connect()?;
    let statistics =
        connection.statistics("timings").map_err(|error| explain_group(error, "timings"))?;
    let chosen = choose(parse(&statistics), &arguments.histograms)?;
    let text = if arguments.json {
        let members = chosen.iter().map(|(name, table)| (name.clone(), table.to_json()));
        format!("{}\n", Value::Object(members.collect::<Map<_, _>>()))
    } else {
        draw(&chosen)
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A bucket's histograms, drawn: those of these names, or all that are not empty.
pub(crate) fn drawn(connection: &mut Connection, names: &[String]) -> anyhow::Result<String> {
    let statistics =
        connection.statistics("timings").map_err(|error| explain_group(error, "timings"))?;
    Ok(draw(&choose(parse(&statistics), names)?))
}

fn draw(chosen: &[(String, HistogramTable)]) -> String {
    let columns = platform::terminal::stdout_columns().unwrap_or(COLUMNS_DEFAULT);
    let draw = |(name, table): &(String, HistogramTable)| table.render(name, columns.into());
    chosen.iter().map(draw).collect::<Vec<_>>().join("\n")
}

type Tables = BTreeMap<String, HistogramTable>;

/// Reads the wire form: `<name>_<low>,<high>` is a count, `<name>_mean` the mean.
fn parse(statistics: &[(String, String)]) -> Tables {
    let mut histograms: BTreeMap<&str, (Vec<Row>, u64)> = BTreeMap::new();
    for (key, value) in statistics {
        if let Some(name) = key.strip_suffix("_mean") {
            // Servers print it with or without decimals.
            let mean = value.parse::<f64>().map_or(0, |mean| mean.round() as u64);
            histograms.entry(name).or_default().1 = mean;
        } else if let Some((name, row)) = parse_row(key, value) {
            histograms.entry(name).or_default().0.push(row);
        }
    }
    let table = |(name, (rows, mean)): (&str, (Vec<Row>, u64))| {
        (name.to_owned(), HistogramTable::new(unit_of(name), rows, mean))
    };
    histograms.into_iter().map(table).collect()
}

pub(crate) fn parse_row<'a>(key: &'a str, value: &str) -> Option<(&'a str, Row)> {
    let (name, bounds) = key.rsplit_once('_')?;
    let (low, high) = bounds.split_once(',')?;
    let row = Row { low: low.parse().ok()?, high: high.parse().ok()?, count: value.parse().ok()? };
    Some((name, row))
}

/// Histograms are of microseconds, except those whose names say that they count something.
fn unit_of(name: &str) -> Unit {
    let name = name.to_ascii_lowercase();
    let counts = ["size", "sizes", "count", "ratio", "seek", "doc"];
    if counts.iter().any(|ending| name.ends_with(ending)) {
        Unit::Plain
    } else {
        Unit::Microseconds
    }
}

/// All that are not empty, or those that were asked for in that order.
fn choose(mut tables: Tables, names: &[String]) -> anyhow::Result<Vec<(String, HistogramTable)>> {
    if names.is_empty() {
        return Ok(tables.into_iter().filter(|(_, table)| table.total() > 0).collect());
    }
    let known = tables.keys().cloned().collect::<Vec<_>>().join(" ");
    let mut chosen = Vec::new();
    for name in names {
        match tables.remove(name) {
            Some(table) => chosen.push((name.clone(), table)),
            None if chosen.iter().any(|(chosen, _)| chosen == name) => {}
            None if known.is_empty() => bail!("the server has no histograms yet"),
            None => bail!("there is no histogram {name}; there are: {known}"),
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics() -> Vec<(String, String)> {
        [
            ("disk_commit_100,200", "3"),
            ("disk_commit_200,400", "1"),
            ("disk_commit_mean", "187.5"),
            ("bg_batch_size_1,2", "7"),
            ("bg_batch_size_mean", "1"),
            ("idle_mean", "0"),
            ("malformed_1,x", "1"),
            ("other", "12"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    #[test]
    fn the_wire_form_is_understood() {
        let tables = parse(&statistics());
        let names: Vec<_> = tables.keys().map(String::as_str).collect();
        assert_eq!(names, ["bg_batch_size", "disk_commit", "idle"]);
        let rows =
            vec![Row { low: 100, high: 200, count: 3 }, Row { low: 200, high: 400, count: 1 }];
        let expected = HistogramTable::new(Unit::Microseconds, rows, 188);
        assert_eq!(tables["disk_commit"], expected);
        let expected = HistogramTable::new(Unit::Plain, vec![Row { low: 1, high: 2, count: 7 }], 1);
        assert_eq!(tables["bg_batch_size"], expected);
    }

    #[test]
    fn empty_ones_are_shown_only_when_asked_for_and_unknown_ones_are_an_error() {
        let names = |asked: &[&str]| {
            let asked: Vec<_> = asked.iter().map(|name| (*name).to_owned()).collect();
            let chosen = choose(parse(&statistics()), &asked)?;
            anyhow::Ok(chosen.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["bg_batch_size", "disk_commit"]);
        assert_eq!(names(&["idle", "disk_commit", "idle"]).unwrap(), ["idle", "disk_commit"]);
        let error = names(&["nonsense"]).unwrap_err().to_string();
        let expected = "there is no histogram nonsense; there are: bg_batch_size disk_commit idle";
        assert_eq!(error, expected);
    }
}
