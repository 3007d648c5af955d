//! A state of a file copied into a new one, without what is not wanted any more.
//!
//! One walk by seqno copies the bodies, as they are stored, and builds the by-seqno tree; of each
//! document that is kept, seqno and new position are remembered, 16 bytes. One walk by id then
//! builds the by-id tree. Nothing is sorted and nothing is spooled.
//!
//! A body that is damaged may be copied as it is: then the new file has the damage, too, and is
//! without what nobody wants any more.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::ops::ControlFlow;

use crate::couchstore::btree_build::TreeBuilder;
use crate::couchstore::btree_write::TreeWriter;
use crate::couchstore::checksum::Checksum;
use crate::couchstore::chunk::{ChunkSource, ChunkWriter};
use crate::couchstore::document_info::DocumentInfo;
use crate::couchstore::file::{BodyReader, CouchFile};
use crate::couchstore::header::{FileHeader, VERSION};
use crate::couchstore::node::TreeKind;
use crate::couchstore::scratch::Scratch;
use crate::error::StorageError;

/// Where a new file's data begin. Position 0 means that there is no body.
const START: u64 = 1;

/// What becomes of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Drop,
    /// Nothing more is to be copied.
    Stop,
}

/// What is known of the documents that were kept.
#[derive(Default)]
struct Kept {
    /// Seqno and position of the body in the new file, in the order of seqnos.
    positions: Vec<(u64, u64)>,
    /// A sum over ids and seqnos: both trees have to come to the same.
    fingerprint: u64,
}

/// A copy in the making.
struct Copy<'a> {
    from: &'a CouchFile,
    header: &'a FileHeader,
    /// What stands for the new file where nodes are written; nothing is read back.
    source: ChunkSource<'a>,
    scratch: Scratch,
    output: ChunkWriter<'a>,
    kept: Kept,
}

/// Says what becomes of a document.
pub(crate) type Judge<'j> =
    dyn FnMut(&DocumentInfo<'_>, &mut BodyReader<'_>) -> Result<Verdict, StorageError> + 'j;

/// Hears of a body that is not what was written, and of its place in the copy. `Ok` has it copied
/// as it is, an error ends the copy.
pub(crate) type OnDamage<'j> =
    dyn FnMut(&DocumentInfo<'_>, u64, StorageError) -> Result<(), StorageError> + 'j;

/// Copies the documents of `header`, a state of `source`, for which `judge` says so, into `target`,
/// which is empty. Gives the state so far: without local documents, and with a header that is not
/// in the file. `None` when `judge` has stopped it.
pub(crate) fn copy(
    source: &CouchFile,
    header: &FileHeader,
    target: &CouchFile,
    buffer: &mut Vec<u8>,
    judge: &mut Judge<'_>,
    on_damage: &mut OnDamage<'_>,
) -> Result<Option<FileHeader>, StorageError> {
    let mut state = FileHeader {
        high_seqno: header.high_seqno,
        purge_seqno: header.purge_seqno,
        timestamp: header.timestamp,
        ..FileHeader::empty()
    };
    let mut copy = Copy {
        from: source,
        header,
        source: target.source(&state),
        scratch: Scratch::new(),
        output: ChunkWriter::new(target.file(), state.checksum(), START, buffer),
        kept: Kept::default(),
    };
    let Some(by_seqno) = copy.copy_by_seqno(judge, on_damage)? else { return Ok(None) };
    state.by_seqno = by_seqno.finish(&mut copy.writer(TreeKind::BySeqno))?;
    let by_id = copy.build_by_id()?;
    state.by_id = by_id.finish(&mut copy.writer(TreeKind::ById))?;
    copy.output.flush()?;
    state.position = copy.output.position();
    Ok(Some(state))
}

impl Kept {
    fn note(&mut self, info: &DocumentInfo<'_>, body_position: u64) {
        self.positions.push((info.seqno, body_position));
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint_of(info));
    }

    fn position_of(&self, seqno: u64) -> Option<u64> {
        let index = self.positions.binary_search_by_key(&seqno, |kept| kept.0).ok()?;
        self.positions.get(index).map(|kept| kept.1)
    }
}

