//! The original's design of 2018, re-created by its description (docs/specification/engine.md,
//! sections 3.1, 3.4, 3.8): a list of checkpoints, each with a list of items and an index of keys;
//! a remover that runs again and again, with and without the regression of freeing under the lock.

use std::collections::{HashMap, LinkedList, VecDeque};
use std::sync::Mutex;

use document::Item;

use crate::log::{Garbage, Log, Mutations, lock};

/// Where removed checkpoints are freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeing {
    /// Under the lock of the queue: the regression.
    UnderTheLock,
    /// After it: the fix.
    AfterTheLock,
}

/// The log under the lock of its queue.
pub struct OriginalLog {
    inner: Mutex<Inner>,
    freeing: Freeing,
}

struct Inner {
    checkpoints: VecDeque<Box<Checkpoint>>,
    /// The number of the first checkpoint that is here, of the first that the flusher has not read,
    /// and of the next.
    first_id: u64,
    cursor_id: u64,
    next_id: u64,
    mutations: Mutations,
}

/// A checkpoint: `[start] item [end]` and where each key is.
struct Checkpoint {
    queue: LinkedList<Entry>,
    index: HashMap<Box<[u8]>, u64>,
}

enum Entry {
    Start,
    Mutation(Item),
    End,
}

impl OriginalLog {
    /// A log that closes its checkpoint after every item.
    pub fn new(freeing: Freeing) -> Self {
        let inner = Inner {
            checkpoints: VecDeque::new(),
            first_id: 1,
            cursor_id: 1,
            next_id: 1,
            mutations: Mutations::default(),
        };
        Self { inner: Mutex::new(inner), freeing }
    }
}

impl Log for OriginalLog {
    fn queue_dirty(&self) {
        let mut inner = lock(&self.inner);
        let item = inner.mutations.next_item();
        if let Some(open) = inner.checkpoints.back_mut() {
            open.queue.push_back(Entry::End);
        }
        let key = Box::from(item.key().encoded());
        let index = HashMap::from([(key, item.seqno().0)]);
        let queue = LinkedList::from([Entry::Start, Entry::Mutation(item)]);
        inner.checkpoints.push_back(Box::new(Checkpoint { queue, index }));
        inner.next_id += 1;
    }

    fn read(&self, checkpoints_max: usize) -> usize {
        let mut inner = lock(&self.inner);
        let first = usize::try_from(inner.cursor_id - inner.first_id).expect("it was a count");
        let mut items: Vec<Item> = Vec::new();
        for checkpoint in inner.checkpoints.iter().skip(first).take(checkpoints_max) {
            let mutations = checkpoint.queue.iter().filter_map(|entry| match entry {
                Entry::Mutation(item) => Some(item.clone()),
                Entry::Start | Entry::End => None,
            });
            items.extend(mutations);
        }
        inner.cursor_id += items.len() as u64;
        drop(inner);
        items.len()
    }

    fn remove(&self) -> (usize, Option<Garbage>) {
        let mut inner = lock(&self.inner);
        // The open checkpoint, the last one, stays.
        let end_id = inner.cursor_id.min(inner.next_id.saturating_sub(1).max(inner.first_id));
        let count = usize::try_from(end_id - inner.first_id).expect("it was a count");
        let removed: Vec<Box<Checkpoint>> = inner.checkpoints.drain(..count).collect();
        inner.first_id = end_id;
        assert!(removed.iter().all(|checkpoint| checkpoint.index.len() == 1), "one key each");
        match self.freeing {
            Freeing::UnderTheLock => {
                drop(removed);
                (count, None)
            }
            Freeing::AfterTheLock => {
                drop(inner);
                (count, Some(Box::new(removed)))
            }
        }
    }

    fn checkpoint_count(&self) -> u64 {
        let inner = lock(&self.inner);
        inner.next_id - inner.first_id
    }
}
