//! A B+tree from sorted items, without anything to merge: each level writes its nodes as they
//! fill.

use crate::couchstore::btree_write::{NODE_PART_SIZE_MIN, TreeWriter};
use crate::couchstore::bytes::put_length_pair;
use crate::couchstore::node::{INNER, LEAF, NodeItems, Pointer, TreeKind};
use crate::error::StorageError;

/// A tree in the making. Holds one node a level.
pub(crate) struct TreeBuilder {
    kind: TreeKind,
    /// From the leaves up.
    levels: Vec<Level>,
    /// The value that is being appended.
    value: Vec<u8>,
    count: u64,
}

/// The node of one level that is being filled.
struct Level {
    /// The type byte, then encoded items.
    node: Vec<u8>,
    /// How many items there are.
    count: usize,
}

impl Level {
    fn new(kind: u8) -> Self {
        Self { node: vec![kind], count: 0 }
    }

    /// Whether the node is written before more comes: it has two thirds of a node's size, as the
    /// original's bulk builds have.
    fn is_full(&self) -> bool {
        let is_worth_it = self.node.first() == Some(&LEAF) || self.count > 1;
        self.node.len() > NODE_PART_SIZE_MIN && is_worth_it
    }
}

impl TreeBuilder {
    pub(crate) fn new(kind: TreeKind) -> Self {
        Self { kind, levels: vec![Level::new(LEAF)], value: Vec::new(), count: 0 }
    }

    /// Items so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Appends an item; keys rise strictly. `put_value` appends its value.
    pub(crate) fn push(
        &mut self,
        writer: &mut TreeWriter<'_, '_>,
        key: &[u8],
        put_value: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), StorageError> {
        self.value.clear();
        put_value(&mut self.value);
        let leaf = &mut self.levels[0];
        put_length_pair(&mut leaf.node, key.len(), self.value.len());
        leaf.node.extend_from_slice(key);
        leaf.node.extend_from_slice(&self.value);
        leaf.count += 1;
        self.count += 1;
        let mut level = 0;
        while self.levels[level].is_full() {
            self.write(writer, level)?;
            level += 1;
        }
        Ok(())
    }

    /// Writes what is left and gives the root; `None` for no items.
    pub(crate) fn finish(
        mut self,
        writer: &mut TreeWriter<'_, '_>,
    ) -> Result<Option<Pointer>, StorageError> {
        let mut level = 0;
        loop {
            let is_top = level + 1 == self.levels.len();
            match self.levels[level].count {
                0 if is_top => return Ok(None),
                1 if is_top && level > 0 => return Ok(Some(self.root(level))),
                0 => {}
                _ => self.write(writer, level)?,
            }
            level += 1;
        }
    }

    fn root(&self, level: usize) -> Pointer {
        let malformed = "pointers in the making are well formed";
        let item = NodeItems::new(&self.levels[level].node[1..]).next();
        let item = item.expect("the top level has one item").expect(malformed);
        Pointer::decode(item.value, self.kind).expect(malformed)
    }

    /// Writes the node of a level and puts the pointer to it into the one above.
    fn write(&mut self, writer: &mut TreeWriter<'_, '_>, level: usize) -> Result<(), StorageError> {
        assert!(writer.kind == self.kind, "a builder has a writer of its kind");
        if level + 1 == self.levels.len() {
            self.levels.push(Level::new(INNER));
        }
        let (below, above) = self.levels.split_at_mut(level + 1);
        writer.write(&below[level].node, &mut above[0].node)?;
        above[0].count += 1;
        below[level].node.truncate(1);
        below[level].count = 0;
        Ok(())
    }
}
