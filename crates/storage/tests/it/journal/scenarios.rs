//! What a journal goes through in tests, and what must be found after it.

use document::Vbid;
use platform::simulated::SimulatedFiles;
use storage::StorageError;
use storage::journal::{Journal, JournalId, JournalOptions, JournalUsage, Lsn};

use super::model::{Batch, OPTIONS, Replayed, append, try_open};

/// One thing that happens to a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// So many batches with values of so many bytes in one call.
    Append(u64, usize),
    /// A vBucket is deleted.
    Delete,
    /// All but the last so many groups are in the files.
    Release(u64),
    /// Everything is in the files, and the node stops.
    Seal,
    /// A spare is made.
    Prepare,
    /// The process stops and starts again.
    Reopen,
}

use Step::{Append, Delete, Prepare, Release, Reopen, Seal};

pub(crate) struct Scenario<'a> {
    pub(crate) name: &'static str,
    pub(crate) options: JournalOptions,
    pub(crate) steps: &'a [Step],
}

pub(crate) const SCENARIOS: &[Scenario<'_>] = &[
    Scenario {
        name: "small groups",
        options: OPTIONS,
        steps: &[Append(1, 10), Append(3, 700), Delete, Append(2, 5000), Reopen, Append(1, 0)],
    },
    Scenario {
        name: "several groups a call, several segments",
        options: OPTIONS,
        steps: &[Append(9, 7000), Append(9, 9000), Reopen, Append(5, 9000), Reopen, Reopen],
    },
    Scenario {
        name: "recycled segments",
        options: OPTIONS,
        steps: &[
            Append(1, 10),
            Prepare,
            Append(12, 9000),
            Prepare,
            Append(6, 9000),
            Release(2),
            Append(6, 9000),
            Release(0),
            Append(7, 9000),
            Reopen,
            Prepare,
            Append(7, 3000),
            Release(1),
            Append(9, 9000),
        ],
    },
    Scenario {
        name: "records larger than a segment",
        options: OPTIONS,
        steps: &[
            Append(2, 100),
            Append(1, 100_000),
            Append(1, 10),
            Append(2, 70_000),
            Release(1),
            Reopen,
            Append(1, 65_000),
        ],
    },
    Scenario {
        name: "full and released",
        options: JournalOptions { bytes_max: 128 << 10, ..OPTIONS },
        steps: &[
            Append(6, 9000),
            Append(6, 9000),
            Append(6, 9000),
            Delete,
            Release(1),
            Append(6, 9000),
            Append(6, 9000),
            Release(0),
            Append(6, 9000),
        ],
    },
    Scenario {
        name: "sealed",
        options: OPTIONS,
        steps: &[
            Append(3, 9000),
            Prepare,
            Append(9, 9000),
            Seal,
            Append(2, 100),
            Seal,
            Reopen,
            Append(9, 9000),
            Seal,
            Reopen,
            Append(3, 100),
            Reopen,
        ],
    },
];

/// What a journal must hold.
#[derive(Default)]
pub(crate) struct Model {
    id: JournalId,
    /// In order, since the journal got its name.
    acknowledged: Replayed,
    needed_from: u64,
    /// Of the call that failed last: its first group may be found.
    uncertain: Vec<Batch>,
    next_seqno: u64,
    pub(crate) failures: u64,
}

/// What is done about an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    Stop,
    Retry,
}

