//! The three trees of each state.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use document::Map;

use super::findings::{Findings, Scope};
use super::subtree::{Subtree, fingerprint};
use super::tally::{self, Tally};
use crate::couchstore::btree_read::DEPTH_MAX;
use crate::couchstore::chunk::{CHUNK_HEAD_SIZE, ChunkSource, raw_size};
use crate::couchstore::node::{INNER, LEAF, NodeItem, NodeItems, Pointer, Totals, TreeKind};
use crate::couchstore::scratch;
use crate::couchstore::{BODY_IS_SNAPPY, CouchFile, DocumentInfo, FileHeader};
use crate::error::StorageError;

/// Differences between the two trees that are named, at most.
const DIFFERENCES_MAX: usize = 10;

/// Bytes that are read at once for a node of unknown size.
const NODE_READ_SIZE: u64 = 2048;

/// What was read of a file so far.
pub(super) struct Trees {
    /// Nodes by kind of tree and position; `None` for damaged ones.
    nodes: Map<(u8, u64), Option<Arc<Subtree>>>,
    /// Bodies by position: the seqno of their document, and the size of their chunk.
    bodies: Map<u64, (u64, u32)>,
    /// Beginning and end of each chunk and header.
    ranges: Vec<(u64, u64)>,
    checked_bytes: u64,
    stored: Vec<u8>,
    decoder: snap::raw::Decoder,
}

/// One tree of one state.
struct Walk<'a> {
    trees: &'a mut Trees,
    source: ChunkSource<'a>,
    kind: TreeKind,
    /// Only for the newest state.
    tally: Option<&'a mut Tally>,
    findings: &'a mut Findings,
}

impl Trees {
    pub(super) fn new() -> Self {
        Self {
            nodes: Map::default(),
            bodies: Map::default(),
            ranges: Vec::new(),
            checked_bytes: 0,
            stored: Vec::new(),
            decoder: snap::raw::Decoder::new(),
        }
    }

    /// Checks one state; says whether the trees of documents could be read whole.
    pub(super) fn check(
        &mut self,
        file: &CouchFile,
        header: &FileHeader,
        mut tally: Option<&mut Tally>,
        findings: &mut Findings,
    ) -> Result<bool, StorageError> {
        let header_size = (header.encode().len() as u64).saturating_add(9);
        self.ranges.push((header.position, header.position.saturating_add(header_size)));
        let roots = [
            (TreeKind::BySeqno, header.by_seqno),
            (TreeKind::ById, header.by_id),
            (TreeKind::Local, header.local),
        ];
        let mut found = Vec::with_capacity(roots.len());
        for (kind, root) in roots {
            let source = file.source(header);
            let tally = tally.as_deref_mut();
            let mut walk = Walk { trees: self, source, kind, tally, findings };
            found.push(match &root {
                Some(root) => walk.root(root)?,
                None => Some(Arc::default()),
            });
        }
        let [Some(by_seqno), Some(by_id), _] = found.as_slice() else { return Ok(false) };
        if by_seqno.high_seqno > header.high_seqno {
            findings.damage(header.position, "a document is newer than its header");
        }
        if by_seqno.body_position_max >= header.position && header.by_seqno.is_some() {
            findings.damage(header.position, "a body lies behind its header");
        }
        let same_count = by_seqno.item_count == by_id.item_count;
        if !same_count || by_seqno.fingerprint != by_id.fingerprint {
            name_differences(file, header, findings)?;
        }
        Ok(true)
    }

    /// Checks that no two chunks overlap; tells how many bytes were read and are whole.
    pub(super) fn finish(mut self, findings: &mut Findings) -> u64 {
        self.ranges.sort_unstable();
        let next = self.ranges.iter().skip(1);
        for ((begin, end), (next, _)) in self.ranges.iter().zip(next) {
            if end > next {
                let what = format!("a chunk that reaches into the one at {next}");
                findings.problem(Scope::CurrentState, *begin, what);
            }
        }
        self.checked_bytes
    }

    /// Takes note of a chunk of `size` bytes, head included.
    fn note_chunk(&mut self, position: u64, size: u64) {
        let raw = raw_size(position, size);
        self.ranges.push((position, position.saturating_add(raw)));
        self.checked_bytes = self.checked_bytes.saturating_add(raw);
    }
}

