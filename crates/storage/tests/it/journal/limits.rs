//! Sizes, spares, and what a journal tells of itself.

use std::sync::Arc;

use document::{Seqno, Vbid, VbucketState};
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use platform::{Files, threads};
use storage::journal::{Journal, JournalOptions, Lsn, Record};
use storage::{StorageError, VbucketRecord};

use super::model::{Batch, OPTIONS, append, open, try_open};
use crate::batches::DIRECTORY;

const SEGMENT: u64 = OPTIONS.segment_bytes;

fn names(files: &SimulatedFiles) -> Vec<String> {
    files.list(format!("{DIRECTORY}/journal").as_ref()).unwrap()
}

#[test]
fn a_full_journal_refuses_batches_until_something_is_released() {
    for segments in 1..=4 {
        let files = SimulatedFiles::new();
        let options = JournalOptions { bytes_max: segments * SEGMENT, ..OPTIONS };
        let (journal, _, _) = try_open(&files, options).unwrap();
        let mut seqno = 0;
        for round in 0..10 {
            let (full_at, error) = loop {
                // Every seventh supersedes what was before, and is never refused.
                seqno += if seqno % 7 == 6 { 2 } else { 1 };
                let (done, outcome) = append(&journal, &[Batch::new(7, seqno, 10_000)]);
                assert_eq!(done.len(), usize::from(outcome.is_ok()));
                if let Err(error) = outcome {
                    break (journal.usage().durable_lsn, error);
                }
            };
            assert!(matches!(
                error,
                StorageError::JournalFull { used_bytes, bytes_max }
                    if bytes_max == segments * SEGMENT && used_bytes <= bytes_max
            ));
            // Deletions are written nevertheless, and a release makes room, whatever of it is
            // still needed afterwards.
            append(&journal, &[Batch::delete(9)]).1.unwrap();
            let needed = if round % 2 == 0 { None } else { Some(Lsn(full_at.0 + 2)) };
            journal.release(needed);
            append(&journal, &[Batch::new(7, seqno, 10_000)]).1.unwrap();
        }
        assert!(seqno >= 10 * segments, "{segments} segments took {seqno} batches");
        assert_eq!(journal.usage().full_count, 10);
    }
}

