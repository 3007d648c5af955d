//! The readiness loop of one worker: read, execute, write once a wake.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bucket::Session;
use executor::Looping;
use platform::Instant;
use platform::clock::Lap;
use platform::network::{self, Listener, Network, Poll, Readiness, Registry, Stream, Token};

use super::crowd::{self, Crowd};
use super::line::{self, Line};
use super::mailbox::Message;
use super::peer::{Afterwards, Peer, Standing};
use super::socket::Socket;
use super::turn::{TurnKind, turn_of};
use super::watch::Watch;
use vbucket::Now;

use crate::buckets::BucketPart;
use crate::client_memory::{Held, Holder};
use crate::commands::text::VBID_OF_LINES;
use crate::connection::{Connection, Output, Parked, Turn};
use crate::entrance::Entrance;
use crate::shared::Shared;
use crate::slow_operations::Spans;
use crate::statistics::{WorkerCounters, count, count_down};
use crate::strangers::Stranger;

const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
const MEMCACHED_LISTENER: Token = Token(usize::MAX - 2);
const TLS_LISTENER: Token = Token(usize::MAX - 3);

/// Bytes of the buffer that all connections of a worker read into.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// Clients served before replicas get their turn again.
const EVENTS_BETWEEN_REPLICAS: usize = 32;
/// Time between two looks whether what is behind the memcached port is loaded.
const EARLY_DOOR_INTERVAL: Duration = Duration::from_millis(10);
/// Connections accepted before the others get their turn.
const ACCEPTS_MAX: usize = 16;
/// Connections beyond the limit whose places strangers are about to leave.
const GIVING_WAY_MAX: usize = 64;

/// One worker.
pub(super) struct EventLoop {
    index: usize,
    shared: Arc<Shared>,
    poll: Poll,
    registry: Registry,
    /// Only the first worker listens; it hands connections around.
    listeners: Listeners,
    next_worker: usize,
    /// By token. Each lies by itself: the list stays small, and who goes leaves no room behind.
    peers: Vec<Option<Box<Peer>>>,
    free_tokens: Vec<usize>,
    /// Clients that want a turn and had a long one.
    line: Line,
    /// Strangers that want one.
    crowd: Crowd,
    /// Connections of nodes that hold durable writes.
    replicas: Vec<usize>,
    scratch: Scratch,
    counters: Arc<WorkerCounters>,
    watch: Watch,
    /// Whether somebody waits at the memcached port until what is behind it is loaded.
    is_memcached_early: bool,
    is_stopping: bool,
}

/// Where a worker lets connections in.
#[derive(Default)]
pub(super) struct Listeners {
    pub(super) data: Option<Listener>,
    pub(super) tls: Option<Listener>,
    pub(super) memcached: Option<Listener>,
}

/// What a worker lends its connections.
struct Scratch {
    session: Session,
    output: Output,
    parked: Parked,
    read_buffer: Box<[u8]>,
    both_read: Option<Now>,
}

impl EventLoop {
    /// A worker that waits for its first connection.
    pub(super) fn new(
        index: usize,
        shared: Arc<Shared>,
        network: &Network,
        mut listeners: Listeners,
    ) -> io::Result<Self> {
        assert!(index < shared.counters.len(), "a worker has its counters and its mailbox");
        assert!(index == 0 || listeners.is_empty(), "the first worker alone listens");
        let poll = network.poll_for_clients()?;
        let registry = poll.registry()?;
        shared.mailboxes.open(index, poll.waker(WAKER)?)?;
        for (door, token) in listeners.by_token() {
            registry.watch_listener(door, token)?;
        }
        let scratch = Scratch {
            session: Session::default(),
            output: Output::default(),
            parked: Parked::of_worker(index),
            read_buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
            both_read: None,
        };
        let counters = Arc::clone(&shared.counters[index]);
        Ok(Self {
            index,
            shared,
            poll,
            registry,
            listeners,
            next_worker: 0,
            peers: Vec::new(),
            free_tokens: Vec::new(),
            line: Line::default(),
            crowd: Crowd::default(),
            replicas: Vec::new(),
            scratch,
            counters,
            watch: Watch::default(),
            is_memcached_early: false,
            is_stopping: false,
        })
    }

