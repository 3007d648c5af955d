//! Opening a journal: what is durable is found, checked, written anew as far as it is unsure, and
//! handed out in order. Segments are read twice or more often, so that nothing has to be remembered
//! of a record that nobody wants yet, and one is open at a time.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod check;

use std::path::{Path, PathBuf};

use document::Vbid;
use platform::{Clock, Entropy, File, OpenMode};

use crate::couchstore::bytes::{Fields, index};
use crate::error::StorageError;
use crate::journal::layout::{
    BLOCK_SIZE, GROUP_HEADER_SIZE, GroupHeader, NUMBER_MAX, SEGMENT_HEADER_SIZE, SegmentHeader,
};
use crate::journal::names::{self, SegmentName};
use crate::journal::options::{JournalId, JournalOptions, JournalReport, LostEnd, Lsn, TornTail};
use crate::journal::record::{RawContent, RawRecord, ReplayedRecord};
use crate::journal::scan::{self, Expected};
use crate::journal::segment::{Directory, Segment};
use crate::journal::writer::Writer;
pub(super) use check::check;

/// Who hears of a journal's records when it is opened: of all of them, twice or more often, in
/// order.
pub(crate) trait Visitor {
    /// It is this journal.
    fn begin(&mut self, _id: JournalId) {}

    /// Looks at a record of so many bytes. Nothing is handed out before all of them were looked at.
    fn survey(&mut self, lsn: Lsn, vbid: Vbid, bytes: u32, content: &RawContent<'_>);

    /// All records were looked at. Tells what is known of groups that are not there.
    fn known_end(&mut self) -> KnownEnd {
        KnownEnd::default()
    }

    /// What was wanted was handed out. Whether all records are to come once more, because others
    /// are wanted now.
    fn goes_on(&mut self) -> Result<bool, StorageError> {
        Ok(false)
    }

    /// Whether a record is to be handed out. What is not is dropped at once.
    fn wants(&self, lsn: Lsn, vbid: Vbid, content: &RawContent<'_>) -> bool;

    /// Takes a record.
    fn replay(&mut self, lsn: Lsn, record: ReplayedRecord) -> Result<(), StorageError>;
}

/// How far a journal must reach.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownEnd {
    /// The highest lsn that something names.
    pub(crate) lsn: Option<Lsn>,
    /// The number of a segment that held a group.
    pub(crate) segment: Option<u64>,
}

/// Hands out all there is.
pub(super) struct AllRecords<'a>(
    pub(super) &'a mut dyn FnMut(Lsn, ReplayedRecord) -> Result<(), StorageError>,
);

impl Visitor for AllRecords<'_> {
    fn survey(&mut self, _: Lsn, _: Vbid, _: u32, _: &RawContent<'_>) {}

    fn wants(&self, _: Lsn, _: Vbid, content: &RawContent<'_>) -> bool {
        !matches!(content, RawContent::Witnesses(_))
    }

    fn replay(&mut self, lsn: Lsn, record: ReplayedRecord) -> Result<(), StorageError> {
        (self.0)(lsn, record)
    }
}

/// A segment that was found in use. It is open only while it is read.
struct Found {
    path: PathBuf,
    header: SegmentHeader,
    size: u64,
    /// Whether it should begin with a copy of an earlier group, and does not.
    lacks_copy: bool,
}

/// What the names and headers in the directory say.
#[derive(Default)]
struct Inventory {
    /// By number.
    live: Vec<Found>,
    /// Of the usual size.
    spares: Vec<u64>,
    superfluous: Vec<u64>,
    highest_number: u64,
}

/// A group that was read, and where.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    header: Option<GroupHeader>,
    path: PathBuf,
    position: u64,
    /// So many lsns in front of it were given to groups that a start did not find.
    skipped: u32,
}

/// Which of the passes it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// What is on the disk is checked, and nothing is changed.
    Look,
    /// What is on the disk is made durable, checked and looked at.
    Survey,
    /// Records are handed out.
    Replay,
}

/// Walks through the groups in order, one behind: the last one is kept apart, because it is written
/// anew before anything is handed out.
struct Walk<'a> {
    pass: Pass,
    visitor: &'a mut dyn Visitor,
    report: JournalReport,
    /// Of the next group; `None` before the first segment.
    next_lsn: Option<u64>,
    /// Of the last group; `None` before the first.
    last_lsn: Option<u64>,
    /// Where the last group ends, or the last segment begins.
    end: Option<(PathBuf, u64)>,
    previous_crc: Option<u32>,
    /// Read, not yet handed out.
    held: Group,
    /// Lends its memory to the next one.
    next: Group,
}

