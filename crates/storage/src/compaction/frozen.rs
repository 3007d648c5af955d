//! A vBucket's file as it was at one moment, to be written elsewhere while commits, compactions and
//! deletions go on.

use std::io;
use std::sync::Arc;

use document::{FailoverEntry, Seqno, Vbid, VbucketState};

use super::damaged_bodies::OnDamagedBody;
use super::local_documents;
use super::progress::CompactionProgress;
use super::request::CompactionRequest;
use super::stream_file::StreamFile;
use super::successor::Successor;
use crate::couchstore::CouchFile;
use crate::error::StorageError;
use crate::records::vbucket_record::{VBSTATE, VbucketRecord};
use crate::store::Store;
use crate::store::vbucket_file::Snapshot;

/// One state of a vBucket's file. Holds the file open, and its room on disk, as long as it lives.
pub struct FrozenVbucket {
    vbid: Vbid,
    snapshot: Arc<Snapshot>,
}

/// What is in a frozen file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenFacts {
    /// The last change in it.
    pub high_seqno: Seqno,
    /// The last tombstone that was ever left out.
    pub purge_seqno: Seqno,
    /// Documents alive and tombstones.
    pub document_count: u64,
    /// Bytes that a copy will have, about.
    pub live_bytes: u64,
    /// When the state was committed, in nanoseconds since 1970.
    pub committed_at: u64,
    /// The role that it had; `None` of a file that says none.
    pub state: Option<VbucketState>,
    /// Branches of its history, newest first.
    pub failover_table: Arc<[FailoverEntry]>,
}

impl Store {
    /// Holds a vBucket's file as it is; `None` without a file. What is to be in it is brought there
    /// by [`Store::apply`] before.
    ///
    /// # Errors
    /// Those of opening the file.
    pub fn freeze(&self, vbid: Vbid) -> Result<Option<FrozenVbucket>, StorageError> {
        let Some(entry) = self.entry(vbid) else { return Ok(None) };
        Ok(self.snapshot_of(&entry)?.map(|snapshot| FrozenVbucket { vbid, snapshot }))
    }
}

impl FrozenVbucket {
    /// Of which vBucket.
    pub fn vbid(&self) -> Vbid {
        self.vbid
    }

    /// What is in it.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when the vBucket's state cannot be read.
    pub fn facts(&self) -> Result<FrozenFacts, StorageError> {
        let header = &self.snapshot.header;
        let record = self.snapshot.record()?;
        Ok(FrozenFacts {
            high_seqno: Seqno(header.high_seqno),
            purge_seqno: Seqno(header.purge_seqno),
            document_count: header.alive_count().saturating_add(header.deleted_count()),
            live_bytes: header.live_bytes(),
            committed_at: header.timestamp,
            state: record.as_ref().map(|record| record.state),
            failover_table: record.map(|record| record.failover_table).unwrap_or_default(),
        })
    }

    /// Gives `sink` a couchstore file with this state alone, from its first byte to its last: what
    /// no state needs any more is left out, and so is the position in the journal, which means
    /// nothing elsewhere. The same state gives the same bytes. Returns their number.
    ///
    /// # Errors
    /// [`StorageError::Failed`] with what `sink` said, and errors of reading.
    pub fn write_to(
        &self,
        sink: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> Result<u64, StorageError> {
        let path = self.snapshot.file.path();
        let file = CouchFile::new(Box::new(StreamFile::new(path, Box::new(sink))), path);
        let header = &self.snapshot.header;
        let mut locals = local_documents::read(&mut self.snapshot.file.reader(header))?;
        if let Some(text) = locals.get_mut(VBSTATE)
            && let Some(record) = VbucketRecord::decode(text, Seqno(header.high_seqno))
            && record.journal.is_some()
        {
            *text = VbucketRecord { journal: None, ..record }.encode();
        }
        let (request, progress) = (CompactionRequest::default(), CompactionProgress::new());
        let (source, on_damaged) = (&self.snapshot, OnDamagedBody::Fail);
        let copied =
            Successor::copy_with(source, locals, &file, &request, &progress, &(), on_damaged)?;
        let successor = copied.expect("nobody aborts this copy");
        successor.finish()?;
        file.size()
    }
}
