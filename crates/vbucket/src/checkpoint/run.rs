//! Items in the order of their seqnos, each in a slot that its seqno finds.

use document::{Item, Seqno, VbucketState};

/// Bytes of one slot.
pub(super) const SLOT_SIZE: usize = size_of::<Option<Item>>();
const _: () = assert!(SLOT_SIZE == 8);

/// Something in the log that is no item and takes no seqno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaItem {
    /// The vBucket takes up another role here.
    VbucketState(VbucketState),
}

/// Slots in the order of their seqnos. As long as seqnos follow each other without a gap, as they
/// do where they are given out, the slot of a seqno is found by subtraction; a replica receives
/// gaps and remembers an offset for each slot.
#[derive(Debug)]
pub(super) struct Run {
    first_seqno: Seqno,
    slots: Vec<Option<Item>>,
    /// What most runs do not have.
    rare: Option<Box<Rare>>,
}

#[derive(Debug, Default)]
struct Rare {
    /// For each slot its seqno, less the first. Empty while that is the number of the slot.
    offsets: Vec<u32>,
    /// Meta items and the slot before which each stands.
    metas: Vec<(usize, MetaItem)>,
}

/// Slots that may be reserved for nothing.
const SPARE_SLOTS_MAX: usize = 16;

impl Run {
    /// An empty run that continues at `first_seqno` or later.
    pub(super) fn beginning_at(first_seqno: Seqno) -> Self {
        Self { first_seqno, slots: Vec::new(), rare: None }
    }

    /// Makes room for so many slots in an empty run.
    pub(super) fn reserve(&mut self, slots: usize) {
        assert!(self.slots.is_empty(), "room is made before the first item");
        self.slots.reserve_exact(slots);
    }

    /// Whether the distance of `seqno` from the first one can be remembered.
    pub(super) fn can_hold(&self, seqno: Seqno) -> bool {
        self.slots.is_empty() || u32::try_from(seqno.0 - self.first_seqno.0).is_ok()
    }

    pub(super) fn push(&mut self, item: Item) {
        let seqno = item.seqno();
        if self.slots.is_empty() {
            assert!(seqno >= self.first_seqno, "seqnos rise");
            self.first_seqno = seqno;
        }
        let offset = seqno.0 - self.first_seqno.0;
        let follows = offset == wide(self.slots.len());
        if !follows || !self.offsets().is_empty() {
            self.remember_offset(offset);
        }
        self.slots.push(Some(item));
    }

    pub(super) fn push_meta(&mut self, meta: MetaItem) {
        let slot = self.slots.len();
        self.rare.get_or_insert_default().metas.push((slot, meta));
    }

    fn remember_offset(&mut self, offset: u64) {
        let offsets = &mut self.rare.get_or_insert_default().offsets;
        if offsets.is_empty() {
            let count = u32::try_from(self.slots.len()).expect("a run is short");
            offsets.extend(0..count);
        }
        let offset = u32::try_from(offset).expect("the run was asked whether it can hold it");
        assert!(offsets.last().is_none_or(|&last| last < offset), "seqnos rise");
        offsets.push(offset);
    }

    fn offsets(&self) -> &[u32] {
        self.rare.as_ref().map_or(&[], |rare| &rare.offsets)
    }

    /// The slot of `seqno`, whether or not its item is still there.
    pub(super) fn slot_of(&self, seqno: Seqno) -> Option<usize> {
        let offset = seqno.0.checked_sub(self.first_seqno.0)?;
        if self.offsets().is_empty() {
            return usize::try_from(offset).ok().filter(|&slot| slot < self.slots.len());
        }
        self.offsets().binary_search(&u32::try_from(offset).ok()?).ok()
    }

    /// The first slot of a seqno above `seqno`.
    pub(super) fn slot_after(&self, seqno: Seqno) -> usize {
        let Some(offset) = seqno.0.checked_sub(self.first_seqno.0) else { return 0 };
        if self.offsets().is_empty() {
            return usize::try_from(offset + 1)
                .map_or(self.slots.len(), |n| n.min(self.slots.len()));
        }
        self.offsets().partition_point(|&other| u64::from(other) <= offset)
    }

    /// Empties the slot of `seqno`.
    pub(super) fn take(&mut self, seqno: Seqno) -> Option<Item> {
        let slot = self.slot_of(seqno)?;
        self.slots.get_mut(slot)?.take()
    }

    pub(super) fn slots(&self) -> &[Option<Item>] {
        &self.slots
    }

    pub(super) fn metas(&self) -> &[(usize, MetaItem)] {
        self.rare.as_ref().map_or(&[], |rare| &rare.metas)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.metas().is_empty()
    }

    /// Gives back room that was reserved for more, if it is much.
    pub(super) fn shrink(&mut self) {
        if self.slots.capacity() > self.slots.len() + SPARE_SLOTS_MAX {
            self.slots.shrink_to_fit();
        }
    }

    /// Bytes of the slots and of what finds them.
    pub(super) fn structure_bytes(&self) -> usize {
        let rare = self.rare.as_ref().map_or(0, |rare| {
            size_of::<Rare>()
                + rare.offsets.capacity() * size_of::<u32>()
                + rare.metas.capacity() * size_of::<(usize, MetaItem)>()
        });
        self.slots.capacity() * SLOT_SIZE + rare
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).expect("slots are counted in 64 bits")
}
