//! The file that is to take the place of a vBucket's: a copy of one state, which then follows what
//! is committed to the original.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use document::{CollectionId, Item, Seqno};

use super::damaged_bodies::{DamagedBodies, OnDamagedBody};
use super::local_documents::{self, Differences, LocalDocuments, Prepares};
use super::progress::{CompactionObserver, CompactionProgress};
use super::purge::{PurgeFilter, Tally};
use super::request::CompactionRequest;
use crate::couchstore::{
    BodyReader, Commit, CouchFile, DocumentInfo, FileHeader, NewDocument, REV_META_SIZE_MAX,
    RevMeta, Verdict, copy,
};
use crate::error::StorageError;
use crate::records::collection_statistics::{self, CollectionChanges};
use crate::records::disk_document;
use crate::records::vbucket_record::VbucketRecord;
use crate::store::vbucket_file::{CommitBuffers, Snapshot};

/// Documents of one round that are held in memory, at most, unless one is larger.
const REPLAY_BYTES_MAX: usize = 4 << 20;
const REPLAY_DOCUMENTS_MAX: usize = 10_000;

/// Expired documents that are reported at a time.
const EXPIRED_COUNT_MAX: usize = 256;

/// A copy in the making.
pub(super) struct Successor<'a> {
    file: &'a CouchFile,
    /// The state so far. Its header is not in the file.
    state: FileHeader,
    /// The header of the source's state that it holds.
    source_position: u64,
    differences: Differences,
    buffers: CommitBuffers,
    pub(super) tally: Tally,
    pub(super) expired_count: u64,
    /// What is in it as it was, damage included.
    pub(super) damaged: DamagedBodies,
    /// How often it has followed the source.
    pub(super) rounds: u32,
}

/// Documents that were committed to the source, as they are stored.
#[derive(Default)]
struct Changes {
    bytes: Vec<u8>,
    documents: Vec<Change>,
}

struct Change {
    id: Range<usize>,
    body: Option<Range<usize>>,
    seqno: u64,
    rev_seqno: u64,
    deleted: bool,
    content_meta: u8,
    rev_meta: RevMeta,
}

impl<'a> Successor<'a> {
    /// Copies a state of the source into `file`, which is empty, without what `request` wants gone.
    /// `None` when the compaction was told to stop.
    pub(super) fn copy(
        source: &Snapshot,
        file: &'a CouchFile,
        request: &CompactionRequest,
        progress: &CompactionProgress,
        observer: &dyn CompactionObserver,
    ) -> Result<Option<Self>, StorageError> {
        let locals = local_documents::read(&mut source.file.reader(&source.header))?;
        Self::copy_with(source, locals, file, request, progress, observer, OnDamagedBody::Copy)
    }

