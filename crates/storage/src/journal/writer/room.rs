//! Room: which groups may still be written, and where to.

use super::Writer;
use crate::error::StorageError;
use crate::journal::layout::SEGMENT_HEADER_SIZE;
use crate::journal::options::Room;
use crate::journal::segment::{Directory, OpenSegment, Segment};

impl Writer {
    /// Refuses a group that there is no room for. A current segment that was opened for what has
    /// more room takes no other groups.
    pub(super) fn check_room(
        &mut self,
        directory: &Directory,
        bytes: u64,
        room: Room,
    ) -> Result<(), StorageError> {
        let limit = self.options.limit(room);
        let stays = self.stays(bytes);
        if stays && self.needed_bytes() <= limit {
            return Ok(());
        }
        self.retire(directory);
        let used_bytes = self.needed_bytes();
        let wanted_bytes = if stays { 0 } else { self.segment_bytes_for(bytes) };
        // A journal that no file needs takes any group: one that is larger than its limit would
        // wait for ever.
        if used_bytes > 0 && used_bytes.saturating_add(wanted_bytes) > limit {
            self.counters.full_count += 1;
            let bytes_max = self.options.bytes_max;
            return Err(StorageError::JournalFull { used_bytes, bytes_max });
        }
        Ok(())
    }

    /// Bytes of all segments that files need, the current one as a whole.
    fn needed_bytes(&self) -> u64 {
        self.sealed_bytes() + self.needed_current().map_or(0, |current| current.segment.size)
    }

    /// The current segment, if files need it: otherwise it is retired as soon as it is left.
    pub(super) fn needed_current(&self) -> Option<&OpenSegment> {
        self.current.as_ref().filter(|current| self.is_needed(&current.segment))
    }

    /// Whether a group goes to the current segment: it has room, and there is no better one.
    pub(super) fn stays(&self, group_bytes: u64) -> bool {
        // Only the header of a segment says that lsns are skipped.
        let follows = |current: &&OpenSegment| {
            self.skipped == 0 || current.segment.first_lsn == self.next_lsn()
        };
        let current = self.current.as_ref().filter(|current| current.has_room(group_bytes));
        let current = current.filter(follows);
        current.is_some_and(|current| current.segment.is_filled || !self.may_leave_unfilled())
    }

    /// Whether the current segment, which was no spare, can be left for one before its end. It
    /// counts as a whole until files have what it holds, so the journal must be large enough for
    /// one more.
    fn may_leave_unfilled(&self) -> bool {
        let current = self.current.as_ref().map(|current| &current.segment);
        let used_bytes: u64 = self.sealed.iter().chain(current).map(|segment| segment.size).sum();
        let wanted_bytes = 2 * self.options.segment_bytes;
        !self.spares.is_empty() && used_bytes + wanted_bytes <= self.options.limit(Room::Usual)
    }

    pub(super) fn segment_bytes_for(&self, group_bytes: u64) -> u64 {
        self.options.segment_bytes.max(SEGMENT_HEADER_SIZE + group_bytes)
    }

    /// Bytes of the segments in front of the current one that files need.
    pub(super) fn sealed_bytes(&self) -> u64 {
        let needed = self.sealed.iter().filter(|segment| self.is_needed(segment));
        needed.map(|segment| segment.size).sum()
    }

    pub(super) fn is_needed(&self, segment: &Segment) -> bool {
        segment.last_lsn >= self.needed_from.max(self.in_files_below)
    }

    /// Spares count with what is in use, so that a journal takes no more than it may.
    pub(super) fn has_room_for_spare(&self) -> bool {
        let usage = self.usage();
        let sealed_bytes: u64 = self.sealed.iter().map(|segment| segment.size).sum();
        let bytes = sealed_bytes + usage.current_bytes + usage.spare_bytes;
        bytes <= self.options.bytes_max
    }

    /// The number and the size of a spare that is to be made, if there is none and may be one.
    pub(in crate::journal) fn wanted_spare(&mut self) -> Option<(u64, u64)> {
        let current = self.current.as_ref().map(|current| &current.segment);
        let used_bytes: u64 = self.sealed.iter().chain(current).map(|segment| segment.size).sum();
        let has_room = used_bytes + self.options.segment_bytes <= self.options.bytes_max;
        if !self.spares.is_empty() || used_bytes == 0 || !has_room {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        Some((number, self.options.segment_bytes))
    }

    /// Takes all spares but so many out of use, to be removed: the disk has no room for anything
    /// else.
    pub(in crate::journal) fn take_spares(&mut self, kept_count: usize) -> Vec<u64> {
        self.spares.split_off(self.spares.len().min(kept_count)).into()
    }
}
