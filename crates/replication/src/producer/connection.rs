//! The producer: its requests, and its turns of sending.

use std::collections::VecDeque;
use std::sync::Arc;

use bucket::{BackfillOrder, Bucket, LifeError, StreamObserver};
use document::{Map, Set, VbUuid, Vbid, VbucketState};
use executor::{ExecutorPool, TaskKind};
use platform::Instant;
use protocol::dcp::{EndReason, Envelope, Message, OpenFlags};
use protocol::{FeatureSet, Opcode, Status};

use super::controls::Settings;
use super::counters::{add, set};
use super::flow_control::FlowControl;
use super::liveness::{Due, Liveness};
use super::outgoing;
use super::shared::ProducerShared;
use super::sink::MessageSink;
use super::stream::{Found, Stream};
use super::stream_key::StreamKey;
use super::takeover::{Answered, Death, Takeover};
use crate::backfill::Backfills;
use crate::hub::{Hub, Subscription};
use crate::ticker::Ticker;

/// Messages of one stream before others have their turn.
const TURN_MESSAGES_MAX: usize = 128;

/// What a producer begins with.
pub struct Opening {
    /// What it reads.
    pub bucket: Bucket,
    /// That bucket's hub.
    pub hub: Arc<Hub>,
    /// For reading files.
    pub pool: ExecutorPool,
    /// What the client calls the connection.
    pub name: String,
    /// Whether the client may be a node: others do not take its name.
    pub may_be_nodes: bool,
    /// How it was opened.
    pub flags: OpenFlags,
    /// What HELLO has agreed on.
    pub features: FeatureSet,
    /// The present.
    pub now: Instant,
    /// Has the owner call [`Producer::step`] soon. Called from any thread; must not block.
    pub wake: Box<dyn Fn() + Send + Sync>,
}

/// One connection that reads vBuckets.
pub struct Producer {
    pub(super) bucket: Bucket,
    pub(super) hub: Arc<Hub>,
    pub(super) shared: Arc<ProducerShared>,
    pub(super) pool: ExecutorPool,
    pub(super) backfills: Arc<Backfills>,
    pub(super) settings: Settings,
    pub(super) flow: FlowControl,
    pub(super) liveness: Liveness,
    pub(super) ticker: Ticker,
    pub(super) streams: Map<StreamKey, Stream>,
    /// Streams of each vBucket, with the subscription to its news.
    pub(super) by_vbucket: Map<Vbid, (Subscription, Vec<StreamKey>)>,
    /// Streams that may have something to send, each once.
    pub(super) ready: VecDeque<StreamKey>,
    pub(super) is_ready: Set<StreamKey>,
    /// Streams that hand their vBuckets over.
    pub(super) takeovers: Vec<StreamKey>,
    pub(super) is_closing: bool,
}

impl Producer {
    /// A producer without streams. One of the same name is closed; `None` if that may be a node's,
    /// and this may not.
    pub fn open(opening: Opening) -> Option<Self> {
        let Opening { bucket, hub, pool, name, may_be_nodes, flags, features, now, wake } = opening;
        let shared = Arc::new(ProducerShared::new(name, may_be_nodes, wake));
        if !hub.enter(&shared) {
            return None;
        }
        Some(Self {
            backfills: Backfills::new(
                bucket.clone(),
                Arc::clone(hub.unsent()),
                Arc::clone(&shared),
            ),
            pool,
            bucket,
            hub,
            shared,
            settings: Settings::new(flags, features),
            flow: FlowControl::default(),
            liveness: Liveness::new(now),
            ticker: Ticker::default(),
            streams: Map::default(),
            by_vbucket: Map::default(),
            ready: VecDeque::new(),
            is_ready: Set::default(),
            takeovers: Vec::new(),
            is_closing: false,
        })
    }

    /// Whether the connection is to be closed, once everything is sent.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Whether the consumer is a node that holds durable writes: what it says ends them.
    pub fn feeds_replica(&self) -> bool {
        self.settings.is_sync_replication()
    }

    /// Whether the consumer is sent prepares: it counts their seqnos as well.
    pub fn sends_prepares(&self) -> bool {
        self.settings.has_sync_writes
    }