#[test]
fn what_is_needed_is_kept_however_full_the_journal_is() {
    let files = SimulatedFiles::new();
    let options = JournalOptions { bytes_max: SEGMENT, ..OPTIONS };
    let (journal, _, _) = try_open(&files, options).unwrap();
    let (done, outcome) =
        append(&journal, &[Batch::new(7, 1, 10), Batch::new(7, 2, 60_000), Batch::new(7, 3, 10)]);
    assert!(matches!(outcome, Err(StorageError::JournalFull { .. })));
    assert_eq!(done.len(), 1);
    journal.release(Some(done[0].0));
    let (more, outcome) = append(&journal, &[Batch::new(7, 2, 60_000)]);
    assert!(matches!(outcome, Err(StorageError::JournalFull { .. })), "the first is needed");
    assert!(more.is_empty());
    journal.release(Some(Lsn(2)));
    append(&journal, &[Batch::new(7, 2, 60_000)]).1.unwrap();
    drop(journal);
    assert_eq!(open(&files).2.last(), Some(&(Lsn(2), Batch::new(7, 2, 60_000))));
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_own_that_is_not_kept() {
    let files = SimulatedFiles::new();
    let options = JournalOptions { bytes_max: SEGMENT, ..OPTIONS };
    let (journal, _, _) = try_open(&files, options).unwrap();
    let large = Batch::new(7, 1, 1_000_000);
    append(&journal, std::slice::from_ref(&large)).1.unwrap();
    assert!(journal.usage().used_bytes > 1_000_000);
    assert!(append(&journal, &[Batch::new(7, 2, 10)]).1.is_err(), "it is full for all others");
    let (_, _, replayed) = try_open(&files, options).unwrap();
    assert_eq!(replayed, [(Lsn(1), large)]);
    let (journal, _, _) = try_open(&files, options).unwrap();
    journal.release(None);
    append(&journal, &[Batch::new(7, 2, 10)]).1.unwrap();
    journal.release(Some(Lsn(2)));
    assert!(journal.usage().used_bytes <= SEGMENT);
    let bytes = |name: &String| {
        files.content(format!("{DIRECTORY}/journal/{name}").as_ref()).unwrap().len() as u64
    };
    assert!(names(&files).iter().map(bytes).sum::<u64>() <= SEGMENT, "{:?}", names(&files));
}

#[test]
fn segments_are_used_again_within_the_limit_and_after_a_seal() {
    let files = SimulatedFiles::new();
    let options = JournalOptions { bytes_max: 4 * SEGMENT, ..OPTIONS };
    let (journal, _, _) = try_open(&files, options).unwrap();
    append(&journal, &[Batch::new(7, 1, 10)]).1.unwrap();
    assert!(journal.fill_spare().unwrap());
    assert!(!journal.fill_spare().unwrap(), "one is enough");
    for seqno in 2..200 {
        append(&journal, &[Batch::new(7, seqno, 10_000)]).1.unwrap();
        journal.release(None);
        assert!(journal.fill_spare().is_ok());
        let usage = journal.usage();
        assert!(usage.used_bytes + usage.spare_bytes <= 4 * SEGMENT, "{usage:?}");
        assert!(names(&files).len() <= 4);
    }
    let creations = files.calls().of(Call::Open);
    for seqno in 200..300 {
        append(&journal, &[Batch::new(7, seqno, 10_000)]).1.unwrap();
        journal.release(None);
    }
    let opened = files.calls().of(Call::Open) - creations;
    assert!(opened <= 20 && names(&files).len() <= 4, "{opened} segments, {:?}", names(&files));
    let id = journal.id();
    journal.seal();
    assert!(names(&files).iter().all(|name| name.starts_with("s.")));
    drop(journal);
    files.power_cut(0);
    let (journal, report, replayed) = try_open(&files, options).unwrap();
    assert!(replayed.is_empty());
    assert_eq!(report.segment_count, 0);
    assert_ne!(journal.id(), id, "lsns begin anew");
    assert!(journal.usage().spare_count > 0);
    append(&journal, &[Batch::new(7, 1, 10)]).1.unwrap();
    assert_eq!(journal.usage().durable_lsn, Lsn(1));
}

/// Segments of several portions, of which a spare is made.
const LARGE: JournalOptions =
    JournalOptions { segment_bytes: 4 << 20, bytes_max: 8 << 20, ..OPTIONS };

fn make_spare(journal: &Journal) {
    while journal.usage().spare_count == 0 {
        assert!(journal.usage().is_spare_due() && journal.fill_spare().unwrap());
    }
}

#[test]
fn the_first_segment_is_left_for_a_filled_one_if_there_is_room_for_three() {
    for (segments_max, leaves) in [(2, false), (3, true)] {
        let options = JournalOptions { bytes_max: segments_max * LARGE.segment_bytes, ..LARGE };
        let files = SimulatedFiles::new();
        let (journal, _, _) = try_open(&files, options).unwrap();
        assert!(!journal.usage().is_spare_due(), "before the first append");
        append(&journal, &[Batch::new(7, 1, 10)]).1.unwrap();
        assert!(journal.usage().is_current_unfilled);
        make_spare(&journal);
        append(&journal, &[Batch::new(7, 2, 10)]).1.unwrap();
        let usage = journal.usage();
        assert_eq!(usage.is_current_unfilled, !leaves, "{segments_max}");
        assert_eq!((usage.segment_count, usage.spare_count), if leaves { (2, 0) } else { (1, 1) });
        append(&journal, &[Batch::new(7, 3, 10)]).1.unwrap();
        assert_eq!(journal.usage().segment_count, usage.segment_count, "only once");
        journal.release(None);
        let left = journal.usage();
        assert_eq!((left.segment_count, left.spare_count), if leaves { (1, 0) } else { (1, 1) });
        drop(journal);
        let (_, report, batches) = try_open(&files, options).unwrap();
        assert_eq!(report.segment_count, 1);
        assert_eq!(batches.last().map(|(_, batch)| batch.seqno), Some(3));
    }
}

#[test]
fn a_spare_grows_in_step_with_what_is_written() {
    let files = SimulatedFiles::new();
    let roomy = JournalOptions { bytes_max: 3 * LARGE.segment_bytes, ..LARGE };
    let (journal, _, _) = try_open(&files, roomy).unwrap();
    append(&journal, &[Batch::new(7, 1, 10)]).1.unwrap();
    make_spare(&journal);
    let mut seqno = 2;
    append(&journal, &[Batch::new(7, seqno, 10)]).1.unwrap();
    journal.release(None);
    assert_eq!((journal.usage().segment_count, journal.usage().is_current_unfilled), (1, false));
    while journal.usage().spare_count == 0 {
        seqno += 1;
        append(&journal, &[Batch::new(7, seqno, 30_000)]).1.unwrap();
        while journal.usage().is_spare_due() {
            assert!(journal.fill_spare().unwrap());
        }
        let usage = journal.usage();
        let ahead = usage.filled_bytes.saturating_sub(2 * usage.current_bytes);
        assert!(ahead <= 512 << 10, "a portion, at most: {usage:?}");
        assert!(usage.spare_count == 1 || usage.filled_bytes >= 2 * usage.current_bytes);
    }
    let usage = journal.usage();
    assert!(usage.current_bytes <= LARGE.segment_bytes / 2 + 40_000, "{usage:?}");
    assert!(!usage.is_spare_due() && !journal.fill_spare().unwrap(), "one is enough");
    while journal.usage().segment_count < 3 {
        seqno += 1;
        append(&journal, &[Batch::new(7, seqno, 30_000)]).1.unwrap();
    }
    assert!(!journal.fill_spare().unwrap(), "a fourth segment must not be");
}

/// Writes segments to their end while nobody fills spares, and gives the next seqno.
fn fill_segments(journal: &Journal, segment_count: u64, first_seqno: u64) -> u64 {
    let mut seqno = first_seqno;
    while journal.usage().segment_count < segment_count {
        append(journal, &[Batch::new(7, seqno, 30_000)]).1.unwrap();
        seqno += 1;
    }
    seqno
}

#[test]
fn segments_that_were_written_without_spares_are_used_again() {
    const ROOMY: JournalOptions = JournalOptions { bytes_max: 16 << 20, ..LARGE };
    for seed in 0..20 {
        let files = SimulatedFiles::new();
        let (journal, _, _) = try_open(&files, ROOMY).unwrap();
        let seqno = fill_segments(&journal, 3, 1);
        journal.release(Some(journal.usage().durable_lsn));
        assert_eq!(journal.usage().spare_count, 2);
        let seqno = fill_segments(&journal, 3, seqno);
        assert_eq!(names(&files).len(), 3);
        assert_eq!(journal.usage().spare_count, 0);
        drop(journal);
        // Nothing of their first use comes back.
        files.power_cut(seed);
        let (_, report, replayed) = try_open(&files, ROOMY).unwrap();
        assert_eq!(report.segment_count, 3);
        let replayed: Vec<_> = replayed.into_iter().map(|(_, batch)| batch).collect();
        let first = seqno - replayed.len() as u64;
        let expected: Vec<_> = (first..seqno).map(|seqno| Batch::new(7, seqno, 30_000)).collect();
        assert!(replayed == expected && first > 1, "from {first} to {seqno}");
    }
}

#[test]
fn what_there_is_of_a_spare_leaves_nothing_behind() {
    let has_part = |files: &SimulatedFiles| {
        let size = |name: &String| {
            files.content(format!("{DIRECTORY}/journal/{name}").as_ref()).unwrap().len()
        };
        names(files).iter().any(|name| name.starts_with("s.") && size(name) == 512 << 10)
    };
    let begin = |files: &SimulatedFiles| {
        let (journal, _, _) = try_open(files, LARGE).unwrap();
        append(&journal, &[Batch::new(7, 1, 10)]).1.unwrap();
        assert!(journal.fill_spare().unwrap());
        assert!(has_part(files));
        journal
    };
    let files = SimulatedFiles::new();
    begin(&files).seal();
    assert!(!has_part(&files), "after a seal");
    for seed in 0..20 {
        let files = SimulatedFiles::new();
        drop(begin(&files));
        if seed > 0 {
            files.power_cut(seed);
        }
        let (_, _, replayed) = try_open(&files, LARGE).unwrap();
        assert_eq!(replayed.len(), 1);
        assert!(!has_part(&files), "after a start, seed {seed}");
    }
    for call in [Call::Write, Call::Sync] {
        let files = SimulatedFiles::new();
        let journal = begin(&files);
        let fault =
            Fault { call: Some(call), number: 1, error: FaultError::Io, from_then_on: false };
        files.fail(fault);
        assert!(journal.fill_spare().is_err());
        assert!(!has_part(&files), "after a failed {call:?}");
        assert_eq!(journal.usage().filled_bytes, 0);
        assert!(journal.fill_spare().unwrap(), "it begins anew");
    }
}

#[test]
fn failures_are_counted_and_end_segments() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = open(&files);
    let syncs = |number, from_then_on| Fault {
        call: Some(Call::Sync),
        number,
        error: FaultError::Io,
        from_then_on,
    };
    append(&journal, &[Batch::new(7, 1, 10)]).1.unwrap();
    files.fail(syncs(1, false));
    append(&journal, &[Batch::new(7, 2, 10)]).1.unwrap();
    let usage = journal.usage();
    assert_eq!((usage.failure_count, usage.refused_count, usage.segment_count), (1, 0, 2));
    files.fail(syncs(1, true));
    for attempt in 1..=20 {
        let (done, outcome) = append(&journal, &[Batch::new(7, 3, 10), Batch::new(8, 1, 10)]);
        assert!(done.is_empty() && matches!(outcome, Err(StorageError::Failed(_))));
        let usage = journal.usage();
        assert_eq!((usage.failure_count, usage.refused_count), (1 + 2 * attempt, attempt));
        assert_eq!(usage.segment_count, 2, "what failed does not pile up");
        assert_eq!(names(&files).len(), 2);
    }
    files.heal();
    append(&journal, &[Batch::new(7, 3, 10)]).1.unwrap();
    drop(journal);
    files.power_cut(0);
    let seqnos: Vec<_> = open(&files).2.iter().map(|(lsn, batch)| (lsn.0, batch.seqno)).collect();
    assert_eq!(seqnos, [(1, 1), (2, 2), (3, 3)]);
}

