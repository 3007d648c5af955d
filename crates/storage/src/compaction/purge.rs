//! What a compaction leaves out (docs/specification/engine.md, section 4.8).

use document::key::decode_collection;
use document::{CollectionId, Map, Seqno, Set};

use super::request::{CompactionRequest, Purged};
use crate::couchstore::{DocumentInfo, Verdict};
use crate::error::StorageError;
use crate::records::collection_statistics::{CollectionStatistics, collection_of};
use crate::records::disk_document;
use crate::records::dropped_collections::DroppedCollection;

/// Decides about the documents of one state of a file, and keeps count.
pub(super) struct PurgeFilter<'a> {
    request: &'a CompactionRequest,
    /// The highest seqno of the state.
    high_seqno: u64,
    /// Prepares up to here are completed.
    completed_seqno: Seqno,
    /// The documents of prepares that go to the new file.
    prepared: Set<Vec<u8>>,
    /// Documents of these collections up to these seqnos are gone.
    dropped: Map<CollectionId, Seqno>,
    /// The highest seqnos of collections, as far as they were asked for.
    collection_highs: Map<CollectionId, u64>,
    pub(super) tally: Tally,
}

/// What was left out.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) purged: Purged,
    /// The highest seqno of a tombstone or a document of a dropped collection among it.
    pub(super) purge_seqno: u64,
    /// Prepares that were alive, and their bytes.
    pub(super) prepares: u64,
    pub(super) prepare_bytes: u64,
    /// What it takes from the statistics of collections.
    pub(super) collections: Map<CollectionId, CollectionStatistics>,
}

/// Finds out the highest seqno of a collection.
pub(super) type HighSeqnoOf<'f> = dyn FnMut(CollectionId) -> Result<u64, StorageError> + 'f;

impl<'a> PurgeFilter<'a> {
    /// `dropped` are the collections that the file itself says are gone.
    pub(super) fn new(
        request: &'a CompactionRequest,
        high_seqno: u64,
        completed_seqno: Seqno,
        dropped: &[DroppedCollection],
    ) -> Self {
        let mut ends: Map<CollectionId, Seqno> = Map::default();
        for entry in request.dropped.iter().chain(dropped) {
            let end = ends.entry(entry.collection).or_default();
            *end = (*end).max(entry.end_seqno);
        }
        Self {
            request,
            high_seqno,
            completed_seqno,
            prepared: Set::default(),
            dropped: ends,
            collection_highs: Map::default(),
            tally: Tally::default(),
        }
    }

    /// Whether a document goes to the new file. Documents come in the order of their seqnos.
    pub(super) fn judge(
        &mut self,
        info: &DocumentInfo<'_>,
        high_seqno_of: &mut HighSeqnoOf<'_>,
    ) -> Result<Verdict, StorageError> {
        if self.is_in_dropped_collection(info) {
            self.tally.purged.of_dropped_collections += 1;
            self.tally.note(info);
            self.tally.purge_seqno = self.tally.purge_seqno.max(info.seqno);
            return Ok(Verdict::Drop);
        }
        if info.deleted {
            // A prepare with a newer version of its document behind it has ended. Without that it
            // would be taken for one that has not.
            let tells_of_end = self.prepared.contains(info.id);
            if tells_of_end
                || !self.is_old_tombstone(info)
                || self.is_highest(info, high_seqno_of)?
            {
                return Ok(Verdict::Keep);
            }
            self.tally.purged.tombstones += 1;
            self.tally.note(info);
            self.tally.purge_seqno = self.tally.purge_seqno.max(info.seqno);
            return Ok(Verdict::Drop);
        }
        if disk_document::is_prepare(info) {
            if info.seqno <= self.completed_seqno.0 {
                self.tally.purged.prepares += 1;
                self.tally.note(info);
                return Ok(Verdict::Drop);
            }
            self.prepared.extend(info.id.get(1..).map(<[u8]>::to_vec));
        }
        Ok(Verdict::Keep)
    }

    /// Whether a document that is kept is past its time.
    pub(super) fn is_expired(&self, info: &DocumentInfo<'_>) -> bool {
        let is_document = !info.deleted && collection_of(info).is_some();
        let expiry = disk_document::expiry_of(info).unwrap_or(0);
        is_document && expiry != 0 && expiry < self.request.now_seconds
    }

    /// Of the collections that the file says are gone, those of which nothing is left and nothing
    /// can come.
    pub(super) fn finished(&self, dropped: &[DroppedCollection]) -> Vec<DroppedCollection> {
        let is_finished = |entry: &&DroppedCollection| entry.end_seqno.0 <= self.high_seqno;
        dropped.iter().filter(is_finished).copied().collect()
    }

    /// Whether everything is gone that a collection ever had in the file.
    pub(super) fn is_gone(&self, collection: CollectionId, high_seqno: u64) -> bool {
        self.dropped.get(&collection).is_some_and(|end| high_seqno <= end.0)
    }

    fn is_in_dropped_collection(&self, info: &DocumentInfo<'_>) -> bool {
        if self.dropped.is_empty() {
            return false;
        }
        let Some(collection) = collection_of_any(info) else { return false };
        self.dropped.get(&collection).is_some_and(|end| info.seqno <= end.0)
    }

    fn is_old_tombstone(&self, info: &DocumentInfo<'_>) -> bool {
        if self.request.drop_deletes {
            return true;
        }
        // Nothing is known of metadata that nobody understands.
        let Some(deleted_at) = disk_document::expiry_of(info) else { return false };
        let is_old = deleted_at < self.request.purge_before_seconds;
        let is_believed = deleted_at != 0 || !self.request.retain_erroneous_tombstones;
        let before = self.request.purge_before_seqno.0;
        is_old && is_believed && (before == 0 || info.seqno <= before)
    }

    /// Whether the state's history, or its collection's, ends with a tombstone: then it stays, so
    /// that the file goes on knowing how far history has come.
    fn is_highest(
        &mut self,
        info: &DocumentInfo<'_>,
        high_seqno_of: &mut HighSeqnoOf<'_>,
    ) -> Result<bool, StorageError> {
        if info.seqno == self.high_seqno {
            return Ok(true);
        }
        let Some(collection) = collection_of_any(info) else { return Ok(false) };
        if let Some(high_seqno) = self.collection_highs.get(&collection) {
            return Ok(info.seqno == *high_seqno);
        }
        let high_seqno = high_seqno_of(collection)?;
        self.collection_highs.insert(collection, high_seqno);
        Ok(info.seqno == high_seqno)
    }
}

impl Tally {
    fn note(&mut self, info: &DocumentInfo<'_>) {
        if disk_document::is_prepare(info) && !info.deleted {
            self.prepares += 1;
            self.prepare_bytes = self.prepare_bytes.saturating_add(info.disk_size());
        }
        if let Some(collection) = collection_of(info) {
            let sum = self.collections.entry(collection).or_default();
            sum.item_count += u64::from(!info.deleted);
            sum.disk_size = sum.disk_size.saturating_add(info.disk_size());
        }
    }
}

/// The collection of a document, of a prepare or of an abort. System events are in none.
fn collection_of_any(info: &DocumentInfo<'_>) -> Option<CollectionId> {
    let id = if disk_document::is_prepare(info) { info.id.get(1..)? } else { info.id };
    let (collection, _) = decode_collection(id).ok()?;
    (!(1..=7).contains(&collection.0)).then_some(collection)
}
