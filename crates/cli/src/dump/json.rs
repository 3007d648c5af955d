//! One JSON object a line.

use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use storage::couchstore::FileHeader;
use storage::journal::{
    GroupView, RecordKind, RecordView, SegmentEnd, SegmentSummary, SegmentView,
};
use storage::{BodyView, DocumentView, MetadataView, StoredOperation};

use super::Form;
use super::text::{datatype_names, inflated, level_name, operation_name};
use crate::printable::as_text;

pub(super) struct Json<'a> {
    out: &'a mut dyn Write,
}

type Members = Map<String, Value>;

impl<'a> Json<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    fn line(&mut self, members: Members) -> io::Result<()> {
        writeln!(self.out, "{}", Value::Object(members))
    }

    fn witnesses(&mut self, record: &RecordView<'_>) -> io::Result<()> {
        let mut members = of_type("witnesses");
        members.insert("position".to_owned(), record.position.into());
        members.insert("bytes".to_owned(), record.bytes.into());
        let files = record.witnesses().into_iter().map(|witness| {
            json!({
                "vbucket": witness.vbid.0,
                "revision": witness.revision,
                "header": witness.header_position,
                "high_seqno": witness.high_seqno.0,
                "branch": witness.branch.map(|uuid| uuid.0),
            })
        });
        members.insert("files".to_owned(), files.collect());
        self.line(members)
    }
}

impl Form for Json<'_> {
    fn file(&mut self, path: &Path, size: u64) -> io::Result<()> {
        let mut members = of_type("file");
        members.insert("path".to_owned(), path.to_string_lossy().into());
        members.insert("size".to_owned(), size.into());
        self.line(members)
    }

    fn header(&mut self, header: &FileHeader) -> io::Result<()> {
        let mut members = of_type("header");
        let numbers = [
            ("position", header.position),
            ("version", header.version.into()),
            ("high_seqno", header.high_seqno),
            ("purge_seqno", header.purge_seqno),
            ("alive", header.alive_count()),
            ("deleted", header.deleted_count()),
            ("live_bytes", header.live_bytes()),
            ("commit_time_ns", header.timestamp),
        ];
        members.extend(numbers.map(|(name, number)| (name.to_owned(), number.into())));
        members.insert("previous".to_owned(), header.previous.into());
        self.line(members)
    }

    fn state(&mut self, content: &[u8]) -> io::Result<()> {
        let mut members = of_type("vbstate");
        put_content(&mut members, content);
        self.line(members)
    }

    fn key(&mut self, document: &DocumentView<'_>) -> io::Result<()> {
        let mut members = of_type("key");
        put_key(&mut members, document);
        self.line(members)
    }

    fn document(&mut self, document: &DocumentView<'_>) -> io::Result<()> {
        let mut members = of_type("document");
        put_key(&mut members, document);
        members.insert("seqno".to_owned(), document.seqno.into());
        members.insert("revision".to_owned(), document.revision.into());
        members.insert("deleted".to_owned(), document.is_deleted.into());
        if let Some(metadata) = document.metadata {
            put_metadata(&mut members, metadata);
        }
        members.insert("body_position".to_owned(), document.body_position.into());
        members.insert("body_size".to_owned(), document.body_size.into());
        members.insert("compressed_by_file".to_owned(), document.is_compressed.into());
        match (document.body, inflated(document)) {
            (BodyView::NotRead | BodyView::Absent, _) => {}
            (BodyView::Damaged(what), _) => {
                members.insert("body_error".to_owned(), what.into());
            }
            (BodyView::Bytes(_), Some(Ok(bytes))) => put_bytes(&mut members, "body", &bytes),
            (BodyView::Bytes(bytes), Some(Err(what))) => {
                members.insert("body_error".to_owned(), what.into());
                put_bytes(&mut members, "body", bytes);
            }
            (BodyView::Bytes(bytes), None) => put_bytes(&mut members, "body", bytes),
        }
        self.line(members)
    }

    fn local(&mut self, name: &[u8], content: &[u8]) -> io::Result<()> {
        let mut members = of_type("local");
        put_bytes(&mut members, "name", name);
        put_content(&mut members, content);
        self.line(members)
    }

    fn segment(&mut self, segment: &SegmentView) -> io::Result<()> {
        let mut members = of_type("segment");
        members.insert("journal".to_owned(), segment.id.to_string().into());
        let numbers = [
            ("number", segment.number),
            ("first_lsn", segment.first_lsn.0),
            ("created_ns", segment.created_ns),
        ];
        members.extend(numbers.map(|(name, number)| (name.to_owned(), number.into())));
        members.insert("begins_with_copy".to_owned(), segment.begins_with_copy.into());
        members.insert("skipped".to_owned(), segment.skipped.into());
        self.line(members)
    }

    fn group(&mut self, group: &GroupView<'_>) -> io::Result<()> {
        let mut members = of_type("group");
        let numbers = [
            ("position", group.position),
            ("lsn", group.lsn.0),
            ("durable_lsn", group.durable_lsn.0),
            ("bytes", group.bytes),
            ("records", group.record_count.into()),
            ("written_ns", group.wall_ns),
        ];
        members.extend(numbers.map(|(name, number)| (name.to_owned(), number.into())));
        self.line(members)
    }

    fn record(&mut self, record: &RecordView<'_>) -> io::Result<()> {
        let mut members = of_type(match record.kind {
            RecordKind::Batch => "batch",
            RecordKind::Delete => "delete",
            RecordKind::Rollback => "rollback",
            RecordKind::Witnesses => return self.witnesses(record),
        });
        members.insert("position".to_owned(), record.position.into());
        members.insert("bytes".to_owned(), record.bytes.into());
        members.insert("vbucket".to_owned(), record.vbid.0.into());
        if let Some(batch) = &record.batch {
            members.insert("previous_seqno".to_owned(), batch.previous_seqno.0.into());
            members.insert("supersedes".to_owned(), batch.supersedes.into());
            members.insert("documents".to_owned(), batch.item_count.into());
        }
        self.line(members)
    }

    fn segment_end(&mut self, summary: &SegmentSummary) -> io::Result<()> {
        let mut members = of_type("end");
        members.insert("position".to_owned(), summary.end_position.into());
        members.insert("next_lsn".to_owned(), summary.next_lsn.0.into());
        let (state, what) = match summary.end {
            SegmentEnd::Clean => ("clean", None),
            SegmentEnd::Torn(what) => ("torn", Some(what)),
            SegmentEnd::Damaged(what) => ("damaged", Some(what)),
        };
        members.insert("state".to_owned(), state.into());
        members.insert("what".to_owned(), what.into());
        self.line(members)
    }
}

