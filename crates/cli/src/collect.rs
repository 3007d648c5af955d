//! `settee collect`: what a node tells of itself, in one archive for whoever is to help.

mod archive;
mod redaction;
mod sources;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use platform::files::RealFiles;
use platform::{Clock, Entropy, Files};

use crate::backup::dates;
use crate::node_port::NodePort;
use crate::output::{note, print};
use crate::server_arguments::ServerArguments;
use archive::Archive;
use redaction::Redaction;

/// Puts logs, statistics, configuration without secrets and timings into one archive
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct CollectArguments {
    /// The archive [default: settee-collect-MOMENT.tar.gz in the working directory]
    #[arg(long, value_name = "FILE")]
    target: Option<PathBuf>,
    /// The node's data directory, for its audit log and a list of its files
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
    /// The node's log file, with those of before beside it
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// Put a checksum in the place of what logs mark as users' data
    #[arg(long)]
    redact: bool,
    /// The node's REST port, as http://HOST:8091 [default: what the data port tells]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    management: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

const HELP: &str = "\
The archive has what the REST port and the data port tell of the node and of each bucket; with
--data-dir and --log also the audit log, the log, and the names and sizes of all files. There are no
documents, passwords, keys of certificates and hashed passwords in it. Names of users, buckets and
keys are; with --redact those that logs mark are checksums, the same one for the same name.
What cannot be had is listed in errors.txt; of a node that does not run, files alone are collected.
Exit code: 0 when there is an archive.

Examples:
  settee collect --password secret
  settee collect -P secret --data-dir /srv/settee --log /var/log/settee/settee.log --redact
  settee collect -P secret --target /tmp/for-support.tar.gz";

/// What is collected, and what could not be.
struct Collection {
    archive: Archive,
    redaction: Option<Redaction>,
    errors: Vec<String>,
}

/// Runs the tool.
///
/// # Errors
/// There is nothing to collect, or no place for the archive.
pub fn run(arguments: &CollectArguments) -> anyhow::Result<ExitCode> {
    let seconds = u64::from(Clock::real().wall_time().seconds());
    let name = format!("settee-collect-{}", dates::compact(seconds));
    let mut collection = Collection::new(&name, seconds, arguments.redact);
    collection.ask_node(arguments);
    if let Some(directory) = &arguments.data_dir {
        sources::data_directory(&RealFiles, directory, &mut collection);
    }
    for path in &arguments.log {
        sources::log(&RealFiles, path, &mut collection);
    }
    if collection.archive.is_empty() {
        let errors = collection.errors.join("\n  ");
        bail!("there is nothing to collect; see --data-dir, --log and --host:\n  {errors}");
    }
    let target = arguments.target.clone().unwrap_or_else(|| format!("{name}.tar.gz").into());
    let bytes = collection.finish()?;
    let shown = target.display();
    RealFiles
        .replace_all(&target, &bytes)
        .with_context(|| format!("{shown} cannot be written; give another place with --target"))?;
    print(&format!("{shown}\n"))?;
    Ok(ExitCode::SUCCESS)
}

impl Collection {
    fn new(name: &str, seconds: u64, redact: bool) -> Self {
        let redaction = redact.then(|| Redaction::new(&Entropy::real()));
        Self { archive: Archive::new(name, seconds), redaction, errors: Vec::new() }
    }

    /// Takes a text in, without what is to be hidden.
    fn add(&mut self, name: &str, text: &str) {
        let hidden = self.redaction.as_ref().map(|redaction| redaction.of(text));
        let bytes = hidden.as_deref().unwrap_or(text).as_bytes();
        if let Err(error) = self.archive.add(name, bytes) {
            self.miss(name, &error);
        }
    }

    /// Notes that something is missing.
    fn miss(&mut self, name: &str, why: &anyhow::Error) {
        note(&format!("settee: {name} is left out: {why:#}\n"));
        self.errors.push(format!("{name}: {why:#}"));
    }

    /// Asks both ports of the node. One that cannot be reached is asked once.
    fn ask_node(&mut self, arguments: &CollectArguments) {
        let port = NodePort::find(&arguments.server, arguments.management.as_deref());
        match port {
            Ok((port, _)) => sources::rest(&port, &arguments.server, self),
            Err(error) => self.miss("node", &error),
        }
    }

    fn finish(mut self) -> anyhow::Result<Vec<u8>> {
        let errors = self.errors.join("\n");
        self.add("errors.txt", &errors);
        self.archive.finish()
    }
}
