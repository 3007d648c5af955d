//! `settee delete`: remove documents.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use protocol::client::Request;
use protocol::{Opcode, Status};

use crate::document_tool::{DocumentOrder, Documents, refused};

/// Removes documents
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct DeleteOrder {
    /// The documents' keys
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// Only if the document still has this version, as `settee get -o json` shows it
    #[arg(long, value_name = "CAS", default_value_t = 0, hide_default_value = true)]
    cas: u64,
}

const HELP: &str = "\
Exit code: 0 when all of them were there and are gone, 1 otherwise.

Examples:
  settee delete user::1 user::2 --password secret
  settee delete user::1 --cas 1732000000000000000 -P secret
  settee scan session:: -P secret | xargs settee delete -P secret";

impl DocumentOrder for DeleteOrder {
    fn carry_out(
        &self,
        documents: &mut Documents,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        if self.cas != 0 && self.keys.len() > 1 {
            bail!("--cas is of one document, not of {}", self.keys.len());
        }
        let mut code = ExitCode::SUCCESS;
        for key in &self.keys {
            let request = Request { cas: self.cas, ..Request::new(Opcode::Delete) };
            let answer = documents.call(key, &request)?;
            match answer.status() {
                Some(Status::Success) => {
                    documents.show_change(key, &answer, out)?;
                }
                Some(Status::KeyEnoent) => code = documents.not_found(key),
                Some(Status::KeyEexists) => {
                    bail!("{key:?} has another version; settee get -o json shows it")
                }
                _ => return Err(refused(key, &answer)),
            }
        }
        Ok(code)
    }
}