    /// An answer to a message of this side has come. Fails with the reason for which the connection
    /// is to be closed.
    pub fn on_response(
        &mut self,
        opcode: u8,
        status: Option<Status>,
        opaque: u32,
        now: Instant,
    ) -> Result<(), &'static str> {
        self.liveness.received(now);
        let Some(opcode) = Opcode::from_byte(opcode) else { return Ok(()) };
        if opcode == Opcode::DcpNoop {
            self.liveness.answered(opaque);
            return Ok(());
        }
        if status == Some(Status::Success) {
            self.succeeded(opcode, opaque);
        }
        match status {
            Some(Status::Success | Status::NotMyVbucket) => Ok(()),
            Some(Status::KeyEnoent | Status::DcpStreamNotFound) => {
                let is_end = matches!(opcode, Opcode::DcpCommit | Opcode::DcpAbort);
                if is_end { Err("the consumer knows nothing of a durable write") } else { Ok(()) }
            }
            Some(Status::KeyEexists | Status::OpaqueNoMatch) => Ok(()),
            _ => Err("the consumer has refused a message"),
        }
    }

    /// The consumer has done what a stream that hands its vBucket over has asked for.
    fn succeeded(&mut self, opcode: Opcode, opaque: u32) {
        let is_it = |stream: &&mut Stream| stream.opaque == opaque && stream.takeover.is_some();
        let Some(stream) = self.streams.values_mut().find(is_it) else { return };
        let Some(takeover) = &mut stream.takeover else { return };
        match opcode {
            Opcode::DcpSnapshotMarker => takeover.marker_answered(),
            Opcode::DcpSetVbucketState => match takeover.state_answered() {
                Answered::Nothing => return,
                Answered::Finish => stream.finish(EndReason::Ok),
                Answered::Die(death) => {
                    let (vbid, uuid) = (stream.key.vbid, stream.uuid);
                    self.kill(vbid, uuid, death);
                    return;
                }
            },
            _ => return,
        }
        let key = stream.key;
        self.mark_ready(key);
    }

    /// Has a thread that may wait for files make the vBucket dead, if it is that of the stream: a
    /// FLUSH may have put another one into its place.
    fn kill(&self, vbid: Vbid, uuid: VbUuid, death: Death) {
        let (bucket, shared) = (self.bucket.clone(), Arc::clone(&self.shared));
        let kill = move || {
            let killed = bucket.hand_over(vbid, uuid);
            if let Err(error) = &killed {
                tracing::warn!(%error, vbucket = vbid.0, "handing a vBucket over meets trouble");
            }
            // It is dead in memory then, and the file is tried again.
            death.tell(matches!(killed, Ok(()) | Err(LifeError::NotPersisted)));
            shared.mark_ready(vbid);
        };
        let added = self.pool.add(self.bucket.task_owner(), TaskKind::AuxIo, kill);
        if added.is_err() {
            tracing::warn!(vbucket = vbid.0, "the bucket closes while a vBucket is handed over");
        }
    }

    /// Sends as much as there is, there is room for, and the consumer lets.
    pub fn step(&mut self, sink: &mut dyn MessageSink, now: Instant) {
        // First: of a stream whose vBucket has another role nothing more is sent.
        self.hear_news();
        if self.is_closing {
            return;
        }
        self.stay_alive(sink, now);
        self.watch_takeovers(now);
        while let Some(key) = self.ready.pop_front() {
            if sink.is_full() || !self.flow.has_room() {
                // It keeps its place. Whoever makes room, socket or consumer, brings the next turn.
                self.ready.push_front(key);
                break;
            }
            if self.send_some(key, sink) {
                self.ready.push_back(key);
            } else {
                self.is_ready.remove(&key);
                if self.streams.get(&key).is_some_and(Stream::is_done) {
                    self.remove_stream(key);
                }
            }
        }
        assert_eq!(self.ready.len(), self.is_ready.len(), "a stream waits for its turn once");
        self.show_flow();
    }

    pub(super) fn hear_news(&mut self) {
        if self.shared.is_superseded() {
            self.is_closing = true;
            return;
        }
        let mut news = self.shared.take_news();
        for (vbid, state) in news.roles.drain(..) {
            self.role_changed(vbid, state);
        }
        for vbid in news.ready.drain(..) {
            for key in self.keys_of(vbid) {
                self.mark_ready(key);
            }
        }
    }

    fn role_changed(&mut self, vbid: Vbid, state: Option<VbucketState>) {
        for key in self.keys_of(vbid) {
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            // A takeover has asked for this vBucket's death: what is left still has to go over.
            let is_handed_over = stream.takeover.as_ref().is_some_and(Takeover::kills)
                && state == Some(VbucketState::Dead);
            if state != Some(stream.role) && !is_handed_over {
                stream.end_now(EndReason::StateChanged, &self.backfills);
            }
            self.mark_ready(key);
        }
    }

    fn stay_alive(&mut self, sink: &mut dyn MessageSink, now: Instant) {
        match self.liveness.due(now) {
            Due::Nothing => {}
            Due::Noop(opaque) => {
                let envelope = Envelope { opaque, ..Envelope::default() };
                Message::Noop.encode(envelope, sink.buffer());
            }
            Due::GiveUp => {
                tracing::warn!(name = self.shared.name(), "closing a consumer that is silent");
                self.is_closing = true;
            }
        }
    }

    /// Holds up those who write to vBuckets that have been handed over for too long.
    fn watch_takeovers(&mut self, now: Instant) {
        for key in &self.takeovers {
            let Some(stream) = self.streams.get_mut(key) else { continue };
            if stream.becomes_late(now) {
                tracing::warn!(vbucket = key.vbid.0, "writers wait for the end of a takeover");
                self.bucket.on_vbucket(key.vbid, |vbucket, _, _| {
                    vbucket.set_takeover_late(true);
                });
            }
        }
    }

    /// Sends some of a stream. Returns whether it may have more.
    fn send_some(&mut self, key: StreamKey, sink: &mut dyn MessageSink) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else { return false };
        for _ in 0..TURN_MESSAGES_MAX {
            let sender = match &mut stream.predecessor {
                Some(predecessor) => predecessor,
                None => &mut *stream,
            };
            let Some(next) = sender.queue.pop_front() else {
                if let Some(mut sent) = stream.predecessor.take() {
                    sent.forget(&self.backfills);
                    continue;
                }
                if stream.is_done() {
                    return false;
                }
                match stream.look(&self.bucket, &self.backfills) {
                    Found::Something => continue,
                    Found::Nothing if stream.idle() => continue,
                    Found::Nothing => return false,
                    Found::NeedsBackfill(cursor) => {
                        let after = stream.snapshots.read_through();
                        let order = BackfillOrder::BySeqno;
                        let feed = self.backfills.begin(&self.pool, key.vbid, after, order);
                        stream.begin_backfill(feed, cursor);
                        continue;
                    }
                }
            };
            let envelope = sender.envelope(self.settings.has_collections());
            let bytes = outgoing::write(&next, envelope, &self.settings, sink);
            sender.note_sent(&next, &self.backfills);
            self.flow.sent(bytes);
            let counters = self.shared.counters();
            add(&counters.bytes_sent, u64::try_from(bytes).unwrap_or(u64::MAX));
            add(&counters.items_sent, u64::from(next.is_item()));
            if sink.is_full() || !self.flow.has_room() {
                break;
            }
        }
        !stream.is_done()
    }

    pub(super) fn show_flow(&self) {
        let counters = self.shared.counters();
        let (buffer, outstanding, acked) = self.flow.usage();
        set(&counters.buffer_bytes, buffer);
        set(&counters.unacked_bytes, outstanding);
        set(&counters.acked_bytes, acked);
    }

    pub(super) fn mark_ready(&mut self, key: StreamKey) {
        if self.is_ready.insert(key) {
            self.ready.push_back(key);
        }
    }

    pub(super) fn keys_of(&self, vbid: Vbid) -> Vec<StreamKey> {
        self.by_vbucket.get(&vbid).map_or_else(Vec::new, |(_, keys)| keys.clone())
    }

    pub(super) fn subscribe(&mut self, key: StreamKey) {
        let (hub, shared) = (&self.hub, &self.shared);
        let (_, keys) = self.by_vbucket.entry(key.vbid).or_insert_with(|| {
            let observer: Arc<dyn StreamObserver> = Arc::<ProducerShared>::clone(shared);
            (hub.subscribe(key.vbid, observer), Vec::new())
        });
        assert!(!keys.contains(&key), "a stream hears of its vBucket once: {key:?}");
        keys.push(key);
    }

    pub(super) fn unsubscribe(&mut self, key: StreamKey) {
        let Some((subscription, keys)) = self.by_vbucket.get_mut(&key.vbid) else { return };
        keys.retain(|known| *known != key);
        if keys.is_empty() {
            self.hub.unsubscribe(key.vbid, *subscription);
            self.by_vbucket.remove(&key.vbid);
        }
    }

    pub(super) fn remove_stream(&mut self, key: StreamKey) {
        self.unsubscribe(key);
        if let Some(mut stream) = self.take_stream(key) {
            stream.forget(&self.backfills);
        }
    }

    /// Removes a stream with what it has yet to send. One that ended before it still sends the
    /// rest, in the place that it had: nobody has closed that one.
    pub(super) fn close_at_once(&mut self, key: StreamKey) {
        let predecessor = self.streams.get_mut(&key).and_then(|stream| stream.predecessor.take());
        let Some(ended) = predecessor else { return self.remove_stream(key) };
        if let Some(mut closed) = self.take_stream(key) {
            closed.forget(&self.backfills);
        }
        self.shared.add_stream(key, Arc::clone(&ended.counters));
        self.streams.insert(key, *ended);
        self.mark_ready(key);
    }

    /// A stream that has ended, with what it has yet to send. Its successor hears of the vBucket in
    /// its place.
    pub(super) fn take_ended(&mut self, key: StreamKey) -> Option<Box<Stream>> {
        let ended = self.take_stream(key).filter(|stream| !stream.is_done())?;
        assert!(ended.has_ended(), "a stream that goes on has no successor: {key:?}");
        Some(Box::new(ended))
    }

    /// A stream that reads nothing any more.
    fn take_stream(&mut self, key: StreamKey) -> Option<Stream> {
        self.shared.remove_stream(key);
        if self.takeovers.contains(&key) {
            self.takeovers.retain(|other| *other != key);
            self.set_ticker();
        }
        let mut stream = self.streams.remove(&key)?;
        stream.let_go(&self.bucket, &self.backfills);
        Some(stream)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        while let Some(key) = self.streams.keys().next().copied() {
            self.remove_stream(key);
        }
        self.backfills.stop();
        self.hub.leave(&self.shared);
    }
}
