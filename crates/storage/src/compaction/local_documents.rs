//! The local documents of a copy: what the source says, with what the copy has left out taken into
//! account.

use std::collections::BTreeMap;

use document::{CollectionId, Seqno};
use serde_json::Value;

use super::purge::PurgeFilter;
use crate::couchstore::{LocalEdit, Reader};
use crate::error::StorageError;
use crate::records::collection_statistics::{self, CollectionStatistics};
use crate::records::dropped_collections::{self, DROPPED_COLLECTIONS, DroppedCollection};
use crate::records::vbucket_record::{VBSTATE, VbucketRecord};

/// Local documents by name.
pub(super) type LocalDocuments = BTreeMap<Vec<u8>, Vec<u8>>;

/// Prepares in a file, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prepares {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// How the local documents of a copy differ from those of its source.
#[derive(Default)]
pub(super) struct Differences {
    /// Prepares in the copy.
    pub(super) prepares: Prepares,
    /// Dropped collections of which nothing is in the copy and nothing can come.
    pub(super) finished: Vec<DroppedCollection>,
}

/// All local documents of a state.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<LocalDocuments, StorageError> {
    let mut documents = LocalDocuments::new();
    reader.local_documents(|id, content| {
        documents.insert(id.to_vec(), content.to_vec());
    })?;
    Ok(documents)
}

/// The vBucket's state, as far as it is understood.
pub(super) fn record(documents: &LocalDocuments, high_seqno: u64) -> Option<VbucketRecord> {
    VbucketRecord::decode(documents.get(VBSTATE)?, Seqno(high_seqno))
}

/// The collections that a file says are gone.
pub(super) fn dropped(documents: &LocalDocuments) -> Vec<DroppedCollection> {
    let content = documents.get(DROPPED_COLLECTIONS);
    content.and_then(|content| dropped_collections::decode(content)).unwrap_or_default()
}

/// The statistics of collections in a copy that has just left something out.
pub(super) fn statistics_after(
    source: &LocalDocuments,
    filter: &PurgeFilter<'_>,
) -> Vec<LocalEdit> {
    let mut edits = Vec::new();
    for (id, content) in source.iter().filter(|(id, _)| is_statistics(id)) {
        let after = match collection_of_statistics(id) {
            Some(collection) => statistics(content, collection, filter),
            None => Some(content.clone()),
        };
        edits.extend(after.map(|content| LocalEdit { id: id.clone(), content: Some(content) }));
    }
    edits
}

fn statistics(
    content: &[u8],
    collection: CollectionId,
    filter: &PurgeFilter<'_>,
) -> Option<Vec<u8>> {
    // The two numbers of old files stay: whoever needs three counts them.
    let Some(before) = CollectionStatistics::decode(content) else { return Some(content.to_vec()) };
    if filter.is_gone(collection, before.high_seqno) {
        return None;
    }
    let purged = filter.tally.collections.get(&collection).copied().unwrap_or_default();
    let after = CollectionStatistics {
        item_count: before.item_count.saturating_sub(purged.item_count),
        disk_size: before.disk_size.saturating_sub(purged.disk_size),
        ..before
    };
    Some(after.encode())
}

/// What makes the local documents of a copy those of its source, but for the differences that
/// there have to be. Statistics of collections are left alone: a copy counts what it holds.
pub(super) fn edits(
    source: &LocalDocuments,
    copy: &LocalDocuments,
    differences: &Differences,
) -> Vec<LocalEdit> {
    let mut edits = Vec::new();
    for (id, content) in source.iter().filter(|(id, _)| !is_statistics(id)) {
        let content = match id.as_slice() {
            VBSTATE => Some(with_prepares(content, differences.prepares)),
            DROPPED_COLLECTIONS => without_finished(content, &differences.finished),
            _ => Some(content.clone()),
        };
        if copy.get(id) != content.as_ref() {
            edits.push(LocalEdit { id: id.clone(), content });
        }
    }
    let is_gone = |id: &&Vec<u8>| !is_statistics(id) && !source.contains_key(*id);
    let gone = copy.keys().filter(is_gone);
    edits.extend(gone.map(|id| LocalEdit { id: id.clone(), content: None }));
    edits
}

/// A vBucket's state that tells of other prepares. Whatever else it says stays, whoever wrote it.
fn with_prepares(content: &[u8], prepares: Prepares) -> Vec<u8> {
    let Ok(Value::Object(mut state)) = serde_json::from_slice::<Value>(content) else {
        return content.to_vec();
    };
    let numbers = [("on_disk_prepares", prepares.count), ("on_disk_prepare_bytes", prepares.bytes)];
    let said = |name: &str| match state.get(name) {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(number) => number.as_u64().unwrap_or(0),
        None => 0,
    };
    if numbers.iter().all(|(name, number)| said(name) == *number) {
        return content.to_vec();
    }
    for (name, number) in numbers {
        state.insert(name.to_owned(), Value::String(number.to_string()));
    }
    serde_json::to_vec(&state).expect("what was JSON is JSON")
}

/// The dropped collections that are not finished; `None` if there are none.
fn without_finished(content: &[u8], finished: &[DroppedCollection]) -> Option<Vec<u8>> {
    let Some(mut all) = dropped_collections::decode(content) else { return Some(content.to_vec()) };
    let count = all.len();
    all.retain(|entry| !finished.contains(entry));
    match all.len() {
        left if left == count => Some(content.to_vec()),
        0 => None,
        _ => Some(dropped_collections::encode(&all)),
    }
}

fn is_statistics(id: &[u8]) -> bool {
    id.starts_with(b"|0x")
}

fn collection_of_statistics(id: &[u8]) -> Option<CollectionId> {
    let digits = std::str::from_utf8(id.strip_prefix(b"|0x")?.strip_suffix(b"|")?).ok()?;
    let collection = CollectionId(u32::from_str_radix(digits, 16).ok()?);
    // As it would be written: no sign, no leading zeros.
    (collection_statistics::local_id(collection) == id).then_some(collection)
}

/// The highest seqno of a collection by a state's own statistics.
pub(super) fn high_seqno_of(documents: &LocalDocuments, collection: CollectionId) -> Option<u64> {
    let content = documents.get(&collection_statistics::local_id(collection))?;
    CollectionStatistics::decode(content).map(|statistics| statistics.high_seqno)
}
