//! One stream: reads its vBucket and hands over what its consumer is to get.

use std::collections::VecDeque;
use std::sync::Arc;

use bucket::Bucket;
use document::{Seqno, Vbid, VbucketState};
use protocol::dcp::{EndReason, Envelope, StreamFlags};
use vbucket::checkpoint::{CursorId, LogRange, ReadLimit};

use super::snapshots::{Outgoing, Snapshots};
use super::status::{StreamCounters, StreamState, add, set};

/// Names a stream of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamKey {
    pub(crate) vbid: Vbid,
    pub(crate) stream_id: Option<u16>,
}

/// Items that are taken from the log at a time, approximately.
const READ_ITEMS_MAX: usize = 1024;
/// Bytes of them.
const READ_BYTES_MAX: usize = 1 << 20;

/// One stream.
pub(super) struct Stream {
    pub(super) key: StreamKey,
    pub(super) opaque: u32,
    pub(super) flags: StreamFlags,
    /// What its cursors are called.
    pub(super) cursor_name: String,
    /// The vBucket's role when it began.
    pub(super) role: VbucketState,
    pub(super) source: Source,
    pub(super) snapshots: Snapshots,
    pub(super) queue: VecDeque<Outgoing>,
    /// The last seqno of a message with an item that was sent.
    pub(super) last_sent: Seqno,
    pub(super) counters: Arc<StreamCounters>,
}

/// Where a stream reads.
pub(super) enum Source {
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
    NeedsBackfill,
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
    pub(super) fn look(&mut self, bucket: &Bucket) -> Found {
        match self.source {
            Source::Log(cursor) => self.look_in_log(bucket, cursor),
            Source::Lost => self.reopen(bucket),
            Source::Nowhere => Found::Nothing,
        }
    }

    fn look_in_log(&mut self, bucket: &Bucket, cursor: CursorId) -> Found {
        let vbid = self.key.vbid;
        let look = bucket.act_on_vbucket(vbid, |vbucket, _, _| {
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
        bucket.act_on_vbucket(self.key.vbid, |vbucket, _, effects| {
            vbucket.finish_stream_read(&range, item_count, effects);
        });
        set(&self.counters.last_read, self.snapshots.read_through().0);
    }

    /// Takes a place in the log again, where the stream has got to.
    fn reopen(&mut self, bucket: &Bucket) -> Found {
        let (name, after) = (&self.cursor_name, self.snapshots.read_through());
        let opened =
            bucket.act_on_vbucket(self.key.vbid, |vbucket, _, _| vbucket.open_stream(name, after));
        let Some(Ok(registration)) = opened else {
            // The vBucket has gone back behind what was sent.
            self.finish(EndReason::StateChanged);
            return Found::Something;
        };
        self.source = Source::Log(registration.id);
        if registration.needs_backfill { Found::NeedsBackfill } else { Found::Something }
    }

    /// Ends it: what waits is not sent any more.
    pub(super) fn end_now(&mut self, reason: EndReason) {
        if !self.snapshots.is_over() {
            self.queue.clear();
        }
        self.finish(reason);
    }

    /// Ends it behind what waits.
    pub(super) fn finish(&mut self, reason: EndReason) {
        self.snapshots.finish(reason, &mut self.queue);
    }

    /// Whether everything was sent, the end included.
    pub(super) fn is_done(&self) -> bool {
        self.snapshots.is_over() && self.queue.is_empty()
    }

    /// Notes that a message has been sent.
    pub(super) fn note_sent(&mut self, outgoing: &Outgoing) {
        let (item, counter) = match outgoing {
            Outgoing::Item(item) => (item, &self.counters.memory_items),
            Outgoing::DiskItem(item) => (item, &self.counters.backfill_items),
            _ => return,
        };
        add(counter, 1);
        self.last_sent = self.last_sent.max(item.seqno());
        set(&self.counters.last_sent, self.last_sent.0);
    }

    pub(super) fn show_state(&self, state: StreamState) {
        set(&self.counters.state, state as u64);
    }

    /// Gives its place in the log back.
    pub(super) fn let_go(&mut self, bucket: &Bucket) {
        if let Source::Log(cursor) = std::mem::replace(&mut self.source, Source::Nowhere) {
            bucket.act_on_vbucket(self.key.vbid, |vbucket, _, effects| {
                vbucket.close_stream(cursor, effects);
            });
        }
        self.show_state(StreamState::Dead);
    }
}