    /// The same with `locals` for the source's local documents. Writes `file` from its beginning to
    /// its end, and reads nothing back.
    pub(super) fn copy_with(
        source: &Snapshot,
        locals: LocalDocuments,
        file: &'a CouchFile,
        request: &CompactionRequest,
        progress: &CompactionProgress,
        observer: &dyn CompactionObserver,
        on_damaged: OnDamagedBody,
    ) -> Result<Option<Self>, StorageError> {
        let mut buffers = CommitBuffers::new();
        let header = &source.header;
        let record = local_documents::record(&locals, header.high_seqno);
        let completed_seqno = record.as_ref().map_or(Seqno(0), |record| record.completed_seqno);
        let dropped = local_documents::dropped(&locals);
        let mut filter = PurgeFilter::new(request, header.high_seqno, completed_seqno, &dropped);
        let mut expired = Expired { documents: Vec::new(), count: 0, observer };
        let mut judge = |info: &DocumentInfo<'_>, bodies: &mut BodyReader<'_>| {
            if progress.is_aborted() {
                return Ok(Verdict::Stop);
            }
            observer.goes_on();
            let mut high_seqno_of = |id| high_seqno_of(source, &locals, id);
            let verdict = filter.judge(info, &mut high_seqno_of)?;
            if verdict == Verdict::Keep && filter.is_expired(info) {
                expired.note(info, bodies)?;
            }
            Ok(verdict)
        };
        let mut damaged = DamagedBodies::default();
        let mut on_damage = |info: &DocumentInfo<'_>, copy_position, damage| match on_damaged {
            OnDamagedBody::Copy => {
                damaged.note(info, copy_position, damage);
                Ok(())
            }
            OnDamagedBody::Fail => Err(damage),
        };
        let output = &mut buffers.output;
        let copied = copy(&source.file, header, file, output, &mut judge, &mut on_damage)?;
        let Some(mut state) = copied else { return Ok(None) };
        expired.report();
        state.purge_seqno = state.purge_seqno.max(filter.tally.purge_seqno);
        let differences = Differences {
            prepares: Prepares::of(record.as_ref()).without(&filter.tally),
            finished: filter.finished(&dropped),
        };
        let mut edits = local_documents::statistics_after(&locals, &filter);
        edits.extend(local_documents::edits(&locals, &LocalDocuments::new(), &differences));
        let mut successor = Self {
            file,
            state,
            source_position: header.position,
            differences,
            buffers,
            expired_count: expired.count,
            damaged,
            rounds: 0,
            tally: filter.tally,
        };
        let mut commit = successor.resume();
        commit.save_local(edits)?;
        successor.state = commit.pause()?;
        Ok(Some(successor))
    }

    /// Whether it holds this state of the source.
    pub(super) fn holds(&self, source: &Snapshot) -> bool {
        self.source_position == source.header.position
    }

    /// Whether the source's history goes on from what is held: it was not rolled back.
    pub(super) fn can_follow(&self, source: &Snapshot) -> Result<bool, StorageError> {
        let newest = &source.header;
        if newest.position < self.source_position || newest.high_seqno < self.state.high_seqno {
            return Ok(false);
        }
        if newest.version < 14 {
            // Such headers do not say where they come from.
            return Ok(true);
        }
        let mut header = newest.clone();
        while header.position > self.source_position {
            match source.file.header_before(&header)? {
                Some(before) => header = before,
                None => return Ok(false),
            }
        }
        Ok(header.position == self.source_position)
    }

    /// Copies what a newer state of the source has. Gives the number of documents. Stops early
    /// when the compaction is told to stop; then this is of no use any more. A damaged body is an
    /// error: the next compaction begins with a copy that has it.
    pub(super) fn follow(
        &mut self,
        source: &Snapshot,
        progress: &CompactionProgress,
    ) -> Result<u64, StorageError> {
        let (before, now) = (self.state.high_seqno, source.header.high_seqno);
        assert!(before <= now, "a source goes forward, or the compaction is aborted");
        self.rounds += 1;
        let mut count = 0;
        let mut from = self.state.high_seqno.saturating_add(1);
        loop {
            let changes = Changes::read(source, from)?;
            let Some(last) = changes.documents.last() else { break };
            from = last.seqno.saturating_add(1);
            count += changes.documents.len() as u64;
            self.save(&changes)?;
            if progress.is_aborted() {
                return Ok(count);
            }
        }
        let locals = local_documents::read(&mut source.file.reader(&source.header))?;
        let own = local_documents::read(&mut self.file.reader(&self.state))?;
        let edits = local_documents::edits(&locals, &own, &self.differences);
        let mut commit = self.resume();
        commit.follow(&source.header);
        commit.save_local(edits)?;
        self.state = commit.pause()?;
        self.source_position = source.header.position;
        Ok(count)
    }

    /// Makes everything so far durable.
    pub(super) fn sync(&self) -> Result<(), StorageError> {
        Ok(self.file.file().sync()?)
    }

    /// Writes the header and makes the file durable. Gives the header's position.
    pub(super) fn finish(mut self) -> Result<FileHeader, StorageError> {
        let header = self.resume().finish_copy()?;
        self.sync()?;
        Ok(header)
    }

    fn resume(&mut self) -> Commit<'_> {
        let CommitBuffers { output, scratch } = &mut self.buffers;
        Commit::resume(self.file, &self.state, output, scratch)
    }

    /// Puts documents over those that are there, and keeps count of collections and prepares by
    /// what *this* file had, which may be less than the source had.
    fn save(&mut self, changes: &Changes) -> Result<(), StorageError> {
        let mut collections = CollectionChanges::default();
        let mut prepares = self.differences.prepares;
        let CommitBuffers { output, scratch } = &mut self.buffers;
        let mut commit = Commit::resume(self.file, &self.state, output, scratch);
        commit.save(changes.documents(), |old, new| {
            collections.note(old, new);
            prepares.note(old, new);
        })?;
        commit.save_local(collections.into_edits(&mut self.file.reader(&self.state))?)?;
        self.state = commit.pause()?;
        self.differences.prepares = prepares;
        Ok(())
    }
}

