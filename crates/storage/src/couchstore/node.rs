//! B+tree nodes: their items, the pointers to them, and the reductions that pointers carry.
//!
//! ```text
//! node (snappy, in a data chunk): type u8 (0 inner, 1 leaf), items
//! item:    5 lengths (12 bits key, 28 bits value), key, value
//! pointer, an inner item's value: 6 position, 6 subtree size, 2 reduction length, reduction
//! ```
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use crate::couchstore::bytes::{
    Fields, U40_MAX, U48_MAX, length_pair, put_length_pair, put_u40, put_u48,
};

/// The type byte of a node with pointers.
pub(crate) const INNER: u8 = 0;

/// The type byte of a node with values.
pub(crate) const LEAF: u8 = 1;

/// Bytes of the lengths in front of an item.
pub(crate) const ITEM_HEAD_SIZE: usize = 5;

/// Bytes of the longest reduction.
const REDUCTION_SIZE_MAX: usize = 16;

/// Which of the three trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeKind {
    ById,
    BySeqno,
    Local,
}

/// What lies below a pointer, as its reduction tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Documents alive; in the by-seqno tree, all.
    pub(crate) alive: u64,
    /// Tombstones (by-id only).
    pub(crate) deleted: u64,
    /// Bytes of body chunks, heads included (by-id only).
    pub(crate) body_bytes: u64,
}

/// An encoded reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    kind: TreeKind,
    totals: Totals,
}

/// A pointer to a node and what is known about the tree below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) position: u64,
    /// Disk bytes of the node and all nodes below it.
    pub(crate) subtree_size: u64,
    pub(crate) reduction: Reduction,
}

impl TreeKind {
    fn reduction_size(self) -> usize {
        match self {
            Self::ById => REDUCTION_SIZE_MAX,
            Self::BySeqno => 5,
            Self::Local => 0,
        }
    }
}

impl Totals {
    /// What one leaf item of a tree adds.
    pub(crate) fn of_item(kind: TreeKind, value: &[u8]) -> Self {
        match kind {
            TreeKind::Local => Self::default(),
            TreeKind::BySeqno => Self { alive: 1, ..Self::default() },
            TreeKind::ById => Self::of_by_id(value).unwrap_or_default(),
        }
    }

    /// By-id values begin with 6 seqno, 4 body size, 6 deleted bit and body position.
    fn of_by_id(value: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(value);
        fields.take(6)?;
        let body_bytes = u64::from(fields.u32()?);
        let deleted = fields.u8()? >> 7;
        Some(Self { alive: u64::from(deleted ^ 1), deleted: u64::from(deleted), body_bytes })
    }

    /// Sums stay within their fields, whatever a damaged file claims.
    pub(crate) fn add(&mut self, other: Self) {
        self.alive = self.alive.saturating_add(other.alive).min(U40_MAX);
        self.deleted = self.deleted.saturating_add(other.deleted).min(U40_MAX);
        self.body_bytes = self.body_bytes.saturating_add(other.body_bytes).min(U48_MAX);
    }
}

impl Reduction {
    pub(crate) fn new(kind: TreeKind, totals: Totals) -> Self {
        Self { kind, totals }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    fn encode(&self, target: &mut Vec<u8>) {
        if self.kind != TreeKind::Local {
            put_u40(target, self.totals.alive);
        }
        if self.kind == TreeKind::ById {
            put_u40(target, self.totals.deleted);
            put_u48(target, self.totals.body_bytes);
        }
    }

    fn decode(bytes: &[u8], kind: TreeKind) -> Option<Self> {
        if bytes.len() != kind.reduction_size() {
            return None;
        }
        let mut fields = Fields::new(bytes);
        let mut totals = Totals::default();
        if kind != TreeKind::Local {
            totals.alive = fields.number::<5>()?;
        }
        if kind == TreeKind::ById {
            totals.deleted = fields.number::<5>()?;
            totals.body_bytes = fields.number::<6>()?;
        }
        Some(Self { kind, totals })
    }
}

impl Pointer {
    /// Reads a root from a header: a pointer without the length of its reduction.
    pub(crate) fn decode_root(bytes: &[u8], kind: TreeKind) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        let position = fields.number::<6>()?;
        let subtree_size = fields.number::<6>()?;
        let reduction = Reduction::decode(fields.rest(), kind)?;
        Some(Self { position, subtree_size, reduction })
    }

    pub(crate) fn encode_root(&self, target: &mut Vec<u8>) {
        put_u48(target, self.position);
        put_u48(target, self.subtree_size);
        self.reduction.encode(target);
    }

    /// Reads an inner item's value.
    pub(crate) fn decode(value: &[u8], kind: TreeKind) -> Option<Self> {
        let mut fields = Fields::new(value);
        let position = fields.number::<6>()?;
        let subtree_size = fields.number::<6>()?;
        let reduction_size = usize::from(fields.u16()?);
        if reduction_size != fields.rest().len() {
            return None;
        }
        let reduction = Reduction::decode(fields.rest(), kind)?;
        Some(Self { position, subtree_size, reduction })
    }

    /// Appends an inner item: the last key below the pointer, and the pointer.
    pub(crate) fn encode_item(&self, last_key: &[u8], target: &mut Vec<u8>) {
        let reduction_size = self.reduction.kind.reduction_size();
        put_length_pair(target, last_key.len(), reduction_size.saturating_add(14));
        target.extend_from_slice(last_key);
        put_u48(target, self.position);
        put_u48(target, self.subtree_size);
        let reduction_size = u16::try_from(reduction_size).expect("a reduction is small");
        target.extend_from_slice(&reduction_size.to_be_bytes());
        self.reduction.encode(target);
    }
}

/// One item of a node.
#[derive(Clone, Copy)]
pub(crate) struct NodeItem<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Lengths, key and value as they stand in the node.
    pub(crate) encoded: &'a [u8],
}

/// The items of a node in order. An item that runs over the end is `Err` and the last.
pub(crate) struct NodeItems<'a>(&'a [u8]);

impl<'a> NodeItems<'a> {
    /// `items` are the bytes behind the node's type.
    pub(crate) fn new(items: &'a [u8]) -> Self {
        Self(items)
    }
}

impl<'a> Iterator for NodeItems<'a> {
    type Item = Result<NodeItem<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let item = split_item(self.0);
        self.0 = match &item {
            Some(item) => self.0.get(item.encoded.len()..).unwrap_or_default(),
            None => &[],
        };
        Some(item.ok_or("an item runs over the end of its node"))
    }
}

fn split_item(bytes: &[u8]) -> Option<NodeItem<'_>> {
    let mut fields = Fields::new(bytes);
    let (key_length, value_length) = length_pair(&mut fields)?;
    let key = fields.take(key_length)?;
    let value = fields.take(value_length)?;
    let size = ITEM_HEAD_SIZE.saturating_add(key_length).saturating_add(value_length);
    Some(NodeItem { key, value, encoded: bytes.get(..size)? })
}
