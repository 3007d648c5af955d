//! `settee dump`: what is in couchstore files and journals, for people and for programs.

mod human;
mod json;
mod segment;
mod text;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use platform::files::RealFiles;
use platform::{Files, OpenMode};
use storage::couchstore::{CouchFile, FileHeader};
use storage::journal::{GroupView, RecordView, SegmentSummary, SegmentView};
use storage::{DocumentView, Order, Selection, StorageError, VBSTATE};

use crate::file_list::{bucket_files, is_segment};
use crate::output::{note, with_stdout};
use human::Human;
use json::Json;

/// Shows what is in couchstore files and journals, of a running node too
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct DumpArguments {
    /// Couchstore files, segments of journals, buckets' directories, or a node's data directory
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Of a node's data directory this bucket alone
    #[arg(long, value_name = "NAME")]
    pub bucket: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Nothing but collections and names
    #[arg(long)]
    pub keys_only: bool,
    /// Leave the bodies out
    #[arg(long)]
    pub no_body: bool,
    /// In the order of the last changes (the default)
    #[arg(long, conflicts_with = "by_id")]
    pub by_seqno: bool,
    /// In the order of collections and names
    #[arg(long)]
    pub by_id: bool,
    /// Only documents changed at this seqno or later
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub start_seqno: u64,
    /// The state whose header stands at this position of the file, instead of the newest
    #[arg(long, value_name = "POSITION", conflicts_with = "all_headers")]
    pub header: Option<u64>,
    /// List the headers of the file's history, newest first, and nothing else
    #[arg(long)]
    pub all_headers: bool,
    /// Show all local documents, not only the vBucket's state
    #[arg(long)]
    pub local: bool,
}

const HELP: &str = "\
A couchstore file holds one vBucket: <vBucket>.couch.<revision>. Files of Couchbase Server of disk
versions 11 to 14 are read as well as those of settee; encrypted ones are not. Nothing is written
or locked, so the files may be in use: what is shown is the last commit before the file was opened.

What is shown:
  header      where it stands, seqnos, counts, when it was committed, the header before it
  vbstate     the vBucket's state, as JSON
  document    seqno, revision, CAS, key, metadata, where the body stands, the body
  local       documents beside the documents: --local

A segment of a bucket's journal (journal/j.<number>) holds batches of all vBuckets, in groups that
became durable together. What is shown of it:
  segment     the journal, the lsn of its first group
  group       where it stands, its lsn, when it was written (--all-headers: nothing else)
  batch       the vBucket, the seqno it follows, its state; then its documents
  delete      a vBucket that was deleted
  rollback    a vBucket whose file went back, and to which seqno
  witnesses   where the files of all vBuckets were: a start compares them with that
  end         whether a group is cut off, or damaged

Bytes that are no text are escaped (\\xff), in JSON they are base64 (key_base64, body_base64).
Bodies are shown without the compression of the file or of the client.
Every commit leaves a header; --all-headers lists them and --header reads the file as of one.
A damaged body is named in its place; damage elsewhere ends a file. `settee verify-file` finds all.

Examples:
  settee dump settee-data/buckets/default/17.couch.1
  settee dump --keys-only --by-id settee-data
  settee dump --bucket travel --no-body settee-data
  settee dump --json 17.couch.1 | jq 'select(.type == \"document\" and .deleted)'
  settee dump --start-seqno 1000 --no-body 17.couch.1
  settee dump --all-headers 17.couch.1
  settee dump --header 40960 17.couch.1
  settee dump --no-body settee-data/buckets/default/journal";

/// Headers stand at multiples of this many bytes.
const HEADER_ALIGNMENT: u64 = 4096;

