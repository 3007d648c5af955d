//! The connection to one node: its socket, what waits to be sent, and coming back after it broke.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bucket::Bucket;
use document::{Seqno, Vbid};
use platform::Instant;
use platform::network::{Network, Registry, Token};
use tls::Connector;
use vbucket::Now;

use super::following::{LinkStatus, PeerAddress};
use super::line_socket::{LineSocket, Received};
use super::peer_addresses::{PeerAddresses, Place, Resolver};
use crate::consumer::{Consumer, ConsumerError, ConsumerNames, Reservations, Rollback};

/// The first pause after a connection broke.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Trouble that is over before the pauses are so long is not worth a line in the log: nodes that
/// start together wait for each other.
const COMPLAINT_PAUSE: Duration = Duration::from_millis(400);
/// Reasons that are logged until the trouble is over.
const COMPLAINTS_MAX: usize = 4;
/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;
/// Bytes read from one node before the others get their turn.
const TURN_BYTES_MAX: usize = 4 << 20;
/// Bytes that wait for a node before nothing more is read from it.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Consumer(#[from] ConsumerError),
    #[error("the node closes the connection")]
    Closed,
    #[error(
        "the map says no kvSSL of the node, and --tls-node-ca lets this one follow by TLS alone: \
         give the map both ports behind TLS"
    )]
    NoTls,
}

/// What all connections of a bucket have in common.
pub(super) struct Setting<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) network: &'a Network,
    pub(super) resolver: &'a Resolver,
    /// What begins sessions, if nodes speak TLS.
    pub(super) connector: Option<&'a Connector>,
    pub(super) reservations: &'a Arc<Reservations>,
    /// What a node may send ahead.
    pub(super) buffer_bytes: u32,
}

/// A connection to a node, or the intention to have one.
pub(super) struct Link {
    pub(super) peer: PeerAddress,
    names: ConsumerNames,
    wanted: BTreeSet<Vbid>,
    line: Option<Line>,
    addresses: PeerAddresses,
    /// It is time to connect, but for where.
    is_seeking: bool,
    /// When it is connected again.
    retry_at: Instant,
    pause: Duration,
    connects: u64,
    /// What of the trouble of the moment was logged: each reason once.
    complaints: Vec<String>,
}

/// A connection that there is.
struct Line {
    socket: LineSocket,
    consumer: Consumer,
    /// Received and not taken yet: a part of a frame.
    input: Vec<u8>,
    output: Vec<u8>,
    is_readable: bool,
}

impl Link {
    pub(super) fn new(peer: PeerAddress, names: ConsumerNames, now: Instant) -> Self {
        Self {
            peer,
            names,
            wanted: BTreeSet::new(),
            line: None,
            addresses: PeerAddresses::default(),
            is_seeking: false,
            retry_at: now,
            pause: PAUSE_MIN,
            connects: 0,
            complaints: Vec::new(),
        }
    }

    /// What is to be followed here.
    pub(super) fn follow(&mut self, wanted: BTreeSet<Vbid>, now: Now) {
        if let Some(line) = &mut self.line {
            line.consumer.follow(&wanted, now, &mut line.output);
        }
        self.wanted = wanted;
    }

    pub(super) fn acknowledge(&mut self, vbid: Vbid, seqno: Seqno) {
        if let Some(line) = &mut self.line {
            line.consumer.acknowledge(vbid, seqno, &mut line.output);
        }
    }

    /// vBuckets that have to go back, once each.
    pub(super) fn take_rollbacks(&mut self) -> Vec<Rollback> {
        self.line.as_mut().map_or_else(Vec::new, |line| line.consumer.take_rollbacks())
    }

    /// The vBucket goes back no more.
    pub(super) fn rolled_back(&mut self, vbid: Vbid, has_succeeded: bool, now: Now) {
        if let Some(line) = &mut self.line {
            line.consumer.rolled_back(vbid, has_succeeded, now, &mut line.output);
        }
    }

    /// The vBucket's file was found damaged.
    pub(super) fn file_damaged(&mut self, vbid: Vbid, now: Now) {
        if let Some(line) = &mut self.line {
            line.consumer.file_damaged(vbid, now, &mut line.output);
        }
    }

    /// Its socket has something to say.
    pub(super) fn wake(&mut self, is_readable: bool) {
        if let Some(line) = &mut self.line {
            line.is_readable |= is_readable;
        }
    }

    /// Reads what has come, if anything has, and does what has become due; connects when it is
    /// time. Whether there is more to read.
    pub(super) fn receive(
        &mut self,
        setting: &Setting<'_>,
        place: (&Registry, Token),
        scratch: &mut [u8],
        now: Now,
    ) -> bool {
        if self.line.is_none() && (self.is_seeking || self.retry_at <= now.monotonic) {
            let connected = self.connect(setting, place, now);
            if let Err(error) = connected {
                self.lose(&error, now);
            }
        }
        let Some(line) = &mut self.line else { return false };
        match line.receive(scratch, now) {
            Ok(has_more) => {
                // Connected is not enough: where the login is refused the pauses are to grow.
                if line.consumer.is_open() {
                    self.pause = PAUSE_MIN;
                    if !std::mem::take(&mut self.complaints).is_empty() {
                        tracing::info!(peer = self.peer.name, "following the node again");
                    }
                }
                has_more
            }
            Err(error) => {
                self.lose(&error, now);
                false
            }
        }
    }

