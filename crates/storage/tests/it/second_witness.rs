//! Journals and files that say different things of one vBucket.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::{FailoverEntry, Seqno, VbUuid, Vbid};
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use platform::{Clock, Entropy, Files, OpenMode, WallTime};
use storage::couchstore::CouchFile;
use storage::{
    JournalOptions, RolledBack, StartReport, StorageError, Store, StoreOptions, WhyIgnored,
};

use crate::batches::{DIRECTORY, VBID, batch, commit, item, scan};

const OTHER: Vbid = Vbid(9);
const OPTIONS: JournalOptions = JournalOptions {
    segment_bytes: 128 << 10,
    bytes_max: 1 << 20,
    group_bytes_max: 8 << 10,
    portion_bytes: 4096,
};

fn try_start(files: &SimulatedFiles) -> Result<(Store, StartReport), StorageError> {
    let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
    let options =
        StoreOptions { entropy: Entropy::real(), clock, open_files_max: 4, journal: Some(OPTIONS) };
    Store::open(Arc::new(files.clone()), Path::new(DIRECTORY), options)
}

fn start(files: &SimulatedFiles) -> (Store, StartReport) {
    try_start(files).unwrap()
}

fn put(store: &Store, vbid: Vbid, seqnos: impl IntoIterator<Item = u64>) {
    for seqno in seqnos {
        commit(store, batch(vbid, vec![item(&format!("key-{seqno}"), seqno, b"v")])).unwrap();
    }
}

fn seqnos(store: &Store) -> Vec<u64> {
    scan(store, VBID).iter().map(|item| item.seqno().0).collect()
}

fn newest_file(files: &SimulatedFiles, vbid: Vbid) -> PathBuf {
    let names = files.list(Path::new(DIRECTORY)).unwrap();
    let name = names.iter().rfind(|name| name.starts_with(&format!("{}.couch.", vbid.0)));
    Path::new(DIRECTORY).join(name.unwrap())
}

fn ruin(files: &SimulatedFiles, path: &Path) {
    let size = files.content(path).unwrap().len();
    files.insert(path, &vec![0xff; size]);
}

/// A vBucket that was deleted, of which the journal has everything since, and which went back.
fn rolled_back() -> (SimulatedFiles, Store) {
    let files = SimulatedFiles::new();
    let (store, _) = start(&files);
    put(&store, VBID, [1]);
    store.apply(VBID).unwrap();
    store.delete(VBID).unwrap();
    put(&store, OTHER, [1]);
    put(&store, VBID, 1..=6);
    store.apply(VBID).unwrap();
    put(&store, VBID, 7..=8);
    store.apply(VBID).unwrap();
    assert_eq!(store.rollback(VBID, Seqno(7)).unwrap(), RolledBack::To(Seqno(6)));
    (files, store)
}

#[test]
fn what_was_rolled_back_does_not_come_back_from_the_journal() {
    for has_more in [false, true] {
        for is_damaged in [false, true] {
            let at = format!("more {has_more}, damaged {is_damaged}");
            let (files, store) = rolled_back();
            let mut expected: Vec<u64> = (1..=6).collect();
            if has_more {
                put(&store, VBID, [7]);
                expected.push(7);
            }
            drop(store);
            files.power_cut(0);
            if is_damaged {
                ruin(&files, &newest_file(&files, VBID));
            }
            let (store, report) = start(&files);
            assert_eq!(seqnos(&store), expected, "{at}");
            assert_eq!(report.unreadable_vbuckets().count(), 0, "{at}: {report:?}");
            let next = expected.len() as u64 + 1;
            put(&store, VBID, [next]);
            drop(store);
            files.power_cut(0);
            expected.push(next);
            assert_eq!(seqnos(&start(&files).0), expected, "{at}, again");
        }
    }
}

