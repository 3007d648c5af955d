//! The replicator's thread: waits for sockets, news and deadlines.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bucket::{Bucket, StreamObserver};
use document::{Seqno, Vbid};
use executor::{ExecutorPool, TaskKind};
use platform::allocator::IdleUpkeep;
use platform::network::{Events, Poll, Token, Waker};
use platform::{Clock, Instant};

use super::inbox::Inbox;
use super::inbox::News;
use super::link::{self, Link, Setting};
use super::{Credentials, Follow, PeerAddress};
use crate::consumer::{ConsumerNames, Rollback, Rollbacks, Time};
use crate::hub::{Hub, Subscription};

const WAKER: Token = Token(usize::MAX);
/// Readiness events taken at a time.
const EVENTS_MAX: usize = 256;
/// How old what others are told may be while messages come.
const STATUS_PAUSE: Duration = Duration::from_millis(200);
/// The part of the memory quota that all nodes together may send ahead: a twentieth.
const BUFFER_DIVISOR: u64 = 20;
const BUFFER_BYTES_MIN: u64 = 1 << 20;
const BUFFER_BYTES_MAX: u64 = 64 << 20;

/// The thread's state.
pub(super) struct EventLoop {
    bucket: Bucket,
    hub: Arc<Hub>,
    credentials: Credentials,
    pool: ExecutorPool,
    /// vBuckets that go back at the moment.
    rollbacks: Arc<Rollbacks>,
    clock: Clock,
    poll: Poll,
    inbox: Arc<Inbox>,
    /// By token.
    links: BTreeMap<usize, Link>,
    next_token: usize,
    /// Which link follows a vBucket, and how its news come here.
    followed: BTreeMap<Vbid, (usize, Subscription)>,
    scratch: Box<[u8]>,
    /// When others are told again how the connections are doing.
    status_due: Instant,
    /// News were left for the next turn.
    has_postponed: bool,
}

impl EventLoop {
    pub(super) fn new(
        bucket: Bucket,
        hub: Arc<Hub>,
        credentials: Credentials,
        pool: ExecutorPool,
    ) -> io::Result<(Self, Arc<Inbox>)> {
        let clock = pool.clock().clone();
        let poll = Poll::new()?;
        let inbox = Arc::new(Inbox::new(Waker::new(poll.registry(), WAKER)?));
        hub.replicate_with(Arc::clone(&inbox));
        let event_loop = Self {
            bucket,
            hub,
            credentials,
            pool,
            rollbacks: Arc::default(),
            clock,
            poll,
            inbox: Arc::clone(&inbox),
            links: BTreeMap::new(),
            next_token: 0,
            followed: BTreeMap::new(),
            scratch: link::scratch(),
            status_due: Instant::default(),
            has_postponed: false,
        };
        Ok((event_loop, inbox))
    }

