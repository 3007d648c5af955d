//! Appending and replaying when nothing fails.

use platform::Files;
use platform::simulated::SimulatedFiles;

use super::model::{Batch, append, open};
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
fn an_empty_journal_leaves_no_trace() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = open(&files);
    assert!(!journal.prepare_spare().unwrap());
    journal.release(None);
    journal.seal();
    drop(journal);
    assert!(files.list(DIRECTORY.as_ref()).unwrap().is_empty());
}
