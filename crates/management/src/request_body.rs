//! Bodies of requests: each is taken in whole before its handler runs, and all that are held have a
//! limit together.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::Body as _;
use tokio::sync::Semaphore;

use crate::answers;
use crate::context::Context;
use crate::limits::Limits;
use crate::metric::Metric;

/// Where nodes give each other their users.
pub(crate) const USERS_EXCHANGE: &str = "/settee/users";
/// Where nodes give each other their plans.
pub(crate) const PLAN_EXCHANGE: &str = "/settee/clusterMap";
/// Bytes of what nodes give each other as JSON: all users and groups, or a plan of many buckets.
const EXCHANGE_BYTES_MAX: usize = 16 << 20;
/// Bytes of all of these together: two are carried out at a time, and two arrive meanwhile.
const EXCHANGES_BYTES_MAX: usize = 4 * EXCHANGE_BYTES_MAX;
/// Bytes of a login at the console. Anybody may send one, on every connection at once.
const SIGN_IN_BYTES_MAX: usize = 16 << 10;

/// Room for all bodies. What nodes give each other has its own, which nobody without the privilege
/// for it takes: a crowd with large forms does not keep a failover's map out.
pub(crate) struct BodyRoom {
    forms: Semaphore,
    exchanges: Semaphore,
    bytes_max: usize,
}

impl BodyRoom {
    pub(crate) fn new(limits: &Limits) -> Self {
        let forms = limits.bodies_bytes_max;
        assert!(limits.body_bytes_max <= forms, "one body has room");
        Self {
            forms: Semaphore::new(forms),
            exchanges: Semaphore::new(EXCHANGES_BYTES_MAX),
            bytes_max: forms + EXCHANGES_BYTES_MAX,
        }
    }

    pub(crate) fn metrics(&self) -> [Metric; 2] {
        let free = self.forms.available_permits() + self.exchanges.available_permits();
        let held = self.bytes_max.saturating_sub(free) as f64;
        let help = "Bytes of bodies of requests to the REST port, those that are to come included";
        [
            Metric::gauge("cm_http_body_bytes", help, held),
            Metric::gauge(
                "cm_http_body_bytes_max",
                "As many as there may be",
                self.bytes_max as f64,
            ),
        ]
    }
}

/// Takes the whole body in before a handler runs, so that a slow client waits at its own cost. Who
/// finds no room for it waits with all of it unread. Comes behind the look at the privilege: who
/// may not ask has nothing taken in.
pub(crate) async fn read_body(
    State(context): State<Arc<Context>>,
    request: Request,
    next: Next,
) -> Response {
    let is_exchange = [USERS_EXCHANGE, PLAN_EXCHANGE].contains(&request.uri().path());
    let (room, size_max) = if is_exchange {
        (&context.body_room.exchanges, EXCHANGE_BYTES_MAX)
    } else {
        (&context.body_room.forms, context.limits.body_bytes_max)
    };
    // Without a length it may be as large as it is allowed to be.
    let size = request.body().size_hint().upper();
    let size = size.map_or(size_max, |size| usize::try_from(size).unwrap_or(usize::MAX));
    let Some(permits) = u32::try_from(size).ok().filter(|_| size <= size_max) else {
        return too_large();
    };
    let waiting = tokio::time::timeout(context.limits.body_time_max, room.acquire_many(permits));
    let Ok(held) = waiting.await else {
        let line = "Too many bodies are arriving; try again in a moment.\r\n";
        return answers::text(StatusCode::SERVICE_UNAVAILABLE, line);
    };
    let answer = receive(&context.limits, size_max, request, next).await;
    drop(held);
    answer
}

/// The same of a login at the console, which is small: as many as there may be connections have
/// room.
pub(crate) async fn read_sign_in(
    State(context): State<Arc<Context>>,
    request: Request,
    next: Next,
) -> Response {
    let size_max = SIGN_IN_BYTES_MAX.min(context.limits.body_bytes_max);
    if request.body().size_hint().lower() > size_max as u64 {
        return too_large();
    }
    receive(&context.limits, size_max, request, next).await
}

async fn receive(limits: &Limits, size_max: usize, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let arriving = axum::body::to_bytes(body, size_max);
    match tokio::time::timeout(limits.body_time_max, arriving).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok(Err(_)) => {
            let line = "The body is malformed or too large.\r\n";
            answers::text(StatusCode::BAD_REQUEST, line)
        }
        Err(_) => answers::text(StatusCode::REQUEST_TIMEOUT, "The body did not arrive.\r\n"),
    }
}

fn too_large() -> Response {
    answers::text(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.\r\n")
}
