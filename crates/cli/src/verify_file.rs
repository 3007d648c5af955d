//! `settee verify-file`: whether couchstore files and journals are what was written.

mod segment;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use platform::files::RealFiles;
use platform::{Clock, FileErrorKind, Files, OpenMode};
use serde_json::{Value, json};
use storage::couchstore::{CouchFile, FileHeader};
use storage::{Finding, Scope, Severity, StorageError, Verification, verify_file};

use crate::file_list::{bucket_files, is_segment};
use crate::output::with_stdout;
use crate::progress::Progress;

/// Checks everything in couchstore files and journals, of a running node too
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct VerifyFileArguments {
    /// Couchstore files, segments of journals, buckets' directories, or a node's data directory
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Of a node's data directory this bucket alone
    #[arg(long, value_name = "NAME")]
    pub bucket: Option<String>,
    /// One JSON object a file
    #[arg(long)]
    pub json: bool,
}

const HELP: &str = "\
For the newest state of a file and for every older one that its headers lead to, this checks:
  - the chain of headers;
  - the checksum of every header, node and body, and that each decompresses;
  - the order of keys, sizes and counts in the trees of documents by id, by seqno, and local ones;
  - that the two trees of documents hold the same documents;
  - that no two parts of the file overlap;
  - in the newest state, whether the vBucket's state and statistics fit the documents.

Of the segments of a bucket's journal (journal/j.<number>) it checks the checksum of every header
and group, that no group and no segment is missing between others, and all batches in them. A
segment that is named by itself is not compared with others.

Problems mean that the file is not what was written: the exit code is 1.
Warnings are of files that are whole but unusual, or that a node would not load: the exit code is 0.
Nothing is written or locked, so the files may be in use. Files of Couchbase Server of disk versions
11 to 14 are checked as well as those of settee; encrypted ones cannot be.

Examples:
  settee verify-file settee-data
  settee verify-file --bucket travel settee-data
  settee verify-file settee-data/buckets/default/17.couch.1
  settee verify-file --json settee-data | jq 'select(.sound | not)'";

/// What all files came to.
#[derive(Default)]
struct Totals {
    files: u64,
    damaged: u64,
    documents: u64,
    bytes: u64,
}

/// Runs the tool.
pub fn run(arguments: &VerifyFileArguments) -> anyhow::Result<ExitCode> {
    with_stdout(|out| write_to(arguments, &RealFiles, out))
}

/// Writes the result to `out`. The exit code tells whether all files are sound.
pub fn write_to(
    arguments: &VerifyFileArguments,
    files: &dyn Files,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let paths = bucket_files(files, &arguments.paths, arguments.bucket.as_deref())?;
    let mut progress = Progress::new(Clock::real(), "files", paths.len() as u64);
    let mut totals = Totals::default();
    for (index, path) in paths.iter().enumerate() {
        progress.show(index as u64, totals.bytes);
        if is_segment(path) {
            continue;
        }
        let result = CouchFile::open(files, path, OpenMode::Read);
        let result = match result.and_then(|file| verify_file(&file)) {
            // A node removes files while it runs.
            Err(StorageError::Failed(error))
                if error.kind == FileErrorKind::NotFound && paths.len() > 1 =>
            {
                continue;
            }
            result => result,
        };
        totals.add(&result);
        progress.clear();
        if arguments.json {
            writeln!(out, "{}", to_json(path, &result))?;
        } else {
            write_lines(path, &result, out)?;
        }
    }
    segment::verify(arguments, files, &paths, &mut totals, out)?;
    progress.clear();
    if !arguments.json && paths.len() > 1 {
        let Totals { files, damaged, documents, bytes } = totals;
        let line = format!("{files} files, {documents} documents, {bytes} bytes checked");
        writeln!(out, "{line}; {damaged} files are damaged")?;
    }
    Ok(if totals.damaged == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

type Outcome = Result<Verification, StorageError>;

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        self.files += 1;
        self.damaged += u64::from(!outcome.as_ref().is_ok_and(Verification::is_sound));
        if let Ok(verification) = outcome {
            self.documents += verification.document_count;
            self.bytes += verification.checked_bytes;
        }
    }
}