    /// Ends what has taken too long, and tries doors again that could not be emptied.
    fn look_after_deadlines(&mut self) {
        let clock = &self.shared.clock;
        let Some(due) = self.watch.take_due(|| clock.now()) else { return };
        let now = clock.now();
        for (token, opened) in due.watched {
            self.look_after(token, opened, now);
        }
        if due.is_door_stuck {
            for entrance in [Entrance::Data, Entrance::Tls, Entrance::Memcached] {
                self.accept(entrance);
            }
        }
    }

    fn look_after(&mut self, token: usize, opened: Instant, now: Instant) {
        let Some(Some(peer)) = self.peers.get_mut(token) else { return };
        // The token may be another connection's by now.
        if peer.opened != opened {
            return;
        }
        let is_short = self.shared.client_memory.is_short_for(peer.settled().holder);
        match peer.standing(now, &self.shared.options.limits, is_short) {
            Standing::Free => peer.is_watched = false,
            Standing::InTime => self.watch.add(token, opened),
            Standing::LoginIsOverdue => {
                count(&self.counters.login_timeouts);
                self.close(token);
            }
            Standing::ReaderIsOverdue => {
                count(&self.counters.stalled_writes);
                self.close(token);
            }
            Standing::RestIsOverdue => {
                count(&self.counters.stalled_requests);
                self.close(token);
            }
        }
    }

    fn on_readiness(&mut self, readiness: &Readiness) {
        match readiness.token {
            WAKER => self.on_messages(),
            LISTENER => self.accept(Entrance::Data),
            TLS_LISTENER => self.accept(Entrance::Tls),
            MEMCACHED_LISTENER => self.accept(Entrance::Memcached),
            Token(token) => {
                if let Some(Some(peer)) = self.peers.get_mut(token) {
                    peer.is_ending |= readiness.is_ending;
                    peer.is_readable |= readiness.is_readable || peer.is_ending;
                    // Whoever stands in the line waits there, or it would go in front of others.
                    if !peer.is_in_line {
                        self.give_turn(token);
                    }
                }
            }
        }
    }

    /// Replicas do not wait for a crowd of clients: what they say ends writes that were begun, and
    /// what is sent to them brings others nearer to their end.
    fn serve_replicas(&mut self) {
        if self.replicas.is_empty() {
            return;
        }
        // First: that a stream has something to send is told by a message.
        self.on_messages();
        // A turn may end the connection, which takes it off the list.
        for token in self.replicas.clone() {
            if let Some(Some(peer)) = self.peers.get_mut(token) {
                // Perhaps it is not. Looking costs less than to wait for its edge.
                peer.is_readable = true;
                self.take_turn(token);
            }
        }
    }

    fn on_messages(&mut self) {
        for message in self.shared.mailboxes.take(self.index) {
            match message {
                Message::Accepted(socket, entrance) => self.adopt(socket, entrance),
                Message::Completed(waiter, completed) => {
                    let parked = self.scratch.parked.take(waiter, &completed);
                    let Some(parked) = parked else { continue };
                    let token = parked.token;
                    self.with_peer(token, |peer, turn, _| {
                        peer.connection.on_completion(parked, completed, turn);
                    });
                    self.take(TurnKind::AnswersAlone, token);
                }
                Message::Wake(token) => self.take(TurnKind::AnswersAlone, token),
                Message::AcceptMore(entrance) => self.accept(entrance),
                Message::GiveWay(stranger) => self.displace(stranger, false),
                Message::LeaveCrowd(stranger) => self.displace(stranger, true),
                Message::BucketGone(part) => self.take_bucket_away(&part),
                Message::MapChanged => self.push_map(),
                Message::ReleaseMemory => platform::allocator::release_all_unused(),
                Message::Answer(asker) => asker.send(()).unwrap_or_default(),
                Message::Stop => self.is_stopping = true,
            }
        }
    }

