//! The readiness loop of one worker: read, execute, write once a wake.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bucket::Session;
use platform::Instant;
use platform::network::{Event, Events, Interest, Poll, TcpListener, TcpStream, Token, Waker};

use super::mailbox::Message;
use super::peer::{Afterwards, Peer};
use vbucket::Now;

use crate::connection::{Connection, Entrance, Output, Parked, Turn, Unsent};
use crate::shared::Shared;
use crate::statistics::{WorkerCounters, count, count_down, count_many};
use crate::timings::CommandTimings;

const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
const MEMCACHED_LISTENER: Token = Token(usize::MAX - 2);

/// Bytes of the buffer that all connections of a worker read into.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// Readiness events taken at a time.
const EVENTS_MAX: usize = 1024;
/// Connections accepted before the others get their turn.
const ACCEPTS_MAX: usize = 64;

/// One worker.
pub(super) struct EventLoop {
    index: usize,
    shared: Arc<Shared>,
    poll: Poll,
    /// Only the first worker listens; it hands connections around.
    listener: Option<TcpListener>,
    memcached_listener: Option<TcpListener>,
    next_worker: usize,
    peers: Vec<Option<Peer>>,
    free_tokens: Vec<usize>,
    /// Connections that used up their turn.
    ready: VecDeque<usize>,
    scratch: Scratch,
    counters: Arc<WorkerCounters>,
    timings: Arc<CommandTimings>,
    is_stopping: bool,
}

/// What a worker lends its connections.
struct Scratch {
    session: Session,
    output: Output,
    parked: Parked,
    read_buffer: Box<[u8]>,
}

impl EventLoop {
    /// A worker that waits for its first connection.
    pub(super) fn new(
        index: usize,
        shared: Arc<Shared>,
        listeners: (Option<TcpListener>, Option<TcpListener>),
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        shared.mailboxes.open(index, waker)?;
        let (mut listener, mut memcached_listener) = listeners;
        let doors = [(&mut listener, LISTENER), (&mut memcached_listener, MEMCACHED_LISTENER)];
        for (door, token) in doors {
            if let Some(door) = door {
                poll.registry().register(door, token, Interest::READABLE)?;
            }
        }
        let scratch = Scratch {
            session: Session::default(),
            output: Output::default(),
            parked: Parked::of_worker(index),
            read_buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
        };
        let counters = Arc::clone(&shared.counters[index]);
        let timings = Arc::clone(&shared.timings[index]);
        Ok(Self {
            index,
            shared,
            poll,
            listener,
            memcached_listener,
            next_worker: 0,
            peers: Vec::new(),
            free_tokens: Vec::new(),
            ready: VecDeque::new(),
            scratch,
            counters,
            timings,
            is_stopping: false,
        })
    }

