//! RANGE_SCAN_CREATE, RANGE_SCAN_CONTINUE, RANGE_SCAN_CANCEL. Source:
//! docs/specification/protocol.md, section 16.1.

use std::ops::Bound;
use std::time::Duration;

use auth::Privilege;
use bucket::{
    Attempted, Bucket, KeyRange, PortionEnd, ScanContent, ScanId, ScanLimits, ScanRefused,
    ScanRequest, ScanSampling, ScanSnapshot, ScanTurn,
};
use executor::{Next, TaskContext, TaskKind, TaskName};
use protocol::range_scan::{
    RangeScanContinue, RangeScanCreate, ScanSelection, SnapshotRequirements, cancelled_scan,
};
use protocol::{Feature, Status};

use super::documents::accepts_compression;
use super::refusals::refuse;
use crate::completed::Completed;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};
use crate::scan_results::{ScanPortion, ScanResults};

static CREATE: TaskName = TaskName::new("RangeScanCreateTask", TaskKind::AuxIo)
    .priority(6)
    .expected(Duration::from_millis(100));
static CONTINUE: TaskName = TaskName::new("RangeScanContinueTask", TaskKind::AuxIo)
    .priority(6)
    .expected(Duration::from_millis(100));

/// RANGE_SCAN_CREATE.
pub(super) fn create(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(wanted) = wanted_scan(connection, request, turn) else { return Done::Answered };
    if !connection.has_in(wanted.collection, Privilege::RangeScan, request, turn) {
        return Done::Answered;
    }
    match bucket.await_scan_snapshot(turn.session, wanted.vbid, wanted.collection, wanted.snapshot)
    {
        Ok(Attempted::Answered(())) => begin(connection, request, bucket, wanted, turn),
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse_scan(connection, request, refused, turn),
    }
}

/// What a scan has to see is persisted.
pub(super) fn persisted(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(wanted) = wanted_scan(connection, request, turn) else { return Done::Answered };
    begin(connection, request, bucket, wanted, turn)
}

