//! An open couchstore file, and what can be read from one of its states.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use platform::{File, Files, OpenMode};

use crate::couchstore::btree_read::TreeReader;
use crate::couchstore::chunk::{ChunkSource, HEADER_BLOCK};
use crate::couchstore::document_info::{BODY_IS_SNAPPY, DocumentInfo};
use crate::couchstore::header::{self, Block, FileHeader, Skipped};
use crate::couchstore::node::{Pointer, TreeKind};
use crate::couchstore::read_ahead::ReadAhead;
use crate::couchstore::scratch::{self, Scratch};
use crate::error::StorageError;

/// An open file. Holds a handle and no buffers.
pub struct CouchFile {
    file: Box<dyn File>,
    path: PathBuf,
}

/// What was noticed while the newest header was looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// What stands behind the header that was found and is none, newest first: position, and what
    /// is wrong. The last of them may be left out.
    pub skipped: Vec<(u64, &'static str)>,
    /// How many there are.
    pub skipped_count: u64,
    /// The newest of them that was a header: the one that was found is not the newest state.
    pub damaged: Option<(u64, &'static str)>,
}

/// Blocks that an [`OpenReport`] lists, at most: garbage may be as long as it likes.
const SKIPPED_LISTED_MAX: usize = 16;

impl OpenReport {
    fn note(&mut self, skipped: Skipped) {
        let Skipped { position, what, was_header } = skipped;
        if self.skipped.len() < SKIPPED_LISTED_MAX {
            self.skipped.push((position, what));
        }
        self.skipped_count = self.skipped_count.saturating_add(1);
        if was_header {
            self.damaged = self.damaged.or(Some((position, what)));
        }
    }
}

/// Reads one state of a file. Borrows nothing from others: any number of readers run beside a
/// commit.
pub struct Reader<'a> {
    source: ChunkSource<'a>,
    header: &'a FileHeader,
    scratch: Scratch,
    bodies: BodyReader<'a>,
}

/// Reads bodies, while a walk through a tree keeps the reader's other buffers busy.
pub(crate) struct BodyReader<'a> {
    source: ChunkSource<'a>,
    ahead: ReadAhead,
    stored: Vec<u8>,
    decoder: snap::raw::Decoder,
}

impl CouchFile {
    /// Opens a file without looking into it.
    pub fn open(files: &dyn Files, path: &Path, mode: OpenMode) -> Result<Self, StorageError> {
        Ok(Self { file: files.open(path, mode)?, path: path.to_path_buf() })
    }

    /// A file that is open already.
    pub fn new(file: Box<dyn File>, path: &Path) -> Self {
        Self { file, path: path.to_path_buf() }
    }

    /// The newest state. Blocks of garbage behind its header are passed over, which the report
    /// tells.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] also when an older header is whole: what is not whole behind it
    /// was committed and may have been acknowledged.
    pub fn newest_header(&self) -> Result<(FileHeader, OpenReport), StorageError> {
        let (header, report) = self.newest_whole_header()?;
        if let Some((position, what)) = report.damaged {
            return Err(StorageError::corrupt(&self.path, position, what));
        }
        self.check_previous(&header)?;
        Ok((header, report))
    }

    /// The newest state whose header is whole, which need not be the newest one: for people who
    /// look at damaged files.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when no header is whole.
    pub fn newest_whole_header(&self) -> Result<(FileHeader, OpenReport), StorageError> {
        let mut report = OpenReport::default();
        match header::find_newest(&*self.file, self.size()?, &mut |found| report.note(found))? {
            Some(header) => Ok((header, report)),
            None => {
                let (position, what) = report.skipped.first().copied().unwrap_or((0, "no header"));
                Err(StorageError::corrupt(&self.path, position, what))
            }
        }
    }

    /// A header that does not continue the history in front of it was never committed here: a file
    /// system may show blocks of another file behind one that was cut off.
    fn check_previous(&self, header: &FileHeader) -> Result<(), StorageError> {
        if header.version < 14 {
            return Ok(());
        }
        match self.header_before(header)? {
            Some(before) if before.high_seqno > header.high_seqno => {
                let what = "a header whose history goes back behind it";
                Err(StorageError::corrupt(&self.path, header.position, what))
            }
            _ => Ok(()),
        }
    }

    /// The state whose header stands at `position`.
    pub fn header_at(&self, position: u64) -> Result<FileHeader, StorageError> {
        match header::read_block(&*self.file, position)? {
            Block::Header(header) => Ok(*header),
            Block::Damaged(what) | Block::Garbage(what) => {
                Err(StorageError::corrupt(&self.path, position, what))
            }
            Block::Data => Err(StorageError::corrupt(&self.path, position, "no header")),
        }
    }