/// Reads the journal in `directory`, hands out its records, and makes a writer that goes on.
pub(super) fn open(
    directory: &Directory,
    options: JournalOptions,
    clock: Clock,
    entropy: Entropy,
    visitor: &mut dyn Visitor,
) -> Result<(Writer, JournalReport), StorageError> {
    let inventory = take_inventory(directory, Some(options))?;
    let id = check_identity(&inventory.live)?;
    let id = id.unwrap_or_else(|| JournalId(entropy.next_u64()));
    visitor.begin(id);
    let mut survey = Walk::new(Pass::Survey, visitor);
    let last_lsns = survey.segments(directory, &inventory.live, None)?;
    survey.hand_out_held()?;
    let (last_lsn, end) = (survey.last_lsn(), survey.end.take());
    let (last, mut report) = (survey.held, survey.report);
    let known = visitor.known_end();
    report.lost_end = lost_end(&inventory, known, last_lsn, end, directory, options)?;
    report.segment_count = inventory.live.len() as u64;
    report.last_lsn = Lsn(last_lsn);
    let mut writer = Writer::new(id, options, clock, entropy);
    for (found, last_lsn) in inventory.live.iter().zip(last_lsns) {
        writer.sealed.push_back(Segment {
            number: found.header.number,
            salt: found.header.salt,
            first_lsn: found.header.first_lsn.0,
            last_lsn,
            size: found.size.max(SEGMENT_HEADER_SIZE),
            is_filled: false,
            is_recyclable: options.is_spare_size(found.size),
        });
    }
    writer.next_number = inventory.highest_number.saturating_add(1);
    writer.spares = inventory.spares.into();
    directory.remove_spares(&inventory.superfluous);
    last.make_durable(directory, last_lsn, &mut writer)?;
    if let Some(lost_end) = &report.lost_end {
        let skipped = lost_end.next_lsn.0.saturating_sub(writer.durable_lsn.saturating_add(1));
        writer.skip(u32::try_from(skipped).unwrap_or(u32::MAX));
    }
    if last.header.is_some() {
        replay(directory, &inventory.live, &last, visitor, &mut report)?;
    }
    Ok((writer, report))
}

/// Hands out what is wanted, as often as there is more of it. The last group may be in another
/// segment by now.
fn replay(
    directory: &Directory,
    live: &[Found],
    last: &Group,
    visitor: &mut dyn Visitor,
    report: &mut JournalReport,
) -> Result<(), StorageError> {
    let below = last.header.map(|header| header.lsn.0);
    loop {
        let mut walk = Walk::new(Pass::Replay, visitor);
        walk.segments(directory, live, below)?;
        walk.hand_out_held()?;
        walk.hand_out(last)?;
        report.pass_count = report.pass_count.saturating_add(1);
        if !visitor.goes_on()? {
            return Ok(());
        }
    }
}

/// What is missing at the end, if something tells that something is. What is written from then on
/// gets lsns that no group of the part that is missing can have had.
fn lost_end(
    inventory: &Inventory,
    known: KnownEnd,
    last_lsn: u64,
    end: Option<(PathBuf, u64)>,
    directory: &Directory,
    options: JournalOptions,
) -> Result<Option<LostEnd>, StorageError> {
    let Some(newest) = inventory.live.last() else { return Ok(None) };
    let lacks_lsn = known.lsn.is_some_and(|known| known.0 > last_lsn);
    let lacks_segment = known.segment.is_some_and(|known| known > newest.header.number);
    if !lacks_lsn && !lacks_segment {
        return Ok(None);
    }
    let (file, position) = end.unwrap_or_else(|| (directory.path.clone(), 0));
    let groups_max = options.bytes_max.checked_div(BLOCK_SIZE).unwrap_or(0);
    let known_lsn = known.lsn.filter(|_| lacks_lsn);
    let reached = known_lsn.map_or(last_lsn, |known| known.0);
    let next_lsn = reached.saturating_add(groups_max).saturating_add(1);
    // The header of a segment has 32 bits to say how many are skipped.
    if next_lsn > NUMBER_MAX || next_lsn.saturating_sub(last_lsn) > u64::from(u32::MAX) {
        let what = "a file names a group that this journal cannot have had";
        return Err(StorageError::corrupt(&file, position, what));
    }
    let (last_lsn, next_lsn) = (Lsn(last_lsn), Lsn(next_lsn));
    Ok(Some(LostEnd { file, position, last_lsn, known_lsn, next_lsn }))
}

