//! A state of a file copied into a new one, without what is not wanted any more.
//!
//! One walk by seqno copies the bodies, as they are stored, and builds the by-seqno tree; of each
//! document that is kept, seqno and new position are remembered, 16 bytes. One walk by id then
//! builds the by-id tree. Nothing is sorted and nothing is spooled.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::ops::ControlFlow;

use crate::StorageError;
use crate::couchstore::btree_build::TreeBuilder;
use crate::couchstore::btree_write::TreeWriter;
use crate::couchstore::checksum::Checksum;
use crate::couchstore::chunk::{ChunkSource, ChunkWriter};
use crate::couchstore::document_info::DocumentInfo;
use crate::couchstore::file::{BodyReader, CouchFile};
use crate::couchstore::header::{Header, VERSION};
use crate::couchstore::node::TreeKind;
use crate::couchstore::scratch::Scratch;

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

/// What both walks write through.
struct Target<'a> {
    source: ChunkSource<'a>,
    scratch: Scratch,
    output: ChunkWriter<'a>,
}

/// Copies the documents of `header`, a state of `source`, for which `judge` says so, into `target`,
/// which is empty. Gives the state so far: without local documents, and with a header that is not
/// in the file. `None` when `judge` has stopped it.
pub(crate) fn copy(
    source: &CouchFile,
    header: &Header,
    target: &CouchFile,
    buffer: &mut Vec<u8>,
    judge: &mut dyn FnMut(&DocumentInfo<'_>, &mut BodyReader<'_>) -> Result<Verdict, StorageError>,
) -> Result<Option<Header>, StorageError> {
    let mut state = Header {
        high_seqno: header.high_seqno,
        purge_seqno: header.purge_seqno,
        timestamp: header.timestamp,
        ..Header::empty()
    };
    let checksum = Checksum::of_version(VERSION);
    let mut target = Target {
        source: target.source(&state),
        scratch: Scratch::new(),
        output: ChunkWriter::new(target.file(), checksum, START, buffer),
    };
    let mut kept = Kept::default();
    let mut by_seqno = TreeBuilder::new(TreeKind::BySeqno);
    let flow = source.reader(header).scan_by_seqno(0, |info, bodies| {
        if info.seqno > header.high_seqno {
            return Err(corrupt(source, header, "a document is newer than its header"));
        }
        match judge(info, bodies)? {
            Verdict::Stop => return Ok(ControlFlow::Break(())),
            Verdict::Drop => return Ok(ControlFlow::Continue(())),
            Verdict::Keep => {}
        }
        if !info.deleted && info.body_position == 0 {
            return Err(corrupt(source, header, "a document that is alive without a body"));
        }
        let body_position = match bodies.stored(info)? {
            Some(body) => target.output.append(body)?.0,
            None => 0,
        };
        kept.note(info, body_position);
        let moved = DocumentInfo { body_position, ..*info };
        target.push(&mut by_seqno, seqno_key(&info.seqno.to_be_bytes()), |value| {
            moved.encode_by_seqno(value);
        })?;
        Ok(ControlFlow::Continue(()))
    })?;
    if flow.is_break() {
        return Ok(None);
    }
    state.by_seqno = by_seqno.finish(&mut target.writer(TreeKind::BySeqno))?;

    let mut by_id = TreeBuilder::new(TreeKind::ById);
    let mut fingerprint = 0_u64;
    let flow = source.reader(header).scan_by_id(&[], |info, _| {
        let Some(body_position) = kept.position_of(info.seqno) else {
            return Ok(ControlFlow::Continue(()));
        };
        fingerprint = fingerprint.wrapping_add(fingerprint_of(info));
        let moved = DocumentInfo { body_position, ..*info };
        target.push(&mut by_id, info.id, |value| moved.encode_by_id(value))?;
        Ok(ControlFlow::Continue(()))
    })?;
    assert!(flow.is_continue(), "nothing breaks this walk");
    let kept_count = u64::try_from(kept.positions.len()).unwrap_or(u64::MAX);
    if by_id.count() != kept_count || fingerprint != kept.fingerprint {
        return Err(corrupt(source, header, "the trees hold different documents"));
    }
    state.by_id = by_id.finish(&mut target.writer(TreeKind::ById))?;
    target.output.flush()?;
    state.position = target.output.position();
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

impl<'a> Target<'a> {
    fn writer(&mut self, kind: TreeKind) -> TreeWriter<'_, 'a> {
        let (scratch, output) = (&mut self.scratch, &mut self.output);
        TreeWriter { source: self.source, kind, scratch, output }
    }

    fn push(
        &mut self,
        tree: &mut TreeBuilder,
        key: &[u8],
        put_value: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), StorageError> {
        let mut writer = self.writer(tree.kind());
        tree.push(&mut writer, key, put_value)
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

fn corrupt(file: &CouchFile, header: &Header, what: &'static str) -> StorageError {
    StorageError::corrupt(file.path(), header.position, what)
}
