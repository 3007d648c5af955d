//! A bucket's directory: its description, its files, and what is left of earlier damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use document::Vbid;
use platform::{Clock, FileErrorKind, Files, OpenMode};
use serde_json::Value;
use storage::couchstore::CouchFile;
use storage::couchstore::layout;
use storage::journal::{self, verify_segments};
use storage::{Finding, JOURNAL_NOTE_NAME, Scope, Severity, StorageError, Witness, verify_file};

use super::Report;
use super::directory::look_at_json;
use super::last_stop;
use super::symptom::Symptom;
use crate::progress::Progress;
use crate::verify_file::{advices, advices_on};

/// What is fixed when a bucket is made.
pub(super) const DESCRIPTION_NAME: &str = "bucket.json";
/// The mark of a bucket that is being deleted.
const DELETED_MARK_NAME: &str = ".deleted";

/// A bucket that is looked at.
pub(super) struct Place {
    pub(super) directory: PathBuf,
    /// The data directory that it belongs to.
    pub(super) data: PathBuf,
    pub(super) name: String,
    /// Whether a node uses it now.
    pub(super) is_in_use: bool,
}

/// Whether another server's files in `directory` are those of a bucket that a node has opened
/// there: beside them is what a node alone makes.
pub(super) fn is_taken_over(files: &dyn Files, directory: &Path) -> bool {
    let names = files.list(directory).unwrap_or_default();
    let own = [DESCRIPTION_NAME, last_stop::CLEAN_MARK_NAME, JOURNAL_NOTE_NAME];
    let is_own = |name: &String| own.contains(&name.as_str());
    names.iter().any(is_own) && !layout::newest_files(directory, &names).is_empty()
}

/// Looks at a bucket; at the insides of its files unless it is to be `quick`.
pub(super) fn examine(
    files: &dyn Files,
    place: &Place,
    quick: bool,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Place { directory, name, .. } = place;
    // What is no directory is no bucket.
    let Ok(mut names) = files.list(directory) else { return Ok(()) };
    names.sort();
    if name.starts_with('.') || names.iter().any(|name| name == DELETED_MARK_NAME) {
        report.facts.push(format!("bucket {name}: being deleted, or left by a restore"));
        return Ok(());
    }
    let description = look_at_json(files, &directory.join(DESCRIPTION_NAME), report);
    let data = layout::newest_files(directory, &names);
    let journal = directory.join(journal::JOURNAL_DIRECTORY);
    let mut segments = files.list(&journal).unwrap_or_default();
    segments.retain(|name| journal::is_segment_name(name));
    segments.sort();
    let segments: Vec<_> = segments.iter().map(|name| journal.join(name)).collect();
    report.facts.push(fact(name, description.as_ref(), data.len(), segments.len()));
    look_for_set_aside(place, &names, report);
    let mut in_journal = Vec::new();
    if !quick {
        check_files(files, place, &data, report);
        in_journal = check_journal(files, place, &segments, report);
    }
    // Of a node that runs nothing is known: files come and go.
    if !place.is_in_use {
        let (noted, when) = match last_stop::noted_at_stop(files, directory) {
            Some(noted) => (noted, "when the node stopped"),
            None => (in_journal, "by the journal"),
        };
        look_for_lacking(files, place, &noted, when, &data, report);
    }
    Ok(())
}

fn fact(name: &str, description: Option<&Value>, files: usize, segments: usize) -> String {
    let field = |name: &str| description.and_then(|description| description.get(name));
    let kind = field("bucket_type").and_then(Value::as_str).unwrap_or("couchbase");
    let vbuckets = field("vbucket_count").and_then(Value::as_u64).unwrap_or(0);
    let held = format!("{files} files, {segments} segments of its journal");
    format!("bucket {name}: {kind}, {vbuckets} vBuckets, {held}")
}

fn look_for_set_aside(place: &Place, names: &[String], report: &mut Report) {
    for name in names {
        let Some((vbid, _)) = layout::set_aside(name) else { continue };
        let path = place.directory.join(name);
        let what = format!("was set aside when vBucket {vbid} began anew, because it is damaged");
        let symptom = Symptom::new(Severity::Warning, path.display().to_string(), what);
        let advice = "no start uses it: read what is left in it, and remove it when it is of no \
                      use any more";
        report.symptoms.push(
            symptom.advise(advice).command(format!("settee dump --by-id {}", path.display())),
        );
    }
}

