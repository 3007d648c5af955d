//! The console: its files, signing in and out, and the figures that it draws.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use auth::users::USER_NAME_SIZE_MAX;
use auth::{Credentials, Privilege};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use hyper::body::Frame;
use platform::Clock;
use tokio::sync::watch;

use super::form_fields::FormFields;
use super::health::all_metrics;
use crate::answers;
use crate::authentication::{User, logs_in, session_token};
use crate::connection::{Door, Slot};
use crate::console;
use crate::context::Context;
use crate::live_figures::INTERVAL;
use crate::metric::Metric;
use crate::session_cookie::{forgetting, is_from_console, keeping, token_in};
use crate::set_up::Peer;
use crate::stopping::until_stopped;

/// Where the console begins.
const BEGIN: &str = "/ui/";
/// Why nobody is signed in or out.
const NOT_THE_CONSOLE: &str = "Only the console signs in here; send `ns-server-ui: yes`, or a \
                               login with each request.\n";

/// Whoever opens the node's address in a browser gets the console: no tool asks for a page.
pub(super) async fn send_browsers(request: Request, next: Next) -> Response {
    let accepts = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok());
    let asks_for_page = accepts.is_some_and(|accepts| accepts.contains("text/html"));
    if asks_for_page && request.method() == Method::GET && request.uri().path() == "/" {
        return Redirect::to(BEGIN).into_response();
    }
    next.run(request).await
}

/// GET /ui
pub(super) async fn begin() -> Redirect {
    Redirect::to(BEGIN)
}

/// GET /ui/
pub(super) async fn page() -> Response {
    console::page()
}

/// GET /ui/{file}
pub(super) async fn file(Path(name): Path<String>) -> Response {
    console::file(&name)
}

/// POST /uilogin: a user and a password become a session, whose token the browser keeps.
pub(super) async fn sign_in(
    State(context): State<Arc<Context>>,
    Extension(peer): Extension<Peer>,
    Extension(door): Extension<Door>,
    Extension(slot): Extension<Arc<Slot>>,
    headers: HeaderMap,
    FormFields(mut fields): FormFields,
) -> Response {
    if !is_from_console(&headers) {
        return (StatusCode::FORBIDDEN, NOT_THE_CONSOLE).into_response();
    }
    let said = fields.remove("user").zip(fields.remove("password"));
    let Some((user, password)) = said.filter(|_| fields.is_empty()) else {
        return answers::refused("_", "Say `user` and `password`, and nothing else");
    };
    if user.len() > USER_NAME_SIZE_MAX {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let is_user = match logs_in(&context, &user, password.into_bytes(), Some(peer)).await {
        Ok(is_user) => is_user,
        Err(unchecked) => return unchecked.answer(),
    };
    // It may have been removed since.
    let Some(credentials) = context.users.credentials(&user).filter(|_| is_user) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    if let Some(access) = context.users.access(&user) {
        slot.keep(&user, &access);
    }
    let token = context.sessions.begin(&user, credentials);
    with_cookie(keeping(&token, &headers, door))
}

/// POST /uilogout
pub(super) async fn sign_out(
    State(context): State<Arc<Context>>,
    Extension(door): Extension<Door>,
    headers: HeaderMap,
) -> Response {
    if !is_from_console(&headers) {
        return (StatusCode::FORBIDDEN, NOT_THE_CONSOLE).into_response();
    }
    if let Some(token) = token_in(&headers) {
        context.sessions.end(token);
    }
    with_cookie(forgetting(&headers, door))
}

fn with_cookie(cookie: Option<HeaderValue>) -> Response {
    let mut answer = StatusCode::OK.into_response();
    if let Some(cookie) = cookie {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}

/// GET /settee/figuresStreaming: the figures of each second as server-sent events, until the server
/// stops, or the user may not see them any more.
pub(super) async fn figures(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    headers: HeaderMap,
) -> Response {
    let token = session_token(&context, &user, &headers);
    let credentials = context.users.credentials(&user.name);
    let User { name, is_setting_up, .. } = user;
    let viewer = Viewer { user: name, credentials, is_setting_up, token };
    let events = Events { next: Box::pin(std::future::ready(true)), context, viewer };
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::new(events)).into_response()
}

/// What the console shows: all metrics, and of those of high cardinality how long commands take.
fn shown_figures(context: &Context) -> Vec<Metric> {
    let mut figures = all_metrics(context);
    let high = context.view.metrics_of_high_cardinality();
    let is_of_command = |it: &Metric| it.labels.iter().any(|(label, _)| *label == "opcode");
    figures.extend(high.into_iter().filter(is_of_command));
    figures
}

/// Who looks at figures.
struct Viewer {
    user: String,
    /// What the user had when the stream began: whoever has another password, or is another user of
    /// that name, does not look.
    credentials: Option<Arc<Credentials>>,
    is_setting_up: bool,
    /// Of the session, if the request belongs to one.
    token: Option<String>,
}

impl Viewer {
    /// Whether it still may. Its session counts as used.
    fn may_look(&self, context: &Context) -> bool {
        let goes_on = |token: &String| context.sessions.user_of(token, &context.users).is_some();
        let is_same = context.users.credentials(&self.user) == self.credentials;
        let access = context.users.access(&self.user);
        let is_allowed =
            access.is_some_and(|access| access.on_node().contains(Privilege::SimpleStats));
        let sets_up = !self.is_setting_up || context.view.set_up().is_some();
        is_same && is_allowed && sets_up && self.token.as_ref().is_none_or(goes_on)
    }
}

/// A body of events, one a second. Nothing is read for it before it is asked for the next one.
struct Events {
    context: Arc<Context>,
    viewer: Viewer,
    /// Whether there is another event; waits for its time.
    next: Pin<Box<dyn Future<Output = bool> + Send>>,
}

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let has_next = ready!(self.next.as_mut().poll(task));
        if !has_next || !self.viewer.may_look(&self.context) {
            return Poll::Ready(None);
        }
        let context = &self.context;
        let event = context.live_figures.event(&Clock::real(), || shown_figures(context));
        self.next = Box::pin(until_next(self.context.stopped.clone()));
        Poll::Ready(Some(Ok(Frame::data(event))))
    }
}

/// Whether the time of the next event has come before the server stopped.
async fn until_next(stopped: watch::Receiver<bool>) -> bool {
    tokio::select! {
        () = until_stopped(stopped) => false,
        () = tokio::time::sleep(INTERVAL) => true,
    }
}
