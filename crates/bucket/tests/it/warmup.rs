//! Coming back: metadata first, then values, and what stays away.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bucket::{BucketConfig, Completion, Refused, WarmupPhase};
use document::{Vbid, VbucketState};
use platform::simulated::SimulatedFiles;
use platform::{File, FileError, Files, OpenMode};
use vbucket::{StoreMode, Waiter};

use crate::damage::BLOCKED;
use crate::support::{DIRECTORY, Machine, No, OTHER, VBID, Waits, config};

fn filled() -> Machine {
    let mut machine = Machine::new();
    for number in 0..100 {
        for vbid in (0..4).map(Vbid) {
            machine.set(vbid, &format!("key-{number}"), &[b'x'; 500]).unwrap();
        }
    }
    machine.run();
    machine
}

#[test]
fn a_vbucket_warms_then_fetches_then_has_everything_in_memory() {
    let mut machine = filled().stop_and_start();
    assert_eq!(machine.find(VBID, "key-1").unwrap_err(), Refused::Warming);
    assert_eq!(machine.set(VBID, "key-1", b"x").unwrap_err(), Refused::Warming);
    assert_eq!(machine.bucket.warmup_progress().phase, WarmupPhase::Metadata);
    while machine.bucket.warmup_progress().phase == WarmupPhase::Metadata {
        assert!(machine.driver.run_one());
    }
    assert!(machine.bucket.wait_until_serving(Duration::ZERO));
    assert_eq!(machine.bucket.statistics().document_count, 400);
    assert_eq!(machine.bucket.statistics().ejected_count, 400);
    machine.session.waiter = Waiter(9);
    assert_eq!(machine.find(VBID, "key-1").unwrap_err(), Waits);
    while machine.heard.is_empty() {
        assert!(machine.driver.run_one());
    }
    assert_eq!(machine.heard.take(), [(9, Completion::Retry(None))]);
    assert_eq!(machine.find(VBID, "key-1").unwrap().item.value(), [b'x'; 500]);
    machine.run();
    let progress = machine.bucket.warmup_progress();
    assert_eq!((progress.phase, progress.was_clean), (WarmupPhase::Done, true));
    assert_eq!((progress.documents_loaded, progress.documents_total), (400, 400));
    assert_eq!((progress.vbuckets_loaded, progress.vbuckets_failed), (4, 0));
    assert_eq!(machine.bucket.statistics().ejected_count, 0);
}

#[test]
fn values_stay_on_disk_when_memory_is_full_enough_and_are_fetched() {
    let mut machine = filled();
    machine.config.memory_quota_bytes = 200_000;
    let mut machine = machine.stop_and_start();
    machine.run();
    let statistics = machine.bucket.statistics();
    assert_eq!(statistics.warmup.phase, WarmupPhase::Done);
    assert_eq!(statistics.document_count, 400);
    assert!((100..399).contains(&statistics.ejected_count), "{}", statistics.ejected_count);
    assert!(statistics.documents_bytes < 190_000, "{}", statistics.documents_bytes);
    for number in 0..100 {
        assert_eq!(machine.get(Vbid(3), &format!("key-{number}")).unwrap(), [b'x'; 500]);
    }
}

#[test]
fn a_corrupt_file_keeps_its_vbucket_away_and_no_other() {
    for damage_end_only in [false, true] {
        let machine = filled();
        machine.bucket.shut_down().unwrap();
        let name = machine
            .files
            .list(Path::new(DIRECTORY))
            .unwrap()
            .into_iter()
            .find(|name| name.starts_with("0.couch"))
            .unwrap();
        let path = Path::new(DIRECTORY).join(name);
        let mut content = machine.files.content(&path).unwrap();
        let from = if damage_end_only { 4096 } else { 0 };
        let until = if damage_end_only { 8192.min(content.len()) } else { content.len() };
        content[from..until].iter_mut().for_each(|byte| *byte ^= 0x55);
        machine.files.insert(&path, &content);
        let mut machine = machine.restart();
        machine.run();
        assert_eq!(machine.get(OTHER, "key-1").unwrap(), [b'x'; 500]);
        if !damage_end_only {
            assert_eq!(machine.get(VBID, "key-1"), Err(No(BLOCKED)));
            assert_eq!(machine.set(VBID, "key-1", b"new").unwrap_err(), BLOCKED);
        }
        assert_eq!(machine.bucket.warmup_progress().phase, WarmupPhase::Done);
    }
}

