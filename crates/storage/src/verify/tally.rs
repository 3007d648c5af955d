//! What the newest state holds, to be compared with what it says about itself, and whether single
//! documents are what a node could load.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use document::{CollectionId, Datatype, Map};

use super::findings::{Findings, Scope};
use super::state_record;
use crate::couchstore::{CouchFile, DocumentInfo, FileHeader};
use crate::error::StorageError;
use crate::records::collection_statistics::{
    CollectionStatistics, collection_of, is_system_event, local_id, take_leb128,
};
use crate::records::disk_document;
use crate::records::document_view::{MetadataView, StoredOperation};

/// What was counted.
#[derive(Default)]
pub(super) struct Tally {
    /// Documents alive, prepares left out, and what tells of scopes and collections counted in.
    pub(super) alive_count: u64,
    /// Those of them that tell of scopes and collections.
    pub(super) event_count: u64,
    pub(super) tombstone_count: u64,
    /// Prepares and aborts.
    pub(super) prepare_count: u64,
    pub(super) local_count: u64,
    /// The highest CAS of any document.
    pub(super) max_cas: u64,
    /// Documents alive by collection.
    collections: Map<CollectionId, u64>,
    /// What the file says about collections, by name of the local document.
    said: Map<Vec<u8>, CollectionStatistics>,
}

impl Tally {
    pub(super) fn note_document(&mut self, info: &DocumentInfo<'_>) {
        let kind = match (disk_document::is_prepare(info), info.deleted) {
            (true, _) => &mut self.prepare_count,
            (false, true) => &mut self.tombstone_count,
            (false, false) => &mut self.alive_count,
        };
        *kind = kind.saturating_add(1);
        if !info.deleted && is_system_event(info) {
            self.event_count = self.event_count.saturating_add(1);
        }
        let cas = MetadataView::decode(info.rev_meta).map_or(0, |metadata| metadata.cas);
        self.max_cas = self.max_cas.max(cas);
        if let Some(collection) = collection_of(info) {
            let count = self.collections.entry(collection).or_default();
            *count = count.saturating_add(u64::from(!info.deleted));
        }
    }

    pub(super) fn note_local(&mut self, id: &[u8], content: &[u8]) {
        self.local_count = self.local_count.saturating_add(1);
        if let Some(statistics) = CollectionStatistics::decode(content)
            && id.starts_with(b"|")
        {
            self.said.insert(id.to_vec(), statistics);
        }
    }

    /// Compares the counts with what the state says about itself.
    pub(super) fn check(
        &self,
        file: &CouchFile,
        header: &FileHeader,
        findings: &mut Findings,
    ) -> Result<(), StorageError> {
        if header.purge_seqno > header.high_seqno {
            let what = "the purge seqno is above the high seqno";
            findings.problem(Scope::CurrentState, header.position, what);
        }
        let mut collections: Vec<_> = self.collections.iter().collect();
        collections.sort_unstable();
        for (collection, alive) in collections {
            let said = self.said.get(&local_id(*collection));
            if let Some(said) = said.filter(|said| said.item_count != *alive) {
                let (collection, said) = (collection.0, said.item_count);
                let what = format!(
                    "collection {collection:#x} has {alive} documents; its statistics say {said}"
                );
                findings.warning(Scope::VbucketState, header.position, what);
            }
        }
        state_record::check(file, header, self, findings)
    }
}

/// Checks a document as a node would load it.
pub(super) fn check_document(info: &DocumentInfo<'_>, position: u64, findings: &mut Findings) {
    let seqno = info.seqno;
    let mut damage = |what: &str| findings.damage(position, format!("seqno {seqno}: {what}"));
    let is_prepare = disk_document::is_prepare(info);
    let encoded = if is_prepare { info.id.get(1..).unwrap_or_default() } else { info.id };
    if document::key::decode_collection(encoded).is_err() {
        damage("an id that is no key");
    }
    let Some(metadata) = MetadataView::decode(info.rev_meta) else {
        damage("metadata of unknown size");
        return;
    };
    if metadata.operation.is_some_and(StoredOperation::is_under_prepare_key) != is_prepare {
        damage("a prepare under the key of a document, or the other way round");
    }
    let mut warning = |what: &str| {
        findings.warning(Scope::CurrentState, position, format!("seqno {seqno}: {what}"));
    };
    if Datatype::from_bits(metadata.datatype).is_none() {
        warning("a datatype of undefined bits");
    }
    if !is_prepare && disk_document::checked_key(info.id).is_none() {
        warning("a key that is empty or too long");
    }
}

/// Checks a local document of the statistics of a collection.
pub(super) fn check_local(id: &[u8], content: &[u8], position: u64, findings: &mut Findings) {
    if !id.starts_with(b"|") {
        return;
    }
    let mut rest = content;
    let whole = take_leb128(&mut rest).is_some()
        && take_leb128(&mut rest).is_some()
        && (rest.is_empty() || take_leb128(&mut rest).is_some());
    if !whole {
        let what = format!("the statistics {:?} are no numbers", String::from_utf8_lossy(id));
        findings.damage(position, what);
    }
}
