//! Configurations that stay open: one document and four newlines, then silence until the server
//! stops. The map of this version does not change while the node runs.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use tokio::sync::watch;

use super::Context;
use super::buckets::{Fields, find};
use crate::answers;
use crate::server::until_stopped;

/// What ends a document. Source: client compatibility specification, section 10.
const END_OF_DOCUMENT: &str = "\n\n\n\n";

/// GET /pools/default/nodeServicesStreaming
pub(super) async fn node_services(State(context): State<Arc<Context>>) -> Response {
    stream(context.view.cluster_map().global_config(), &context.stopped)
}

/// GET /pools/default/bs/{bucket} and /pools/default/bucketsStreaming/{bucket}
pub(super) async fn bucket(
    State(context): State<Arc<Context>>,
    Path(name): Path<String>,
    Query(query): Query<Fields>,
) -> Response {
    match find(&*context.view, &name, &query) {
        Some(bucket) => stream(context.view.cluster_map().bucket_config(&bucket), &context.stopped),
        None => answers::not_found(),
    }
}

fn stream(document: String, stopped: &watch::Receiver<bool>) -> Response {
    let end = Box::pin(until_stopped(stopped.clone()));
    let document = Some(Bytes::from(document + END_OF_DOCUMENT));
    let headers = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (headers, Body::new(OneDocument { document, end })).into_response()
}

/// A body of one document that ends when the server stops. Its length is unknown, which makes the
/// answer a chunked one.
struct OneDocument {
    document: Option<Bytes>,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl hyper::body::Body for OneDocument {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(document) = self.document.take() {
            return Poll::Ready(Some(Ok(Frame::data(document))));
        }
        ready!(self.end.as_mut().poll(context));
        Poll::Ready(None)
    }
}
