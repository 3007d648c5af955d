//! A commit: bodies, nodes and a header appended, made durable, and switched on by one byte.
//!
//! The header is first written with the type byte of data and synced with everything in front of
//! it. Only then the byte becomes that of a header, and a second sync makes that durable. So a
//! header that is found holds: what it points to was durable before it was one.

use std::borrow::Cow;

use crate::couchstore::body_compression::BodyCompression;
use crate::couchstore::btree_write::{Edits, TreeWriter};
use crate::couchstore::bytes::U48_MAX;
use crate::couchstore::chunk::{ChunkSource, ChunkWriter, DATA_BLOCK, HEADER_BLOCK, next_block};
use crate::couchstore::document_info::{BODY_IS_SNAPPY, DocumentInfo, RevMeta};
use crate::couchstore::file::CouchFile;
use crate::couchstore::header::FileHeader;
use crate::couchstore::local_document::{LocalEdit, LocalEdits};
use crate::couchstore::node::{Pointer, TreeKind};
use crate::couchstore::scratch::Scratch;
use crate::error::StorageError;

/// A document to be written.
#[derive(Clone)]
pub(crate) struct NewDocument<'a> {
    pub(crate) id: Cow<'a, [u8]>,
    pub(crate) seqno: u64,
    pub(crate) rev_seqno: u64,
    pub(crate) deleted: bool,
    /// With [`BODY_IS_SNAPPY`] the body is compressed here unless others have not shrunk, or it
    /// comes as it is stored.
    pub(crate) content_meta: u8,
    pub(crate) rev_meta: RevMeta,
    /// `None` only in tombstones.
    pub(crate) body: Option<&'a [u8]>,
}

/// One commit in the making. Dropped before [`Commit::finish`], it leaves nothing but garbage at
/// the end of the file.
pub(crate) struct Commit<'a> {
    file: &'a CouchFile,
    source: ChunkSource<'a>,
    header: FileHeader,
    output: ChunkWriter<'a>,
    scratch: &'a mut Scratch,
    /// Whether bodies come as another file stores them.
    bodies_are_stored: bool,
    compression: BodyCompression,
}

/// A commit whose header is to become one.
pub(crate) struct PreparedCommit {
    header: FileHeader,
    bytes_written: u64,
}

/// A document with its body in place.
struct Placed<'a> {
    document: NewDocument<'a>,
    body_position: u64,
    body_size: u32,
}

/// What the by-id tree is told, and what it tells back.
struct ByIdEdits<'p, 'a, F> {
    placed: &'p [Placed<'a>],
    /// Seqnos of replaced versions: to be removed from the by-seqno tree.
    replaced: Vec<u64>,
    old_high_seqno: u64,
    on_change: F,
}

/// Removals, then insertions, by seqno. Everything inserted lies above everything removed.
struct BySeqnoEdits<'p, 'a> {
    keys: Vec<[u8; 6]>,
    removed_count: usize,
    placed: Vec<&'p Placed<'a>>,
}

impl<'a> Commit<'a> {
    /// Begins behind everything that was ever written to the file, on a block of its own, so that
    /// no durable block is written again. `buffer` is the write buffer.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when the file was cut below `header`.
    pub(crate) fn begin(
        file: &'a CouchFile,
        header: &FileHeader,
        buffer: &'a mut Vec<u8>,
        scratch: &'a mut Scratch,
    ) -> Result<Self, StorageError> {
        let position = next_block(file.size_with(header)?);
        Ok(Self::begin_at(file, header.clone(), position, buffer, scratch))
    }

    /// Begins in a file that is being created: its first header, of nothing, goes to the front.
    /// Nothing there is durable yet, so the first commit goes directly behind.
    pub(crate) fn begin_first(
        file: &'a CouchFile,
        buffer: &'a mut Vec<u8>,
        scratch: &'a mut Scratch,
    ) -> Result<Self, StorageError> {
        let mut commit = Self::begin_at(file, FileHeader::empty(), 0, buffer, scratch);
        let body = commit.header.encode();
        commit.output.append_header(HEADER_BLOCK, &body)?;
        Ok(commit)
    }

    fn begin_at(
        file: &'a CouchFile,
        header: FileHeader,
        position: u64,
        buffer: &'a mut Vec<u8>,
        scratch: &'a mut Scratch,
    ) -> Self {
        let source = file.source(&header);
        let output = ChunkWriter::new(source.file, header.checksum(), position, buffer);
        let compression = BodyCompression::default();
        Self { file, source, header, output, scratch, bodies_are_stored: false, compression }
    }

    /// Goes on with a file that nobody uses yet, directly behind `header`, which is not in it:
    /// [`Commit::pause`] or a copy has given it. Bodies come as another file stores them.
    pub(crate) fn resume(
        file: &'a CouchFile,
        header: &FileHeader,
        buffer: &'a mut Vec<u8>,
        scratch: &'a mut Scratch,
    ) -> Self {
        let mut commit = Self::begin_at(file, header.clone(), header.position, buffer, scratch);
        commit.bodies_are_stored = true;
        commit
    }

