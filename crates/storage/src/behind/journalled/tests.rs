//! Journals that are full, and disks that are slow with names.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use document::{Cas, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno, VbucketState};
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, File, FileError, OpenMode, WallTime};

use super::*;
use crate::records::vbucket_record::VbucketRecord;
use crate::store::{Store, StoreOptions};

fn commit(store: &Store) -> Result<(), StorageError> {
    let state = VbucketRecord::new(VbucketState::Active);
    let (vbid, items) = (Vbid(7), Vec::new());
    let batch = FlushBatch { vbid, previous_seqno: Seqno(0), items, state };
    let mut result = Ok(());
    store.commit(vec![batch], |_, committed| result = committed.map(drop));
    result
}

#[test]
fn a_full_journal_that_nobody_could_release_makes_room_for_the_next_commit() {
    let journal = Some(JournalOptions {
        segment_bytes: 16 << 10,
        bytes_max: 32 << 10,
        group_bytes_max: 4096,
        portion_bytes: 4096,
    });
    let clock = Clock::simulated(WallTime(1));
    let options = StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal };
    let files = Arc::new(SimulatedFiles::new());
    let (store, _) = Store::open(files, Path::new("bucket"), options).unwrap();
    while commit(&store).is_ok() {}
    // Somebody commits while the last file follows.
    let appending = lock(&store.journalled.as_ref().unwrap().appending);
    store.apply(Vbid(7)).unwrap();
    drop(appending);
    assert!(matches!(commit(&store), Err(StorageError::JournalFull { .. })));
    commit(&store).unwrap();
}

#[test]
fn what_finds_the_journal_full_is_not_overtaken_by_what_is_smaller() {
    let journal = Some(JournalOptions {
        segment_bytes: 36 << 10,
        bytes_max: 144 << 10,
        group_bytes_max: 4096,
        portion_bytes: 4096,
    });
    let clock = Clock::simulated(WallTime(1));
    let options = StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal };
    let files = Arc::new(SimulatedFiles::new());
    let (store, _) = Store::open(files, Path::new("bucket"), options).unwrap();
    let batch = |vbid: u16, seqno: u64, value_bytes: usize| {
        let key = KeyBuf::in_default_collection(b"key").unwrap();
        let value = vec![b'x'; value_bytes];
        let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), &value);
        let items = vec![builder.finish(Cas(1), Seqno(seqno), RevSeqno(1))];
        let state = VbucketRecord::new(VbucketState::Active);
        FlushBatch { vbid: Vbid(vbid), previous_seqno: Seqno(seqno - 1), items, state }
    };
    let commit = |batches: Vec<FlushBatch>| {
        let mut refused = Vec::new();
        store.commit(batches, |vbid, committed| {
            if matches!(committed, Err(StorageError::JournalFull { .. })) {
                refused.push(vbid.0);
            } else {
                committed.unwrap();
            }
        });
        refused
    };
    let mut seqno = 0;
    while commit(vec![batch(0, seqno + 1, 10_000)]).is_empty() {
        seqno += 1;
    }
    assert_eq!(commit(vec![batch(1, 1, 100)]), [0; 0], "there is some room left");
    let state = VbucketRecord::new(VbucketState::Active);
    let role = FlushBatch { vbid: Vbid(4), previous_seqno: Seqno(0), items: Vec::new(), state };
    let batches = vec![batch(3, 1, 10_000), batch(2, 1, 1000), role, batch(1, 2, 100)];
    assert_eq!(commit(batches), [3, 2, 1], "a role has room of its own");
    store.apply(Vbid(0)).unwrap();
    let batches = vec![batch(3, 1, 10_000), batch(2, 1, 1000), batch(1, 2, 100)];
    assert_eq!(commit(batches), [0; 0]);
}

/// A store whose vBucket 7 has something in the journal for its file, which is damaged.
fn store_with_held_content(value_bytes: usize) -> Store {
    let journal = Some(JournalOptions {
        segment_bytes: 16 << 10,
        bytes_max: 128 << 10,
        group_bytes_max: 4096,
        portion_bytes: 4096,
    });
    let clock = Clock::simulated(WallTime(1));
    let options = StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal };
    let files = Arc::new(SimulatedFiles::new());
    let (store, _) = Store::open(files, Path::new("bucket"), options).unwrap();
    write(&store, 7, 1, value_bytes).unwrap();
    store.distrust(Vbid(7));
    store
}