/// The journal that all segments belong to, if there are any.
fn check_identity(live: &[Found]) -> Result<Option<JournalId>, StorageError> {
    let Some(first) = live.first() else { return Ok(None) };
    for found in live {
        if found.header.id != first.header.id {
            return Err(StorageError::corrupt(&found.path, 0, "a segment of another journal"));
        }
    }
    Ok(Some(first.header.id))
}

/// Looks at all names and headers. Without options nothing is put away.
fn take_inventory(
    directory: &Directory,
    options: Option<JournalOptions>,
) -> Result<Inventory, StorageError> {
    let mut inventory = Inventory::default();
    if !directory.files.exists(&directory.path)? {
        return Ok(inventory);
    }
    if options.is_some() {
        // What is seen now must not change when the power goes.
        directory.files.sync_directory(&directory.path)?;
    }
    let mode = if options.is_some() { OpenMode::ReadWrite } else { OpenMode::Read };
    for name in directory.files.list(&directory.path)? {
        let path = directory.path.join(&name);
        let (number, is_live) = match names::parse(&name) {
            SegmentName::Live(number) => (number, true),
            SegmentName::Spare(number) => (number, false),
            SegmentName::Foreign => continue,
        };
        inventory.highest_number = inventory.highest_number.max(number);
        let file = directory.files.open(&path, mode)?;
        let size = file.size()?;
        if is_live && let Some(header) = own_header(&*file, &path, number)? {
            let lacks_copy = header.begins_with_copy && !holds_copy(&*file, &path, &header)?;
            inventory.live.push(Found { path, header, size, lacks_copy });
        } else {
            drop(file);
            inventory.put_away(directory, &path, number, size, options)?;
        }
    }
    inventory.live.sort_by_key(|found| found.header.number);
    // Nothing came after a copy that was not finished. In front of other segments it was.
    while let Some(found) = inventory.live.pop_if(|found| found.lacks_copy) {
        let Found { path, header, size, .. } = found;
        inventory.put_away(directory, &path, header.number, size, options)?;
    }
    Ok(inventory)
}

impl Inventory {
    /// Keeps a file that holds nothing as a spare, if it can be one. It loses a name of a segment
    /// in use in any case: removals may fail, and later segments must not stand behind it.
    fn put_away(
        &mut self,
        directory: &Directory,
        path: &Path,
        number: u64,
        size: u64,
        options: Option<JournalOptions>,
    ) -> Result<(), StorageError> {
        let Some(options) = options else { return Ok(()) };
        let spare_path = directory.spare_path(number);
        if path != spare_path {
            directory.files.rename(path, &spare_path)?;
        }
        if options.is_spare_size(size) {
            self.spares.push(number);
        } else {
            self.superfluous.push(number);
        }
        Ok(())
    }
}

/// The header of a segment that is in use by its name; `None` if it was never used under it.
fn own_header(
    file: &dyn File,
    path: &Path,
    number: u64,
) -> Result<Option<SegmentHeader>, StorageError> {
    let what = match scan::read_segment_header(file)? {
        Ok(Some(header)) if header.number == number => return Ok(Some(header)),
        // Renamed for use when the power went.
        Ok(Some(header)) if header.number < number => return Ok(None),
        Ok(Some(_)) => {
            return Err(StorageError::corrupt(path, 0, "a segment under another's name"));
        }
        Ok(None) => "a segment that lost its header",
        Err(what) => what,
    };
    // The header is durable before the first group is written.
    let group = scan::find_group(file, SEGMENT_HEADER_SIZE, None, Lsn(0), &mut Vec::new())?;
    if group.is_some() { Err(StorageError::corrupt(path, 0, what)) } else { Ok(None) }
}

