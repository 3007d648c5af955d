//! Appending: groups, segments, spares, and what is done when a write fails.

mod room;

use std::collections::VecDeque;

use platform::{Clock, Entropy};

use crate::error::StorageError;
use crate::journal::group::{Destination, Group};
use crate::journal::layout::{GroupHeader, SEGMENT_HEADER_SIZE, SegmentHeader};
use crate::journal::options::{JournalId, JournalOptions, JournalUsage, Lsn, Room};
use crate::journal::record::Record;
use crate::journal::segment::{Directory, OpenSegment, Segment};

/// What is behind the journal's lock.
pub(super) struct Writer {
    pub(super) id: JournalId,
    options: JournalOptions,
    clock: Clock,
    entropy: Entropy,
    group: Group,
    /// The segment that groups go to; none after a start, a failure or a seal.
    current: Option<OpenSegment>,
    /// Segments before the current one that are in use, by number.
    pub(super) sealed: VecDeque<Segment>,
    /// The first of them is being taken out of use, perhaps by a thread without the lock.
    is_retiring: bool,
    /// The journal is at its end.
    is_sealing: bool,
    /// Segments of the usual size that are filled, by name.
    pub(super) spares: VecDeque<u64>,
    /// Files with names of spares that are none.
    pub(super) superfluous: Vec<u64>,
    /// Above the numbers of all files.
    pub(super) next_number: u64,
    /// The last group that was acknowledged.
    pub(super) durable_lsn: u64,
    /// Its checksum; 0 before the first.
    pub(super) durable_crc: u32,
    /// So many lsns in front of the next group were given to groups that a start did not find.
    skipped: u32,
    /// Whether the group is one that a start has read.
    is_copying: bool,
    /// No group follows the last one that has records: when that is damaged, it cannot be told
    /// from one that was being written.
    is_unproved: bool,
    /// The last group was not acknowledged, and may be found nevertheless.
    is_unsettled: bool,
    /// Groups below are in the files, and a later group tells that.
    needed_from: u64,
    /// Groups below are in the files: they count for nothing, and stay until a later group tells
    /// that.
    in_files_below: u64,
    counters: JournalUsage,
}

impl Writer {
    pub(super) fn new(
        id: JournalId,
        options: JournalOptions,
        clock: Clock,
        entropy: Entropy,
    ) -> Self {
        Self {
            id,
            options,
            clock,
            entropy,
            group: Group::default(),
            current: None,
            sealed: VecDeque::new(),
            is_retiring: false,
            is_sealing: false,
            spares: VecDeque::new(),
            superfluous: Vec::new(),
            next_number: 1,
            durable_lsn: 0,
            durable_crc: 0,
            skipped: 0,
            is_copying: false,
            is_unproved: false,
            is_unsettled: false,
            needed_from: 0,
            in_files_below: 0,
            counters: JournalUsage::default(),
        }
    }

    pub(super) fn id(&self) -> JournalId {
        self.id
    }

    pub(super) fn usage(&self) -> JournalUsage {
        let current = self.current.as_ref().map_or(0, |current| current.position);
        let needed_of_current = self.needed_current().map_or(0, |current| current.position);
        let is_current_unfilled =
            self.current.as_ref().is_some_and(|current| !current.segment.is_filled);
        let spare_count = self.spares.len() as u64;
        JournalUsage {
            durable_lsn: Lsn(self.durable_lsn),
            needed_from: Lsn(self.needed_from),
            segment_count: self.sealed.len() as u64 + u64::from(self.current.is_some()),
            used_bytes: self.sealed_bytes() + needed_of_current,
            bytes_max: self.options.bytes_max,
            reserve_bytes: self.options.reserve_bytes(),
            segment_bytes: self.options.segment_bytes,
            spare_count,
            spare_bytes: spare_count * self.options.segment_bytes,
            current_bytes: current,
            is_current_unfilled,
            memory_bytes: self.group.memory_bytes(),
            ..self.counters
        }
    }

