//! Appending and replaying when nothing fails.

use std::sync::Arc;

use platform::simulated::SimulatedFiles;
use platform::{Clock, Files};
use storage::StorageError;
use storage::journal::Journal;

use super::model::{Batch, OPTIONS, append, open};
use crate::batches::DIRECTORY;

#[test]
fn what_is_appended_is_replayed_in_order_by_every_later_start() {
    let files = SimulatedFiles::new();
    let mut expected = Vec::new();
    for round in 0..5 {
        let (journal, report, replayed) = open(&files);
        assert_eq!(replayed, expected, "{report:?}");
        let batches: Vec<_> =
            (1..40).map(|seqno| Batch::new(7, round * 40 + seqno, 3000)).collect();
        let (done, outcome) = append(&journal, &batches);
        outcome.unwrap();
        expected.extend(done);
    }
    assert!(expected.is_sorted_by_key(|(lsn, _)| *lsn));
}

#[test]
fn starts_that_fail_leave_nothing_that_piles_up() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = open(&files);
    let (expected, outcome) = append(&journal, &[Batch::new(7, 1, 10), Batch::new(7, 2, 20_000)]);
    outcome.unwrap();
    drop(journal);
    for _ in 0..10 {
        let refused = Journal::open(
            Arc::new(files.clone()),
            DIRECTORY.as_ref(),
            OPTIONS,
            Clock::real(),
            platform::Entropy::real(),
            &mut |_, _| Err(StorageError::JournalFull { used_bytes: 0, bytes_max: 0 }),
        );
        assert!(refused.is_err());
        files.power_cut(0);
        let names = files.list(format!("{DIRECTORY}/journal").as_ref()).unwrap();
        assert!(names.len() <= 4, "{names:?}");
    }
    assert_eq!(open(&files).2, expected);
}

#[test]
fn an_empty_journal_leaves_no_trace() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = open(&files);
    assert!(!journal.fill_spare().unwrap());
    journal.release(None);
    journal.seal();
    drop(journal);
    assert!(files.list(DIRECTORY.as_ref()).unwrap().is_empty());
}
