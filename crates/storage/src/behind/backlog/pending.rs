//! What waits for the file of one vBucket.

use document::{Item, Operation, Seqno, Set, Vbid};
use platform::Instant;

use crate::journal::Lsn;
use crate::records::vbucket_record::VbucketRecord;

/// A vBucket with so many items that wait is looked at, and again whenever there are twice as many
/// as the last look left. Older versions are searched for if half of the items are held by nobody
/// else any more: what memory still has is no older version, and a search compares keys.
const SEARCHED_ITEMS_MIN: usize = 64;

/// What waits for the file of one vBucket.
pub(crate) struct Pending {
    pub(crate) vbid: Vbid,
    /// The oldest and the newest group that hold it.
    pub(super) oldest: Lsn,
    pub(crate) newest: Lsn,
    pub(super) since: Instant,
    /// The last seqno before it.
    pub(crate) previous_seqno: Seqno,
    /// Whether the file that there is goes first.
    pub(crate) deletes: bool,
    /// Seqnos rise; a key may be there more than once.
    pub(crate) items: Vec<Item>,
    /// The state as of the last of the items; `None` when nothing follows a deletion.
    pub(crate) state: Option<VbucketRecord>,
    pub(crate) bytes: u64,
    /// What it takes of the journal; `None` unless all of it was written again, in one group.
    pub(super) carried_bytes: Option<u64>,
    /// The vBucket is looked at for older versions at this many items.
    pub(super) search_at: usize,
}

impl Pending {
    pub(super) fn new(vbid: Vbid, lsn: Lsn, since: Instant) -> Self {
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
            carried_bytes: None,
            search_at: SEARCHED_ITEMS_MIN,
        }
    }

    /// Adds what came after it.
    pub(super) fn append(&mut self, newer: Self) {
        assert!(newer.oldest >= self.newest, "groups follow each other");
        assert!(!newer.deletes, "a deletion leaves nothing to append to");
        self.newest = newer.newest;
        self.carried_bytes = None;
        self.state = newer.state.or(self.state.take());
        self.bytes += newer.bytes;
        self.items.extend(newer.items);
    }

    /// The last seqno of it.
    pub(crate) fn high_seqno(&self) -> Seqno {
        self.items.last().map_or(self.previous_seqno, Item::seqno)
    }

    /// Whether so much has come since the last look that another one is worth it.
    pub(super) fn is_worth_look(&self) -> bool {
        self.items.len() >= self.search_at
    }

    /// Looks at it: takes out what the file need not have if that is much.
    pub(super) fn trim(&mut self) -> Vec<Item> {
        let is_elsewhere = |item: &&Item| item.is_shared_beyond_its_write();
        let held_elsewhere = self.items.iter().filter(is_elsewhere).count();
        let is_much = held_elsewhere * 2 <= self.items.len();
        let superfluous = if is_much { self.take_superfluous() } else { Vec::new() };
        self.search_at = SEARCHED_ITEMS_MIN.max(self.items.len() * 2);
        superfluous
    }

    /// Takes the items out, to be trimmed apart. Others may be appended meanwhile.
    pub(super) fn take_apart(&mut self) -> Self {
        let mut part = Self::new(self.vbid, self.oldest, self.since);
        part.items = std::mem::take(&mut self.items);
        part.bytes = std::mem::take(&mut self.bytes);
        part.state.clone_from(&self.state);
        part
    }

    /// The end of [`Pending::take_apart`]: what is left of `part` goes in front.
    pub(super) fn put_in_front(&mut self, part: Self) {
        let newer = std::mem::replace(&mut self.items, part.items);
        self.items.extend(newer);
        self.bytes += part.bytes;
        self.search_at = part.search_at;
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

/// What items take in memory.
pub(crate) fn bytes_of(items: &[Item]) -> u64 {
    let bytes: usize = items.iter().map(Item::allocation_size).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
