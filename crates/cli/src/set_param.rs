//! `settee set-param`: change a parameter of a running node's bucket.

use std::process::ExitCode;

use anyhow::bail;
use client::status_name;
use protocol::client::Request;
use protocol::{Opcode, Status};
use serde_json::json;

use crate::output::print;
use crate::output_format::OutputFormat;
use crate::server_arguments::{ServerArguments, explain};
use crate::stats::said_context;

/// The group of the bucket's configuration. The server finds a parameter by its name alone.
const GROUP: u32 = 6;

/// Changes a parameter of a running node, until it stops
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct SetParamArguments {
    /// The parameter
    name: String,
    /// Its new value
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// How the answer is shown
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Table)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArguments,
}

const HELP: &str = "\
A parameter holds until the node stops; settings of serve hold from start to start. An unknown name
is answered with those that there are; settee stats config shows most values, as ep_ and the name.

Examples:
  settee set-param max_size 536870912 --password secret
  settee set-param mem_high_wat_percent 0.9 --bucket travel -P secret
  settee set-param num_writer_threads 8 -P secret";

/// Runs the tool.
pub fn run(arguments: &SetParamArguments) -> anyhow::Result<ExitCode> {
    let SetParamArguments { name, value, output, server } = arguments;
    let (_, mut connection) = server.target()?.connect()?;
    let answer = connection.call(&Request {
        extras: &GROUP.to_be_bytes(),
        key: name.as_bytes(),
        value: value.as_bytes(),
        ..Request::new(Opcode::SetParam)
    });
    let answer = answer.map_err(explain)?;
    let said = said_context(&String::from_utf8_lossy(answer.value())).unwrap_or_default();
    match answer.status() {
        Some(Status::Success) if *output == OutputFormat::Json => {
            print(&format!("{}\n", json!({"name": name, "value": value})))?;
        }
        Some(Status::Success) => {}
        Some(Status::Einval) => bail!("{name} is not set to {value:?}: {said}"),
        Some(Status::Eaccess) => {
            bail!("log in as an administrator of the node: --user and --password")
        }
        Some(Status::NoBucket) => bail!("name the bucket that it is of: --bucket"),
        _ => {
            let status = status_name(answer.view().status_code);
            bail!("{name} is not set to {value:?}: {status} {said}; see the node's log")
        }
    }
    Ok(ExitCode::SUCCESS)
}
