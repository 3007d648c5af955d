//! Headers of segments and groups, byte for byte.
//!
//! ```text
//! segment header, one block:           group header, begins on a block:
//!  0  4 magic "SJS1"                    0  4 magic "SJG1"
//!  4  2 version, 2                      4  4 bytes: this header and the payload
//!  6  2 bit 0: begins with a copy        8  8 lsn
//!  8  8 journal id                     16  8 salt of the segment
//! 16  8 number of the segment          24  8 lsn that was durable when this was written
//! 24  8 salt, random                   32  4 records
//! 32  8 first lsn                      36  4 CRC of the group before
//! 40  8 made at, ns since 1970         40  8 written at, ns since 1970
//! 48  8 bytes of the segment           48  4 flags, 0
//! 56  4 lsns skipped in front          52  4 CRC-32C of header (this field 0) and payload
//! 60  4 CRC-32C of the 60 bytes        56  8 0
//! 64    zeros                          64    payload: records; zeros up to the next block
//! ```
//! Version 1 skips none, and its groups have no witnesses and no rollbacks.
//! All numbers are big-endian. All of a segment's header that is not zero lies in its first 512
//! bytes: a device writes those whole or not at all.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use platform::AlignedBuffer;

use crate::couchstore::bytes::{Fields, index, length};
use crate::journal::options::{JournalId, Lsn};

/// Groups begin at multiples of this: what is durable shares no block with what is written next.
pub(crate) const BLOCK_SIZE: u64 = 4096;

/// Bytes of a segment's header; the first group follows.
pub(crate) const SEGMENT_HEADER_SIZE: u64 = BLOCK_SIZE;

/// Bytes of a group's header.
pub(crate) const GROUP_HEADER_SIZE: usize = 64;

const SEGMENT_MAGIC: u32 = u32::from_be_bytes(*b"SJS1");
const GROUP_MAGIC: u32 = u32::from_be_bytes(*b"SJG1");
const VERSION: u16 = 2;
const VERSION_WITHOUT_WITNESSES: u16 = 1;
const BEGINS_WITH_COPY: u16 = 1;

/// Numbers of segments and groups, at most: there is always a next one.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

/// Bytes of a segment's header that are not zero.
const SEGMENT_FIELDS_SIZE: usize = 64;
const SEGMENT_CRC_AT: usize = 60;
const GROUP_CRC_AT: usize = 52;

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) id: JournalId,
    /// The one in its name.
    pub(crate) number: u64,
    /// In all of its groups, and in no other segment's.
    pub(crate) salt: u64,
    /// Groups from this on in earlier segments do not count.
    pub(crate) first_lsn: Lsn,
    /// Nanoseconds since 1970. For people.
    pub(crate) created_ns: u64,
    /// Bytes it may grow to.
    pub(crate) size: u64,
    /// Whether the first group is also in an earlier segment. Unless it is whole here, the one
    /// there counts and this segment does not: nothing else was written to it yet.
    pub(crate) begins_with_copy: bool,
    /// So many lsns in front of the first one were given to groups that a start did not find.
    pub(crate) skipped: u32,
}

/// What a group says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// Of the header and the payload.
    pub(crate) bytes: u32,
    pub(crate) lsn: Lsn,
    pub(crate) salt: u64,
    /// The highest lsn that had been acknowledged.
    pub(crate) durable_lsn: Lsn,
    pub(crate) records: u32,
    pub(crate) previous_crc: u32,
    /// Nanoseconds since 1970. For people.
    pub(crate) wall_ns: u64,
    pub(crate) crc: u32,
}

