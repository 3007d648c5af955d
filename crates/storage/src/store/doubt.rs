//! What an operation that failed half way may have left behind is undone before anything else
//! becomes durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use document::Vbid;

use crate::couchstore::Commit;
use crate::error::StorageError;
use crate::locks::lock;
use crate::removal::remove_if_there;
use crate::store::Store;
use crate::store::flush_batch::FlushBatch;
use crate::store::open_files::{Doubts, Entry};
use crate::store::vbucket_file::{CommitBuffers, Snapshot};

impl Store {
    /// Makes sure that the present state of a vBucket's file is the one that a start finds. The
    /// caller holds the entry's `writer`.
    pub(crate) fn dispel_doubt(&self, entry: &Arc<Entry>) -> Result<(), StorageError> {
        let handle = lock(&entry.handle);
        let (doubts, revision) = (handle.doubts, handle.revision);
        drop(handle);
        if doubts.has_file {
            remove_if_there(self.files(), &self.path(entry.vbid, revision + 1))?;
            self.sync_directory()?;
            lock(&entry.handle).doubts.has_file = false;
        }
        if doubts.has_header {
            self.commit_present(entry)?;
            lock(&entry.handle).doubts.has_header = false;
        }
        Ok(())
    }

    /// The same for the vBucket of each batch, before anything of it goes to the journal. Gives
    /// those of which that cannot be made sure, and why: the others are no worse for them.
    pub(crate) fn dispel_doubts(&self, batches: &[FlushBatch]) -> BTreeMap<Vbid, StorageError> {
        let mut doubtful = BTreeMap::new();
        for FlushBatch { vbid, .. } in batches {
            // Whatever the journal may hold of a vBucket, deleting all of them meets it.
            let entry = self.entry_or_new(*vbid);
            // Doubts are rare, and the writer's lock may be held for a whole commit: a look without
            // it comes first.
            if lock(&entry.handle).doubts != Doubts::default() {
                let _writing = lock(&entry.writer);
                if let Err(error) = self.dispel_doubt(&entry) {
                    doubtful.insert(*vbid, error);
                }
            }
        }
        doubtful
    }

    /// Writes the header in force behind everything else once more.
    fn commit_present(&self, entry: &Arc<Entry>) -> Result<(), StorageError> {
        let Some(now) = self.snapshot_of(entry)? else { return Ok(()) };
        let mut buffers = CommitBuffers::new();
        let (output, scratch) = buffers.parts();
        let commit = Commit::begin(&now.file, &now.header, output, scratch)?;
        match commit.finish(self.wall_time()) {
            Ok((header, _)) => {
                let mut handle = lock(&entry.handle);
                handle.note_moved(header.position);
                handle.snapshot = Some(Arc::new(Snapshot { file: now.file.clone(), header }));
                Ok(())
            }
            Err(error) => {
                self.close(entry);
                Err(error)
            }
        }
    }
}
