//! Streams that read this vBucket: where they may begin, what they read, and when they are told
//! that there is more.

use document::{Item, Seqno};

use super::Vbucket;
use crate::checkpoint::{CursorId, LogRange, Registration, Tenure};
use crate::effect::Effect;
use crate::failover_table::StreamStart;

impl Vbucket {
    /// The seqno that the consumer of a stream has to go back to before that can begin; `None` when
    /// it can.
    pub fn rollback_point(&self, request: &StreamStart) -> Option<Seqno> {
        self.failover_table.rollback_point(request, self.high_seqno(), self.stream_purge_seqno())
    }

    /// What a stream from here brings may lack tombstones up to here: of the snapshot that comes to
    /// a replica, those behind its highest seqno, too.
    pub fn stream_purge_seqno(&self) -> Seqno {
        self.purge_seqno.max(self.received_purge_seqno)
    }

    /// Registers a stream that has everything up to `after`, in place of one of the same name. The
    /// log keeps what it needs, as long as `tenure` says. Fails with the highest seqno if that is
    /// lower.
    pub fn open_stream(
        &mut self,
        name: &str,
        after: Seqno,
        tenure: Tenure,
    ) -> Result<Registration, Seqno> {
        let registration = self.checkpoints.register(name, after, tenure);
        self.failover_table.note_followed();
        self.settle_account();
        registration
    }

    /// Has the log keep what comes from now on, however short memory is, for somebody who reads it
    /// soon as streams do, and gives it back by [`Vbucket::close_stream`].
    pub fn hold_log(&mut self, name: &str) -> Option<CursorId> {
        let held = self.checkpoints.register(name, self.high_seqno(), Tenure::Always);
        self.settle_account();
        held.ok().map(|registration| registration.id)
    }

    /// Whether the stream still has its place in the log.
    pub fn has_stream(&self, cursor: CursorId) -> bool {
        self.checkpoints.has_cursor(cursor)
    }

    /// What a stream reads next; it confirms that by [`Vbucket::finish_stream_read`]. The next
    /// growth of the log behind what is read is told.
    pub fn read_stream(&mut self, cursor: CursorId) -> Option<LogRange> {
        let range = self.checkpoints.begin_read(cursor);
        self.streams_wait = true;
        self.settle_account();
        range
    }

    /// The stream has taken over the `item_count` items of `range`.
    pub fn finish_stream_read(
        &mut self,
        range: &LogRange,
        item_count: usize,
        effects: &mut Vec<Effect>,
    ) {
        let detached = self.checkpoints.finish_read(range, item_count);
        self.destroy(detached, effects);
        self.settle_account();
    }

    /// A stream ends. Nothing happens if it has lost its place already.
    pub fn close_stream(&mut self, cursor: CursorId, effects: &mut Vec<Effect>) {
        let detached = self.checkpoints.remove_cursor(cursor);
        self.destroy(detached, effects);
        self.settle_account();
    }

    /// Durable writes that have not ended, in no order: few, as each has a client that waits.
    pub fn prepared_items(&self) -> Vec<Item> {
        self.prepares.iter().cloned().collect()
    }

    /// The log has grown: streams hear of it, once until one of them looks.
    pub(super) fn notify_streams(&mut self, effects: &mut Vec<Effect>) {
        if self.streams_wait {
            self.streams_wait = false;
            effects.push(Effect::NotifyStreams);
        }
    }
}

#[cfg(test)]
mod tests {
    use document::{ItemBuilder, ItemMeta, KeyBuf, VbUuid, Vbid, VbucketState};

    use super::*;
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::{Now, StoreMode, WriteCondition};

    fn set(vbucket: &mut Vbucket) -> bool {
        let key = KeyBuf::in_default_collection(b"k").unwrap();
        let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), b"v");
        let (condition, now) = (WriteCondition::default(), Now::default());
        let mut effects = Vec::new();
        vbucket.store(StoreMode::Set, builder, condition, now, &mut effects).unwrap();
        effects.iter().any(|effect| matches!(effect, Effect::NotifyStreams))
    }

    #[test]
    fn growth_is_told_once_until_somebody_looks() {
        let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
        let (vbid, uuid) = (Vbid(0), VbUuid(7));
        let mut vbucket = Vbucket::new(vbid, VbucketState::Active, uuid, seed, account);
        assert!(!set(&mut vbucket), "there is no stream");
        let cursor = vbucket.open_stream("stream", Seqno(1), Tenure::WhileMemoryLasts).unwrap().id;
        assert!(vbucket.has_stream(cursor));
        assert!(vbucket.read_stream(cursor).is_none());
        assert!(set(&mut vbucket));
        assert!(!set(&mut vbucket), "nobody has looked");
        let range = vbucket.read_stream(cursor).unwrap();
        assert!(set(&mut vbucket), "it looks again before it waits");
        vbucket.finish_stream_read(&range, range.item_count(), &mut Vec::new());
        assert_eq!(vbucket.read_stream(cursor).unwrap().last_seqno(), Seqno(4));
        vbucket.close_stream(cursor, &mut Vec::new());
        assert!(!vbucket.has_stream(cursor));
    }
}