/// Whether the first group is whole, which an earlier segment holds, too.
fn holds_copy(file: &dyn File, path: &Path, header: &SegmentHeader) -> Result<bool, StorageError> {
    let SegmentHeader { salt, first_lsn, .. } = *header;
    let expected = Expected { salt, lsn: first_lsn, previous_crc: None };
    let mut group = Vec::new();
    match scan::read_group(file, SEGMENT_HEADER_SIZE, &expected, &mut group)? {
        Ok(_) => Ok(true),
        Err(what) => {
            let later = scan::find_group(file, SEGMENT_HEADER_SIZE, Some(salt), Lsn(0), &mut group);
            match later? {
                Some(_) => Err(StorageError::corrupt(path, SEGMENT_HEADER_SIZE, what)),
                None => Ok(false),
            }
        }
    }
}

impl<'a> Walk<'a> {
    fn new(pass: Pass, visitor: &'a mut dyn Visitor) -> Self {
        Self {
            pass,
            visitor,
            report: JournalReport::default(),
            next_lsn: None,
            last_lsn: None,
            end: None,
            previous_crc: None,
            held: Group::default(),
            next: Group::default(),
        }
    }
}

impl Walk<'_> {
    /// Reads all segments, one open at a time, or what of them lies below an lsn. Gives the last
    /// lsn of each that counts.
    fn segments(
        &mut self,
        directory: &Directory,
        live: &[Found],
        below: Option<u64>,
    ) -> Result<Vec<u64>, StorageError> {
        let mut last_lsns = Vec::with_capacity(live.len());
        for (index, found) in live.iter().enumerate() {
            let later = live.get(index.saturating_add(1)..).unwrap_or_default();
            let limit = later.iter().map(|found| found.header.follows_at()).chain(below).min();
            let first_lsn = found.header.first_lsn.0;
            // Nothing of it counts, and it may have gone since it was found.
            if limit.is_some_and(|limit| limit <= first_lsn) {
                last_lsns.push(first_lsn.saturating_sub(1));
                continue;
            }
            let mode = if self.pass == Pass::Look { OpenMode::Read } else { OpenMode::ReadWrite };
            let file = directory.files.open(&found.path, mode)?;
            if self.pass == Pass::Survey {
                // The process that wrote this may have died before its last sync.
                file.sync()?;
            }
            last_lsns.push(self.segment(found, &*file, limit)?);
        }
        Ok(last_lsns)
    }

    /// The last lsn that is durable; 0 for none.
    fn last_lsn(&self) -> u64 {
        let before_next = self.next_lsn.map_or(0, |lsn| lsn.saturating_sub(1));
        self.last_lsn.unwrap_or(before_next)
    }

    /// Reads a segment's groups below `limit`, all of which must be there; in the last segment,
    /// without a limit, as many as there are. Gives the last lsn that counts.
    fn segment(
        &mut self,
        found: &Found,
        file: &dyn File,
        limit: Option<u64>,
    ) -> Result<u64, StorageError> {
        let first_lsn = found.header.first_lsn.0;
        let follows_at = found.header.follows_at();
        if self.next_lsn.is_some_and(|next| next != follows_at) {
            let what = "a segment that does not follow the one before";
            return Err(StorageError::corrupt(&found.path, 0, what));
        }
        let mut lsn = first_lsn;
        let mut position = SEGMENT_HEADER_SIZE;
        while limit.is_none_or(|limit| lsn < limit) {
            let salt = found.header.salt;
            let expected = Expected { salt, lsn: Lsn(lsn), previous_crc: self.previous_crc };
            let bytes = &mut self.next.bytes;
            let header = match scan::read_group(file, position, &expected, bytes)? {
                Ok(header) => header,
                Err(what) if limit.is_some() => {
                    return Err(StorageError::corrupt(&found.path, position, what));
                }
                Err(what) => {
                    self.look_behind(found, file, position, what)?;
                    break;
                }
            };
            self.hand_out_held()?;
            self.next.header = Some(header);
            self.next.path.clone_from(&found.path);
            self.next.position = position;
            // The header of its segment says it of the first group there.
            self.next.skipped = if lsn == first_lsn { found.header.skipped } else { 0 };
            std::mem::swap(&mut self.held, &mut self.next);
            self.previous_crc = Some(header.crc);
            self.last_lsn = Some(lsn);
            position = position.saturating_add(header.padded_bytes());
            lsn = lsn.saturating_add(1);
        }
        self.end = Some((found.path.clone(), position));
        self.next_lsn = Some(lsn);
        Ok(lsn.saturating_sub(1))
    }

    /// Looks at what follows the last group: nothing of this segment, or a group that was being
    /// written. Groups are written one after the other, so behind such a one there is nothing.
    fn look_behind(
        &mut self,
        found: &Found,
        file: &dyn File,
        position: u64,
        what: &'static str,
    ) -> Result<(), StorageError> {
        let salt = found.header.salt;
        let bytes = &mut self.next.bytes;
        if scan::find_group(file, position, Some(salt), Lsn(0), bytes)?.is_some() {
            return Err(StorageError::corrupt(&found.path, position, what));
        }
        if let Some(begun) = scan::begun_group(file, position, salt)? {
            let (file, written_ns) = (found.path.clone(), begun.wall_ns);
            self.report.torn_tail = Some(TornTail { file, position, what, written_ns });
        }
        Ok(())
    }

    fn hand_out_held(&mut self) -> Result<(), StorageError> {
        let held = std::mem::take(&mut self.held);
        let handed_out = self.hand_out(&held);
        // What it has read is the last group until there is another one.
        self.held = held;
        handed_out
    }

    /// Hands out the records of a group, if there is one.
    fn hand_out(&mut self, group: &Group) -> Result<(), StorageError> {
        let Some(header) = group.header else { return Ok(()) };
        let (pass, visitor, report) = (self.pass, &mut *self.visitor, &mut self.report);
        group.records(&header, &mut |raw| {
            report.record_count = report.record_count.saturating_add(1);
            let content = raw.content()?;
            Some(match pass {
                Pass::Look | Pass::Survey => {
                    visitor.survey(header.lsn, raw.vbid, raw.bytes, &content);
                    Ok(())
                }
                Pass::Replay if visitor.wants(header.lsn, raw.vbid, &content) => {
                    visitor.replay(header.lsn, raw.decode()?)
                }
                Pass::Replay => Ok(()),
            })
        })?;
        report.group_count = report.group_count.saturating_add(1);
        report.bytes = report.bytes.saturating_add(header.padded_bytes());
        Ok(())
    }
}

