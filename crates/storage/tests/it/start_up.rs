//! What a directory says when a store starts, and how files come and go.

use std::path::Path;

use document::{Cas, Seqno, Vbid, VbucketState};
use platform::Files;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use storage::{CompactionRequest, StorageError, WhyIgnored};

use crate::batches::{VBID, batch, commit, item, open, record, scan, try_open};
use crate::compaction::compact;

const FIXTURE_0: &[u8] = include_bytes!("../fixtures/couchstore/0.couch.1");
const FIXTURE_1: &[u8] = include_bytes!("../fixtures/couchstore/1.couch.1");
const COMPACTED: &[u8] = include_bytes!("../fixtures/couchstore/compacted-v14.couch.1");

#[test]
fn the_files_of_the_original_are_served_and_continued() {
    let files = SimulatedFiles::new();
    files.insert(Path::new("bucket/0.couch.1"), FIXTURE_0);
    files.insert(Path::new("bucket/1.couch.1"), FIXTURE_1);
    let (store, report) = open(files);
    assert!(report.ignored.is_empty());
    let states: Vec<_> = report.vbuckets.iter().map(|found| found.record.state).collect();
    assert_eq!(states, [VbucketState::Active, VbucketState::Replica]);
    let found = &report.vbuckets[0];
    assert_eq!((found.high_seqno, found.item_count), (Seqno(250), 250));
    assert_eq!(found.record.max_cas, Cas(1_795_214_176_106_883_814));
    let items = scan(&store, Vbid(0));
    assert_eq!(items.len(), 250);
    assert_eq!(items[0].value().len(), 300);
    commit(&store, batch(Vbid(0), vec![item("new", 251, b"value")])).unwrap();
    assert_eq!(store.item_count(Vbid(0)).unwrap(), 251);
    // The fixture has no statistics of its collection; they are counted.
    let statistics = store.collection_statistics(Vbid(0), document::CollectionId(0)).unwrap();
    assert_eq!((statistics.item_count, statistics.high_seqno), (251, 251));
}

#[test]
fn the_highest_revision_wins_and_leftovers_go() {
    let files = SimulatedFiles::new();
    let names = ["0.couch.1", "0.couch.3", "0.couch.12", "0.couch.12.compact", "5.couch.boot"];
    for name in names.into_iter().chain(["notes.txt", "master.couch.1"]) {
        files.insert(&Path::new("bucket").join(name), FIXTURE_0);
    }
    let (_, report) = open(files.clone());
    assert_eq!(report.vbuckets.len(), 1);
    assert_eq!(report.ignored.len(), 1);
    assert_eq!(report.ignored[0].name, "notes.txt");
    files.power_cut(0);
    let left = files.list(Path::new("bucket")).unwrap();
    assert_eq!(left, ["0.couch.12", "master.couch.1", "notes.txt"]);
}

/// A process that dies between the renaming of a compacted file and the sync of the directory
/// leaves a name that the power may still take away.
#[test]
fn an_older_revision_goes_only_when_the_newer_one_cannot() {
    for seed in platform::seeds::seeds(200) {
        let files = SimulatedFiles::new();
        let path = |name: &str| Path::new("bucket").join(name);
        files.insert(&path("0.couch.1"), FIXTURE_0);
        files.insert(&path("0.couch.1.compact"), FIXTURE_0);
        files.rename(&path("0.couch.1.compact"), &path("0.couch.2")).unwrap();
        let number = seed % 12 + 1;
        files.fail(Fault { call: None, number, error: FaultError::Io, from_then_on: true });
        drop(try_open(files.clone(), Path::new("bucket"), 8));
        files.heal();
        files.power_cut(seed);
        let (_, report) = open(files);
        assert_eq!(report.vbuckets.len(), 1, "seed {seed}, call {number}");
    }
}

