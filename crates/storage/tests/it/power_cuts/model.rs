//! A store's life, and what must be found after it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use document::{Seqno, Vbid};
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, Files, WallTime};
use storage::{
    CompactionPhase, CompactionProgress, CompactionRequest, JournalOptions, RolledBack,
    StartReport, StorageError, Store, StoreOptions,
};

use super::content::{Content, History, STEP, batch_of, content_of, high_seqno};
use super::scenarios::Step;
use crate::batches::{DIRECTORY, record, scan, unreadable};
use crate::compaction::{Between, verify_sound};

/// Commits fill a segment soon.
const JOURNAL: JournalOptions = JournalOptions {
    segment_bytes: 16 << 10,
    bytes_max: 64 << 10,
    group_bytes_max: 8 << 10,
    portion_bytes: 4096,
};

/// What is done about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnError {
    /// It is the end.
    Stop,
    /// The cause is taken away, and it is tried again.
    Retry,
    /// The same, but commits are given up.
    Skip,
}

/// One vBucket.
#[derive(Clone, Debug, Default)]
struct Known {
    history: History,
    /// What may be found instead, because an operation failed.
    others: Vec<History>,
}

/// A store, and what is known of it.
pub(super) struct Life {
    files: SimulatedFiles,
    is_journal: bool,
    on_error: OnError,
    store: Option<Arc<Store>>,
    vbuckets: Mutex<BTreeMap<u16, Known>>,
    last_number: Mutex<u64>,
    damaged: Option<(u16, PathBuf, Vec<u8>)>,
}

impl Life {
    pub(super) fn new(files: SimulatedFiles, is_journal: bool, on_error: OnError) -> Self {
        let (vbuckets, last_number) = (Mutex::default(), Mutex::default());
        Self { files, is_journal, on_error, store: None, vbuckets, last_number, damaged: None }
    }

    /// Goes through the steps; `false` when an error stopped it.
    pub(super) fn run(&mut self, steps: &[Step], at: &str) -> bool {
        if self.tried(at, Self::open).is_none() {
            return false;
        }
        let all = steps.iter().all(|step| self.step(*step, at));
        self.store = None;
        all
    }

    fn step(&mut self, step: Step, at: &str) -> bool {
        match step {
            Step::Flush(vbids) => return self.flush(vbids, at),
            Step::Compact(vbid) => return self.compact(vbid, at),
            Step::Rollback(vbid, commits) => return self.rollback(vbid, commits, at),
            Step::Delete(vbid) => return self.delete(&[vbid], at),
            Step::DeleteAll => {
                let vbids: Vec<u16> = lock(&self.vbuckets).keys().copied().collect();
                return self.delete(&vbids, at);
            }
            _ => {}
        }
        self.tried(at, |life| match step {
            Step::Apply(vbid) => life.store().apply(Vbid(vbid)).map(drop),
            Step::ApplyAll => life.apply_all(),
            Step::Prepare => life.store().prepare_journal().map(drop),
            Step::CarryForward => life.store().carry_forward(true),
            Step::Restart => life.open(),
            Step::Reopen(is_journal) => {
                life.is_journal = is_journal;
                life.open()
            }
            Step::Close => {
                if life.store.is_some() {
                    life.apply_all()?;
                    assert!(life.store().close_journal(), "everything is applied");
                }
                life.open()
            }
            Step::Damage(vbid) => {
                life.store = None;
                life.damage(vbid);
                life.open()
            }
            Step::Restore => {
                life.store = None;
                life.restore();
                life.open()
            }
            Step::Reset(vbid) => {
                life.store().apply(Vbid(vbid))?;
                life.uncertain(vbid, Vec::new());
                life.store().reset(Vbid(vbid), &record(0))?;
                life.certain(vbid, Vec::new());
                Ok(())
            }
            _ => unreachable!("done above"),
        })
        .is_some()
    }

    /// Does what it takes to get over an error.
    fn tried<T>(
        &mut self,
        at: &str,
        mut action: impl FnMut(&mut Self) -> Result<T, StorageError>,
    ) -> Option<T> {
        for _ in 0..3 {
            match action(self) {
                Ok(value) => return Some(value),
                Err(error) => self.get_over(&error, at)?,
            }
        }
        panic!("{at}: it fails for ever");
    }

    fn get_over(&self, error: &StorageError, at: &str) -> Option<()> {
        let is_of_system = matches!(
            error,
            StorageError::NoSpace(_)
                | StorageError::TooManyOpenFiles(_)
                | StorageError::JournalNoteUnreadable(_)
                | StorageError::Failed(_)
        );
        assert!(is_of_system, "{at}: {error}");
        self.files.heal();
        (self.on_error != OnError::Stop).then_some(())
    }

