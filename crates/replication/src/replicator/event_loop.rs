//! The replicator's loop: waits for sockets, news and deadlines, of all buckets.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use executor::Looping;
use platform::network::{Network, Poll, Readiness, Registry, Token};
use platform::{Clock, Instant};
use vbucket::Now;

use super::followed_bucket::FollowedBucket;
use super::inbox::{BucketId, Inbox};
use super::link;

const WAKER: Token = Token(usize::MAX);
/// How old what others are told may be while messages come.
const STATUS_PAUSE: Duration = Duration::from_millis(200);

/// Buckets that are handed to the loop, before there are news of them.
pub(super) type Joining = Arc<Mutex<Vec<(BucketId, FollowedBucket)>>>;

/// The loop's state.
pub(super) struct EventLoop {
    clock: Clock,
    network: Network,
    poll: Poll,
    registry: Registry,
    inbox: Arc<Inbox>,
    joining: Joining,
    buckets: BTreeMap<BucketId, FollowedBucket>,
    next_token: usize,
    scratch: Box<[u8]>,
    /// When others are told again how the connections are doing.
    status_due: Instant,
    /// News were left for the next turn.
    has_postponed: bool,
    /// Links have more to read than one turn takes.
    has_more: bool,
    is_over: bool,
}

impl EventLoop {
    pub(super) fn new(
        clock: Clock,
        network: Network,
        joining: Joining,
    ) -> io::Result<(Self, Arc<Inbox>)> {
        let poll = network.poll()?;
        let registry = poll.registry()?;
        let inbox = Arc::new(Inbox::new(poll.waker(WAKER)?));
        let event_loop = Self {
            clock,
            network,
            poll,
            registry,
            inbox: Arc::clone(&inbox),
            joining,
            buckets: BTreeMap::new(),
            next_token: 0,
            scratch: link::scratch(),
            status_due: Instant::default(),
            has_postponed: false,
            has_more: false,
            is_over: false,
        };
        Ok((event_loop, inbox))
    }

    fn take_turn(&mut self, ready: &[Readiness]) {
        for readiness in ready {
            let is_readable = readiness.is_readable || readiness.is_ending;
            self.buckets
                .values_mut()
                .for_each(|bucket| bucket.wake(readiness.token.0, is_readable));
        }
        self.is_over = self.take_news();
        if self.is_over {
            let now = self.now();
            for bucket in self.buckets.values_mut() {
                bucket.follow(Vec::new(), &mut self.next_token, now);
            }
        } else {
            self.has_more = self.serve_links();
        }
    }

    /// Reads, and sends together what that has led to; what the vBuckets hold by then included.
    fn serve_links(&mut self) -> bool {
        let now = self.now();
        let mut has_more = false;
        for bucket in self.buckets.values_mut() {
            let place = (&self.network, &self.registry);
            has_more |= bucket.receive(place, &mut self.scratch, now);
        }
        // A prepare that has come is held at once, if its level wants no disk.
        self.take_held();
        self.buckets.values_mut().for_each(|bucket| bucket.send(now));
        if now.monotonic >= self.status_due {
            self.status_due = now.monotonic.after(STATUS_PAUSE);
            self.buckets.values().for_each(FollowedBucket::show_status);
        }
        has_more
    }

    /// Whether the loop is to end.
    fn take_news(&mut self) -> bool {
        self.has_postponed = false;
        let Some(news) = self.inbox.take() else { return false };
        // Behind the news: a bucket is handed over before there are any of it.
        let joining = std::mem::take(&mut *self.lock_joining());
        self.buckets.extend(joining);
        let now = self.now();
        for (id, news) in news.of_buckets {
            if news.is_leaving {
                // Following nothing ends its subscriptions and reservations, which are the hub's.
                if let Some(mut bucket) = self.buckets.remove(&id) {
                    bucket.follow(Vec::new(), &mut self.next_token, now);
                }
            } else if let Some(bucket) = self.buckets.get_mut(&id) {
                bucket.take_news(news, &mut self.next_token, now);
            }
        }
        news.is_stopping
    }

    fn take_held(&mut self) {
        let Some(mut news) = self.inbox.take() else { return };
        for (id, news) in &mut news.of_buckets {
            if let Some(bucket) = self.buckets.get_mut(id) {
                bucket.acknowledge(std::mem::take(&mut news.held));
            }
        }
        // The rest is for the next turn, and nothing else will wake the loop for it.
        news.of_buckets.retain(|_, news| !news.is_about_held_alone());
        if news.is_stopping || !news.of_buckets.is_empty() {
            self.has_postponed = true;
            self.inbox.put_back(news);
        }
    }

    fn lock_joining(&self) -> MutexGuard<'_, Vec<(BucketId, FollowedBucket)>> {
        self.joining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock.now(), wall: self.clock.wall_time() }
    }
}

impl Looping for EventLoop {
    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn patience(&mut self) -> Option<Duration> {
        if self.has_more || self.has_postponed {
            return Some(Duration::ZERO);
        }
        let now = self.now();
        let deadline = self.buckets.values().filter_map(|bucket| bucket.deadline(now)).min();
        deadline.map(|deadline| deadline.since(now.monotonic))
    }

    fn serve(&mut self, ready: &[Readiness]) {
        let inbox = Arc::clone(&self.inbox);
        inbox.while_served(|| self.take_turn(ready));
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}
