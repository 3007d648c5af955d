//! A backup: what is in it, as one line of JSON in an answer that stays open as long as the backup
//! lives, and its vBuckets, each a couchstore file.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use cluster::Uuid;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::named_bucket::NamedBucket;
use crate::answers;
use crate::backups::{Backup, BackupOver, Leave};
use crate::bucket_view::{BackupCatalogue, BackupError, BackupSource, BackupVbucket};
use crate::context::Context;
use crate::stopping::until_stopped;

/// Parts of a file that wait for the network, at most.
const PARTS_MAX: usize = 4;
/// Bytes of a part, at most.
const PART_BYTES_MAX: usize = 256 << 10;

/// GET /pools/default/buckets/{bucket}/backup: holds the state of all files until the client
/// closes the connection.
pub(super) async fn begin(
    State(context): State<Arc<Context>>,
    NamedBucket(view): NamedBucket,
) -> Response {
    let (bucket, conflict_resolution) = (view.map(), view.facts().conflict_resolution);
    let Some(leave) = context.backups.try_begin() else {
        return unavailable("Other backups are under way; wait for them, or end them");
    };
    let (sender, receiver) = oneshot::channel();
    // The leave goes with the thread: a client that has left does not make room for another one.
    let begin = move || {
        let begun = view.begin_backup();
        drop(sender.send((begun, leave)));
    };
    if let Err(error) = platform::threads::spawn("BackupBegin", begin) {
        return unavailable(&format!("No thread can be started: {error}"));
    }
    let Ok((begun, leave)) = receiver.await else {
        return unavailable("The node is shutting down");
    };
    let source: Arc<dyn BackupSource> = match begun {
        Ok(source) => source.into(),
        Err(BackupError::Impossible(reason)) => return refused(StatusCode::BAD_REQUEST, &reason),
        Err(BackupError::MapChanges(reason)) => return refused(StatusCode::CONFLICT, &reason),
        Err(BackupError::Failed(reason)) => return unavailable(&reason),
    };
    let catalogue = source.catalogue();
    let backup = context.backups.add(bucket.name.clone(), source);
    let mut line = json!({
        "backup": backup.name(),
        "bucket": {
            "name": bucket.name,
            "uuid": bucket.uuid.to_string(),
            "type": "couchbase",
            "vbuckets": bucket.chains.len(),
            "conflict_resolution": conflict_resolution,
        },
        "node": context.view.node().version,
    });
    if let (Some(line), Value::Object(said)) = (line.as_object_mut(), described(&catalogue)) {
        line.extend(said);
    }
    let end = Box::pin(until_over(context, bucket.name, bucket.uuid));
    let line = Some(Bytes::from(format!("{line}\n")));
    let headers = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (headers, Body::new(Held { line, end, _backup: backup, _leave: leave })).into_response()
}

/// What a catalogue says.
fn described(catalogue: &BackupCatalogue) -> Value {
    let BackupCatalogue { revision, deleted, empty, elsewhere, .. } = catalogue;
    let vbucket = |vbucket: &BackupVbucket| {
        let BackupVbucket { vbid, state, bytes, is_late } = vbucket;
        json!({"vbid": vbid, "state": state, "bytes": bytes, "late": is_late})
    };
    let vbuckets: Value = catalogue.vbuckets.iter().map(vbucket).collect();
    let collections: Value = serde_json::from_str(&catalogue.collections).unwrap_or_default();
    json!({
        "rev": revision.revision,
        "revEpoch": revision.epoch,
        "deleted": deleted,
        "empty": empty,
        "elsewhere": elsewhere,
        "collections": collections,
        "settings": catalogue.settings,
        "cut_seconds": catalogue.took.as_secs_f64(),
        "vbuckets": vbuckets,
    })
}

