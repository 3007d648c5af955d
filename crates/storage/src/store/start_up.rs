//! What a store finds in its directory when it starts.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use document::{Seqno, Vbid, VbucketState};
use platform::{Files, OpenMode};

use crate::behind::journal_note::NOTE_NAME;
use crate::couchstore::layout::{self, FileName};
use crate::couchstore::{CouchFile, OpenReport};
use crate::error::StorageError;
use crate::journal::{JOURNAL_DIRECTORY, JournalReport};
use crate::records::vbucket_record::VbucketRecord;
use crate::removal::remove_if_there;
use crate::store::open_files::Handle;
use crate::store::vbucket_file::Snapshot;
use crate::store::witness::{Witness, Witnesses};

/// What is known of the last stop beside what is in the files.
#[derive(Clone, Debug, Default)]
pub struct LastStop {
    /// Whether it was a clean one: everything acknowledged is in the files.
    pub was_clean: bool,
    /// Where the files were at the last clean stop; `None` when nobody knows. Of an older stop than
    /// the last one it is what the journal has not begun to tell.
    pub witnesses: Option<Witnesses>,
    /// Whether to go on without a journal that was in use.
    pub accepts_lost_journal: bool,
}

/// What was found. Whoever starts the store logs it.
#[derive(Debug, Default)]
pub struct StartReport {
    /// vBuckets with a usable file, by number.
    pub vbuckets: Vec<FoundVbucket>,
    /// Files that are not used, by name.
    pub ignored: Vec<IgnoredFile>,
    /// What the journal held; `None` without one.
    pub journal: Option<JournalReport>,
    /// vBuckets of which acknowledged writes may be missing, because the journal lacks its end:
    /// everything from the seqno on that follows the one named here.
    pub shortened: Vec<(Vbid, Seqno)>,
    /// Whether nobody can tell if the journal lacks its end: the note beside it is damaged.
    pub journal_note_is_damaged: bool,
    /// Whether the journal that was in use is gone, and that is accepted.
    pub gives_up_journal: bool,
}

/// A vBucket with a usable file.
#[derive(Debug)]
pub struct FoundVbucket {
    /// Which.
    pub vbid: Vbid,
    /// Its state.
    pub record: VbucketRecord,
    /// The highest seqno in the file, or of what it lacks.
    pub high_seqno: Seqno,
    /// The highest seqno that compaction has dropped.
    pub purge_seqno: Seqno,
    /// Documents alive, prepares left out; what the file lacks counts as new ones.
    pub item_count: u64,
    /// What stands behind the newest header and is no part of the file.
    pub passed_over: OpenReport,
    /// Whether everything acknowledged is there, as far as anybody can tell.
    pub is_whole: bool,
    /// Whether the disk is too full for the file to get what the journal has for it. Until
    /// [`crate::Store::apply`] succeeds, what reads files does not see that;
    /// [`crate::Store::unapplied_items`] has it.
    pub file_is_behind: bool,
}

/// A file that is not used.
#[derive(Debug)]
pub struct IgnoredFile {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: WhyIgnored,
}

/// Why a file is not used.
#[derive(Debug)]
pub enum WhyIgnored {
    /// Its name is not one of ours.
    Foreign,
    /// It holds neither a vBucket state nor anything else, as after a crash of an old version. The
    /// vBucket begins empty.
    Empty,
    /// It holds documents and no vBucket state.
    NoState,
    /// A replica's file that ends outside of its snapshot: it is to be built anew from the active
    /// one.
    OutsideSnapshot,
    /// Something in it is not what was written. Older revisions are left alone.
    Corrupt(StorageError),
    /// The system does not let it be read, or it is no file.
    Unreadable(StorageError),
    /// It lacks what the journal goes on from.
    OtherHistory(StorageError),
    /// It is not what it was: a part of it is missing, it is an older copy, or another's.
    Contradicted {
        /// What it was.
        known: Witness,
        /// What it is; `None` when it is not there.
        found: Option<Witness>,
    },
}

impl WhyIgnored {
    /// Whether it is an error that says which file it is about.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::Unreadable(_) | Self::OtherHistory(_))
    }
}

