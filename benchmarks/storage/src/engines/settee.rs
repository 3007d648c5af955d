//! Ours: a store with a journal whose files follow it, and a store whose files are committed at
//! once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use document::{Cas, FailoverEntry, Seqno, VbUuid, Vbid, VbucketState};
use platform::{Clock, Entropy};
use storage::StorageError;
use storage::{FlushBatch, JournalOptions, Store, StoreOptions, VbucketRecord};

use super::Engine;
use crate::appliers::Appliers;
use crate::counted_files::CountedFiles;
use crate::documents::Document;

/// A journal before the file of one vBucket.
pub const JOURNAL: &str = "settee-journal";
/// The same, but the file follows only when everything is written.
pub const ALONE: &str = "settee-journal-alone";
/// A journal before the files of 1024 vBuckets, over which batches are spread.
pub const JOURNAL_1024: &str = "settee-journal-1024";
/// Commits to the file of one vBucket, which stays open.
pub const PLAIN: &str = "settee-plain";
/// Commits to the file of one vBucket, which is closed after each: another vBucket's file takes the
/// only handle, outside of what is measured.
pub const REOPENED: &str = "settee-reopened";

/// How long the flusher of a bucket waits when the journal is full and nobody wakes it.
const JOURNAL_FULL_PAUSE: Duration = Duration::from_millis(50);
const OPEN_FILES_MAX: usize = 2048;
const MANY_VBUCKETS: u16 = 1024;

/// How a store is opened.
#[derive(Clone, Copy)]
struct Mode {
    vbuckets: u16,
    has_journal: bool,
    has_appliers: bool,
    is_reopened: bool,
}

const PLAIN_MODE: Mode =
    Mode { vbuckets: 1, has_journal: false, has_appliers: false, is_reopened: false };

struct Settee {
    mode: Mode,
    store: Arc<Store>,
    files: CountedFiles,
    appliers: Option<Appliers>,
    /// The last seqno of each vBucket.
    seqnos: Vec<Seqno>,
    clock: Clock,
    made_items_in: Duration,
}

pub(super) fn open_journal(directory: &Path) -> Result<Box<dyn Engine>> {
    open(directory, Mode { has_journal: true, has_appliers: true, ..PLAIN_MODE })
}

pub(super) fn open_alone(directory: &Path) -> Result<Box<dyn Engine>> {
    open(directory, Mode { has_journal: true, ..PLAIN_MODE })
}

pub(super) fn open_journal_1024(directory: &Path) -> Result<Box<dyn Engine>> {
    open(
        directory,
        Mode { vbuckets: MANY_VBUCKETS, has_journal: true, has_appliers: true, ..PLAIN_MODE },
    )
}

pub(super) fn open_plain(directory: &Path) -> Result<Box<dyn Engine>> {
    open(directory, PLAIN_MODE)
}

pub(super) fn open_reopened(directory: &Path) -> Result<Box<dyn Engine>> {
    open(directory, Mode { is_reopened: true, ..PLAIN_MODE })
}

fn open(directory: &Path, mode: Mode) -> Result<Box<dyn Engine>> {
    platform::process::raise_open_files_limit();
    let options = StoreOptions {
        entropy: Entropy::real(),
        clock: Clock::real(),
        open_files_max: if mode.is_reopened { 1 } else { OPEN_FILES_MAX },
        journal: mode.has_journal.then(JournalOptions::default),
    };
    let files = CountedFiles::default();
    let (store, report) = Store::open(Arc::new(files.clone()), &directory.join("settee"), options)?;
    let mut seqnos = vec![Seqno(0); usize::from(mode.vbuckets) + usize::from(mode.is_reopened)];
    for found in report.vbuckets {
        let seqno = seqnos.get_mut(usize::from(found.vbid.0)).context("a vBucket too many")?;
        *seqno = found.high_seqno;
    }
    let store = Arc::new(store);
    let appliers = if mode.has_appliers { Some(Appliers::start(&store)?) } else { None };
    let settee = Settee {
        mode,
        store,
        files,
        appliers,
        seqnos,
        clock: Clock::real(),
        made_items_in: Duration::ZERO,
    };
    if mode.is_reopened && settee.seqnos[usize::from(mode.vbuckets)] == Seqno(0) {
        let empty = empty_batch(Vbid(mode.vbuckets), Seqno(0));
        settee.try_commit(vec![empty])?;
    }
    Ok(Box::new(settee))
}