#[test]
fn progress_can_be_asked_for_at_any_time() {
    let machine = Machine::begin(SimulatedFiles::new(), config()).unwrap();
    let progress = machine.bucket.warmup_progress();
    assert_eq!((progress.phase, progress.vbuckets_total), (WarmupPhase::Done, 0));
}

#[test]
fn a_crash_begins_a_new_branch_and_a_clean_stop_does_not() {
    let mut machine = filled();
    let before = machine.branches(VBID);
    machine = machine.stop_and_start();
    machine.run();
    assert_eq!(machine.branches(VBID), before);
    let mut machine = machine.power_cut(0);
    machine.run();
    let after = machine.branches(VBID);
    assert_eq!(after[1..], before);
    let mut machine = machine.stop_and_start();
    machine.run();
    assert_eq!(
        machine.branches(VBID),
        after,
        "the new branch is on disk although nothing was written"
    );
}

#[test]
fn a_clean_stop_while_loading_does_not_make_up_for_the_crash_before() {
    let machine = filled();
    let before = machine.branches(VBID);
    let machine = machine.power_cut(0);
    let mut machine = machine.stop_and_start();
    machine.run();
    assert_eq!(machine.branches(VBID)[1..], before);
}

#[test]
fn the_expiry_pager_deletes_what_nobody_reads() {
    let interval = Duration::from_secs(600);
    let config = BucketConfig { expiry_pager_interval: interval, ..config() };
    let mut machine = Machine::with(config);
    let soon = machine.clock.wall_time().seconds() + 100;
    for number in 0..250 {
        let name = format!("key-{number}");
        machine.store(StoreMode::Set, VBID, &name, b"value", soon).unwrap();
    }
    machine.set(VBID, "stays", b"value").unwrap();
    machine.run();
    machine.evict(VBID, "key-7").unwrap();
    machine.advance(Duration::from_secs(101));
    assert_eq!(machine.bucket.statistics().document_count, 251);
    assert_eq!(machine.find(VBID, "key-7").unwrap_err(), Refused::NotFound);
    machine.advance(interval);
    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.document_count, statistics.tombstone_count), (1, 0));
    assert_eq!((statistics.vbuckets.expirations, statistics.expiry_pager_rounds), (250, 1));

    let soon = machine.clock.wall_time().seconds() + 1;
    machine.store(StoreMode::Set, VBID, "later", b"value", soon).unwrap();
    machine.bucket.set_expiry_pager_interval_seconds(5);
    machine.advance(Duration::from_secs(6));
    assert_eq!(machine.bucket.statistics().document_count, 1, "another interval holds at once");
    machine.advance(Duration::from_secs(5));
    assert_eq!(machine.bucket.statistics().expiry_pager_rounds, 3);
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.bucket.statistics().document_count, 1);
    assert_eq!(machine.get(VBID, "stays").unwrap(), b"value");
}

#[test]
fn only_persisted_values_leave_memory() {
    let mut machine = Machine::new();
    assert_eq!(machine.evict(VBID, "key"), Err(No(Refused::NotFound)));
    machine.set(VBID, "key", b"value").unwrap();
    assert_eq!(machine.evict(VBID, "key"), Err(No(Refused::NotPersisted)));
    machine.run();
    assert_eq!(machine.evict(VBID, "key"), Ok(()));
    assert_eq!(machine.evict(VBID, "key"), Ok(()));
    assert_eq!(machine.bucket.statistics().ejected_count, 1);
    machine.session.waiter = Waiter(1);
    assert_eq!(machine.find(VBID, "key").unwrap_err(), Waits);
    // Writes that need no value do not wait for it.
    machine.set(VBID, "key", b"newer").unwrap();
    machine.run();
    assert_eq!(machine.heard.take(), [(1, Completion::Retry(None))]);
    assert_eq!(machine.find(VBID, "key").unwrap().item.value(), b"newer");
}

#[test]
fn vbuckets_are_fetched_from_in_the_order_in_which_they_were_asked_for() {
    let mut machine = Machine::new();
    for vbid in [VBID, OTHER] {
        machine.set(vbid, "key", b"value").unwrap();
        machine.run();
        machine.evict(vbid, "key").unwrap();
    }
    for (waiter, vbid) in [(1, OTHER), (2, VBID), (3, OTHER)] {
        machine.session.waiter = Waiter(waiter);
        assert_eq!(machine.find(vbid, "key").unwrap_err(), Waits);
    }
    machine.run();
    // What waits for the same vBucket is fetched together.
    assert_eq!(machine.heard.take(), [1, 3, 2].map(|waiter| (waiter, Completion::Retry(None))));
    assert_eq!(machine.bucket.statistics().fetches_waiting, 0);
}