/// Writes what was read, in one of the two forms.
trait Form {
    fn file(&mut self, path: &Path, size: u64) -> io::Result<()>;
    fn header(&mut self, header: &FileHeader) -> io::Result<()>;
    fn state(&mut self, content: &[u8]) -> io::Result<()>;
    fn key(&mut self, document: &DocumentView<'_>) -> io::Result<()>;
    fn document(&mut self, document: &DocumentView<'_>) -> io::Result<()>;
    fn local(&mut self, name: &[u8], content: &[u8]) -> io::Result<()>;
    fn segment(&mut self, segment: &SegmentView) -> io::Result<()>;
    fn group(&mut self, group: &GroupView<'_>) -> io::Result<()>;
    fn record(&mut self, record: &RecordView<'_>) -> io::Result<()>;
    fn segment_end(&mut self, summary: &SegmentSummary) -> io::Result<()>;
}

/// Runs the tool.
pub fn run(arguments: &DumpArguments) -> anyhow::Result<ExitCode> {
    with_stdout(|out| write_to(arguments, &RealFiles, out))
}

/// Writes the result to `out`. The exit code tells whether all files could be read.
pub fn write_to(
    arguments: &DumpArguments,
    files: &dyn Files,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let paths = bucket_files(files, &arguments.paths, arguments.bucket.as_deref())?;
    if paths.len() > 1 && arguments.header.is_some() {
        bail!("--header needs one file, not {}", paths.len());
    }
    let mut human;
    let mut json;
    let form: &mut dyn Form = if arguments.json {
        json = Json::new(out);
        &mut json
    } else {
        human = Human::new(out);
        &mut human
    };
    let mut code = ExitCode::SUCCESS;
    for path in &paths {
        let result = if is_segment(path) {
            segment::dump(arguments, files, path, form)
        } else {
            dump_file(arguments, files, path, form)
        };
        match result {
            Err(error) if paths.len() > 1 && !is_output_error(&error) => {
                note(&format!("settee: {error:#}\n"));
                code = ExitCode::FAILURE;
            }
            result => result?,
        }
    }
    Ok(code)
}

/// Only writing gives errors of this type: those of files are of `storage`.
fn is_output_error(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some()
}

fn dump_file(
    arguments: &DumpArguments,
    files: &dyn Files,
    path: &Path,
    form: &mut dyn Form,
) -> anyhow::Result<()> {
    let file = CouchFile::open(files, path, OpenMode::Read)?;
    let header = choose_header(&file, arguments.header)?;
    if !arguments.keys_only {
        form.file(path, file.size()?)?;
    }
    if arguments.all_headers {
        return dump_headers(&file, header, form);
    }
    if !arguments.keys_only {
        form.header(&header)?;
        if let Some(content) = file.reader(&header).local(VBSTATE)? {
            form.state(&content)?;
        }
    }
    dump_documents(arguments, &file, &header, form)?;
    if arguments.local {
        let mut result = Ok(());
        file.reader(&header).local_documents(|name, content| {
            if result.is_ok() && name != VBSTATE {
                result = form.local(name, content);
            }
        })?;
        result?;
    }
    Ok(())
}

fn choose_header(file: &CouchFile, position: Option<u64>) -> anyhow::Result<FileHeader> {
    if let Some(position) = position {
        return header_at(file, position);
    }
    let (header, report) = file.newest_whole_header()?;
    let path = file.path().display();
    for (position, what) in &report.skipped {
        note(&format!("{path}: passed over what stands at byte {position}: {what}\n"));
    }
    let unlisted_count = report.skipped_count.saturating_sub(report.skipped.len() as u64);
    if unlisted_count > 0 {
        note(&format!("{path}: passed over {unlisted_count} more blocks in front of that\n"));
    }
    Ok(header)
}

fn header_at(file: &CouchFile, position: u64) -> anyhow::Result<FileHeader> {
    let path = file.path().display();
    let hint = "--all-headers lists the headers there are";
    if !position.is_multiple_of(HEADER_ALIGNMENT) || position >= file.size()? {
        bail!("{path}: no header at byte {position}; {hint}");
    }
    match file.header_at(position) {
        Err(StorageError::Corrupt { what, .. }) => bail!("{path}, byte {position}: {what}; {hint}"),
        result => Ok(result?),
    }
}

fn dump_headers(file: &CouchFile, newest: FileHeader, form: &mut dyn Form) -> anyhow::Result<()> {
    let mut state = Some(newest);
    while let Some(header) = state {
        form.header(&header)?;
        state = file.header_before(&header)?;
    }
    Ok(())
}

fn dump_documents(
    arguments: &DumpArguments,
    file: &CouchFile,
    header: &FileHeader,
    form: &mut dyn Form,
) -> anyhow::Result<()> {
    let selection = Selection {
        order: if arguments.by_id { Order::ById } else { Order::BySeqno },
        start_seqno: arguments.start_seqno,
        with_bodies: !arguments.no_body && !arguments.keys_only,
    };
    let mut result = Ok(());
    storage::documents(file, header, selection, |document| {
        result = if arguments.keys_only { form.key(document) } else { form.document(document) };
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(result?)
}