#[test]
fn a_vbucket_whose_history_is_cut_is_held_and_others_start() {
    let files = SimulatedFiles::new();
    let (store, _) = start(&files);
    put(&store, VBID, 1..=3);
    store.apply(VBID).unwrap();
    let intact = files.content(&newest_file(&files, VBID)).unwrap();
    put(&store, VBID, 4..=5);
    store.apply(VBID).unwrap();
    put(&store, VBID, 6..=7);
    put(&store, OTHER, 1..=2);
    drop(store);
    files.power_cut(0);
    let path = newest_file(&files, VBID);
    let newest = files.content(&path).unwrap();
    // Everything that the journal has of it is there: an older file is brought up to date.
    files.insert(&path, &intact);
    let (store, report) = start(&files);
    assert_eq!(report.unreadable_vbuckets().count(), 0, "{report:?}");
    assert_eq!(seqnos(&store), [1, 2, 3, 4, 5, 6, 7]);
    put(&store, VBID, [8]);
    drop(store);
    files.power_cut(0);
    // Since the first group after a start the journal knows better.
    for content in [&intact, &newest] {
        files.insert(&path, content);
        let (store, report) = start(&files);
        let why: Vec<_> = report.ignored.iter().map(|ignored| &ignored.why).collect();
        assert!(matches!(why[..], [WhyIgnored::Contradicted { .. }]), "{why:?}");
        assert_eq!(store.high_seqno(OTHER).unwrap(), Seqno(2));
        assert_eq!(files.content(&path).unwrap(), *content, "nothing of it is changed");
    }
}

#[test]
fn a_file_that_stays_in_doubt_takes_nobody_who_is_committed_with_it() {
    let third = Vbid(11);
    let prepared = || {
        let files = SimulatedFiles::new();
        let (store, _) = start(&files);
        for seqno in 1..=8 {
            put(&store, VBID, [seqno]);
            store.apply(VBID).unwrap();
        }
        (files, store)
    };
    let (files, store) = prepared();
    let before = files.calls().of(Call::Sync);
    assert_eq!(store.rollback(VBID, Seqno(6)).unwrap(), RolledBack::To(Seqno(6)));
    let number = files.calls().of(Call::Sync) - before;
    for is_damaged in [true, false] {
        let (files, store) = prepared();
        let (call, error) = (Some(Call::Sync), FaultError::Io);
        files.fail(Fault { call, number, error, from_then_on: false });
        store.rollback(VBID, Seqno(6)).unwrap_err();
        let path = newest_file(&files, VBID);
        let whole = files.content(&path).unwrap();
        if is_damaged {
            ruin(&files, &path);
        } else {
            // The file is opened first of all.
            files.fail(Fault { call: Some(Call::Open), number: 1, error, from_then_on: false });
        }
        let next = |vbid, seqno: u64| batch(vbid, vec![item("next", seqno, b"v")]);
        let mut results = Vec::new();
        let batches =
            vec![next(OTHER, 1), next(VBID, 9), next(third, 1), next(VBID, 10), next(OTHER, 2)];
        store.commit(batches, |vbid, result| results.push((vbid, result)));
        let outcomes: Vec<_> =
            results.iter().map(|(vbid, result)| (*vbid, result.is_ok())).collect();
        let failed = (VBID, false);
        assert_eq!(outcomes, [(OTHER, true), failed, (third, true), failed, (OTHER, true)]);
        let error = results[1].1.as_ref().unwrap_err();
        assert_eq!(matches!(error, StorageError::Corrupt { .. }), is_damaged, "{error}");
        files.insert(&path, &whole);
        drop(store);
        files.power_cut(0);
        let (store, _) = start(&files);
        let high = [OTHER, VBID, third].map(|vbid| store.high_seqno(vbid).unwrap());
        assert_eq!((high[0], high[2]), (Seqno(2), Seqno(1)), "damaged {is_damaged}");
    }
}

#[test]
fn a_journal_that_lost_its_end_gives_no_lsn_again() {
    let files = SimulatedFiles::new();
    let (store, _) = start(&files);
    put(&store, VBID, 1..=3);
    store.apply(VBID).unwrap();
    put(&store, VBID, 4..=5);
    store.apply(VBID).unwrap();
    let last_lsn = store.journal_usage().unwrap().durable_lsn;
    drop(store);
    files.power_cut(0);
    let journal = Path::new(DIRECTORY).join("journal");
    let names = files.list(&journal).unwrap();
    let last = journal.join(names.iter().rfind(|name| name.starts_with("j.")).unwrap());
    let mut content = files.content(&last).unwrap();
    let end = content.iter().rposition(|byte| *byte != 0).unwrap();
    content[end] ^= 1;
    files.insert(&last, &content);
    let (store, report) = start(&files);
    let lost = report.journal.unwrap().lost_end.unwrap();
    assert_eq!(lost.known_lsn, Some(last_lsn));
    assert!(lost.last_lsn < last_lsn && last_lsn < lost.next_lsn, "{lost:?}");
    put(&store, VBID, [6]);
    assert!(store.journal_usage().unwrap().durable_lsn >= lost.next_lsn);
    for seqno in 7..10 {
        put(&store, VBID, [seqno]);
    }
    drop(store);
    files.power_cut(0);
    let (store, report) = start(&files);
    assert_eq!(report.journal.unwrap().lost_end, None, "it is told once");
    assert_eq!(seqnos(&store), (1..10).collect::<Vec<_>>());
}