impl Walk<'_> {
    fn root(&mut self, pointer: &Pointer) -> Result<Option<Arc<Subtree>>, StorageError> {
        let subtree = self.subtree(pointer, self.source.end, 0)?;
        if let Some(what) = subtree.as_ref().and_then(|subtree| subtree.contradiction(pointer)) {
            self.findings.damage(self.source.end, what);
        }
        Ok(subtree)
    }

    /// Checks a subtree, or remembers what was found when it was checked. `None` if any of it is
    /// damaged; the damage is among the findings.
    fn subtree(
        &mut self,
        pointer: &Pointer,
        before: u64,
        depth: usize,
    ) -> Result<Option<Arc<Subtree>>, StorageError> {
        let position = pointer.position;
        if position >= before {
            self.findings.damage(position, "a pointer that does not lead backwards");
            return Ok(None);
        }
        if depth >= DEPTH_MAX {
            self.findings.damage(position, "a tree of too many levels");
            return Ok(None);
        }
        let kind = match self.kind {
            TreeKind::ById => 0,
            TreeKind::BySeqno => 1,
            TreeKind::Local => 2,
        };
        if let Some(known) = self.trees.nodes.get(&(kind, position)) {
            return Ok(known.clone());
        }
        let subtree = match self.read_node(pointer)? {
            Some((node, size)) => self.node(&node, size, position, depth)?.map(Arc::new),
            None => None,
        };
        self.trees.nodes.insert((kind, position), subtree.clone());
        Ok(subtree)
    }

    /// The node's type and items, and the size of its chunk.
    fn read_node(&mut self, pointer: &Pointer) -> Result<Option<(Vec<u8>, u64)>, StorageError> {
        let hint = usize::try_from(pointer.subtree_size.min(NODE_READ_SIZE)).unwrap_or(0);
        let trees = &mut *self.trees;
        let read = self.source.read(pointer.position, hint, &mut trees.stored);
        let Some(stored) = ok_or_damage(read, self.findings)? else { return Ok(None) };
        let size = stored.len().saturating_add(CHUNK_HEAD_SIZE) as u64;
        let mut node = Vec::new();
        let result = scratch::decompress(&mut trees.decoder, stored, &mut node);
        self.trees.note_chunk(pointer.position, size);
        match result {
            Ok(()) => Ok(Some((node, size))),
            Err(what) => {
                self.findings.damage(pointer.position, what);
                Ok(None)
            }
        }
    }

    /// Checks a node and what lies below it.
    fn node(
        &mut self,
        node: &[u8],
        size: u64,
        position: u64,
        depth: usize,
    ) -> Result<Option<Subtree>, StorageError> {
        let is_leaf = match node.first() {
            Some(&LEAF) => true,
            Some(&INNER) => false,
            _ => {
                self.findings.damage(position, "a node of unknown type");
                return Ok(None);
            }
        };
        let mut subtree = Subtree { size, ..Subtree::default() };
        let mut is_whole = true;
        let mut last: Option<&[u8]> = None;
        for item in NodeItems::new(node.get(1..).unwrap_or_default()) {
            let item = match item {
                Ok(item) => item,
                Err(what) => {
                    self.findings.damage(position, what);
                    return Ok(None);
                }
            };
            let first: Box<[u8]>;
            if is_leaf {
                first = item.key.into();
                is_whole &= self.leaf_item(&item, position, &mut subtree)?;
            } else if let Some(child) = self.inner_item(&item, position, depth)? {
                first = child.first_key.clone();
                subtree.add(&child);
            } else {
                is_whole = false;
                first = item.key.into();
            }
            if last.is_some_and(|last| *first <= *last) {
                self.findings.damage(position, "keys do not rise");
                is_whole = false;
            }
            if last.is_none() {
                subtree.first_key = first;
            }
            last = Some(item.key);
        }
        let Some(last) = last else {
            self.findings.damage(position, "an empty node");
            return Ok(None);
        };
        subtree.last_key = last.into();
        Ok(is_whole.then_some(subtree))
    }

    fn inner_item(
        &mut self,
        item: &NodeItem<'_>,
        position: u64,
        depth: usize,
    ) -> Result<Option<Arc<Subtree>>, StorageError> {
        let Some(pointer) = Pointer::decode(item.value, self.kind) else {
            self.findings.damage(position, "a malformed pointer");
            return Ok(None);
        };
        let child = self.subtree(&pointer, position, depth.saturating_add(1))?;
        let Some(subtree) = &child else { return Ok(None) };
        if let Some(what) = subtree.contradiction(&pointer) {
            self.findings.damage(position, what);
        }
        if *subtree.last_key != *item.key {
            self.findings.damage(position, "the last key of a subtree is not what its parent says");
        }
        Ok(child)
    }

    /// Checks an item of a leaf; says whether it is whole.
    fn leaf_item(
        &mut self,
        item: &NodeItem<'_>,
        position: u64,
        subtree: &mut Subtree,
    ) -> Result<bool, StorageError> {
        subtree.item_count = subtree.item_count.saturating_add(1);
        subtree.totals.add(Totals::of_item(self.kind, item.value));
        let info = match self.kind {
            TreeKind::ById => DocumentInfo::from_by_id(item.key, item.value),
            TreeKind::BySeqno => DocumentInfo::from_by_seqno(item.key, item.value),
            TreeKind::Local => {
                tally::check_local(item.key, item.value, position, self.findings);
                if let Some(tally) = &mut self.tally {
                    tally.note_local(item.key, item.value);
                }
                return Ok(true);
            }
        };
        let Some(info) = info else {
            self.findings.damage(position, "a malformed entry of a document");
            return Ok(false);
        };
        subtree.add_document(&info);
        if self.kind == TreeKind::BySeqno {
            self.body(&info, position)?;
        } else {
            tally::check_document(&info, position, self.findings);
            if let Some(tally) = &mut self.tally {
                tally.note_document(&info);
            }
        }
        Ok(true)
    }

    /// Checks what the by-seqno tree says about a body, and the body.
    fn body(&mut self, info: &DocumentInfo<'_>, position: u64) -> Result<(), StorageError> {
        let seqno = info.seqno;
        if seqno == 0 {
            self.findings.damage(position, "a document of seqno 0");
        }
        if info.body_position == 0 {
            if info.body_size != 0 || !info.deleted {
                let what = format!("seqno {seqno}: a document without a body, but not a tombstone");
                self.findings.damage(position, what);
            }
            return Ok(());
        }
        let entry = (seqno, info.body_size);
        if let Some(known) = self.trees.bodies.insert(info.body_position, entry) {
            if known != entry {
                let what = format!("seqnos {seqno} and {} share a body", known.0);
                self.findings.damage(info.body_position, what);
            }
            return Ok(());
        }
        let size = usize::try_from(info.body_size).unwrap_or(usize::MAX);
        let trees = &mut *self.trees;
        let read = self.source.read(info.body_position, size, &mut trees.stored);
        let Some(stored) = ok_or_damage(read, self.findings)? else { return Ok(()) };
        let is_of_size = stored.len().saturating_add(CHUNK_HEAD_SIZE) == size;
        let inflates = info.content_meta & BODY_IS_SNAPPY == 0 || {
            let mut body = Vec::new();
            scratch::decompress(&mut trees.decoder, stored, &mut body).is_ok()
        };
        let chunk_size = stored.len().saturating_add(CHUNK_HEAD_SIZE) as u64;
        trees.note_chunk(info.body_position, chunk_size);
        if !is_of_size {
            let what = format!("seqno {seqno}: a body of another size");
            self.findings.damage(info.body_position, what);
        }
        if !inflates {
            let what = format!("seqno {seqno}: a body that does not decompress");
            self.findings.damage(info.body_position, what);
        }
        Ok(())
    }
}

