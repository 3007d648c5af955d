//! What failing attempts leave on a disk, and what the journal gives back when that is full.

use std::path::Path;
use std::sync::Arc;

use document::Vbid;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use platform::{Clock, Entropy, Files, WallTime};
use storage::journal::JournalOptions;
use storage::{CompactionOutcome, CompactionProgress, CompactionRequest, Store, StoreOptions};

use crate::batches::{DIRECTORY, VBID, batch, commit, item, scan};

const OPTIONS: JournalOptions = JournalOptions {
    segment_bytes: 16 << 10,
    bytes_max: 256 << 10,
    group_bytes_max: 8 << 10,
    portion_bytes: 4096,
};

fn open(files: &SimulatedFiles) -> Store {
    let clock = Clock::simulated(WallTime(1));
    let options =
        StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal: Some(OPTIONS) };
    Store::open(Arc::new(files.clone()), DIRECTORY.as_ref(), options).unwrap().0
}

fn random_bytes(count: u32) -> Vec<u8> {
    (0..count).map(|n| (n.wrapping_mul(n) >> 8) as u8).collect()
}

/// Bytes of all files.
fn disk_bytes(files: &SimulatedFiles) -> u64 {
    let bucket = Path::new(DIRECTORY);
    let in_directory = |directory: &Path| -> usize {
        let names = files.list(directory).unwrap();
        let content = names.iter().filter_map(|name| files.content(&directory.join(name)));
        content.map(|content| content.len()).sum()
    };
    (in_directory(bucket) + in_directory(&bucket.join("journal"))) as u64
}

/// A store whose journal keeps spares, and how far history has come.
fn with_spares(files: &SimulatedFiles) -> (Store, u64) {
    let (store, value) = (open(files), random_bytes(3000));
    let mut seqno = 0;
    for _ in 0..4 {
        for _ in 0..20 {
            seqno += 1;
            let name = (seqno % 3).to_string();
            commit(&store, batch(VBID, vec![item(&name, seqno, &value)])).unwrap();
        }
        store.apply(VBID).unwrap();
        store.rest().unwrap();
    }
    assert!(spares(&store) > 3, "{} spares", spares(&store));
    (store, seqno)
}

fn spares(store: &Store) -> u64 {
    store.journal_usage().unwrap().spare_count
}

#[test]
fn files_that_find_no_room_get_that_of_the_journals_spares() {
    let files = SimulatedFiles::new();
    let (store, seqno) = with_spares(&files);
    for number in 1..=2 {
        let value = random_bytes(5000);
        commit(&store, batch(VBID, vec![item("new", seqno + number, &value)])).unwrap();
    }
    files.set_capacity(disk_bytes(&files));
    store.apply(VBID).unwrap();
    // One more is what the apply itself lets go of.
    assert!(spares(&store) <= 2, "{} spares", spares(&store));
    assert_eq!(scan(&store, VBID).len(), 4);
}

#[test]
fn a_compaction_that_finds_no_room_gets_that_of_the_journals_spares() {
    let files = SimulatedFiles::new();
    let (store, _) = with_spares(&files);
    files.set_capacity(disk_bytes(&files));
    let (request, progress) = (CompactionRequest::default(), CompactionProgress::new());
    let outcome = store.compact(VBID, &request, &progress, &()).unwrap();
    assert!(matches!(outcome, CompactionOutcome::Compacted(_)), "{outcome:?}");
    assert_eq!(spares(&store), 0, "it takes all, for it makes room");
    assert_eq!(scan(&store, VBID).len(), 3);
}

#[test]
fn a_commit_that_finds_no_room_gets_that_of_the_journals_spares() {
    let files = SimulatedFiles::new();
    let (store, seqno) = with_spares(&files);
    store.reserve_for_compaction(Some(0));
    files.set_capacity(disk_bytes(&files));
    commit(&store, batch(VBID, vec![item("new", seqno + 1, b"value")])).unwrap();
    assert!(spares(&store) <= 1, "{} spares", spares(&store));
}

/// The journal let go of them with the next commit alone, which was refused.
#[test]
fn a_commit_that_finds_no_room_gets_that_of_segments_which_files_have() {
    let files = SimulatedFiles::new();
    let (store, value) = (open(&files), random_bytes(3000));
    for seqno in 1..=22 {
        commit(&store, batch(VBID, vec![item("key", seqno, &value)])).unwrap();
    }
    store.apply(VBID).unwrap();
    let segments = store.journal_usage().unwrap().segment_count;
    assert!(segments > 4 && spares(&store) <= 1, "{segments} segments");
    store.reserve_for_compaction(Some(0));
    // The journal itself has some, but not for documents.
    files.set_capacity(disk_bytes(&files) + 12_000);
    commit(&store, batch(VBID, vec![item("key", 23, &value)])).unwrap();
    assert!(store.journal_usage().unwrap().segment_count <= 2);
}