/// The scan that a client wants; answered when there can be none.
fn wanted_scan(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Option<ScanRequest> {
    let reply = request.reply(connection);
    let wanted = match RangeScanCreate::parse(request.frame.value) {
        Ok(wanted) => wanted,
        Err(context) => {
            reply.fail(turn, Status::Einval, context);
            return None;
        }
    };
    if wanted.include_xattrs && !connection.features.contains(Feature::RangeScanIncludeXattr) {
        reply.fail(turn, Status::Einval, "attributes of scanned documents were not negotiated");
        return None;
    }
    let (range, sampling) = match &wanted.selection {
        ScanSelection::Range { start, end } => {
            let range = KeyRange::between(wanted.collection, as_slices(start), as_slices(end));
            (range, None)
        }
        ScanSelection::Sampling { samples, seed } => {
            let sampling = ScanSampling { samples: *samples, seed: *seed };
            (Some(KeyRange::of_collection(wanted.collection)), Some(sampling))
        }
    };
    let Some(range) = range else {
        reply.fail(turn, Status::Einval, "the range ends in front of its start");
        return None;
    };
    let content = match (wanted.key_only, wanted.include_xattrs) {
        (true, _) => ScanContent::Keys,
        (false, false) => ScanContent::Documents,
        (false, true) => ScanContent::DocumentsWithXattrs,
    };
    Some(ScanRequest {
        vbid: request.vbid(),
        name: wanted.name,
        collection: wanted.collection,
        range,
        sampling,
        content,
        snapshot: wanted.snapshot.map(snapshot_of),
    })
}

fn as_slices(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn snapshot_of(wanted: SnapshotRequirements) -> ScanSnapshot {
    let SnapshotRequirements { uuid, seqno, must_exist, timeout_ms } = wanted;
    ScanSnapshot { uuid, seqno, must_exist, timeout: Duration::from_millis(timeout_ms) }
}

/// Has a thread that may wait for files make a scan.
fn begin(
    connection: &Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    wanted: ScanRequest,
    turn: &mut Turn<'_>,
) -> Done {
    let opened = bucket.clone();
    let work = move || Completed::ScanOpened(opened.open_range_scan(&wanted));
    in_background(connection, request, (bucket, &CREATE), turn, work)
}

/// A scan has been made, or not.
pub(super) fn opened(
    connection: &mut Connection,
    request: &Request<'_>,
    result: Result<ScanId, ScanRefused>,
    turn: &mut Turn<'_>,
) -> Done {
    match result {
        Ok(id) => {
            let content = Content { payload: Payload::Bytes(&id.0), ..Content::default() };
            request.reply(connection).send(turn, content);
            Done::Answered
        }
        Err(refused) => refuse_scan(connection, request, refused, turn),
    }
}

/// RANGE_SCAN_CONTINUE: several responses, of which the last one has another status.
pub(super) fn go_on(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(wanted) = RangeScanContinue::parse(request.frame.extras) else {
        let context = "the extras are a scan and its limits in items, milliseconds and bytes";
        request.reply(connection).fail(turn, Status::Einval, context);
        return Done::Answered;
    };
    // A portion is held until its client takes it: none is begun where there is no room left.
    if !turn.shared.client_memory.has_room_for(connection.holder(), 0) {
        let context = "the node holds too much for its clients; try again";
        request.reply(connection).fail(turn, Status::Etmpfail, context);
        return Done::Answered;
    }
    let limit = |number: u32| (number > 0).then(|| u64::from(number));
    let limits = ScanLimits {
        items_max: limit(wanted.items_max),
        bytes_max: limit(wanted.bytes_max),
        time_max: limit(wanted.time_max_ms).map(Duration::from_millis),
    };
    let id = ScanId(wanted.id);
    if !may_have(connection, request, bucket, id, turn) {
        return Done::Answered;
    }
    match bucket.continue_range_scan(request.vbid(), id, limits) {
        Ok(scan) => read(connection, request, bucket, scan, turn),
        Err(refused) => refuse_scan(connection, request, refused, turn),
    }
}

/// Whether the user may scan what a scan is about, which another user may have made; answered when
/// not. Comes before the scan's place is taken, which nobody else has meanwhile.
fn may_have(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    id: ScanId,
    turn: &mut Turn<'_>,
) -> bool {
    match bucket.range_scan_collection(request.vbid(), id) {
        Ok(collection) => connection.has_in(collection, Privilege::RangeScan, request, turn),
        Err(refused) => {
            refuse_scan(connection, request, refused, turn);
            false
        }
    }
}

/// Has a thread that may wait for files read the next portion. Once that is sent it is asked for
/// another one, so that no more is read than the client takes.
fn read(
    connection: &Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    mut scan: ScanTurn,
    turn: &mut Turn<'_>,
) -> Done {
    let accepts_json = connection.features.contains(Feature::Json);
    let mut results =
        ScanResults::new(scan.content(), accepts_compression(connection), accepts_json);
    let work = move || {
        let end = scan.read(&mut results);
        Completed::ScanRead(Box::new(ScanPortion { scan, results, end }))
    };
    in_background(connection, request, (bucket, &CONTINUE), turn, work)
}

/// A portion has been read.
pub(super) fn read_portion(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    portion: ScanPortion,
    turn: &mut Turn<'_>,
) -> Done {
    let ScanPortion { scan, results, end } = portion;
    let status = match end {
        PortionEnd::Portion => None,
        PortionEnd::Paused => Some(Status::RangeScanMore),
        PortionEnd::Complete => Some(Status::RangeScanComplete),
        PortionEnd::Ended(refused) => return refuse_scan(connection, request, refused, turn),
    };
    let extras = u32::from(scan.content() != ScanContent::Keys).to_be_bytes();
    let reply = request.reply(connection);
    let mut frames = results.into_frames();
    // The status that ends the answer comes with the last of the results.
    let last = status.map(|status| (status, frames.pop().unwrap_or_default()));
    let frames = frames.into_iter().map(|frame| (Status::Success, frame)).chain(last);
    for (status, frame) in frames {
        let payload = Payload::Owned(frame);
        reply.send(turn, Content { status, extras: &extras, payload, ..Content::default() });
    }
    if status.is_some() { Done::Answered } else { read(connection, request, bucket, scan, turn) }
}

/// RANGE_SCAN_CANCEL.
pub(super) fn cancel(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(id) = cancelled_scan(request.frame.extras) else {
        request.reply(connection).fail(turn, Status::Einval, "the extras are a scan");
        return Done::Answered;
    };
    if !may_have(connection, request, bucket, ScanId(id), turn) {
        return Done::Answered;
    }
    match bucket.cancel_range_scan(request.vbid(), ScanId(id)) {
        Ok(()) => {
            request.reply(connection).done(turn);
            Done::Answered
        }
        Err(refused) => refuse_scan(connection, request, refused, turn),
    }
}

/// Parks the request until `work` was done on a thread that may wait for files.
pub(super) fn in_background(
    connection: &Connection,
    request: &Request<'_>,
    (bucket, task): (&Bucket, &'static TaskName),
    turn: &mut Turn<'_>,
    work: impl FnOnce() -> Completed + Send + 'static,
) -> Done {
    let (waiter, mailboxes) = (turn.session.waiter, turn.shared.mailboxes.clone());
    let mut work = Some(work);
    let run = move |_: &TaskContext<'_>| {
        if let Some(work) = work.take() {
            mailboxes.complete_with(waiter, work());
        }
        Next::Finished
    };
    match turn.shared.pool.schedule_detached(bucket.task_owner(), task, run) {
        Ok(()) => Done::Parked,
        Err(_) => {
            request.reply(connection).fail(turn, Status::Etmpfail, "the node is stopping");
            Done::Answered
        }
    }
}

/// Answers a request on a scan, or a list of keys, that is refused.
pub(super) fn refuse_scan(
    connection: &mut Connection,
    request: &Request<'_>,
    refused: ScanRefused,
    turn: &mut Turn<'_>,
) -> Done {
    let (status, context) = match refused {
        ScanRefused::Vbucket(refused) => return refuse(connection, request, refused, turn),
        ScanRefused::OtherHistory => {
            (Status::VbuuidNotEqual, "the vBucket is on another branch of its history")
        }
        ScanRefused::Empty => (Status::KeyEnoent, "nothing is in the range"),
        ScanRefused::NoSuchChange => {
            (Status::NotStored, "the seqno is not the last change of any document")
        }
        ScanRefused::NotPersisted => (Status::Etmpfail, "the seqno was not persisted in time"),
        ScanRefused::TooMany => (Status::Ebusy, "there are too many scans; try again"),
        ScanRefused::Unknown => (Status::KeyEnoent, "there is no such scan, or no longer"),
        ScanRefused::Busy => (Status::Ebusy, "the scan is being continued already"),
        ScanRefused::Cancelled => (Status::RangeScanCancelled, "the scan was cancelled"),
        ScanRefused::Unreadable => {
            (Status::Etmpfail, "the vBucket's file cannot be read; see the node's log")
        }
    };
    request.reply(connection).fail(turn, status, context);
    Done::Answered
}
