//! Lines for people.

use std::io::{self, Write};
use std::path::Path;

use storage::couchstore::FileHeader;
use storage::journal::{
    GroupView, RecordKind, RecordView, SegmentEnd, SegmentSummary, SegmentView,
};
use storage::{BodyView, DocumentView, MetadataView, StoredOperation, Witness};

use super::Form;
use super::text::{datatype_names, inflated, level_name, moment, operation_name};
use crate::printable::escaped;

pub(super) struct Human<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Human<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    fn witness(&mut self, witness: &Witness) -> io::Result<()> {
        let Witness { vbid, revision, header_position, high_seqno, branch } = witness;
        let branch = branch.map_or("none".to_owned(), |uuid| format!("{:012x}", uuid.0));
        writeln!(
            self.out,
            "  vBucket {vbid}: revision {revision}, header {header_position}, high seqno \
             {high_seqno}, branch {branch}"
        )
    }
}

impl Form for Human<'_> {
    fn file(&mut self, path: &Path, size: u64) -> io::Result<()> {
        writeln!(self.out, "file {} ({size} bytes)", path.display())
    }

    fn header(&mut self, header: &FileHeader) -> io::Result<()> {
        let (position, version) = (header.position, header.version);
        let (alive, deleted) = (header.alive_count(), header.deleted_count());
        let committed = match header.timestamp {
            0 => "at an unknown time".to_owned(),
            nanoseconds => moment(nanoseconds / 1_000_000_000),
        };
        let previous = header.previous.map_or("none".to_owned(), |previous| previous.to_string());
        writeln!(
            self.out,
            "header {position}: version {version}, high seqno {}, purge seqno {}, {alive} alive, \
             {deleted} deleted, {} live bytes, committed {committed}, header before: {previous}",
            header.high_seqno,
            header.purge_seqno,
            header.live_bytes(),
        )
    }

    fn state(&mut self, content: &[u8]) -> io::Result<()> {
        writeln!(self.out, "vbstate {}", escaped(content))
    }

    fn key(&mut self, document: &DocumentView<'_>) -> io::Result<()> {
        writeln!(self.out, "{}", key_text(document))
    }

    fn document(&mut self, document: &DocumentView<'_>) -> io::Result<()> {
        let deleted = match (document.is_deleted, document.metadata) {
            (false, _) => "",
            (true, Some(metadata)) if metadata.is_expired => ", expired and deleted",
            (true, _) => ", deleted",
        };
        writeln!(
            self.out,
            "{}: seqno {}, revision {}{deleted}{}",
            key_text(document),
            document.seqno,
            document.revision,
            document.metadata.map_or(", metadata of unknown size".to_owned(), metadata_text),
        )?;
        let place = format!("{} bytes at {}", document.body_size, document.body_position);
        match (document.body, inflated(document)) {
            (BodyView::Absent, _) => writeln!(self.out, "  no body"),
            (BodyView::NotRead, _) => writeln!(self.out, "  body of {place}"),
            (BodyView::Damaged(what), _) => writeln!(self.out, "  damaged body of {place}: {what}"),
            (BodyView::Bytes(bytes), Some(Err(what))) => {
                writeln!(self.out, "  body of {place} ({what}): {}", escaped(bytes))
            }
            (BodyView::Bytes(_), Some(Ok(bytes))) => {
                writeln!(self.out, "  body of {place}: {}", escaped(&bytes))
            }
            (BodyView::Bytes(bytes), None) => {
                writeln!(self.out, "  body of {place}: {}", escaped(bytes))
            }
        }
    }

    fn local(&mut self, name: &[u8], content: &[u8]) -> io::Result<()> {
        writeln!(self.out, "local {}: {}", escaped(name), escaped(content))
    }

    fn segment(&mut self, segment: &SegmentView) -> io::Result<()> {
        let SegmentView { id, number, first_lsn, created_ns, begins_with_copy, skipped } = *segment;
        let copy = if begins_with_copy { ", which is a copy" } else { "" };
        let behind = match skipped {
            0 => String::new(),
            count => format!(", {count} lsns in front skipped"),
        };
        let created = moment(created_ns / 1_000_000_000);
        writeln!(
            self.out,
            "segment {number:x} of journal {id}: first lsn {first_lsn}{copy}{behind}, begun \
             {created}",
        )
    }

    fn group(&mut self, group: &GroupView<'_>) -> io::Result<()> {
        let written = moment(group.wall_ns / 1_000_000_000);
        writeln!(
            self.out,
            "group {}: lsn {}, {} bytes, {} records, written {written}, durable before: lsn {}",
            group.position, group.lsn, group.bytes, group.record_count, group.durable_lsn,
        )
    }

    fn record(&mut self, record: &RecordView<'_>) -> io::Result<()> {
        let (position, vbid, bytes) = (record.position, record.vbid, record.bytes);
        let Some(batch) = &record.batch else {
            if record.kind == RecordKind::Delete {
                return writeln!(self.out, "delete {position}: vBucket {vbid}");
            }
            let witnesses = record.witnesses();
            writeln!(self.out, "witnesses {position}: {} files", witnesses.len())?;
            return witnesses.iter().try_for_each(|witness| self.witness(witness));
        };
        if record.kind == RecordKind::Rollback {
            let seqno = batch.previous_seqno;
            return writeln!(self.out, "rollback {position}: vBucket {vbid} to seqno {seqno}");
        }
        let supersedes = if batch.supersedes { ", supersedes what was before" } else { "" };
        writeln!(
            self.out,
            "batch {position}: vBucket {vbid}, {bytes} bytes, {} documents after seqno \
             {}{supersedes}",
            batch.item_count, batch.previous_seqno,
        )
    }

    fn segment_end(&mut self, summary: &SegmentSummary) -> io::Result<()> {
        let (position, lsn) = (summary.end_position, summary.next_lsn);
        match summary.end {
            SegmentEnd::Clean => writeln!(self.out, "end {position}: before lsn {lsn}"),
            SegmentEnd::Torn(what) => {
                writeln!(self.out, "end {position}: lsn {lsn} is not whole yet: {what}")
            }
            SegmentEnd::Damaged(what) => {
                writeln!(self.out, "end {position}: lsn {lsn} is damaged: {what}")
            }
        }
    }
}

fn key_text(document: &DocumentView<'_>) -> String {
    let prepare = if document.is_prepare { "prepare of " } else { "" };
    match document.key {
        Some((collection, name)) => format!("{prepare}{:#x} {}", collection.0, escaped(name)),
        None => format!("id {}", escaped(document.id)),
    }
}

fn metadata_text(metadata: MetadataView) -> String {
    let datatype = match datatype_names(metadata.datatype) {
        names if names.is_empty() => "raw".to_owned(),
        names => names.join("+"),
    };
    let expiry = match metadata.expiry {
        0 => "none".to_owned(),
        seconds => moment(seconds.into()),
    };
    let operation = match metadata.operation {
        None => String::new(),
        Some(StoredOperation::Prepare { level, is_delete }) => {
            let what = if is_delete { "a deletion" } else { "a write" };
            format!(", prepare of {what}, level {}", level_name(level))
        }
        Some(StoredOperation::Abort { prepare_seqno }) => {
            format!(", abort of seqno {prepare_seqno}")
        }
        Some(operation) => format!(", {}", operation_name(operation)),
    };
    let (cas, flags) = (metadata.cas, metadata.flags);
    format!(", CAS {cas:#x}, flags {flags:#x}, expiry {expiry}, {datatype}{operation}")
}
