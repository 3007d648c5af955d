//! `_local/collections/dropped`: collections that are dropped and whose documents are still in the
//! file. A FlatBuffer, as the original's server writes it:
//!
//! ```text
//! DroppedCollections { entries: [Dropped { start_seqno: u64, end_seqno: u64, collection: u32 }] }
//! ```
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use document::flat_buffer::FlatBuffer;
use document::manifest_event::collection_dropped_by;
use document::{CollectionId, Seqno};

use crate::couchstore::{DocumentInfo, LocalEdit, Reader};
use crate::error::StorageError;

/// The name of the local document.
pub(crate) const DROPPED_COLLECTIONS: &[u8] = b"_local/collections/dropped";

/// A collection that was dropped: its documents in this range of history are gone for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedCollection {
    /// Which. The same id can be made and dropped again.
    pub collection: CollectionId,
    /// Where it was made.
    pub start_seqno: Seqno,
    /// Where it was dropped.
    pub end_seqno: Seqno,
}

/// Reads the document; `None` if it is damaged.
pub(crate) fn decode(content: &[u8]) -> Option<Vec<DroppedCollection>> {
    let buffer = FlatBuffer(content);
    let Some(entries) = buffer.field(buffer.root()?, 0)? else { return Some(Vec::new()) };
    let vector = buffer.follow(entries)?;
    let count = buffer.u32(vector)?;
    let mut found = Vec::new();
    let mut at = vector;
    for _ in 0..count {
        at = at.checked_add(4)?;
        let table = buffer.follow(at)?;
        found.push(DroppedCollection {
            collection: CollectionId(buffer.field_u32(table, 2)?),
            start_seqno: Seqno(buffer.field_u64(table, 0)?),
            end_seqno: Seqno(buffer.field_u64(table, 1)?),
        });
    }
    Some(found)
}

/// The root with its table, in front of the vector of entries.
const ROOT: [u8; 20] =
    [12, 0, 0, 0, 6, 0, 8, 0, 4, 0, 0, 0, /* table */ 8, 0, 0, 0, 4, 0, 0, 0];

/// The layout of an entry: 10 bytes of layout, 24 of entry, and where the three fields are.
const ENTRY_LAYOUT: [u8; 10] = [10, 0, 24, 0, 8, 0, 16, 0, 4, 0];

const ENTRY_SIZE: usize = 24;

/// The document.
pub(crate) fn encode(dropped: &[DroppedCollection]) -> Vec<u8> {
    let small = |number: usize| u32::try_from(number).expect("fewer than 2^24 collections");
    let mut content = ROOT.to_vec();
    content.extend_from_slice(&small(dropped.len()).to_le_bytes());
    let offsets = content.len();
    let layout = offsets.saturating_add(dropped.len().saturating_mul(4));
    // Numbers of eight bytes lie at multiples of eight.
    let entries = layout.saturating_add(ENTRY_LAYOUT.len()).next_multiple_of(8);
    let starts =
        (0..dropped.len()).map(|index| entries.saturating_add(index.saturating_mul(ENTRY_SIZE)));
    for (index, start) in starts.clone().enumerate() {
        let from = offsets.saturating_add(index.saturating_mul(4));
        content.extend_from_slice(&small(start.saturating_sub(from)).to_le_bytes());
    }
    content.extend_from_slice(&ENTRY_LAYOUT);
    content.resize(entries, 0);
    for (entry, start) in dropped.iter().zip(starts) {
        content.extend_from_slice(&small(start.saturating_sub(layout)).to_le_bytes());
        content.extend_from_slice(&entry.collection.0.to_le_bytes());
        content.extend_from_slice(&entry.start_seqno.0.to_le_bytes());
        content.extend_from_slice(&entry.end_seqno.0.to_le_bytes());
    }
    content
}

/// The collections that a commit drops.
#[derive(Default)]
pub(crate) struct DropChanges(Vec<DroppedCollection>);

impl DropChanges {
    /// Takes note of one document, written over `old`: an event may say that a collection is gone.
    pub(crate) fn note(&mut self, old: Option<&DocumentInfo<'_>>, new: &DocumentInfo<'_>) {
        if !new.deleted {
            return;
        }
        let Some(collection) = collection_dropped_by(new.id) else { return };
        let created = old.filter(|old| !old.deleted).map_or(0, |old| old.seqno);
        let (start_seqno, end_seqno) = (Seqno(created), Seqno(new.seqno));
        self.0.push(DroppedCollection { collection, start_seqno, end_seqno });
    }

    /// The local document that says so; none if nothing is dropped. `reader` reads the state
    /// before.
    pub(crate) fn into_edit(
        self,
        reader: &mut Reader<'_>,
    ) -> Result<Option<LocalEdit>, StorageError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let before = reader.local(DROPPED_COLLECTIONS)?;
        let mut all = before.as_deref().and_then(decode).unwrap_or_default();
        all.extend(self.0);
        let content = Some(encode(&all));
        Ok(Some(LocalEdit { id: DROPPED_COLLECTIONS.to_vec(), content }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(collection: u32, start: u64, end: u64) -> DroppedCollection {
        DroppedCollection {
            collection: CollectionId(collection),
            start_seqno: Seqno(start),
            end_seqno: Seqno(end),
        }
    }

    #[test]
    fn dropped_collections_read_back_and_no_damage_panics() {
        let all = [dropped(8, 1, 5), dropped(9, u64::MAX, 0), dropped(8, 6, 7)];
        for count in 0..=all.len() {
            let content = encode(&all[..count]);
            assert_eq!(decode(&content).as_deref(), Some(&all[..count]));
            for length in 0..content.len() {
                drop(decode(&content[..length]));
            }
            for at in 0..content.len() {
                let mut damaged = content.clone();
                damaged[at] ^= 0xff;
                drop(decode(&damaged));
            }
        }
    }

    #[test]
    fn what_other_writers_lay_out_differently_is_read() {
        // Entries before the vector, default values left out, fields in another order.
        let mut content = vec![40, 0, 0, 0];
        content.extend_from_slice(&[0; 4]);
        content.extend_from_slice(&[8, 0, 16, 0, 0, 0, 4, 0]); // 8: layout without start and id
        content.extend_from_slice(&[8, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0]); // 16: entry
        content.extend_from_slice(&[0; 4]);
        content.extend_from_slice(&[6, 0, 8, 0, 4, 0, 0, 0]); // 32: layout of the root table
        content.extend_from_slice(&[8, 0, 0, 0, 4, 0, 0, 0]); // 40: root table
        content.extend_from_slice(&[1, 0, 0, 0]); // 48: one entry
        content.extend_from_slice(&(16_u32.wrapping_sub(52)).to_le_bytes());
        // Offsets lead forward only: this is damage.
        assert_eq!(decode(&content), None);
        let entry_at = u32::try_from(content.len()).unwrap();
        content[52..56].copy_from_slice(&(entry_at - 52).to_le_bytes());
        content.extend_from_slice(&(entry_at - 8).to_le_bytes());
        content.extend_from_slice(&77_u64.to_le_bytes());
        assert_eq!(decode(&content), Some(vec![dropped(0, 0, 77)]));
    }
}
