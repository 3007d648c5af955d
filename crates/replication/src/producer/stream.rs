//! One stream: reads its vBucket and hands over what its consumer is to get.

use std::collections::VecDeque;
use std::sync::Arc;

use bucket::Bucket;
use document::{Seqno, VbUuid, VbucketState};
use platform::Instant;
use protocol::dcp::{EndReason, Envelope};
use vbucket::checkpoint::{CursorId, LogRange, ReadLimit, Tenure};

use super::counters::{StreamCounters, StreamState, UNKNOWN, add, set};
use super::snapshots::{Outgoing, Snapshots};
use super::stream_key::StreamKey;
use super::takeover::{Idle, Takeover};
use crate::backfill::{Backfills, Fed, Feed, size_of_item};

/// Items that are taken from the log at a time, approximately.
const READ_ITEMS_MAX: usize = 1024;
/// Bytes of them.
const READ_BYTES_MAX: usize = 1 << 20;

/// One stream.
pub(super) struct Stream {
    pub(super) key: StreamKey,
    pub(super) opaque: u32,
    /// Set while its vBucket is handed over.
    pub(super) takeover: Option<Takeover>,
    /// What its cursors are called.
    pub(super) cursor_name: String,
    pub(super) tenure: Tenure,
    /// The vBucket's role when it began.
    pub(super) role: VbucketState,
    /// The branch of history that its vBucket was in when it began. An active vBucket stays in that
    /// as long as the stream may go on: another begins with another role, or with another vBucket.
    pub(super) uuid: VbUuid,
    pub(super) source: Source,
    pub(super) snapshots: Snapshots,
    /// What was purged up to here when it began, its consumer need not have.
    pub(super) known_purge: Seqno,
    pub(super) queue: VecDeque<Outgoing>,
    /// The last seqno that was sent.
    pub(super) last_sent: Seqno,
    /// Bytes that a backfill has read and that wait in the queue.
    pub(super) backfill_bytes: u64,
    /// Items that its backfill has not read yet.
    pub(super) backfill_remaining: u64,
    /// Its first backfill comes in the order of keys.
    pub(super) by_key: Option<ByKey>,
    /// One of the same name that has ended, while what waits in its queue has not left: that goes
    /// first.
    pub(super) predecessor: Option<Box<Self>>,
    pub(super) counters: Arc<StreamCounters>,
}

/// How a snapshot in the order of keys is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByKey {
    /// The consumer is told the last seqno.
    pub(super) tells_seqno: bool,
}

/// Where a stream reads.
pub(super) enum Source {
    /// What a backfill hands over, while the log keeps what follows.
    Backfill(Arc<Feed>, CursorId),
    /// Its place in the log.
    Log(CursorId),
    /// It has lost that, or never had one: history is missing in the log.
    Lost,
    /// It has ended.
    Nowhere,
}

/// What looking for more has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Something may wait to be sent; there may be more.
    Something,
    /// Nothing: somebody will say when there is.
    Nothing,
    /// The log does not have it: a file has to be read.
    NeedsBackfill(CursorId),
}

/// A look at the vBucket.
enum Look {
    Read(LogRange),
    Nothing,
    Lost,
}

impl Stream {
    pub(super) fn envelope(&self, has_collections: bool) -> Envelope {
        let StreamKey { vbid, stream_id } = self.key;
        Envelope { opaque: self.opaque, vbid, stream_id, has_collections }
    }

    /// Looks for more to send.
    pub(super) fn look(&mut self, bucket: &Bucket, backfills: &Backfills) -> Found {
        match &self.source {
            Source::Log(cursor) => self.look_in_log(bucket, *cursor),
            Source::Backfill(feed, _) => self.take_fed(bucket, feed.take(), backfills),
            Source::Lost => self.reopen(bucket),
            Source::Nowhere => Found::Nothing,
        }
    }

    /// A backfill begins: it is to hand over what follows what was sent.
    pub(super) fn begin_backfill(&mut self, feed: Option<Arc<Feed>>, cursor: CursorId) {
        match feed {
            Some(feed) => {
                self.source = Source::Backfill(feed, cursor);
                set(&self.counters.backfill_remaining, UNKNOWN);
                self.show_state(StreamState::Backfilling);
            }
            None => self.finish(EndReason::BackfillFailed),
        }
    }

