//! Changes to a B+tree: one merge of sorted edits into the nodes that they touch.
//!
//! Nodes that no edit touches stay where they are and are pointed to again. Of a touched node the
//! items are merged with the edits, in order, into a fresh node, which is written out in front
//! whenever it grows beyond [`NODE_SIZE_MAX`]; the pointers to what was written climb to the parent
//! in the same way, and new levels grow while more than one pointer is left.

use crate::couchstore::btree_read::DEPTH_MAX;
use crate::couchstore::chunk::{ChunkSource, ChunkWriter};
use crate::couchstore::node::{
    INNER, LEAF, NodeItem, NodeItems, Pointer, Reduction, Totals, TreeKind,
};
use crate::couchstore::scratch::Scratch;
use crate::error::StorageError;

/// Bytes of a node's items (lengths, keys, values) beyond which a part of it is written out.
const NODE_SIZE_MAX: usize = 1279;

/// Bytes of items that such a part has at least: two thirds of the limit.
pub(super) const NODE_PART_SIZE_MIN: usize = NODE_SIZE_MAX * 2 / 3;

/// Nodes of so few items are never divided.
const UNDIVIDED_ITEMS_MAX: usize = 3;

/// Items of an inner node that is written out as a part.
const INNER_PART_ITEMS_MIN: usize = 2;

/// Sorted changes to a tree. Keys rise strictly.
pub(crate) trait Edits {
    /// How many changes there are.
    fn count(&self) -> usize;

    /// The key that one changes.
    fn key(&self, index: usize) -> &[u8];

    /// Appends the new value to `value`; false if the key is to go.
    fn put_value(&self, index: usize, value: &mut Vec<u8>) -> bool;

    /// Hears what the tree held under the key before.
    fn on_old_value(&mut self, index: usize, old: Option<&[u8]>) -> Result<(), &'static str>;
}

/// Changes one tree in one commit.
pub(crate) struct TreeWriter<'a, 'o> {
    pub(crate) source: ChunkSource<'a>,
    pub(crate) kind: TreeKind,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) output: &'a mut ChunkWriter<'o>,
}

/// A node in the making.
struct Builder {
    /// The type byte, then encoded items.
    node: Vec<u8>,
    /// How many items there are.
    count: usize,
    /// Whether the node differs from the one it replaces.
    changed: bool,
}

/// The edits that are still to be merged: `next` and on, up to the current subtree's end.
struct Cursor<'e, E> {
    edits: &'e mut E,
    next: usize,
}

impl TreeWriter<'_, '_> {
    /// Merges all edits into the tree; gives its new root.
    pub(crate) fn apply<E: Edits>(
        &mut self,
        root: Option<Pointer>,
        edits: &mut E,
    ) -> Result<Option<Pointer>, StorageError> {
        let count = edits.count();
        if count == 0 {
            return Ok(root);
        }
        let mut cursor = Cursor { edits, next: 0 };
        let mut pointers = self.scratch.take();
        match root {
            Some(root) => {
                let before = self.source.end;
                self.merge_node(&root, before, 0, &mut cursor, count, &mut pointers)?;
            }
            None => {
                let mut leaf = self.builder(LEAF);
                self.insert_until(&mut leaf, &mut cursor, count, &mut pointers)?;
                self.finish(leaf, &mut pointers)?;
            }
        }
        assert!(cursor.next == count, "every edit has found its place");
        let root = self.grow(pointers)?;
        Ok(root)
    }

    /// Adds levels until one pointer, or none, is left.
    fn grow(&mut self, mut pointers: Vec<u8>) -> Result<Option<Pointer>, StorageError> {
        for _ in 0..DEPTH_MAX {
            let mut items = NodeItems::new(&pointers);
            let Some(first) = items.next() else {
                self.scratch.give(pointers);
                return Ok(None);
            };
            if items.next().is_none() {
                let first = first.expect("pointers in the making are well formed");
                let root = Pointer::decode(first.value, self.kind);
                self.scratch.give(pointers);
                return Ok(Some(root.expect("pointers in the making are well formed")));
            }
            let mut level = self.scratch.take();
            let mut inner = self.builder(INNER);
            inner.changed = true;
            self.push_all(&mut inner, &pointers, &mut level)?;
            self.finish(inner, &mut level)?;
            self.scratch.give(std::mem::replace(&mut pointers, level));
        }
        unreachable!("each level has at most half the pointers of the one below");
    }