    /// Begins a group with as many of `records` as it takes, at least one, and says how many.
    pub(super) fn gather(&mut self, records: &[Record<'_>]) -> usize {
        let room = self.options.segment_bytes - SEGMENT_HEADER_SIZE;
        let bytes_max = self.options.group_bytes_max.min(usize::try_from(room).unwrap_or(0));
        self.group.begin(records, bytes_max)
    }

    /// Writes and syncs the group of `records` that was begun. When that fails, once more into a
    /// new segment: nothing of the old one is believed from this group on.
    pub(super) fn write_group(
        &mut self,
        directory: &Directory,
        records: &[Record<'_>],
        room: Room,
    ) -> Result<Lsn, StorageError> {
        let padded_bytes = self.group.padded_bytes();
        self.check_room(directory, padded_bytes, room)?;
        let mut result = self.try_write(directory, records);
        if let Err(error) = &result {
            let has_no_room = matches!(error, StorageError::NoSpace(_));
            self.leave_failed(directory);
            // Spares have the room that the disk lacks; one is kept, for the segment of the next
            // attempt.
            if has_no_room {
                directory.remove_spares(&self.take_spares(1));
            }
            result = self.try_write(directory, records);
        }
        let crc = match result {
            Ok(crc) => crc,
            Err(error) => {
                self.leave_failed(directory);
                self.counters.refused_count += 1;
                self.is_unsettled = true;
                return Err(error);
            }
        };
        self.is_unsettled = false;
        self.is_unproved = self.group.record_count > 0;
        self.durable_lsn = self.next_lsn();
        self.skipped = 0;
        self.durable_crc = crc;
        let current = self.current.as_mut().expect("a group was just written to it");
        current.position += padded_bytes;
        current.segment.last_lsn = self.durable_lsn;
        self.counters.group_count += 1;
        self.counters.record_count += self.group.record_count as u64;
        self.counters.written_bytes += padded_bytes;
        Ok(Lsn(self.durable_lsn))
    }

    /// Takes the place of a group that failed, if the last one did.
    pub(super) fn settle(&mut self, directory: &Directory) -> Result<(), StorageError> {
        if self.is_unsettled {
            self.gather(&[]);
            self.write_group(directory, &[], Room::Unlimited)?;
        }
        Ok(())
    }

    /// Has a group follow the last one, if that has records.
    pub(super) fn prove(&mut self, directory: &Directory) -> Result<(), StorageError> {
        if self.is_unproved {
            self.gather(&[]);
            self.write_group(directory, &[], Room::Unlimited)?;
        }
        Ok(())
    }

    pub(super) fn is_unproved(&self) -> bool {
        self.is_unproved
    }

    /// The lsn of the next group.
    fn next_lsn(&self) -> u64 {
        self.durable_lsn + u64::from(self.skipped) + 1
    }

    /// Passes over lsns that were given to groups which a start did not find.
    pub(super) fn skip(&mut self, count: u32) {
        self.skipped = count;
    }

    /// Groups below `needed_from` are in files: they take no room any more. Whether they fill a
    /// segment that could be let go of.
    pub(super) fn note_in_files(&mut self, needed_from: Lsn) -> bool {
        self.in_files_below = self.in_files_below.max(needed_from.0);
        self.sealed.front().is_some_and(|segment| segment.last_lsn < needed_from.0)
    }

    /// The newest segment that holds a group.
    pub(super) fn newest_segment(&self) -> Option<u64> {
        let current = self.current.as_ref().map(|current| &current.segment);
        let newest_first = current.into_iter().chain(self.sealed.iter().rev());
        let holds_group = |segment: &&Segment| segment.last_lsn >= segment.first_lsn;
        newest_first.filter(holds_group).map(|segment| segment.number).next()
    }

    /// Writes a group that was read at a start into a segment of its own, under the same lsn, and
    /// goes on behind it. The copy skips in front of it what the group skips: it takes its place
    /// behind the segments before.
    pub(super) fn rewrite(
        &mut self,
        directory: &Directory,
        header: &GroupHeader,
        skipped: u32,
        group: &[u8],
    ) -> Result<(), StorageError> {
        let size = usize::try_from(header.bytes).unwrap_or(usize::MAX).min(group.len());
        let record_count = usize::try_from(header.records).unwrap_or(usize::MAX);
        self.group.copy(record_count, &group[..size]);
        self.durable_lsn = header.lsn.0 - 1 - u64::from(skipped);
        self.skipped = skipped;
        self.durable_crc = header.previous_crc;
        // What earlier starts have copied in vain goes for good with the name of this copy.
        self.retire_void(directory);
        self.is_copying = true;
        let written = self.write_group(directory, &[], Room::Unlimited);
        self.is_copying = false;
        self.give_memory_back();
        written?;
        // The copy counts from now on: what earlier segments hold of this group does not.
        for segment in &mut self.sealed {
            segment.last_lsn = segment.last_lsn.min(header.lsn.0 - 1);
        }
        self.retire_void(directory);
        Ok(())
    }

    /// Whether group `lsn`, which was read at a start, is in one segment alone: no attempt to copy
    /// it has left a newer one.
    pub(super) fn has_no_copy_of(&self, lsn: Lsn) -> bool {
        let newest = self.sealed.iter().rev().find(|segment| segment.first_lsn <= lsn.0);
        newest.is_some_and(|segment| segment.last_lsn >= lsn.0)
    }

    /// Goes on behind a group that is durable where it was read at a start.
    pub(super) fn continue_behind(&mut self, header: &GroupHeader) {
        self.durable_lsn = header.lsn.0;
        self.skipped = 0;
        self.durable_crc = header.crc;
        self.is_unsettled = false;
        self.is_unproved = header.records > 0;
    }

    /// One attempt. Gives the checksum of the group.
    fn try_write(
        &mut self,
        directory: &Directory,
        records: &[Record<'_>],
    ) -> Result<u32, StorageError> {
        let bytes = self.group.padded_bytes();
        if !self.stays(bytes) {
            self.leave(directory);
            self.open_segment(directory, bytes)?;
        }
        let current = self.current.as_ref().expect("a segment with room was just opened");
        let header = GroupHeader {
            bytes: 0,
            lsn: Lsn(self.next_lsn()),
            salt: current.segment.salt,
            durable_lsn: Lsn(self.durable_lsn),
            records: u32::try_from(self.group.record_count).expect("a record has 8 bytes or more"),
            previous_crc: self.durable_crc,
            wall_ns: self.clock.wall_time().0,
            crc: 0,
        };
        let (file, position) = (&*current.file, current.position);
        let portion_bytes = self.options.portion_bytes;
        let crc =
            self.group.write(records, header, Destination { file, position, portion_bytes })?;
        file.sync()?;
        Ok(crc)
    }

    /// Leaves a segment that the next group does not go to.
    fn leave(&mut self, directory: &Directory) {
        if let Some(mut current) = self.current.take() {
            // Its groups have filled it. To remove it and to make another one costs more than the
            // writing: a disk may have to free its blocks, and to find others.
            current.segment.is_recyclable |= self.may_be_spare(&current);
            self.sealed.push_back(current.segment);
            self.retire(directory);
        }
    }

    fn may_be_spare(&self, current: &OpenSegment) -> bool {
        let is_usual = current.segment.size == self.options.segment_bytes;
        is_usual && self.options.is_spare_size(current.position)
    }

    /// Leaves a segment whose write or sync has failed.
    fn leave_failed(&mut self, directory: &Directory) {
        self.counters.failure_count += 1;
        if let Some(current) = self.current.take() {
            drop(current.file);
            self.set_aside(directory, current.segment);
        }
    }

    /// Keeps a failed segment for the groups that it holds; without any it is removed, so that
    /// attempts on a failing disk do not pile up.
    fn set_aside(&mut self, directory: &Directory, mut segment: Segment) {
        segment.is_recyclable = false;
        let path = directory.live_path(segment.number);
        let is_empty = segment.last_lsn < segment.first_lsn;
        // One of which nobody can tell whether it is gone counts as there: a start may find it.
        let may_be_there = || {
            directory.files.remove(&path).is_err() && directory.files.exists(&path).unwrap_or(true)
        };
        if !is_empty || may_be_there() {
            self.sealed.push_back(segment);
        }
    }

    fn open_segment(
        &mut self,
        directory: &Directory,
        group_bytes: u64,
    ) -> Result<(), StorageError> {
        let number = self.next_number;
        // Also if the rest fails: something may be left under this number.
        self.next_number += 1;
        let size = self.segment_bytes_for(group_bytes);
        let is_usual = size == self.options.segment_bytes;
        let spare = if is_usual { self.spares.pop_front() } else { None };
        let salt = self.entropy.next_u64();
        let segment = Segment {
            number,
            salt,
            first_lsn: self.next_lsn(),
            last_lsn: self.durable_lsn,
            size,
            is_filled: spare.is_some(),
            is_recyclable: spare.is_some(),
        };
        let header = SegmentHeader {
            id: self.id,
            number,
            salt,
            first_lsn: Lsn(self.next_lsn()),
            created_ns: self.clock.wall_time().0,
            size,
            begins_with_copy: self.is_copying,
            skipped: self.skipped,
        };
        let opened = directory.open_live(number, spare).and_then(|file| {
            directory.begin(&*file, &header, spare.is_some())?;
            Ok(file)
        });
        match opened {
            Ok(file) => {
                self.current = Some(OpenSegment::new(file, segment));
                Ok(())
            }
            Err(error) => {
                // The rename may have failed: then it is a spare as before.
                if let Some(spare) = spare
                    && directory.files.exists(&directory.spare_path(spare)).unwrap_or(false)
                {
                    self.spares.push_back(spare);
                }
                self.set_aside(directory, segment);
                Err(error)
            }
        }
    }

    /// Groups below are not needed any more; with `None` no group is.
    pub(super) fn note_needed(&mut self, needed_from: Option<Lsn>) {
        let needed_from = needed_from.map_or(self.durable_lsn + 1, |lsn| lsn.0);
        self.needed_from = self.needed_from.max(needed_from);
    }

    /// Retires everything.
    pub(super) fn seal(&mut self, directory: &Directory) {
        self.note_needed(None);
        self.is_sealing = true;
        self.leave(directory);
        self.retire(directory);
        self.is_sealing = false;
    }

    /// Takes the oldest segments out of use whose groups are not needed, in their order: what a
    /// power cut brings back is a gapless end of the journal.
    fn retire(&mut self, directory: &Directory) {
        while let Some(segment) = self.begin_retiring() {
            let is_away = directory.retire_in_order(segment.number);
            if !self.end_retiring(segment, is_away) {
                return;
            }
        }
    }

    /// The oldest segment, if its groups are not needed and nobody is at it. The caller takes it
    /// out of use, which needs no lock, and says how that went.
    pub(super) fn begin_retiring(&mut self) -> Option<Segment> {
        let oldest = self.sealed.front().copied();
        let oldest = oldest.filter(|segment| segment.last_lsn < self.needed_from);
        // One segment stays as long as the journal is in use: a start that finds none is told that
        // the journal is gone.
        let is_last = self.current.is_none() && self.sealed.len() == 1 && !self.is_sealing;
        let begun = oldest.filter(|_| !self.is_retiring && !is_last)?;
        self.is_retiring = true;
        Some(begun)
    }

    /// The end of [`Writer::begin_retiring`]. Returns `is_away`.
    pub(super) fn end_retiring(&mut self, segment: Segment, is_away: bool) -> bool {
        assert!(self.is_retiring, "an end follows a beginning");
        self.is_retiring = false;
        if is_away {
            self.keep_or_remove(segment);
            let oldest = self.sealed.pop_front();
            assert_eq!(oldest, Some(segment), "only the oldest one goes");
        }
        is_away
    }

    /// Takes segments out of use that hold nothing that counts: starts that fail leave such.
    fn retire_void(&mut self, directory: &Directory) {
        for segment in std::mem::take(&mut self.sealed) {
            let is_void = segment.last_lsn < segment.first_lsn;
            if is_void && directory.retire(segment.number) {
                self.keep_or_remove(segment);
            } else {
                self.sealed.push_back(segment);
            }
        }
    }

    /// Makes of a segment that is out of use a spare, or a file to be removed.
    fn keep_or_remove(&mut self, segment: Segment) {
        if segment.is_recyclable && self.has_room_for_spare() {
            self.spares.push_back(segment.number);
        } else {
            self.superfluous.push(segment.number);
        }
    }

    /// Files to be removed, which takes time that nobody should wait for.
    pub(super) fn take_superfluous(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.superfluous)
    }

    pub(super) fn add_spare(&mut self, number: u64) {
        self.spares.push_back(number);
    }

    /// Gives back the memory of groups.
    pub(super) fn give_memory_back(&mut self) {
        self.group = Group::default();
    }
}
