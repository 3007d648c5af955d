//! What the tools that administer a running node share: which node, and how answers are shown.

use serde_json::{Value, json};

use crate::node_port::NodePort;
use crate::output::print;
use crate::output_format::OutputFormat;
use crate::server_arguments::ServerArguments;
use crate::table::Table;

/// Which node is administered, and how its answers are shown.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NodeArguments {
    /// How answers are shown: as the node's JSON, or for people
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Table)]
    output: OutputFormat,
    /// The node's REST port, as http://HOST:8091 [default: what the data port tells]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    management: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

impl NodeArguments {
    /// The node's REST port, and the bucket that is said or else `default`.
    pub(crate) fn find(&self) -> anyhow::Result<(NodePort, String)> {
        NodePort::find(&self.server, self.management.as_deref())
    }

    /// Shows what the node answers to a question.
    pub(crate) fn show(
        &self,
        port: &NodePort,
        path: &str,
        table_of: impl FnOnce(&Value) -> Table,
    ) -> anyhow::Result<()> {
        let text = port.get(path)?.read_to_string()?;
        match self.output {
            OutputFormat::Json => print(&format!("{text}\n")),
            OutputFormat::Table => print(&table_of(&serde_json::from_str(&text)?).to_string()),
        }
    }

    /// Takes the answer to a change: programs hear what the node has said, people nothing.
    pub(crate) fn accept(&self, port: &NodePort, answer: (u16, Value)) -> anyhow::Result<()> {
        let said = port.accept(answer)?;
        match self.output {
            OutputFormat::Table => Ok(()),
            // Most answers have no body.
            OutputFormat::Json if said.is_object() => print(&format!("{said}\n")),
            OutputFormat::Json => print(&format!("{}\n", json!({}))),
        }
    }
}