    /// Has the connections that have a bucket lose it.
    fn take_bucket_away(&mut self, gone: &Arc<BucketPart>) {
        for token in 0..self.peers.len() {
            let lost = self.with_peer(token, |peer, turn, _| {
                let has_it =
                    peer.connection.bucket.as_ref().is_some_and(|part| Arc::ptr_eq(part, gone));
                if has_it {
                    peer.connection.lose_bucket(turn);
                }
                has_it
            });
            if lost == Some(true) {
                self.replicas.retain(|replica| *replica != token);
                self.take_turn(token);
            }
        }
    }

    /// Tells the cluster's map to those who listen for it.
    fn push_map(&mut self) {
        for token in 0..self.peers.len() {
            let pushed = self.with_peer(token, |peer, turn, _| {
                peer.connection.push_map(turn);
                // Also for one whose user has gone: its turn is its last.
                turn.output.bytes() > 0 || peer.connection.is_closing
            });
            if pushed == Some(true) {
                self.take_turn(token);
            }
        }
    }

    /// Whether clients wait at this door until what is behind it is loaded: those of memcached take
    /// an error for the end of it, and do not ask again.
    fn is_too_early(&mut self, entrance: Entrance) -> bool {
        if entrance != Entrance::Memcached {
            return false;
        }
        let default_bucket = self.shared.buckets.default_bucket();
        self.is_memcached_early =
            default_bucket.is_some_and(|part| part.bucket.is_loading(VBID_OF_LINES));
        self.is_memcached_early
    }

    /// Accepts what waits at a door, and hands it around.
    fn accept(&mut self, entrance: Entrance) {
        if self.is_too_early(entrance) {
            return;
        }
        for _ in 0..ACCEPTS_MAX {
            let door = match entrance {
                Entrance::Data => &self.listeners.data,
                Entrance::Tls => &self.listeners.tls,
                Entrance::Memcached => &self.listeners.memcached,
            };
            let Some(door) = door else { return };
            match door.accept() {
                Ok(socket) => self.hand_over(socket, entrance),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // That one has gone; others may wait behind it.
                Err(error) if network::is_about_one_connection(&error) => {}
                Err(error) => {
                    // Out of descriptors or memory. While the queue is full no edge will come.
                    self.watch.note_stuck_door(error, self.shared.clock.now());
                    return;
                }
            }
        }
        // More may wait, and its edge is gone: look again in a moment.
        self.shared.mailboxes.send(self.index, Message::AcceptMore(entrance));
    }

    fn hand_over(&mut self, socket: Stream, entrance: Entrance) {
        let holder = entrance.holder();
        if !self.shared.client_memory.has_room_for(holder, 0) {
            return self.reject(match holder {
                Holder::Guest => "those of the memcached port hold all the memory that they may",
                Holder::Client | Holder::Stranger => "clients hold all the memory that they may",
            });
        }
        if !self.has_place() {
            return self.reject("there are too many connections");
        }
        if entrance == Entrance::Tls {
            self.make_room_for_session();
        }
        self.shared.connection_count.fetch_add(1, Ordering::Relaxed);
        let worker = self.next_worker;
        self.next_worker = (worker + 1) % self.shared.mailboxes.count();
        if worker == self.index {
            self.adopt(socket, entrance);
        } else {
            self.shared.mailboxes.send(worker, Message::Accepted(socket, entrance));
        }
    }

    /// Lets a connection go that is not let in.
    fn reject(&self, why: &str) {
        count(&self.counters.rejected_connections);
        if let Some(unlogged) = self.shared.rejected_connections.passes(self.shared.clock.now()) {
            let memory = &self.shared.client_memory;
            tracing::warn!(
                why,
                held_bytes = memory.used_bytes(),
                held_bytes_max = memory.bytes_max(),
                connections = self.shared.connection_count.load(Ordering::Relaxed),
                unlogged,
                "connections are closed at once"
            );
        }
    }

