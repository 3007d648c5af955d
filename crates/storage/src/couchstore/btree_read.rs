//! Walks through a B+tree: many keys at once, or in order from a key on.
//!
//! A walk ends whatever the bytes are. Nodes are written before what points to them, so a pointer
//! that does not lead backwards is damage; and keys rise strictly across the whole walk, so no
//! node is entered twice.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::ops::ControlFlow;

use crate::couchstore::chunk::ChunkSource;
use crate::couchstore::node::{INNER, LEAF, NodeItems, Pointer, TreeKind};
use crate::couchstore::scratch::Scratch;
use crate::error::StorageError;

/// Levels of a tree. A tree of the smallest legal nodes with 2^40 documents has fewer.
pub(crate) const DEPTH_MAX: usize = 64;

/// Hears of a key that was looked up: its index, and its value if it is there.
type Found<'f> = dyn FnMut(usize, Option<&[u8]>) -> Result<(), StorageError> + 'f;

/// Hears of a leaf item, key and value, and says whether to go on.
type Visit<'f> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StorageError> + 'f;

/// Reads one tree.
pub(crate) struct TreeReader<'a> {
    pub(crate) source: ChunkSource<'a>,
    pub(crate) kind: TreeKind,
    pub(crate) scratch: &'a mut Scratch,
}

/// A place in the tree: the node and what its parents have promised about it.
#[derive(Clone, Copy)]
struct Place<'p> {
    pointer: &'p Pointer,
    /// The node must lie in front of this position.
    before: u64,
    depth: usize,
}