fn write_lines(path: &Path, outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let path = path.display();
    let verification = match outcome {
        Ok(verification) => verification,
        Err(error) => return writeln!(out, "{path}: cannot be read: {error}"),
    };
    let verdict = if verification.is_sound() { "sound" } else { "DAMAGED" };
    let high_seqno = verification.newest.as_ref().map_or(0, |header| header.high_seqno);
    writeln!(
        out,
        "{path}: {verdict}, {} documents, {} tombstones, {} prepares, {} system events, high seqno \
         {high_seqno}, {} states, {} of {} bytes checked",
        verification.document_count,
        verification.tombstone_count,
        verification.prepare_count,
        verification.event_count,
        verification.header_count,
        verification.checked_bytes,
        verification.file_size,
    )?;
    let Verification { findings, unlisted_count, .. } = verification;
    write_findings(findings, *unlisted_count, &advices(verification), out)
}

fn write_findings(
    findings: &[Finding],
    unlisted_count: u64,
    advices: &[&str],
    out: &mut dyn Write,
) -> io::Result<()> {
    for finding in findings {
        let kind = severity_name(finding.severity);
        writeln!(out, "  {kind} at byte {}: {}", finding.position, finding.what)?;
    }
    if unlisted_count > 0 {
        writeln!(out, "  and {unlisted_count} findings more")?;
    }
    for advice in advices {
        writeln!(out, "  what to do: {advice}")?;
    }
    Ok(())
}

fn to_json(path: &Path, outcome: &Outcome) -> Value {
    let file = path.to_string_lossy();
    let verification = match outcome {
        Ok(verification) => verification,
        Err(error) => {
            return json!({"file": file, "sound": false, "error": error.to_string()});
        }
    };
    let findings: Vec<_> = verification.findings.iter().map(finding_json).collect();
    let newest = verification.newest.as_ref();
    json!({
        "file": file,
        "size": verification.file_size,
        "sound": verification.is_sound(),
        "version": newest.map(|header| header.version),
        "header_position": newest.map(|header| header.position),
        "high_seqno": newest.map(|header| header.high_seqno),
        "purge_seqno": newest.map(|header| header.purge_seqno),
        "live_bytes": newest.map(FileHeader::live_bytes),
        "states": verification.header_count,
        "documents": verification.document_count,
        "tombstones": verification.tombstone_count,
        "prepares": verification.prepare_count,
        "system_events": verification.event_count,
        "local_documents": verification.local_count,
        "checked_bytes": verification.checked_bytes,
        "findings": findings,
        "unlisted_findings": verification.unlisted_count,
        "what_to_do": advices(verification),
    })
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "severity": severity_name(finding.severity),
        "scope": match finding.scope {
            Scope::NewestHeader => "newest_header",
            Scope::CurrentState => "current_state",
            Scope::OlderState => "older_state",
            Scope::History => "history",
            Scope::VbucketState => "vbucket_state",
            Scope::Journal => "journal",
        },
        "position": finding.position,
        "what": finding.what,
    })
}

pub(crate) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Problem => "problem",
        Severity::Warning => "warning",
    }
}

/// One a scope of what was found.
pub(crate) fn advices(verification: &Verification) -> Vec<&'static str> {
    advices_on(&verification.findings, verification.newest.is_some())
}

pub(crate) fn advices_on(findings: &[Finding], has_state: bool) -> Vec<&'static str> {
    let findings = findings.iter();
    let scopes: BTreeSet<_> =
        findings.map(|finding| (finding.scope, finding.severity == Severity::Problem)).collect();
    scopes
        .into_iter()
        .filter_map(|(scope, is_problem)| advice(scope, is_problem, has_state))
        .collect()
}

fn advice(scope: Scope, is_problem: bool, has_state: bool) -> Option<&'static str> {
    match (scope, is_problem) {
        (Scope::NewestHeader, true) if has_state => Some(
            "the last commit is lost, a node serves the one before it; keep a copy of the file \
             and check the disk",
        ),
        (Scope::NewestHeader, true) => {
            Some("nothing in this file can be read; restore the vBucket from a replica or a backup")
        }
        (Scope::CurrentState, true) => Some(
            "keep a copy of the file, check the disk, and restore the vBucket from a replica or a \
             backup; settee dump shows what can be read, with --header also of older states",
        ),
        (Scope::OlderState | Scope::History, true) => Some(
            "current documents are whole; only a rollback to an older state would fail; check \
             the disk",
        ),
        (Scope::NewestHeader, false) => {
            Some("nothing: a commit was cut off or is under way, and the one before it is whole")
        }
        (Scope::Journal, true) => Some(
            "keep a copy of the journal and check the disk; a node does not start with it, because \
             acknowledged writes are missing; restore the bucket from replicas or a backup",
        ),
        (Scope::Journal, false) => {
            Some("nothing: what a node has not finished writing was never acknowledged")
        }
        (Scope::VbucketState, _) => {
            Some("the documents are whole; settee dump --local shows what the file says of them")
        }
        _ => None,
    }
}