impl SegmentHeader {
    /// The whole block.
    pub(crate) fn encode(&self) -> AlignedBuffer {
        let mut block = AlignedBuffer::new();
        block.reserve(index(SEGMENT_HEADER_SIZE));
        block.extend_from_slice(&SEGMENT_MAGIC.to_be_bytes());
        block.extend_from_slice(&VERSION.to_be_bytes());
        let flags = if self.begins_with_copy { BEGINS_WITH_COPY } else { 0 };
        block.extend_from_slice(&flags.to_be_bytes());
        let numbers = [self.id.0, self.number, self.salt, self.first_lsn.0, self.created_ns];
        for number in numbers.into_iter().chain([self.size]) {
            block.extend_from_slice(&number.to_be_bytes());
        }
        block.extend_from_slice(&self.skipped.to_be_bytes());
        assert_eq!(block.len(), SEGMENT_CRC_AT, "the fields lie in front of their checksum");
        let crc = crc32c::crc32c(&block);
        block.extend_from_slice(&crc.to_be_bytes());
        block.resize(index(SEGMENT_HEADER_SIZE), 0);
        block
    }

    /// Reads the block. `None` when nothing was written there.
    pub(crate) fn decode(block: &[u8]) -> Result<Option<Self>, &'static str> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let (Some(covered), Some(rest)) =
            (block.get(..SEGMENT_CRC_AT), block.get(SEGMENT_FIELDS_SIZE..))
        else {
            return Err("a segment's header that is cut off");
        };
        let mut fields = Fields::new(block);
        if fields.u32() != Some(SEGMENT_MAGIC) {
            return Err("no segment of a journal");
        }
        let version = fields.u16();
        let flags = fields.u16().unwrap_or_default();
        let header = Self::decode_numbers(&mut fields).ok_or("a segment's header is cut off")?;
        let skipped = fields.u32().unwrap_or_default();
        if fields.u32() != Some(crc32c::crc32c(covered)) || rest.iter().any(|byte| *byte != 0) {
            return Err("the checksum of a segment's header");
        }
        let is_known = match version {
            Some(VERSION) => true,
            Some(VERSION_WITHOUT_WITNESSES) => skipped == 0,
            _ => false,
        };
        if !is_known || flags & !BEGINS_WITH_COPY != 0 {
            return Err("a segment of an unknown version");
        }
        if header.number > NUMBER_MAX || header.first_lsn.0 > NUMBER_MAX || header.first_lsn.0 == 0
        {
            return Err("a segment with a number out of range");
        }
        if u64::from(skipped) >= header.first_lsn.0 {
            return Err("a segment that skips more than there was");
        }
        Ok(Some(Self { begins_with_copy: flags & BEGINS_WITH_COPY != 0, skipped, ..header }))
    }

    /// The lsn that the segment before ends in front of.
    pub(crate) fn follows_at(&self) -> u64 {
        self.first_lsn.0.saturating_sub(u64::from(self.skipped))
    }

    fn decode_numbers(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            id: JournalId(fields.number::<8>()?),
            number: fields.number::<8>()?,
            salt: fields.number::<8>()?,
            first_lsn: Lsn(fields.number::<8>()?),
            created_ns: fields.number::<8>()?,
            size: fields.number::<8>()?,
            begins_with_copy: false,
            skipped: 0,
        })
    }
}

impl GroupHeader {
    /// The header of a group of `bytes`, which `self` need not know, nor the checksum: `crc_behind`
    /// continues a checksum with that of the payload.
    pub(crate) fn finish(mut self, bytes: usize, crc_behind: impl FnOnce(u32) -> u32) -> Self {
        self.bytes = u32::try_from(bytes).expect("a group has less than 4 GiB");
        self.crc = 0;
        self.crc = crc_behind(crc32c::crc32c(&self.encode()));
        self
    }

    /// What a group begins with.
    pub(crate) fn encode(&self) -> [u8; GROUP_HEADER_SIZE] {
        let fields: [&[u8]; 11] = [
            &GROUP_MAGIC.to_be_bytes(),
            &self.bytes.to_be_bytes(),
            &self.lsn.0.to_be_bytes(),
            &self.salt.to_be_bytes(),
            &self.durable_lsn.0.to_be_bytes(),
            &self.records.to_be_bytes(),
            &self.previous_crc.to_be_bytes(),
            &self.wall_ns.to_be_bytes(),
            &[0; 4],
            &self.crc.to_be_bytes(),
            &[0; 8],
        ];
        let mut header = [0; GROUP_HEADER_SIZE];
        let mut rest = header.as_mut_slice();
        for field in fields {
            let room = rest.split_off_mut(..field.len()).expect("the fields fill the header");
            room.copy_from_slice(field);
        }
        header
    }

