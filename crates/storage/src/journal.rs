//! The journal of a bucket: one file that all vBuckets' batches go to, durable with one sync.
//!
//! Batches are gathered into groups. A group is written behind the last one, synced, and only then
//! acknowledged; the next one waits for that. The vBuckets' files follow later, and what they hold
//! is released. `docs/file-format.md`, section Journal, draws the bytes; `docs/storage.md` has the
//! invariants.

mod encoder;
mod filling;
mod group;
mod layout;
mod names;
pub(crate) mod options;
mod record;
mod replay;
mod scan;
mod segment;
mod state;
mod verify;
mod view;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use platform::{Clock, Entropy, Files};

pub(crate) use layout::image_around;
pub use names::DIRECTORY as JOURNAL_DIRECTORY;
pub use options::{JournalId, JournalOptions, JournalReport, JournalUsage, LostEnd, Lsn, TornTail};
pub use record::{Record, ReplayedRecord};
pub use verify::{SegmentVerification, verify_segments};
pub use view::{
    BatchView, GroupView, Place, RecordKind, RecordView, SegmentEnd, SegmentSummary, SegmentView,
    is_segment_name, read_segment, segment_view,
};

use crate::error::StorageError;
use crate::locks::lock;
use filling::Filling;
use options::Room;
pub(crate) use record::RawContent;
use replay::AllRecords;
pub(crate) use replay::{KnownEnd, Visitor};
use segment::Directory;
use writer::Writer;

/// Reads the journal of the bucket in a directory as a start does, and changes nothing.
///
/// # Errors
/// [`StorageError::JournalDamaged`], or what the system says: with that a start is refused.
pub fn check_journal(files: &Arc<dyn Files>, bucket: &Path) -> Result<(), StorageError> {
    let directory = Directory::new(Arc::clone(files), bucket);
    replay::check(&directory).map_err(StorageError::of_journal)
}

/// A bucket's journal. Threads append one after the other; releasing waits for an append that is
/// under way, looking at the usage does not.
pub struct Journal {
    id: JournalId,
    directory: Directory,
    /// Held across the write and the sync of a group: the order of groups is that of their
    /// acknowledgements. It comes before `usage`.
    writer: Mutex<Writer>,
    /// The spare in the making, one at a time. It comes before `writer`.
    filling: Mutex<Option<Filling>>,
    /// What [`Journal::usage`] tells; held for a copy.
    usage: Mutex<JournalUsage>,
}

impl Journal {
    /// Opens the journal of the bucket in `bucket_directory` and hands `replay` every record that
    /// is durable, in order. An empty journal leaves no trace on the disk before the first
    /// [`Journal::append`].
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when something that was acknowledged is damaged or missing: what
    /// lies before it may have been replayed. Otherwise what the system or `replay` says.
    pub fn open(
        files: Arc<dyn Files>,
        bucket_directory: &Path,
        options: JournalOptions,
        clock: Clock,
        entropy: Entropy,
        replay: &mut dyn FnMut(Lsn, ReplayedRecord) -> Result<(), StorageError>,
    ) -> Result<(Self, JournalReport), StorageError> {
        Self::open_with(files, bucket_directory, options, clock, entropy, &mut AllRecords(replay))
    }

    /// The same, for who looks at all records before any is handed out.
    pub(crate) fn open_with(
        files: Arc<dyn Files>,
        bucket_directory: &Path,
        options: JournalOptions,
        clock: Clock,
        entropy: Entropy,
        visitor: &mut dyn Visitor,
    ) -> Result<(Self, JournalReport), StorageError> {
        options.check();
        let directory = Directory::new(files, bucket_directory);
        let (writer, report) = replay::open(&directory, options, clock, entropy, visitor)?;
        let usage = Mutex::new(writer.usage());
        let journal = Self {
            id: writer.id(),
            directory,
            writer: Mutex::new(writer),
            filling: Mutex::new(None),
            usage,
        };
        Ok((journal, report))
    }

