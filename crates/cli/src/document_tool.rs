//! What the tools on single documents share: which documents, and how answers are shown.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{ClusterClient, OwnedResponse, status_name};
use document::CollectionId;
use document::limits::KEY_SIZE_MAX;
use platform::{Clock, terminal};
use protocol::client::Request;
use protocol::{Feature, Status};
use serde_json::{Map, Value};

use crate::output::{note, with_stdout};
use crate::output_format::OutputFormat;
use crate::printable::as_text;
use crate::server_arguments::{ServerArguments, explain};
use crate::stats::said_context;

/// Seconds up to which the protocol takes an expiry as a time from now; behind it, as a date.
const RELATIVE_EXPIRY_MAX: u32 = 30 * 24 * 60 * 60;

/// An order on documents of a running server, and where these are.
#[derive(Clone, Debug, clap::Args)]
pub struct DocumentTool<O: clap::Args> {
    #[command(flatten)]
    order: O,
    #[command(flatten)]
    place: DocumentPlace,
}

/// Where documents are, and how they are shown.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DocumentPlace {
    /// The documents' collection [default: the bucket's default one]
    #[arg(short, long, value_name = "SCOPE.COLLECTION")]
    collection: Option<String>,
    /// How answers are shown: for people, or as JSON
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Table)]
    output: OutputFormat,
    #[command(flatten)]
    server: ServerArguments,
}

/// What is done with documents.
pub trait DocumentOrder {
    /// Does it, and writes what there is to say of it. The exit code tells whether everything was
    /// found that was meant.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    fn carry_out(&self, documents: &mut Documents, out: &mut dyn Write)
    -> anyhow::Result<ExitCode>;
}

/// The documents of one collection, over connections that are open.
pub struct Documents {
    client: ClusterClient,
    pub(crate) collection: CollectionId,
    pub(crate) format: OutputFormat,
    /// Whether a line break follows a body for people: on a terminal, and in a shell.
    pub(crate) ends_lines: bool,
}

impl<O: clap::Args + DocumentOrder> DocumentTool<O> {
    /// Runs the tool.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let mut documents = self.place.connect()?;
        with_stdout(|out| self.order.carry_out(&mut documents, out))
    }
}

impl DocumentPlace {
    /// Connects to the first node that answers, and finds the collection.
    pub(crate) fn connect(&self) -> anyhow::Result<Documents> {
        let target = self.server.target()?;
        let mut failure = None;
        for node in &target.nodes {
            match ClusterClient::connect(node, target.options.clone()) {
                Ok(client) => return Documents::new(client, self),
                Err(error) => failure = Some(error),
            }
        }
        Err(explain(failure.expect("there is a node")))
    }
}

impl Documents {
    fn new(client: ClusterClient, place: &DocumentPlace) -> anyhow::Result<Self> {
        let collection = CollectionId::DEFAULT;
        let mut documents = Self {
            client,
            collection,
            format: place.output,
            ends_lines: terminal::stdout_columns().is_some(),
        };
        if let Some(path) = &place.collection {
            documents.enter(path)?;
        }
        Ok(documents)
    }

    /// Goes on with the documents of another collection.
    pub(crate) fn enter(&mut self, path: &str) -> anyhow::Result<()> {
        let found = self.client.collection_id(path);
        self.collection = found.map_err(|error| match error.refusal() {
            Some(Status::UnknownCollection | Status::UnknownScope) => anyhow!(
                "the bucket has no collection {path}; settee collection list shows those it has"
            ),
            Some(Status::Einval) => anyhow!("--collection is SCOPE.COLLECTION, not {path}"),
            Some(Status::UnknownCommand | Status::NotSupported) => {
                anyhow!("the server knows no collections; leave --collection out")
            }
            _ => explain(error),
        })?;
        Ok(())
    }

    /// Sends a request about a document, whose key and vBucket are filled in.
    pub(crate) fn call(
        &mut self,
        key: &str,
        request: &Request<'_>,
    ) -> anyhow::Result<OwnedResponse> {
        let size = key.len();
        if size == 0 || size > KEY_SIZE_MAX {
            bail!("a key has 1 to {KEY_SIZE_MAX} bytes, not {size}");
        }
        self.client.call_in(self.collection, key.as_bytes(), request).map_err(explain)
    }

    /// The connections, for requests that are about no document.
    pub(crate) fn client(&mut self) -> &mut ClusterClient {
        &mut self.client
    }