#[test]
fn more_fetches_than_may_wait_are_refused() {
    let mut machine = Machine::with(BucketConfig { fetches_waiting_max: 2, ..config() });
    machine.set(VBID, "key", b"value").unwrap();
    machine.run();
    machine.evict(VBID, "key").unwrap();
    for expected in [Waits, Waits, No(Refused::TooManyFetches)] {
        assert_eq!(machine.find(VBID, "key").unwrap_err(), expected);
    }
    machine.run();
    assert_eq!(machine.heard.take().len(), 2);
    assert_eq!(machine.find(VBID, "key").unwrap().item.value(), b"value");
}

#[test]
fn waits_end_at_their_time() {
    let mut machine = Machine::new();
    assert_eq!(machine.wait(1, VBID, document::Seqno(5)), Err(Waits));
    machine.advance(Duration::from_secs(10));
    assert_eq!(machine.wait(2, OTHER, document::Seqno(5)), Err(Waits));
    machine.advance(Duration::from_secs(19));
    assert_eq!(machine.heard.take(), []);
    machine.advance(Duration::from_secs(1));
    assert_eq!(machine.heard.take(), [(1, Completion::NotPersisted)]);
    machine.advance(Duration::from_secs(10));
    assert_eq!(machine.heard.take(), [(2, Completion::NotPersisted)]);
}

/// What is to happen while something is read from a file.
type Interruption = Box<dyn FnOnce() + Send>;

/// How many reads of the first vBucket's file there were, and what is to happen at one of them.
#[derive(Default)]
struct Reads {
    count: usize,
    interruption: Option<(usize, Interruption)>,
}

/// A disk at whose reads of the first vBucket's file something happens.
struct InterruptedFiles {
    files: SimulatedFiles,
    reads: Arc<Mutex<Reads>>,
}

struct InterruptedFile {
    file: Box<dyn File>,
    reads: Arc<Mutex<Reads>>,
}

impl File for InterruptedFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        let mut reads = self.reads.lock().unwrap();
        reads.count += 1;
        let count = reads.count;
        let interruption = reads.interruption.take_if(|(at, _)| *at == count);
        drop(reads);
        if let Some((_, interruption)) = interruption {
            interruption();
        }
        self.file.read_at(buffer, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        self.file.write_at(bytes, position)
    }

    fn sync(&self) -> Result<(), FileError> {
        self.file.sync()
    }

    fn size(&self) -> Result<u64, FileError> {
        self.file.size()
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        self.file.set_size(size)
    }
}

impl Files for InterruptedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        let file = self.files.open(path, mode)?;
        if path != Path::new(DIRECTORY).join("0.couch.1") {
            return Ok(file);
        }
        Ok(Box::new(InterruptedFile { file, reads: Arc::clone(&self.reads) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        self.files.remove(path)
    }

    fn remove_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.files.remove_directory(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.files.sync_directory(directory)
    }

    fn create_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.files.create_directory(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        self.files.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool, FileError> {
        self.files.exists(path)
    }
}

#[test]
fn what_was_loaded_of_a_vbucket_that_is_deleted_meanwhile_is_not_put_into_its_place() {
    let reads = Arc::new(Mutex::new(Reads::default()));
    let seen = |files| -> Arc<dyn Files> {
        Arc::new(InterruptedFiles { files, reads: Arc::clone(&reads) })
    };
    let load = |machine: &mut Machine| {
        while machine.bucket.warmup_progress().phase == WarmupPhase::Metadata {
            assert!(machine.driver.run_one());
        }
    };
    let mut machine = filled();
    machine.bucket.shut_down().unwrap();
    machine = machine.restart_seeing(seen);
    load(&mut machine);
    let load_count = reads.lock().unwrap().count;
    assert!(load_count > 2, "{load_count} reads");

    machine.bucket.shut_down().unwrap();
    machine = machine.restart_seeing(seen);
    let bucket = machine.bucket.clone();
    let interruption = Box::new(move || {
        bucket.flush_all().unwrap();
        bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
        bucket.delete_vbucket(VBID).unwrap();
    });
    // The last read of a load: nobody waits for the file's handle.
    let mut at_last = reads.lock().unwrap();
    at_last.interruption = Some((load_count * 2, interruption));
    drop(at_last);
    load(&mut machine);
    assert!(reads.lock().unwrap().interruption.is_none(), "it was interrupted");
    assert_eq!(machine.find(VBID, "key-1").unwrap_err(), Refused::NotMyVbucket);
    machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
    assert_eq!(machine.get(VBID, "key-1").unwrap_err(), Refused::NotFound);
}
