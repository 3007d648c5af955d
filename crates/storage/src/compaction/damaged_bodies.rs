//! Documents whose bodies are not what was written, and what a copy of them does about it.

use document::Seqno;

use crate::couchstore::DocumentInfo;
use crate::error::StorageError;
use crate::records::disk_document;

/// Documents that are listed, at most: a whole file may be damaged.
const LISTED_MAX: usize = 16;

/// A document whose body cannot be read.
#[derive(Clone, Debug)]
pub struct DamagedBody {
    /// Which, for people: its collection and its key.
    pub document: String,
    /// Its place in history.
    pub seqno: Seqno,
    /// Where the body lies in the file that was compacted, and what is wrong with it.
    pub error: StorageError,
    /// Where it lies in the new file.
    pub copy_position: u64,
}

/// The documents of a file whose bodies cannot be read. They are in the new file as they were in
/// the old one, and reading one stays an error.
#[derive(Clone, Debug, Default)]
pub struct DamagedBodies {
    /// How many there are.
    pub count: u64,
    /// The first of them, by seqno.
    pub listed: Vec<DamagedBody>,
}

/// What a damaged body means to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnDamagedBody {
    /// It is copied as it is.
    Copy,
    /// There is no copy: who asks for one relies on all of it.
    Fail,
}

impl DamagedBodies {
    pub(super) fn note(
        &mut self,
        info: &DocumentInfo<'_>,
        copy_position: u64,
        error: StorageError,
    ) {
        self.count += 1;
        if self.listed.len() < LISTED_MAX {
            let key = disk_document::key_of(info).map(|key| format!("{key:?}"));
            let document = key.unwrap_or_else(|| info.id.escape_ascii().to_string());
            let seqno = Seqno(info.seqno);
            self.listed.push(DamagedBody { document, seqno, error, copy_position });
        }
    }
}