    /// Whether there is a place for one more connection, if need be that of a stranger.
    fn has_place(&self) -> bool {
        let connections_max = self.shared.options.limits.connections_max;
        // Relaxed is enough: this thread alone counts up, others only free places meanwhile.
        let connection_count = self.shared.connection_count.load(Ordering::Relaxed);
        if connection_count < connections_max {
            return true;
        }
        if connection_count >= connections_max + GIVING_WAY_MAX {
            return false;
        }
        let Some(stranger) = self.shared.strangers.take_oldest() else { return false };
        self.shared.mailboxes.send(stranger.worker, Message::GiveWay(stranger));
        true
    }

    /// Sessions of strangers take memory before they say anything, and have a bounded part of it:
    /// the oldest stranger gives way.
    fn make_room_for_session(&self) {
        let sessions_max = self.shared.client_memory.strangers_bytes_max() / tls::SESSION_BYTES;
        if self.shared.strangers.count() < sessions_max {
            return;
        }
        if let Some(stranger) = self.shared.strangers.take_oldest() {
            self.shared.mailboxes.send(stranger.worker, Message::GiveWay(stranger));
        }
    }

    /// Ends a connection that gives way, unless it has logged in or gone meanwhile.
    fn displace(&mut self, stranger: Stranger, is_crowded: bool) {
        let Some(Some(peer)) = self.peers.get(stranger.token) else { return };
        if peer.stranger_since == stranger.since && peer.settled().holder == Holder::Stranger {
            count(&self.counters.displaced_connections);
            if is_crowded {
                count(&self.counters.crowded_connections);
            }
            self.close(stranger.token);
        }
    }