#[test]
fn calls_are_divided_into_groups_of_the_wanted_size_and_records_are_not() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = open(&files);
    let batches: Vec<_> = (1..=100).map(|seqno| Batch::new(7, seqno, 1000)).collect();
    let syncs = files.calls().of(Call::Sync);
    let (done, outcome) = append(&journal, &batches);
    outcome.unwrap();
    let groups = done.last().unwrap().0.0;
    let group_size = 100 / groups;
    assert!((8..=15).contains(&group_size), "{group_size} records of a kilobyte in 16 kB");
    let segments = journal.usage().segment_count;
    assert_eq!(files.calls().of(Call::Sync) - syncs, groups + segments, "one sync a group");
    append(&journal, &[]).1.unwrap();
    assert_eq!(journal.usage().durable_lsn.0, groups);
    assert_eq!(journal.usage().record_count, 100);
}

#[test]
fn threads_append_one_after_the_other_and_all_is_replayed() {
    const THREADS: u16 = 4;
    const APPENDS: u64 = 100;
    let files = SimulatedFiles::new();
    let journal = Arc::new(open(&files).0);
    let appender = |vbid: u16| {
        let journal = journal.clone();
        move || {
            for seqno in 1..=APPENDS {
                append(&journal, &[Batch::new(vbid, seqno, 100)]).1.unwrap();
                let durable = journal.usage().durable_lsn;
                journal.release(Some(Lsn(durable.0.saturating_sub(50))));
            }
        }
    };
    let handles: Vec<_> = (0..THREADS)
        .map(|vbid| threads::spawn(&format!("append-{vbid}"), appender(vbid)).unwrap())
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    let last = journal.usage().durable_lsn;
    assert_eq!(last.0, u64::from(THREADS) * APPENDS);
    drop(journal);
    let (_, _, replayed) = open(&files);
    assert_eq!(replayed.last().unwrap().0, last);
    for vbid in 0..THREADS {
        let batches = replayed.iter().filter(|(_, batch)| batch.vbid == Vbid(vbid));
        let seqnos: Vec<_> = batches.map(|(_, batch)| batch.seqno).collect();
        assert!(seqnos.is_sorted_by(|left, right| left + 1 == *right), "vBucket {vbid}");
        assert!(seqnos.last().is_none_or(|last| *last == APPENDS));
    }
}

