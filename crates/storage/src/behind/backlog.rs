//! What is in the journal and not yet in the files.

mod pending;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use document::{Item, Map, Vbid};
use platform::Instant;

use crate::journal::Lsn;
use crate::locks::lock;
use crate::store::flush_batch::FlushBatch;
pub(crate) use pending::{Pending, bytes_of};

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
    /// The newest group that holds anything but what was written again.
    newest: Lsn,
    /// vBuckets that are to be trimmed, as far as that is still worth it then.
    untrimmed: BTreeSet<Vbid>,
    usage: BacklogUsage,
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

/// What a journal has for damaged files, if it keeps all that came behind it in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldBack {
    /// The vBucket that keeps the oldest group.
    pub(crate) vbid: Vbid,
    /// Whether it was not written again yet.
    pub(crate) is_first: bool,
    /// Whether anything follows it that was not written again.
    pub(crate) is_followed: bool,
    /// Bytes of the journal that were taken by what was written again, for all damaged files.
    pub(crate) carried_bytes: u64,
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
    /// Those of damaged files: nobody can write them.
    pub held_bytes: u64,
    /// Since when the oldest of it waits that is not being written and can be.
    pub oldest_since: Option<Instant>,
}

impl Backlog {
    /// Adds a batch that group `lsn` holds. If there is so much by now that the vBucket should be
    /// trimmed, returns how many items that would go through.
    pub(crate) fn push(&self, lsn: Lsn, batch: FlushBatch, now: Instant) -> Option<usize> {
        let mut pending = Pending::new(batch.vbid, lsn, now);
        pending.bytes = bytes_of(&batch.items);
        pending.items = batch.items;
        pending.previous_seqno = batch.previous_seqno;
        pending.state = Some(batch.state);
        let mut inner = lock(&self.0);
        inner.newest = inner.newest.max(lsn);
        inner.add(pending)
    }

    /// Takes out what the file of a vBucket need not have, to be dropped by the caller. Everybody
    /// waits for it, so this is for small ones.
    pub(crate) fn trim(&self, vbid: Vbid) -> Vec<Item> {
        let mut inner = lock(&self.0);
        let Inner { waiting, usage, .. } = &mut *inner;
        let Some(pending) = waiting.get_mut(&vbid).filter(|pending| pending.is_worth_look()) else {
            return Vec::new();
        };
        let superfluous = pending.trim();
        usage.items -= superfluous.len();
        usage.bytes -= bytes_of(&superfluous);
        superfluous
    }

    /// The vBucket is to be trimmed by somebody for whom nobody waits.
    pub(crate) fn trim_later(&self, vbid: Vbid) {
        lock(&self.0).untrimmed.insert(vbid);
    }

    /// A vBucket that is to be trimmed.
    pub(crate) fn next_untrimmed(&self) -> Option<Vbid> {
        lock(&self.0).untrimmed.pop_first()
    }

    /// The same as [`Backlog::trim`], while batches may be pushed. The caller holds the `writer` of
    /// the vBucket: nobody writes its file or removes it meanwhile.
    pub(crate) fn trim_apart(&self, vbid: Vbid) -> Vec<Item> {
        let mut inner = lock(&self.0);
        let Some(pending) = inner.waiting.get_mut(&vbid).filter(|pending| pending.is_worth_look())
        else {
            return Vec::new();
        };
        let mut part = pending.take_apart();
        drop(inner);
        let superfluous = part.trim();
        let superfluous_bytes = bytes_of(&superfluous);
        let mut inner = lock(&self.0);
        let pending = inner.waiting.get_mut(&vbid).expect("nobody writes it while it is trimmed");
        pending.put_in_front(part);
        inner.usage.items -= superfluous.len();
        inner.usage.bytes -= superfluous_bytes;
        superfluous
    }

    /// Nothing of a vBucket is wanted any more, as group `lsn` says. Returns what waited for its
    /// file. The vBucket is not being applied.
    pub(crate) fn delete(&self, lsn: Lsn, vbid: Vbid, now: Instant) -> Option<Pending> {
        let mut inner = lock(&self.0);
        assert!(!inner.applying.contains_key(&vbid), "a file is written or removed");
        inner.held.remove(&vbid);
        let dropped = inner.remove(vbid);
        inner.newest = inner.newest.max(lsn);
        inner.add(Pending { deletes: true, ..Pending::new(vbid, lsn, now) });
        dropped
    }

