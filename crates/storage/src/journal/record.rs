//! What groups carry: batches of vBuckets, deletions and rollbacks of vBuckets, and where their
//! files are.
//!
//! ```text
//! record, begins at a multiple of 8 of the payload:     item:
//!  0  4 bytes, padding included                          0  6 seqno
//!  4  1 type: 1 batch, 2 delete,                         6  6 revision
//!       3 witnesses, 4 rollback
//!  5  1 bit 0: the batch supersedes what was before     12  1 content meta, as in files
//!  6  2 vBucket                                         13  1 bits: 0 deleted, 1 has a body
//! batch only:                                           14  1 bytes of rev meta
//!  8  8 previous seqno                                  15  2 bytes of the id
//! 16  4 items                                           17  4 bytes of the body
//! 20  4 bytes of the state                              21    id, rev meta, body (as it is in
//! 24    items, state, zeros                                   memory: files may compress it)
//! ```
//!
//! A rollback is laid out like a batch without items: its seqno is the one that is left. Witnesses
//! (the vBucket in the head is 0): 8: 4 count; 12: each 2 vBucket, 6 revision, 6 position of the
//! header, 6 high seqno, 8 branch or 0.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use document::{Item, Seqno, VbUuid, Vbid};

use crate::couchstore::bytes::{Fields, U48_MAX, index, length};
use crate::couchstore::{DocumentInfo, NewDocument};
use crate::journal::encoder::Encoder;
use crate::journal::options::Room;
use crate::journal::state;
use crate::records::disk_document;
use crate::records::vbucket_record::VbucketRecord;
use crate::store::witness::Witness;

const BATCH: u8 = 1;
const DELETE: u8 = 2;
const WITNESSES: u8 = 3;
const ROLLBACK: u8 = 4;
const SUPERSEDES: u8 = 1;
const DELETED: u8 = 1;
const HAS_BODY: u8 = 2;

/// Records begin at multiples of this.
const ALIGNMENT: usize = 8;

/// Bytes in front of a record's own.
const HEAD_SIZE: usize = 8;

/// Bytes in front of a batch's items.
const BATCH_HEAD_SIZE: usize = 24;

/// Bytes in front of witnesses, and of each.
const WITNESSES_HEAD_SIZE: usize = 12;
const WITNESS_SIZE: usize = 28;

/// Bytes in front of an item's id.
const ITEM_HEAD_SIZE: usize = 21;

/// What is to become durable.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// Items and state of a vBucket.
    Batch {
        /// The vBucket.
        vbid: Vbid,
        /// The seqno that the vBucket had reached before these items.
        previous_seqno: Seqno,
        /// Whether what the vBucket held before is replaced.
        supersedes: bool,
        /// Not ejected, each key once.
        items: &'a [Item],
        /// The state as of the last of the items.
        state: &'a VbucketRecord,
    },
    /// The vBucket is gone, with everything before this.
    Delete {
        /// The vBucket.
        vbid: Vbid,
    },
    /// The vBucket's file is about to go back. It has, if it says that it is up to this record.
    Rollback {
        /// The vBucket.
        vbid: Vbid,
        /// The last seqno that is left.
        seqno: Seqno,
        /// The state then.
        state: &'a VbucketRecord,
    },
    /// Where files were when this was written.
    Witnesses(&'a [Witness]),
}

/// What was durable.
#[derive(Clone, Debug)]
pub enum ReplayedRecord {
    /// Items and state of a vBucket.
    Batch {
        /// The vBucket.
        vbid: Vbid,
        /// The seqno that the vBucket had reached before these items.
        previous_seqno: Seqno,
        /// Whether what the vBucket held before is replaced.
        supersedes: bool,
        /// In the order in which they were handed in.
        items: Vec<Item>,
        /// The state as of the last of the items.
        state: Box<VbucketRecord>,
    },
    /// The vBucket is gone, with everything before this.
    Delete {
        /// The vBucket.
        vbid: Vbid,
    },
    /// The vBucket's file was about to go back. It has, if it says that it is up to this record.
    Rollback {
        /// The vBucket.
        vbid: Vbid,
        /// The last seqno that is left.
        seqno: Seqno,
        /// The state then.
        state: Box<VbucketRecord>,
    },
    /// Where files were when this was written.
    Witnesses(Vec<Witness>),
}