    /// Makes a connection one of this worker's.
    fn adopt(&mut self, socket: Stream, entrance: Entrance) {
        let token = self.free_tokens.pop().unwrap_or(self.peers.len());
        let is_free = self.peers.get(token).is_none_or(Option::is_none);
        assert!(is_free, "a token names one connection: {token}");
        let watched = self.registry.watch(socket, Token(token));
        // Also for one that is refused: its token goes to the free ones, and has to have a place.
        if token == self.peers.len() {
            self.peers.push(None);
        }
        let socket = match watched {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be watched and is closed");
                return self.refuse(token);
            }
        };
        let address = socket.peer_address().ok();
        let socket = match (entrance, &self.shared.tls) {
            (Entrance::Tls, Some(acceptor)) => Socket::tls(socket, acceptor),
            (Entrance::Tls, None) => panic!("a door that wants TLS has what makes sessions"),
            (Entrance::Data | Entrance::Memcached, _) => Ok(Socket::Plain(socket)),
        };
        let Ok(mut socket) = socket else { return self.refuse(token) };
        let connection = Connection::new(entrance, address, &self.shared.buckets);
        socket.settle(connection.holder());
        count(&self.counters.curr_connections);
        count(&self.counters.total_connections);
        if entrance == Entrance::Tls {
            count(&self.counters.tls_connections);
        }
        let peer = Peer::new(socket, connection, self.shared.clock.now());
        self.peers[token] = Some(Box::new(peer));
        self.give_turn(token);
    }

    /// Gives a client its turn now if its last was short, otherwise when those have had theirs, and
    /// a stranger behind all clients.
    fn give_turn(&mut self, token: usize) {
        let Some(Some(peer)) = self.peers.get(token) else { return };
        if peer.connection.holder() == Holder::Stranger {
            self.crowd.enter(token);
        } else if peer.takes_long {
            self.stand_in_line(token);
        } else {
            self.take_turn(token);
        }
    }

    fn is_stranger(&self, token: usize) -> bool {
        let peer = self.peers.get(token).and_then(Option::as_ref);
        peer.is_some_and(|peer| peer.connection.holder() == Holder::Stranger)
    }

    /// Gives strangers a few turns.
    fn serve_crowd(&mut self) {
        if self.crowd.is_empty() {
            return;
        }
        let end = self.shared.clock.now().after(crowd::TIME_MAX);
        for _ in 0..crowd::TURNS_MAX {
            let Some(token) = self.crowd.next() else { return };
            self.take_turn(token);
            if self.shared.clock.now() >= end {
                return;
            }
        }
    }

    /// What was to be a connection is none.
    fn refuse(&mut self, token: usize) {
        self.free_tokens.push(token);
        self.give_place_back();
    }

    /// Gives a connection its turn, and closes it when that was its last.
    fn take_turn(&mut self, token: usize) {
        self.take(TurnKind::Whole, token);
    }

    fn take(&mut self, kind: TurnKind, token: usize) {
        let turn = |peer: &mut Peer, turn: &mut Turn<'_>, read_buffer: &mut [u8]| {
            let afterwards = turn_of(peer, turn, read_buffer, kind);
            let feeds_replica = peer.connection.feeds_replica();
            if kind == TurnKind::Whole {
                peer.takes_long =
                    !feeds_replica && line::is_long(afterwards, turn.moved_bytes, turn.time());
            }
            (afterwards, feeds_replica, peer.begins_to_be_watched())
        };
        let Some((afterwards, feeds_replica, begins)) = self.with_peer(token, turn) else { return };
        if let Some(opened) = begins {
            self.watch.add(token, opened);
        }
        if feeds_replica && !self.replicas.contains(&token) {
            self.replicas.push(token);
        }
        if self.holds_too_much(token) {
            count(&self.counters.displaced_connections);
            return self.close(token);
        }
        match afterwards {
            Afterwards::Idle => {}
            Afterwards::AnotherTurn if self.is_stranger(token) => self.crowd.enter(token),
            Afterwards::AnotherTurn => self.stand_in_line(token),
            Afterwards::Close => self.close(token),
        }
        let left_bytes = self.scratch.output.bytes();
        assert_eq!(left_bytes, 0, "no connection sends what another was answered");
    }

    fn stand_in_line(&mut self, token: usize) {
        let Some(Some(peer)) = self.peers.get_mut(token) else { return };
        if !std::mem::replace(&mut peer.is_in_line, true) {
            self.line.enter(token);
        }
    }

    /// Gives those their turns who stand in the line now, as far as its time goes. Others had
    /// theirs since `began`, if somebody waited then. Who wants one more waits for the next round,
    /// in which others are heard of.
    fn serve_line(&mut self, began: Option<Instant>) {
        if self.line.is_empty() {
            return;
        }
        self.line.begin(began, self.shared.clock.now());
        while let Some(token) = self.line.next(self.shared.clock.now()) {
            if let Some(Some(peer)) = self.peers.get_mut(token) {
                peer.is_in_line = false;
                self.take_turn(token);
            }
        }
    }

    fn holds_too_much(&self, token: usize) -> bool {
        let peer = self.peers.get(token).and_then(Option::as_ref);
        peer.is_some_and(|peer| self.shared.client_memory.is_too_much(peer.settled()))
    }

    fn close(&mut self, token: usize) {
        // What was answered to this peer and not sent is nobody else's.
        self.scratch.output.discard();
        if let Some(mut peer) = self.peers[token].take() {
            peer.socket.say_goodbye();
            // Whatever comes of it, the socket is closed together with the peer.
            self.registry.forget(peer.socket.stream()).ok();
            // What its requests wait for must not reach the connection that gets the token next.
            self.scratch.parked.forget(token);
            self.free_tokens.push(token);
            self.replicas.retain(|replica| *replica != token);
            // As a client that holds nothing: by that a stranger leaves the strangers' list, too.
            settle(&self.shared, self.index, token, &mut peer, Held::default());
            self.give_place_back();
            count_down(&self.counters.curr_connections);
        }
    }

    fn give_place_back(&self) {
        let connection_count = self.shared.connection_count.fetch_sub(1, Ordering::Relaxed);
        assert!(connection_count > 0, "a connection that goes was counted");
    }

    /// Lends a connection what it needs for a turn.
    fn with_peer<T>(
        &mut self,
        token: usize,
        body: impl FnOnce(&mut Peer, &mut Turn<'_>, &mut [u8]) -> T,
    ) -> Option<T> {
        let peer = self.peers.get_mut(token)?.as_mut()?;
        let Scratch { session, output, parked, read_buffer, both_read } = &mut self.scratch;
        let (limits, memory) = (&self.shared.options.limits, &self.shared.client_memory);
        let unsent_bytes_max = peer.connection.unsent_bytes_max(limits, memory);
        let mut turn = Turn {
            shared: &self.shared,
            session,
            output,
            parked,
            counters: &self.counters,
            bucket: self.shared.by_bucket[self.index].of(peer.connection.selected()),
            worker: self.index,
            token,
            now: Now::default(),
            lap: Lap::default(),
            both_read,
            request_started: Instant::default(),
            answered_at: None,
            read_at: Instant::default(),
            spans: Spans::default(),
            began: None,
            moved_bytes: 0,
            unsent_bytes: peer.unsent_bytes(),
            unsent_bytes_max,
        };
        let result = body(peer, &mut turn, read_buffer);
        let held = peer.held();
        if held.holder != peer.settled().holder {
            peer.socket.settle(held.holder);
        }
        if held != peer.settled() {
            settle(&self.shared, self.index, token, peer, held);
        }
        Some(result)
    }
}