/// GET /pools/default/buckets/{bucket}/backup/{backup}/{vbid}
pub(super) async fn vbucket(
    State(context): State<Arc<Context>>,
    Path((name, backup, number)): Path<(String, String, String)>,
) -> Response {
    let Ok(vbid) = number.parse() else { return answers::not_found() };
    let Some((source, over)) = context.backups.find(&name, &backup) else {
        return answers::not_found();
    };
    if !source.catalogue().vbuckets.iter().any(|vbucket| vbucket.vbid == vbid) {
        return answers::not_found();
    }
    let Some(leave) = context.backups.try_stream() else {
        return unavailable("Too many vBuckets are being read at the same time");
    };
    let (sender, parts) = mpsc::channel(PARTS_MAX);
    let writer = PartWriter { to: sender, over, runtime: Handle::current() };
    let is_whole = Arc::new(AtomicBool::new(false));
    let body = Parts { parts, is_whole: Arc::clone(&is_whole) };
    let read = move || {
        write_parts(source, vbid, writer, &is_whole);
        drop(leave);
    };
    if let Err(error) = platform::threads::spawn("BackupReader", read) {
        return unavailable(&format!("No thread can be started: {error}"));
    }
    let headers = [(header::CONTENT_TYPE, "application/octet-stream")];
    (headers, Body::new(body)).into_response()
}

/// Hands a vBucket on, part by part, and says whether that is all of it.
fn write_parts(
    source: Arc<dyn BackupSource>,
    vbid: u16,
    writer: PartWriter,
    is_whole: &AtomicBool,
) {
    // If it stays as it is the work is done all the same.
    drop(platform::threads::set_own_nice(platform::threads::NICE_LOWEST));
    let to = writer.to.clone();
    let mut over = writer.over.clone();
    let sink = move |bytes: &[u8]| {
        bytes.chunks(PART_BYTES_MAX).try_for_each(|part| writer.write(&mut over, part))
    };
    match source.write(vbid, Box::new(sink)) {
        Ok(()) => is_whole.store(true, Ordering::Release),
        Err(reason) if !to.is_closed() => {
            tracing::warn!(vbucket = vbid, %reason, "a vBucket could not be backed up");
        }
        Err(_) => {}
    }
}

/// Sends parts as long as the backup lives.
struct PartWriter {
    to: mpsc::Sender<Bytes>,
    over: BackupOver,
    runtime: Handle,
}

impl PartWriter {
    /// Waits for room: a client that reads slowly does not hold what has ended.
    fn write(&self, over: &mut BackupOver, part: &[u8]) -> io::Result<()> {
        let gone = |why| Err(io::Error::new(io::ErrorKind::BrokenPipe, why));
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = over.wait() => gone("the backup is over"),
                sent = self.to.send(Bytes::copy_from_slice(part)) => {
                    sent.or_else(|_| gone("the client has left"))
                }
            }
        })
    }
}

fn unavailable(reason: &str) -> Response {
    refused(StatusCode::SERVICE_UNAVAILABLE, reason)
}

fn refused(status: StatusCode, reason: &str) -> Response {
    answers::json_text(status, json!({"_": reason}).to_string())
}

/// Returns when the server stops, or the bucket is gone: a backup has a handle of it and its files
/// open, and the end of a deleted bucket waits for both.
async fn until_over(context: Arc<Context>, name: String, uuid: Uuid) {
    let mut changed = context.maps_changed.clone();
    loop {
        // A change from here on is looked at in the next round.
        changed.mark_unchanged();
        if context.view.bucket(&name).is_none_or(|bucket| bucket.map().uuid != uuid) {
            return;
        }
        tokio::select! {
            () = until_stopped(context.stopped.clone()) => return,
            changed = changed.changed() => if changed.is_err() { return },
        }
    }
}

/// A body of one line that ends when the server stops, the bucket is deleted or the client leaves.
struct Held {
    line: Option<Bytes>,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    _backup: Backup,
    _leave: Leave,
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(line) = self.line.take() {
            return Poll::Ready(Some(Ok(Frame::data(line))));
        }
        ready!(self.end.as_mut().poll(context));
        Poll::Ready(None)
    }
}

/// A body that comes in parts from a thread. What is sent so far is not taken for the whole when
/// the thread has ended before that: the connection breaks.
struct Parts {
    parts: mpsc::Receiver<Bytes>,
    /// Set before the last sender goes.
    is_whole: Arc<AtomicBool>,
}

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let part = ready!(self.parts.poll_recv(context));
        Poll::Ready(match part {
            Some(part) => Some(Ok(Frame::data(part))),
            None if self.is_whole.load(Ordering::Acquire) => None,
            None => Some(Err(io::Error::other("the vBucket is not whole"))),
        })
    }
}
