//! The server's thread: accepts connections until it is told to stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use auth::{PasswordChecker, Users};
use axum::Router;
use platform::Clock;
use platform::network::prepare_accepted;
use tls::CertificateStore;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::{Connections, Door, Serving, serve_stream};
use crate::context::Context;
use crate::failed_logins::FailedLogins;
use crate::limits::Limits;
use crate::live_figures::LiveFigures;
use crate::node_view::NodeView;
use crate::other_nodes::OtherNodes;
use crate::query_stub;
use crate::request_body::BodyRoom;
use crate::routes;
use crate::sessions::Sessions;
use crate::set_up::{self, Peer};
use crate::stopping::until_stopped;
use crate::tls_connection::serve_tls;

/// Threads that do what clients ask for and that takes long. They may wait for other nodes.
const BLOCKING_THREADS_MAX: usize = 2;
/// Threads that carry out cluster maps and take users of other nodes. They never wait for other
/// nodes, nor behind what does: nodes that ask each other at the same time all get their answers.
const PEER_THREADS_MAX: usize = 2;
/// Threads that check passwords: a login takes some 15 ms of one.
const PASSWORD_THREADS: usize = 1;
/// How long to wait when the process has no file descriptor left for a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Starts REST ports.
#[derive(Debug)]
pub struct ManagementServer;

/// Where REST is served.
#[derive(Debug)]
pub struct Ports {
    /// Where requests are read as they are.
    pub plain: std::net::TcpListener,
    /// Where they come by TLS.
    pub tls: Option<TlsPort>,
    /// Where programs ask that wait for a query service, and hear that there is none.
    pub query_stub: Option<std::net::TcpListener>,
}

/// Where requests come by TLS.
pub struct TlsPort {
    /// The port.
    pub listener: std::net::TcpListener,
    /// What is shown to clients.
    pub certificates: Arc<CertificateStore>,
}

impl std::fmt::Debug for TlsPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsPort").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// A connection that has come.
struct Accepted {
    stream: TcpStream,
    peer: Peer,
    at: At,
}

/// Which listener a connection has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Plain,
    Tls,
    QueryStub,
}

/// The listeners of a server that runs.
struct Listeners {
    plain: TcpListener,
    tls: Option<TcpListener>,
    query_stub: Option<TcpListener>,
}

/// What answers requests.
struct Routers {
    rest: Router,
    query_stub: Router,
}

/// A running REST port. Dropping it shuts it down.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl ManagementServer {
    /// Serves `ports`, whose listeners block, on a thread of its own, with the default [`Limits`].
    pub fn start(ports: Ports, view: Arc<dyn NodeView>, users: Arc<Users>) -> io::Result<Handle> {
        Self::start_with(ports, view, users, Limits::default())
    }

    /// As [`ManagementServer::start`], with limits of the caller's choice.
    pub fn start_with(
        ports: Ports,
        view: Arc<dyn NodeView>,
        users: Arc<Users>,
        limits: Limits,
    ) -> io::Result<Handle> {
        let Ports { plain, tls, query_stub } = ports;
        let address = plain.local_addr()?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("ManagementWork")
            .build()?;
        // Of it only the threads are used.
        let peer_runtime = Builder::new_current_thread()
            .max_blocking_threads(PEER_THREADS_MAX)
            .thread_name("ManagementPeers")
            .build()?;
        let (certificates, tls) = tls.map(|port| (port.certificates, port.listener)).unzip();
        let listeners = {
            // A listener registers with the runtime that is entered, which nobody drives yet.
            let _inside = runtime.enter();
            Listeners {
                plain: listener_of(plain)?,
                tls: tls.map(listener_of).transpose()?,
                query_stub: query_stub.map(listener_of).transpose()?,
            }
        };
        let (stop, stopped) = watch::channel(false);
        let connections = Arc::new(Connections::new(&limits));
        let backups = Arc::default();
        let (maps, maps_changed) = watch::channel(());
        view.watch_maps(Box::new(move || maps.send_replace(())));
        let passwords = PasswordChecker::start(users.clone(), "RestLogin", PASSWORD_THREADS)?;
        let context = Context {
            view,
            users,
            passwords,
            limits,
            connections,
            body_room: BodyRoom::new(&limits),
            failed_logins: FailedLogins::default(),
            backups,
            history: Arc::default(),
            telling_ranges: tokio::sync::Mutex::default(),
            other_nodes: OtherNodes::default(),
            live_figures: LiveFigures::default(),
            sessions: Sessions::default(),
            certificates,
            stopped,
            maps_changed,
            initialising: tokio::sync::Mutex::default(),
            peer_work: peer_runtime.handle().clone(),
        };
        let thread = platform::threads::spawn("Management", move || {
            runtime.block_on(serve(listeners, Arc::new(context)));
            // A flush of the bucket may take longer; it then ends on its own, unobserved.
            end_within(limits.shutdown_time_max, [runtime, peer_runtime]);
        })?;
        Ok(Handle { address, stop, thread: Some(thread) })
    }
}