impl Record<'_> {
    /// How far the journal may be filled for it.
    pub(super) fn room(&self) -> Room {
        match self {
            Self::Batch { supersedes: false, items: [], .. } => Room::WithReserve,
            Self::Batch { supersedes: false, .. } => Room::Usual,
            _ => Room::Unlimited,
        }
    }

    /// Its bytes, padding included.
    pub(super) fn encoded_size(&self) -> usize {
        let bytes = match self {
            Self::Delete { .. } => HEAD_SIZE,
            Self::Rollback { state, .. } => {
                BATCH_HEAD_SIZE.saturating_add(state::encoded_size(state))
            }
            Self::Witnesses(witnesses) => {
                WITNESSES_HEAD_SIZE.saturating_add(witnesses.len().saturating_mul(WITNESS_SIZE))
            }
            Self::Batch { items, state, .. } => {
                let item_bytes: usize = items
                    .iter()
                    .map(|item| ITEM_HEAD_SIZE.saturating_add(disk_document::encoded_size(item)))
                    .sum();
                let head_and_state = BATCH_HEAD_SIZE.saturating_add(state::encoded_size(state));
                head_and_state.saturating_add(item_bytes)
            }
        };
        bytes.next_multiple_of(ALIGNMENT)
    }

    /// Appends the record, whose bytes are [`Record::encoded_size`].
    pub(super) fn encode(&self, encoded_size: usize, target: &mut Encoder<'_>) {
        let start = target.position();
        assert!(start.is_multiple_of(ALIGNMENT), "records begin aligned");
        let (kind, flags) = match self {
            Self::Delete { .. } => (DELETE, 0),
            Self::Rollback { .. } => (ROLLBACK, 0),
            Self::Witnesses(_) => (WITNESSES, 0),
            Self::Batch { supersedes, .. } => (BATCH, if *supersedes { SUPERSEDES } else { 0 }),
        };
        let vbid = match self {
            Self::Delete { vbid } | Self::Batch { vbid, .. } | Self::Rollback { vbid, .. } => *vbid,
            Self::Witnesses(_) => Vbid(0),
        };
        target.put(&size(encoded_size).to_be_bytes());
        target.put(&[kind, flags]);
        target.put(&vbid.0.to_be_bytes());
        match self {
            Self::Delete { .. } => {}
            Self::Batch { previous_seqno, items, state, .. } => {
                put_batch(target, *previous_seqno, items, state);
            }
            Self::Rollback { seqno, state, .. } => put_batch(target, *seqno, &[], state),
            Self::Witnesses(witnesses) => {
                target.put(&size(witnesses.len()).to_be_bytes());
                witnesses.iter().for_each(|witness| put_witness(target, witness));
            }
        }
        let end = target.position().next_multiple_of(ALIGNMENT);
        target.append(end.saturating_sub(target.position())).fill(0);
        let bytes = target.position().saturating_sub(start);
        assert_eq!(bytes, encoded_size, "a record has the size that its head says");
    }
}

fn put_batch(
    target: &mut Encoder<'_>,
    previous_seqno: Seqno,
    items: &[Item],
    state: &VbucketRecord,
) {
    target.put(&previous_seqno.0.to_be_bytes());
    target.put(&size(items.len()).to_be_bytes());
    target.put(&size(state::encoded_size(state)).to_be_bytes());
    for item in items {
        put_item(target, &disk_document::from_item(item));
        target.let_go();
    }
    state::encode(state, target);
}

fn put_witness(target: &mut Encoder<'_>, witness: &Witness) {
    target.put(&witness.vbid.0.to_be_bytes());
    for number in [witness.revision, witness.header_position, witness.high_seqno.0] {
        // Only the revision in a made-up name can be higher: it counts as a later one then.
        let [_, _, low @ ..] = number.min(U48_MAX).to_be_bytes();
        target.put(&low);
    }
    target.put(&witness.branch.map_or(0, |uuid| uuid.0).to_be_bytes());
}