    /// Whether the server has granted a feature.
    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.client.features().contains(feature)
    }

    /// Says that there is no such document, which is no error of the tool.
    pub(crate) fn not_found(&self, key: &str) -> ExitCode {
        note(&format!("settee: there is no document {key:?}\n"));
        ExitCode::FAILURE
    }

    /// Shows what programs hear of a change: the document's new version.
    pub(crate) fn show_change(
        &self,
        key: &str,
        answer: &OwnedResponse,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitCode> {
        if self.format == OutputFormat::Json {
            let members = [("key", Value::from(key)), ("cas", cas_text(answer.cas()))];
            write_json(members, out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What a node says of a vBucket that serves nothing until somebody decides.
const OUT_OF_SERVICE: &str = "the vBucket's file is damaged";

/// What a server refuses that is no outcome of its command, and what can be done about it.
pub(crate) fn refused(key: &str, answer: &OwnedResponse) -> anyhow::Error {
    let status = answer.status();
    let said = said_context(&String::from_utf8_lossy(answer.value()));
    let advice = advice(status, said.as_deref().unwrap_or_default());
    let said = said.or(status.map(|status| status.description().to_owned()));
    let code = answer.view().status_code;
    let reasons = [said.unwrap_or_default(), advice.to_owned()];
    let reasons: Vec<&str> =
        reasons.iter().map(String::as_str).filter(|reason| !reason.is_empty()).collect();
    anyhow!("{key:?}: {}: {}", status_name(code), reasons.join("; "))
}

/// What to do about it, where the node has `said` that of it.
fn advice(status: Option<Status>, said: &str) -> &'static str {
    match status {
        Some(Status::Eaccess) => "log in as a user with a role for it: --user and --password",
        Some(Status::NoBucket) => "name a bucket with --bucket",
        Some(Status::Locked) => "somebody has locked it; wait until the lock ends",
        Some(Status::Etmpfail) if said.contains(OUT_OF_SERVICE) => {
            "trying again does not help; settee reset-vbucket names it with the ways out"
        }
        Some(Status::Etmpfail | Status::Ebusy | Status::Enomem) => {
            "the server cannot just now; try again, and see settee stats memory"
        }
        Some(Status::E2big) => "a document has at most 20 MiB",
        Some(Status::UnknownCollection) => "the collection was dropped",
        Some(Status::NotMyVbucket) => "no node serves it; see settee stats vbucket",
        Some(Status::DurabilityImpossible) => "too few nodes hold copies; leave --durability out",
        Some(Status::SyncWriteInProgress) => "another durable write is under way; try again",
        Some(Status::SyncWriteAmbiguous) => "it may have happened; read the document",
        _ => "",
    }
}

/// An expiry as the protocol takes it, `seconds` from now; 0 for never.
pub(crate) fn expiry_in(clock: &Clock, seconds: u32) -> u32 {
    if seconds <= RELATIVE_EXPIRY_MAX {
        return seconds;
    }
    clock.wall_time().seconds().saturating_add(seconds)
}

/// A version for programs: a text, because many would round the number.
pub(crate) fn cas_text(cas: u64) -> Value {
    Value::from(cas.to_string())
}

/// A name and bytes for programs: as they are if they are text, otherwise in base64.
pub(crate) fn bytes_member(name: &'static str, bytes: &[u8]) -> (String, Value) {
    match as_text(bytes) {
        Some(text) => (name.to_owned(), text.into()),
        None => (format!("{name}_base64"), STANDARD.encode(bytes).into()),
    }
}

/// Writes a JSON object on a line.
pub(crate) fn write_json<N: Into<String>>(
    members: impl IntoIterator<Item = (N, Value)>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let members = members.into_iter().map(|(name, value)| (name.into(), value));
    writeln!(out, "{}", Value::Object(members.collect::<Map<_, _>>()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_far_away_is_a_date() {
        let clock = Clock::simulated(platform::WallTime(1_700_000_000_000_000_000));
        assert_eq!(expiry_in(&clock, 0), 0);
        assert_eq!(expiry_in(&clock, RELATIVE_EXPIRY_MAX), RELATIVE_EXPIRY_MAX);
        assert_eq!(expiry_in(&clock, RELATIVE_EXPIRY_MAX + 1), 1_702_592_001);
    }

    #[test]
    fn nobody_is_told_to_try_again_where_that_does_not_help() {
        let said = "the vBucket's file is damaged; see the node's log";
        let out_of_service = advice(Some(Status::Etmpfail), said);
        assert!(out_of_service.contains("reset-vbucket"), "{out_of_service}");
        assert!(advice(Some(Status::Etmpfail), "").contains("; try again"));
    }

    #[test]
    fn bytes_that_are_no_text_are_said_in_base64() {
        assert_eq!(bytes_member("key", b"a"), ("key".to_owned(), "a".into()));
        assert_eq!(bytes_member("key", b"\xff"), ("key_base64".to_owned(), "/w==".into()));
    }
}
