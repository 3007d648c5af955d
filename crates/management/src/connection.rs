//! One connection, and how many there are.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::limits::Limits;
use crate::metric::Metric;
use crate::server::until_stopped;
use crate::stalling_stream::StallingStream;

/// Serves requests until the client leaves, breaks the rules, or the server stops. What ends a
/// connection is the client's business: it is told, and nobody else needs to know.
pub(crate) async fn serve_connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    stopped: watch::Receiver<bool>,
) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let stream = TokioIo::new(StallingStream::new(stream, limits.write_stall_max));
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time_max)
        .max_buf_size(limits.header_bytes_max)
        .max_headers(limits.headers_max);
    let connection = builder.serve_connection(stream, TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = until_stopped(stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a management connection ended early");
    }
}

/// Counts open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    open: AtomicUsize,
    /// Connections closed at once because there were too many.
    refused: AtomicU64,
}

/// A counted connection.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Connections>);

impl Connections {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, open: AtomicUsize::new(0), refused: AtomicU64::new(0) }
    }

    /// A slot, unless all are taken.
    pub(crate) fn try_open(self: &Arc<Self>) -> Option<Slot> {
        if self.open.fetch_add(1, Ordering::AcqRel) < self.max {
            return Some(Slot(self.clone()));
        }
        self.open.fetch_sub(1, Ordering::AcqRel);
        self.refused.fetch_add(1, Ordering::Relaxed);
        None
    }

    pub(crate) fn metrics(&self) -> [Metric; 3] {
        let open = self.open.load(Ordering::Relaxed) as f64;
        let refused = self.refused.load(Ordering::Relaxed) as f64;
        [
            Metric::gauge("cm_http_connections", "Connections to the REST port now", open),
            Metric::gauge("cm_http_connections_max", "As many as there may be", self.max as f64),
            Metric::counter(
                "cm_http_connections_refused_total",
                "Connections closed at once because there were too many",
                refused,
            ),
        ]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}