fn write(store: &Store, vbid: u16, seqno: u64, value_bytes: usize) -> Result<(), StorageError> {
    let key = KeyBuf::in_default_collection(b"key").unwrap();
    let value = vec![b'x'; value_bytes];
    let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), &value);
    let items = vec![builder.finish(Cas(1), Seqno(seqno), RevSeqno(1))];
    let state = VbucketRecord::new(VbucketState::Active);
    let batch = FlushBatch { vbid: Vbid(vbid), previous_seqno: Seqno(seqno - 1), items, state };
    let mut result = Ok(());
    store.commit(vec![batch], |_, committed| result = committed.map(drop));
    result
}

/// It was written to the journal again in each turn of each applier, as long as files were urgent
/// for whatever reason, and what waits for a damaged file was one.
#[test]
fn what_waits_for_a_damaged_file_is_written_again_when_that_makes_room_and_not_before() {
    let store = store_with_held_content(1000);
    let written_bytes = || store.journal_usage().unwrap().written_bytes;
    for is_full in [false, true] {
        store.carry_forward(is_full).unwrap();
        let before = written_bytes();
        store.carry_forward(is_full).unwrap();
        assert_eq!(written_bytes(), before, "nothing came behind it");
    }
    // A group that is in its file by now is not worth it, unless somebody waits for room.
    write(&store, 8, 1, 1000).unwrap();
    store.apply(Vbid(8)).unwrap();
    let before = written_bytes();
    store.carry_forward(false).unwrap();
    assert_eq!(written_bytes(), before);
    store.carry_forward(true).unwrap();
    assert!(written_bytes() > before);
}

#[test]
fn what_is_written_again_for_damaged_files_is_in_proportion_to_what_others_write() {
    // Of the room for items, which is 96 KiB, next to nothing and more than half.
    for value_bytes in [1000, 60_000] {
        let store = store_with_held_content(value_bytes);
        let (mut others_bytes, mut carried_bytes) = (0, 0);
        for seqno in 1..400 {
            let written_bytes = || store.journal_usage().unwrap().written_bytes;
            let before = written_bytes();
            let is_full = match write(&store, 8, seqno, 1000) {
                Ok(()) => false,
                Err(StorageError::JournalFull { .. }) => true,
                Err(error) => panic!("{error}"),
            };
            others_bytes += written_bytes() - before;
            store.apply(Vbid(8)).unwrap();
            let before = written_bytes();
            store.carry_forward(is_full).unwrap();
            carried_bytes += written_bytes() - before;
            if is_full {
                write(&store, 8, seqno, 1000).expect("there is room now");
            }
        }
        assert!(carried_bytes > 0, "{value_bytes}: the journal went on");
        assert!(carried_bytes <= 6 * others_bytes, "{value_bytes}: {carried_bytes}");
    }
}

/// A disk that is slow with the names of a journal: each renaming says that it has begun, and waits
/// until nobody holds it up any more.
struct HeldNames {
    files: SimulatedFiles,
    begun: mpsc::Sender<()>,
    is_over: Mutex<mpsc::Receiver<()>>,
}

impl Files for HeldNames {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        self.files.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        if from.parent().is_some_and(|parent| parent.ends_with(JOURNAL_DIRECTORY)) {
            self.begun.send(()).ok();
            lock(&self.is_over).recv().ok();
        }
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
fn nobody_waits_for_a_segment_that_is_retired() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let journal = Some(JournalOptions {
        segment_bytes: 16 << 10,
        bytes_max: 1 << 20,
        group_bytes_max: 4096,
        portion_bytes: 4096,
    });
    let clock = Clock::simulated(WallTime(1));
    let options = StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal };
    let ((begun, has_begun), (hold, is_over)) = (mpsc::channel(), mpsc::channel());
    let files = HeldNames { files: SimulatedFiles::new(), begun, is_over: Mutex::new(is_over) };
    let (store, _) = Store::open(Arc::new(files), Path::new("bucket"), options).unwrap();
    let segments = || store.journal_usage().unwrap().segment_count;
    while segments() < 3 {
        commit(&store).unwrap();
    }
    // The next group says that files have what is let go of after it.
    store.apply(Vbid(7)).unwrap();
    commit(&store).unwrap();
    thread::scope(|scope| {
        let applier = scope.spawn(|| store.apply(Vbid(7)));
        has_begun.recv_timeout(PATIENCE).expect("a segment is retired");
        let (done, is_done) = mpsc::channel();
        let store = &store;
        let flusher = scope.spawn(move || done.send(commit(store)).unwrap());
        let committed = is_done.recv_timeout(PATIENCE);
        drop(hold);
        committed.expect("the commit waits for nobody").unwrap();
        flusher.join().unwrap();
        applier.join().unwrap().unwrap();
    });
    assert_eq!(segments(), 1);
}
