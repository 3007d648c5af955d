//! What is in the journal and not yet in the files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use document::{Item, Map, Operation, Seqno, Set, Vbid};
use platform::Instant;

use crate::flush_batch::FlushBatch;
use crate::journal::Lsn;
use crate::store::lock;
use crate::vbucket_record::VbucketRecord;

/// Older versions are looked for when a vBucket has so many items that wait, and again whenever
/// there are twice as many as the last search left.
const SEARCHED_ITEMS_MIN: usize = 64;

/// What waits for the files of all vBuckets. Of each vBucket it is everything between its file's
/// last commit and the end of the journal, in whole groups.
#[derive(Default)]
pub(crate) struct Backlog(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    waiting: Map<Vbid, Pending>,
    /// vBuckets that are being applied, and the oldest group of that.
    applying: BTreeMap<Vbid, Lsn>,
    /// vBuckets whose files are damaged: only the journal has what waits for them.
    held: BTreeSet<Vbid>,
    /// The oldest group that the file of each vBucket still needs.
    order: BTreeSet<(Lsn, Vbid)>,
    usage: BacklogUsage,
}

/// What waits for the file of one vBucket.
pub(crate) struct Pending {
    pub(crate) vbid: Vbid,
    /// The oldest and the newest group that hold it.
    oldest: Lsn,
    pub(crate) newest: Lsn,
    since: Instant,
    /// The last seqno before it.
    pub(crate) previous_seqno: Seqno,
    /// Whether the file that there is goes first.
    pub(crate) deletes: bool,
    /// Seqnos rise; a key may be there more than once.
    pub(crate) items: Vec<Item>,
    /// The state as of the last of the items; `None` when nothing follows a deletion.
    pub(crate) state: Option<VbucketRecord>,
    bytes: u64,
    /// Older versions are looked for at this many items.
    search_at: usize,
}

/// A vBucket whose file is behind the journal.
#[derive(Clone, Copy, Debug)]
pub struct Unapplied {
    /// Which.
    pub vbid: Vbid,
    /// Items that wait, some of them perhaps older versions of others.
    pub item_count: usize,
    /// Since when the oldest of it waits.
    pub since: Instant,
}

/// How far the files are behind the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BacklogUsage {
    /// vBuckets whose files are behind.
    pub vbuckets: usize,
    /// Items that wait, which stay in memory until then.
    pub items: usize,
    /// Their bytes in memory.
    pub bytes: u64,
    /// Since when the oldest of it waits that is not being written.
    pub oldest_since: Option<Instant>,
}

impl Pending {
    fn new(vbid: Vbid, lsn: Lsn, since: Instant) -> Self {
        Self {
            vbid,
            oldest: lsn,
            newest: lsn,
            since,
            previous_seqno: Seqno(0),
            deletes: false,
            items: Vec::new(),
            state: None,
            bytes: 0,
            search_at: SEARCHED_ITEMS_MIN,
        }
    }

    /// Adds what came after it.
    fn append(&mut self, newer: Self) {
        assert!(newer.oldest >= self.newest, "groups follow each other");
        assert!(!newer.deletes, "a deletion leaves nothing to append to");
        self.newest = newer.newest;
        self.state = newer.state.or(self.state.take());
        self.bytes += newer.bytes;
        self.items.extend(newer.items);
    }

    /// Whether so much has come since the last search that another one is worth it.
    fn is_worth_search(&self) -> bool {
        self.items.len() >= self.search_at
    }

    /// Takes out what the file need not have: what is not the newest version of its key, and
    /// prepares that have ended. The last item stays, so that the file ends where the journal does.
    pub(crate) fn take_superfluous(&mut self) -> Vec<Item> {
        let completed = self.state.as_ref().map_or(Seqno(0), |state| state.completed_seqno);
        let last = self.items.last().map_or(Seqno(0), Item::seqno);
        let has_ended = |item: &Item| {
            matches!(item.operation(), Operation::Prepare(_))
                && item.seqno() <= completed
                && item.seqno() < last
        };
        let mut keys: Set<(bool, &[u8])> = Set::default();
        keys.reserve(self.items.len());
        let is_newest: Vec<bool> = self
            .items
            .iter()
            .rev()
            .map(|item| {
                // What has ended is not looked at closer. An abort before it stays then, which says
                // the same.
                !has_ended(item)
                    && keys.insert((item.operation().is_prepared(), item.key().encoded()))
            })
            .collect();
        drop(keys);
        let mut is_newest = is_newest.into_iter().rev();
        let superfluous: Vec<Item> =
            self.items.extract_if(.., |_| !is_newest.next().unwrap_or(true)).collect();
        self.bytes -= bytes_of(&superfluous);
        superfluous
    }
}

