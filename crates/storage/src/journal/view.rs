//! A segment as it lies on the disk, for people and tools to look at.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::ops::ControlFlow;
use std::path::Path;

use document::{Seqno, Vbid};
use platform::{Files, OpenMode};

use crate::couchstore::bytes::{Fields, index, length};
use crate::error::StorageError;
use crate::journal::layout::{GROUP_HEADER_SIZE, GroupHeader, SEGMENT_HEADER_SIZE, SegmentHeader};
use crate::journal::names::{self, SegmentName};
use crate::journal::options::{JournalId, Lsn};
use crate::journal::record::{RawBatch, RawContent, RawItem, RawRecord};
use crate::journal::scan::{self, Expected};
use crate::records::document_view::{BodyView, DocumentView};
use crate::records::vbucket_record::VbucketRecord;
use crate::store::witness::Witness;

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentView {
    /// The journal.
    pub id: JournalId,
    /// The number that belongs in its name.
    pub number: u64,
    /// Groups from this on in earlier segments do not count.
    pub first_lsn: Lsn,
    /// When it was begun, in nanoseconds since 1970.
    pub created_ns: u64,
    /// Whether an earlier segment holds the first group, too.
    pub begins_with_copy: bool,
    /// So many lsns in front of the first one were given to groups that a start did not find.
    pub skipped: u32,
}

/// One group.
#[derive(Clone, Copy, Debug)]
pub struct GroupView<'a> {
    /// Where it begins, in bytes.
    pub position: u64,
    /// Its number.
    pub lsn: Lsn,
    /// The highest lsn that had been acknowledged when it was written.
    pub durable_lsn: Lsn,
    /// When it was written, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// How many records it says it has.
    pub record_count: u32,
    pub(super) crc: u32,
    payload: &'a [u8],
}

/// One record of a group.
#[derive(Clone, Copy)]
pub struct RecordView<'a> {
    /// Where it begins in the file, in bytes.
    pub position: u64,
    /// Bytes of it.
    pub bytes: u32,
    /// The vBucket; 0 for witnesses.
    pub vbid: Vbid,
    /// What kind of record it is.
    pub kind: RecordKind,
    /// What a batch holds, or the state that a rollback leaves.
    pub batch: Option<BatchView<'a>>,
    raw: RawRecord<'a>,
}

/// Kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Items and state of a vBucket.
    Batch,
    /// The vBucket is gone.
    Delete,
    /// The vBucket's file was about to go back to the seqno that the batch follows.
    Rollback,
    /// Where files were.
    Witnesses,
}

/// The items and the state of a vBucket.
#[derive(Clone, Copy)]
pub struct BatchView<'a> {
    /// The seqno that the vBucket had reached before.
    pub previous_seqno: Seqno,
    /// Whether what the vBucket held before is replaced.
    pub supersedes: bool,
    /// How many items it says it has.
    pub item_count: u32,
    raw: RawBatch<'a>,
    /// Where the record ends in the file.
    end: u64,
}

/// How a segment ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentEnd {
    /// Nothing of this segment follows.
    #[default]
    Clean,
    /// A group that is being written, or was when the power went: what is missing of it.
    Torn(&'static str),
    /// A group that later ones follow is not what was written.
    Damaged(&'static str),
}

/// What there is in a segment.
#[derive(Clone, Debug, Default)]
pub struct SegmentSummary {
    /// Bytes of the file.
    pub file_size: u64,
    /// What it says of itself; `None` when it says nothing, or what `header_problem` tells.
    pub header: Option<SegmentView>,
    /// Why the header cannot be believed.
    pub header_problem: Option<&'static str>,
    /// Where the last whole group ends, in bytes.
    pub end_position: u64,
    /// What follows there.
    pub end: SegmentEnd,
    /// The lsn that would follow.
    pub next_lsn: Lsn,
    /// Whether a later segment begins with or before the group that would follow.
    pub is_continued: bool,
}

/// Where in a journal a segment stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The first lsn that later segments hold; `None` for the last segment, or one by itself.
    pub limit: Option<Lsn>,
    /// The checksum of the group before; `None` when that is not known.
    pub(super) previous_crc: Option<u32>,
}

/// Whether a file's name is that of a segment in use.
pub fn is_segment_name(name: &str) -> bool {
    matches!(names::parse(name), SegmentName::Live(_))
}

/// What a segment says of itself; `None` if that cannot be believed.
pub fn segment_view(files: &dyn Files, path: &Path) -> Result<Option<SegmentView>, StorageError> {
    let file = files.open(path, OpenMode::Read)?;
    let header = scan::read_segment_header(&*file)?;
    Ok(header.ok().flatten().map(|header| view_of(&header)))
}