/// Damage becomes a finding and `None`.
fn ok_or_damage<T>(
    result: Result<T, StorageError>,
    findings: &mut Findings,
) -> Result<Option<T>, StorageError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(StorageError::Corrupt { position, what, .. }) => {
            findings.damage(position, what);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Names documents that are not the same in both trees.
fn name_differences(
    file: &CouchFile,
    header: &FileHeader,
    findings: &mut Findings,
) -> Result<(), StorageError> {
    let mut left: BTreeMap<u64, u128> = BTreeMap::new();
    let mut differing = Vec::new();
    let mut reader = file.reader(header);
    let by_seqno = reader.scan_by_seqno(0, |info, _| {
        left.insert(info.seqno, fingerprint(info));
        Ok(ControlFlow::Continue(()))
    });
    let by_id = reader.scan_by_id(&[], |info, _| {
        if left.remove(&info.seqno) != Some(fingerprint(info)) {
            differing.push(info.seqno);
        }
        Ok(ControlFlow::Continue(()))
    });
    for result in [by_seqno, by_id] {
        let _flow = ok_or_damage(result, findings)?;
    }
    differing.extend(left.keys());
    differing.sort_unstable();
    differing.dedup();
    for seqno in differing.iter().take(DIFFERENCES_MAX) {
        let what = format!("seqno {seqno}: the two trees of documents differ");
        findings.damage(header.position, what);
    }
    let more = differing.len().saturating_sub(DIFFERENCES_MAX);
    if more > 0 || differing.is_empty() {
        let what = format!("the two trees of documents differ in {more} more documents");
        findings.damage(header.position, what);
    }
    Ok(())
}