/// Compares files with what was noted of them.
fn look_for_lacking(
    files: &dyn Files,
    place: &Place,
    noted: &[Witness],
    when: &str,
    data: &BTreeMap<Vbid, PathBuf>,
    report: &mut Report,
) {
    for (vbid, why) in last_stop::lacking(files, noted, when, data) {
        let shown = place.directory.display().to_string();
        let symptom = Symptom::new(Severity::Problem, shown, format!("vBucket {vbid}: {why}"));
        report.symptoms.push(with_ways_out(symptom, place, vbid, true));
    }
}

fn check_files(
    files: &dyn Files,
    place: &Place,
    data: &BTreeMap<Vbid, PathBuf>,
    report: &mut Report,
) {
    let mut progress = Progress::new(Clock::real(), "files", data.len() as u64);
    for (index, (vbid, path)) in (0..).zip(data) {
        progress.show(index, report.checked_bytes);
        let opened = CouchFile::open(files, path, OpenMode::Read);
        match opened.and_then(|file| verify_file(&file)) {
            Ok(verification) => {
                report.file_count += 1;
                report.checked_bytes += verification.checked_bytes;
                let advices = advices(&verification);
                if let Some(symptom) = symptom_of(path, &verification.findings, &advices) {
                    let is_active_lost = is_state_lost(&verification.findings);
                    report.symptoms.push(with_ways_out(symptom, place, *vbid, is_active_lost));
                }
            }
            // A node removes files while it runs.
            Err(StorageError::Failed(error))
                if error.kind == FileErrorKind::NotFound && place.is_in_use => {}
            Err(error) => {
                let shown = path.display().to_string();
                let symptom = Symptom::new(Severity::Problem, shown, error.to_string());
                report.symptoms.push(with_ways_out(symptom, place, *vbid, true));
            }
        }
    }
    progress.clear();
}

/// Checks the journal. Returns what it says of where files were.
fn check_journal(
    files: &dyn Files,
    place: &Place,
    segments: &[PathBuf],
    report: &mut Report,
) -> Vec<Witness> {
    verify_segments(files, segments, &mut |path, outcome| match outcome {
        Ok(verification) => {
            report.file_count += 1;
            report.checked_bytes += verification.checked_bytes;
            let findings = &verification.findings;
            report.symptoms.extend(symptom_of(path, findings, &advices_on(findings, true)));
        }
        Err(StorageError::Failed(error))
            if error.kind == FileErrorKind::NotFound && place.is_in_use => {}
        Err(error) => {
            let shown = path.display().to_string();
            let symptom = Symptom::new(Severity::Problem, shown, error.to_string());
            report.symptoms.push(symptom.advise("check the disk, and who owns the file"));
        }
    })
}

/// What is wrong with a file, in one: the first finding of the worst kind, and how many there are.
/// What is cut off at the end of a file is as it should be after a crash.
fn symptom_of(path: &Path, findings: &[Finding], advices: &[&str]) -> Option<Symptom> {
    let is_problem = |finding: &&Finding| finding.severity == Severity::Problem;
    let first = findings.iter().find(is_problem).or(findings.first())?;
    let more = match findings.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} findings more"),
    };
    let what = format!("byte {}: {}{more}", first.position, first.what);
    let symptom = Symptom::new(first.severity, path.display().to_string(), what);
    let symptom = advices.iter().fold(symptom, |symptom, advice| symptom.advise(*advice));
    Some(symptom.command(format!("settee verify-file {}", path.display())))
}

/// Whether what the file holds now is damaged, and not only its past.
fn is_state_lost(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| {
        finding.severity == Severity::Problem
            && matches!(finding.scope, Scope::NewestHeader | Scope::CurrentState)
    })
}

/// What an operator does about a vBucket whose file is damaged, from the best to the worst.
fn with_ways_out(symptom: Symptom, place: &Place, vbid: Vbid, is_state_lost: bool) -> Symptom {
    if !is_state_lost {
        return symptom;
    }
    let Place { name, is_in_use, data, .. } = place;
    let stop = if *is_in_use { "stop the node, and put" } else { "put" };
    let symptom = symptom
        .advise(format!("{stop} the file back as it was, if there is a copy of it"))
        .advise(
            "a replica is built anew by itself; with an active copy promote a replica, by a map",
        )
        .advise("restore the newest backup into a new data directory")
        .command(format!("settee restore --target BACKUPS --data-dir NEW --bucket {name}"));
    let start = if *is_in_use {
        String::new()
    } else {
        format!(" once it runs: settee serve --data-dir {}", data.display())
    };
    symptom
        .advise(format!("or have the node say what a new, empty vBucket would lose{start}"))
        .command(format!("settee reset-vbucket {vbid} --bucket {name}"))
        .command(format!("settee reset-vbucket {vbid} --bucket {name} --confirm"))
}
