//! One connection, and how many there are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use auth::{Access, Privilege};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use platform::network::counted_address;
use platform::{Clock, Seldom};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};

use crate::authentication::CertifiedUser;
use crate::limits::Limits;
use crate::metric::Metric;
use crate::set_up::Peer;
use crate::stalling_stream::StallingStream;
use crate::stopping::until_stopped;

/// Connections of a user that do not give way, however many others there are.
const USER_PLACES_SAFE: usize = 16;
/// Log lines about places that are all taken come at most as often.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// What a connection is served with.
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) limits: Limits,
    pub(crate) stopped: watch::Receiver<bool>,
    pub(crate) slot: Arc<Slot>,
    /// Where the client is.
    pub(crate) peer: Peer,
    /// By which port it came.
    pub(crate) door: Door,
    /// Who the client is by its certificate.
    pub(crate) certified: Option<CertifiedUser>,
}

/// Which of the ports a request has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Door {
    /// Whether nobody can listen.
    pub(crate) is_tls: bool,
}

/// Serves requests until the client leaves, breaks the rules, or the server stops. What ends a
/// connection is the client's business: it is told, and nobody else needs to know.
pub(crate) async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    serving: Serving,
) {
    let Serving { router, limits, stopped, slot, peer, door, certified } = serving;
    let stream = TokioIo::new(StallingStream::new(stream, limits.write_stall_max));
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time_max)
        .max_buf_size(limits.header_bytes_max)
        .max_headers(limits.headers_max);
    let router = TowerToHyperService::new(router);
    // Whoever checks the login of a request says so to the connection.
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(slot.clone());
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(door);
        if let Some(certified) = &certified {
            request.extensions_mut().insert(certified.clone());
        }
        router.call(request)
    });
    let connection = builder.serve_connection(stream, service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = slot.displaced() => return,
        () = until_stopped(stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a management connection ended early");
    }
}

/// Connections that are open. Those on which nobody has logged in yet give way, those of the
/// fullest door first: whoever opens many and says nothing shuts nobody out, and a crowd that
/// shakes hands at the door of TLS takes no place of those who ask without. Where there are none,
/// one of the user that has most of them does, unless that is an administrator, as the nodes are.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    /// Those without a login from one address by one door, at most.
    strangers_of_address_max: usize,
    table: Mutex<Table>,
    /// Connections closed at once because there were too many.
    refused: AtomicU64,
    /// Connections that were closed for newer ones.
    displaced: AtomicU64,
    log: Seldom,
}

#[derive(Debug, Default)]
struct Table {
    next_id: u64,
    /// Those without a login, the oldest first.
    strangers: BTreeMap<u64, Stranger>,
    /// Those with one, the oldest first.
    known: BTreeMap<u64, Known>,
}

/// A connection on which somebody has logged in.
#[derive(Debug)]
struct Known {
    /// Whose it is; `None` for an administrator's.
    user: Option<String>,
    displaced: Arc<Notify>,
}

/// A connection on which nobody has logged in yet.
#[derive(Debug)]
struct Stranger {
    /// Where it comes from, as limits count it.
    address: IpAddr,
    door: Door,
    displaced: Arc<Notify>,
}

impl Table {
    fn open(&self) -> usize {
        self.strangers.len() + self.known.len()
    }

    /// The oldest stranger from `address` by `door`, if there are `max` of them.
    fn oldest_of_crowd(&self, address: IpAddr, door: Door, max: usize) -> Option<u64> {
        let mut crowd = self
            .strangers
            .iter()
            .filter(|(_, stranger)| stranger.address == address && stranger.door == door)
            .map(|(id, _)| *id);
        let oldest = crowd.next()?;
        (1 + crowd.count() >= max).then_some(oldest)
    }

    /// The oldest stranger of the door by which most have come.
    fn oldest_of_fullest_door(&self) -> Option<u64> {
        let by_tls = self.strangers.values().filter(|stranger| stranger.door.is_tls).count();
        let fullest = Door { is_tls: 2 * by_tls > self.strangers.len() };
        let mut all = self.strangers.iter();
        let oldest = all.find(|(_, stranger)| stranger.door == fullest);
        oldest.or_else(|| self.strangers.first_key_value()).map(|(id, _)| *id)
    }

    /// The oldest connection of the user who has most of them, if they are many.
    fn oldest_of_fullest_user(&self) -> Option<u64> {
        let mut users: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        for (id, known) in &self.known {
            let Some(user) = &known.user else { continue };
            users.entry(user).or_insert((0, *id)).0 += 1;
        }
        let many = users.into_values().filter(|(count, _)| *count > USER_PLACES_SAFE);
        many.max_by_key(|(count, _)| *count).map(|(_, oldest)| oldest)
    }

    /// Takes the place of a stranger, or of a user who has many.
    fn give_up_place(&mut self, crowded: Option<u64>) -> Option<Arc<Notify>> {
        let stranger = crowded.or_else(|| self.oldest_of_fullest_door());
        if let Some(stranger) = stranger.and_then(|id| self.strangers.remove(&id)) {
            return Some(stranger.displaced);
        }
        let known = self.oldest_of_fullest_user().and_then(|id| self.known.remove(&id));
        known.map(|known| known.displaced)
    }
}