    /// Makes records durable, in order, in groups of one sync each; a record is never divided.
    /// `durable` hears of each group, as a range of `records`, as soon as it is: while the journal
    /// is locked, so in the order of lsns whoever appends. An error ends the call, for that group
    /// and all records behind it: those are not durable, but the first group of them may be found
    /// by a replay nevertheless.
    ///
    /// # Errors
    /// [`StorageError::JournalFull`] until [`Journal::release`] has made room; what makes room is
    /// written in spite of it: deletions, and what supersedes earlier records. States without items
    /// have a reserve. Otherwise what the system said when a second segment was tried.
    pub fn append(
        &self,
        records: &[Record<'_>],
        durable: &mut dyn FnMut(Range<usize>, Result<Lsn, StorageError>),
    ) {
        let mut writer = self.lock_writer();
        let mut start = 0;
        while start < records.len() {
            let end = writer.gather(&records[start..]) + start;
            let group = &records[start..end];
            let room = group.iter().map(Record::room).min().unwrap_or(Room::Usual);
            match writer.write_group(&self.directory, group, room) {
                Ok(lsn) => durable(start..end, Ok(lsn)),
                Err(error) => {
                    durable(start..records.len(), Err(error));
                    break;
                }
            }
            // Who reads a durable lsn finds its records where `durable` has put them.
            self.publish(&writer);
            start = end;
        }
        self.publish(&writer);
    }

    /// Sees to it that no replay finds a group that was not acknowledged: if the last append has
    /// failed, its place is taken by a group without records.
    ///
    /// # Errors
    /// What the system said when a second segment was tried.
    pub fn settle(&self) -> Result<(), StorageError> {
        let mut writer = self.lock_writer();
        let settled = writer.settle(&self.directory);
        self.publish(&writer);
        settled
    }

    /// Sees to it that a group follows the last one that has records: only then damage of that one
    /// is told from a group that was being written.
    ///
    /// # Errors
    /// What the system said when a second segment was tried.
    pub fn prove(&self) -> Result<(), StorageError> {
        let mut writer = self.lock_writer();
        let proved = writer.prove(&self.directory);
        self.publish(&writer);
        proved
    }

    /// Whether [`Journal::prove`] has something to do.
    pub fn is_unproved(&self) -> bool {
        self.lock_writer().is_unproved()
    }

    /// Groups below `needed_from` are in files: they take no room from now on, although segments
    /// stay until [`Journal::release`]. Whether that would let go of one.
    pub(crate) fn note_in_files(&self, needed_from: Lsn) -> bool {
        let mut writer = self.lock_writer();
        let would_release = writer.note_in_files(needed_from);
        self.publish(&writer);
        would_release
    }

    /// The number of the newest segment that holds a group.
    pub(crate) fn newest_segment(&self) -> Option<u64> {
        self.lock_writer().newest_segment()
    }

    /// Gives back the memory in which groups are gathered, which is as large as the largest one
    /// was. For when there is nothing to append for a while.
    pub fn give_memory_back(&self) {
        let mut writer = self.lock_writer();
        writer.give_memory_back();
        self.publish(&writer);
    }

    /// Groups below `needed_from` are of no use any more. Segments that hold nothing else are
    /// retired: all but the current one, which is when the next group wants a new segment. With
    /// `None` nothing that is durable now is needed, so nobody may append meanwhile; who cannot
    /// know that reads [`JournalUsage::durable_lsn`] first and names the lsn after it.
    pub fn release(&self, needed_from: Option<Lsn>) {
        let mut writer = self.lock_writer();
        if let Some(needed_from) = needed_from {
            writer.note_in_files(needed_from);
        }
        writer.note_needed(needed_from);
        // Names take the disk's time, and who releases may be of the lowest priority: groups do
        // not wait for it.
        while let Some(segment) = writer.begin_retiring() {
            drop(writer);
            let is_away = self.directory.retire_in_order(segment.number);
            writer = self.lock_writer();
            if !writer.end_retiring(segment, is_away) {
                break;
            }
        }
        self.publish(&writer);
        let superfluous = writer.take_superfluous();
        drop(writer);
        self.directory.remove_spares(&superfluous);
    }

    /// Everything is in the files: all segments are retired, so that the next start has nothing to
    /// read. Failures are of no harm, they only leave something to be read.
    pub fn seal(&self) {
        if let Some(filling) = lock(&self.filling).take() {
            filling.give_up(&self.directory);
            lock(&self.usage).filled_bytes = 0;
        }
        let mut writer = self.lock_writer();
        writer.seal(&self.directory);
        self.publish(&writer);
        let superfluous = writer.take_superfluous();
        drop(writer);
        self.directory.remove_spares(&superfluous);
        self.directory.sync_if_there();
    }

    /// Fills a portion of a spare with zeros, which is kept for later once it is whole: appends to
    /// it have no metadata to write. Appends go on meanwhile. Says whether it did anything, which
    /// it does not when there is a spare, when no more than the segments in use may be, before the
    /// first append, or while another thread is at it.
    ///
    /// # Errors
    /// What the system said. What there was of the spare is gone then.
    pub fn fill_spare(&self) -> Result<bool, StorageError> {
        let mut place = match self.filling.try_lock() {
            Ok(place) => place,
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Poisoned(_)) => unreachable!("who fills a spare does not panic"),
        };
        let filling = match place.take() {
            Some(filling) => Some(filling),
            None => self.begin_spare()?,
        };
        let Some(mut filling) = filling else { return Ok(false) };
        let filled = filling.fill().and_then(|()| {
            filling.is_complete().then(|| filling.finish(&self.directory)).transpose()
        });
        let filled_bytes = match filled {
            Ok(Some(number)) => {
                let mut writer = self.lock_writer();
                writer.add_spare(number);
                self.publish(&writer);
                0
            }
            Ok(None) => place.insert(filling).filled_bytes(),
            Err(error) => {
                lock(&self.usage).filled_bytes = 0;
                filling.give_up(&self.directory);
                return Err(error);
            }
        };
        lock(&self.usage).filled_bytes = filled_bytes;
        Ok(true)
    }

    /// Removes all spares but so many, and the one in the making, for others who find no room on
    /// the disk. Whether there was anything to remove.
    pub(crate) fn give_back_spares(&self, kept_count: usize) -> bool {
        // Who fills one finds no room, either.
        let filling = self.filling.try_lock().ok().and_then(|mut place| place.take());
        let gives_up_filling = filling.is_some();
        if let Some(filling) = filling {
            lock(&self.usage).filled_bytes = 0;
            filling.give_up(&self.directory);
        }
        let mut writer = self.lock_writer();
        let spares = writer.take_spares(kept_count);
        self.publish(&writer);
        drop(writer);
        self.directory.remove_spares(&spares);
        gives_up_filling || !spares.is_empty()
    }

    fn begin_spare(&self) -> Result<Option<Filling>, StorageError> {
        let wanted = self.lock_writer().wanted_spare();
        let begin = |(number, size)| Filling::begin(&self.directory, number, size);
        wanted.map(begin).transpose()
    }

    /// The journal's name, in every segment. It changes when a start finds no segment in use.
    pub fn id(&self) -> JournalId {
        self.id
    }

    /// How full it is, as of the last group. Never waits for the disk.
    pub fn usage(&self) -> JournalUsage {
        *lock(&self.usage)
    }

    fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    fn publish(&self, writer: &Writer) {
        let mut usage = lock(&self.usage);
        *usage = JournalUsage { filled_bytes: usage.filled_bytes, ..writer.usage() };
    }
}
