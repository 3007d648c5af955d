//! Making a vBucket of what a file holds: at warmup, and after a rollback.

use std::ops::ControlFlow;

use document::{Item, Map, Operation, Seqno, Set, Vbid};
use storage::{ScanReport, StorageError};
use vbucket::eviction::EvictionPolicy;
use vbucket::{PersistentState, Restored, Vbucket};

use crate::core::BucketCore;

/// What is shown the items of a file, until it breaks.
pub(crate) type Visit<'a> = dyn FnMut(Item) -> ControlFlow<()> + 'a;

/// A state of a file that a vBucket is made of.
pub(crate) struct FileContent {
    pub(crate) vbid: Vbid,
    pub(crate) state: PersistentState,
    /// Documents alive.
    pub(crate) item_count: u64,
    /// Whether nothing that was acknowledged is missing.
    pub(crate) is_whole: bool,
    /// What the file lacks of `state`.
    pub(crate) missing: MissingInFile,
}

/// What is durable of a vBucket and not in its file.
pub(crate) struct MissingInFile {
    /// Where the file ends.
    pub(crate) file_seqno: Seqno,
    /// The newest versions behind that. Seqnos rise.
    pub(crate) items: Vec<Item>,
}

/// A vBucket made of a file, without values.
pub(crate) struct Rebuilt {
    pub(crate) vbucket: Vbucket,
    /// Documents alive that were found.
    pub(crate) document_count: u64,
}

/// A vBucket in the making.
struct Rebuild {
    vbucket: Vbucket,
    document_count: u64,
    keeps_metadata: bool,
    /// Prepares that may not have ended, and the newest version of each key of theirs.
    prepares: Vec<Item>,
    newest: Map<Box<[u8]>, Seqno>,
}

impl BucketCore {
    /// Makes a vBucket of metadata, or where documents leave memory whole of nothing but which keys
    /// there are; and whole of the prepares that have not ended, and of what the file lacks. `scan`
    /// visits the items of the file from a seqno on, with their values or without; those above its
    /// highest seqno belong to a history that has begun meanwhile, and end the visit.
    pub(crate) fn rebuild(
        &self,
        content: FileContent,
        mut scan: impl FnMut(Seqno, bool, &mut Visit<'_>) -> Result<ScanReport, StorageError>,
    ) -> Result<Rebuilt, StorageError> {
        let FileContent { vbid, state, item_count, is_whole, missing } = content;
        let MissingInFile { file_seqno, items: unapplied } = missing;
        let facts = state.facts;
        let mut rebuild = self.begin_rebuild(vbid, state, item_count, is_whole);
        rebuild.vbucket.note_file_is_behind(file_seqno);
        if facts.prepared_seqno > facts.completed_seqno {
            scan(facts.completed_seqno.next(), true, &mut |item: Item| {
                if item.seqno() > facts.prepared_seqno {
                    return ControlFlow::Break(());
                }
                rebuild.note_prepare(item);
                ControlFlow::Continue(())
            })?;
            let pending = unapplied.iter().filter(|item| item.seqno() > facts.completed_seqno);
            pending.for_each(|item| rebuild.note_prepare(item.clone()));
        }
        let documents = || unapplied.iter().filter(|item| !item.operation().is_prepared());
        // What the file has of these is older: to add that as well would count documents twice.
        let replaced: Set<&[u8]> = documents().map(|item| item.key().encoded()).collect();
        scan(Seqno(0), false, &mut |item: Item| {
            if item.seqno() > file_seqno {
                return ControlFlow::Break(());
            }
            if !item.operation().is_prepared() && !replaced.contains(item.key().encoded()) {
                rebuild.add_from_file(&item);
            }
            ControlFlow::Continue(())
        })?;
        documents().for_each(|item| rebuild.add_unapplied(item));
        Ok(rebuild.finish())
    }

    fn begin_rebuild(
        &self,
        vbid: Vbid,
        state: PersistentState,
        item_count: u64,
        is_whole: bool,
    ) -> Rebuild {
        let policy = self.vbuckets.factory.eviction_policy();
        let keeps_metadata = policy == EvictionPolicy::ValueOnly;
        let expected_count = usize::try_from(item_count).unwrap_or(0);
        let restored = Restored {
            vbid,
            state,
            document_count: if keeps_metadata { expected_count } else { 0 },
            fresh_uuid: self.vbuckets.factory.new_uuid(),
            was_clean: is_whole,
        };
        let mut vbucket = self.vbuckets.factory.restored_vbucket(restored, policy);
        if !keeps_metadata {
            vbucket.reserve_keys(expected_count);
        }
        let (prepares, newest) = (Vec::new(), Map::default());
        Rebuild { vbucket, document_count: 0, keeps_metadata, prepares, newest }
    }
}

impl Rebuild {
    /// Takes note of a prepare that has not ended by what the vBucket knows of ends. Some have
    /// nevertheless, in a part of another node's snapshot, whose end has not come: there a newer
    /// version is all that tells, or an abort, which is behind its prepare where the file lacks it
    /// and in its place otherwise.
    fn note_prepare(&mut self, item: Item) {
        match item.operation() {
            Operation::Prepare(_) => {
                self.newest.insert(item.key().encoded().into(), item.seqno());
                self.prepares.push(item);
            }
            Operation::Abort { .. } => self.note_newer(&item),
            Operation::Mutation | Operation::Commit { .. } => {}
        }
    }

    /// Adds a document, or a tombstone, that the file has.
    fn add_from_file(&mut self, item: &Item) {
        if self.is_not_shown(item) {
            return;
        }
        self.note_document(item);
        if item.is_deleted() || !self.keeps_metadata {
            self.vbucket.restore_key(item);
        } else {
            drop(self.vbucket.restore_document(item.ejected()));
        }
    }

    /// Adds one that it lacks.
    fn add_unapplied(&mut self, item: &Item) {
        if self.is_not_shown(item) {
            return;
        }
        self.note_document(item);
        drop(self.vbucket.restore_unapplied(item.clone()));
    }

    /// Events say which collections there are; what belongs to none of them is left in the file,
    /// until that is compacted. An event comes before what belongs to its collection.
    fn is_not_shown(&mut self, item: &Item) -> bool {
        if item.key().is_of_event() {
            self.vbucket.restore_event(item);
            return true;
        }
        let is_hidden = self.vbucket.hides(item);
        if is_hidden {
            self.vbucket.note_hidden(item);
        }
        is_hidden
    }

    fn note_document(&mut self, item: &Item) {
        self.note_newer(item);
        self.document_count += u64::from(!item.is_deleted());
    }

    /// Takes note of what ends a prepare of its key, if there is one before it.
    fn note_newer(&mut self, item: &Item) {
        if !self.newest.is_empty()
            && let Some(seqno) = self.newest.get_mut(item.key().encoded())
        {
            *seqno = item.seqno().max(*seqno);
        }
    }

    fn finish(self) -> Rebuilt {
        let Self { mut vbucket, document_count, prepares, newest, .. } = self;
        for item in prepares {
            if !vbucket.hides(&item) && newest.get(item.key().encoded()) == Some(&item.seqno()) {
                vbucket.restore_prepare(item);
            }
        }
        Rebuilt { vbucket, document_count }
    }
}

impl MissingInFile {
    /// The file has everything up to `seqno`, which is the end.
    pub(crate) fn none(seqno: Seqno) -> Self {
        Self { file_seqno: seqno, items: Vec::new() }
    }
}