fn put_item(target: &mut Encoder<'_>, document: &NewDocument<'_>) {
    let deleted = if document.deleted { DELETED } else { 0 };
    let has_body = if document.body.is_some() { HAS_BODY } else { 0 };
    let body = document.body.unwrap_or_default();
    let rev_meta = document.rev_meta.as_slice();
    let id_size = u16::try_from(document.id.len()).expect("an id has at most 252 bytes");
    let meta_size = u8::try_from(rev_meta.len()).expect("rev meta has at most 25 bytes");
    // Number by number into the target would check its room each time.
    let fields = u128::from(document.seqno) << 80
        | u128::from(document.rev_seqno) << 32
        | u128::from(document.content_meta) << 24
        | u128::from(deleted | has_body) << 16
        | u128::from(meta_size) << 8;
    let mut head = [0; ITEM_HEAD_SIZE];
    head[..16].copy_from_slice(&fields.to_be_bytes());
    head[15..17].copy_from_slice(&id_size.to_be_bytes());
    head[17..].copy_from_slice(&size(body.len()).to_be_bytes());
    let parts = [&head, &*document.id, rev_meta, body];
    let bytes = parts.iter().fold(0_usize, |bytes, part| bytes.saturating_add(part.len()));
    let mut room = target.append(bytes);
    for part in parts {
        let first = room.split_off_mut(..part.len()).expect("the room is for all parts");
        first.copy_from_slice(part);
    }
}

fn size(count: usize) -> u32 {
    u32::try_from(count).expect("a record has less than 4 GiB")
}

/// A record as it lies in a payload, checked for its extent only.
#[derive(Clone, Copy)]
pub(crate) struct RawRecord<'a> {
    kind: u8,
    flags: u8,
    pub(crate) vbid: Vbid,
    /// Behind the head.
    content: &'a [u8],
    /// Bytes with head and padding.
    pub(crate) bytes: u32,
}

/// A batch as it lies in a payload: its items are still to be read.
#[derive(Clone, Copy)]
pub(crate) struct RawBatch<'a> {
    pub(crate) previous_seqno: Seqno,
    pub(crate) supersedes: bool,
    pub(crate) item_count: u32,
    state_size: u32,
    rest: Fields<'a>,
}

/// The content of a record.
pub(crate) enum RawContent<'a> {
    Batch(RawBatch<'a>),
    Delete,
    /// A batch without items, behind the last seqno that is left.
    Rollback(RawBatch<'a>),
    Witnesses(Vec<Witness>),
}

/// One document of a batch.
#[derive(Clone, Copy)]
pub(crate) struct RawItem<'a> {
    /// With [`BODY_PRESENT`] as its position if there is a body.
    pub(crate) info: DocumentInfo<'a>,
    pub(crate) body: Option<&'a [u8]>,
}

/// Stands in [`DocumentInfo::body_position`] for a body that is beside it.
const BODY_PRESENT: u64 = 1;

impl<'a> RawRecord<'a> {
    /// Takes the first record off a payload; `None` if it is not whole.
    pub(crate) fn take(payload: &mut Fields<'a>) -> Option<Self> {
        let mut head = Fields::new(payload.rest());
        let bytes = head.u32()?;
        let kind = head.u8()?;
        let flags = head.u8()?;
        let vbid = Vbid(head.u16()?);
        let whole = payload.take(index(bytes.into()))?;
        let content = whole.get(HEAD_SIZE..)?;
        let is_aligned = whole.len().is_multiple_of(ALIGNMENT);
        is_aligned.then_some(Self { kind, flags, vbid, content, bytes })
    }

