//! One sub-table of a hash table: a few dozen items in no order, in a chain of nodes.
//!
//! Of the nodes all but the first are full. A search compares 16 bits of the hashes of all items,
//! which stand in the handles of these, and meets a wrong item once in 65 536 of them. Nothing is
//! rehashed when the chain grows, and a removed item leaves no mark that later searches must pass.
//! Arrays that grow would leave holes with the allocator of all sizes that they have had: 6 bytes a
//! document. Nodes have one size, so that what one sub-table frees is the next one's.

use document::{Item, Key};

use super::ItemAction;
use super::node::{Chain, Nodes, nodes_of};

/// Nodes whose items a split asks at once.
const NODES_ASKED: usize = 8;

/// Items whose hashes share their lower bits.
#[derive(Debug, Default)]
pub(super) struct SubTable {
    head: Chain,
}

/// Where an item is, until the next addition or removal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The node, counted from the first.
    node: u32,
    item: u32,
}

/// What a walk has met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visited {
    pub(super) item_count: usize,
    pub(super) removed_count: usize,
}

impl SubTable {
    /// The place of `key`, whose hash is `hash`.
    #[inline]
    pub(super) fn find(&self, hash: u64, key: Key<'_>) -> Option<Slot> {
        let tag = tag_of(hash);
        (0..)
            .zip(nodes_of(&self.head))
            .find_map(|(node, items)| Some(Slot { node, item: items.find(tag, key)? as u32 }))
    }

    /// An item that has this hash, as far as can be told without touching it.
    #[inline]
    pub(super) fn similar(&self, hash: u64) -> Option<&Item> {
        let tag = tag_of(hash);
        nodes_of(&self.head).find_map(|items| items.similar(tag))
    }

    /// The item at a place that [`SubTable::find`] has found.
    pub(super) fn item(&self, slot: Slot) -> &Item {
        let node = nodes_of(&self.head).nth(slot.node as usize);
        let item = node.and_then(|node| node.items[slot.item as usize].as_ref());
        item.expect("a place that was found has an item")
    }

    /// Puts `item` in the place of the one that has the same key.
    pub(super) fn replace(&mut self, slot: Slot, item: Item) -> Item {
        let place = self.place(slot).as_mut().expect("a place that was found has an item");
        replace_item(place, item)
    }

    /// Adds an item whose key is not here.
    pub(super) fn add(&mut self, hash: u64, mut item: Item, nodes: &mut Nodes) {
        item.set_tag(tag_of(hash));
        self.push(item, nodes);
    }

    /// Takes the item out of a place. The last one of the first node takes it.
    pub(super) fn remove(&mut self, slot: Slot, nodes: &mut Nodes) -> Item {
        let head = self.head.as_mut().expect("a place that was found has a node");
        let last = head.items.iter_mut().rev().find_map(Option::take);
        let last = last.expect("every node has items");
        let is_empty = head.items[0].is_none();
        let removed = match self.place(slot) {
            Some(item) => std::mem::replace(item, last),
            None => last,
        };
        if is_empty {
            self.head = self.head.take().and_then(|head| nodes.free(*head));
        }
        removed
    }

    /// Moves the items of which `belongs` says so to a table of their own.
    pub(super) fn split_off(&mut self, belongs: impl Fn(&Item) -> bool, nodes: &mut Nodes) -> Self {
        let mut other = Self::default();
        let mut rest = self.head.take();
        while rest.is_some() {
            // Asks for many items before it decides on one: whether an item belongs cannot be
            // guessed, and a processor that guesses wrong waits for one cache miss after another.
            let mut asked = [0; NODES_ASKED];
            for (bits, node) in asked.iter_mut().zip(nodes_of(&rest)) {
                *bits = node.ask(&belongs);
            }
            for bits in asked {
                let Some(mut node) = rest.take() else { break };
                for (at, place) in node.items.iter_mut().enumerate() {
                    let Some(item) = place.take() else { break };
                    let is_others = (bits >> at) & 1 == 1;
                    if is_others { &mut other } else { &mut *self }.push(item, nodes);
                }
                rest = nodes.free(*node);
            }
        }
        other
    }

    /// Takes over all items of `other`.
    pub(super) fn merge(&mut self, other: Self, nodes: &mut Nodes) {
        self.take_over(other.head, nodes);
    }

    /// Does to each item what `act` says; what leaves the table goes to `removed`.
    pub(super) fn visit(
        &mut self,
        act: &mut impl FnMut(&Item) -> ItemAction,
        removed: &mut Vec<Item>,
        nodes: &mut Nodes,
    ) -> Visited {
        let mut visited = Visited::default();
        let mut rest = self.head.as_deref_mut();
        while let Some(node) = rest {
            for place in &mut node.items {
                let Some(item) = place else { break };
                visited.item_count += 1;
                match act(item) {
                    ItemAction::Keep => {}
                    ItemAction::Replace(other) => {
                        assert!(other.key() == item.key(), "a replacement has the key");
                        removed.push(replace_item(item, other));
                    }
                    ItemAction::Remove => {
                        visited.removed_count += 1;
                        removed.extend(place.take());
                    }
                }
            }
            rest = node.next.as_deref_mut();
        }
        if visited.removed_count > 0 {
            let with_gaps = self.head.take();
            self.take_over(with_gaps, nodes);
        }
        visited
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        nodes_of(&self.head).flat_map(|node| node.items.iter().flatten())
    }

    fn place(&mut self, slot: Slot) -> &mut Option<Item> {
        let mut node = self.head.as_deref_mut();
        for _ in 0..slot.node {
            node = node.and_then(|node| node.next.as_deref_mut());
        }
        let node = node.expect("a place that was found has a node");
        &mut node.items[slot.item as usize]
    }

    /// Adds an item that has its tag.
    fn push(&mut self, item: Item, nodes: &mut Nodes) {
        let head = self.head.as_deref_mut();
        match head.and_then(|head| head.items.iter_mut().find(|place| place.is_none())) {
            Some(place) => *place = Some(item),
            None => self.head = Some(nodes.make(item, self.head.take())),
        }
    }

    /// Takes over the items of nodes, which may have gaps.
    fn take_over(&mut self, mut rest: Chain, nodes: &mut Nodes) {
        while let Some(mut node) = rest {
            for item in node.items.iter_mut().filter_map(Option::take) {
                self.push(item, nodes);
            }
            rest = nodes.free(*node);
        }
    }
}

/// Puts an item in the place of one with the same key, whose hash it has therefore.
fn replace_item(place: &mut Item, mut item: Item) -> Item {
    item.set_tag(place.tag());
    std::mem::replace(place, item)
}

/// The bits of the hash by which tables are not told apart.
fn tag_of(hash: u64) -> u16 {
    u16::try_from(hash >> 48).expect("sixteen bits are left")
}