impl Backlog {
    /// Adds a batch that group `lsn` holds. Returns whether there is so much by now that the caller
    /// should have it trimmed, when nobody waits for the caller any more.
    pub(crate) fn push(&self, lsn: Lsn, batch: FlushBatch, now: Instant) -> bool {
        let mut pending = Pending::new(batch.vbid, lsn, now);
        pending.bytes = bytes_of(&batch.items);
        pending.items = batch.items;
        pending.previous_seqno = batch.previous_seqno;
        pending.state = Some(batch.state);
        lock(&self.0).add(pending)
    }

    /// Takes out what the file of a vBucket need not have, to be dropped by the caller.
    pub(crate) fn trim(&self, vbid: Vbid) -> Vec<Item> {
        let mut inner = lock(&self.0);
        let Inner { waiting, usage, .. } = &mut *inner;
        let Some(pending) = waiting.get_mut(&vbid).filter(|pending| pending.is_worth_search())
        else {
            return Vec::new();
        };
        let superfluous = pending.take_superfluous();
        pending.search_at = SEARCHED_ITEMS_MIN.max(pending.items.len() * 2);
        usage.items -= superfluous.len();
        usage.bytes -= bytes_of(&superfluous);
        superfluous
    }

    /// Nothing of a vBucket is wanted any more, as group `lsn` says. Returns what waited for its
    /// file. The vBucket is not being applied.
    pub(crate) fn delete(&self, lsn: Lsn, vbid: Vbid, now: Instant) -> Option<Pending> {
        let mut inner = lock(&self.0);
        assert!(!inner.applying.contains_key(&vbid), "a file is written or removed");
        inner.held.remove(&vbid);
        let dropped = inner.remove(vbid);
        inner.add(Pending { deletes: true, ..Pending::new(vbid, lsn, now) });
        dropped
    }

    /// What waits for the file of a vBucket is replaced by what follows.
    pub(crate) fn forget(&self, vbid: Vbid) -> Option<Pending> {
        lock(&self.0).remove(vbid)
    }

    /// Nothing that waits for the file of a vBucket is wanted any more, nor is the file.
    pub(crate) fn give_up(&self, vbid: Vbid) -> Option<Pending> {
        let mut inner = lock(&self.0);
        inner.held.remove(&vbid);
        inner.remove(vbid)
    }

    /// What waits for the file of a vBucket, to be written to it now. It holds back the journal
    /// until [`Backlog::finish`].
    pub(crate) fn take(&self, vbid: Vbid) -> Option<Pending> {
        let mut inner = lock(&self.0);
        let pending = inner.remove(vbid)?;
        inner.applying.insert(vbid, pending.oldest);
        inner.order.insert((pending.oldest, vbid));
        Some(pending)
    }

    /// What was taken of the vBucket is in its file.
    pub(crate) fn finish(&self, vbid: Vbid) {
        let mut inner = lock(&self.0);
        let Some(oldest) = inner.applying.remove(&vbid) else { return };
        inner.order.remove(&(oldest, vbid));
        if let Some(oldest) = inner.waiting.get(&vbid).map(|pending| pending.oldest) {
            inner.order.insert((oldest, vbid));
        }
    }

    /// The file of a deleted vBucket is gone, and so is the name of it.
    pub(crate) fn finish_deletion(&self, vbid: Vbid) {
        let mut inner = lock(&self.0);
        let is_bare = |pending: &Pending| pending.deletes && pending.state.is_none();
        if inner.waiting.get(&vbid).is_some_and(is_bare) {
            drop(inner.remove(vbid));
        } else if let Some(pending) = inner.waiting.get_mut(&vbid) {
            pending.deletes = false;
        }
    }