#[test]
fn unusable_files_are_absent_with_a_reason_and_are_replaced() {
    let files = SimulatedFiles::new();
    files.insert(Path::new("bucket/7.couch.4"), b"not a couchstore file");
    files.insert(Path::new("bucket/8.couch.1"), COMPACTED);
    let (store, report) = open(files.clone());
    assert!(report.vbuckets.is_empty());
    let reasons: Vec<_> = report.ignored.iter().map(|ignored| &ignored.why).collect();
    assert!(matches!(reasons[0], WhyIgnored::Corrupt(StorageError::Corrupt { .. })));
    assert!(matches!(reasons[1], WhyIgnored::Corrupt(_)), "its vbstate is not meaningful");
    commit(&store, batch(VBID, vec![item("k", 1, b"v")])).unwrap();
    let left = files.list(Path::new("bucket")).unwrap();
    assert_eq!(left, ["7.couch.4.damaged", "7.couch.5", "8.couch.1"]);
}

#[test]
fn an_older_revision_does_not_come_back_from_behind_a_deleted_one() {
    let files = SimulatedFiles::new();
    files.insert(Path::new("bucket/0.couch.1"), FIXTURE_0);
    files.insert(Path::new("bucket/0.couch.2"), b"not a couchstore file");
    let (store, report) = open(files.clone());
    assert!(report.vbuckets.is_empty(), "an older revision is not what was last acknowledged");
    store.delete(Vbid(0)).unwrap();
    files.power_cut(0);
    assert!(open(files).1.vbuckets.is_empty());
}

#[test]
fn a_replica_outside_of_its_snapshot_is_absent_and_others_are_corrected() {
    use VbucketState::{Active, Dead, Pending, Replica};
    let (inside, outside) = ((3, 9), (7, 9));
    for (state, snapshot, expected) in [
        (Active, inside, Some((5, 5))),
        (Active, outside, Some((5, 5))),
        (Replica, inside, Some(inside)),
        (Replica, outside, None),
        (Pending, inside, Some(inside)),
        (Pending, outside, None),
        // It may have been a replica, and be one again.
        (Dead, inside, Some(inside)),
        (Dead, outside, Some((5, 5))),
    ] {
        let files = SimulatedFiles::new();
        let (store, _) = open(files.clone());
        let mut batch = batch(VBID, vec![item("k", 5, b"v")]);
        batch.state.state = state;
        (batch.state.snapshot_start, batch.state.snapshot_end) =
            (Seqno(snapshot.0), Seqno(snapshot.1));
        commit(&store, batch).unwrap();
        drop(store);
        let (_, report) = open(files);
        let found = report.vbuckets.first();
        let found = found.map(|it| (it.record.snapshot_start.0, it.record.snapshot_end.0));
        assert_eq!(found, expected, "{state:?} {snapshot:?}");
        let is_outside = |it: &storage::IgnoredFile| matches!(it.why, WhyIgnored::OutsideSnapshot);
        assert_eq!(report.ignored.iter().any(is_outside), expected.is_none(), "{state:?}");
    }
}

#[test]
fn a_state_alone_is_committed() {
    let (store, _) = open(SimulatedFiles::new());
    assert_eq!(store.state(VBID).unwrap(), None);
    commit(&store, batch(VBID, vec![])).unwrap();
    commit(&store, batch(VBID, vec![item("k", 3, b"v")])).unwrap();
    let mut state = record(3);
    state.max_cas = Cas(77);
    let batch = storage::FlushBatch { state: state.clone(), ..batch(VBID, vec![]) };
    assert_eq!(commit(&store, batch).unwrap().high_seqno, Seqno(3));
    assert_eq!(store.state(VBID).unwrap(), Some(state));
    assert_eq!(scan(&store, VBID).len(), 1);
}

#[test]
fn history_never_goes_back() {
    let (store, _) = open(SimulatedFiles::new());
    commit(&store, batch(VBID, vec![item("k", 5, b"v")])).unwrap();
    let refused = commit(&store, batch(VBID, vec![item("a", 6, b""), item("b", 5, b"")]));
    assert!(matches!(refused, Err(StorageError::OutOfOrder { seqno: 5, high_seqno: 5, .. })));
    commit(&store, batch(VBID, vec![item("a", 6, b"")])).unwrap();
}

#[test]
#[should_panic(expected = "a batch holds a key once")]
fn a_batch_with_a_key_twice_is_a_bug() {
    let (store, _) = open(SimulatedFiles::new());
    drop(commit(&store, batch(VBID, vec![item("k", 1, b"v"), item("k", 2, b"v")])));
}

