//! Segments of journals.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use platform::{FileErrorKind, Files};
use serde_json::{Value, json};
use storage::StorageError;
use storage::journal::{SegmentEnd, SegmentVerification, verify_segments};

use super::{Totals, VerifyFileArguments, advices_on, finding_json, write_findings};
use crate::file_list::is_segment;

type Outcome = Result<SegmentVerification, StorageError>;

/// Checks the segments among `paths`, those of one directory together.
pub(super) fn verify(
    arguments: &VerifyFileArguments,
    files: &dyn Files,
    paths: &[PathBuf],
    totals: &mut Totals,
    out: &mut dyn Write,
) -> io::Result<()> {
    let segments: Vec<_> = paths.iter().filter(|path| is_segment(path)).cloned().collect();
    let mut result = Ok(());
    for journal in segments.chunk_by(|left, right| left.parent() == right.parent()) {
        // What they say of files is compared where the files are looked at, too.
        let _known = verify_segments(files, journal, &mut |path, outcome| {
            let is_gone = matches!(&outcome, Err(StorageError::Failed(error))
                if error.kind == FileErrorKind::NotFound && paths.len() > 1);
            if is_gone || result.is_err() {
                return;
            }
            add(totals, &outcome);
            result = if arguments.json {
                writeln!(out, "{}", to_json(path, &outcome))
            } else {
                write_lines(path, &outcome, out)
            };
        });
    }
    result
}

fn add(totals: &mut Totals, outcome: &Outcome) {
    totals.files += 1;
    totals.damaged += u64::from(!outcome.as_ref().is_ok_and(SegmentVerification::is_sound));
    if let Ok(verification) = outcome {
        totals.documents += verification.document_count;
        totals.bytes += verification.checked_bytes;
    }
}

fn write_lines(path: &Path, outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let path = path.display();
    let verification = match outcome {
        Ok(verification) => verification,
        Err(error) => return writeln!(out, "{path}: cannot be read: {error}"),
    };
    let summary = &verification.summary;
    let verdict = if verification.is_sound() { "sound" } else { "DAMAGED" };
    let first_lsn = summary.header.map_or(0, |header| header.first_lsn.0);
    writeln!(
        out,
        "{path}: {verdict}, {} groups from lsn {first_lsn}, {} records, {} documents, {} vBuckets \
         deleted, {} of {} bytes checked",
        verification.group_count,
        verification.record_count,
        verification.document_count,
        verification.deletion_count,
        verification.checked_bytes,
        summary.file_size,
    )?;
    let advices = advices_on(&verification.findings, true);
    write_findings(&verification.findings, verification.unlisted_count, &advices, out)
}

fn to_json(path: &Path, outcome: &Outcome) -> Value {
    let file = path.to_string_lossy();
    let verification = match outcome {
        Ok(verification) => verification,
        Err(error) => {
            return json!({"file": file, "sound": false, "error": error.to_string()});
        }
    };
    let summary = &verification.summary;
    let findings: Vec<_> = verification.findings.iter().map(finding_json).collect();
    json!({
        "file": file,
        "size": summary.file_size,
        "sound": verification.is_sound(),
        "journal": summary.header.map(|header| header.id.to_string()),
        "number": summary.header.map(|header| header.number),
        "first_lsn": summary.header.map(|header| header.first_lsn.0),
        "next_lsn": summary.next_lsn.0,
        "torn": matches!(summary.end, SegmentEnd::Torn(_)),
        "groups": verification.group_count,
        "records": verification.record_count,
        "documents": verification.document_count,
        "deletions": verification.deletion_count,
        "checked_bytes": verification.checked_bytes,
        "findings": findings,
        "unlisted_findings": verification.unlisted_count,
        "what_to_do": advices_on(&verification.findings, true),
    })
}