/// Visits the groups of a segment in order, until `visit` breaks or they end. Reads only, so the
/// segment may be in use.
///
/// # Errors
/// Only what the system says; damage is in the summary.
pub fn read_segment(
    files: &dyn Files,
    path: &Path,
    place: Place,
    visit: &mut dyn FnMut(&GroupView<'_>) -> ControlFlow<()>,
) -> Result<SegmentSummary, StorageError> {
    let file = files.open(path, OpenMode::Read)?;
    let mut summary = SegmentSummary { file_size: file.size()?, ..SegmentSummary::default() };
    let header = match scan::read_segment_header(&*file)? {
        Ok(Some(header)) => header,
        Ok(None) => return Ok(summary),
        Err(what) => {
            summary.header_problem = Some(what);
            return Ok(summary);
        }
    };
    summary.header = Some(view_of(&header));
    summary.end_position = SEGMENT_HEADER_SIZE;
    summary.next_lsn = header.first_lsn;
    let mut previous_crc = place.previous_crc;
    let mut group = Vec::new();
    loop {
        summary.is_continued = place.limit.is_some_and(|limit| limit <= summary.next_lsn);
        if summary.is_continued {
            return Ok(summary);
        }
        let expected = Expected { salt: header.salt, lsn: summary.next_lsn, previous_crc };
        let position = summary.end_position;
        let found = match scan::read_group(&*file, position, &expected, &mut group)? {
            Ok(found) => found,
            Err(what) => {
                let salt = Some(header.salt);
                let later = scan::find_group(&*file, position, salt, Lsn(0), &mut group)?;
                if later.is_some() || place.limit.is_some() {
                    summary.end = SegmentEnd::Damaged(what);
                } else if scan::begun_group(&*file, position, header.salt)?.is_some() {
                    summary.end = SegmentEnd::Torn(what);
                }
                return Ok(summary);
            }
        };
        if visit(&GroupView::new(position, &found, &group)).is_break() {
            return Ok(summary);
        }
        previous_crc = Some(found.crc);
        summary.end_position = position.saturating_add(found.padded_bytes());
        summary.next_lsn = Lsn(summary.next_lsn.0.saturating_add(1));
    }
}

fn view_of(header: &SegmentHeader) -> SegmentView {
    let SegmentHeader { id, number, first_lsn, created_ns, begins_with_copy, skipped, .. } =
        *header;
    SegmentView { id, number, first_lsn, created_ns, begins_with_copy, skipped }
}

impl<'a> GroupView<'a> {
    fn new(position: u64, header: &GroupHeader, group: &'a [u8]) -> Self {
        let size = index(header.bytes.into());
        Self {
            position,
            lsn: header.lsn,
            durable_lsn: header.durable_lsn,
            wall_ns: header.wall_ns,
            bytes: header.padded_bytes(),
            record_count: header.records,
            crc: header.crc,
            payload: group.get(GROUP_HEADER_SIZE..size).unwrap_or_default(),
        }
    }

    /// Visits the records in order, until `visit` breaks. An error tells where the first one
    /// begins that is not understood, and what is wrong.
    pub fn records(
        &self,
        visit: &mut dyn FnMut(&RecordView<'a>) -> ControlFlow<()>,
    ) -> Result<(), (u64, &'static str)> {
        let mut payload = Fields::new(self.payload);
        let end = self
            .position
            .saturating_add((GROUP_HEADER_SIZE as u64).saturating_add(length(self.payload)));
        let position_of = |rest: Fields<'_>| end.saturating_sub(length(rest.rest()));
        for _ in 0..self.record_count {
            let position = position_of(payload);
            let record = RawRecord::take(&mut payload);
            let record =
                record.and_then(|raw| RecordView::new(position, &raw, position_of(payload)));
            let record = record.ok_or((position, "a record that is not understood"))?;
            if visit(&record).is_break() {
                return Ok(());
            }
        }
        if payload.rest().is_empty() {
            Ok(())
        } else {
            Err((position_of(payload), "more in a group than its records"))
        }
    }
}

impl<'a> RecordView<'a> {
    fn new(position: u64, raw: &RawRecord<'a>, end: u64) -> Option<Self> {
        let (kind, batch) = match raw.content()? {
            RawContent::Delete => (RecordKind::Delete, None),
            RawContent::Witnesses(_) => (RecordKind::Witnesses, None),
            RawContent::Batch(batch) => (RecordKind::Batch, Some(batch)),
            RawContent::Rollback(batch) => (RecordKind::Rollback, Some(batch)),
        };
        // All that is in it is understood, too.
        raw.decode()?;
        let batch = batch.map(|raw| {
            let RawBatch { previous_seqno, supersedes, item_count, .. } = raw;
            BatchView { previous_seqno, supersedes, item_count, raw, end }
        });
        Some(Self { position, bytes: raw.bytes, vbid: raw.vbid, kind, batch, raw: *raw })
    }

    /// Where files were; empty unless it is a record of that.
    pub fn witnesses(&self) -> Vec<Witness> {
        match self.raw.content() {
            Some(RawContent::Witnesses(witnesses)) => witnesses,
            _ => Vec::new(),
        }
    }
}

impl<'a> BatchView<'a> {
    /// Visits the documents in their order, until `visit` breaks.
    pub fn documents(&self, visit: &mut dyn FnMut(&DocumentView<'a>) -> ControlFlow<()>) {
        let mut raw = self.raw;
        for _ in 0..self.item_count {
            let Some(RawItem { info, body }) = raw.next_item() else { return };
            let mut view = DocumentView::new(&info);
            view.is_compressed = false;
            view.body_position = match body {
                Some(body) => {
                    let behind = raw.rest_size().saturating_add(length(body));
                    self.end.saturating_sub(behind)
                }
                None => 0,
            };
            view.body = body.map_or(BodyView::Absent, BodyView::Bytes);
            if visit(&view).is_break() {
                return;
            }
        }
    }

    /// The state as of the last of the items.
    pub fn state(&self) -> Option<VbucketRecord> {
        let mut raw = self.raw;
        for _ in 0..self.item_count {
            raw.next_item()?;
        }
        raw.state()
    }

    /// The state as a file keeps it: JSON.
    pub fn state_json(&self) -> Option<Vec<u8>> {
        self.state().map(|state| state.encode())
    }
}