    /// Merges the edits up to `end` into the subtree at `pointer`; appends pointers to what
    /// replaces it.
    fn merge_node<E: Edits>(
        &mut self,
        pointer: &Pointer,
        before: u64,
        depth: usize,
        cursor: &mut Cursor<'_, E>,
        end: usize,
        pointers: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        if pointer.position >= before || depth >= DEPTH_MAX {
            return Err(self.corrupt(pointer, "a pointer that does not lead backwards"));
        }
        let node = self.scratch.read_node(&self.source, pointer)?;
        match node.first() {
            Some(&LEAF) => self.merge_leaf(pointer, &node, cursor, end, pointers)?,
            Some(&INNER) if node.len() > 1 => {
                self.merge_inner(pointer, &node, depth, cursor, end, pointers)?;
            }
            _ => return Err(self.corrupt(pointer, "a node of unknown type")),
        }
        self.scratch.give(node);
        Ok(())
    }

    fn merge_leaf<E: Edits>(
        &mut self,
        pointer: &Pointer,
        node: &[u8],
        cursor: &mut Cursor<'_, E>,
        end: usize,
        pointers: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        let mut leaf = self.builder(LEAF);
        for item in NodeItems::new(&node[1..]) {
            let item = item.map_err(|what| self.corrupt(pointer, what))?;
            let less = cursor.less_than(item.key, end);
            self.insert_until(&mut leaf, cursor, less, pointers)?;
            if cursor.next < end && cursor.edits.key(cursor.next) == item.key {
                cursor
                    .edits
                    .on_old_value(cursor.next, Some(item.value))
                    .map_err(|what| self.corrupt(pointer, what))?;
                leaf.push_edit(cursor.edits, cursor.next);
                cursor.next += 1;
            } else {
                leaf.push(&item);
            }
            self.write_part(&mut leaf, pointers)?;
        }
        self.insert_until(&mut leaf, cursor, end, pointers)?;
        self.finish(leaf, pointers)
    }

    fn merge_inner<E: Edits>(
        &mut self,
        pointer: &Pointer,
        node: &[u8],
        depth: usize,
        cursor: &mut Cursor<'_, E>,
        end: usize,
        pointers: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        let mut inner = self.builder(INNER);
        let mut items = NodeItems::new(&node[1..]).peekable();
        while let Some(item) = items.next() {
            let item = item.map_err(|what| self.corrupt(pointer, what))?;
            // What lies behind the last key goes into the last child.
            let below = if items.peek().is_none() { end } else { cursor.not_above(item.key, end) };
            if below == cursor.next {
                inner.push(&item);
                self.write_part(&mut inner, pointers)?;
                continue;
            }
            let child = Pointer::decode(item.value, self.kind)
                .ok_or_else(|| self.corrupt(pointer, "a malformed pointer"))?;
            let mut replacement = self.scratch.take();
            let before = pointer.position;
            self.merge_node(&child, before, depth + 1, cursor, below, &mut replacement)?;
            inner.changed = true;
            self.push_all(&mut inner, &replacement, pointers)?;
            self.scratch.give(replacement);
        }
        self.finish(inner, pointers)
    }

    /// Merges the edits up to `end`, none of which is in the tree.
    fn insert_until<E: Edits>(
        &mut self,
        leaf: &mut Builder,
        cursor: &mut Cursor<'_, E>,
        end: usize,
        pointers: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        while cursor.next < end {
            cursor
                .edits
                .on_old_value(cursor.next, None)
                .map_err(|what| StorageError::corrupt(self.source.path, self.source.end, what))?;
            leaf.push_edit(cursor.edits, cursor.next);
            cursor.next += 1;
            self.write_part(leaf, pointers)?;
        }
        Ok(())
    }

    /// Pushes encoded inner items.
    fn push_all(
        &mut self,
        inner: &mut Builder,
        items: &[u8],
        pointers: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        for item in NodeItems::new(items) {
            inner.push(&item.expect("pointers in the making are well formed"));
            self.write_part(inner, pointers)?;
        }
        Ok(())
    }

