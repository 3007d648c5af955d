//! A compaction goes around bodies that are damaged: it takes them along as they are, tells, and
//! nobody takes them for what was written.

use std::path::{Path, PathBuf};

use document::{Item, Seqno};
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use platform::{Files, OpenMode, Random};
use storage::couchstore::CouchFile;
use storage::{CompactionProgress, CompactionRequest, Severity, StorageError, Store, verify_file};

use crate::batches::{DIRECTORY, VBID, all_of, batch, commit, item, key, open};
use crate::compaction::compact;

const COUNT: u64 = 40;
const DAMAGED: u64 = 17;
const BLOCK: usize = 4096;

fn name(number: u64) -> String {
    format!("key-{number}")
}

/// Bytes that no compression makes shorter, and over more than one block.
fn value(number: u64) -> Vec<u8> {
    let mut value = vec![0; 5000];
    Random::from_seed(number).fill(&mut value);
    value
}

fn expected(number: u64) -> Item {
    item(&name(number), number, &value(number))
}

fn path(revision: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("7.couch.{revision}"))
}

/// A store of which everything was written twice; and where the newest body of one document is.
fn filled() -> (SimulatedFiles, Store, usize) {
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    let olds = (1..=COUNT).map(|number| item(&name(number), number, b"old"));
    commit(&store, batch(VBID, olds.collect())).unwrap();
    let news = (1..=COUNT).map(|number| item(&name(number), number + COUNT, &value(number)));
    commit(&store, batch(VBID, news.collect())).unwrap();
    let image = files.content(&path(1)).unwrap();
    let wanted = &value(DAMAGED)[..16];
    let at = image.windows(16).position(|window| window == wanted).unwrap();
    (files, store, at)
}

/// Ways in which a body that begins at an offset may be damaged, and how.
type Damage = fn(&mut [u8], usize);

const DAMAGES: [(&str, Damage); 6] = [
    ("a bit of the body", |image, at| image[at + 1] ^= 4),
    ("the checksum", |image, at| image[at - 1] ^= 1),
    ("the length", |image, at| image[at - 5] ^= 8),
    ("the length is that of no data", |image, at| image[at - 8] ^= 0x80),
    ("the type of a block", |image, at| image[at.next_multiple_of(BLOCK)] = 1),
    ("all of it", |image, at| image[at - 8..at + 4000].fill(0)),
];

fn read(store: &Store, number: u64) -> Result<Option<Item>, StorageError> {
    Ok(store.get(VBID, &[key(&name(number)).as_key()])?.remove(0))
}

fn check_reads(store: &Store, at: &str) {
    for number in (1..=COUNT).filter(|number| *number != DAMAGED) {
        let found = read(store, number).unwrap().unwrap();
        assert_eq!(found.value(), expected(number).value(), "{at}");
    }
    let refused = read(store, DAMAGED);
    assert!(matches!(refused, Err(StorageError::Corrupt { .. })), "{at}: {refused:?}");
}

#[test]
fn a_damaged_body_is_compacted_as_it_is_and_stays_refused() {
    for (what, damage) in DAMAGES {
        let (files, store, at) = filled();
        let mut image = files.content(&path(1)).unwrap();
        let before = image.len() as u64;
        damage(&mut image, at);
        files.insert(&path(1), &image);
        drop(store);
        let (store, _) = open(files.clone());
        check_reads(&store, what);
        let mut expected_position = at as u64 - 8;
        for revision in [2, 3] {
            let report = compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
            assert!(report.file_bytes_after < before, "{what}: {report:?}");
            assert_eq!(report.damaged.count, 1, "{what}, {revision}");
            let [damaged] = &report.damaged.listed[..] else { panic!("{what}: {report:?}") };
            assert_eq!(damaged.seqno, Seqno(DAMAGED + COUNT), "{what}");
            assert!(damaged.document.ends_with(&name(DAMAGED)), "{what}: {damaged:?}");
            let StorageError::Corrupt { file, position, .. } = &damaged.error else {
                panic!("{what}: {damaged:?}")
            };
            assert_eq!(*file, path(revision - 1), "{what}");
            assert_eq!(*position, expected_position, "{what}: {damaged:?}");
            expected_position = damaged.copy_position;
            check_reads(&store, what);
            let file = CouchFile::open(&files, &path(revision), OpenMode::Read).unwrap();
            let verification = verify_file(&file).unwrap();
            let problems = verification.findings.iter();
            let problems = problems.filter(|found| found.severity == Severity::Problem);
            assert_eq!(problems.count(), 1, "{what}: {:?}", verification.findings);
        }
        drop(store);
        check_reads(&open(files.clone()).0, what);
    }
}

/// A store of which one document's body is damaged by a bit.
fn with_a_damaged_body() -> Store {
    let (files, store, at) = filled();
    let mut image = files.content(&path(1)).unwrap();
    image[at] ^= 1;
    files.insert(&path(1), &image);
    drop(store);
    open(files).0
}

#[test]
fn a_damaged_body_that_is_overwritten_is_gone_after_the_next_compaction() {
    let store = with_a_damaged_body();
    compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
    let newer = item(&name(DAMAGED), 2 * COUNT + 1, b"newer");
    commit(&store, batch(VBID, vec![newer.clone()])).unwrap();
    let report = compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
    assert_eq!(report.damaged.count, 0);
    assert_eq!(all_of(&read(&store, DAMAGED).unwrap().unwrap()), all_of(&newer));
}

#[test]
fn a_frozen_copy_of_a_file_with_a_damaged_body_is_an_error() {
    let store = with_a_damaged_body();
    for _ in 0..2 {
        let frozen = store.freeze(VBID).unwrap().unwrap();
        let written = frozen.write_to(|_| Ok(()));
        assert!(matches!(written, Err(StorageError::Corrupt { .. })), "{written:?}");
        compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
    }
}

#[test]
fn a_body_that_the_device_does_not_give_now_is_not_given_up() {
    let reads = |files: &SimulatedFiles| files.calls().of(Call::Read);
    let (files, store, _) = filled();
    let before = reads(&files);
    compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
    let count = reads(&files) - before;
    for number in 1..=count {
        let (files, store, _) = filled();
        let (call, error) = (Some(Call::Read), FaultError::Io);
        files.fail(Fault { call, number, error, from_then_on: false });
        let progress = CompactionProgress::new();
        let done = store.compact(VBID, &CompactionRequest::default(), &progress, &());
        assert!(done.is_err(), "{number} of {count}: {done:?}");
        let report = compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
        assert_eq!(report.damaged.count, 0, "{number}");
        assert_eq!(files.list(Path::new(DIRECTORY)).unwrap().len(), 1, "{number}");
    }
}