    /// Reads the fields; only the magic number and the size are checked.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut fields = Fields::new(bytes);
        if fields.u32() != Some(GROUP_MAGIC) {
            return Err("no group begins here");
        }
        let header = Self::decode_fields(&mut fields).ok_or("a group's header is cut off")?;
        if index(header.bytes.into()) < GROUP_HEADER_SIZE {
            return Err("a group smaller than its header");
        }
        Ok(header)
    }

    fn decode_fields(fields: &mut Fields<'_>) -> Option<Self> {
        let header = Self {
            bytes: fields.u32()?,
            lsn: Lsn(fields.number::<8>()?),
            salt: fields.number::<8>()?,
            durable_lsn: Lsn(fields.number::<8>()?),
            records: fields.u32()?,
            previous_crc: fields.u32()?,
            wall_ns: fields.number::<8>()?,
            crc: {
                fields.u32()?;
                fields.u32()?
            },
        };
        fields.number::<8>()?;
        Some(header)
    }

    /// Bytes on the disk.
    pub(crate) fn padded_bytes(&self) -> u64 {
        padded(self.bytes.into())
    }

    /// Whether `group`, of [`GroupHeader::padded_bytes`], is as it was written.
    pub(crate) fn is_whole(&self, group: &[u8]) -> bool {
        let Some((covered, padding)) = group.split_at_checked(index(self.bytes.into())) else {
            return false;
        };
        let parts = (covered.get(..GROUP_CRC_AT), covered.get(GROUP_CRC_AT.saturating_add(4)..));
        let (Some(before), Some(behind)) = parts else { return false };
        let crc = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
        crc32c::crc32c_append(crc, behind) == self.crc && padding.iter().all(|byte| *byte == 0)
    }

    /// Whether flags and reserved bytes are those of version 1.
    pub(crate) fn is_of_known_version(group: &[u8]) -> bool {
        group.get(48..52) == Some(&[0; 4]) && group.get(56..64) == Some(&[0; 8])
    }
}

/// `bytes` filled up to whole blocks.
pub(crate) fn padded(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(BLOCK_SIZE).unwrap_or(u64::MAX)
}

/// A segment with one group, whose records are what `bytes` has where a segment has them, and whose
/// checksums are right: for fuzzers, which would never get past those.
pub(crate) fn image_around(bytes: &[u8]) -> Vec<u8> {
    let group_at = index(SEGMENT_HEADER_SIZE);
    let group = bytes.get(group_at..).and_then(|group| GroupHeader::decode(group).ok());
    let records = group.map_or(1, |group| group.records);
    let payload = bytes.get(group_at.saturating_add(GROUP_HEADER_SIZE)..).unwrap_or(bytes);
    let (lsn, salt) = (Lsn(1), 1);
    let header = GroupHeader {
        bytes: 0,
        lsn,
        salt,
        durable_lsn: Lsn(0),
        records,
        previous_crc: 0,
        wall_ns: 0,
        crc: 0,
    };
    let bytes = GROUP_HEADER_SIZE.saturating_add(payload.len());
    let header = header.finish(bytes, |crc| crc32c::crc32c_append(crc, payload));
    let mut whole = [&header.encode(), payload].concat();
    whole.resize(index(padded(length(&whole))), 0);
    let segment = SegmentHeader {
        id: JournalId(1),
        number: 1,
        salt,
        first_lsn: lsn,
        created_ns: 0,
        size: SEGMENT_HEADER_SIZE.saturating_add(length(&whole)),
        begins_with_copy: false,
        skipped: 0,
    };
    let mut image = segment.encode().to_vec();
    image.extend_from_slice(&whole);
    image
}
