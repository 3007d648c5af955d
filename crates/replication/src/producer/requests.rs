//! What a consumer asks for, and what it is answered.

use std::collections::VecDeque;
use std::sync::Arc;

use bucket::{BackfillOrder, BucketType};
use document::{Seqno, Vbid, VbucketState};
use platform::Instant;
use protocol::Status;
use protocol::dcp::{
    EndReason, Envelope, Message, OpenFlags, StreamFlags, StreamRequest, encode_failover_log,
};

use super::answer::Answer;
use super::connection::Producer;
use super::controls::Change;
use super::counters::{StreamCounters, StreamState, set};
use super::snapshots::{Policy, Snapshots};
use super::stream::{Source, Stream};
use super::stream_key::{StreamKey, cursor_name};
use super::stream_request::{self, Asker, Granted};
use super::takeover::{self, Takeover};

/// Streams of one vBucket that a connection may have, by their ids. Each has a place in the log,
/// and whoever writes to the vBucket, or flushes it, goes through all of these.
const STREAMS_OF_A_VBUCKET_MAX: usize = 256;

impl Producer {
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

    pub(super) fn set_ticker(&mut self) {
        let takeovers = (!self.takeovers.is_empty()).then_some(takeover::LOOK_INTERVAL);
        let interval = self.liveness.next_look().into_iter().chain(takeovers).min();
        let shared = Arc::clone(&self.shared);
        self.ticker.set_interval(interval, &self.bucket, &self.pool, move || shared.wake());
    }

    fn failover_log(&self, vbid: Vbid) -> Answer {
        let log = self.bucket.on_vbucket(vbid, |vbucket, _, _| {
            let entries = vbucket.failover_entries().iter();
            entries.map(|entry| (entry.uuid, entry.seqno)).collect::<Vec<_>>()
        });
        let Some(log) = log else { return Answer::Fail(Status::NotMyVbucket, "") };
        let mut value = Vec::new();
        encode_failover_log(log, &mut value);
        Answer::Value(value)
    }