fn of_type(name: &str) -> Members {
    Members::from_iter([("type".to_owned(), name.into())])
}

/// Text under `name`, other bytes as base64 under `<name>_base64`.
fn put_bytes(members: &mut Members, name: &str, bytes: &[u8]) {
    match as_text(bytes) {
        Some(text) => members.insert(name.to_owned(), text.into()),
        None => members.insert(format!("{name}_base64"), STANDARD.encode(bytes).into()),
    };
}

/// A local document: JSON where it is.
fn put_content(members: &mut Members, content: &[u8]) {
    match serde_json::from_slice::<Value>(content) {
        Ok(value) if value.is_object() => drop(members.insert("content".to_owned(), value)),
        _ => put_bytes(members, "content", content),
    }
}

fn put_key(members: &mut Members, document: &DocumentView<'_>) {
    match document.key {
        Some((collection, name)) => {
            members.insert("collection".to_owned(), format!("{:#x}", collection.0).into());
            put_bytes(members, "key", name);
        }
        None => put_bytes(members, "id", document.id),
    }
    if document.is_prepare {
        members.insert("prepare_key".to_owned(), true.into());
    }
}

fn put_metadata(members: &mut Members, metadata: MetadataView) {
    // Programs that read numbers as doubles would round it.
    members.insert("cas".to_owned(), format!("{:#018x}", metadata.cas).into());
    members.insert("flags".to_owned(), metadata.flags.into());
    members.insert("expiry".to_owned(), metadata.expiry.into());
    members.insert("expired".to_owned(), metadata.is_expired.into());
    members.insert("datatype".to_owned(), json!(datatype_names(metadata.datatype)));
    let Some(operation) = metadata.operation else { return };
    members.insert("operation".to_owned(), operation_name(operation).into());
    match operation {
        StoredOperation::Prepare { level, is_delete } => {
            members.insert("level".to_owned(), level_name(level).into());
            members.insert("prepare_delete".to_owned(), is_delete.into());
        }
        StoredOperation::Abort { prepare_seqno } => {
            members.insert("prepare_seqno".to_owned(), prepare_seqno.into());
        }
        StoredOperation::Commit | StoredOperation::Unknown(_) => {}
    }
}