    /// Sends what waits.
    pub(super) fn send(&mut self, now: Now) {
        let Some(line) = &mut self.line else { return };
        if let Err(error) = line.send() {
            self.lose(&error.into(), now);
        }
    }

    /// When it is to be looked at, at the latest.
    pub(super) fn deadline(&self, now: Now) -> Instant {
        self.line.as_ref().map_or(self.retry_at, |line| line.consumer.deadline(now))
    }

    pub(super) fn status(&self, is_tls: bool) -> LinkStatus {
        let consumer = self.line.as_ref().map(|line| &line.consumer);
        LinkStatus {
            connection: self.names.connection.clone(),
            peer: self.peer.clone(),
            is_open: consumer.is_some_and(Consumer::is_open),
            is_tls,
            unacknowledged_bytes: consumer.map_or(0, Consumer::unacknowledged_bytes),
            connects: self.connects,
            streams: consumer.map_or_else(Vec::new, Consumer::status),
        }
    }

    fn connect(
        &mut self,
        setting: &Setting<'_>,
        (registry, token): (&Registry, Token),
        now: Now,
    ) -> Result<(), LinkError> {
        assert!(self.line.is_none(), "a node is followed over one connection");
        let Setting { bucket, network, resolver, connector, reservations, buffer_bytes } = *setting;
        let port = match connector {
            None => self.peer.port,
            Some(_) => self.peer.tls_port.ok_or(LinkError::NoTls)?,
        };
        self.is_seeking = false;
        let address = match self.addresses.place(resolver, &self.peer.host, port, now.monotonic)? {
            Place::Known(address) => address,
            Place::Sought(until) => {
                (self.is_seeking, self.retry_at) = (true, until);
                return Ok(());
            }
        };
        let socket = registry.watch(network.connect(address)?, token)?;
        let socket = match connector {
            None => LineSocket::Plain(socket),
            Some(connector) => LineSocket::tls(socket, &self.peer.host, connector)?,
        };
        let mut output = Vec::new();
        let (bucket, names, reservations) =
            (bucket.clone(), self.names.clone(), Arc::clone(reservations));
        let mut consumer =
            Consumer::begin(bucket, names, reservations, buffer_bytes, now, &mut output);
        consumer.follow(&self.wanted, now, &mut output);
        let input = Vec::new();
        self.line = Some(Line { socket, consumer, input, output, is_readable: false });
        self.connects += 1;
        Ok(())
    }

    /// The connection is over; another one is tried a little later.
    fn lose(&mut self, error: &LinkError, now: Now) {
        if self.pause >= COMPLAINT_PAUSE {
            self.complain(error);
        }
        self.addresses.lost(self.line.as_ref().is_some_and(|line| line.consumer.is_open()));
        // Closing the socket deregisters it.
        self.line = None;
        let is_bounded = (PAUSE_MIN..=PAUSE_MAX).contains(&self.pause);
        assert!(is_bounded, "a pause is as long as pauses are: {:?}", self.pause);
        self.retry_at = now.monotonic.after(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    fn complain(&mut self, error: &LinkError) {
        let reason = error.to_string();
        if self.complaints.len() < COMPLAINTS_MAX && !self.complaints.contains(&reason) {
            tracing::warn!(%error, peer = self.peer.name, "a node cannot be followed for now");
            self.complaints.push(reason);
        }
    }
}

impl Line {
    fn receive(&mut self, scratch: &mut [u8], now: Now) -> Result<bool, LinkError> {
        let mut budget = TURN_BYTES_MAX;
        while self.is_readable && budget > 0 && self.output.len() <= UNSENT_BYTES_MAX {
            let size = match self.socket.read(scratch)? {
                Received::Bytes(size) => size,
                Received::Nothing => {
                    self.is_readable = false;
                    break;
                }
                // Others have their turn before a node that sends nothing but empty records.
                Received::Again => {
                    budget = budget.saturating_sub(READ_BYTES);
                    continue;
                }
                Received::End => return Err(LinkError::Closed),
            };
            budget = budget.saturating_sub(size);
            self.take(scratch.get(..size).unwrap_or_default(), now)?;
        }
        // Behind the reading: a turn that comes late says nothing of a node whose messages wait.
        self.consumer.on_tick(now, &mut self.output)?;
        Ok(self.is_readable && self.output.len() <= UNSENT_BYTES_MAX)
    }

    /// Whole frames are taken from where they were read to; a part of one is kept.
    fn take(&mut self, received: &[u8], now: Now) -> Result<(), LinkError> {
        if self.input.is_empty() {
            let taken = self.consumer.on_bytes(received, now, &mut self.output)?;
            self.input.extend_from_slice(received.get(taken..).unwrap_or_default());
            return Ok(());
        }
        self.input.extend_from_slice(received);
        let taken = self.consumer.on_bytes(&self.input, now, &mut self.output)?;
        self.input.drain(..taken);
        if self.input.is_empty() {
            // A large document does not keep its room.
            self.input = Vec::new();
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        loop {
            match self.socket.write(self.output.get(sent..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(size) => sent += size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        assert!(sent <= self.output.len(), "a socket takes no more than it is given");
        self.output.drain(..sent);
        Ok(())
    }
}

/// The buffer that all links of a thread read into.
pub(super) fn scratch() -> Box<[u8]> {
    vec![0; READ_BYTES].into_boxed_slice()
}