    fn builder(&mut self, kind: u8) -> Builder {
        let mut node = self.scratch.take();
        node.push(kind);
        Builder { node, count: 0, changed: false }
    }

    /// Writes the first items of a node out if it has grown beyond its limit.
    fn write_part(
        &mut self,
        builder: &mut Builder,
        pointers: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        let size = builder.node.len() - 1;
        if !builder.changed || builder.count <= UNDIVIDED_ITEMS_MAX || size <= NODE_SIZE_MAX {
            return Ok(());
        }
        let items_min = if builder.node[0] == INNER { INNER_PART_ITEMS_MIN } else { 1 };
        let (mut end, mut count) = (1, 0);
        for item in NodeItems::new(&builder.node[1..]) {
            let item = item.expect("nodes in the making are well formed");
            end += item.encoded.len();
            count += 1;
            if end > NODE_PART_SIZE_MIN && count >= items_min {
                break;
            }
        }
        self.write(&builder.node[..end], pointers)?;
        builder.node.drain(1..end);
        builder.count -= count;
        Ok(())
    }

    /// Writes out what is left of a node.
    fn finish(&mut self, builder: Builder, pointers: &mut Vec<u8>) -> Result<(), StorageError> {
        if builder.count > 0 {
            self.write(&builder.node, pointers)?;
        }
        self.scratch.give(builder.node);
        Ok(())
    }

    /// Writes a node and appends the pointer to it.
    pub(super) fn write(
        &mut self,
        node: &[u8],
        pointers: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        let (position, size) = self.output.append(self.scratch.compress(node))?;
        let is_leaf = node[0] == LEAF;
        let mut totals = Totals::default();
        let mut subtree_size = size;
        let mut last_key = &node[..0];
        for item in NodeItems::new(&node[1..]) {
            let item = item.expect("nodes in the making are well formed");
            if is_leaf {
                totals.add(Totals::of_item(self.kind, item.value));
            } else {
                let child = Pointer::decode(item.value, self.kind).ok_or_else(|| {
                    StorageError::corrupt(self.source.path, position, "a malformed pointer")
                })?;
                totals.add(child.reduction.totals());
                subtree_size = subtree_size.saturating_add(child.subtree_size);
            }
            last_key = item.key;
        }
        let subtree_size = subtree_size.min(crate::couchstore::bytes::U48_MAX);
        let reduction = Reduction::new(self.kind, totals);
        Pointer { position, subtree_size, reduction }.encode_item(last_key, pointers);
        Ok(())
    }

    fn corrupt(&self, pointer: &Pointer, what: &'static str) -> StorageError {
        self.source.corrupt(pointer.position, what)
    }
}

impl Builder {
    fn push(&mut self, item: &NodeItem<'_>) {
        self.node.extend_from_slice(item.encoded);
        self.count += 1;
    }

    /// Encodes an edit's item in place: the lengths are filled in when the value is known.
    fn push_edit<E: Edits>(&mut self, edits: &E, index: usize) {
        self.changed = true;
        let start = self.node.len();
        let key = edits.key(index);
        super::bytes::put_length_pair(&mut self.node, key.len(), 0);
        self.node.extend_from_slice(key);
        let value_start = self.node.len();
        if !edits.put_value(index, &mut self.node) {
            self.node.truncate(start);
            return;
        }
        let value_size = self.node.len() - value_start;
        let key_size = value_start - start - super::node::ITEM_HEAD_SIZE;
        let end = self.node.len();
        super::bytes::put_length_pair(&mut self.node, key_size, value_size);
        self.node.copy_within(end.., start);
        self.node.truncate(end);
        self.count += 1;
    }
}

impl<E: Edits> Cursor<'_, E> {
    /// The first edit from `next` on whose key is `key` or above.
    fn less_than(&self, key: &[u8], end: usize) -> usize {
        let mut index = self.next;
        while index < end && self.edits.key(index) < key {
            index += 1;
        }
        index
    }

    /// The first edit from `next` on whose key is above `key`.
    fn not_above(&self, key: &[u8], end: usize) -> usize {
        let mut index = self.next;
        while index < end && self.edits.key(index) <= key {
            index += 1;
        }
        index
    }
}
