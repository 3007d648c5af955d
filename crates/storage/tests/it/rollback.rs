//! Going back in the history of a file, and beginning it anew.

use std::collections::BTreeMap;
use std::path::Path;

use document::{
    Cas, DurabilityLevel, FailoverEntry, Item, ItemBuilder, ItemMeta, Operation, RevSeqno, Seqno,
    VbucketState,
};
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use platform::{Clock, Entropy, Files, OpenMode, Random, WallTime};
use storage::couchstore::CouchFile;
use storage::{FlushBatch, JournalPosition, RollbackPlan, RolledBack};
use storage::{StorageError, Store};

use crate::batches::{
    DIRECTORY, VBID, all_of, batch, commit, item, key, open, random_item, record,
};
use crate::batches::{scan, try_open};

/// The newest version of each key, as of one commit.
type Model = BTreeMap<Vec<u8>, Item>;

const FILE: &str = "bucket/7.couch.1";

/// A file with a history of `commits` commits, and what was in it after each.
fn history(random: &mut Random, commits: u64) -> (SimulatedFiles, Vec<(u64, Model)>) {
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    let (mut model, mut states, mut seqno) = (Model::new(), Vec::new(), 0);
    for _ in 0..commits {
        let mut by_key = Model::new();
        for _ in 0..=random.below(12) {
            seqno += 1 + random.below(2);
            let name = random.below(40);
            let item = random_item(random, name, seqno);
            by_key.insert(item.key().encoded().to_vec(), item);
        }
        seqno = by_key.values().map(|item| item.seqno().0).max().unwrap();
        commit(&store, batch(VBID, by_key.values().cloned().collect())).unwrap();
        model.extend(by_key);
        states.push((seqno, model.clone()));
    }
    (files, states)
}

fn copy_of(files: &SimulatedFiles) -> SimulatedFiles {
    let copy = SimulatedFiles::new();
    copy.insert(Path::new(FILE), &files.content(Path::new(FILE)).unwrap());
    copy
}

/// What a rollback to `seqno` has to come to.
fn expected(states: &[(u64, Model)], seqno: u64) -> RolledBack {
    let Some((high_seqno, _)) = states.iter().rfind(|(high_seqno, _)| *high_seqno <= seqno) else {
        return RolledBack::Reset;
    };
    let (_, newest) = states.last().unwrap();
    let discarded = newest.values().filter(|item| item.seqno().0 > *high_seqno).count();
    if discarded > 0 && discarded * 2 >= newest.len() {
        return RolledBack::Reset;
    }
    RolledBack::To(Seqno(*high_seqno))
}

fn check(store: &Store, model: &Model, at: &str) {
    let mut items: Vec<_> = model.values().collect();
    items.sort_by_key(|item| item.seqno());
    let scanned: Vec<_> = scan(store, VBID).iter().map(all_of).collect();
    assert!(scanned == items.iter().map(|item| all_of(item)).collect::<Vec<_>>(), "{at}");
    let keys: Vec<_> = items.iter().map(|item| item.key()).collect();
    let found = store.get(VBID, &keys).unwrap();
    for (found, item) in found.iter().zip(items) {
        assert_eq!(found.as_ref().map(all_of), Some(all_of(item)), "{at}");
    }
}

#[test]
fn a_file_goes_back_to_each_of_its_states_and_on_from_there() {
    for seed in platform::seeds::seeds(6) {
        let mut random = Random::from_seed(seed);
        let (files, states) = history(&mut random, 25);
        let (last, _) = *states.last().unwrap();
        for seqno in 0..=last + 1 {
            let at = format!("seed {seed}, to {seqno} of {last}");
            let files = copy_of(&files);
            let (store, _) = open(files.clone());
            let came = store.rollback(VBID, Seqno(seqno)).unwrap();
            assert_eq!(came, expected(&states, seqno), "{at}");
            let RolledBack::To(Seqno(high_seqno)) = came else {
                check(&store, &states.last().unwrap().1, &at);
                continue;
            };
            let index = states.iter().position(|(state, _)| *state == high_seqno).unwrap();
            let (_, mut model) = states[index].clone();
            check(&store, &model, &at);
            assert_eq!(store.high_seqno(VBID).unwrap(), Seqno(high_seqno));
            // Another history goes on, and back to the state before both.
            let next = item("next", high_seqno + 1, b"other");
            model.insert(next.key().encoded().to_vec(), next.clone());
            commit(&store, batch(VBID, vec![next])).unwrap();
            let (store, _) = open(files.clone());
            check(&store, &model, &at);
            let again = store.rollback(VBID, Seqno(high_seqno)).unwrap();
            if again == RolledBack::To(Seqno(high_seqno)) {
                check(&open(files).0, &states[index].1, &at);
            }
        }
    }
}