    /// The state before `header`: in version 14 its predecessor in history, which passes over what
    /// was rolled back; before that, the one that stands in front of it.
    pub fn header_before(&self, header: &FileHeader) -> Result<Option<FileHeader>, StorageError> {
        if header.version < 14 {
            let mut report = OpenReport::default();
            let end = header.position;
            let found = header::find_newest(&*self.file, end, &mut |found| report.note(found))?;
            return match report.damaged {
                Some((position, what)) => Err(StorageError::corrupt(&self.path, position, what)),
                None => Ok(found),
            };
        }
        let Some(previous) = header.previous else { return Ok(None) };
        if previous >= header.position && header.position > 0 {
            let what = "a previous header that does not lie before";
            return Err(StorageError::corrupt(&self.path, header.position, what));
        }
        // The first header of a compacted file names position 0, where there is none.
        match header::read_block(&*self.file, previous)? {
            Block::Header(found) if found.position < header.position => Ok(Some(*found)),
            Block::Damaged(what) | Block::Garbage(what) => {
                Err(StorageError::corrupt(&self.path, previous, what))
            }
            Block::Data | Block::Header(_) if previous == 0 => Ok(None),
            Block::Data | Block::Header(_) => {
                Err(StorageError::corrupt(&self.path, previous, "no header"))
            }
        }
    }

    /// Makes a header that was found durable, with all that it stands for. Its last sync may have
    /// failed, and then another one alone says nothing: the byte that switches it on is written
    /// again. What it refers to was durable before that byte was written first.
    pub(crate) fn make_header_sure(&self, header: &FileHeader) -> Result<(), StorageError> {
        self.file.write_at(&[HEADER_BLOCK], header.position)?;
        Ok(self.file.sync()?)
    }

    /// Gives back what lies behind `size`, as far as the system lets it: for what was written there
    /// and never had a header.
    pub(crate) fn cut_behind(&self, size: u64) {
        drop(self.file.set_size(size));
    }

    /// Bytes of the file.
    pub fn size(&self) -> Result<u64, StorageError> {
        Ok(self.file.size()?)
    }

    /// Bytes of the file, in which `header` was committed.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it ends in front of the header's end: somebody has cut it,
    /// and what would be written behind its end would lie in the middle of history.
    pub(crate) fn size_with(&self, header: &FileHeader) -> Result<u64, StorageError> {
        let size = self.size()?;
        if size < header.end() {
            let what = "the file ends in front of its newest header";
            return Err(StorageError::corrupt(&self.path, size, what));
        }
        Ok(size)
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the state of `header`.
    pub fn reader<'a>(&'a self, header: &'a FileHeader) -> Reader<'a> {
        let source = self.source(header);
        let (ahead, stored) = (ReadAhead::default(), Vec::new());
        let bodies = BodyReader { source, ahead, stored, decoder: snap::raw::Decoder::new() };
        Reader { source, header, scratch: Scratch::new(), bodies }
    }

    pub(crate) fn source(&self, header: &FileHeader) -> ChunkSource<'_> {
        ChunkSource {
            file: &*self.file,
            path: &self.path,
            checksum: header.checksum(),
            end: header.position,
        }
    }

    pub(crate) fn file(&self) -> &dyn File {
        &*self.file
    }
}

impl<'a> Reader<'a> {
    /// Looks documents up by id. `ids` rise strictly. `found` hears of each in order: its index
    /// and what the file has under it, tombstones included.
    pub(crate) fn get(
        &mut self,
        ids: &[&[u8]],
        mut found: impl FnMut(
            usize,
            Option<&DocumentInfo<'_>>,
            &mut BodyReader<'a>,
        ) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let (source, bodies) = (self.source, &mut self.bodies);
        let mut tree = TreeReader { source, kind: TreeKind::ById, scratch: &mut self.scratch };
        tree.get(self.header.by_id.as_ref(), ids, &mut |index, value| {
            let Some(value) = value else { return found(index, None, bodies) };
            let info = DocumentInfo::from_by_id(ids.get(index).copied().unwrap_or(&[]), value);
            let info = info.ok_or_else(|| malformed(&source, TreeKind::ById))?;
            found(index, Some(&info), bodies)
        })
    }

    /// Visits documents by seqno from `start` on until `visit` breaks.
    pub(crate) fn scan_by_seqno(
        &mut self,
        start: u64,
        mut visit: impl FnMut(
            &DocumentInfo<'_>,
            &mut BodyReader<'a>,
        ) -> Result<ControlFlow<()>, StorageError>,
    ) -> Result<ControlFlow<()>, StorageError> {
        let key = start.to_be_bytes();
        // Keys have 48 bits: cut to these, a higher seqno would be a low one.
        if start > super::bytes::U48_MAX {
            return Ok(ControlFlow::Continue(()));
        }
        let (source, bodies) = (self.source, &mut self.bodies);
        let mut tree = TreeReader { source, kind: TreeKind::BySeqno, scratch: &mut self.scratch };
        tree.scan(self.header.by_seqno.as_ref(), &key[2..], &mut |key, value| {
            let info = DocumentInfo::from_by_seqno(key, value);
            visit(&info.ok_or_else(|| malformed(&source, TreeKind::BySeqno))?, bodies)
        })
    }

