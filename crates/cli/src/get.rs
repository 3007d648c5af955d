//! `settee get`: one document.

use std::io::Write;
use std::process::ExitCode;

use protocol::client::Request;
use protocol::{Opcode, Status};
use serde_json::Value;

use crate::document_tool::{DocumentOrder, Documents, bytes_member, cas_text, refused, write_json};
use crate::output_format::OutputFormat;

/// Shows a document
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct GetOrder {
    /// The document's key
    key: String,
}

const HELP: &str = "\
The document's bytes go to standard output as they are; on a terminal a line break follows them.
Exit code: 0 when there is such a document, 1 otherwise.

Examples:
  settee get user::1 --password secret
  settee get photo --bucket travel --collection shop.pictures -P secret > photo.jpg
  settee get user::1 -o json -P secret | jq -r .cas";

impl DocumentOrder for GetOrder {
    fn carry_out(
        &self,
        documents: &mut Documents,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let answer = documents.call(&self.key, &Request::new(Opcode::Get))?;
        match answer.status() {
            Some(Status::Success) => {}
            Some(Status::KeyEnoent) => return Ok(documents.not_found(&self.key)),
            _ => return Err(refused(&self.key, &answer)),
        }
        if documents.format == OutputFormat::Json {
            let flags = answer.view().flags().map_or(0, u32::from_be_bytes);
            let members = [
                ("key".to_owned(), Value::from(self.key.as_str())),
                ("cas".to_owned(), cas_text(answer.cas())),
                ("flags".to_owned(), flags.into()),
                bytes_member("value", answer.value()),
            ];
            write_json(members, out)?;
        } else {
            out.write_all(answer.value())?;
            if documents.ends_lines && !answer.value().ends_with(b"\n") {
                out.write_all(b"\n")?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