impl TreeReader<'_> {
    /// Looks `keys` up, which rise strictly, in one descent. `found` hears of each key in order:
    /// its index and its value, or `None`.
    pub(crate) fn get(
        &mut self,
        root: Option<&Pointer>,
        keys: &[&[u8]],
        found: &mut Found<'_>,
    ) -> Result<(), StorageError> {
        assert!(keys.is_sorted_by(|left, right| left < right), "keys rise strictly");
        let mut done = 0;
        if let Some(root) = root {
            let place = Place { pointer: root, before: self.source.end, depth: 0 };
            self.get_below(place, keys, &mut done, found)?;
        }
        while done < keys.len() {
            found(done, None)?;
            done = done.saturating_add(1);
        }
        Ok(())
    }

    /// Looks up the keys from `done` on that lie in the subtree; `keys` ends with them.
    fn get_below(
        &mut self,
        place: Place<'_>,
        keys: &[&[u8]],
        done: &mut usize,
        found: &mut Found<'_>,
    ) -> Result<(), StorageError> {
        let (node, is_leaf) = self.read(place)?;
        for item in NodeItems::new(node.get(1..).unwrap_or_default()) {
            let item = item.map_err(|what| self.corrupt(place, what))?;
            // Keys in front of this leaf item are not there.
            while is_leaf && keys.get(*done).is_some_and(|key| *key < item.key) {
                found(*done, None)?;
                *done = done.saturating_add(1);
            }
            let Some(wanted) = keys.get(*done) else { break };
            if is_leaf && *wanted == item.key {
                found(*done, Some(item.value))?;
                *done = done.saturating_add(1);
            } else if !is_leaf && *wanted <= item.key {
                let pointer = self.child(place, item.value)?;
                let below = keys.partition_point(|key| *key <= item.key);
                let keys = keys.get(..below).unwrap_or_default();
                self.get_below(place.child(&pointer), keys, done, found)?;
                while *done < below {
                    found(*done, None)?;
                    *done = done.saturating_add(1);
                }
            }
        }
        self.scratch.give(node);
        Ok(())
    }

    /// Visits the leaf items from `start` on, in order, until `visit` breaks.
    pub(crate) fn scan(
        &mut self,
        root: Option<&Pointer>,
        start: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, StorageError> {
        let Some(root) = root else { return Ok(ControlFlow::Continue(())) };
        let place = Place { pointer: root, before: self.source.end, depth: 0 };
        let mut last = self.scratch.take();
        let flow = self.scan_below(place, start, None, &mut last, visit);
        self.scratch.give(last);
        flow
    }

    /// How many leaf items there are from `start` on, by what pointers say of the nodes behind
    /// them: one node a level is read.
    pub(crate) fn count_from(
        &mut self,
        root: Option<&Pointer>,
        start: &[u8],
    ) -> Result<u64, StorageError> {
        let Some(&root) = root else { return Ok(0) };
        let (mut pointer, mut before, mut depth) = (root, self.source.end, 0_usize);
        let mut count: u64 = 0;
        loop {
            let place = Place { pointer: &pointer, before, depth };
            let (node, is_leaf) = self.read(place)?;
            let mut below = None;
            for item in NodeItems::new(node.get(1..).unwrap_or_default()) {
                let item = item.map_err(|what| self.corrupt(place, what))?;
                if item.key < start {
                    continue;
                }
                if is_leaf {
                    count = count.saturating_add(1);
                    continue;
                }
                let child = self.child(place, item.value)?;
                match below {
                    None => below = Some(child),
                    Some(_) => count = count.saturating_add(child.reduction.totals().alive),
                }
            }
            self.scratch.give(node);
            let Some(child) = below else { return Ok(count) };
            (before, pointer, depth) = (pointer.position, child, depth.saturating_add(1));
        }
    }

    /// `high` is the parent's key for this node; `last` the last key that was passed.
    fn scan_below(
        &mut self,
        place: Place<'_>,
        start: &[u8],
        high: Option<&[u8]>,
        last: &mut Vec<u8>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, StorageError> {
        let (node, is_leaf) = self.read(place)?;
        let mut flow = ControlFlow::Continue(());
        for item in NodeItems::new(node.get(1..).unwrap_or_default()) {
            let item = item.map_err(|what| self.corrupt(place, what))?;
            if item.key <= last.as_slice() {
                return Err(self.corrupt(place, "keys do not rise"));
            }
            if high.is_some_and(|high| item.key > high) {
                return Err(self.corrupt(place, "a key above the one in the parent node"));
            }
            if !is_leaf && item.key >= start {
                let pointer = self.child(place, item.value)?;
                flow =
                    self.scan_below(place.child(&pointer), start, Some(item.key), last, visit)?;
            } else if item.key >= start {
                flow = visit(item.key, item.value)?;
            }
            if flow.is_break() {
                break;
            }
            last.clear();
            last.extend_from_slice(item.key);
        }
        self.scratch.give(node);
        Ok(flow)
    }

    /// Reads the node at a place; says whether it is a leaf.
    fn read(&mut self, place: Place<'_>) -> Result<(Vec<u8>, bool), StorageError> {
        if place.pointer.position >= place.before {
            return Err(self.corrupt(place, "a pointer that does not lead backwards"));
        }
        if place.depth >= DEPTH_MAX {
            return Err(self.corrupt(place, "a tree of too many levels"));
        }
        let node = self.scratch.read_node(&self.source, place.pointer)?;
        match node.first() {
            _ if node.len() <= 1 => Err(self.corrupt(place, "an empty node")),
            Some(&LEAF) => Ok((node, true)),
            Some(&INNER) => Ok((node, false)),
            _ => Err(self.corrupt(place, "a node of unknown type")),
        }
    }

    fn child(&self, place: Place<'_>, value: &[u8]) -> Result<Pointer, StorageError> {
        Pointer::decode(value, self.kind).ok_or_else(|| self.corrupt(place, "a malformed pointer"))
    }

    fn corrupt(&self, place: Place<'_>, what: &'static str) -> StorageError {
        self.source.corrupt(place.pointer.position, what)
    }
}

impl Place<'_> {
    fn child<'p>(&self, pointer: &'p Pointer) -> Place<'p> {
        Place { pointer, before: self.pointer.position, depth: self.depth.saturating_add(1) }
    }
}