impl Engine for Settee {
    fn commit(&mut self, batch: &[Document]) -> Result<()> {
        let started = self.clock.now();
        let mut batches = self.batches(batch);
        self.made_items_in = self.clock.now().since(started);
        while !batches.is_empty() {
            batches = self.try_commit(batches)?;
        }
        if let Some(appliers) = &self.appliers {
            appliers.follow();
        }
        Ok(())
    }

    fn between(&mut self) -> Result<()> {
        if self.mode.is_reopened {
            self.store.high_seqno(Vbid(self.mode.vbuckets))?;
        }
        if self.appliers.is_none() {
            self.store.prepare_journal()?;
        }
        Ok(())
    }

    fn made_items_in(&self) -> Duration {
        self.made_items_in
    }

    fn block_bytes(&self) -> Option<u64> {
        Some(self.files.block_bytes())
    }

    fn drain(&mut self) -> Result<()> {
        let had_appliers = self.appliers.take().is_some();
        while let Some(vbid) = self.store.next_unapplied(|_| true) {
            self.store.apply(vbid)?;
        }
        if had_appliers {
            self.appliers = Some(Appliers::start(&self.store)?);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.appliers);
        ensure!(self.store.close_journal(), "the files are behind the journal");
        Ok(())
    }
}

impl Settee {
    /// A batch for each vBucket that has any of the documents.
    fn batches(&mut self, documents: &[Document]) -> Vec<FlushBatch> {
        let mut batches: Vec<FlushBatch> = Vec::new();
        let mut places: Vec<Option<usize>> = vec![None; usize::from(self.mode.vbuckets)];
        for document in documents {
            let vbid = Vbid((document.number % u64::from(self.mode.vbuckets)) as u16);
            let place = &mut places[usize::from(vbid.0)];
            let seqno = &mut self.seqnos[usize::from(vbid.0)];
            let place = *place.get_or_insert_with(|| {
                batches.push(empty_batch(vbid, *seqno));
                batches.len() - 1
            });
            seqno.0 += 1;
            batches[place].items.push(document.item(*seqno));
        }
        for batch in &mut batches {
            batch.state = state(self.seqnos[usize::from(batch.vbid.0)]);
        }
        batches
    }

    /// Commits and returns what the journal had no room for, after the pause of a flusher.
    fn try_commit(&self, batches: Vec<FlushBatch>) -> Result<Vec<FlushBatch>> {
        // Sharing the items of a batch costs what the flusher pays for taking them from the log.
        let mut retried = if self.mode.has_journal { batches.clone() } else { Vec::new() };
        let mut is_done = Vec::with_capacity(batches.len());
        let mut failure = None;
        self.store.commit(batches, |_, result| match result {
            Ok(_) => is_done.push(true),
            Err(StorageError::JournalFull { .. }) => is_done.push(false),
            Err(error) => failure = Some(error),
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        let mut is_done = is_done.into_iter();
        retried.retain(|_| is_done.next() == Some(false));
        if let Some(appliers) = &self.appliers {
            appliers.note_journal(!retried.is_empty());
            if !retried.is_empty() {
                appliers.follow();
                appliers.wait_for_apply(JOURNAL_FULL_PAUSE);
            }
        }
        Ok(retried)
    }
}

fn empty_batch(vbid: Vbid, previous_seqno: Seqno) -> FlushBatch {
    FlushBatch { vbid, previous_seqno, items: Vec::new(), state: state(previous_seqno) }
}

/// The state of an active vBucket, as of a seqno.
fn state(seqno: Seqno) -> VbucketRecord {
    let failover_table = [FailoverEntry { uuid: VbUuid(0xfeed), seqno: Seqno(0) }].into();
    VbucketRecord {
        failover_table,
        snapshot_start: seqno,
        snapshot_end: seqno,
        max_cas: Cas(seqno.0 + 1),
        max_visible_seqno: seqno,
        ..VbucketRecord::new(VbucketState::Active)
    }
}
