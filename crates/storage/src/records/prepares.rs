//! How many prepares a file holds: its state says it, and only the commit knows what it replaces.

use serde::Deserialize;

use crate::couchstore::{DocumentInfo, Reader};
use crate::error::StorageError;
use crate::records::disk_document;
use crate::records::vbucket_record::{Text, VBSTATE, VbucketRecord};

/// How a commit changes the prepares of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrepareChanges {
    count: i64,
    bytes: i64,
}

/// The two numbers of a state that count prepares: the others are not looked at.
#[derive(Default, Deserialize)]
struct Counts {
    #[serde(default)]
    on_disk_prepares: Text<u64>,
    #[serde(default)]
    on_disk_prepare_bytes: Text<u64>,
}

impl PrepareChanges {
    /// Takes note of one document, written over `old`. Aborts are tombstones and count as none.
    pub(crate) fn note(&mut self, old: Option<&DocumentInfo<'_>>, new: &DocumentInfo<'_>) {
        if !disk_document::is_prepare(new) {
            return;
        }
        let size = |info: &DocumentInfo<'_>| i64::try_from(info.disk_size()).unwrap_or(i64::MAX);
        let old = old.filter(|old| !old.deleted);
        let new = Some(new).filter(|new| !new.deleted);
        self.count += i64::from(new.is_some()) - i64::from(old.is_some());
        self.bytes += new.map_or(0, size) - old.map_or(0, size);
    }

    /// Puts what there is after the commit into `state`. `reader` reads the state before it.
    pub(crate) fn apply(
        self,
        reader: &mut Reader<'_>,
        state: &mut VbucketRecord,
    ) -> Result<(), StorageError> {
        let text = reader.local(VBSTATE)?.unwrap_or_default();
        let before: Counts = serde_json::from_slice(&text).unwrap_or_default();
        // A file that counted wrong before does not go below nothing.
        state.on_disk_prepares = before.on_disk_prepares.0.saturating_add_signed(self.count);
        state.on_disk_prepare_bytes =
            before.on_disk_prepare_bytes.0.saturating_add_signed(self.bytes);
        Ok(())
    }
}