#[test]
fn a_batch_without_items_carries_its_state() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = open(&files);
    let state = VbucketRecord::new(VbucketState::Dead);
    let (vbid, previous_seqno) = (Vbid(3), Seqno(17));
    let record =
        Record::Batch { vbid, previous_seqno, supersedes: false, items: &[], state: &state };
    let mut outcome = None;
    journal.append(&[record], &mut |_, result| outcome = Some(result));
    assert_eq!(outcome.unwrap().unwrap(), Lsn(1));
    drop(journal);
    let mut found = Vec::new();
    Journal::open(
        Arc::new(files),
        DIRECTORY.as_ref(),
        OPTIONS,
        platform::Clock::real(),
        platform::Entropy::real(),
        &mut |_, record| {
            found.push(record);
            Ok(())
        },
    )
    .unwrap();
    let storage::journal::ReplayedRecord::Batch { previous_seqno, items, state: found, .. } =
        &found[0]
    else {
        panic!("a batch was appended");
    };
    assert_eq!((previous_seqno.0, items.len(), found), (17, 0, &Box::new(state)));
}

#[test]
fn of_two_segments_that_are_released_one_is_durably_so_before_the_other() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = try_open(&files, OPTIONS).unwrap();
    let batches: Vec<_> = (1..=30).map(|seqno| Batch::new(7, seqno, 10_000)).collect();
    append(&journal, &batches).1.unwrap();
    let before = files.calls();
    journal.release(None);
    let made = |call| files.calls().of(call) - before.of(call);
    assert!(made(Call::Rename) > 1);
    assert!(made(Call::SyncDirectory) + 1 >= made(Call::Rename));
}