/// The highest seqno of a collection: what the file says of it, or else what a count finds.
fn high_seqno_of(
    source: &Snapshot,
    locals: &LocalDocuments,
    collection: CollectionId,
) -> Result<u64, StorageError> {
    match local_documents::high_seqno_of(locals, collection) {
        Some(high_seqno) => Ok(high_seqno),
        None => {
            let reader = &mut source.file.reader(&source.header);
            Ok(collection_statistics::read(reader, collection)?.high_seqno)
        }
    }
}

impl Prepares {
    /// Those that a state tells of.
    fn of(record: Option<&VbucketRecord>) -> Self {
        record.map_or(Self::default(), |record| Self {
            count: record.on_disk_prepares,
            bytes: record.on_disk_prepare_bytes,
        })
    }

    fn without(self, tally: &Tally) -> Self {
        Self {
            count: self.count.saturating_sub(tally.prepares),
            bytes: self.bytes.saturating_sub(tally.prepare_bytes),
        }
    }

    pub(super) fn note(&mut self, old: Option<&DocumentInfo<'_>>, new: &DocumentInfo<'_>) {
        if let Some(old) = old.filter(|old| is_alive_prepare(old)) {
            self.count = self.count.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(old.disk_size());
        }
        if is_alive_prepare(new) {
            self.count = self.count.saturating_add(1);
            self.bytes = self.bytes.saturating_add(new.disk_size());
        }
    }
}

fn is_alive_prepare(info: &DocumentInfo<'_>) -> bool {
    disk_document::is_prepare(info) && !info.deleted
}

impl Changes {
    /// The documents of a state from a seqno on, by seqno, as many as memory is to hold.
    fn read(source: &Snapshot, from: u64) -> Result<Self, StorageError> {
        let mut changes = Self::default();
        let header = &source.header;
        let corrupt = |what| StorageError::corrupt(source.file.path(), header.position, what);
        let _flow = source.file.reader(header).scan_by_seqno(from, |info, bodies| {
            if info.seqno > header.high_seqno {
                return Err(corrupt("a document is newer than its header"));
            }
            if info.rev_meta.len() > REV_META_SIZE_MAX {
                return Err(corrupt("rev meta of unknown size"));
            }
            if !info.deleted && info.body_position == 0 {
                return Err(corrupt("a document that is alive without a body"));
            }
            changes.push(info, bodies)?;
            let is_full = changes.bytes.len() >= REPLAY_BYTES_MAX
                || changes.documents.len() >= REPLAY_DOCUMENTS_MAX;
            Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let mut ids: Vec<_> = changes.documents.iter().map(|change| change.id.clone()).collect();
        ids.sort_unstable_by(|left, right| {
            changes.bytes[left.clone()].cmp(&changes.bytes[right.clone()])
        });
        let mut pairs = ids.windows(2);
        if pairs.any(|pair| changes.bytes[pair[0].clone()] == changes.bytes[pair[1].clone()]) {
            return Err(corrupt("the by-seqno tree holds an id twice"));
        }
        Ok(changes)
    }

    fn push(
        &mut self,
        info: &DocumentInfo<'_>,
        bodies: &mut BodyReader<'_>,
    ) -> Result<(), StorageError> {
        let id = self.append(info.id);
        let body = bodies.stored(info)?.map(|body| self.append(body));
        self.documents.push(Change {
            id,
            body,
            seqno: info.seqno,
            rev_seqno: info.rev_seqno,
            deleted: info.deleted,
            content_meta: info.content_meta,
            rev_meta: RevMeta::new(info.rev_meta),
        });
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn documents(&self) -> impl Iterator<Item = NewDocument<'_>> {
        self.documents.iter().map(|change| NewDocument {
            id: Cow::Borrowed(&self.bytes[change.id.clone()]),
            seqno: change.seqno,
            rev_seqno: change.rev_seqno,
            deleted: change.deleted,
            content_meta: change.content_meta,
            rev_meta: change.rev_meta,
            body: change.body.clone().map(|body| &self.bytes[body]),
        })
    }
}

/// Documents past their time, on their way to the observer.
struct Expired<'o> {
    documents: Vec<Item>,
    count: u64,
    observer: &'o dyn CompactionObserver,
}

impl Expired<'_> {
    fn note(
        &mut self,
        info: &DocumentInfo<'_>,
        bodies: &mut BodyReader<'_>,
    ) -> Result<(), StorageError> {
        self.documents.push(disk_document::to_item(info, bodies, false)?);
        self.count += 1;
        if self.documents.len() >= EXPIRED_COUNT_MAX {
            self.report();
        }
        Ok(())
    }

    fn report(&mut self) {
        if !self.documents.is_empty() {
            self.observer.expired(std::mem::take(&mut self.documents));
        }
    }
}
