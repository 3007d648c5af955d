//! Batches whose content follows from their numbers, and a journal on a simulated disk.

use std::path::Path;
use std::sync::Arc;

use document::{Item, Seqno, Vbid, VbucketState};
use platform::Clock;
use platform::simulated::SimulatedFiles;
use storage::journal::{Journal, JournalOptions, JournalReport, Lsn, Record, ReplayedRecord};
use storage::{StorageError, VbucketRecord};

use crate::batches::{DIRECTORY, item};

/// Small, so that segments are switched often.
pub(crate) const OPTIONS: JournalOptions = JournalOptions {
    segment_bytes: 64 << 10,
    bytes_max: 1 << 20,
    group_bytes_max: 16 << 10,
    portion_bytes: 4096,
};

/// One record of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) vbid: Vbid,
    /// Of its only item; 0 for a deletion.
    pub(crate) seqno: u64,
    pub(crate) value_size: usize,
}

/// The parts that a record borrows.
pub(crate) struct Parts {
    items: Vec<Item>,
    state: VbucketRecord,
}

impl Batch {
    pub(crate) fn new(vbid: u16, seqno: u64, value_size: usize) -> Self {
        Self { vbid: Vbid(vbid), seqno, value_size }
    }

    pub(crate) fn delete(vbid: u16) -> Self {
        Self::new(vbid, 0, 0)
    }

    pub(crate) fn parts(&self) -> Parts {
        let mut state = VbucketRecord::new(VbucketState::Active);
        state.snapshot_end = Seqno(self.seqno);
        Parts { items: vec![self.item()], state }
    }

    pub(crate) fn record<'a>(&self, parts: &'a Parts) -> Record<'a> {
        let vbid = self.vbid;
        if self.seqno == 0 {
            return Record::Delete { vbid };
        }
        Record::Batch {
            vbid,
            previous_seqno: Seqno(self.seqno - 1),
            supersedes: self.seqno.is_multiple_of(7),
            items: &parts.items,
            state: &parts.state,
        }
    }

    fn item(&self) -> Item {
        let byte = u8::try_from(self.seqno % 251).unwrap();
        item(&format!("key-{}", self.seqno), self.seqno.max(1), &vec![byte; self.value_size])
    }

    /// The batch that a replayed record is, which must be whole.
    fn of(record: ReplayedRecord) -> Self {
        match record {
            ReplayedRecord::Delete { vbid } => Self { vbid, seqno: 0, value_size: 0 },
            record @ (ReplayedRecord::Rollback { .. } | ReplayedRecord::Witnesses(_)) => {
                panic!("{record:?} was never appended")
            }
            ReplayedRecord::Batch { vbid, previous_seqno, supersedes, items, state } => {
                assert_eq!(items.len(), 1);
                let found =
                    Self { vbid, seqno: items[0].seqno().0, value_size: items[0].value().len() };
                let expected = found.item();
                assert_eq!(items[0].key(), expected.key());
                assert_eq!(items[0].value(), expected.value());
                assert_eq!(items[0].meta(), expected.meta());
                assert_eq!(items[0].cas(), expected.cas());
                assert_eq!(previous_seqno.0 + 1, found.seqno);
                assert_eq!(supersedes, found.seqno.is_multiple_of(7));
                assert_eq!(*state, found.parts().state);
                found
            }
        }
    }
}

/// What a replay has given: each record with its lsn.
pub(crate) type Replayed = Vec<(Lsn, Batch)>;

pub(crate) fn try_open(
    files: &SimulatedFiles,
    options: JournalOptions,
) -> Result<(Journal, JournalReport, Replayed), StorageError> {
    let mut replayed = Vec::new();
    platform::Files::create_directories(files, DIRECTORY.as_ref())?;
    let (journal, report) = Journal::open(
        Arc::new(files.clone()),
        Path::new(DIRECTORY),
        options,
        Clock::simulated(platform::WallTime(1_700_000_000_000_000_000)),
        platform::Entropy::real(),
        &mut |lsn, record| {
            replayed.push((lsn, Batch::of(record)));
            Ok(())
        },
    )?;
    Ok((journal, report, replayed))
}

pub(crate) fn open(files: &SimulatedFiles) -> (Journal, JournalReport, Replayed) {
    try_open(files, OPTIONS).unwrap()
}

/// Appends batches in one call; gives those that were acknowledged, and the error for the rest.
pub(crate) fn append(journal: &Journal, batches: &[Batch]) -> (Replayed, Result<(), StorageError>) {
    let parts: Vec<_> = batches.iter().map(Batch::parts).collect();
    let records: Vec<_> =
        batches.iter().zip(&parts).map(|(batch, parts)| batch.record(parts)).collect();
    let mut done = Vec::new();
    let mut heard = 0;
    let mut outcome = Ok(());
    journal.append(&records, &mut |range, result| {
        assert_eq!(range.start, heard, "every record is heard of, in order");
        assert!(outcome.is_ok(), "an error ends the call");
        heard = range.end;
        match result {
            Ok(lsn) => done.extend(batches[range].iter().map(|batch| (lsn, batch.clone()))),
            Err(error) => outcome = Err(error),
        }
    });
    assert_eq!(heard, batches.len());
    (done, outcome)
}
