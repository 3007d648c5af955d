//! `settee set-log-level`: which lines a running node logs.

use std::process::ExitCode;

use serde_json::Value;

use crate::node_arguments::NodeArguments;
use crate::table::Table;

const PATH: &str = "/settee/logLevel";
/// The field that says it.
const FILTER: &str = "filter";

/// Has a running node log other lines, until it stops
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct SetLogLevelArguments {
    /// error, warn, info, debug, trace, or filters by module with commas between them; what holds
    /// now is shown when it is left out
    filter: Option<String>,
    #[command(flatten)]
    node: NodeArguments,
}

const HELP: &str = "\
Modules are the crates of the node, and files in them: bucket, server, replication, storage,
management, bucket::disk and so on. It holds until the node stops; --log-level of serve holds from
start to start.

Examples:
  settee set-log-level --password secret
  settee set-log-level debug -P secret
  settee set-log-level bucket::disk=trace,replication=debug,info -P secret";

/// Runs the tool.
pub fn run(arguments: &SetLogLevelArguments) -> anyhow::Result<ExitCode> {
    let SetLogLevelArguments { filter, node } = arguments;
    let (port, _) = node.find()?;
    match filter {
        Some(filter) => node.accept(&port, port.post(PATH, &[(FILTER, filter.as_str())])?)?,
        None => node.show(&port, PATH, table)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(answer: &Value) -> Table {
    let filter = answer.get(FILTER).and_then(Value::as_str).unwrap_or("-");
    let mut table = Table::new(&["FILTER"]);
    table.push(vec![filter.to_owned()]);
    table
}
