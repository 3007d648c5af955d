//! What a file knows about each collection in it: local documents `|0x<hex id>|`, three LEB128
//! numbers (items, high seqno, bytes on disk), brought up to date with every commit.

use std::ops::{ControlFlow, RangeInclusive};

use document::key::decode_collection;
use document::{CollectionId, Map};

use crate::couchstore::{CouchFile, DocumentInfo, FileHeader, LocalEdit, Reader};
use crate::error::StorageError;
use crate::records::disk_document;

/// Collections of no client: in front of them is the default one, behind them are the others.
const SYSTEM_COLLECTIONS: RangeInclusive<u32> = 1..=7;

/// What a file knows about a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionStatistics {
    /// Documents alive.
    pub item_count: u64,
    /// The highest seqno of any change in it.
    pub high_seqno: u64,
    /// Bytes of bodies, ids and metadata, those of tombstones included.
    pub disk_size: u64,
}

/// How a commit changes a collection.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    items: i64,
    high_seqno: u64,
    disk_size: i64,
}

/// How a commit changes the collections that it touches.
#[derive(Default)]
pub(crate) struct CollectionChanges(Map<CollectionId, Change>);

impl CollectionChanges {
    /// Takes note of one document, written over `old`.
    pub(crate) fn note(&mut self, old: Option<&DocumentInfo<'_>>, new: &DocumentInfo<'_>) {
        let Some(collection) = collection_of(new) else { return };
        let change = self.0.entry(collection).or_default();
        let alive = |info: &DocumentInfo<'_>| i64::from(!info.deleted);
        let size = |info: &DocumentInfo<'_>| i64::try_from(info.disk_size()).unwrap_or(i64::MAX);
        change.items += alive(new) - old.map_or(0, alive);
        change.disk_size += size(new) - old.map_or(0, size);
        change.high_seqno = change.high_seqno.max(new.seqno);
    }

    /// The local documents that bring the file up to date. `reader` reads the state before.
    pub(crate) fn into_edits(
        self,
        reader: &mut Reader<'_>,
    ) -> Result<Vec<LocalEdit>, StorageError> {
        let mut edits = Vec::with_capacity(self.0.len() + 1);
        for (collection, change) in self.0 {
            let before = read(reader, collection)?;
            let after = CollectionStatistics {
                item_count: before.item_count.saturating_add_signed(change.items),
                high_seqno: before.high_seqno.max(change.high_seqno),
                disk_size: before.disk_size.saturating_add_signed(change.disk_size),
            };
            edits.push(LocalEdit { id: local_id(collection), content: Some(after.encode()) });
        }
        Ok(edits)
    }
}

/// What a file knows about a collection. A file that does not say is counted.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    collection: CollectionId,
) -> Result<CollectionStatistics, StorageError> {
    let content = reader.local(&local_id(collection))?;
    match content.as_deref().and_then(CollectionStatistics::decode) {
        Some(statistics) => Ok(statistics),
        None => count(reader, collection),
    }
}

fn count(
    reader: &mut Reader<'_>,
    collection: CollectionId,
) -> Result<CollectionStatistics, StorageError> {
    let mut statistics = CollectionStatistics::default();
    let mut prefix = Vec::new();
    put_leb128(&mut prefix, u64::from(collection.0));
    let _flow = reader.scan_by_id(&prefix, |info, _| {
        if !info.id.starts_with(&prefix) {
            return Ok(ControlFlow::Break(()));
        }
        statistics.item_count += u64::from(!info.deleted);
        statistics.high_seqno = statistics.high_seqno.max(info.seqno);
        statistics.disk_size = statistics.disk_size.saturating_add(info.disk_size());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(statistics)
}

/// How many there are in a state of a file, as clients count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentCounts {
    /// Documents alive, without what tells of scopes and collections, and without prepares.
    pub documents: u64,
    /// Tombstones, without prepares and aborts.
    pub tombstones: u64,
}

impl DocumentCounts {
    /// Counts them. Looks at what is left out alone.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when the tree is damaged there.
    pub fn of(file: &CouchFile, header: &FileHeader) -> Result<Self, StorageError> {
        let mut counts =
            Self { documents: header.alive_count(), tombstones: header.deleted_count() };
        let mut system = Vec::new();
        put_leb128(&mut system, u64::from(*SYSTEM_COLLECTIONS.start()));
        let _flow = file.reader(header).scan_by_id(&system, |info, _| {
            let is_prepare = disk_document::is_prepare(info);
            if !is_prepare && !is_system_event(info) {
                return Ok(ControlFlow::Break(()));
            }
            match (info.deleted, is_prepare) {
                (false, _) => counts.documents = counts.documents.saturating_sub(1),
                (true, true) => counts.tombstones = counts.tombstones.saturating_sub(1),
                (true, false) => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(counts)
    }
}

impl CollectionStatistics {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut content = Vec::new();
        for number in [self.item_count, self.high_seqno, self.disk_size] {
            put_leb128(&mut content, number);
        }
        content
    }

    /// `None` also for the two numbers of old files: they do not tell the size.
    pub(crate) fn decode(mut content: &[u8]) -> Option<Self> {
        let item_count = take_leb128(&mut content)?;
        let high_seqno = take_leb128(&mut content)?;
        let disk_size = take_leb128(&mut content)?;
        content.is_empty().then_some(Self { item_count, high_seqno, disk_size })
    }
}

/// The collection whose statistics a document counts in. System events and prepares count in none.
pub(crate) fn collection_of(info: &DocumentInfo<'_>) -> Option<CollectionId> {
    if disk_document::is_prepare(info) {
        return None;
    }
    let (collection, _) = decode_collection(info.id).ok()?;
    (!SYSTEM_COLLECTIONS.contains(&collection.0)).then_some(collection)
}

/// Whether it tells of a scope or a collection, and is no document.
pub(crate) fn is_system_event(info: &DocumentInfo<'_>) -> bool {
    let collection = decode_collection(info.id).map(|(collection, _)| collection);
    !disk_document::is_prepare(info)
        && collection.is_ok_and(|it| SYSTEM_COLLECTIONS.contains(&it.0))
}

pub(crate) fn local_id(collection: CollectionId) -> Vec<u8> {
    format!("|0x{:x}|", collection.0).into_bytes()
}

fn put_leb128(target: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        target.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    target.push((number & 0x7f) as u8);
}

pub(crate) fn take_leb128(content: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = content.split_first()?;
        *content = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_three_leb128_numbers() {
        let statistics =
            CollectionStatistics { item_count: 5, high_seqno: 300, disk_size: u64::MAX };
        let content = statistics.encode();
        assert_eq!(content[..3], [5, 0xac, 2]);
        assert_eq!(CollectionStatistics::decode(&content), Some(statistics));
        for length in 0..content.len() {
            assert_eq!(CollectionStatistics::decode(&content[..length]), None);
        }
        assert_eq!(local_id(CollectionId(0)), b"|0x0|");
        assert_eq!(local_id(CollectionId(0x3c)), b"|0x3c|");
    }
}
