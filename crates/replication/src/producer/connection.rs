//! The producer: its requests, and its turns of sending.

use std::collections::VecDeque;
use std::sync::Arc;

use bucket::{BackfillOrder, Bucket, LifeError, StreamObserver};
use document::{Item, Map, Seqno, Set, Vbid, VbucketState};
use executor::{ExecutorPool, TaskKind};
use platform::Instant;
use protocol::dcp::{
    EndReason, Envelope, Message, OpenFlags, StreamFlags, StreamRequest, encode_failover_log,
};
use protocol::{FeatureSet, Opcode, Status};

use super::controls::{Change, Settings};
use super::flow_control::FlowControl;
use super::liveness::{Due, Liveness};
use super::outgoing;
use super::shared::ProducerShared;
use super::snapshots::{Policy, Snapshots};
use super::status::{StreamCounters, StreamState, add, set};
use super::stream::{Found, Source, Stream, StreamKey};
use super::stream_request::{self, Granted};
use super::takeover::{Answered, Death, Takeover};
use super::ticker::Ticker;
use crate::backfill::Backfills;
use crate::hub::{Hub, Subscription};

/// Messages of one stream before others have their turn.
const TURN_MESSAGES_MAX: usize = 128;

/// Where messages go.
pub trait MessageSink {
    /// Bytes that are sent in order.
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Sends the value of an item behind what is in the buffer now.
    fn push_value(&mut self, item: Item);

    /// Whether there is no room for another message.
    fn is_full(&self) -> bool;
}

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
    /// How it was opened.
    pub flags: OpenFlags,
    /// What HELLO has agreed on.
    pub features: FeatureSet,
    /// The present.
    pub now: Instant,
    /// Has the owner call [`Producer::step`] soon. Called from any thread; must not block.
    pub wake: Box<dyn Fn() + Send + Sync>,
}

