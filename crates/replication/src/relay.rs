//! A connection that a manager has opened for this node to receive on, and passes on to producers.
//! Neither a socket nor a thread is in it: its owner gives it messages and room to write.

mod shared;

use std::sync::Arc;
use std::time::Duration;

use bucket::{Bucket, StreamObserver};
use document::{Map, Vbid};
use executor::{ExecutorPool, TaskKind};
use platform::Instant;
use protocol::dcp::{Message, StreamFlags};
use protocol::{FeatureSet, Frame, Status};
use vbucket::Now;

use crate::consumer::{Added, Consumer, ConsumerError, HandOver, Rollback};
use crate::hub::{Hub, Subscription};
use crate::producer::Answer;
use crate::ticker::Ticker;
pub(crate) use shared::RelayShared;
pub use shared::RelayStatus;

/// How often it is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The part of the memory quota that all such connections together may be sent ahead: a twentieth.
const BUFFER_DIVISOR: u64 = 20;
const BUFFER_BYTES_MIN: u64 = 1 << 20;
const BUFFER_BYTES_MAX: u64 = 64 << 20;

/// What a relayed connection begins with.
pub struct RelayOpening {
    /// What receives.
    pub bucket: Bucket,
    /// That bucket's hub.
    pub hub: Arc<Hub>,
    /// For what waits for files.
    pub pool: ExecutorPool,
    /// What the manager calls the connection.
    pub name: String,
    /// Under which name this node acknowledges prepares, if it does.
    pub node: Option<String>,
    /// What HELLO has agreed on.
    pub features: FeatureSet,
    /// The present.
    pub now: Now,
    /// Has the owner call [`Relay::step`] soon. Called from any thread; must not block.
    pub wake: Box<dyn Fn() + Send + Sync>,
}

/// One connection that writes replicas, and that a manager relays.
pub struct Relay {
    bucket: Bucket,
    hub: Arc<Hub>,
    pool: ExecutorPool,
    consumer: Consumer,
    shared: Arc<RelayShared>,
    _ticker: Ticker,
    subscriptions: Map<Vbid, Subscription>,
    /// When others are shown again how it is doing.
    show_at: Instant,
    is_closing: bool,
}

impl Relay {
    /// A connection without streams. One of the same name is closed. The first request to the
    /// producer is in `out`.
    pub fn open(opening: RelayOpening, out: &mut Vec<u8>) -> Self {
        let RelayOpening { bucket, hub, pool, name, node, features, now, wake } = opening;
        let shared = Arc::new(RelayShared::new(name, wake));
        hub.enter_relay(&shared);
        // Counted with this one, which has entered by now.
        let share = bucket.memory_quota_bytes() / BUFFER_DIVISOR;
        let share = share / u64::try_from(hub.relay_count().max(1)).unwrap_or(1);
        let buffer_bytes = share.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let buffer_bytes = u32::try_from(buffer_bytes).unwrap_or(u32::MAX);
        let reservations = Arc::clone(hub.reservations());
        let consumer = Consumer::relayed(
            bucket.clone(),
            node.as_deref(),
            features,
            reservations,
            buffer_bytes,
            now,
            out,
        );
        let mut ticker = Ticker::default();
        let ticked = Arc::clone(&shared);
        ticker.set_interval(Some(LOOK_INTERVAL), &bucket, &pool, move || ticked.wake());
        let (subscriptions, show_at) = (Map::default(), now.monotonic);
        let is_closing = false;
        Self {
            bucket,
            hub,
            pool,
            consumer,
            shared,
            _ticker: ticker,
            subscriptions,
            show_at,
            is_closing,
        }
    }