    /// What kind of record it is.
    pub(crate) fn content(&self) -> Option<RawContent<'a>> {
        match (self.kind, self.flags) {
            (DELETE, 0) if self.content.is_empty() => Some(RawContent::Delete),
            (BATCH, flags) if flags & !SUPERSEDES == 0 => self.batch().map(RawContent::Batch),
            (ROLLBACK, 0) => {
                let batch = self.batch().filter(|batch| batch.item_count == 0);
                batch.map(RawContent::Rollback)
            }
            (WITNESSES, 0) => self.witnesses().map(RawContent::Witnesses),
            _ => None,
        }
    }

    fn batch(&self) -> Option<RawBatch<'a>> {
        let mut rest = Fields::new(self.content);
        Some(RawBatch {
            previous_seqno: Seqno(rest.number::<8>()?),
            supersedes: self.flags & SUPERSEDES != 0,
            item_count: rest.u32()?,
            state_size: rest.u32()?,
            rest,
        })
    }

    fn witnesses(&self) -> Option<Vec<Witness>> {
        let mut fields = Fields::new(self.content);
        let count = fields.u32()?;
        let mut witnesses = Vec::new();
        for _ in 0..count {
            witnesses.push(Witness {
                vbid: Vbid(fields.u16()?),
                revision: fields.number::<6>()?,
                header_position: fields.number::<6>()?,
                high_seqno: Seqno(fields.number::<6>()?),
                branch: Some(fields.number::<8>()?).filter(|uuid| *uuid != 0).map(VbUuid),
            });
        }
        is_padding(fields.rest()).then_some(witnesses)
    }

    /// The record with all that is in it; `None` if any of it is not understood.
    pub(crate) fn decode(&self) -> Option<ReplayedRecord> {
        let vbid = self.vbid;
        let mut batch = match self.content()? {
            RawContent::Batch(batch) => batch,
            RawContent::Delete => return Some(ReplayedRecord::Delete { vbid }),
            RawContent::Rollback(batch) => {
                let seqno = batch.previous_seqno;
                let state = Box::new(batch.state()?);
                return Some(ReplayedRecord::Rollback { vbid, seqno, state });
            }
            RawContent::Witnesses(witnesses) => {
                return Some(ReplayedRecord::Witnesses(witnesses));
            }
        };
        let mut items = Vec::new();
        for _ in 0..batch.item_count {
            let RawItem { info, body } = batch.next_item()?;
            items.push(disk_document::item_with_body(&info, body).ok()?);
        }
        let RawBatch { previous_seqno, supersedes, .. } = batch;
        let state = batch.state()?;
        let state = Box::new(state);
        Some(ReplayedRecord::Batch { vbid, previous_seqno, supersedes, items, state })
    }
}

impl<'a> RawBatch<'a> {
    /// Reads the next of the items.
    pub(crate) fn next_item(&mut self) -> Option<RawItem<'a>> {
        let fields = &mut self.rest;
        let seqno = fields.number::<6>()?;
        let rev_seqno = fields.number::<6>()?;
        let content_meta = fields.u8()?;
        let bits = fields.u8()?;
        let meta_size = fields.u8()?;
        let id_size = fields.u16()?;
        let body_size = fields.u32()?;
        let id = fields.take(id_size.into())?;
        let rev_meta = fields.take(meta_size.into())?;
        let body = fields.take(index(body_size.into()))?;
        let has_body = bits & HAS_BODY != 0;
        if bits & !(DELETED | HAS_BODY) != 0 || (!has_body && body_size > 0) {
            return None;
        }
        let info = DocumentInfo {
            id,
            seqno,
            rev_seqno,
            deleted: bits & DELETED != 0,
            content_meta,
            body_position: if has_body { BODY_PRESENT } else { 0 },
            body_size,
            rev_meta,
        };
        Some(RawItem { info, body: has_body.then_some(body) })
    }

    /// Bytes behind the items that have been read.
    pub(crate) fn rest_size(&self) -> u64 {
        length(self.rest.rest())
    }

    /// Reads the state, once all items are read.
    pub(crate) fn state(mut self) -> Option<VbucketRecord> {
        let state = self.rest.take(index(self.state_size.into()))?;
        if is_padding(self.rest.rest()) { state::decode(state) } else { None }
    }
}

/// Whether it is what fills up a record.
fn is_padding(rest: &[u8]) -> bool {
    rest.len() < ALIGNMENT && rest.iter().all(|byte| *byte == 0)
}
