//! `settee touch`: give a document another expiry.

use std::io::Write;
use std::process::ExitCode;

use platform::Clock;
use protocol::client::Request;
use protocol::{Opcode, Status};

use crate::document_tool::{DocumentOrder, Documents, expiry_in, refused};

/// Gives a document another expiry
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct TouchOrder {
    /// The document's key
    key: String,
    /// Seconds until it is deleted by itself; 0: never
    seconds: u32,
}

const HELP: &str = "\
Exit code: 0 when there is such a document, 1 otherwise.

Examples:
  settee touch session::7 3600 --password secret
  settee touch session::7 0 -P secret";

impl DocumentOrder for TouchOrder {
    fn carry_out(
        &self,
        documents: &mut Documents,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let expiry = expiry_in(&Clock::real(), self.seconds).to_be_bytes();
        let request = Request { extras: &expiry, ..Request::new(Opcode::Touch) };
        let answer = documents.call(&self.key, &request)?;
        match answer.status() {
            Some(Status::Success) => documents.show_change(&self.key, &answer, out),
            Some(Status::KeyEnoent) => Ok(documents.not_found(&self.key)),
            _ => Err(refused(&self.key, &answer)),
        }
    }
}