    /// Whether the connection is to be closed, once everything is sent.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// A request has come: of the manager's, or one of a producer's that it passes on. What is not
    /// answered by the caller is in `out`.
    pub fn on_message(
        &mut self,
        frame: &Frame<'_>,
        message: &Message<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Answer {
        let vbid = Vbid(frame.header.vbucket_or_status);
        let answer = match message {
            Message::AddStream { flags } => {
                let opaque = frame.header.opaque;
                self.add_stream(Added { opaque, vbid, flags: StreamFlags(*flags) }, now, out)
            }
            Message::CloseStream => match self.consumer.close_added(vbid) {
                Ok(()) => Answer::Done,
                Err((status, context)) => Answer::Fail(status, context),
            },
            Message::Control { key, value } => self.control(key, value),
            Message::Open(_) => Answer::Close("the connection was opened twice"),
            Message::StreamRequest(_)
            | Message::BufferAck { .. }
            | Message::SeqnoAcknowledged { .. } => {
                Answer::Fail(Status::Einval, "the connection was opened to receive")
            }
            _ => {
                self.consumer.on_relayed_message(frame, now, out);
                Answer::Nothing
            }
        };
        self.settle(now, out);
        answer
    }

    /// A message for a vBucket has not come through: its stream ends, because what follows would
    /// leave a gap.
    pub fn lose(&mut self, vbid: Vbid, now: Now, out: &mut Vec<u8>) {
        self.consumer.end_added(vbid);
        self.settle(now, out);
    }

    /// An answer of a producer's has been passed on.
    ///
    /// # Errors
    /// The reason for which the connection is to be closed.
    pub fn on_response(
        &mut self,
        frame: &Frame<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), ConsumerError> {
        self.consumer.on_relayed_response(frame, now, out)?;
        self.settle(now, out);
        Ok(())
    }

    /// Does what has become due, and what other threads have told.
    ///
    /// # Errors
    /// The reason for which the connection is to be closed.
    pub fn step(&mut self, now: Now, out: &mut Vec<u8>) -> Result<(), ConsumerError> {
        if self.shared.is_superseded() {
            self.is_closing = true;
            return Ok(());
        }
        let news = self.shared.take_news();
        for vbid in news.roles {
            self.consumer.role_changed(vbid);
        }
        for (vbid, seqno) in news.held {
            self.consumer.acknowledge(vbid, seqno, out);
        }
        for vbid in news.damaged {
            self.consumer.end_added(vbid);
        }
        for (vbid, has_succeeded) in news.rolled_back {
            self.consumer.rolled_back(vbid, has_succeeded, now, out);
        }
        for (opaque, has_succeeded) in news.handed_over {
            Consumer::handed_over(opaque, has_succeeded, out);
        }
        self.consumer.on_tick(now, out)?;
        self.settle(now, out);
        if now.monotonic >= self.show_at {
            self.show_at = now.monotonic.after(LOOK_INTERVAL);
            self.shared.show(&self.consumer);
        }
        Ok(())
    }

    fn add_stream(&mut self, added: Added, now: Now, out: &mut Vec<u8>) -> Answer {
        match self.consumer.add_stream(added, now, out) {
            Ok(()) => {
                self.show_at = now.monotonic;
                let observer: Arc<dyn StreamObserver> = Arc::<RelayShared>::clone(&self.shared);
                let subscription = self.hub.subscribe(added.vbid, observer);
                self.subscriptions.insert(added.vbid, subscription);
                Answer::Nothing
            }
            Err((status, context)) => Answer::Fail(status, context),
        }
    }

    /// A manager says what the node is called where OPEN did not.
    fn control(&mut self, key: &[u8], value: &[u8]) -> Answer {
        if key != b"consumer_name" {
            let context = "of a connection that was opened to receive there is consumer_name alone";
            return Answer::Fail(Status::Einval, context);
        }
        let node = std::str::from_utf8(value).ok().filter(|node| !node.is_empty());
        match node.is_some_and(|node| self.consumer.name_node(node)) {
            true => Answer::Done,
            false => {
                let context = "the name is a text, and said once, before streams are added";
                Answer::Fail(Status::Einval, context)
            }
        }
    }

    /// Answers what is to be answered by now, and has others do what may wait for files.
    fn settle(&mut self, now: Now, out: &mut Vec<u8>) {
        self.consumer.acknowledge_bytes(now, out);
        for vbid in self.consumer.settle(out) {
            self.show_at = now.monotonic;
            if let Some(subscription) = self.subscriptions.remove(&vbid) {
                self.hub.unsubscribe(vbid, subscription);
            }
        }
        for rollback in self.consumer.take_rollbacks() {
            self.roll_back(rollback);
        }
        for hand_over in self.consumer.take_hand_overs() {
            self.hand_over(hand_over);
        }
    }

    fn roll_back(&self, rollback: Rollback) {
        let (vbid, shared) = (rollback.vbid, Arc::clone(&self.shared));
        let reservations = self.hub.reservations();
        rollback.begin(&self.bucket, &self.pool, reservations, None, move |has_succeeded| {
            shared.tell(|news| news.rolled_back.push((vbid, has_succeeded)));
        });
    }

    fn hand_over(&self, hand_over: HandOver) {
        let HandOver { vbid, opaque, state } = hand_over;
        let (bucket, shared) = (self.bucket.clone(), Arc::clone(&self.shared));
        let take_over = move || {
            let taken = bucket.take_over(vbid, state);
            if let Err(error) = &taken {
                tracing::warn!(%error, vbucket = vbid.0, "a vBucket was not taken over");
            }
            shared.tell(|news| news.handed_over.push((opaque, taken.is_ok())));
        };
        let added = self.pool.add(self.bucket.task_owner(), TaskKind::AuxIo, take_over);
        if added.is_err() {
            tracing::warn!(vbucket = vbid.0, "the bucket closes while a vBucket is taken over");
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Reservations are the hub's: they would outlive streams that have not ended.
        self.consumer.end_all();
        for (vbid, subscription) in std::mem::take(&mut self.subscriptions) {
            self.hub.unsubscribe(vbid, subscription);
        }
        self.hub.leave_relay(&self.shared);
    }
}
