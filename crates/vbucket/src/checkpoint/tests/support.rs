//! A log with a hash table that only knows the newest version of each key.

use document::{
    Cas, DurabilityLevel, Item, ItemBuilder, ItemMeta, KeyBuf, Operation, RevSeqno, Seqno,
};

use crate::checkpoint::{
    CheckpointManager, CursorId, LogPersistence, LogRange, Queued, ReadLimit, Tenure,
};

/// The steps of a durable write. Which prepare the latter end is nothing to the log.
pub(super) const PREPARE: Operation = Operation::Prepare(DurabilityLevel::Majority);
pub(super) const COMMIT: Operation = Operation::Commit { prepare: Seqno(1) };
pub(super) const ABORT: Operation = Operation::Abort { prepare: Seqno(1) };

/// Names of keys are small numbers.
pub(super) const KEY_COUNT: usize = 12;

pub(super) struct Bench {
    pub(super) log: CheckpointManager,
    /// By key: the committed and the prepared version.
    pub(super) newest: Vec<[Option<Item>; 2]>,
}

pub(super) fn item(name: usize, seqno: u64, operation: Operation) -> Item {
    let key = KeyBuf::in_default_collection(format!("key{name}").as_bytes()).unwrap();
    ItemBuilder::new(key.as_key(), ItemMeta::default(), b"value").with_operation(operation).finish(
        Cas(seqno),
        Seqno(seqno),
        RevSeqno(1),
    )
}

/// The number in a key's name.
pub(super) fn name_of(item: &Item) -> usize {
    std::str::from_utf8(&item.key().name()[3..]).unwrap().parse().unwrap()
}

pub(super) fn seqnos(range: &LogRange) -> Vec<u64> {
    range.items().iter().map(|item| item.seqno().0).collect()
}

impl Bench {
    pub(super) fn new(high_seqno: u64, persistence: LogPersistence) -> Self {
        Self {
            log: CheckpointManager::continuing(Seqno(high_seqno), persistence),
            newest: vec![[None, None]; KEY_COUNT],
        }
    }

    pub(super) fn flushed() -> Self {
        Self::new(0, LogPersistence::File)
    }

    /// Queues the next mutation of key `name`.
    pub(super) fn queue(&mut self, name: usize) -> Queued {
        self.queue_as(name, Operation::Mutation)
    }

    pub(super) fn queue_as(&mut self, name: usize, operation: Operation) -> Queued {
        let item = item(name, self.log.high_seqno().0 + 1, operation);
        let newest = &mut self.newest[name][usize::from(operation.is_prepared())];
        let replaced = newest.replace(item.clone());
        self.log.queue(item, replaced.as_ref())
    }

    /// Queues mutations of these keys.
    pub(super) fn queue_all(&mut self, names: &[usize]) {
        for &name in names {
            drop(self.queue(name));
        }
    }

    pub(super) fn persistence(&self) -> CursorId {
        self.log.persistence_cursor().unwrap()
    }

    pub(super) fn stream(&mut self, name: &str, after: u64) -> CursorId {
        self.log.register(name, Seqno(after), Tenure::WhileMemoryLasts).unwrap().id
    }

    /// Reads all that `cursor` has in front of it and confirms it.
    pub(super) fn read(&mut self, cursor: CursorId) -> Vec<u64> {
        self.read_limited(cursor, ReadLimit::NONE).0
    }

    /// Reads, and says whether the limit left something.
    pub(super) fn read_limited(&mut self, cursor: CursorId, limit: ReadLimit) -> (Vec<u64>, bool) {
        let Some(mut range) = self.log.begin_read(cursor) else { return (Vec::new(), false) };
        let has_more = range.limit(limit);
        let seqnos = seqnos(&range);
        drop(self.log.finish_read(&range, seqnos.len()));
        (seqnos, has_more)
    }

    pub(super) fn flush(&mut self) -> Vec<u64> {
        self.read(self.persistence())
    }
}
