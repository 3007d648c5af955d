//! Configurations that stay open: a document and four newlines, again whenever the map changes,
//! until the server stops, the session ends, or the user may not see them any more.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use auth::Credentials;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};
use cluster::BucketMap;
use hyper::body::Frame;
use tokio::sync::watch;

use super::cluster::pool_json;
use super::named_bucket::NamedBucket;
use crate::authentication::{User, session_token};
use crate::authorization::check;
use crate::context::Context;
use crate::stopping::until_stopped;

/// What ends a document. Source: docs/specification/clients.md, section 10.
const END_OF_DOCUMENT: &str = "\n\n\n\n";

/// The document as it is now, for the user as it is now; `None` ends the stream.
type Render = Box<dyn Fn(&Context, &User) -> Option<String> + Send + Sync>;

/// GET /pools/default/nodeServicesStreaming
pub(super) async fn node_services(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    path: MatchedPath,
    headers: HeaderMap,
) -> Response {
    let render = |context: &Context, _: &User| Some(context.view.cluster_map().global_config());
    let listener = Listener::new(&context, user, path, &headers);
    stream(context, listener, Box::new(render))
}

/// GET /poolsStreaming/default
pub(super) async fn pool(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    path: MatchedPath,
    headers: HeaderMap,
) -> Response {
    let render = |context: &Context, user: &User| Some(pool_json(&*context.view, user).to_string());
    let listener = Listener::new(&context, user, path, &headers);
    stream(context, listener, Box::new(render))
}

/// GET /pools/default/bs/{bucket} and /pools/default/bucketsStreaming/{bucket}
pub(super) async fn bucket(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
    Extension(user): Extension<User>,
    path: MatchedPath,
    headers: HeaderMap,
) -> Response {
    let BucketMap { name, uuid, .. } = bucket.map();
    let listener =
        Listener { bucket: name.clone(), ..Listener::new(&context, user, path, &headers) };
    // Whoever only listens does not keep a bucket from going, and is not told of another one.
    let render = move |context: &Context, _: &User| {
        let map = context.view.bucket(&name)?.map();
        (map.uuid == uuid).then(|| context.view.cluster_map().bucket_config(&map))
    };
    stream(context, listener, Box::new(render))
}

fn stream(context: Arc<Context>, listener: Listener, render: Render) -> Response {
    let changed = context.maps_changed.clone();
    let next = Box::pin(std::future::ready(true));
    let documents = Documents { next, context, listener, render, changed };
    let headers = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (headers, Body::new(documents)).into_response()
}

/// Who listens to a stream.
struct Listener {
    user: User,
    /// What the user had when the stream began: whoever has another password, or is another user of
    /// that name, does not listen to it.
    credentials: Option<Arc<Credentials>>,
    /// Of the session, if the request belongs to one.
    token: Option<String>,
    /// What was asked for, as the table of requests has it, and the bucket in it.
    path: MatchedPath,
    bucket: String,
}

impl Listener {
    fn new(context: &Context, user: User, path: MatchedPath, headers: &HeaderMap) -> Self {
        let credentials = context.users.credentials(&user.name);
        let token = session_token(context, &user, headers);
        Self { user, credentials, token, path, bucket: String::new() }
    }

    /// The user as it is now, if it may still listen.
    fn now(&self, context: &Context) -> Option<User> {
        if self.token.as_ref().is_some_and(|token| !context.sessions.is_on(token)) {
            return None;
        }
        let name = &self.user.name;
        if context.users.credentials(name) != self.credentials {
            return None;
        }
        let access = Arc::new(context.users.access(name)?);
        let bucket = |_: &str| Some(self.bucket.as_str());
        check(&access, &Method::GET, self.path.as_str(), bucket).ok()?;
        Some(User { access, ..self.user.clone() })
    }
}

/// A body of documents that ends when the server stops. Its length is unknown, which makes the
/// answer a chunked one.
struct Documents {
    context: Arc<Context>,
    listener: Listener,
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
        let Some(user) = self.listener.now(&self.context) else { return Poll::Ready(None) };
        let Some(document) = (self.render)(&self.context, &user) else { return Poll::Ready(None) };
        let (changed, token) = (self.changed.clone(), self.listener.token.clone());
        self.next = Box::pin(until_changed(Arc::clone(&self.context), changed, token));
        let document = Bytes::from(document + END_OF_DOCUMENT);
        Poll::Ready(Some(Ok(Frame::data(document))))
    }
}

/// Whether the maps have changed before the server stopped or the session of `token` ended.
async fn until_changed(
    context: Arc<Context>,
    mut changed: watch::Receiver<()>,
    token: Option<String>,
) -> bool {
    // Before the session is looked at: who signs out from here on is heard of.
    let mut signed_out = context.sessions.signed_out();
    while token.as_ref().is_none_or(|token| context.sessions.is_on(token)) {
        tokio::select! {
            () = until_stopped(context.stopped.clone()) => return false,
            changed = changed.changed() => return changed.is_ok(),
            // It may have been somebody else.
            _ = signed_out.changed(), if token.is_some() => {}
        }
    }
    false
}