#[test]
fn a_rest_that_cannot_tell_what_files_have_is_to_be_tried_again() {
    let files = SimulatedFiles::new();
    let (store, value) = (open(&files), random_bytes(3000));
    for seqno in 1..=20 {
        commit(&store, batch(VBID, vec![item("key", seqno, &value)])).unwrap();
    }
    store.rest().unwrap();
    store.apply(VBID).unwrap();
    assert!(store.is_restless(), "segments are to be let go of");
    for call in [Call::Write, Call::Sync] {
        files.fail(Fault {
            call: Some(call),
            number: 1,
            error: FaultError::Io,
            from_then_on: true,
        });
        store.rest().unwrap_err();
        files.heal();
    }
    store.rest().unwrap();
    assert!(store.journal_usage().unwrap().segment_count <= 2);
}

#[test]
fn a_segment_that_no_spare_is_large_enough_for_gets_the_room_of_those() {
    let files = SimulatedFiles::new();
    let (store, seqno) = with_spares(&files);
    files.set_capacity(disk_bytes(&files));
    let value = random_bytes(30_000);
    commit(&store, batch(VBID, vec![item("large", seqno + 1, &value)])).unwrap();
    assert!(spares(&store) <= 1);
}

#[test]
fn attempts_that_fail_for_any_reason_leave_nothing_behind() {
    let files = SimulatedFiles::new();
    let store = open(&files);
    let names = ["7.couch.1", "8.couch.1", "8.couch.boot"];
    let bytes = |name: &str| {
        files.content(&Path::new(DIRECTORY).join(name)).map_or(0, |content| content.len())
    };
    commit(&store, batch(VBID, vec![item("first", 1, b"value")])).unwrap();
    store.apply(VBID).unwrap();
    let others = [(VBID, 2), (Vbid(8), 1)];
    for (vbid, seqno) in others {
        commit(&store, batch(vbid, vec![item("second", seqno, &random_bytes(6000))])).unwrap();
    }
    let before = names.map(bytes);
    let error = FaultError::Io;
    files.fail(Fault { call: Some(Call::Sync), number: 1, error, from_then_on: true });
    for _ in 0..500 {
        for (vbid, _) in others {
            store.apply(vbid).unwrap_err();
        }
    }
    assert_eq!(names.map(bytes), before);
    files.heal();
    for (vbid, _) in others {
        store.apply(vbid).unwrap();
    }
    assert_eq!((scan(&store, VBID).len(), scan(&store, Vbid(8)).len()), (2, 1));
}

#[test]
fn a_file_of_a_deleted_vbucket_that_cannot_go_does_not_stop_a_start() {
    let errors = [FaultError::NoSpace, FaultError::Io];
    for (begins_anew, error) in
        [false, true].into_iter().flat_map(|it| errors.map(|error| (it, error)))
    {
        let files = SimulatedFiles::new();
        let store = open(&files);
        commit(&store, batch(VBID, vec![item("before", 1, b"v")])).unwrap();
        commit(&store, batch(Vbid(1), vec![item("other", 1, b"v")])).unwrap();
        for vbid in [Vbid(1), VBID] {
            store.apply(vbid).unwrap();
        }
        let refuse_removals = || {
            files.fail(Fault { call: Some(Call::Remove), number: 1, error, from_then_on: true });
        };
        refuse_removals();
        store.delete(VBID).unwrap_err();
        if begins_anew {
            commit(&store, batch(VBID, vec![item("behind", 1, b"v")])).unwrap();
        }
        drop(store);
        files.heal();
        files.power_cut(0);
        refuse_removals();
        let (clock, entropy) = (Clock::simulated(WallTime(1)), Entropy::real());
        let options = StoreOptions { entropy, clock, open_files_max: 2, journal: Some(OPTIONS) };
        let opened = Store::open(Arc::new(files.clone()), DIRECTORY.as_ref(), options);
        let (store, report) = opened.unwrap();
        let found: Vec<_> = report.vbuckets.iter().map(|found| found.vbid).collect();
        let expected = if begins_anew { vec![Vbid(1), VBID] } else { vec![Vbid(1)] };
        assert_eq!(found, expected);
        assert_eq!(report.unreadable_vbuckets().count(), 0);
        assert!(scan(&store, VBID).is_empty(), "nothing of the deleted one is read");
        assert_eq!(store.unapplied_items(VBID).len(), usize::from(begins_anew));
        store.apply(VBID).unwrap_err();
        files.heal();
        store.apply(VBID).unwrap();
        let names = files.list(Path::new(DIRECTORY)).unwrap();
        assert!(!names.contains(&"7.couch.1".to_owned()), "{names:?}");
        assert_eq!(scan(&store, VBID).len(), usize::from(begins_anew));
    }
}