    /// What was taken could not be written: it waits again, before what came since.
    pub(crate) fn put_back(&self, pending: Pending) {
        let mut inner = lock(&self.0);
        let vbid = pending.vbid;
        if let Some(oldest) = inner.applying.remove(&vbid) {
            inner.order.remove(&(oldest, vbid));
        }
        let newer = inner.remove(vbid);
        inner.add(pending);
        if let Some(newer) = newer {
            inner.add(newer);
        }
    }

    /// The file of a vBucket is damaged: what waits for it stays in the journal.
    pub(crate) fn hold(&self, vbid: Vbid) {
        lock(&self.0).held.insert(vbid);
    }

    /// The vBucket that keeps the oldest group, if its file is damaged.
    pub(crate) fn oldest_held(&self) -> Option<Vbid> {
        let inner = lock(&self.0);
        inner.order.first().map(|(_, vbid)| *vbid).filter(|vbid| inner.held.contains(vbid))
    }

    /// What waits for a damaged file is in group `lsn` now, whole.
    pub(crate) fn carried(&self, lsn: Lsn, pending: Pending) {
        let (vbid, since) = (pending.vbid, pending.since);
        let is_alone = !lock(&self.0).waiting.contains_key(&vbid);
        assert!(is_alone, "nothing is written to a damaged vBucket");
        self.put_back(Pending { oldest: lsn, newest: lsn, since, ..pending });
    }

    /// The oldest group that a file still needs.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        lock(&self.0).order.first().map(|(lsn, _)| *lsn)
    }

    /// The vBucket that has waited longest of those that `is_due` picks and nobody writes now.
    pub(crate) fn next(&self, is_due: impl Fn(&Unapplied) -> bool) -> Option<Vbid> {
        let inner = lock(&self.0);
        let is_free =
            |vbid: &Vbid| !inner.applying.contains_key(vbid) && !inner.held.contains(vbid);
        let waiting = inner.order.iter().filter(|(_, vbid)| is_free(vbid));
        let unapplied = waiting.filter_map(|(_, vbid)| {
            let pending = inner.waiting.get(vbid)?;
            let (item_count, since) = (pending.items.len(), pending.since);
            Some(Unapplied { vbid: *vbid, item_count, since })
        });
        unapplied.into_iter().find(|unapplied| is_due(unapplied)).map(|unapplied| unapplied.vbid)
    }

    /// All vBuckets whose files are behind.
    pub(crate) fn vbuckets(&self) -> Vec<Vbid> {
        lock(&self.0).order.iter().map(|(_, vbid)| *vbid).collect()
    }

    /// How far the files are behind. What is being written is left out, but for its vBucket.
    pub(crate) fn usage(&self) -> BacklogUsage {
        let inner = lock(&self.0);
        let is_waiting = |(_, vbid): &&(Lsn, Vbid)| !inner.applying.contains_key(vbid);
        let oldest = inner.order.iter().find(is_waiting);
        let oldest = oldest.and_then(|(_, vbid)| inner.waiting.get(vbid));
        BacklogUsage {
            vbuckets: inner.order.len(),
            oldest_since: oldest.map(|pending| pending.since),
            ..inner.usage
        }
    }
}

impl Inner {
    /// Returns whether the vBucket is worth a search.
    fn add(&mut self, pending: Pending) -> bool {
        let vbid = pending.vbid;
        self.usage.items += pending.items.len();
        self.usage.bytes += pending.bytes;
        if let Some(waiting) = self.waiting.get_mut(&vbid) {
            waiting.append(pending);
            return waiting.is_worth_search();
        }
        if !self.applying.contains_key(&vbid) {
            self.order.insert((pending.oldest, vbid));
        }
        let is_worth_search = pending.is_worth_search();
        self.waiting.insert(vbid, pending);
        is_worth_search
    }

    fn remove(&mut self, vbid: Vbid) -> Option<Pending> {
        let pending = self.waiting.remove(&vbid)?;
        self.order.remove(&(pending.oldest, vbid));
        self.usage.items -= pending.items.len();
        self.usage.bytes -= pending.bytes;
        Some(pending)
    }
}

/// What items take in memory.
pub(crate) fn bytes_of(items: &[Item]) -> u64 {
    let bytes: usize = items.iter().map(Item::allocation_size).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