/// A counted connection.
#[derive(Debug)]
pub(crate) struct Slot {
    connections: Arc<Connections>,
    id: u64,
    displaced: Arc<Notify>,
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Self {
        let (refused, displaced) = (AtomicU64::new(0), AtomicU64::new(0));
        let Limits { connections_max: max, strangers_of_address_max, .. } = *limits;
        assert!(max > 0 && strangers_of_address_max > 0, "somebody can reach the port");
        let log = Seldom::every(LOG_INTERVAL);
        Self { max, strangers_of_address_max, table: Mutex::default(), refused, displaced, log }
    }

    /// A slot for a client at `address` who comes by `door`; when all are taken, or too many by
    /// strangers from there, that of the oldest of these, or of somebody who has many. `None` when
    /// there is none.
    pub(crate) fn try_open(self: &Arc<Self>, address: IpAddr, door: Door) -> Option<Slot> {
        let address = counted_address(address);
        let mut table = self.lock();
        let crowded = table.oldest_of_crowd(address, door, self.strangers_of_address_max);
        let needs_place = crowded.is_some() || table.open() >= self.max;
        if needs_place {
            let Some(oldest) = table.give_up_place(crowded) else {
                drop(table);
                self.refused.fetch_add(1, Ordering::Relaxed);
                self.say_full();
                return None;
            };
            self.displaced.fetch_add(1, Ordering::Relaxed);
            // One permit is kept: whoever does not wait for it yet gives way as soon as it does.
            oldest.notify_one();
        }
        let id = table.next_id;
        table.next_id += 1;
        let displaced = Arc::new(Notify::new());
        table.strangers.insert(id, Stranger { address, door, displaced: displaced.clone() });
        assert!(table.open() <= self.max, "a connection beyond the limit takes another's place");
        Some(Slot { connections: self.clone(), id, displaced })
    }

    pub(crate) fn metrics(&self) -> [Metric; 4] {
        let open = self.lock().open() as f64;
        let refused = self.refused.load(Ordering::Relaxed) as f64;
        let displaced = self.displaced.load(Ordering::Relaxed) as f64;
        [
            Metric::gauge("cm_http_connections", "Connections to the REST port now", open),
            Metric::gauge("cm_http_connections_max", "As many as there may be", self.max as f64),
            Metric::counter(
                "cm_http_connections_refused_total",
                "Connections closed at once because there were too many",
                refused,
            ),
            Metric::counter(
                "cm_http_connections_displaced_total",
                "Connections that were closed for newer ones",
                displaced,
            ),
        ]
    }

    /// Says that somebody finds no place.
    fn say_full(&self) {
        let Some(unlogged) = self.log.passes(Clock::real().now()) else { return };
        let known = self.lock().known.len();
        tracing::warn!(known, unlogged, "the REST port has no place for another connection");
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Somebody has logged in on this connection: it does not give way any more, or not before
    /// strangers do.
    pub(crate) fn keep(&self, user: &str, access: &Access) {
        let mut table = self.connections.lock();
        // One that has been told to give way has lost its place, and does not come back by a login.
        if let Some(Stranger { displaced, .. }) = table.strangers.remove(&self.id) {
            let is_administrator = access.on_node().contains(Privilege::NodesWrite);
            let user = (!is_administrator).then(|| user.to_owned());
            let before = table.known.insert(self.id, Known { user, displaced });
            assert!(before.is_none(), "a connection is no stranger's and somebody's at once");
        }
    }

    /// Returns when the connection is to give way.
    pub(crate) async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.connections.lock();
        table.strangers.remove(&self.id);
        table.known.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Door = Door { is_tls: false };
    const TLS: Door = Door { is_tls: true };

    fn connections(max: usize, strangers_of_address_max: usize) -> Arc<Connections> {
        let limits = Limits { connections_max: max, strangers_of_address_max, ..Limits::default() };
        Arc::new(Connections::new(&limits))
    }

    fn is_in(connections: &Connections, slot: &Slot) -> bool {
        connections.lock().strangers.contains_key(&slot.id)
    }

    #[test]
    fn a_crowd_at_one_door_displaces_nobody_at_the_other() {
        // From one address, and from so many that all places are taken.
        for (max, of_address_max, address_count) in [(100, 4, 1), (8, 100, 200)] {
            let connections = connections(max, of_address_max);
            let address = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
            for (quiet, loud) in [(PLAIN, TLS), (TLS, PLAIN)] {
                let first = connections.try_open(address(0), quiet).unwrap();
                let crowd: Vec<_> = (0..200)
                    .map(|number| connections.try_open(address(number % address_count), loud))
                    .map(Option::unwrap)
                    .collect();
                assert!(is_in(&connections, &first), "{loud:?}");
                assert!(is_in(&connections, crowd.last().unwrap()), "{loud:?}");
                assert!(!is_in(&connections, &crowd[0]), "{loud:?}");
            }
        }
    }
}
