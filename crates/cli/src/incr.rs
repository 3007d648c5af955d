//! `settee incr`: add to a counter.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use platform::Clock;
use protocol::client::{Request, counter_extras};
use protocol::{Opcode, Status};
use serde_json::Value;

use crate::document_tool::{DocumentOrder, Documents, cas_text, expiry_in, refused, write_json};
use crate::output_format::OutputFormat;

/// Adds to a counter, and shows it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct IncrOrder {
    /// The counter's key
    key: String,
    /// What is added; a negative number is taken away, down to 0
    #[arg(default_value_t = 1, allow_negative_numbers = true)]
    delta: i128,
    /// What a counter begins with that is not there yet
    #[arg(long, value_name = "N")]
    initial: Option<u64>,
    /// Seconds until a counter that begins is deleted by itself; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0, requires = "initial")]
    expiry: u32,
}

const HELP: &str = "\
A counter is a document whose body is a decimal number, below 2^64.
Exit code: 0 when there is such a counter now, 1 otherwise.

Examples:
  settee incr visits --initial 1 --password secret
  settee incr visits 10 -P secret
  settee incr stock::7 -1 -P secret";

impl DocumentOrder for IncrOrder {
    fn carry_out(
        &self,
        documents: &mut Documents,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let opcode = if self.delta < 0 { Opcode::Decrement } else { Opcode::Increment };
        let delta = u64::try_from(self.delta.unsigned_abs());
        let delta = delta.context("what is added is below 2^64")?;
        let create_expiry = self.initial.map(|_| expiry_in(&Clock::real(), self.expiry));
        let extras = counter_extras(delta, self.initial.unwrap_or(0), create_expiry);
        let answer =
            documents.call(&self.key, &Request { extras: &extras, ..Request::new(opcode) })?;
        match answer.status() {
            Some(Status::Success) => {}
            Some(Status::KeyEnoent) => return Ok(documents.not_found(&self.key)),
            Some(Status::DeltaBadval) => {
                bail!("{:?} is no counter: its body is no decimal number below 2^64", self.key)
            }
            _ => return Err(refused(&self.key, &answer)),
        }
        let number = answer.view().counter().context("the server answers with no number")?;
        if documents.format == OutputFormat::Json {
            let key = Value::from(self.key.as_str());
            let members = [("key", key), ("cas", cas_text(answer.cas())), ("value", number.into())];
            write_json(members, out)?;
        } else {
            writeln!(out, "{number}")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