impl Scenario<'_> {
    /// Goes through the steps. `None` when an error stopped it.
    pub(crate) fn run(
        &self,
        files: &SimulatedFiles,
        model: &mut Model,
        on_error: OnError,
        at: &str,
    ) -> Option<JournalUsage> {
        let mut journal = self.open(files, model, on_error, at)?;
        for step in self.steps {
            match *step {
                Append(count, size) => {
                    let batches = model.new_batches(count, size);
                    self.append(&journal, model, batches, on_error)?;
                }
                Delete => self.append(&journal, model, vec![Batch::delete(9)], on_error)?,
                Release(kept) => {
                    let needed_from = (journal.usage().durable_lsn.0 + 1).saturating_sub(kept);
                    model.needed_from = model.needed_from.max(needed_from);
                    journal.release((kept > 0).then_some(Lsn(needed_from)));
                }
                Seal => {
                    model.needed_from = journal.usage().durable_lsn.0 + 1;
                    journal.seal();
                }
                Prepare => {
                    let prepared = journal.fill_spare();
                    if prepared.is_err() && on_error == OnError::Stop {
                        return None;
                    }
                }
                Reopen => {
                    drop(journal);
                    journal = self.open(files, model, on_error, at)?;
                }
            }
        }
        Some(journal.usage())
    }

    pub(crate) fn open(
        &self,
        files: &SimulatedFiles,
        model: &mut Model,
        on_error: OnError,
        at: &str,
    ) -> Option<Journal> {
        loop {
            match try_open(files, self.options) {
                Ok((journal, report, replayed)) => {
                    model.check(journal.id(), replayed, &format!("{at}: {report:?}"));
                    return Some(journal);
                }
                Err(error @ (StorageError::Corrupt { .. } | StorageError::JournalFull { .. })) => {
                    panic!("{} {at}: {error}", self.name)
                }
                Err(_) if on_error == OnError::Stop => return None,
                Err(_) => model.failures += 1,
            }
        }
    }

    pub(crate) fn append(
        &self,
        journal: &Journal,
        model: &mut Model,
        mut batches: Vec<Batch>,
        on_error: OnError,
    ) -> Option<()> {
        loop {
            let (done, outcome) = append(journal, &batches);
            batches.drain(..done.len());
            if !done.is_empty() {
                model.uncertain.clear();
            }
            model.acknowledged.extend(done);
            match outcome {
                Ok(()) => return Some(()),
                // A flush would come back when the files have caught up.
                Err(StorageError::JournalFull { .. }) => return Some(()),
                Err(error) => {
                    assert!(!matches!(error, StorageError::Corrupt { .. }), "{error}");
                    model.uncertain = batches.clone();
                    model.failures += 1;
                    if on_error == OnError::Stop {
                        return None;
                    }
                }
            }
        }
    }

    /// Starts after a power cut; what is found stays found, also when the power goes again.
    pub(crate) fn check_after_power_cut(
        &self,
        files: &SimulatedFiles,
        model: &mut Model,
        at: &str,
    ) {
        for round in 0..2 {
            let at = format!("{}, {at}, start {round}", self.name);
            let journal = self.open(files, model, OnError::Stop, &at).expect("nothing fails now");
            if round == 1 {
                let batches = model.new_batches(3, 9000);
                self.append(&journal, model, batches, OnError::Stop).expect("nothing fails now");
            }
            drop(journal);
            files.power_cut(0);
        }
        let at = format!("{}, {at}, the end", self.name);
        drop(self.open(files, model, OnError::Stop, &at));
    }
}

impl Model {
    pub(crate) fn new_batches(&mut self, count: u64, value_size: usize) -> Vec<Batch> {
        let first = self.next_seqno + 1;
        self.next_seqno += count;
        (first..first + count).map(|seqno| Batch { vbid: Vbid(7), seqno, value_size }).collect()
    }

    /// Compares what was replayed, and takes it for what is there.
    fn check(&mut self, id: JournalId, mut replayed: Replayed, at: &str) {
        let last_lsn = self.acknowledged.last().map_or(0, |(lsn, _)| lsn.0);
        if id != self.id {
            assert!(replayed.is_empty(), "{at}: a new journal is empty");
            assert!(last_lsn < self.needed_from.max(1), "{at}: something acknowledged is gone");
            *self = Self {
                id,
                next_seqno: self.next_seqno,
                failures: self.failures,
                ..Self::default()
            };
            return;
        }
        let known_count = replayed.partition_point(|(lsn, _)| lsn.0 <= last_lsn);
        let extra = replayed.split_off(known_count);
        let Some(released) = self.acknowledged.len().checked_sub(known_count) else {
            panic!("{at}: more than was acknowledged");
        };
        let (released, kept) = self.acknowledged.split_at(released);
        assert!(replayed == kept, "{at}: {replayed:?} is not the end of {:?}", self.acknowledged);
        let released_lsn = released.last().map_or(0, |(lsn, _)| lsn.0);
        assert!(released_lsn < self.needed_from.max(1), "{at}: lsn {released_lsn} is gone");
        assert!(kept.first().is_none_or(|(lsn, _)| lsn.0 > released_lsn), "{at}: groups are whole");
        let is_next = extra.iter().all(|(lsn, _)| lsn.0 == last_lsn + 1);
        assert!(is_next, "{at}: at most one group was not acknowledged");
        assert!(extra.len() <= self.uncertain.len(), "{at}: {extra:?} was never appended");
        let extra_batches = extra.iter().map(|(_, batch)| batch);
        assert!(extra_batches.eq(&self.uncertain[..extra.len()]), "{at}: {extra:?}");
        self.acknowledged.extend(extra);
        self.uncertain.clear();
    }
}
