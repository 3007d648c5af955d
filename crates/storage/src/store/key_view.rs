//! A vBucket's documents at one moment, in the order of their keys: those of the file, and over
//! them what the journal has and the file has not.

use std::ops::ControlFlow;
use std::sync::Arc;

use document::{CollectionId, Item, Key, Seqno, Vbid, expiry};

use crate::couchstore::{BodyReader, DocumentInfo};
use crate::error::StorageError;
use crate::locks::lock;
use crate::records::{collection_statistics, disk_document};
use crate::store::Store;
use crate::store::vbucket_file::Snapshot;

/// What was durable of a vBucket at one moment. It stays readable whatever is committed, compacted
/// or deleted after it, and keeps the file open, and what waited for the file in memory, until it
/// is dropped.
#[derive(Default)]
pub struct KeyView {
    file: Option<Arc<Snapshot>>,
    /// What waited for the file: of each key the newest version, in the order of encoded keys.
    /// Prepares and aborts are left out.
    waiting: Vec<Item>,
    high_seqno: Seqno,
}

/// A document, or a tombstone, under its key.
pub struct KeyViewEntry<'e, 'f>(Place<'e, 'f>);

enum Place<'e, 'f> {
    File(&'e DocumentInfo<'e>, &'e mut BodyReader<'f>),
    Journal(&'e Item),
}

impl Store {
    /// What is durable of a vBucket. Waits for who writes the vBucket's file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn key_view(&self, vbid: Vbid) -> Result<KeyView, StorageError> {
        let entry = self.entry_or_new(vbid);
        // While nobody writes the file, nothing goes from the journal to it.
        let _writing = lock(&entry.writer);
        let waiting = self.look_at_backlog(vbid, |pending| {
            (pending.items.clone(), pending.high_seqno(), pending.deletes)
        });
        let (items, waiting_seqno, replaces) = waiting.unwrap_or_default();
        // A deletion waits for the file: what that still holds does not count.
        let file = if replaces { None } else { self.snapshot_of(&entry)? };
        let file_seqno = file.as_ref().map_or(Seqno(0), |found| Seqno(found.header.high_seqno));
        let high_seqno = file_seqno.max(waiting_seqno);
        Ok(KeyView { file, waiting: newest_by_key(items), high_seqno })
    }

    /// Bytes in memory of what the journal has for a vBucket and its file has not.
    pub fn unapplied_bytes(&self, vbid: Vbid) -> u64 {
        self.look_at_backlog(vbid, |pending| pending.bytes).unwrap_or(0)
    }
}

fn newest_by_key(mut items: Vec<Item>) -> Vec<Item> {
    items.retain(|item| !item.operation().is_prepared());
    // Of equal keys the first stays: the newest.
    items.sort_unstable_by(|one, other| {
        one.key().cmp(&other.key()).then(other.seqno().cmp(&one.seqno()))
    });
    items.dedup_by(|later, first| later.key() == first.key());
    items
}

impl KeyView {
    /// The last seqno in it.
    pub fn high_seqno(&self) -> Seqno {
        self.high_seqno
    }

    /// Documents alive in a collection, those counted twice that wait for the file and are in it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn item_count(&self, collection: CollectionId) -> Result<u64, StorageError> {
        let is_counted = |item: &&Item| !item.is_deleted() && item.key().collection() == collection;
        let waiting = self.waiting.iter().filter(is_counted).count();
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        let Some(snapshot) = &self.file else { return Ok(waiting) };
        let mut reader = snapshot.file.reader(&snapshot.header);
        let in_file = collection_statistics::read(&mut reader, collection)?.item_count;
        Ok(in_file.saturating_add(waiting))
    }

    /// Whether the last change of some key is the one at `seqno`. Prepares and aborts are none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn has_change(&self, seqno: Seqno) -> Result<bool, StorageError> {
        if self.waiting.iter().any(|item| item.seqno() == seqno) {
            return Ok(true);
        }
        let Some(snapshot) = &self.file else { return Ok(false) };
        let mut is_there = false;
        let mut reader = snapshot.file.reader(&snapshot.header);
        let _flow = reader.scan_by_seqno(seqno.0, |info, _| {
            // A newer version waits for the file: then this is not the last change of its key.
            let is_overlaid = || {
                let found = self.waiting.binary_search_by(|item| item.key().encoded().cmp(info.id));
                found.is_ok()
            };
            is_there = info.seqno == seqno.0 && !disk_document::is_prepare(info) && !is_overlaid();
            Ok(ControlFlow::Break(()))
        })?;
        Ok(is_there)
    }

    /// Visits what has encoded keys from `from` on and in front of `to`, tombstones included, keys
    /// rising, until `visit` breaks. Between the prefixes of two collections no prepares lie.
    ///
    /// # Errors
    /// The file cannot be read, or what `visit` said.
    pub fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        mut visit: impl FnMut(&mut KeyViewEntry<'_, '_>) -> Result<ControlFlow<()>, StorageError>,
    ) -> Result<(), StorageError> {
        let first = self.waiting.partition_point(|item| item.key().encoded() < from);
        let waiting = self.waiting.get(first..).unwrap_or_default().iter();
        let mut waiting = waiting.take_while(|item| item.key().encoded() < to).peekable();
        let mut flow = ControlFlow::Continue(());
        if let Some(snapshot) = &self.file {
            let mut reader = snapshot.file.reader(&snapshot.header);
            let _end = reader.scan_by_id(from, |info, bodies| {
                if info.id >= to {
                    return Ok(ControlFlow::Break(()));
                }
                while let Some(item) = waiting.next_if(|item| item.key().encoded() < info.id) {
                    flow = visit(&mut KeyViewEntry(Place::Journal(item)))?;
                    if flow.is_break() {
                        return Ok(flow);
                    }
                }
                // Where both have a key, what waits for the file is newer.
                let newer = waiting.next_if(|item| item.key().encoded() == info.id);
                let place = newer.map_or(Place::File(info, bodies), Place::Journal);
                flow = visit(&mut KeyViewEntry(place))?;
                Ok(flow)
            })?;
        }
        while flow.is_continue()
            && let Some(item) = waiting.next()
        {
            flow = visit(&mut KeyViewEntry(Place::Journal(item)))?;
        }
        Ok(())
    }
}

impl<'e> KeyViewEntry<'e, '_> {
    /// The key.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] for what cannot be one.
    #[inline]
    pub fn key(&self) -> Result<Key<'e>, StorageError> {
        match &self.0 {
            Place::File(info, bodies) => disk_document::checked_key(info.id)
                .ok_or_else(|| bodies.corrupt(info.body_position, "an id that is no key")),
            Place::Journal(item) => Ok(item.key()),
        }
    }

    /// Whether it is a document whose time is not over at `now_seconds`, in seconds since 1970.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] for metadata that is not understood.
    #[inline]
    pub fn is_live(&self, now_seconds: u32) -> Result<bool, StorageError> {
        let (is_deleted, expiry) = match &self.0 {
            Place::File(info, bodies) => {
                let expiry = disk_document::expiry_of(info).ok_or_else(|| {
                    bodies.corrupt(info.body_position, "rev meta of unknown size")
                })?;
                (info.deleted, expiry)
            }
            Place::Journal(item) => (item.is_deleted(), item.expiry()),
        };
        Ok(!is_deleted && !expiry::is_past(expiry, now_seconds))
    }

    /// The document with its value.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn item(&mut self) -> Result<Item, StorageError> {
        match &mut self.0 {
            Place::File(info, bodies) => disk_document::to_item(info, bodies, true),
            Place::Journal(item) => Ok((*item).clone()),
        }
    }
}
