//! A frozen vBucket against a model: whatever is committed, compacted or deleted meanwhile.

use std::path::Path;
use std::sync::{Arc, Mutex};

use document::Item;
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, Files, OpenMode, Random, WallTime};
use storage::couchstore::CouchFile;
use storage::{
    CompactionProgress, CompactionRequest, FrozenVbucket, JournalOptions, Store, StoreOptions,
    verify_file,
};

use crate::batches::{DIRECTORY, VBID, all_of, batch, commit, item, open, random_item, scan};

fn open_with(files: &SimulatedFiles, journal: Option<JournalOptions>) -> Store {
    let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
    let options = StoreOptions { entropy: Entropy::real(), clock, open_files_max: 8, journal };
    Store::open(Arc::new(files.clone()), Path::new(DIRECTORY), options).unwrap().0
}

fn bytes_of(frozen: &FrozenVbucket) -> Vec<u8> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let copy = Arc::clone(&bytes);
    let sink = move |part: &[u8]| {
        copy.lock().unwrap().extend_from_slice(part);
        Ok(())
    };
    let count = frozen.write_to(sink).unwrap();
    let bytes = bytes.lock().unwrap().clone();
    assert_eq!(count, bytes.len() as u64);
    bytes
}

/// What a store on a disk with nothing but these bytes holds.
fn contents(bytes: &[u8]) -> Vec<Item> {
    let files = SimulatedFiles::new();
    files.create_directories(Path::new(DIRECTORY)).unwrap();
    let path = Path::new(DIRECTORY).join("7.couch.1");
    files.open(&path, OpenMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
    let file = CouchFile::open(&files, &path, OpenMode::Read).unwrap();
    let verification = verify_file(&file).unwrap();
    assert!(verification.is_sound(), "{:?}", verification.findings);
    let (store, report) = open(files);
    assert_eq!(report.vbuckets.len(), 1);
    assert_eq!(store.state(VBID).unwrap().unwrap().journal, None);
    scan(&store, VBID)
}

#[test]
fn a_frozen_vbucket_is_what_was_durable_whatever_comes_after() {
    for seed in platform::seeds::seeds(8) {
        println!("seed {seed}");
        let mut random = Random::from_seed(seed);
        let files = SimulatedFiles::new();
        let journal = (seed % 2 == 0).then(JournalOptions::default);
        let store = open_with(&files, journal);
        let mut seqno = 0;
        let mut write = |random: &mut Random| {
            let mut names: Vec<u64> = (0..random.below(60)).map(|_| random.below(200)).collect();
            names.sort_unstable();
            names.dedup();
            let next = |name: &u64| {
                seqno += 1;
                random_item(random, *name, seqno)
            };
            let items: Vec<Item> = names.iter().map(next).collect();
            if !items.is_empty() {
                commit(&store, batch(VBID, items)).unwrap();
            }
        };
        (0..10).for_each(|_| write(&mut random));
        store.apply(VBID).unwrap();
        let frozen = store.freeze(VBID).unwrap().unwrap();
        let expected: Vec<_> = scan(&store, VBID).iter().map(all_of).collect();
        let facts = frozen.facts().unwrap();
        assert_eq!(facts.high_seqno, store.high_seqno(VBID).unwrap());
        assert_eq!(facts.document_count, expected.len() as u64);
        (0..5).for_each(|_| write(&mut random));
        let (request, progress) = (CompactionRequest::default(), CompactionProgress::new());
        store.compact(VBID, &request, &progress, &()).unwrap();
        let bytes = bytes_of(&frozen);
        assert_eq!(contents(&bytes).iter().map(all_of).collect::<Vec<_>>(), expected);
        store.delete(VBID).unwrap();
        store.apply(VBID).unwrap();
        assert_eq!(bytes_of(&frozen), bytes, "the same state gives the same bytes");
        assert!(store.freeze(VBID).unwrap().is_none());
    }
}

#[test]
fn a_sink_that_fails_ends_the_copy_and_nothing_else() {
    let (store, _) = open(SimulatedFiles::new());
    commit(&store, batch(VBID, vec![item("a", 1, &[7; 9000])])).unwrap();
    let frozen = store.freeze(VBID).unwrap().unwrap();
    let size = bytes_of(&frozen).len();
    for room in [0, 1, 4096, size - 1] {
        let mut left = room;
        let sink = move |part: &[u8]| {
            left = left.checked_sub(part.len()).ok_or(std::io::Error::other("gone"))?;
            Ok(())
        };
        let error = frozen.write_to(sink).unwrap_err().to_string();
        assert!(error.contains("gone"), "{room}: {error}");
    }
    assert_eq!(bytes_of(&frozen).len(), size);
}
