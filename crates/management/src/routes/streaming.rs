//! Configurations that stay open: a document and four newlines, again whenever the map changes,
//! until the server stops.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use cluster::BucketMap;
use hyper::body::Frame;
use tokio::sync::watch;

use super::cluster::pool_json;
use super::named_bucket::NamedBucket;
use crate::authentication::User;
use crate::context::Context;
use crate::stopping::until_stopped;

/// What ends a document. Source: docs/specification/clients.md, section 10.
const END_OF_DOCUMENT: &str = "\n\n\n\n";

/// The document as it is now; `None` ends the stream.
type Render = Box<dyn Fn(&Context) -> Option<String> + Send + Sync>;

/// GET /pools/default/nodeServicesStreaming
pub(super) async fn node_services(State(context): State<Arc<Context>>) -> Response {
    stream(context, Box::new(|context| Some(context.view.cluster_map().global_config())))
}

/// GET /poolsStreaming/default
pub(super) async fn pool(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
) -> Response {
    let render = move |context: &Context| Some(pool_json(&*context.view, &user).to_string());
    stream(context, Box::new(render))
}

/// GET /pools/default/bs/{bucket} and /pools/default/bucketsStreaming/{bucket}
pub(super) async fn bucket(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    let BucketMap { name, uuid, .. } = bucket.map();
    // Whoever only listens does not keep a bucket from going, and is not told of another one.
    let render = move |context: &Context| {
        let map = context.view.bucket(&name)?.map();
        (map.uuid == uuid).then(|| context.view.cluster_map().bucket_config(&map))
    };
    stream(context, Box::new(render))
}

fn stream(context: Arc<Context>, render: Render) -> Response {
    let changed = context.maps_changed.clone();
    let documents =
        Documents { next: Box::pin(std::future::ready(true)), context, render, changed };
    let headers = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (headers, Body::new(documents)).into_response()
}

/// A body of documents that ends when the server stops. Its length is unknown, which makes the
/// answer a chunked one.
struct Documents {
    context: Arc<Context>,
    render: Render,
    changed: watch::Receiver<()>,
    /// Whether there is another document; waits for that to be known.
    next: Pin<Box<dyn Future<Output = bool> + Send>>,
}

impl hyper::body::Body for Documents {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let has_next = ready!(self.next.as_mut().poll(context));
        if !has_next {
            return Poll::Ready(None);
        }
        // A change from here on is not in this document.
        self.changed.mark_unchanged();
        let Some(document) = (self.render)(&self.context) else { return Poll::Ready(None) };
        let (stopped, changed) = (self.context.stopped.clone(), self.changed.clone());
        self.next = Box::pin(until_changed(changed, stopped));
        let document = Bytes::from(document + END_OF_DOCUMENT);
        Poll::Ready(Some(Ok(Frame::data(document))))
    }
}

/// Whether the maps have changed before the server stopped.
async fn until_changed(mut changed: watch::Receiver<()>, stopped: watch::Receiver<bool>) -> bool {
    tokio::select! {
        () = until_stopped(stopped) => false,
        changed = changed.changed() => changed.is_ok(),
    }
}