    /// How many documents there are from a seqno on, tombstones included.
    pub(crate) fn count_from_seqno(&mut self, start: u64) -> Result<u64, StorageError> {
        if start > super::bytes::U48_MAX {
            return Ok(0);
        }
        let (source, scratch) = (self.source, &mut self.scratch);
        let mut tree = TreeReader { source, kind: TreeKind::BySeqno, scratch };
        let key = start.to_be_bytes();
        tree.count_from(self.header.by_seqno.as_ref(), &key[2..])
    }

    /// Visits documents by id from `start` on until `visit` breaks.
    pub(crate) fn scan_by_id(
        &mut self,
        start: &[u8],
        mut visit: impl FnMut(
            &DocumentInfo<'_>,
            &mut BodyReader<'a>,
        ) -> Result<ControlFlow<()>, StorageError>,
    ) -> Result<ControlFlow<()>, StorageError> {
        let (source, bodies) = (self.source, &mut self.bodies);
        let mut tree = TreeReader { source, kind: TreeKind::ById, scratch: &mut self.scratch };
        tree.scan(self.header.by_id.as_ref(), start, &mut |key, value| {
            let info = DocumentInfo::from_by_id(key, value);
            visit(&info.ok_or_else(|| malformed(&source, TreeKind::ById))?, bodies)
        })
    }

    /// The content of a local document.
    pub fn local(&mut self, id: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let mut content = None;
        let root = self.header.local;
        self.local_tree().get(root.as_ref(), &[id], &mut |_, value| {
            content = value.map(<[u8]>::to_vec);
            Ok(())
        })?;
        Ok(content)
    }

    /// Visits the local documents by name.
    pub fn local_documents(
        &mut self,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), StorageError> {
        let root: Option<Pointer> = self.header.local;
        let flow = self.local_tree().scan(root.as_ref(), &[], &mut |id, content| {
            visit(id, content);
            Ok(ControlFlow::Continue(()))
        })?;
        assert!(flow.is_continue(), "nothing breaks this walk");
        Ok(())
    }

    fn local_tree(&mut self) -> TreeReader<'_> {
        TreeReader { source: self.source, kind: TreeKind::Local, scratch: &mut self.scratch }
    }
}

impl BodyReader<'_> {
    /// The stored bytes of a body; with [`BODY_IS_SNAPPY`] they are compressed. `None` when the
    /// document has no body.
    pub(crate) fn stored(
        &mut self,
        info: &DocumentInfo<'_>,
    ) -> Result<Option<&[u8]>, StorageError> {
        if info.body_position == 0 {
            return Ok(None);
        }
        let size = usize::try_from(info.body_size).unwrap_or(usize::MAX);
        let (position, ahead) = (info.body_position, &mut self.ahead);
        let body = self.source.read_in_order(ahead, position, size, &mut self.stored)?;
        if body.len().saturating_add(super::chunk::CHUNK_HEAD_SIZE) != size {
            return Err(self.source.corrupt(info.body_position, "a body of another size"));
        }
        Ok(Some(body))
    }

    /// The bytes in the place of a body that [`BodyReader::stored`] refuses, as far as there are
    /// any.
    pub(crate) fn damaged_chunk(&self, info: &DocumentInfo<'_>) -> Result<Vec<u8>, StorageError> {
        let size = usize::try_from(info.body_size).unwrap_or(usize::MAX);
        self.source.read_raw(info.body_position, size)
    }

    /// Reads a body and lends the caller `target` of its size to be filled: `make` gives it.
    pub(crate) fn read_into<T>(
        &mut self,
        info: &DocumentInfo<'_>,
        make: impl FnOnce(usize) -> T,
        bytes_of: impl FnOnce(&mut T) -> &mut [u8],
    ) -> Result<T, StorageError> {
        let source = self.source;
        let corrupt = |what| source.corrupt(info.body_position, what);
        let is_snappy = info.content_meta & BODY_IS_SNAPPY != 0;
        if self.stored(info)?.is_none() {
            return Ok(make(0));
        }
        let stored = self.stored.get(super::chunk::CHUNK_HEAD_SIZE..).unwrap_or_default();
        if !is_snappy {
            let mut target = make(stored.len());
            bytes_of(&mut target).copy_from_slice(stored);
            return Ok(target);
        }
        let size = scratch::decompressed_size(stored).map_err(corrupt)?;
        let mut target = make(size);
        match self.decoder.decompress(stored, bytes_of(&mut target)) {
            Ok(written) if written == size => Ok(target),
            _ => Err(corrupt("a body does not decompress")),
        }
    }

    pub(crate) fn corrupt(&self, position: u64, what: &'static str) -> StorageError {
        self.source.corrupt(position, what)
    }
}

fn malformed(source: &ChunkSource<'_>, kind: TreeKind) -> StorageError {
    let what = match kind {
        TreeKind::ById => "a malformed entry in the by-id tree",
        TreeKind::BySeqno => "a malformed entry in the by-seqno tree",
        TreeKind::Local => "a malformed local document",
    };
    source.corrupt(source.end, what)
}