    /// Runs until it is told to stop.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut upkeep = IdleUpkeep::default();
        let mut has_more = false;
        self.inbox.own();
        loop {
            let now = self.now();
            let deadline = self.links.values().map(|link| link.deadline(now)).min();
            let is_idle = !has_more && !self.has_postponed;
            let patience = if is_idle {
                upkeep.limit(deadline.map(|deadline| deadline.since(now.monotonic)))
            } else {
                Some(Duration::ZERO)
            };
            match self.poll.poll(&mut events, patience) {
                Ok(()) => upkeep.after_wait(if is_idle { events.iter().count() } else { 1 }),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("the replicator cannot wait for its connections: {error}"),
            }
            for event in &events {
                if let Some(link) = self.links.get_mut(&event.token().0) {
                    link.wake(event.is_readable() || event.is_read_closed() || event.is_error());
                }
            }
            if self.take_news() {
                break;
            }
            has_more = self.serve_links();
        }
        self.follow(Vec::new());
    }

    /// Reads, and sends together what that has led to; what the vBuckets hold by then included.
    fn serve_links(&mut self) -> bool {
        let now = self.now();
        let mut has_more = false;
        let mut wanted = Vec::new();
        let buffer_bytes = self.buffer_bytes();
        let setting = Setting { bucket: &self.bucket, rollbacks: &self.rollbacks, buffer_bytes };
        for (&token, link) in &mut self.links {
            let place = (self.poll.registry(), Token(token));
            has_more |= link.receive(&setting, place, &mut self.scratch, now);
            wanted.extend(link.take_rollbacks());
        }
        wanted.into_iter().for_each(|rollback| self.roll_back(rollback));
        // A prepare that has come is held at once, if its level wants no disk.
        self.take_held();
        self.links.values_mut().for_each(|link| link.send(now));
        if now.monotonic >= self.status_due {
            self.status_due = now.monotonic.after(STATUS_PAUSE);
            self.inbox.set_status(self.links.values().map(Link::status).collect());
        }
        has_more
    }

    /// Whether the thread is to end.
    fn take_news(&mut self) -> bool {
        self.has_postponed = false;
        let Some(news) = self.inbox.take() else { return false };
        if let Some(wanted) = news.wanted {
            self.follow(wanted);
        }
        self.acknowledge(news.held);
        let now = self.now();
        for vbid in news.damaged {
            if let Some(link) = self.link_of(vbid) {
                link.file_damaged(vbid, now);
            }
        }
        for (vbid, has_succeeded) in news.rolled_back {
            if let Some(link) = self.link_of(vbid) {
                link.rolled_back(vbid, has_succeeded, now);
            }
        }
        news.is_stopping
    }

    fn take_held(&mut self) {
        let Some(mut news) = self.inbox.take() else { return };
        self.acknowledge(std::mem::take(&mut news.held));
        // The rest is for the next turn, and nothing else will wake the thread for it.
        let has_more = !news.rolled_back.is_empty() || !news.damaged.is_empty();
        if news.wanted.is_some() || news.is_stopping || has_more {
            self.has_postponed = true;
            self.inbox.put_back(news);
        }
    }

    fn acknowledge(&mut self, held: BTreeMap<Vbid, Seqno>) {
        for (vbid, seqno) in held {
            if let Some(link) = self.link_of(vbid) {
                link.acknowledge(vbid, seqno);
            }
        }
    }

    fn link_of(&mut self, vbid: Vbid) -> Option<&mut Link> {
        self.followed.get(&vbid).and_then(|(token, _)| self.links.get_mut(token))
    }

    /// Has a task take the vBucket back: it waits for files.
    fn roll_back(&self, rollback: Rollback) {
        let Rollback { vbid, seqno, .. } = rollback;
        self.rollbacks.begin(vbid);
        let (bucket, inbox) = (self.bucket.clone(), Arc::clone(&self.inbox));
        let rollbacks = Arc::clone(&self.rollbacks);
        let work = move || {
            let result = rollback.carry_out(&bucket);
            if let Err(error) = &result {
                tracing::warn!(%error, vbucket = vbid.0, seqno = seqno.0, "no rollback");
            }
            // In this order: who hears of it may ask for the stream.
            rollbacks.end(vbid);
            let rolled_back = BTreeMap::from([(vbid, result.is_ok())]);
            inbox.put(News { rolled_back, ..News::default() });
        };
        if self.pool.add(self.bucket.task_owner(), TaskKind::AuxIo, work).is_err() {
            // The bucket closes: there are no more streams soon.
            self.rollbacks.end(vbid);
        }
    }

    fn follow(&mut self, wanted: Vec<Follow>) {
        let now = self.now();
        let mut by_peer: BTreeMap<PeerAddress, BTreeSet<Vbid>> = BTreeMap::new();
        for Follow { vbid, peer } in wanted {
            by_peer.entry(peer).or_default().insert(vbid);
        }
        self.links.retain(|_, link| by_peer.contains_key(&link.peer));
        let mut holders: BTreeMap<Vbid, usize> = BTreeMap::new();
        for (peer, vbids) in by_peer {
            let known = self.links.iter().find(|(_, link)| link.peer == peer);
            let token = match known {
                Some((&token, _)) => token,
                None => {
                    let token = self.next_token;
                    self.next_token += 1;
                    let names = self.names(&peer);
                    self.links.insert(token, Link::new(peer, names, now.monotonic));
                    token
                }
            };
            holders.extend(vbids.iter().map(|&vbid| (vbid, token)));
            if let Some(link) = self.links.get_mut(&token) {
                link.follow(vbids, now);
            }
        }
        self.subscribe(&holders);
    }

    fn subscribe(&mut self, holders: &BTreeMap<Vbid, usize>) {
        let hub = Arc::clone(&self.hub);
        self.followed.retain(|&vbid, &mut (_, subscription)| {
            let stays = holders.contains_key(&vbid);
            if !stays {
                hub.unsubscribe(vbid, subscription);
            }
            stays
        });
        for (&vbid, &token) in holders {
            let observer: Arc<dyn StreamObserver> = self.inbox.clone();
            let entry = self.followed.entry(vbid);
            entry.or_insert_with(|| (token, hub.subscribe(vbid, observer))).0 = token;
        }
    }

    fn names(&self, peer: &PeerAddress) -> ConsumerNames {
        let bucket = self.bucket.config().name.clone();
        let Credentials { node, user, password } = self.credentials.clone();
        let connection = format!("replication:{}->{node}:{bucket}", peer.name);
        ConsumerNames { node, connection, bucket, user, password }
    }

    fn buffer_bytes(&self) -> u32 {
        let share = self.bucket.memory_quota_bytes() / BUFFER_DIVISOR;
        let share = share / u64::try_from(self.links.len().max(1)).unwrap_or(1);
        u32::try_from(share.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)).unwrap_or(u32::MAX)
    }

    fn now(&self) -> Time {
        Time { monotonic: self.clock.now(), wall: self.clock.wall_time() }
    }
}