impl Group {
    /// Writes the last group into a new segment, or without room for one to its place again: its
    /// sync may have failed, and then nobody can tell whether what was read here is on the disk.
    fn make_durable(
        &self,
        directory: &Directory,
        last_lsn: u64,
        writer: &mut Writer,
    ) -> Result<(), StorageError> {
        let Some(header) = self.header else {
            writer.durable_lsn = last_lsn;
            return Ok(());
        };
        self.check_records()?;
        match writer.rewrite(directory, &header, self.skipped, &self.bytes) {
            // Where the group is, it needs no room. A removed copy does not come back behind a
            // later group: whose segment makes names durable first.
            Err(StorageError::NoSpace(_)) if writer.has_no_copy_of(header.lsn) => {
                self.write_again(directory, &header)?;
                writer.continue_behind(&header);
                Ok(())
            }
            rewritten => rewritten,
        }
    }

    /// Whether all of its records are understood.
    fn check_records(&self) -> Result<(), StorageError> {
        let Some(header) = self.header else { return Ok(()) };
        self.records(&header, &mut |raw| raw.decode().is_some().then_some(Ok(())))
    }

    /// Writes it to where it was read, and syncs it: then it is there, or this has failed.
    fn write_again(&self, directory: &Directory, header: &GroupHeader) -> Result<(), StorageError> {
        let file = directory.files.open(&self.path, OpenMode::ReadWrite)?;
        let bytes = self.bytes.get(..index(header.padded_bytes())).unwrap_or_default();
        file.write_at(bytes, self.position)?;
        Ok(file.sync()?)
    }

    /// Visits the records, all of which must be understood: `visit` gives `None` for one that is
    /// not.
    fn records(
        &self,
        header: &GroupHeader,
        visit: &mut dyn FnMut(&RawRecord<'_>) -> Option<Result<(), StorageError>>,
    ) -> Result<(), StorageError> {
        let corrupt = |what| StorageError::corrupt(&self.path, self.position, what);
        let end = index(header.bytes.into());
        let mut payload = Fields::new(self.bytes.get(GROUP_HEADER_SIZE..end).unwrap_or_default());
        for _ in 0..header.records {
            let visited = RawRecord::take(&mut payload).and_then(|raw| visit(&raw));
            visited.ok_or_else(|| corrupt("a record that is not understood"))??;
        }
        if !payload.rest().is_empty() {
            return Err(corrupt("more in a group than its records"));
        }
        Ok(())
    }
}