impl fmt::Display for WhyIgnored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => write!(formatter, "its name is not one of ours"),
            Self::Empty => write!(formatter, "it holds nothing"),
            Self::NoState => write!(formatter, "it holds documents and no vBucket state"),
            Self::OutsideSnapshot => {
                write!(formatter, "it is a replica's that ends outside of its snapshot")
            }
            Self::Corrupt(error) | Self::Unreadable(error) | Self::OtherHistory(error) => {
                write!(formatter, "{error}")
            }
            Self::Contradicted { known, found } => {
                let Witness { revision, header_position, high_seqno, .. } = known;
                write!(
                    formatter,
                    "it was revision {revision} with a header at byte {header_position} and seqno \
                     {high_seqno}, and is "
                )?;
                let Some(found) = found else { return write!(formatter, "missing") };
                let Witness { revision, header_position, high_seqno, .. } = found;
                write!(
                    formatter,
                    "revision {revision} with its newest header at byte {header_position} and \
                     seqno {high_seqno}"
                )
            }
        }
    }
}

impl StartReport {
    /// vBuckets whose files are not believed, and those whose files are gone: they are out of
    /// service, whatever else is reported of them.
    pub fn unreadable_vbuckets(&self) -> impl Iterator<Item = Vbid> {
        self.ignored.iter().filter(|ignored| ignored.is_disbelieved()).filter_map(IgnoredFile::vbid)
    }

    /// Damaged files that were set aside: of which vBuckets, in which revisions.
    pub(crate) fn set_aside(&self) -> impl Iterator<Item = (Vbid, u64)> {
        self.ignored.iter().filter_map(|ignored| layout::set_aside(&ignored.name))
    }

    /// The vBucket is out of service.
    pub(crate) fn give_up(&mut self, vbid: Vbid, revision: u64, why: WhyIgnored) {
        self.vbuckets.retain(|found| found.vbid != vbid);
        self.ignored.retain(|ignored| ignored.vbid() != Some(vbid));
        self.ignored.push(IgnoredFile { name: layout::data_file(vbid, revision), why });
    }
}

impl IgnoredFile {
    /// Whether it puts its vBucket out of service.
    pub fn is_disbelieved(&self) -> bool {
        !matches!(self.why, WhyIgnored::Foreign | WhyIgnored::Empty)
    }

    /// The vBucket whose data file it is by its name.
    pub fn vbid(&self) -> Option<Vbid> {
        match layout::parse(&self.name) {
            FileName::Data(vbid, _) => Some(vbid),
            _ => None,
        }
    }
}

/// What a directory's names say.
#[derive(Default)]
struct Listing {
    /// Revisions of each vBucket, in rising order.
    revisions: BTreeMap<Vbid, Vec<u64>>,
    leftovers: Vec<(Vbid, String)>,
    foreign: Vec<String>,
}

/// Looks through `directory`, which is created if it is missing; removes what creations and
/// compactions have left behind; makes durable what it is about to report as persisted.
pub(crate) fn start(
    files: &dyn Files,
    directory: &Path,
) -> Result<(StartReport, Vec<(Vbid, Handle)>), StorageError> {
    files.create_directories(directory)?;
    let listing = list(files, directory)?;
    // What is seen now stays: a new file whose name the power may take away again replaces none.
    files.sync_directory(directory)?;
    let mut report = StartReport::default();
    let foreign = listing.foreign.into_iter();
    report.ignored.extend(foreign.map(|name| IgnoredFile { name, why: WhyIgnored::Foreign }));
    let mut handles = Vec::new();
    let leftovers = listing.leftovers.into_iter();
    let mut superfluous: Vec<String> = leftovers.map(|(_, name)| name).collect();
    for (vbid, mut revisions) in listing.revisions {
        let revision = revisions.pop().expect("a vBucket is listed with its first revision");
        let name = layout::data_file(vbid, revision);
        let mut handle = Handle { revision, ..Handle::default() };
        match load(files, &directory.join(&name), vbid, revision)? {
            Ok((found, witness)) => {
                report.vbuckets.push(found);
                handle.header_position = Some(witness.header_position);
                handle.witness = Some(witness);
            }
            Err(why) => report.ignored.push(IgnoredFile { name, why }),
        }
        // Beside a newest one that is not believed they may be all that is left.
        if handle.header_position.is_some() {
            let older = revisions.into_iter();
            superfluous.extend(older.map(|revision| layout::data_file(vbid, revision)));
        }
        handles.push((vbid, handle));
    }
    for name in &superfluous {
        remove_if_there(files, &directory.join(name))?;
    }
    if !superfluous.is_empty() {
        files.sync_directory(directory)?;
    }
    Ok((report, handles))
}