    /// What waits for the file of a vBucket is replaced by what follows.
    pub(crate) fn forget(&self, vbid: Vbid) -> Option<Pending> {
        lock(&self.0).remove(vbid)
    }

    /// Lets `look` see what waits for the file of a vBucket; `None` if nothing does.
    pub(crate) fn look<R>(&self, vbid: Vbid, look: impl FnOnce(&Pending) -> R) -> Option<R> {
        lock(&self.0).waiting.get(&vbid).map(look)
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

    /// Whether the file of a vBucket is damaged.
    pub(crate) fn is_held(&self, vbid: Vbid) -> bool {
        lock(&self.0).held.contains(&vbid)
    }

    /// What keeps the oldest group, if that is a damaged file. A deletion with nothing behind it is
    /// a record of its own, and is not written again.
    pub(crate) fn held_back(&self) -> Option<HeldBack> {
        let inner = lock(&self.0);
        let (oldest, vbid) = *inner.order.first()?;
        let pending = inner.held_content(vbid).filter(|pending| pending.state.is_some())?;
        let carried = inner.held.iter().filter_map(|vbid| inner.waiting.get(vbid)?.carried_bytes);
        Some(HeldBack {
            vbid,
            is_first: pending.carried_bytes.is_none(),
            is_followed: inner.newest > oldest,
            carried_bytes: carried.sum(),
        })
    }

    /// What waits for a damaged file is in group `lsn` now, whole, and takes so many bytes of the
    /// journal.
    pub(crate) fn carried(&self, lsn: Lsn, carried_bytes: u64, pending: Pending) {
        let vbid = pending.vbid;
        let is_alone = !lock(&self.0).waiting.contains_key(&vbid);
        assert!(is_alone, "nothing is written to a damaged vBucket");
        let carried_bytes = Some(carried_bytes);
        self.put_back(Pending { oldest: lsn, newest: lsn, carried_bytes, ..pending });
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
        let is_waiting = |(_, vbid): &&(Lsn, Vbid)| {
            !inner.applying.contains_key(vbid) && !inner.held.contains(vbid)
        };
        let oldest = inner.order.iter().find(is_waiting);
        let oldest = oldest.and_then(|(_, vbid)| inner.waiting.get(vbid));
        let held = inner.held.iter().filter_map(|vbid| inner.held_content(*vbid));
        BacklogUsage {
            held_bytes: held.map(|pending| pending.bytes).sum(),
            vbuckets: inner.order.len(),
            oldest_since: oldest.map(|pending| pending.since),
            ..inner.usage
        }
    }
}

impl Inner {
    /// Returns the number of its items if the vBucket is worth a look.
    fn add(&mut self, pending: Pending) -> Option<usize> {
        let vbid = pending.vbid;
        self.usage.items += pending.items.len();
        self.usage.bytes += pending.bytes;
        if let Some(waiting) = self.waiting.get_mut(&vbid) {
            waiting.append(pending);
            return waiting.is_worth_look().then_some(waiting.items.len());
        }
        // While the vBucket is being applied, the oldest group of that stands for it.
        if !self.applying.contains_key(&vbid) {
            self.order.insert((pending.oldest, vbid));
        }
        let looked_at = pending.is_worth_look().then_some(pending.items.len());
        self.waiting.insert(vbid, pending);
        looked_at
    }

    /// What waits for a damaged file.
    fn held_content(&self, vbid: Vbid) -> Option<&Pending> {
        self.waiting.get(&vbid).filter(|_| self.held.contains(&vbid))
    }

    fn remove(&mut self, vbid: Vbid) -> Option<Pending> {
        let pending = self.waiting.remove(&vbid)?;
        self.order.remove(&(pending.oldest, vbid));
        self.usage.items -= pending.items.len();
        self.usage.bytes -= pending.bytes;
        Some(pending)
    }
}

#[cfg(test)]
mod tests;
