//! `settee set`: write one document.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use document::Datatype;
use document::datatype::is_json;
use document::limits::VALUE_SIZE_MAX;
use platform::Clock;
use protocol::client::{Request, store_extras};
use protocol::frame_info::DurabilityRequirement;
use protocol::request::StoreExtras;
use protocol::{Feature, FrameInfos, Opcode, Status};

use crate::document_tool::{DocumentOrder, Documents, expiry_in, refused};
use crate::load::Durability;

/// What SDKs agree to say of a body in a document's flags: JSON, text, or bytes.
const FLAGS_JSON: u32 = 0x0200_0000;
const FLAGS_TEXT: u32 = 0x0400_0000;
const FLAGS_BYTES: u32 = 0x0300_0000;

/// Writes a document
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct SetOrder {
    /// The document's key
    key: String,
    /// Its body; what standard input says when it is left out
    #[arg(allow_negative_numbers = true)]
    value: Option<String>,
    /// Seconds until it is deleted by itself; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    expiry: u32,
    /// Only if there is no such document yet
    #[arg(long, conflicts_with_all = ["replace", "cas"])]
    add: bool,
    /// Only if there is such a document
    #[arg(long)]
    replace: bool,
    /// Only if the document still has this version, as `settee get -o json` shows it
    #[arg(long, value_name = "CAS")]
    cas: Option<u64>,
    /// What has to hold the write before it is answered
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Durability::None)]
    durability: Durability,
}

const HELP: &str = "\
The flags tell SDKs what the body is: JSON, another text, or bytes.
Exit code: 0 when it was written, 1 otherwise.

Examples:
  settee set user::1 '{\"name\": \"Ann\"}' --password secret
  settee set photo --expiry 3600 -P secret < photo.jpg
  settee set user::1 '{}' --cas 1732000000000000000 -P secret
  settee set user::1 '{}' --durability majority -P secret";

impl DocumentOrder for SetOrder {
    fn carry_out(
        &self,
        documents: &mut Documents,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        let value = self.value()?;
        let durability = self.requirement(documents)?;
        let is_json = is_json(&value);
        let flags = flags_of(&value, is_json).to_be_bytes();
        let expiry = expiry_in(&Clock::real(), self.expiry);
        let has_datatypes = documents.has(Feature::Json);
        let datatype = if is_json && has_datatypes { Datatype::JSON } else { Datatype::RAW };
        let request = Request {
            cas: self.cas.unwrap_or(0),
            datatype: datatype.bits(),
            infos: FrameInfos { durability, ..FrameInfos::default() },
            extras: &store_extras(StoreExtras { flags, expiry }),
            value: &value,
            ..Request::new(self.opcode())
        };
        let answer = documents.call(&self.key, &request)?;
        match answer.status() {
            Some(Status::Success) => documents.show_change(&self.key, &answer, out),
            Some(Status::KeyEexists) if self.add => bail!("there is a document {:?}", self.key),
            Some(Status::KeyEexists) if self.cas.is_some() => {
                bail!("{:?} has another version; settee get -o json shows it", self.key)
            }
            Some(Status::KeyEnoent) => Ok(documents.not_found(&self.key)),
            _ => Err(refused(&self.key, &answer)),
        }
    }
}

impl SetOrder {
    /// Whether the body is what standard input says.
    pub(crate) fn wants_standard_input(&self) -> bool {
        self.value.is_none()
    }

    fn opcode(&self) -> Opcode {
        match (self.add, self.replace) {
            (true, _) => Opcode::Add,
            (false, true) => Opcode::Replace,
            (false, false) => Opcode::Set,
        }
    }

    fn value(&self) -> anyhow::Result<Cow<'_, [u8]>> {
        let value = match &self.value {
            Some(text) => Cow::Borrowed(text.as_bytes()),
            None => {
                let mut bytes = Vec::new();
                let most = u64::try_from(VALUE_SIZE_MAX).unwrap_or(u64::MAX).saturating_add(1);
                let read = io::stdin().lock().take(most).read_to_end(&mut bytes);
                read.context("standard input cannot be read")?;
                Cow::Owned(bytes)
            }
        };
        let size = value.len();
        ensure!(size <= VALUE_SIZE_MAX, "a document has at most {VALUE_SIZE_MAX} bytes");
        Ok(value)
    }

    fn requirement(&self, documents: &Documents) -> anyhow::Result<Option<DurabilityRequirement>> {
        let Some(level) = self.durability.level() else { return Ok(None) };
        let is_known = documents.has(Feature::SyncReplication);
        ensure!(is_known, "the server knows no durable writes; leave out --durability");
        Ok(Some(DurabilityRequirement { level, timeout_ms: None }))
    }
}

fn flags_of(value: &[u8], is_json: bool) -> u32 {
    match std::str::from_utf8(value) {
        _ if is_json => FLAGS_JSON,
        Ok(_) => FLAGS_TEXT,
        Err(_) => FLAGS_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_what_a_body_is() {
        for (value, expected) in [
            (&b"{\"a\": 1}"[..], FLAGS_JSON),
            (b"12", FLAGS_JSON),
            (b"hello", FLAGS_TEXT),
            (b"", FLAGS_TEXT),
            (b"\xff\x00", FLAGS_BYTES),
        ] {
            assert_eq!(flags_of(value, is_json(value)), expected, "{value:?}");
        }
    }
}