    fn take_fed(&mut self, bucket: &Bucket, fed: Fed, backfills: &Backfills) -> Found {
        let Fed { facts, items, end } = fed;
        if facts.is_none() && items.is_empty() && end.is_none() {
            return Found::Nothing;
        }
        if let Some(facts) = facts {
            if self.misses_tombstones(facts.purge) {
                // Asked for anew, it is told to roll back.
                self.finish(EndReason::RolledBack);
            }
            match self.by_key {
                Some(_) => self.snapshots.begin_by_key(facts, &mut self.queue),
                None => self.snapshots.begin_disk(facts, &mut self.queue),
            }
            set(&self.counters.end, self.snapshots.end().0);
            self.follow_from(bucket, facts.high);
            self.backfill_remaining = facts.item_count;
        }
        let item_count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        self.backfill_remaining = match end {
            None => self.backfill_remaining.saturating_sub(item_count),
            Some(_) => 0,
        };
        set(&self.counters.backfill_remaining, self.backfill_remaining);
        let read: u64 = items.iter().map(size_of_item).sum();
        let before = self.queue.len();
        match self.by_key {
            Some(_) => self.snapshots.add_items_by_key(items, &mut self.queue),
            None => self.snapshots.add_disk_items(items, &mut self.queue),
        }
        let kept: u64 = self.queue.range(before..).map(size_of_disk_item).sum();
        self.backfill_bytes += kept;
        // What is not for the consumer makes room at once: nobody is going to send it.
        backfills.sent(read - kept);
        set(&self.counters.last_read, self.snapshots.read_through().0);
        match end {
            None => {}
            Some(true) => {
                match self.by_key.take() {
                    Some(by_key) => {
                        self.snapshots.end_by_key(by_key.tells_seqno, &mut self.queue);
                    }
                    None => self.snapshots.end_disk(&mut self.queue),
                }
                if let Source::Backfill(_, cursor) = self.source {
                    self.source = Source::Log(cursor);
                    self.show_state(StreamState::InMemory);
                }
            }
            Some(false) => self.finish(EndReason::BackfillFailed),
        }
        Found::Something
    }

    /// Whether tombstones behind what was handed over were purged, up to `purge`, since the stream
    /// began: a file does not have them any more, and its consumer keeps what they have deleted.
    fn misses_tombstones(&self, purge: Seqno) -> bool {
        let has = self.snapshots.read_through();
        has > Seqno(0) && purge > has && purge > self.known_purge
    }

    /// What comes up to `seqno` comes from a file: the log need not keep it for this stream.
    fn follow_from(&mut self, bucket: &Bucket, seqno: Seqno) {
        let (name, tenure) = (&self.cursor_name, self.tenure);
        let after = seqno.max(self.snapshots.read_through());
        let opened = bucket.on_vbucket(self.key.vbid, |vbucket, _, effects| {
            let registration = vbucket.open_stream(name, after, tenure).ok()?;
            if registration.needs_backfill {
                // The place was lost meanwhile. The stream finds that out behind the backfill.
                vbucket.close_stream(registration.id, effects);
            }
            Some(registration.id)
        });
        if let (Source::Backfill(_, cursor), Some(Some(id))) = (&mut self.source, opened) {
            *cursor = id;
        }
    }

    fn look_in_log(&mut self, bucket: &Bucket, cursor: CursorId) -> Found {
        let vbid = self.key.vbid;
        let look = bucket.on_vbucket(vbid, |vbucket, _, _| {
            if !vbucket.has_stream(cursor) {
                return Look::Lost;
            }
            vbucket.read_stream(cursor).map_or(Look::Nothing, Look::Read)
        });
        match look {
            None => {
                self.finish(EndReason::StateChanged);
                Found::Something
            }
            Some(Look::Nothing) => Found::Nothing,
            Some(Look::Lost) => {
                self.source = Source::Lost;
                self.reopen(bucket)
            }
            Some(Look::Read(range)) => {
                self.take_range(bucket, range);
                Found::Something
            }
        }
    }

    fn take_range(&mut self, bucket: &Bucket, mut range: LogRange) {
        range.limit(ReadLimit {
            items_max: READ_ITEMS_MAX,
            item_bytes_max: READ_BYTES_MAX,
            cuts_disk_snapshots: true,
        });
        let through = range.last_seqno();
        let mut item_count = 0;
        for section in range.sections() {
            item_count += section.items.len();
            self.snapshots.add_section(section, through, &mut self.queue);
        }
        // Only here is the vBucket's lock taken again: the log is looked at without it.
        bucket.on_vbucket(self.key.vbid, |vbucket, _, effects| {
            vbucket.finish_stream_read(&range, item_count, effects);
        });
        set(&self.counters.last_read, self.snapshots.read_through().0);
    }

    /// Takes a place in the log again, where the stream has got to.
    fn reopen(&mut self, bucket: &Bucket) -> Found {
        let (name, tenure) = (&self.cursor_name, self.tenure);
        let after = self.snapshots.read_through();
        let opened = bucket
            .on_vbucket(self.key.vbid, |vbucket, _, _| vbucket.open_stream(name, after, tenure));
        let Some(Ok(registration)) = opened else {
            // The vBucket has gone back behind what was sent.
            self.finish(EndReason::StateChanged);
            return Found::Something;
        };
        self.source = Source::Log(registration.id);
        if registration.needs_backfill {
            return Found::NeedsBackfill(registration.id);
        }
        Found::Something
    }

