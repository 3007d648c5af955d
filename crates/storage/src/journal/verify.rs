//! Checks everything in the segments of a journal.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use platform::Files;

use crate::error::StorageError;
use crate::journal::names::{self, SegmentName};
use crate::journal::options::Lsn;
use crate::journal::view::{
    BatchView, GroupView, Place, RecordKind, RecordView, SegmentEnd, SegmentSummary, read_segment,
    segment_view,
};
use crate::store::witness::{KnownFiles, Witness};
use crate::verify::{Finding, Findings, Scope};

/// What checking a segment came to.
#[derive(Debug, Default)]
pub struct SegmentVerification {
    /// What the segment is.
    pub summary: SegmentSummary,
    /// Groups that are whole and count.
    pub group_count: u64,
    /// Their records.
    pub record_count: u64,
    /// Documents and tombstones in them.
    pub document_count: u64,
    /// vBuckets that they delete.
    pub deletion_count: u64,
    /// Bytes of header and groups.
    pub checked_bytes: u64,
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// Findings beyond those that are listed.
    pub unlisted_count: u64,
    last_crc: Option<u32>,
}

impl SegmentVerification {
    /// Whether the segment is what was written. Warnings do not count.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| !finding.is_problem())
    }
}

/// Checks segments of one journal, in the order of their numbers: each, and that none is missing
/// between them. `report` hears of each; a single one is checked by itself. Returns what they say
/// of where files were, as far as they can be read.
pub fn verify_segments(
    files: &dyn Files,
    paths: &[PathBuf],
    report: &mut dyn FnMut(&Path, Result<SegmentVerification, StorageError>),
) -> Vec<Witness> {
    let mut known = KnownFiles::default();
    let views: Vec<_> = paths.iter().map(|path| segment_view(files, path)).collect();
    // One that was renamed for use and not begun has the header of its earlier use.
    let first_lsn = |index: usize| match (views.get(index), paths.get(index)) {
        (Some(Ok(Some(view))), Some(path)) if number_of(path).is_none_or(|n| n == view.number) => {
            Some(view.first_lsn)
        }
        _ => None,
    };
    let follows_at = |index: usize| {
        let skipped = match views.get(index) {
            Some(Ok(Some(view))) => u64::from(view.skipped),
            _ => 0,
        };
        first_lsn(index).map(|lsn| Lsn(lsn.0.saturating_sub(skipped)))
    };
    let mut previous_crc = None;
    let mut next_lsn = None;
    for (index, path) in paths.iter().enumerate() {
        let behind = index.saturating_add(1)..paths.len();
        let limit = behind.filter_map(follows_at).min();
        let is_unused = matches!(views.get(index), Some(Ok(Some(_)))) && first_lsn(index).is_none();
        let is_void = is_unused || (limit.is_some() && first_lsn(index) >= limit);
        let place = Place { limit: if is_unused { Some(Lsn(0)) } else { limit }, previous_crc };
        let next_lsn_here = if is_void { None } else { next_lsn };
        let result = verify_segment(files, path, place, next_lsn_here, &mut known);
        if let Ok(verification) = &result
            && verification.group_count > 0
        {
            previous_crc = verification.last_crc;
        }
        if let Ok(SegmentVerification { summary, .. }) = &result
            && summary.header.is_some()
            && !is_void
        {
            next_lsn = Some(summary.next_lsn);
        }
        report(path, result);
    }
    known.to_witnesses()
}

fn verify_segment(
    files: &dyn Files,
    path: &Path,
    place: Place,
    next_lsn: Option<Lsn>,
    known: &mut KnownFiles,
) -> Result<SegmentVerification, StorageError> {
    let mut found = SegmentVerification::default();
    let mut findings = Findings::new(Scope::Journal);
    let summary = read_segment(files, path, place, &mut |group| {
        check_group(group, &mut found, known, &mut findings);
        ControlFlow::Continue(())
    })?;
    found.checked_bytes = summary.end_position;
    check_header(path, &summary, next_lsn, &mut findings);
    match summary.end {
        SegmentEnd::Clean => {}
        SegmentEnd::Torn(what) => {
            let what = format!("a group that is being written or was cut off: {what}");
            findings.warning(Scope::Journal, summary.end_position, what);
        }
        SegmentEnd::Damaged(what) => findings.damage(summary.end_position, what),
    }
    found.summary = summary;
    (found.findings, found.unlisted_count) = findings.into_listed();
    Ok(found)
}

fn number_of(path: &Path) -> Option<u64> {
    match names::parse(&path.file_name()?.to_string_lossy()) {
        SegmentName::Live(number) => Some(number),
        SegmentName::Spare(_) | SegmentName::Foreign => None,
    }
}

fn check_header(
    path: &Path,
    summary: &SegmentSummary,
    next_lsn: Option<Lsn>,
    findings: &mut Findings,
) {
    if let Some(what) = summary.header_problem {
        findings.damage(0, what);
    }
    let Some(header) = &summary.header else {
        if summary.header_problem.is_none() {
            findings.warning(Scope::Journal, 0, "a segment that was never used");
        }
        return;
    };
    if number_of(path).is_some_and(|number| number != header.number) {
        let what = format!("a segment that was used as number {:x} before", header.number);
        findings.warning(Scope::Journal, 0, what);
    }
    if let Some(next_lsn) = next_lsn
        && next_lsn.0 != header.first_lsn.0.saturating_sub(header.skipped.into())
    {
        let (next, first) = (next_lsn.0, header.first_lsn.0);
        findings.damage(0, format!("it begins with group {first} where {next} should follow"));
    }
}

fn check_group(
    group: &GroupView<'_>,
    found: &mut SegmentVerification,
    known: &mut KnownFiles,
    findings: &mut Findings,
) {
    found.group_count = found.group_count.saturating_add(1);
    found.last_crc = Some(group.crc);
    let result = group.records(&mut |record| {
        found.record_count = found.record_count.saturating_add(1);
        note_known(record, known);
        match &record.batch {
            None if record.kind == RecordKind::Delete => {
                found.deletion_count = found.deletion_count.saturating_add(1);
            }
            None => {}
            Some(batch) => {
                let documents = u64::from(batch.item_count);
                found.document_count = found.document_count.saturating_add(documents);
                check_batch(record.position, batch, findings);
            }
        }
        ControlFlow::Continue(())
    });
    if let Err((position, what)) = result {
        findings.damage(position, what);
    }
}

/// What a record says of where files were, as a start takes it.
fn note_known(record: &RecordView<'_>, known: &mut KnownFiles) {
    match (record.kind, &record.batch) {
        (RecordKind::Witnesses, _) => {
            record.witnesses().into_iter().for_each(|witness| known.note(witness));
        }
        (RecordKind::Delete, _) => known.note_deleted(record.vbid),
        (RecordKind::Rollback, Some(batch)) => {
            known.note_rolled_back(record.vbid, batch.previous_seqno);
        }
        (RecordKind::Rollback | RecordKind::Batch, _) => {}
    }
}

fn check_batch(position: u64, batch: &BatchView<'_>, findings: &mut Findings) {
    let mut lowest = u64::MAX;
    batch.documents(&mut |document| {
        lowest = lowest.min(document.seqno);
        ControlFlow::Continue(())
    });
    if lowest <= batch.previous_seqno.0 && !batch.supersedes {
        let previous = batch.previous_seqno.0;
        let what = format!("seqno {lowest} in a batch that follows {previous}");
        findings.damage(position, what);
    }
}