    /// Runs until it is told to stop.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.is_stopping {
            let patience = if self.ready.is_empty() { None } else { Some(Duration::ZERO) };
            match self.poll.poll(&mut events, patience) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("a worker cannot wait for its connections: {error}"),
            }
            for event in &events {
                self.on_event(event);
            }
            for _ in 0..self.ready.len() {
                if let Some(token) = self.ready.pop_front() {
                    self.take_turn(token);
                }
            }
        }
    }

    fn on_event(&mut self, event: &Event) {
        match event.token() {
            WAKER => self.on_messages(),
            LISTENER => self.accept(Entrance::Data),
            MEMCACHED_LISTENER => self.accept(Entrance::Memcached),
            Token(token) => {
                if let Some(Some(peer)) = self.peers.get_mut(token) {
                    peer.is_ending |= event.is_read_closed() || event.is_error();
                    peer.is_readable |= event.is_readable() || peer.is_ending;
                    self.take_turn(token);
                }
            }
        }
    }

    fn on_messages(&mut self) {
        for message in self.shared.mailboxes.take(self.index) {
            match message {
                Message::Accepted(socket, entrance) => self.adopt(socket, entrance),
                Message::Completed(waiter, completed) => {
                    let Some(parked) = self.scratch.parked.take(waiter) else { continue };
                    let token = parked.token;
                    self.with_peer(token, |peer, turn, _| {
                        peer.connection.on_completion(&parked, completed, turn);
                    });
                    self.take_turn(token);
                }
                Message::Wake(token) => self.take_turn(token),
                Message::AcceptMore(entrance) => self.accept(entrance),
                Message::MapChanged => self.push_map(),
                Message::ReleaseMemory => platform::allocator::release_unused(),
                Message::Stop => self.is_stopping = true,
            }
        }
    }

    /// Tells the cluster's map to those who listen for it.
    fn push_map(&mut self) {
        for token in 0..self.peers.len() {
            let pushed = self.with_peer(token, |peer, turn, _| {
                peer.connection.push_map(turn);
                turn.output.bytes() > 0
            });
            if pushed == Some(true) {
                self.take_turn(token);
            }
        }
    }

    /// Accepts what waits at a door, and hands it around.
    fn accept(&mut self, entrance: Entrance) {
        for _ in 0..ACCEPTS_MAX {
            let door = match entrance {
                Entrance::Data => &self.listener,
                Entrance::Memcached => &self.memcached_listener,
            };
            let Some(door) = door else { return };
            match door.accept() {
                Ok((socket, _)) => self.hand_over(socket, entrance),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Out of descriptors, or a peer that has gone already: the next edge, or the
                    // next connection's end, brings another try.
                    tracing::warn!(%error, "a connection was not accepted");
                    return;
                }
            }
        }
        // More may wait, and its edge is gone: look again in a moment.
        self.shared.mailboxes.send(self.index, Message::AcceptMore(entrance));
    }

    fn hand_over(&mut self, socket: TcpStream, entrance: Entrance) {
        let current = self.shared.statistics().curr_connections;
        let connections_max = self.shared.options.limits.connections_max;
        if usize::try_from(current).is_ok_and(|current| current >= connections_max) {
            count(&self.counters.rejected_connections);
            return;
        }
        let worker = self.next_worker;
        self.next_worker = (worker + 1) % self.shared.mailboxes.count();
        if worker == self.index {
            self.adopt(socket, entrance);
        } else {
            self.shared.mailboxes.send(worker, Message::Accepted(socket, entrance));
        }
    }

    /// Makes a connection one of this worker's.
    fn adopt(&mut self, mut socket: TcpStream, entrance: Entrance) {
        socket.set_nodelay(true).ok();
        let token = self.free_tokens.pop().unwrap_or(self.peers.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(&mut socket, Token(token), interest);
        if token == self.peers.len() {
            self.peers.push(None);
        }
        if let Err(error) = registered {
            tracing::warn!(%error, "a connection cannot be watched and is closed");
            self.free_tokens.push(token);
            return;
        }
        count(&self.counters.curr_connections);
        count(&self.counters.total_connections);
        self.peers[token] = Some(Peer {
            socket,
            connection: Connection::new(entrance, &self.shared.bucket),
            unsent: Unsent::default(),
            is_readable: true,
            is_ending: false,
            is_at_end: false,
        });
        self.take_turn(token);
    }

    /// Gives a connection its turn, and closes it when that was its last.
    fn take_turn(&mut self, token: usize) {
        let afterwards = self.with_peer(token, turn_of);
        match afterwards {
            None | Some(Afterwards::Idle) => {}
            Some(Afterwards::AnotherTurn) => self.ready.push_back(token),
            Some(Afterwards::Close) => self.close(token),
        }
    }

    fn close(&mut self, token: usize) {
        // What was answered to this peer and not sent is nobody else's.
        self.scratch.output.discard();
        if let Some(mut peer) = self.peers[token].take() {
            self.poll.registry().deregister(&mut peer.socket).ok();
            self.scratch.parked.forget(token);
            self.free_tokens.push(token);
            count_down(&self.counters.curr_connections);
        }
    }

    /// Lends a connection what it needs for a turn.
    fn with_peer<T>(
        &mut self,
        token: usize,
        body: impl FnOnce(&mut Peer, &mut Turn<'_>, &mut [u8]) -> T,
    ) -> Option<T> {
        let peer = self.peers.get_mut(token)?.as_mut()?;
        let Scratch { session, output, parked, read_buffer } = &mut self.scratch;
        let unsent_max = self.shared.options.limits.unsent_bytes_max;
        let mut turn = Turn {
            shared: &self.shared,
            session,
            output,
            parked,
            counters: &self.counters,
            timings: &self.timings,
            worker: self.index,
            token,
            now: Now::default(),
            request_started: Instant::default(),
            output_bytes_max: unsent_max.saturating_sub(peer.unsent.bytes()),
        };
        Some(body(peer, &mut turn, read_buffer))
    }
}

/// Sends what waits, executes what was kept, reads what has arrived, and sends the answers.
fn turn_of(peer: &mut Peer, turn: &mut Turn<'_>, read_buffer: &mut [u8]) -> Afterwards {
    if send(peer, turn).is_err() {
        return Afterwards::Close;
    }
    let limits = turn.shared.options.limits;
    if peer.connection.has_input() && !peer.connection.is_waiting(limits.parked_requests_max) {
        turn.read_clocks();
        peer.connection.on_room(turn);
    }
    let mut budget = limits.turn_bytes_max;
    while may_read(peer, turn) && budget > 0 {
        match read(peer, turn, read_buffer) {
            Ok(0) => break,
            Ok(count) => budget = budget.saturating_sub(count),
            Err(_) => return Afterwards::Close,
        }
    }
    peer.connection.send_streams(turn);
    let was_full = turn.is_output_full();
    if send(peer, turn).is_err() {
        return Afterwards::Close;
    }
    // Whole requests may have been kept because of the answers before them. When those have been
    // sent at once no edge will say so.
    if was_full && !turn.is_output_full() && peer.unsent.is_empty() && !peer.connection.is_closing {
        return Afterwards::AnotherTurn;
    }
    afterwards(peer, turn)
}

fn afterwards(peer: &Peer, turn: &Turn<'_>) -> Afterwards {
    let has_sent_all = peer.unsent.is_empty();
    if peer.connection.is_closing && has_sent_all {
        return Afterwards::Close;
    }
    let limits = turn.shared.options.limits;
    let is_waiting = peer.connection.is_waiting(limits.parked_requests_max);
    // Whoever has only stopped asking still gets the answers that it waits for.
    if peer.is_at_end && has_sent_all && !peer.connection.has_parked() {
        return Afterwards::Close;
    }
    let has_room = peer.unsent.bytes() <= limits.unsent_bytes_max;
    if peer.is_readable && !is_waiting && !peer.is_at_end && has_room && !peer.connection.is_closing
    {
        return Afterwards::AnotherTurn;
    }
    Afterwards::Idle
}

/// Nothing is read for a connection that waits: what its peer sends stays with the peer.
fn may_read(peer: &Peer, turn: &Turn<'_>) -> bool {
    let limits = turn.shared.options.limits;
    if turn.is_output_full() {
        count(&turn.counters.slow_reader_pauses);
        return false;
    }
    peer.is_readable
        && !peer.is_at_end
        && !peer.connection.is_closing
        && !peer.connection.is_waiting(limits.parked_requests_max)
}

/// Reads once and executes what that completes. 0 when nothing more can be read now.
fn read(peer: &mut Peer, turn: &mut Turn<'_>, read_buffer: &mut [u8]) -> io::Result<usize> {
    let target = peer.connection.receive_target();
    let is_direct = target.is_some();
    let target = target.unwrap_or(read_buffer);
    let target_size = target.len();
    let size = match peer.socket.read(target) {
        Ok(size) => size,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            peer.is_readable = false;
            return Ok(0);
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(1),
        Err(error) => return Err(error),
    };
    if size == 0 {
        peer.is_at_end = true;
        return Ok(0);
    }
    // A short read has drained the socket: the next bytes bring an edge of their own. Not so an
    // end that came together with these.
    peer.is_readable = size == target_size || peer.is_ending;
    count_many(&turn.counters.bytes_read, size);
    turn.read_clocks();
    if is_direct {
        peer.connection.received(size, turn);
    } else {
        peer.connection.on_bytes(&read_buffer[..size], turn);
    }
    Ok(size)
}

fn send(peer: &mut Peer, turn: &mut Turn<'_>) -> io::Result<()> {
    if turn.output.bytes() == 0 && peer.unsent.is_empty() {
        return Ok(());
    }
    let before = turn.output.bytes() + peer.unsent.bytes();
    let result = turn.output.send(&mut peer.socket, &mut peer.unsent);
    count_many(&turn.counters.bytes_written, before.saturating_sub(peer.unsent.bytes()));
    let unsent_max = turn.shared.options.limits.unsent_bytes_max;
    turn.output_bytes_max = unsent_max.saturating_sub(peer.unsent.bytes());
    if result.is_err() {
        turn.output.discard();
    }
    result
}
