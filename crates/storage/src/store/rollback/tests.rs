//! Files of earlier versions, whose headers do not say where they come from.

use std::path::Path;
use std::sync::{Mutex, mpsc};

use document::{Cas, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, VbucketState};
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, File, FileError, Files, WallTime, threads};

use super::*;
use crate::compaction::{
    CompactionObserver, CompactionOutcome, CompactionPhase, CompactionProgress, CompactionRequest,
};
use crate::store::StoreOptions;
use crate::store::flush_batch::FlushBatch;

const LEGACY: &[u8] = include_bytes!("../../../tests/fixtures/couchstore/legacy-v11.couch.1");

fn item(name: &str, seqno: u64) -> Item {
    let key = KeyBuf::in_default_collection(format!("{name}-{seqno}").as_bytes()).unwrap();
    let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), b"v");
    builder.finish(Cas(seqno), Seqno(seqno), RevSeqno(1))
}

/// Documents of the store's file above `seqno`.
fn seqnos_above(store: &Store, seqno: u64) -> Vec<u64> {
    let mut seqnos = Vec::new();
    let visit = |item: Item| {
        seqnos.push(item.seqno().0);
        ControlFlow::Continue(())
    };
    store.scan(Vbid(7), Seqno(seqno + 1), false, visit).unwrap();
    seqnos
}

fn batch(name: &str, seqno: u64) -> FlushBatch {
    FlushBatch {
        vbid: Vbid(7),
        previous_seqno: Seqno(seqno - 1),
        items: vec![item(name, seqno)],
        state: VbucketRecord::new(VbucketState::Active),
    }
}

fn put(store: &Store, name: &str, seqno: u64) {
    store.commit(vec![batch(name, seqno)], |_, result| {
        result.unwrap();
    });
}

/// A directory with a file of version 11 to which five documents were committed; gives the seqno
/// before these.
fn legacy(files: &SimulatedFiles) -> u64 {
    let path = Path::new("bucket/7.couch.1");
    files.create_directories(Path::new("bucket")).unwrap();
    files.insert(path, LEGACY);
    let file = CouchFile::open(files, path, OpenMode::ReadWrite).unwrap();
    let (mut header, _) = file.newest_header().unwrap();
    let last = header.high_seqno;
    let mut buffers = CommitBuffers::new();
    for seqno in last + 1..=last + 5 {
        let FlushBatch { items, state, .. } = batch("new", seqno);
        let batch = FileBatch { items: &items, state: &state };
        let written = vbucket_file::write(&file, Some(&header), batch, 0, &mut buffers);
        header = written.unwrap().0;
    }
    assert_eq!((header.version, header.previous), (11, None));
    last
}

fn open(files: impl Files + 'static) -> Store {
    let clock = Clock::simulated(WallTime(1));
    let options =
        StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal: None };
    Store::open(Arc::new(files), Path::new("bucket"), options).unwrap().0
}

#[test]
fn a_file_that_knows_no_predecessors_goes_back_by_what_stands_in_front() {
    let files = SimulatedFiles::new();
    let last = legacy(&files);
    let store = open(files);
    let to = |seqno| RolledBack::To(Seqno(seqno));
    assert_eq!(store.rollback(Vbid(7), Seqno(last + 3)).unwrap(), to(last + 3));
    assert_eq!(seqnos_above(&store, last), [last + 1, last + 2, last + 3]);
    put(&store, "new", last + 9);
    // Behind what was discarded, which is passed over on the way back.
    assert_eq!(store.rollback(Vbid(7), Seqno(last + 2)).unwrap(), to(last + 2));
    assert_eq!(seqnos_above(&store, last), [last + 1, last + 2]);
    // Before it there is no state of a vBucket.
    assert_eq!(store.rollback(Vbid(7), Seqno(last)).unwrap(), RolledBack::Reset);
}

type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A disk at whose next sync of a file something happens.
struct Hooked(SimulatedFiles, Hook);

struct HookedFile(Box<dyn File>, Hook);

impl File for HookedFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        self.0.read_at(buffer, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        self.0.write_at(bytes, position)
    }

    fn sync(&self) -> Result<(), FileError> {
        let hook = lock(&self.1).take();
        hook.into_iter().for_each(|hook| hook());
        self.0.sync()
    }

    fn size(&self) -> Result<u64, FileError> {
        self.0.size()
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        self.0.set_size(size)
    }
}

impl Files for Hooked {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        Ok(Box::new(HookedFile(self.0.open(path, mode)?, Arc::clone(&self.1))))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        self.0.remove(path)
    }

    fn remove_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.0.remove_directory(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.0.sync_directory(directory)
    }

    fn create_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.0.create_directory(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        self.0.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool, FileError> {
        self.0.exists(path)
    }
}

/// Tells when a copy begins, and has it wait for leave before it looks at what came since.
struct Waits(mpsc::SyncSender<()>, Mutex<mpsc::Receiver<()>>);

impl CompactionObserver for Waits {
    fn entered(&self, phase: CompactionPhase) {
        match phase {
            CompactionPhase::Copying => self.0.send(()).unwrap(),
            // Leave is given by there being nobody any more who could give it.
            CompactionPhase::CatchingUp => drop(lock(&self.1).recv()),
            _ => {}
        }
    }
}

#[test]
fn a_compaction_that_begins_while_such_a_file_goes_back_brings_nothing_of_it_back() {
    let (files, hook) = (SimulatedFiles::new(), Hook::default());
    let last = legacy(&files);
    let store = Arc::new(open(Hooked(files, Arc::clone(&hook))));
    let (begun, is_begun) = mpsc::sync_channel(1);
    let (leave, is_let) = mpsc::sync_channel(1);
    let (done, outcome) = mpsc::sync_channel(1);
    let compacted = Arc::clone(&store);
    *lock(&hook) = Some(Box::new(move || {
        let compact = move || {
            let (request, progress) = (CompactionRequest::default(), CompactionProgress::new());
            let observer = Waits(begun, Mutex::new(is_let));
            done.send(compacted.compact(Vbid(7), &request, &progress, &observer)).unwrap();
        };
        threads::spawn("compaction", compact).unwrap();
        is_begun.recv().unwrap();
    }));
    let rolled_back = store.rollback(Vbid(7), Seqno(last + 3)).unwrap();
    assert_eq!(rolled_back, RolledBack::To(Seqno(last + 3)));
    // By then history has come further than it was before.
    (last + 4..=last + 7).for_each(|seqno| put(&store, "other", seqno));
    // Leave is given to all who wait: it may have stopped before it came to that.
    drop(leave);
    let outcome = outcome.recv().unwrap().unwrap();
    assert!(matches!(outcome, CompactionOutcome::Aborted), "{outcome:?}");
    assert_eq!(seqnos_above(&store, last), (last + 1..=last + 7).collect::<Vec<_>>());
    let items: Vec<Item> = (last + 4..=last + 7).map(|seqno| item("other", seqno)).collect();
    let keys: Vec<_> = items.iter().map(Item::key).collect();
    assert!(store.get(Vbid(7), &keys).unwrap().iter().all(Option::is_some));
}