    fn stream_request(&mut self, envelope: Envelope, request: StreamRequest<'_>) -> Answer {
        // What became of the vBucket before is no news to the stream that begins, and may have
        // ended the one whose place it takes.
        self.hear_news();
        let vbid = envelope.vbid;
        let role = self
            .bucket
            .on_vbucket(vbid, |vbucket, _, _| stream_request::check_role(vbucket, request));
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
        let takes_place = match self.check_place(key) {
            Ok(takes_place) => takes_place,
            Err(answer) => return answer,
        };
        let cursor_name = cursor_name(self.shared.name(), key);
        // What happens from now on is heard, also what happens before the stream is there.
        if !takes_place {
            self.subscribe(key);
        }
        let is_replica = self.settings.is_sync_replication();
        let node = self.settings.consumer_name.as_deref().filter(|_| is_replica);
        let has_room = self.bucket.has_room_to_backfill(self.hub.unsent().bytes());
        let tenure = self.settings.cursor_tenure();
        let has_files = self.bucket.bucket_type() != BucketType::Ephemeral;
        let asker = Asker { cursor_name: &cursor_name, tenure, node, has_room, has_files };
        let granted = self.bucket.on_vbucket(vbid, |vbucket, _, effects| {
            stream_request::grant(vbucket, &checked, asker, effects)
        });
        match granted.unwrap_or(Err(Answer::Fail(Status::NotMyVbucket, ""))) {
            Err(answer) => {
                if !takes_place {
                    self.unsubscribe(key);
                }
                answer
            }
            Ok(granted) => {
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

    /// Whether there is a place for a stream: its own, or that of one which has ended and whose end
    /// has not left yet. Of those no more than one is kept, whatever a consumer asks for that takes
    /// nothing.
    fn check_place(&self, key: StreamKey) -> Result<bool, Answer> {
        match self.streams.get(&key) {
            Some(stream) if !stream.has_ended() => {
                Err(Answer::Fail(Status::KeyEexists, "the stream is there already"))
            }
            Some(stream) if stream.predecessor.is_some() => {
                let context = "the ends of two streams of the vBucket wait to be sent";
                Err(Answer::Fail(Status::Etmpfail, context))
            }
            Some(_) => Ok(true),
            None => {
                let others = self.by_vbucket.get(&key.vbid).map_or(0, |(_, keys)| keys.len());
                if others < STREAMS_OF_A_VBUCKET_MAX {
                    return Ok(false);
                }
                let context = "the connection has 256 streams of the vBucket";
                Err(Answer::Fail(Status::Ebusy, context))
            }
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
        let Granted { start, end, registration, role, uuid, .. } = granted;
        let within = granted.snapshot_start..=granted.snapshot_end;
        let is_of_one_collection = granted.is_of_one_collection;
        let predecessor = self.take_ended(key);
        let counters = Arc::new(StreamCounters::default());
        set(&counters.opaque, u64::from(opaque));
        set(&counters.flags, u64::from(flags.0));
        set(&counters.start, start.0);
        set(&counters.end, end.0);
        set(&counters.last_read, start.0);
        self.shared.add_stream(key, Arc::clone(&counters));
        let snapshots = Snapshots::new(self.policy(start, flags), start, within, end);
        let mut snapshots = snapshots.of(granted.filter);
        if flags.contains(StreamFlags::DISK_ONLY) {
            snapshots = snapshots.ending_with_file();
        }
        let mut stream = Stream {
            key,
            opaque,
            takeover: flags.contains(StreamFlags::TAKEOVER).then(Takeover::default),
            cursor_name,
            tenure: self.settings.cursor_tenure(),
            role,
            uuid,
            source: Source::Log(registration.id),
            snapshots,
            known_purge: granted.known_purge,
            queue: VecDeque::new(),
            last_sent: start,
            backfill_bytes: 0,
            backfill_remaining: 0,
            by_key: None,
            predecessor,
            counters,
        };
        stream.show_state(StreamState::InMemory);
        if start >= end {
            stream.finish(EndReason::Ok);
        } else if registration.needs_backfill {
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
        let is_takeover = stream.takeover.is_some();
        let before = self.streams.insert(key, stream);
        assert!(before.is_none(), "a stream that is there already was refused: {key:?}");
        if is_takeover {
            self.takeovers.push(key);
            self.set_ticker();
        }
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
            self.close_at_once(key);
        }
        Answer::Done
    }

    fn acknowledged(&self, envelope: Envelope, seqno: Seqno) -> Answer {
        if !self.settings.is_sync_replication() {
            let context = "the connection does not replicate durable writes";
            return Answer::Fail(Status::Einval, context);
        }
        // It names its stream by the opaque. Streams of other vBuckets are not looked at: there may
        // be a thousand, and every durable write is acknowledged.
        let keys = self.by_vbucket.get(&envelope.vbid).map_or(&[][..], |(_, keys)| keys);
        let mut streams = keys.iter().filter_map(|key| self.streams.get(key));
        let Some(stream) = streams.find(|stream| stream.opaque == envelope.opaque) else {
            return Answer::Nothing;
        };
        if seqno > stream.last_sent {
            return Answer::Close("a seqno was acknowledged that was not sent");
        }
        if let Some(node) = &self.settings.consumer_name {
            self.bucket.on_vbucket(envelope.vbid, |vbucket, now, effects| {
                // Under the lock under which a newer connection of the node begins its stream: what
                // was said before that may be lost by now. And of the history that was streamed: a
                // FLUSH puts another in its place before the stream hears of it, and seqnos of that
                // one are of other writes.
                if !self.shared.is_superseded() && vbucket.uuid() == stream.uuid {
                    vbucket.acknowledge(node, seqno, now, effects);
                }
            });
        }
        Answer::Nothing
    }
}
