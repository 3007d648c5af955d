//! What the benchmarks need of a log, whatever its design.

use std::any::Any;
use std::sync::Mutex;

use document::{Cas, Item, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno};

/// What has left a log: dropping it frees it.
pub type Garbage = Box<dyn Any + Send>;

/// A log in which every mutation gets a checkpoint of its own, with one reader: the flusher.
/// Callers hold no lock; the log takes its own, as a vBucket does.
pub trait Log: Send + Sync {
    /// Queues the next mutation of the one key.
    fn queue_dirty(&self);

    /// Lets the flusher read about `checkpoints_max` checkpoints and confirm them. Returns how many
    /// items that were.
    fn read(&self, checkpoints_max: usize) -> usize;

    /// Takes the checkpoints that nobody needs out of the log, and does with them what the design
    /// does. Returns how many there were and what is still to be freed.
    fn remove(&self) -> (usize, Option<Garbage>);

    /// How many checkpoints there are.
    fn checkpoint_count(&self) -> u64;
}

/// Makes the mutations of the one key, seqnos rising from 1.
pub struct Mutations {
    key: KeyBuf,
    last_seqno: u64,
}

impl Default for Mutations {
    fn default() -> Self {
        let key = KeyBuf::in_default_collection(b"key").expect("a short name is a key");
        Self { key, last_seqno: 0 }
    }
}

impl Mutations {
    /// The next one.
    pub fn next_item(&mut self) -> Item {
        self.last_seqno += 1;
        ItemBuilder::new(self.key.as_key(), ItemMeta::default(), b"value").finish(
            Cas(self.last_seqno),
            Seqno(self.last_seqno),
            RevSeqno(self.last_seqno),
        )
    }
}

/// A lock of a benchmark: a panic in another thread ends everything anyway.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no thread of a benchmark panics")
}