impl Handle {
    /// Where the port is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, lets answers under way end within [`Limits::shutdown_time_max`], closes
    /// all connections and waits for the thread to end.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        let Some(thread) = self.thread.take() else { return };
        if thread.join().is_err() {
            tracing::error!("the management thread ended with a panic");
        }
    }
}

/// Waits for the threads of all, so long together.
fn end_within(time_max: Duration, runtimes: [Runtime; 2]) {
    let clock = Clock::real();
    let began = clock.now();
    for runtime in runtimes {
        runtime.shutdown_timeout(time_max.saturating_sub(clock.now().since(began)));
    }
}

fn listener_of(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

impl Listeners {
    /// The next connection.
    async fn accept(&self) -> io::Result<Accepted> {
        let (accepted, at) = tokio::select! {
            accepted = self.plain.accept() => (accepted, At::Plain),
            accepted = accept_at(self.tls.as_ref()) => (accepted, At::Tls),
            accepted = accept_at(self.query_stub.as_ref()) => (accepted, At::QueryStub),
        };
        let (stream, address) = accepted?;
        // Many answers stay open and say nothing: nobody else notices that a client has vanished.
        prepare_accepted(&stream);
        Ok(Accepted { stream, peer: Peer(address.ip()), at })
    }
}

/// The next connection of a listener; none ever comes where there is no listener.
async fn accept_at(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

async fn serve(listeners: Listeners, context: Arc<Context>) {
    let routers =
        Routers { rest: routes::router(context.clone()), query_stub: query_stub::router() };
    let stopped = context.stopped.clone();
    let mut tasks = JoinSet::new();
    let reminder = tokio::spawn(set_up::remind(Arc::clone(&context.view)));
    let (history, view) = (Arc::clone(&context.history), Arc::clone(&context.view));
    let sampling = tokio::spawn(async move { history.follow(&*view).await });
    loop {
        let accepted = tokio::select! {
            accepted = listeners.accept() => accepted,
            () = until_stopped(stopped.clone()) => break,
        };
        // Those that have ended: the set would otherwise keep each until the server stops.
        while tasks.try_join_next().is_some() {}
        match accepted {
            Ok(accepted) => start_connection(accepted, &context, &routers, &mut tasks),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a management connection");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
    // First: nobody connects to a server that only waits for the end of the others.
    drop(listeners);
    reminder.abort();
    sampling.abort();
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    let ended = tokio::time::timeout(context.limits.shutdown_time_max, all_ended).await;
    if ended.is_err() {
        tracing::info!(connections = tasks.len(), "management connections are cut off");
    }
}

fn start_connection(
    accepted: Accepted,
    context: &Arc<Context>,
    routers: &Routers,
    tasks: &mut JoinSet<()>,
) {
    let Accepted { stream, peer, at } = accepted;
    let is_tls = at == At::Tls;
    let door = Door { is_tls };
    // With as many logins as there may be connections the stream is dropped here, which closes it.
    let Some(slot) = context.connections.try_open(peer.0, door) else { return };
    let router = if at == At::QueryStub { &routers.query_stub } else { &routers.rest };
    let (limits, stopped, router) = (context.limits, context.stopped.clone(), router.clone());
    let acceptor = context.certificates.as_ref().filter(|_| is_tls);
    let acceptor = acceptor.map(|certificates| Arc::clone(certificates.acceptor()));
    let slot = Arc::new(slot);
    let serving = Serving { router, limits, stopped, slot, peer, door, certified: None };
    tasks.spawn(async move {
        match acceptor {
            None => serve_stream(stream, serving).await,
            Some(acceptor) => serve_tls(stream, &acceptor, serving).await,
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_vanishes_is_noticed_at_every_port() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let listen = || {
            let listener = platform::network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
            let address = listener.local_addr().unwrap();
            (listener_of(listener).unwrap(), address)
        };
        runtime.block_on(async {
            let [(plain, first), (tls, second), (stub, third)] = [listen(), listen(), listen()];
            let listeners = Listeners { plain, tls: Some(tls), query_stub: Some(stub) };
            for address in [first, second, third] {
                let _client = platform::network::connect(address).unwrap();
                let accepted = listeners.accept().await.unwrap();
                let socket = socket2::SockRef::from(&accepted.stream);
                assert!(socket.keepalive().unwrap(), "{:?}", accepted.at);
            }
        });
    }
}