#[test]
fn all_vbuckets_are_deleted_with_one_sync_of_the_directory() {
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    let vbids: Vec<_> = (0..50).map(Vbid).collect();
    for &vbid in &vbids {
        commit(&store, batch(vbid, vec![item("k", 1, b"v")])).unwrap();
    }
    let before = files.calls();
    let mut gone = Vec::new();
    store.delete_all(|vbid| gone.push(vbid)).unwrap();
    let after = files.calls();
    assert_eq!(after.of(Call::SyncDirectory) - before.of(Call::SyncDirectory), 1);
    assert_eq!(after.of(Call::Remove) - before.of(Call::Remove), 50);
    assert_eq!(gone, vbids);
    assert!(files.list(Path::new("bucket")).unwrap().is_empty());
    files.power_cut(0);
    assert!(open(files).1.vbuckets.is_empty());
}

#[test]
fn a_power_cut_while_all_are_deleted_leaves_each_whole_or_gone() {
    for number in 1..=11 {
        let files = SimulatedFiles::new();
        let (store, _) = open(files.clone());
        for vbid in 0..10 {
            commit(&store, batch(Vbid(vbid), vec![item("k", 1, b"v")])).unwrap();
        }
        let error = FaultError::Io;
        files.fail(Fault { call: None, number, error, from_then_on: true });
        let mut gone = Vec::new();
        store.delete_all(|vbid| gone.push(vbid)).unwrap_err();
        assert_eq!(gone.len() as u64, number - 1);
        for vbid in (0..10).map(Vbid) {
            files.heal();
            let left = usize::from(!gone.contains(&vbid));
            assert_eq!(scan(&store, vbid).len(), left, "call {number}, {vbid:?}");
        }
        files.power_cut(number);
        let (store, report) = open(files.clone());
        assert!(report.ignored.is_empty(), "call {number}: {:?}", report.ignored);
        for found in &report.vbuckets {
            assert_eq!(scan(&store, found.vbid).len(), 1, "call {number}");
        }
        store.delete_all(|_| {}).unwrap();
        files.power_cut(number);
        assert!(open(files).1.vbuckets.is_empty(), "call {number}");
    }
}

/// Its removal has failed behind a compaction. The disk may carry changes of a directory out in
/// any order.
#[test]
fn a_power_cut_in_a_deletion_brings_no_older_revision_into_force() {
    for is_distrusted in [false, true] {
        for (number, seed) in (1..=8).flat_map(|number| (0..16).map(move |seed| (number, seed))) {
            let files = SimulatedFiles::new();
            let (store, _) = open(files.clone());
            commit(&store, batch(VBID, vec![item("before", 1, b"v")])).unwrap();
            let is_refused = Fault {
                call: Some(Call::Remove),
                number: 2,
                error: FaultError::Io,
                from_then_on: true,
            };
            files.fail(is_refused);
            compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
            files.heal();
            let names = files.list(Path::new("bucket")).unwrap();
            assert_eq!(names, ["7.couch.1", "7.couch.2"]);
            commit(&store, batch(VBID, vec![item("behind", 2, b"v")])).unwrap();
            if is_distrusted {
                store.distrust(VBID);
            }
            let error = FaultError::Io;
            files.fail(Fault { call: None, number, error, from_then_on: true });
            let is_done = store.delete_all(|_| {}).is_ok();
            files.heal();
            files.power_cut(seed);
            let (store, report) = open(files);
            let at = format!("distrusted: {is_distrusted}, call {number}, seed {seed}");
            assert!(report.vbuckets.len() <= usize::from(!is_done), "{at}");
            for found in &report.vbuckets {
                assert_eq!(scan(&store, found.vbid).len(), 2, "{at}");
            }
        }
    }
}

#[test]
fn a_new_incarnation_takes_a_new_revision() {
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    for revision in 1..4 {
        commit(&store, batch(VBID, vec![item("k", 1, b"v")])).unwrap();
        let names = files.list(Path::new("bucket")).unwrap();
        assert_eq!(names, [format!("7.couch.{revision}")]);
        store.delete(VBID).unwrap();
        assert_eq!(store.high_seqno(VBID).unwrap(), Seqno(0));
        store.delete(VBID).unwrap();
    }
}