#[test]
fn what_follows_a_lost_end_is_found_however_often_a_start_is_cut_short() {
    let files = SimulatedFiles::new();
    let (store, _) = start(&files);
    put(&store, VBID, 1..=3);
    store.apply(VBID).unwrap();
    put(&store, VBID, [4]);
    store.apply(VBID).unwrap();
    drop(store);
    files.power_cut(0);
    let journal = Path::new(DIRECTORY).join("journal");
    let names = files.list(&journal).unwrap();
    let last = journal.join(names.iter().rfind(|name| name.starts_with("j.")).unwrap());
    let mut content = files.content(&last).unwrap();
    let end = content.iter().rposition(|byte| *byte != 0).unwrap();
    content[end] ^= 1;
    files.insert(&last, &content);
    let (store, report) = start(&files);
    assert!(report.journal.unwrap().lost_end.is_some());
    // The only group behind what is missing, so that each start writes it anew.
    put(&store, VBID, [5]);
    drop(store);
    for round in 0..3 {
        files.power_cut(0);
        let (store, _) = try_start(&files).unwrap_or_else(|error| panic!("{round}: {error}"));
        assert_eq!(seqnos(&store), (1..=5).collect::<Vec<_>>(), "{round}");
    }
}

fn compact(store: &Store) {
    let request = storage::CompactionRequest::default();
    let progress = storage::CompactionProgress::new();
    store.compact(VBID, &request, &progress, &crate::compaction::Between(|_| {})).unwrap();
}

#[test]
fn a_compacted_file_continues_the_one_before() {
    let files = SimulatedFiles::new();
    let (store, _) = start(&files);
    put(&store, VBID, 1..=9);
    store.apply(VBID).unwrap();
    drop(store);
    files.power_cut(0);
    let (store, _) = start(&files);
    // Its witness is of the file before.
    put(&store, VBID, [10]);
    store.apply(VBID).unwrap();
    compact(&store);
    drop(store);
    files.power_cut(0);
    let (_, report) = start(&files);
    assert_eq!(report.unreadable_vbuckets().count(), 0, "{report:?}");
    let path = newest_file(&files, VBID);
    let file = CouchFile::open(&files, &path, OpenMode::Read).unwrap();
    assert_eq!(file.newest_header().unwrap().0.high_seqno, 10);
}

/// The branches of a history, newest first, by name and where they begin.
fn branches(of: &[(u64, u64)]) -> Arc<[FailoverEntry]> {
    of.iter()
        .map(|&(uuid, seqno)| FailoverEntry { uuid: VbUuid(uuid), seqno: Seqno(seqno) })
        .collect()
}

#[test]
fn a_compacted_file_may_forget_a_branch_that_nothing_came_in() {
    for (adopted, is_believed) in [
        // Another node's, whose own branch begins where this one's has begun.
        ([(3, 5), (1, 0)], true),
        // What came before is of another history.
        ([(3, 5), (9, 0)], false),
    ] {
        let files = SimulatedFiles::new();
        let (store, _) = start(&files);
        let mut own = batch(VBID, (1..=5).map(|seqno| item("key", seqno, b"v")).collect());
        own.state.failover_table = branches(&[(2, 5), (1, 0)]);
        commit(&store, own).unwrap();
        store.apply(VBID).unwrap();
        drop(store);
        files.power_cut(0);
        let (store, _) = start(&files);
        // Its witness is of the file before.
        let mut next = batch(VBID, vec![item("key", 6, b"v")]);
        next.state.failover_table = branches(&adopted);
        commit(&store, next).unwrap();
        store.apply(VBID).unwrap();
        compact(&store);
        drop(store);
        files.power_cut(0);
        let (_, report) = start(&files);
        let is_found = report.unreadable_vbuckets().count() == 0;
        assert_eq!(is_found, is_believed, "{adopted:?}: {report:?}");
    }
}
