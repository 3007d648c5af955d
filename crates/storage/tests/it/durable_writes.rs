//! The steps of durable writes, in files and in the journal.

use std::path::Path;
use std::sync::Arc;

use document::{
    Cas, Datatype, Deletion, DurabilityLevel, Item, ItemBuilder, ItemMeta, Operation, RevSeqno,
    Seqno,
};
use platform::files::RealFiles;
use platform::{Clock, Entropy, WallTime};
use storage::{JournalOptions, Store, StoreOptions};

use crate::batches::{VBID, all_of, batch, commit, key, scan};
use crate::model::verify_with;

fn step(name: &str, seqno: u64, operation: Operation, meta: ItemMeta, value: &[u8]) -> Item {
    ItemBuilder::new(key(name).as_key(), meta, value).with_operation(operation).finish(
        Cas(seqno + 1000),
        Seqno(seqno),
        RevSeqno(3),
    )
}

/// Prepares of every level, one that deletes, a commit and an abort; the version of the committed
/// namespace beside a prepare.
fn steps() -> Vec<Item> {
    let plain = ItemMeta { flags: [1, 2, 3, 4], datatype: Datatype::JSON, ..ItemMeta::default() };
    let deletes = ItemMeta { expiry: 77, deletion: Some(Deletion::Explicit), ..Default::default() };
    let [majority, master, persist] = [1, 2, 3].map(|level| {
        Operation::Prepare(DurabilityLevel::from_byte(level).expect("there are three levels"))
    });
    let prepared = step("aborted", 6, majority, plain, b"[]");
    vec![
        step("majority", 1, Operation::Mutation, plain, b"[0]"),
        step("majority", 2, majority, plain, b"[1]"),
        step("master", 3, master, plain, b"[2]"),
        step("persist", 4, persist, ItemMeta { expiry: 99, ..plain }, b"[3]"),
        step("deletes", 5, persist, deletes, b""),
        step("committed", 7, master, plain, b"[4]").committed(Seqno(8)),
        prepared.aborted(Seqno(9), 55),
    ]
}

fn open(directory: &Path, has_journal: bool) -> Store {
    let options = StoreOptions {
        entropy: Entropy::real(),
        clock: Clock::simulated(WallTime(1_700_000_000_000_000_000)),
        open_files_max: 4,
        journal: has_journal.then(JournalOptions::default),
    };
    Store::open(Arc::new(RealFiles), directory, options).unwrap().0
}

/// A commit comes back as the document that it is: nobody needs to know how it came to be.
fn as_read(item: &Item) -> (Operation, impl PartialEq + std::fmt::Debug + use<>) {
    let operation = match item.operation() {
        Operation::Commit { .. } => Operation::Mutation,
        operation => operation,
    };
    (operation, all_of(item))
}

#[test]
fn every_step_of_a_durable_write_is_read_back_from_files_and_from_the_journal() {
    for has_journal in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path(), has_journal);
        commit(&store, batch(VBID, steps())).unwrap();
        // With a journal nothing is in the file before the next start.
        drop(store);
        let store = open(directory.path(), has_journal);
        let expected: Vec<_> = steps().iter().map(as_read).collect();
        assert_eq!(scan(&store, VBID).iter().map(as_read).collect::<Vec<_>>(), expected);
        let names = ["majority", "master", "deletes", "committed", "aborted"].map(key);
        let keys: Vec<_> = names.iter().map(|name| name.as_key()).collect();
        let found = store.get(VBID, &keys).unwrap();
        let seqnos = found.iter().map(|found| found.as_ref().map(|item| item.seqno().0));
        assert_eq!(seqnos.collect::<Vec<_>>(), [Some(1), None, None, Some(8), None]);
        let state = store.state(VBID).unwrap().unwrap();
        assert_eq!(state.on_disk_prepares, 4);
        assert_eq!(store.item_count(VBID).unwrap(), 2, "prepares are no documents yet");
        verify_with(&directory.path().join("7.couch.1"), "\"ok\": true");
    }
}

#[test]
fn a_prepare_that_has_ended_before_the_file_is_written_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), true);
    let prepare = |name: &str, seqno: u64| {
        let level = Operation::Prepare(DurabilityLevel::Majority);
        step(name, seqno, level, ItemMeta::default(), b"value")
    };
    let write = |items: Vec<Item>, completed: u64| {
        let mut batch = batch(VBID, items);
        batch.state.completed_seqno = Seqno(completed);
        commit(&store, batch).unwrap();
    };
    let [a, b, c] = [prepare("a", 1), prepare("b", 2), prepare("c", 4)];
    write(vec![a.clone(), b.clone()], 0);
    write(vec![a.committed(Seqno(3)), c.clone()], 1);
    let seqnos =
        |store: &Store| scan(store, VBID).iter().map(|item| item.seqno().0).collect::<Vec<_>>();
    store.apply(VBID).unwrap();
    assert_eq!(seqnos(&store), [2, 3, 4], "what has not ended is there");
    write(vec![b.committed(Seqno(5)), c.aborted(Seqno(6), 9)], 4);
    write(vec![prepare("d", 7)], 7);
    store.apply(VBID).unwrap();
    assert_eq!(seqnos(&store), [2, 3, 5, 6, 7], "the last item tells how far the file is");
    assert_eq!(store.high_seqno(VBID).unwrap(), Seqno(7));
    write(vec![prepare("e", 8), step("f", 9, Operation::Mutation, ItemMeta::default(), b"")], 8);
    drop(store);
    let store = open(directory.path(), true);
    assert_eq!(seqnos(&store), [2, 3, 5, 6, 7, 9], "nor when the journal is replayed");
    verify_with(&directory.path().join("7.couch.1"), "\"ok\": true");
}