impl Listeners {
    fn is_empty(&self) -> bool {
        self.data.is_none() && self.tls.is_none() && self.memcached.is_none()
    }

    fn by_token(&mut self) -> impl Iterator<Item = (&mut Listener, Token)> {
        let doors = [
            (&mut self.data, LISTENER),
            (&mut self.tls, TLS_LISTENER),
            (&mut self.memcached, MEMCACHED_LISTENER),
        ];
        doors.into_iter().filter_map(|(door, token)| Some((door.as_mut()?, token)))
    }
}

impl Looping for EventLoop {
    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn patience(&mut self) -> Option<Duration> {
        let is_waited_for = !self.line.is_empty() || !self.crowd.is_empty();
        if is_waited_for {
            return Some(Duration::ZERO);
        }
        let early = self.is_memcached_early.then_some(EARLY_DOOR_INTERVAL);
        early.or_else(|| self.watch.patience())
    }

    fn serve(&mut self, ready: &[Readiness]) {
        let began = (!self.line.is_empty()).then(|| self.shared.clock.now());
        for (number, readiness) in (1_usize..).zip(ready) {
            self.on_readiness(readiness);
            if number.is_multiple_of(EVENTS_BETWEEN_REPLICAS) {
                self.serve_replicas();
            }
        }
        if self.is_memcached_early {
            self.accept(Entrance::Memcached);
        }
        self.serve_line(began);
        self.serve_crowd();
        self.look_after_deadlines();
    }

    fn is_over(&self) -> bool {
        self.is_stopping
    }
}

/// The node's budget, and the strangers' list, learn what a connection holds and as whom.
fn settle(shared: &Shared, worker: usize, token: usize, peer: &mut Peer, held: Held) {
    let before = peer.settle(held);
    shared.client_memory.settle(before, held);
    let was_or_is = [before.holder, held.holder].map(|holder| holder == Holder::Stranger);
    if was_or_is[0] != was_or_is[1] {
        if held.holder == Holder::Stranger {
            peer.stranger_since = shared.clock.now();
        }
        let (since, address) = (peer.stranger_since, peer.connection.counted_address());
        let stranger = Stranger { since, worker, token, address };
        match held.holder {
            Holder::Stranger => {
                if let Some(oldest) = shared.strangers.enter(stranger) {
                    shared.mailboxes.send(oldest.worker, Message::LeaveCrowd(oldest));
                }
            }
            Holder::Client | Holder::Guest => shared.strangers.leave(stranger),
        }
    }
}