impl<'a> Copy<'a> {
    /// Copies bodies, and remembers where they are now. `None` when `judge` stops it.
    fn copy_by_seqno(
        &mut self,
        judge: &mut Judge<'_>,
        on_damage: &mut OnDamage<'_>,
    ) -> Result<Option<TreeBuilder>, StorageError> {
        let (from, header) = (self.from, self.header);
        let mut tree = TreeBuilder::new(TreeKind::BySeqno);
        let flow = from.reader(header).scan_by_seqno(0, |info, bodies| {
            if info.seqno > header.high_seqno {
                return Err(self.corrupt("a document is newer than its header"));
            }
            match judge(info, bodies)? {
                Verdict::Stop => return Ok(ControlFlow::Break(())),
                Verdict::Drop => return Ok(ControlFlow::Continue(())),
                Verdict::Keep => {}
            }
            if !info.deleted && info.body_position == 0 {
                return Err(self.corrupt("a document that is alive without a body"));
            }
            let body_position = self.copy_body(info, bodies, on_damage)?;
            self.kept.note(info, body_position);
            let moved = DocumentInfo { body_position, ..*info };
            let mut writer = self.writer(TreeKind::BySeqno);
            let seqno = info.seqno.to_be_bytes();
            tree.push(&mut writer, seqno_key(&seqno), |value| moved.encode_by_seqno(value))?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(flow.is_continue().then_some(tree))
    }

    /// Gives the body's position in the new file. A body that cannot be asked for now, because the
    /// device fails, is no damaged one: to copy it as such would lose it.
    fn copy_body(
        &mut self,
        info: &DocumentInfo<'_>,
        bodies: &mut BodyReader<'_>,
        on_damage: &mut OnDamage<'_>,
    ) -> Result<u64, StorageError> {
        match bodies.stored(info) {
            Ok(Some(body)) => Ok(self.output.append(body)?.0),
            Ok(None) => Ok(0),
            Err(damage @ StorageError::Corrupt { .. }) => {
                on_damage(info, self.output.position(), damage)?;
                self.output.append_damaged(&bodies.damaged_chunk(info)?)
            }
            Err(other) => Err(other),
        }
    }

    /// Builds the tree by id over the documents that were kept.
    fn build_by_id(&mut self) -> Result<TreeBuilder, StorageError> {
        let (from, header) = (self.from, self.header);
        let mut tree = TreeBuilder::new(TreeKind::ById);
        let mut fingerprint = 0_u64;
        let flow = from.reader(header).scan_by_id(&[], |info, _| {
            if let Some(body_position) = self.kept.position_of(info.seqno) {
                fingerprint = fingerprint.wrapping_add(fingerprint_of(info));
                let moved = DocumentInfo { body_position, ..*info };
                let mut writer = self.writer(TreeKind::ById);
                tree.push(&mut writer, info.id, |value| moved.encode_by_id(value))?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        assert!(flow.is_continue(), "nothing breaks this walk");
        let kept_count = u64::try_from(self.kept.positions.len()).unwrap_or(u64::MAX);
        if tree.count() != kept_count || fingerprint != self.kept.fingerprint {
            return Err(self.corrupt("the trees hold different documents"));
        }
        Ok(tree)
    }

    fn writer(&mut self, kind: TreeKind) -> TreeWriter<'_, 'a> {
        let (scratch, output) = (&mut self.scratch, &mut self.output);
        TreeWriter { source: self.source, kind, scratch, output }
    }

    fn corrupt(&self, what: &'static str) -> StorageError {
        StorageError::corrupt(self.from.path(), self.header.position, what)
    }
}

/// The low six bytes of a seqno, big-endian.
fn seqno_key(bytes: &[u8; 8]) -> &[u8] {
    bytes.get(2..).unwrap_or_default()
}

fn fingerprint_of(info: &DocumentInfo<'_>) -> u64 {
    let id = Checksum::of_version(VERSION).of(info.id);
    let mixed = (info.seqno ^ (u64::from(id) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}