    /// Writes `documents`, in their order as far as bodies go, and puts them into the trees.
    /// `on_change` hears of each, with the version that it replaces. Ids are unique; seqnos lie
    /// above those of the file.
    pub(crate) fn save(
        &mut self,
        documents: impl Iterator<Item = NewDocument<'a>>,
        on_change: impl FnMut(Option<&DocumentInfo<'_>>, &DocumentInfo<'_>),
    ) -> Result<(), StorageError> {
        let mut placed = Vec::with_capacity(documents.size_hint().0);
        let old_high_seqno = self.header.high_seqno;
        for document in documents {
            assert!(document.seqno > old_high_seqno, "history goes on behind the last commit");
            assert!(document.seqno <= U48_MAX, "a seqno has 48 bits");
            self.header.high_seqno = self.header.high_seqno.max(document.seqno);
            placed.push(self.place(document)?);
        }
        placed.sort_unstable_by(|left, right| left.document.id.cmp(&right.document.id));
        let unique = placed.is_sorted_by(|left, right| left.document.id < right.document.id);
        assert!(unique, "a batch holds a key once");

        let mut by_id = ByIdEdits { placed: &placed, replaced: vec![], old_high_seqno, on_change };
        self.header.by_id = self.apply(TreeKind::ById, self.header.by_id, &mut by_id)?;
        let mut by_seqno = BySeqnoEdits::new(&placed, by_id.replaced);
        self.header.by_seqno =
            self.apply(TreeKind::BySeqno, self.header.by_seqno, &mut by_seqno)?;
        Ok(())
    }

    /// Changes local documents. Names are unique.
    pub(crate) fn save_local(&mut self, mut edits: Vec<LocalEdit>) -> Result<(), StorageError> {
        edits.sort_by(|left, right| left.id.cmp(&right.id));
        assert!(edits.is_sorted_by(|left, right| left.id < right.id), "a name is edited once");
        let root = self.header.local;
        self.header.local = self.apply(TreeKind::Local, root, &mut LocalEdits(&edits))?;
        Ok(())
    }

    /// Tombstones up to `seqno` may be missing, as far as the file goes.
    pub(crate) fn note_purged(&mut self, seqno: u64) {
        let header = &mut self.header;
        header.purge_seqno = header.purge_seqno.max(seqno.min(header.high_seqno));
    }

    /// Makes it durable. `timestamp` is nanoseconds since the epoch. Gives the new state and the
    /// bytes written. After an error the file must be opened again, at the old header.
    pub(crate) fn finish(self, timestamp: u64) -> Result<(FileHeader, u64), StorageError> {
        let file = self.file;
        self.prepare(timestamp)?.switch_on(file)
    }

    /// The first half of [`Commit::finish`]: everything is durable, and no start finds it. After an
    /// error nothing of it is needed.
    pub(crate) fn prepare(mut self, timestamp: u64) -> Result<PreparedCommit, StorageError> {
        self.header.previous = Some(self.header.position);
        self.header.timestamp = if self.header.version >= 13 { timestamp } else { 0 };
        let position = self.output.append_header(DATA_BLOCK, &self.header.encode())?;
        self.output.flush()?;
        self.file.file().sync()?;
        self.header.position = position;
        if self.header.version < 14 {
            self.header.previous = None;
        }
        Ok(PreparedCommit { header: self.header, bytes_written: self.output.bytes_written() })
    }

    /// Says what only the file that is being copied knows: how far its history goes, up to where it
    /// has been purged, and when it was written. None of them falls.
    pub(crate) fn follow(&mut self, source: &FileHeader) {
        let header = &mut self.header;
        assert!(header.high_seqno <= source.high_seqno, "a copy is not ahead of its source");
        header.high_seqno = source.high_seqno;
        header.purge_seqno = header.purge_seqno.max(source.purge_seqno);
        header.timestamp = source.timestamp;
    }

    /// Leaves what was written so far without a header, to be gone on with by [`Commit::resume`].
    pub(crate) fn pause(mut self) -> Result<FileHeader, StorageError> {
        self.output.flush()?;
        self.header.position = self.output.position();
        Ok(self.header)
    }

    /// Ends a file that nobody uses yet with its only header. Nothing is synced.
    pub(crate) fn finish_copy(mut self) -> Result<FileHeader, StorageError> {
        // As the original has it in compacted files, although no header is there.
        self.header.previous = Some(0);
        let position = self.output.append_header(HEADER_BLOCK, &self.header.encode())?;
        self.output.flush()?;
        self.header.position = position;
        Ok(self.header)
    }

