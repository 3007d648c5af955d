//! What a vBucket's file has of a document that memory has: STAT `vkey`.

use document::{Item, Seqno, Vbid};
use storage::StorageError;

use crate::core::Bucket;
use crate::memory::inflated;

/// What a file has of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFile {
    /// This version, as memory has it; or there is no file.
    Same,
    /// An older one or none, as may be: the version is still on its way.
    NotYet,
    /// None, although the version should be there.
    Missing,
    /// Something else, although the version should be there.
    Different,
}

impl Bucket {
    /// Holds what the vBucket's file has against `item`, a version that memory had. Not for
    /// front-end workers: it reads the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn in_file(&self, vbid: Vbid, item: &Item) -> Result<InFile, StorageError> {
        if !self.0.has_files() {
            return Ok(InFile::Same);
        }
        // Before the file is read: what is applied meanwhile may not be in what is read.
        let mut applied = Seqno(0);
        self.with_vbucket(vbid, |vbucket| applied = vbucket.applied_seqno());
        if item.seqno() > applied {
            return Ok(InFile::NotYet);
        }
        match self.0.store.get(vbid, &[item.key()])?.into_iter().flatten().next() {
            None => Ok(InFile::Missing),
            // The document has changed since it was looked at.
            Some(found) if found.seqno() > item.seqno() => Ok(InFile::NotYet),
            Some(found) if is_same(&found, item) => Ok(InFile::Same),
            Some(_) => Ok(InFile::Different),
        }
    }
}

/// The forms of a value, compressed or not, are the same; so is one that has left memory.
fn is_same(found: &Item, item: &Item) -> bool {
    let is_same_version = found.seqno() == item.seqno() && found.cas() == item.cas();
    let is_same_value = item.is_ejected() || inflated(found) == inflated(item);
    is_same_version && is_same_value && found.flags() == item.flags()
}