/// What is answered to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success.
    Done,
    /// Success, with this value.
    Value(Vec<u8>),
    /// The consumer has to roll back to this seqno.
    Rollback(Seqno),
    /// A failure, and what a person reads.
    Fail(Status, &'static str),
    /// The filter names a collection that there is not.
    UnknownCollection,
    /// The filter names a scope that there is not.
    UnknownScope,
    /// Nothing: the message is not answered.
    Nothing,
    /// The connection is to be closed, for this reason.
    Close(&'static str),
}

/// One connection that reads vBuckets.
pub struct Producer {
    pub(super) bucket: Bucket,
    hub: Arc<Hub>,
    shared: Arc<ProducerShared>,
    pool: ExecutorPool,
    backfills: Arc<Backfills>,
    settings: Settings,
    flow: FlowControl,
    liveness: Liveness,
    ticker: Ticker,
    streams: Map<StreamKey, Stream>,
    /// Streams of each vBucket, with the subscription to its news.
    by_vbucket: Map<Vbid, (Subscription, Vec<StreamKey>)>,
    /// Streams that may have something to send, each once.
    ready: VecDeque<StreamKey>,
    is_ready: Set<StreamKey>,
    is_closing: bool,
}

impl Producer {
    /// A producer without streams. One of the same name is closed.
    pub fn open(opening: Opening) -> Self {
        let Opening { bucket, hub, pool, name, flags, features, now, wake } = opening;
        let shared = Arc::new(ProducerShared::new(name, wake));
        hub.enter(&shared);
        Self {
            backfills: Backfills::new(bucket.clone(), Arc::clone(&shared)),
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
            is_closing: false,
        }
    }

    /// Whether the connection is to be closed, once everything is sent.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// A message has come.
    pub fn on_message(
        &mut self,
        envelope: Envelope,
        message: &Message<'_>,
        now: Instant,
    ) -> Answer {
        self.liveness.received(now);
        match message {
            Message::StreamRequest(request) => self.stream_request(envelope, *request),
            Message::CloseStream => self.close_stream(envelope),
            Message::Control { key, value } => self.control(key, value),
            Message::Noop => Answer::Done,
            Message::BufferAck { bytes } => {
                self.flow.acked(*bytes);
                self.show_flow();
                Answer::Nothing
            }
            Message::SeqnoAcknowledged { seqno } => self.acknowledged(envelope, *seqno),
            Message::GetFailoverLog => self.failover_log(envelope.vbid),
            Message::Open(_) => Answer::Close("the connection was opened twice"),
            _ => Answer::Close("a producer receives no data"),
        }
    }

    fn control(&mut self, key: &[u8], value: &[u8]) -> Answer {
        match self.settings.control(key, value) {
            Err((status, context)) => return Answer::Fail(status, context),
            Ok(Change::None) => self.backfills.set_sequential(self.settings.backfills_one_by_one),
            Ok(Change::Noop(is_enabled)) => {
                self.liveness.enable(is_enabled);
                self.set_ticker();
            }
            Ok(Change::NoopInterval(interval)) => {
                self.liveness.set_interval(interval);
                self.set_ticker();
            }
            Ok(Change::Buffer(bytes)) => self.flow.set_buffer(bytes),
        }
        self.show_flow();
        Answer::Done
    }

    fn set_ticker(&mut self) {
        let interval = self.liveness.next_look();
        self.ticker.set_interval(interval, &self.bucket, &self.pool, &self.shared);
    }

    fn failover_log(&self, vbid: Vbid) -> Answer {
        let log = self.bucket.act_on_vbucket(vbid, |vbucket, _, _| {
            let entries = vbucket.failover_entries().iter();
            entries.map(|entry| (entry.uuid, entry.seqno)).collect::<Vec<_>>()
        });
        let Some(log) = log else { return Answer::Fail(Status::NotMyVbucket, "") };
        let mut value = Vec::new();
        encode_failover_log(log, &mut value);
        Answer::Value(value)
    }

    fn stream_request(&mut self, envelope: Envelope, request: StreamRequest<'_>) -> Answer {
        let vbid = envelope.vbid;
        let role = self
            .bucket
            .act_on_vbucket(vbid, |vbucket, _, _| stream_request::check_role(vbucket, request));
        let request = match role {
            None => return Answer::Fail(Status::NotMyVbucket, ""),
            Some(Err(answer)) => return answer,
            Some(Ok(request)) => request,
        };
        let has_noop = self.liveness.is_enabled();
        let checked = match stream_request::check(request, &self.settings, has_noop) {
            Ok(checked) => checked,
            Err(answer) => return answer,
        };
        let key = StreamKey { vbid, stream_id: checked.selection.stream_id };
        if self.streams.contains_key(&key) {
            return Answer::Fail(Status::KeyEexists, "the stream is there already");
        }
        let cursor_name = self.cursor_name(key);
        // What happens from now on is heard, also what happens before the stream is there.
        self.subscribe(key);
        let is_replica = self.settings.is_sync_replication();
        let node = self.settings.consumer_name.as_deref().filter(|_| is_replica);
        let granted = self.bucket.act_on_vbucket(vbid, |vbucket, _, _| {
            stream_request::grant(vbucket, &checked, &cursor_name, node)
        });
        match granted {
            None => {
                self.unsubscribe(key);
                Answer::Fail(Status::NotMyVbucket, "")
            }
            Some(Err(answer)) => {
                self.unsubscribe(key);
                answer
            }
            Some(Ok(granted)) => {
                let mut value = Vec::new();
                encode_failover_log(granted.failover_log.iter().copied(), &mut value);
                self.begin_stream(
                    key,
                    envelope.opaque,
                    checked.request.flags,
                    cursor_name,
                    granted,
                );
                Answer::Value(value)
            }
        }
    }

    fn cursor_name(&self, key: StreamKey) -> String {
        let name = self.shared.name();
        match key.stream_id {
            None => format!("eq_dcpq:{name}"),
            Some(id) => format!("eq_dcpq:{name}:{id}"),
        }
    }

    fn begin_stream(
        &mut self,
        key: StreamKey,
        opaque: u32,
        flags: StreamFlags,
        cursor_name: String,
        granted: Granted,
    ) {
        let Granted { start, end, registration, role, .. } = granted;
        let within = granted.snapshot_start..=granted.snapshot_end;
        let is_of_one_collection = granted.is_of_one_collection;
        let counters = Arc::new(StreamCounters::default());
        set(&counters.opaque, u64::from(opaque));
        set(&counters.flags, u64::from(flags.0));
        set(&counters.start, start.0);
        set(&counters.end, end.0);
        set(&counters.last_read, start.0);
        self.shared.add_stream(key, Arc::clone(&counters));
        let snapshots = Snapshots::new(self.policy(start, flags), start, within, end);
        let mut stream = Stream {
            key,
            opaque,
            takeover: flags.contains(StreamFlags::TAKEOVER).then(Takeover::default),
            cursor_name,
            role,
            source: Source::Log(registration.id),
            snapshots,
            known_purge: granted.known_purge,
            queue: VecDeque::new(),
            last_sent: start,
            backfill_bytes: 0,
            by_key: None,
            counters,
        };
        stream.show_state(StreamState::InMemory);
        let is_of_disk = flags.contains(StreamFlags::DISK_ONLY);
        if start >= end {
            stream.finish(EndReason::Ok);
        } else if registration.needs_backfill || is_of_disk {
            let comes_whole = start == Seqno(0) && end == Seqno(u64::MAX);
            if is_of_one_collection && comes_whole && role == VbucketState::Active {
                stream.by_key = self.settings.by_key();
            }
            let order = match stream.by_key {
                Some(_) => BackfillOrder::ByKey,
                None => BackfillOrder::BySeqno,
            };
            let feed = self.backfills.begin(&self.pool, key.vbid, start, order);
            stream.begin_backfill(feed, registration.id);
        }
        self.streams.insert(key, stream);
        self.mark_ready(key);
    }

    fn policy(&self, start: Seqno, flags: StreamFlags) -> Policy {
        let settings = &self.settings;
        Policy {
            has_sync_writes: settings.has_sync_writes,
            is_sync_replication: settings.is_sync_replication(),
            has_collections: settings.has_collections(),
            has_marker_2_2: settings.has_marker_2_2,
            wants_acks: flags.contains(StreamFlags::TAKEOVER),
            skips_deletes: start == Seqno(0) && settings.flags.contains(OpenFlags::SKIP_DELETES),
        }
    }

    fn close_stream(&mut self, envelope: Envelope) -> Answer {
        if envelope.stream_id.is_some() != self.settings.has_stream_ids {
            let context = "a stream has an id exactly if stream ids are enabled";
            return Answer::Fail(Status::DcpStreamIdInvalid, context);
        }
        let key = StreamKey { vbid: envelope.vbid, stream_id: envelope.stream_id };
        let Some(stream) = self.streams.get_mut(&key) else {
            let has_v7 = self.settings.has_v7_statuses;
            let status = if has_v7 { Status::DcpStreamNotFound } else { Status::KeyEnoent };
            return Answer::Fail(status, "there is no such stream");
        };
        if self.settings.ends_closed_streams {
            stream.end_now(EndReason::Closed, &self.backfills);
            self.mark_ready(key);
        } else {
            self.remove_stream(key);
        }
        Answer::Done
    }

    fn acknowledged(&self, envelope: Envelope, seqno: Seqno) -> Answer {
        if !self.settings.is_sync_replication() {
            let context = "the connection does not replicate durable writes";
            return Answer::Fail(Status::Einval, context);
        }
        let is_it =
            |stream: &&Stream| stream.key.vbid == envelope.vbid && stream.opaque == envelope.opaque;
        let Some(stream) = self.streams.values().find(is_it) else { return Answer::Nothing };
        if seqno > stream.last_sent {
            return Answer::Close("a seqno was acknowledged that was not sent");
        }
        if let Some(node) = &self.settings.consumer_name {
            self.bucket.act_on_vbucket(envelope.vbid, |vbucket, now, effects| {
                // Under the lock under which a newer connection of the node begins its stream: what
                // was said before that may be lost by now.
                if !self.shared.is_superseded() {
                    vbucket.acknowledge(node, seqno, now, effects);
                }
            });
        }
        Answer::Nothing
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
                    let vbid = stream.key.vbid;
                    self.kill(vbid, death);
                    return;
                }
            },
            _ => return,
        }
        let key = stream.key;
        self.mark_ready(key);
    }

    /// Has a thread that may wait for files make the vBucket dead.
    fn kill(&self, vbid: Vbid, death: Death) {
        let (bucket, shared) = (self.bucket.clone(), Arc::clone(&self.shared));
        let kill = move || {
            let killed = bucket.set_vbucket_state(vbid, VbucketState::Dead, None);
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
        self.hear_news();
        if self.is_closing {
            return;
        }
        self.stay_alive(sink, now);
        while let Some(key) = self.ready.pop_front() {
            if sink.is_full() || !self.flow.has_room() {
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
        self.show_flow();
    }

    fn hear_news(&mut self) {
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

    /// Sends some of a stream. Returns whether it may have more.
    fn send_some(&mut self, key: StreamKey, sink: &mut dyn MessageSink) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else { return false };
        let envelope = stream.envelope(self.settings.has_collections());
        for _ in 0..TURN_MESSAGES_MAX {
            let Some(next) = stream.queue.pop_front() else {
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
            let bytes = outgoing::write(&next, envelope, &self.settings, sink);
            stream.note_sent(&next, &self.backfills);
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

    fn show_flow(&self) {
        let counters = self.shared.counters();
        let (buffer, outstanding, acked) = self.flow.usage();
        set(&counters.buffer_bytes, buffer);
        set(&counters.unacked_bytes, outstanding);
        set(&counters.acked_bytes, acked);
    }

    fn mark_ready(&mut self, key: StreamKey) {
        if self.is_ready.insert(key) {
            self.ready.push_back(key);
        }
    }

    fn keys_of(&self, vbid: Vbid) -> Vec<StreamKey> {
        self.by_vbucket.get(&vbid).map_or_else(Vec::new, |(_, keys)| keys.clone())
    }

    fn subscribe(&mut self, key: StreamKey) {
        let (hub, shared) = (&self.hub, &self.shared);
        let (_, keys) = self.by_vbucket.entry(key.vbid).or_insert_with(|| {
            let observer: Arc<dyn StreamObserver> = Arc::<ProducerShared>::clone(shared);
            (hub.subscribe(key.vbid, observer), Vec::new())
        });
        keys.push(key);
    }

    fn unsubscribe(&mut self, key: StreamKey) {
        let Some((subscription, keys)) = self.by_vbucket.get_mut(&key.vbid) else { return };
        keys.retain(|known| *known != key);
        if keys.is_empty() {
            self.hub.unsubscribe(key.vbid, *subscription);
            self.by_vbucket.remove(&key.vbid);
        }
    }

    fn remove_stream(&mut self, key: StreamKey) {
        self.unsubscribe(key);
        self.shared.remove_stream(key);
        if let Some(mut stream) = self.streams.remove(&key) {
            stream.let_go(&self.bucket, &self.backfills);
        }
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