    fn place(&mut self, mut document: NewDocument<'a>) -> Result<Placed<'a>, StorageError> {
        assert!(document.deleted || document.body.is_some(), "what is alive has a body");
        let Some(body) = document.body else {
            return Ok(Placed { document, body_position: 0, body_size: 0 });
        };
        let mut stored = body;
        if document.content_meta & BODY_IS_SNAPPY != 0 && !self.bodies_are_stored {
            if self.compression.is_due() {
                stored = self.scratch.compress(body);
                self.compression.note(body.len(), stored.len());
            } else {
                document.content_meta &= !BODY_IS_SNAPPY;
            }
        }
        let (body_position, size) = self.output.append(stored)?;
        let body_size = u32::try_from(size).expect("a body is far below 256 MiB");
        Ok(Placed { document, body_position, body_size })
    }

    fn apply<E: Edits>(
        &mut self,
        kind: TreeKind,
        root: Option<Pointer>,
        edits: &mut E,
    ) -> Result<Option<Pointer>, StorageError> {
        let scratch = &mut *self.scratch;
        let output = &mut self.output;
        TreeWriter { source: self.source, kind, scratch, output }.apply(root, edits)
    }
}

impl PreparedCommit {
    /// The state that it comes to.
    pub(crate) fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The second half of [`Commit::finish`], on the same file. After an error nobody can tell
    /// whether a start finds the commit.
    pub(crate) fn switch_on(self, file: &CouchFile) -> Result<(FileHeader, u64), StorageError> {
        file.file().write_at(&[HEADER_BLOCK], self.header.position)?;
        file.file().sync()?;
        Ok((self.header, self.bytes_written.saturating_add(1)))
    }
}

impl Placed<'_> {
    fn info(&self) -> DocumentInfo<'_> {
        DocumentInfo {
            id: &self.document.id,
            seqno: self.document.seqno,
            rev_seqno: self.document.rev_seqno,
            deleted: self.document.deleted,
            content_meta: self.document.content_meta,
            body_position: self.body_position,
            body_size: self.body_size,
            rev_meta: self.document.rev_meta.as_slice(),
        }
    }
}

impl<F: FnMut(Option<&DocumentInfo<'_>>, &DocumentInfo<'_>)> Edits for ByIdEdits<'_, '_, F> {
    fn count(&self) -> usize {
        self.placed.len()
    }

    fn key(&self, index: usize) -> &[u8] {
        &self.placed[index].document.id
    }

    fn put_value(&self, index: usize, value: &mut Vec<u8>) -> bool {
        self.placed[index].info().encode_by_id(value);
        true
    }

    fn on_old_value(&mut self, index: usize, old: Option<&[u8]>) -> Result<(), &'static str> {
        let new = self.placed[index].info();
        let old = match old {
            None => None,
            Some(value) => {
                let malformed = "a malformed document entry";
                Some(DocumentInfo::from_by_id(new.id, value).ok_or(malformed)?)
            }
        };
        if old.is_some_and(|old| old.seqno > self.old_high_seqno) {
            return Err("a document has a seqno above the header's");
        }
        self.replaced.extend(old.map(|old| old.seqno));
        (self.on_change)(old.as_ref(), &new);
        Ok(())
    }
}

impl<'p, 'a> BySeqnoEdits<'p, 'a> {
    fn new(placed: &'p [Placed<'a>], mut removed: Vec<u64>) -> Self {
        let mut placed: Vec<_> = placed.iter().collect();
        placed.sort_unstable_by_key(|placed| placed.document.seqno);
        removed.sort_unstable();
        // A damaged by-id tree could name a seqno twice; the second removal would find nothing.
        removed.dedup();
        let removed_count = removed.len();
        let inserted = placed.iter().map(|placed| placed.document.seqno);
        let seqnos = removed.into_iter().chain(inserted);
        let keys = seqnos.map(|seqno| *seqno.to_be_bytes().last_chunk().expect("6 of 8 bytes"));
        let keys: Vec<[u8; 6]> = keys.collect();
        assert!(keys.is_sorted_by(|left, right| left < right), "a seqno is given once");
        Self { keys, removed_count, placed }
    }
}

impl Edits for BySeqnoEdits<'_, '_> {
    fn count(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, index: usize) -> &[u8] {
        &self.keys[index]
    }

    fn put_value(&self, index: usize, value: &mut Vec<u8>) -> bool {
        let Some(index) = index.checked_sub(self.removed_count) else { return false };
        self.placed[index].info().encode_by_seqno(value);
        true
    }

    fn on_old_value(&mut self, index: usize, old: Option<&[u8]>) -> Result<(), &'static str> {
        match (index < self.removed_count, old) {
            (true, None) => Err("a document of the by-id tree is not in the by-seqno tree"),
            (false, Some(_)) => Err("a seqno above the header's is in the by-seqno tree"),
            _ => Ok(()),
        }
    }
}
