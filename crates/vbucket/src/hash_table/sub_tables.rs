//! Linear hashing: sub-tables that split and merge one at a time.
//!
//! With `2^n <= count < 2^(n+1)` sub-tables, the lower `n` bits of a hash are the number of its
//! sub-table; the first `count - 2^n` have been split, and there one more bit decides. Growing
//! splits the next one of those that are not, shrinking merges the last one into the one it came
//! from. So nothing but the count says where a key is, and no operation moves more than the items
//! of one sub-table or two.

use document::{Item, Key};

use super::list::List;
use super::node::Nodes;
use super::sub_table::{Slot, SubTable};
use super::{ItemAction, VisitPosition};

/// Items of a sub-table on average before one is split: right after the number of sub-tables has
/// doubled each holds as many, shortly before that the last ones hold twice as many.
const ITEMS_MEAN_MAX: usize = 32;

/// Items of a sub-table on average that a merge may leave.
const ITEMS_MEAN_MIN: usize = 24;

/// Merges that one removal may cause. One keeps up with removals; more, with room that was
/// reserved and never used.
const MERGES_MAX: usize = 4;

/// Items by the hash of their key.
#[derive(Debug, Default)]
pub(super) struct SubTables {
    tables: List<SubTable>,
    item_count: usize,
    /// Of all sub-tables.
    nodes: Nodes,
}

/// Where an item is, until the next addition or removal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    table: usize,
    slot: Slot,
}

impl SubTables {
    /// The place of `key`, whose hash is `hash`.
    pub(super) fn find(&self, hash: u64, key: Key<'_>) -> Option<Place> {
        if self.tables.is_empty() {
            return None;
        }
        let table = self.table_of(hash);
        let slot = self.tables.get(table).find(hash, key)?;
        Some(Place { table, slot })
    }

    /// An item that has this hash, as far as can be told without touching it.
    pub(super) fn similar(&self, hash: u64) -> Option<&Item> {
        if self.tables.is_empty() {
            return None;
        }
        self.tables.get(self.table_of(hash)).similar(hash)
    }

    pub(super) fn item(&self, place: Place) -> &Item {
        self.tables.get(place.table).item(place.slot)
    }

    /// Puts `item` in the place of the one that has the same key.
    pub(super) fn replace(&mut self, place: Place, item: Item) -> Item {
        self.tables.get_mut(place.table).replace(place.slot, item)
    }

    /// Adds an item whose key is not here. `hash_of` tells the hash of any item.
    pub(super) fn add(&mut self, hash: u64, item: Item, hash_of: impl Fn(&Item) -> u64) {
        if self.tables.is_empty() {
            self.tables.push(SubTable::default());
        }
        let table = self.table_of(hash);
        self.tables.get_mut(table).add(hash, item, &mut self.nodes);
        self.item_count += 1;
        if self.item_count > self.tables.len() * ITEMS_MEAN_MAX {
            self.split(hash_of);
        }
    }

    pub(super) fn remove(&mut self, place: Place) -> Item {
        let item = self.tables.get_mut(place.table).remove(place.slot, &mut self.nodes);
        self.item_count -= 1;
        self.merge_sparse(MERGES_MAX);
        item
    }

    /// Makes the sub-tables for `count` items in all. For tables that are to be filled from a
    /// file: it takes as long as it takes.
    pub(super) fn reserve(&mut self, count: usize, hash_of: impl Fn(&Item) -> u64 + Copy) {
        if self.tables.is_empty() && count > 0 {
            self.tables.push(SubTable::default());
        }
        while self.tables.len() < count.div_ceil(ITEMS_MEAN_MAX) {
            self.split(hash_of);
        }
    }

    /// Does to each item what `act` says, sub-table by sub-table, until that were `slots_max`
    /// items or the end. What leaves the table goes to `removed`. Returns where to go on.
    pub(super) fn visit(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        mut act: impl FnMut(&Item) -> ItemAction,
        removed: &mut Vec<Item>,
    ) -> Option<VisitPosition> {
        let mut next = (!self.tables.is_empty()).then_some(from);
        let mut visited_count = 0;
        while let Some(position) = next
            && visited_count < slots_max.max(1)
        {
            // The order of the walk is that of hashes read backwards: what belongs to a sub-table
            // stands together, before a split of it and after.
            let table = self.table_of(position.0.reverse_bits());
            next = end_of(position, self.depth_of(table));
            let visited = self.tables.get_mut(table).visit(&mut act, removed, &mut self.nodes);
            self.item_count -= visited.removed_count;
            // An empty sub-table takes time, too.
            visited_count += visited.item_count.max(1);
        }
        self.merge_sparse(usize::MAX);
        next
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.tables.iter().flat_map(SubTable::iter)
    }

    pub(super) fn len(&self) -> usize {
        self.item_count
    }

    /// Bytes of everything but the items.
    pub(super) fn bytes(&self) -> usize {
        self.tables.bytes() + self.nodes.bytes()
    }

    /// The number of the sub-table of a hash.
    fn table_of(&self, hash: u64) -> usize {
        let count = u64::try_from(self.tables.len()).expect("sub-tables are counted in 64 bits");
        let mask = count.next_power_of_two() - 1;
        let split = hash & mask;
        let table = if split < count { split } else { hash & (mask >> 1) };
        usize::try_from(table).expect("a number below the count")
    }

    /// How many bits of a hash decide on the sub-table `table`.
    fn depth_of(&self, table: usize) -> u32 {
        let count = self.tables.len();
        let depth = count.ilog2();
        let split_count = count - (1 << depth);
        let is_split = table & ((1 << depth) - 1) < split_count;
        depth + u32::from(is_split)
    }

    /// Splits the first sub-table that is not split yet.
    fn split(&mut self, hash_of: impl Fn(&Item) -> u64) {
        let new = self.tables.len();
        let depth = new.ilog2();
        let belongs = |item: &Item| hash_of(item) & (1 << depth) != 0;
        let table = self.tables.get_mut(new - (1 << depth));
        let other = table.split_off(belongs, &mut self.nodes);
        self.tables.push(other);
    }

    /// Merges up to `merges_max` times while there are too many sub-tables.
    fn merge_sparse(&mut self, merges_max: usize) {
        for _ in 0..merges_max {
            let left_count = self.tables.len().saturating_sub(1);
            if left_count == 0 || self.item_count >= left_count * ITEMS_MEAN_MIN {
                break;
            }
            let last = self.tables.pop().expect("there are two sub-tables");
            let origin = self.tables.get_mut(left_count - (1 << left_count.ilog2()));
            origin.merge(last, &mut self.nodes);
        }
        if self.item_count == 0 && self.tables.len() == 1 {
            *self = Self::default();
        }
    }
}

/// Where the sub-table ends in which a position is, of whose hashes `depth` bits decide. `None`
/// at the end of all.
fn end_of(position: VisitPosition, depth: u32) -> Option<VisitPosition> {
    let size = 1_u64.checked_shl(u64::BITS - depth)?;
    (position.0 & !(size - 1)).checked_add(size).map(VisitPosition)
}

#[cfg(test)]
mod tests;
