//! What sub-tables are chains of: nodes of one size, whatever becomes of a table.

use document::{Item, Key};
use platform::allocator::rounded_size;

/// Items of a node. With the next one they are two cache lines, and a size class of the allocator.
pub(super) const NODE_ITEMS: usize = 15;
const _: () = assert!(size_of::<Node>() == 128);

/// Items by their tags, without gaps but at the end.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) items: [Option<Item>; NODE_ITEMS],
    pub(super) next: Chain,
}

/// The first of some nodes.
pub(super) type Chain = Option<Box<Node>>;

/// Makes the nodes of a table, frees them, and knows how many there are.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    count: usize,
}

impl Node {
    /// Where the item with this tag and key is.
    #[inline]
    pub(super) fn find(&self, tag: u16, key: Key<'_>) -> Option<usize> {
        if !self.has(tag) {
            return None;
        }
        let is_it = |item: &Item| item.tag() == tag && item.key() == key;
        self.items.iter().position(|item| item.as_ref().is_some_and(is_it))
    }

    /// An item with this tag.
    #[inline]
    pub(super) fn similar(&self, tag: u16) -> Option<&Item> {
        let found = self.has(tag).then(|| self.items.iter().flatten().find(|it| it.tag() == tag));
        found.flatten()
    }

    #[inline]
    fn has(&self, tag: u16) -> bool {
        // Without a way out in between, so that it becomes a few comparisons of vectors.
        self.items.iter().fold(false, |has_tag, item| has_tag | (tag_in(item) == tag))
    }

    /// Of which items `belongs` says so: a bit for each.
    pub(super) fn ask(&self, belongs: impl Fn(&Item) -> bool) -> u16 {
        let ask = |bits: u16, item: &Option<Item>| {
            (bits << 1) | u16::from(item.as_ref().is_some_and(&belongs))
        };
        self.items.iter().rev().fold(0, ask)
    }
}

/// The tag of an item, or 0.
fn tag_in(item: &Option<Item>) -> u16 {
    item.as_ref().map_or(0, Item::tag)
}

/// All nodes from this one on.
pub(super) fn nodes_of(chain: &Chain) -> impl Iterator<Item = &Node> {
    std::iter::successors(chain.as_deref(), |node| node.next.as_deref())
}

impl Nodes {
    /// A node with one item.
    pub(super) fn make(&mut self, item: Item, next: Chain) -> Box<Node> {
        self.count += 1;
        let mut node = Box::new(Node { next, ..Node::default() });
        node.items[0] = Some(item);
        node
    }

    /// Lets go of a node without items; its successors stay.
    #[inline]
    pub(super) fn free(&mut self, node: Node) -> Chain {
        assert!(node.items.iter().all(Option::is_none), "a node with items stays");
        self.count -= 1;
        node.next
    }

    /// Bytes that all nodes take from the allocator.
    pub(super) fn bytes(&self) -> usize {
        self.count * rounded_size(size_of::<Node>())
    }
}