    fn store(&self) -> Arc<Store> {
        self.store.clone().expect("the store is open")
    }

    fn open(&mut self) -> Result<(), StorageError> {
        self.store = None;
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let journal = self.is_journal.then_some(JOURNAL);
        let options = StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal };
        let (store, report) =
            Store::open(Arc::new(self.files.clone()), Path::new(DIRECTORY), options)?;
        if let Some(error) = unreadable(&report) {
            return Err(error);
        }
        let damaged: Vec<u16> = report.unreadable_vbuckets().map(|vbid| vbid.0).collect();
        let expected: Vec<u16> = self.damaged.iter().map(|(vbid, ..)| *vbid).collect();
        assert_eq!(damaged, expected, "{:?}", report.ignored);
        self.store = Some(Arc::new(store));
        self.settle_others(&expected);
        self.check_report(&report, &expected);
        Ok(())
    }

    /// A start says how far each vBucket goes, in its file or behind it.
    fn check_report(&self, report: &StartReport, damaged: &[u16]) {
        for (vbid, known) in lock(&self.vbuckets).iter() {
            if !damaged.contains(vbid) {
                let found = report.vbuckets.iter().find(|found| found.vbid == Vbid(*vbid));
                let reported = found.map_or(0, |found| found.high_seqno.0);
                assert_eq!(reported, high_seqno(&known.history), "vBucket {vbid}: {report:?}");
            }
        }
    }

    /// What a failed commit has come to, a start decides.
    fn settle_others(&self, damaged: &[u16]) {
        let known = lock(&self.vbuckets).clone();
        for (vbid, known) in known {
            if !known.others.is_empty() && !damaged.contains(&vbid) {
                self.compare(vbid, known, "a start");
            }
        }
    }

    fn apply_all(&self) -> Result<(), StorageError> {
        let store = self.store();
        while let Some(vbid) = store.next_unapplied(|_| true) {
            store.apply(vbid)?;
        }
        Ok(())
    }

    fn history(&self, vbid: u16) -> History {
        lock(&self.vbuckets).entry(vbid).or_default().history.clone()
    }

    fn uncertain(&self, vbid: u16, other: History) {
        lock(&self.vbuckets).entry(vbid).or_default().others.push(other);
    }

    fn certain(&self, vbid: u16, history: History) {
        lock(&self.vbuckets).insert(vbid, Known { history, others: Vec::new() });
    }

    /// Commits once for each; `Err` of the first that failed.
    fn commit(&self, vbids: &[u16]) -> Result<(), StorageError> {
        let (mut batches, mut histories) = (Vec::new(), Vec::new());
        for &vbid in vbids {
            let mut number = lock(&self.last_number);
            *number += 1;
            let before = self.history(vbid);
            batches.push(batch_of(vbid, &before, *number));
            histories.push([before, vec![*number]].concat());
        }
        let mut histories = vbids.iter().zip(histories);
        let mut result = Ok(());
        self.store().commit(batches, |vbid, committed| {
            let (expected, history) = histories.next().unwrap();
            assert_eq!(vbid.0, *expected, "answers come in order");
            match committed {
                Ok(report) => {
                    assert_eq!(report.high_seqno.0, high_seqno(&history));
                    self.certain(vbid.0, history);
                }
                Err(error) => {
                    self.uncertain(vbid.0, history);
                    result = result.clone().and(Err(error));
                }
            }
        });
        result
    }

    fn flush(&mut self, vbids: &[u16], at: &str) -> bool {
        let mut wanted: Vec<(u16, usize)> =
            vbids.iter().map(|vbid| (*vbid, self.history(*vbid).len() + 1)).collect();
        for _ in 0..8 {
            wanted.retain(|(vbid, length)| self.history(*vbid).len() < *length);
            let missing: Vec<u16> = wanted.iter().map(|(vbid, _)| *vbid).collect();
            match self.commit(&missing) {
                Ok(()) => return true,
                Err(StorageError::JournalFull { .. }) => {
                    let made_room = self.tried(at, |life| {
                        life.apply_all()?;
                        life.store().carry_forward(true)
                    });
                    if made_room.is_none() {
                        return false;
                    }
                }
                Err(error) => {
                    if self.get_over(&error, at).is_none() {
                        return false;
                    }
                    if self.on_error == OnError::Skip {
                        return true;
                    }
                }
            }
        }
        panic!("{at}: commits fail for ever");
    }

    /// Commits and applies between the phases; that it fails is of no account here.
    fn compact(&mut self, vbid: u16, at: &str) -> bool {
        self.tried(at, |life| {
            let store = life.store();
            let result = Mutex::new(Ok(()));
            let between = Between(|phase| {
                let mut result = lock(&result);
                if result.is_ok() {
                    *result = life.commit(&[vbid]);
                    if phase == CompactionPhase::CatchingUp {
                        *result = result.clone().and(store.apply(Vbid(vbid)).map(drop));
                    }
                }
            });
            let request = CompactionRequest { sync_bytes: 4096, ..CompactionRequest::default() };
            let progress = CompactionProgress::new();
            let compacted = store.compact(Vbid(vbid), &request, &progress, &between);
            lock(&result).clone()?;
            compacted.map(drop)
        })
        .is_some()
    }

    fn delete(&mut self, vbids: &[u16], at: &str) -> bool {
        vbids.iter().for_each(|vbid| self.uncertain(*vbid, Vec::new()));
        let deleted = self.tried(at, |life| match vbids {
            [vbid] => life.store().delete(Vbid(*vbid)),
            _ => life.store().delete_all(|_| {}),
        });
        if deleted.is_some() {
            vbids.iter().for_each(|vbid| self.certain(*vbid, Vec::new()));
        }
        deleted.is_some()
    }

    fn rollback(&mut self, vbid: u16, commits: usize, at: &str) -> bool {
        let before = self.history(vbid);
        let wanted = before[..before.len().saturating_sub(commits)].to_vec();
        self.tried(at, |life| {
            life.store().apply(Vbid(vbid))?;
            (0..=wanted.len()).for_each(|end| life.uncertain(vbid, wanted[..end].to_vec()));
            let seqno = Seqno(high_seqno(&wanted));
            let after = match life.store().rollback(Vbid(vbid), seqno)? {
                RolledBack::To(Seqno(reached)) => {
                    let length = usize::try_from(reached / STEP).unwrap();
                    assert!(length <= wanted.len(), "a rollback goes back far enough");
                    wanted[..length].to_vec()
                }
                RolledBack::Reset => {
                    life.store().reset(Vbid(vbid), &record(0))?;
                    Vec::new()
                }
            };
            life.certain(vbid, after);
            Ok(())
        })
        .is_some()
    }

    fn damage(&mut self, vbid: u16) {
        if self.damaged.is_none() {
            let Some(path) = self.file_of(vbid) else { return };
            let content = self.files.content(&path).unwrap();
            self.files.insert(&path, &vec![0xff; content.len()]);
            self.damaged = Some((vbid, path, content));
        }
    }

    fn restore(&mut self) {
        if let Some((_, path, content)) = self.damaged.take() {
            self.files.insert(&path, &content);
        }
    }

    fn file_of(&self, vbid: u16) -> Option<PathBuf> {
        let names = self.files.list(Path::new(DIRECTORY)).unwrap();
        let revision =
            |name: &String| name.strip_prefix(&format!("{vbid}.couch."))?.parse::<u64>().ok();
        let newest = names.iter().filter_map(revision).max()?;
        Some(Path::new(DIRECTORY).join(format!("{vbid}.couch.{newest}")))
    }

    /// Starts, compares, and goes on; once more after another power cut.
    pub(super) fn check(&mut self, at: &str) {
        self.restore();
        self.on_error = OnError::Stop;
        for round in 0..2 {
            let at = format!("{at}, start {round}");
            let opened = self.open();
            assert!(opened.is_ok(), "{at}: {opened:?}");
            let known: Vec<(u16, Known)> =
                lock(&self.vbuckets).iter().map(|(vbid, known)| (*vbid, known.clone())).collect();
            for (vbid, known) in known {
                self.compare(vbid, known, &at);
            }
            let vbids: Vec<u16> = lock(&self.vbuckets).keys().copied().collect();
            assert!(self.flush(&vbids, &at), "{at}: the store goes on");
            self.store = None;
            self.files.power_cut(0);
        }
    }

    fn compare(&self, vbid: u16, known: Known, at: &str) {
        let (store, mut found) = (self.store(), Content::new());
        let in_file = scan(&store, Vbid(vbid));
        for item in in_file.into_iter().chain(store.unapplied_items(Vbid(vbid))) {
            let value = (item.seqno().0, item.value().to_vec());
            found.insert(item.key().encoded().to_vec(), value);
        }
        let mut possible = std::iter::once(&known.history).chain(&known.others);
        let Some(history) = possible.find(|history| content_of(history) == found) else {
            let found: Vec<_> = found.values().map(|(seqno, _)| *seqno).collect();
            panic!("{at}: vBucket {vbid}: {known:?}, found seqnos {found:?}");
        };
        self.certain(vbid, history.clone());
        if let Some(path) = self.file_of(vbid) {
            verify_sound(&self.files, &path);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