/// The names of all files of each vBucket, in the order in which they are to be removed: the newest
/// revision goes last, until then it hides the older ones.
pub(crate) fn files_by_vbucket(
    files: &dyn Files,
    directory: &Path,
) -> Result<BTreeMap<Vbid, Vec<String>>, StorageError> {
    let listing = list(files, directory)?;
    let mut names: BTreeMap<Vbid, Vec<String>> = BTreeMap::new();
    for (vbid, name) in listing.leftovers {
        names.entry(vbid).or_default().push(name);
    }
    for (vbid, revisions) in listing.revisions {
        let revisions = revisions.into_iter().map(|revision| layout::data_file(vbid, revision));
        names.entry(vbid).or_default().extend(revisions);
    }
    Ok(names)
}

/// Of the names of one vBucket's files those of revisions that the newest one hides.
pub(crate) fn hidden_files(names: &[String]) -> impl Iterator<Item = &String> {
    let is_data = |name: &&String| matches!(layout::parse(name), FileName::Data(..));
    let older = names.split_last().map_or(&[][..], |(_, older)| older);
    older.iter().filter(is_data)
}

fn list(files: &dyn Files, directory: &Path) -> Result<Listing, StorageError> {
    let mut listing = Listing::default();
    for name in files.list(directory)? {
        match layout::parse(&name) {
            FileName::Data(vbid, revision) => {
                let revisions = listing.revisions.entry(vbid).or_default();
                revisions.push(revision);
                revisions.sort_unstable();
            }
            FileName::Leftover(vbid) => listing.leftovers.push((vbid, name)),
            FileName::Ignored => {}
            FileName::Foreign if name == JOURNAL_DIRECTORY || name == NOTE_NAME => {}
            FileName::Foreign => listing.foreign.push(name),
        }
    }
    Ok(listing)
}

/// Reads a vBucket's file. The outer error is one that any file would meet: nothing can be said
/// about this one.
pub(crate) fn load(
    files: &dyn Files,
    path: &Path,
    vbid: Vbid,
    revision: u64,
) -> Result<Result<(FoundVbucket, Witness), WhyIgnored>, StorageError> {
    let (snapshot, passed_over, record) = match read(files, path) {
        Ok(read) => read,
        Err(error) => return not_read(error).map(Err),
    };
    let header = &snapshot.header;
    let Some(record) = record else {
        let is_empty = header.high_seqno == 0 && header.by_id.is_none();
        return Ok(Err(if is_empty { WhyIgnored::Empty } else { WhyIgnored::NoState }));
    };
    let witness = Witness::of(vbid, revision, header, &record);
    let high_seqno = Seqno(header.high_seqno);
    let Some(record) = ending_at(record, high_seqno) else {
        return Ok(Err(WhyIgnored::OutsideSnapshot));
    };
    let found = FoundVbucket {
        vbid,
        high_seqno,
        purge_seqno: Seqno(header.purge_seqno),
        item_count: header.alive_count().saturating_sub(record.on_disk_prepares),
        record,
        // What stands behind the header may have been a newer one.
        is_whole: passed_over.skipped_count == 0,
        passed_over,
        file_is_behind: false,
    };
    Ok(Ok((found, witness)))
}

/// What an error says about one file, unless it says nothing about it.
pub(crate) fn not_read(error: StorageError) -> Result<WhyIgnored, StorageError> {
    match error {
        StorageError::Corrupt { .. } => Ok(WhyIgnored::Corrupt(error)),
        StorageError::Failed(_) => Ok(WhyIgnored::Unreadable(error)),
        error => Err(error),
    }
}

/// The state of a vBucket whose history ends at `high_seqno`; `None` for a replica that ends
/// outside of its snapshot.
pub(crate) fn ending_at(mut record: VbucketRecord, high_seqno: Seqno) -> Option<VbucketRecord> {
    let is_inside = (record.snapshot_start..=record.snapshot_end).contains(&high_seqno);
    match record.state {
        VbucketState::Replica | VbucketState::Pending => return is_inside.then_some(record),
        // What it has of a snapshot it may have received, and it may receive and be promoted again.
        VbucketState::Dead if is_inside => {}
        VbucketState::Dead | VbucketState::Active => {
            record.snapshot_start = high_seqno;
            record.snapshot_end = high_seqno;
        }
    }
    Some(record)
}

type Loaded = (Snapshot, OpenReport, Option<VbucketRecord>);

fn read(files: &dyn Files, path: &Path) -> Result<Loaded, StorageError> {
    let file = CouchFile::open(files, path, OpenMode::ReadWrite)?;
    let (header, report) = file.newest_header()?;
    // The process that wrote this header may have died before its last sync, or after that failed.
    // What is reported from here on counts as persisted, so it has to be.
    file.make_header_sure(&header)?;
    let snapshot = Snapshot { file: Arc::new(file), header };
    let record = snapshot.record()?;
    Ok((snapshot, report, record))
}
