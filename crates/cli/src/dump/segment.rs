//! A segment of a journal.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::bail;
use platform::Files;
use storage::journal::{GroupView, Place, RecordView, SegmentEnd, read_segment, segment_view};
use storage::{BodyView, StorageError};

use super::{DumpArguments, Form};

pub(super) fn dump(
    arguments: &DumpArguments,
    files: &dyn Files,
    path: &Path,
    form: &mut dyn Form,
) -> anyhow::Result<()> {
    if arguments.header.is_some() {
        bail!("{}: --header is for couchstore files; this is a journal's", path.display());
    }
    if arguments.by_id {
        bail!("{}: --by-id is for couchstore files; a journal has one order", path.display());
    }
    let view = segment_view(files, path)?;
    if !arguments.keys_only {
        form.file(path, files.open(path, platform::OpenMode::Read)?.size()?)?;
        if let Some(view) = &view {
            form.segment(view)?;
        }
    }
    let mut result = Ok(());
    let mut damage = None;
    let summary = read_segment(files, path, Place::default(), &mut |group| {
        result = dump_group(arguments, group, form, &mut damage);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result?;
    if !arguments.keys_only {
        form.segment_end(&summary)?;
    }
    let end = match summary.end {
        SegmentEnd::Damaged(what) => Some((summary.end_position, what)),
        SegmentEnd::Clean | SegmentEnd::Torn(_) => None,
    };
    let header = summary.header_problem.map(|what| (0, what));
    match header.or(damage).or(end) {
        Some((position, what)) => {
            Err(StorageError::Corrupt { file: path.to_path_buf(), position, what }.into())
        }
        None => Ok(()),
    }
}

fn dump_group(
    arguments: &DumpArguments,
    group: &GroupView<'_>,
    form: &mut dyn Form,
    damage: &mut Option<(u64, &'static str)>,
) -> io::Result<()> {
    if !arguments.keys_only {
        form.group(group)?;
    }
    if arguments.all_headers {
        return Ok(());
    }
    let mut result = Ok(());
    let records = group.records(&mut |record| {
        result = dump_record(arguments, record, form);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if let Err(found) = records {
        damage.get_or_insert(found);
    }
    result
}

fn dump_record(
    arguments: &DumpArguments,
    record: &RecordView<'_>,
    form: &mut dyn Form,
) -> io::Result<()> {
    if !arguments.keys_only {
        form.record(record)?;
    }
    let Some(batch) = &record.batch else { return Ok(()) };
    let mut result = Ok(());
    batch.documents(&mut |document| {
        if document.seqno < arguments.start_seqno {
            return ControlFlow::Continue(());
        }
        result = if arguments.keys_only {
            form.key(document)
        } else if arguments.no_body && document.body != BodyView::Absent {
            form.document(&document.without_body())
        } else {
            form.document(document)
        };
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if result.is_ok()
        && !arguments.keys_only
        && let Some(state) = batch.state_json()
    {
        result = form.state(&state);
    }
    result
}
