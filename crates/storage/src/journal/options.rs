//! How a journal is to work, and what it says of itself.

use std::fmt;
use std::path::PathBuf;

use crate::journal::layout::{BLOCK_SIZE, SEGMENT_HEADER_SIZE};

/// The number of a group: 1, 2, 3, ... In one journal none is given to two groups that were
/// acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// The random name of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct JournalId(pub u64);

/// Sizes of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    /// Bytes of a segment, a multiple of 4096, at least 8192.
    pub segment_bytes: u64,
    /// Bytes of all segments in use, at most. An empty journal takes any group.
    pub bytes_max: u64,
    /// Bytes of a group with more than one record, at most.
    pub group_bytes_max: usize,
    /// Of a group that has more than twice as many bytes as this, so many are written while the
    /// next ones are encoded. A multiple of 4096.
    pub portion_bytes: usize,
}

/// How far a journal may be filled. A group goes as far as the least of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Room {
    /// Up to its reserve.
    Usual,
    /// The reserve, too: a state without items, which is small. A vBucket's role has to become
    /// durable however many items wait for room.
    WithReserve,
    /// Beyond its end: what came before is not needed any more, so this makes room.
    Unlimited,
}

/// What was found when a journal was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalReport {
    /// Segments in use.
    pub segment_count: u64,
    /// Groups that were replayed.
    pub group_count: u64,
    /// Their records.
    pub record_count: u64,
    /// Their bytes, as they lie on the disk.
    pub bytes: u64,
    /// The last of them; 0 for none.
    pub last_lsn: Lsn,
    /// How often they were read to be replayed, each time those of some vBuckets; 0 for none.
    pub pass_count: u64,
    /// A group that was being written when the power went or the process died.
    pub torn_tail: Option<TornTail>,
    /// Groups were acknowledged that are not there.
    pub lost_end: Option<LostEnd>,
}

/// The end of a journal that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostEnd {
    /// The last segment that is there, or the journal's directory.
    pub file: PathBuf,
    /// Where its last group ends, in bytes.
    pub position: u64,
    /// The last group that is there.
    pub last_lsn: Lsn,
    /// The last one that something knows of; `None` when all that is known is that a later segment
    /// is missing.
    pub known_lsn: Option<Lsn>,
    /// The first one that will be given to a group now.
    pub next_lsn: Lsn,
}

/// The beginning of a group that was never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub file: PathBuf,
    /// Where it begins, in bytes.
    pub position: u64,
    /// What is wrong with it.
    pub what: &'static str,
    /// When it was written, in nanoseconds since 1970, by its header; 0 if that cannot be read.
    pub written_ns: u64,
}

/// How full a journal is, and what it has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalUsage {
    /// The last durable group; 0 for none.
    pub durable_lsn: Lsn,
    /// The lowest lsn that is still needed, as of the last release.
    pub needed_from: Lsn,
    /// Segments in use.
    pub segment_count: u64,
    /// Bytes of the segments that files need; of the current one, what is written.
    pub used_bytes: u64,
    /// What `used_bytes` may come to.
    pub bytes_max: u64,
    /// The part of that which is kept for states without items.
    pub reserve_bytes: u64,
    /// Bytes of a segment of the usual size.
    pub segment_bytes: u64,
    /// Segments that are kept for later.
    pub spare_count: u64,
    /// Bytes of those.
    pub spare_bytes: u64,
    /// Bytes that are written of the segment that groups go to; 0 when there is none.
    pub current_bytes: u64,
    /// Whether that segment was no spare: each append to it allocates blocks, which takes a sync as
    /// long again.
    pub is_current_unfilled: bool,
    /// Bytes that are filled of the spare in the making.
    pub filled_bytes: u64,
    /// Bytes of memory in which groups are gathered.
    pub memory_bytes: u64,
    /// Groups that became durable.
    pub group_count: u64,
    /// Their records.
    pub record_count: u64,
    /// Their bytes, headers and padding included.
    pub written_bytes: u64,
    /// Writes, syncs and new segments that failed. Each ended a segment.
    pub failure_count: u64,
    /// Groups that were refused after a second failure.
    pub refused_count: u64,
    /// Groups that were refused because the journal was full.
    pub full_count: u64,
}

/// Segments that are kept for states without items.
const RESERVED_SEGMENTS: u64 = 2;
/// In a journal of fewer segments nothing is: too little would be left for items.
const RESERVING_SEGMENTS_MIN: u64 = 8;

impl JournalOptions {
    /// Bytes that are kept for states without items.
    pub fn reserve_bytes(&self) -> u64 {
        let keeps_some = self.bytes_max / self.segment_bytes >= RESERVING_SEGMENTS_MIN;
        if keeps_some { RESERVED_SEGMENTS * self.segment_bytes } else { 0 }
    }

    /// What may be in use for groups that get so much room.
    pub(super) fn limit(&self, room: Room) -> u64 {
        match room {
            Room::Usual => self.bytes_max - self.reserve_bytes(),
            Room::WithReserve => self.bytes_max,
            Room::Unlimited => u64::MAX,
        }
    }

    /// Whether a file of so many bytes may be a spare. The last eighth need not be there: a segment
    /// that was written without a spare ends where the next group had no room.
    pub(super) fn is_spare_size(&self, bytes: u64) -> bool {
        bytes <= self.segment_bytes && bytes >= self.segment_bytes - self.segment_bytes / 8
    }

    pub(super) fn check(&self) {
        assert!(
            self.segment_bytes.is_multiple_of(BLOCK_SIZE),
            "segments consist of blocks of 4096 bytes"
        );
        assert!(
            self.segment_bytes >= SEGMENT_HEADER_SIZE + BLOCK_SIZE,
            "a segment has room for a group"
        );
        assert!(
            self.portion_bytes > 0 && (self.portion_bytes as u64).is_multiple_of(BLOCK_SIZE),
            "portions consist of blocks of 4096 bytes"
        );
    }
}

impl JournalUsage {
    /// Whether [`Journal::fill_spare`](super::Journal::fill_spare) is to go on now, so that a spare
    /// grows evenly and is whole by the time half of the current segment is written. Filling one at
    /// once keeps a CPU busy, and the syncs of groups waiting, for tens of milliseconds: only the
    /// first one is, for which groups wait already.
    pub fn is_spare_due(&self) -> bool {
        let is_wanted = self.is_current_unfilled || self.filled_bytes < 2 * self.current_bytes;
        self.spare_count == 0 && is_wanted
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for JournalId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}