    /// Everything there is has been sent. Returns whether there may be more to send all the same.
    pub(super) fn idle(&mut self) -> bool {
        let Some(takeover) = &mut self.takeover else { return false };
        let idle = takeover.idle();
        let waits = takeover.waits();
        self.show_state(if waits { StreamState::TakeoverWait } else { StreamState::TakeoverSend });
        match idle {
            Idle::Wait => return false,
            Idle::Tell(state) => self.queue.push_back(Outgoing::VbucketState(state)),
            Idle::Look => {}
            Idle::GiveUp => self.finish(EndReason::StateChanged),
        }
        true
    }

    /// Whether those who write to its vBucket are to be held up from now on.
    pub(super) fn becomes_late(&mut self, now: Instant) -> bool {
        let reads_file = matches!(self.source, Source::Backfill(..));
        let is_over = self.snapshots.is_over();
        let takeover = self.takeover.as_mut().filter(|_| !reads_file && !is_over);
        takeover.is_some_and(|takeover| takeover.becomes_late(now))
    }

    /// Ends it: what waits is not sent any more.
    pub(super) fn end_now(&mut self, reason: EndReason, backfills: &Backfills) {
        // If the end waits in the queue already, that stays: `finish` adds no second one.
        if !self.snapshots.is_over() {
            self.queue.clear();
            backfills.sent(std::mem::take(&mut self.backfill_bytes));
        }
        self.finish(reason);
    }

    /// Ends it behind what waits.
    pub(super) fn finish(&mut self, reason: EndReason) {
        self.snapshots.finish(reason, &mut self.queue);
    }

    /// Whether it has ended: what waits is sent, and nothing more comes.
    pub(super) fn has_ended(&self) -> bool {
        self.snapshots.is_over()
    }

    /// Whether everything was sent, the end included.
    pub(super) fn is_done(&self) -> bool {
        self.has_ended() && self.queue.is_empty() && self.predecessor.is_none()
    }

    /// Notes that a message has been sent.
    pub(super) fn note_sent(&mut self, outgoing: &Outgoing, backfills: &Backfills) {
        // Items of a backfill come before others from disk: they are what is counted.
        let bytes = size_of_disk_item(outgoing).min(self.backfill_bytes);
        self.backfill_bytes -= bytes;
        backfills.sent(bytes);
        let waiting = u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        set(&self.counters.waiting_messages, waiting);
        let seqno = match outgoing {
            Outgoing::Item(item) => {
                add(&self.counters.memory_items, 1);
                item.seqno()
            }
            Outgoing::DiskItem(item) => {
                add(&self.counters.backfill_items, 1);
                item.seqno()
            }
            Outgoing::SeqnoAdvanced(seqno) => *seqno,
            Outgoing::Marker(_) => {
                if let Some(takeover) = &mut self.takeover {
                    takeover.marker_sent();
                }
                return;
            }
            _ => return,
        };
        self.last_sent = self.last_sent.max(seqno);
        set(&self.counters.last_sent, self.last_sent.0);
    }

    pub(super) fn show_state(&self, state: StreamState) {
        set(&self.counters.state, state as u64);
    }

    /// Gives its place in the log back. What waits in its queue is still to be sent, and counts for
    /// what the connection has read ahead until then.
    pub(super) fn let_go(&mut self, bucket: &Bucket, backfills: &Backfills) {
        // However the takeover has ended, writers are not to wait for it any longer.
        if self.takeover.as_ref().is_some_and(Takeover::is_late) {
            bucket.on_vbucket(self.key.vbid, |vbucket, _, _| vbucket.set_takeover_late(false));
        }
        let cursor = match std::mem::replace(&mut self.source, Source::Nowhere) {
            Source::Log(cursor) => cursor,
            Source::Backfill(feed, cursor) => {
                backfills.sent(feed.cancel().iter().map(size_of_item).sum());
                cursor
            }
            Source::Lost | Source::Nowhere => return,
        };
        bucket.on_vbucket(self.key.vbid, |vbucket, _, effects| {
            vbucket.close_stream(cursor, effects);
        });
        self.show_state(StreamState::Dead);
    }

    /// What waits in its queue, and in that of the one before it, is not sent any more.
    pub(super) fn forget(&mut self, backfills: &Backfills) {
        backfills.sent(std::mem::take(&mut self.backfill_bytes));
        if let Some(mut predecessor) = self.predecessor.take() {
            predecessor.forget(backfills);
        }
    }
}

fn size_of_disk_item(outgoing: &Outgoing) -> u64 {
    if let Outgoing::DiskItem(item) = outgoing { size_of_item(item) } else { 0 }
}