#[test]
fn history_passes_over_what_was_discarded() {
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    for number in 0..8 {
        commit(&store, batch(VBID, vec![item(&number.to_string(), number + 1, b"v")])).unwrap();
    }
    assert_eq!(store.rollback(VBID, Seqno(6)).unwrap(), RolledBack::To(Seqno(6)));
    commit(&store, batch(VBID, vec![item("other", 7, b"v")])).unwrap();
    let file = CouchFile::open(&files, Path::new(FILE), OpenMode::Read).unwrap();
    let mut header = Some(file.newest_header().unwrap().0);
    let mut seqnos = Vec::new();
    while let Some(state) = header {
        seqnos.push(state.high_seqno);
        header = file.header_before(&state).unwrap();
    }
    assert_eq!(seqnos, [7, 6, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn what_is_remembered_is_of_then_but_for_role_branches_and_the_journal() {
    let (store, _) = open(SimulatedFiles::new());
    let branch = |uuid, seqno| FailoverEntry { uuid: document::VbUuid(uuid), seqno: Seqno(seqno) };
    for number in 1..=9 {
        let mut batch = batch(VBID, vec![item(&number.to_string(), number, b"v")]);
        batch.state.completed_seqno = Seqno(number);
        batch.state.snapshot_start = Seqno(number);
        batch.state.snapshot_end = Seqno(number + 1);
        batch.state.max_cas = Cas(number);
        batch.state.journal = Some(JournalPosition { id: 5, lsn: number });
        if number > 7 {
            batch.state.state = VbucketState::Replica;
            batch.state.failover_table = [branch(2, 7), branch(1, 3)].into();
        }
        commit(&store, batch).unwrap();
    }
    assert_eq!(store.rollback(VBID, Seqno(6)).unwrap(), RolledBack::To(Seqno(6)));
    let mut expected = record(6);
    expected.snapshot_end = Seqno(7);
    expected.completed_seqno = Seqno(6);
    expected.max_cas = Cas(9);
    expected.journal = Some(JournalPosition { id: 5, lsn: 9 });
    expected.state = VbucketState::Replica;
    expected.failover_table = [branch(1, 3)].into();
    assert_eq!(store.state(VBID).unwrap(), Some(expected));
}

#[test]
fn a_plan_that_has_grown_old_is_not_carried_out() {
    let (store, _) = open(SimulatedFiles::new());
    assert!(matches!(store.plan_rollback(VBID, Seqno(1)).unwrap(), RollbackPlan::Reset));
    for number in 1..=9 {
        commit(&store, batch(VBID, vec![item(&number.to_string(), number, b"v")])).unwrap();
    }
    let RollbackPlan::Rewind(plan) = store.plan_rollback(VBID, Seqno(7)).unwrap() else {
        panic!("there is such a state");
    };
    assert_eq!((plan.high_seqno(), plan.item_count()), (Seqno(7), 7));
    commit(&store, batch(VBID, vec![item("10", 10, b"v")])).unwrap();
    assert!(!store.rewind(&plan).unwrap());
    assert_eq!(store.high_seqno(VBID).unwrap(), Seqno(10));
    store.reset(VBID, &record(0)).unwrap();
    assert!(!store.rewind(&plan).unwrap());
    assert_eq!(store.high_seqno(VBID).unwrap(), Seqno(0));
}

#[test]
fn an_old_snapshot_goes_on_while_its_file_goes_back() {
    let (store, _) = open(SimulatedFiles::new());
    for number in 1..=9 {
        commit(&store, batch(VBID, vec![item(&number.to_string(), number, b"v")])).unwrap();
    }
    let mut seen = Vec::new();
    let visit = |item: Item| {
        if seen.is_empty() {
            store.rollback(VBID, Seqno(8)).unwrap();
        }
        if seen.len() == 1 {
            store.reset(VBID, &record(0)).unwrap();
        }
        seen.push(item.seqno().0);
        std::ops::ControlFlow::Continue(())
    };
    store.scan(VBID, Seqno(0), true, visit).unwrap();
    assert_eq!(seen, (1..=9).collect::<Vec<_>>());
    assert!(scan(&store, VBID).is_empty());
}

fn prepare(name: &str, seqno: u64, is_abort: bool) -> Item {
    let builder = ItemBuilder::new(key(name).as_key(), ItemMeta::default(), b"pending");
    let prepare = builder.with_operation(Operation::Prepare(DurabilityLevel::Majority));
    let prepare = prepare.finish(Cas(seqno), Seqno(seqno), RevSeqno(1));
    if is_abort { prepare.aborted(Seqno(seqno), 9) } else { prepare }
}

#[test]
fn a_file_counts_its_prepares_whatever_the_batch_says_and_so_does_one_that_went_back() {
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    let counts = |store: &Store| {
        let state = store.state(VBID).unwrap().unwrap();
        (state.on_disk_prepares, state.on_disk_prepare_bytes)
    };
    let documents = (1..=20).map(|number| item(&number.to_string(), number, b"v")).collect();
    commit(&store, batch(VBID, documents)).unwrap();
    assert_eq!(counts(&store), (0, 0));
    commit(&store, batch(VBID, vec![prepare("a", 21, false), prepare("b", 22, false)])).unwrap();
    let (count, bytes) = counts(&store);
    assert_eq!(count, 2);
    assert!(bytes > 2 * 7);
    commit(&store, batch(VBID, vec![prepare("a", 23, false), item("a", 24, b"v")])).unwrap();
    assert_eq!(counts(&store), (2, bytes), "a prepare in the place of another");
    commit(&store, batch(VBID, vec![prepare("a", 25, true), prepare("c", 26, true)])).unwrap();
    assert_eq!(
        counts(&store),
        (1, bytes / 2),
        "an abort in the place of a prepare, and one of none"
    );
    let mut wrong = batch(VBID, vec![]);
    wrong.state.on_disk_prepares = 99;
    commit(&store, wrong).unwrap();
    assert_eq!(counts(&store), (1, bytes / 2));
    assert_eq!(store.item_count(VBID).unwrap(), 21);
    assert_eq!(store.rollback(VBID, Seqno(22)).unwrap(), RolledBack::To(Seqno(22)));
    assert_eq!(counts(&open(files).0), (2, bytes));
}

fn ten_commits(files: &SimulatedFiles) -> Result<Store, StorageError> {
    let (store, _) = try_open(files.clone(), DIRECTORY.as_ref(), 4)?;
    for number in 1..=10 {
        let mut batch = batch(VBID, vec![item(&number.to_string(), number, b"v")]);
        batch.state.state = VbucketState::Replica;
        commit(&store, batch)?;
    }
    Ok(store)
}

fn empty_replica() -> storage::VbucketRecord {
    let mut record = record(0);
    record.state = VbucketState::Replica;
    record
}

/// Runs `action` with each of its calls failing, once or for good, and the power going behind it;
/// `high_seqnos` are those that the file may have then. Without a power cut it is tried again.
fn survives(
    action: impl Fn(&Store) -> Result<(), StorageError>,
    high_seqnos: [u64; 2],
    seqnos_of: impl Fn(u64) -> Vec<u64>,
) {
    let counted = SimulatedFiles::new();
    let store = ten_commits(&counted).unwrap();
    let before = counted.calls().total();
    action(&store).unwrap();
    let calls = counted.calls().total() - before;
    assert!(calls > 3);
    let errors = [
        FaultError::Io,
        FaultError::NoSpace,
        FaultError::TooManyOpen,
        FaultError::ShortWrite,
        FaultError::LateRename,
    ];
    for error in errors {
        for number in 1..=calls {
            for (from_then_on, seed) in [(false, None), (true, Some(0)), (true, Some(number + 7))] {
                let at = format!("{error:?} {number}, power cut {seed:?}");
                let files = SimulatedFiles::new();
                let store = ten_commits(&files).unwrap();
                files.fail(Fault { call: None, number, error, from_then_on });
                let failed = action(&store).is_err();
                files.heal();
                let mut store = store;
                if let Some(seed) = seed {
                    drop(store);
                    files.power_cut(seed);
                    let (opened, report) = open(files.clone());
                    assert!(report.ignored.is_empty(), "{at}: {:?}", report.ignored);
                    assert_eq!(report.vbuckets[0].record.state, VbucketState::Replica, "{at}");
                    store = opened;
                } else if failed {
                    action(&store).unwrap();
                }
                let high_seqno = store.high_seqno(VBID).unwrap().0;
                assert!(high_seqnos.contains(&high_seqno), "{at}: {high_seqno}");
                assert!(seed.is_some() || high_seqno == high_seqnos[1], "{at}: {high_seqno}");
                let seqnos: Vec<_> = scan(&store, VBID).iter().map(|item| item.seqno().0).collect();
                assert_eq!(seqnos, seqnos_of(high_seqno), "{at}");
                // History goes on, and what is acknowledged from here on stays.
                let next = high_seqno + 1;
                commit(&store, batch(VBID, vec![item("next", next, b"v")])).unwrap();
                files.power_cut(number);
                let (store, _) = open(files);
                assert_eq!(store.high_seqno(VBID).unwrap(), Seqno(next), "{at}");
                assert_eq!(scan(&store, VBID).len(), seqnos_of(high_seqno).len() + 1, "{at}");
            }
        }
    }
}

#[test]
fn whatever_fails_a_rollback_has_happened_or_not() {
    let rollback = |store: &Store| store.rollback(VBID, Seqno(7)).map(drop);
    survives(rollback, [10, 7], |high_seqno| (1..=high_seqno).collect());
}

#[test]
fn whatever_fails_a_reset_has_happened_or_not() {
    let reset = |store: &Store| store.reset(VBID, &empty_replica());
    survives(reset, [10, 0], |high_seqno| (1..=high_seqno).collect());
}

#[test]
fn a_reset_whose_rename_failed_behind_its_effect_does_not_hide_what_is_committed_since() {
    for seed in 0..16 {
        let files = SimulatedFiles::new();
        let store = ten_commits(&files).unwrap();
        let (call, error) = (Some(Call::Rename), FaultError::LateRename);
        files.fail(Fault { call, number: 1, error, from_then_on: false });
        store.reset(VBID, &empty_replica()).unwrap_err();
        assert_eq!(store.high_seqno(VBID).unwrap(), Seqno(10));
        commit(&store, batch(VBID, vec![item("next", 11, b"v")])).unwrap();
        files.power_cut(seed);
        let (store, _) = open(files);
        assert_eq!(store.high_seqno(VBID).unwrap(), Seqno(11), "seed {seed}");
        assert_eq!(scan(&store, VBID).len(), 11, "seed {seed}");
    }
}

#[test]
fn a_reset_makes_a_file_where_there_is_none_and_keeps_the_journal_position() {
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    let mut state = empty_replica();
    store.reset(VBID, &state).unwrap();
    assert_eq!(store.state(VBID).unwrap(), Some(state.clone()));
    state.journal = Some(JournalPosition { id: 3, lsn: 4 });
    commit(&store, FlushBatch { state: state.clone(), ..batch(VBID, vec![]) }).unwrap();
    store.reset(VBID, &empty_replica()).unwrap();
    assert_eq!(store.state(VBID).unwrap(), Some(state));
    assert_eq!(files.list(Path::new(DIRECTORY)).unwrap(), ["7.couch.2"]);
    assert_eq!(store.revision(VBID), 2);
}

#[test]
fn revisions_rise_over_deletions_and_restarts_that_say_so() {
    let files = SimulatedFiles::new();
    let (mut store, _) = open(files.clone());
    for round in 1..=20 {
        commit(&store, batch(VBID, vec![item("k", 1, b"v")])).unwrap();
        assert_eq!(files.list(Path::new(DIRECTORY)).unwrap(), [format!("7.couch.{round}")]);
        store.raise_revision(VBID, 1000);
        store.delete(VBID).unwrap();
        let revision = store.revision(VBID);
        if round % 3 == 0 {
            store = open(files.clone()).0;
            assert_eq!(store.revision(VBID), 0);
            store.raise_revision(VBID, revision);
        }
    }
}

#[test]
fn the_verifier_is_content_with_files_that_went_back() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::simulated(WallTime(1));
    let options =
        storage::StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal: None };
    let files = std::sync::Arc::new(platform::files::RealFiles);
    let (store, _) = Store::open(files, directory.path(), options).unwrap();
    let mut random = Random::from_seed(7);
    let mut seqno = 0;
    for round in 0..30 {
        let items: Vec<_> = (0..40)
            .map(|name| {
                seqno += 1;
                random_item(&mut random, name * 31 + round, seqno)
            })
            .collect();
        commit(&store, batch(VBID, items)).unwrap();
        if round % 5 == 4
            && let RolledBack::To(Seqno(high_seqno)) =
                store.rollback(VBID, Seqno(seqno - 50)).unwrap()
        {
            seqno = high_seqno;
        }
    }
    crate::model::verify_with(&directory.path().join("7.couch.1"), "\"ok\": true");
}
