//! Bytes that nobody wrote: flipped, cut, made up, and a segment of an earlier version.

use std::path::PathBuf;

use document::Vbid;
use platform::simulated::SimulatedFiles;
use platform::{Files, Random};
use storage::StorageError;
use storage::fuzzing::read_journal_segment;

use super::model::{Batch, OPTIONS, append, open, try_open};
use crate::batches::DIRECTORY;

const BLOCK: usize = 4096;

/// Written by version 1: what [`fixture_batches`] gives, each list a call.
const FIXTURE: &[u8] = include_bytes!("../../fixtures/journal/j.0000000000000001");

fn fixture_batches() -> Vec<Vec<Batch>> {
    vec![
        vec![Batch::new(7, 1, 20), Batch::new(8, 1, 0), Batch::new(7, 2, 300)],
        vec![Batch::delete(8)],
        vec![Batch::new(7, 3, 5000)],
        vec![Batch::new(7, 7, 10), Batch::delete(9), Batch::new(1023, 4, 100)],
    ]
}

fn segment_path(number: u64) -> PathBuf {
    PathBuf::from(format!("{DIRECTORY}/journal/j.{number:016x}"))
}

fn damaged(image: &[u8], at: usize, bit: u8) -> SimulatedFiles {
    let files = SimulatedFiles::new();
    let mut image = image.to_vec();
    image[at] ^= 1 << bit;
    files.insert(&segment_path(1), &image);
    files
}

#[test]
fn a_segment_of_version_1_is_read() {
    let files = SimulatedFiles::new();
    files.insert(&segment_path(1), FIXTURE);
    let (_, report, replayed) = open(&files);
    let groups = fixture_batches();
    assert_eq!(report.group_count, groups.len() as u64);
    let lsns = (1..).zip(&groups).flat_map(|(lsn, group)| group.iter().map(move |_| lsn));
    let replayed_lsns = replayed.iter().map(|(lsn, _)| lsn.0);
    assert!(replayed_lsns.eq(lsns));
    let batches: Vec<_> = replayed.into_iter().map(|(_, batch)| batch).collect();
    assert_eq!(batches, groups.concat());
}

/// Cutting off what was never written is what a power cut does, nothing else.
#[test]
fn every_flipped_bit_before_the_last_group_is_reported_and_nothing_is_skipped() {
    let groups = fixture_batches().len();
    // The third takes two blocks.
    let last_group_at = (groups + 1) * BLOCK;
    assert_eq!(FIXTURE.len(), last_group_at + BLOCK);
    for at in 0..last_group_at {
        let bit = u8::try_from(at % 8).unwrap();
        match try_open(&damaged(FIXTURE, at, bit), OPTIONS) {
            Err(StorageError::Corrupt { file, position, .. }) => {
                assert_eq!(file, segment_path(1), "byte {at}");
                // The group of two blocks begins with the first of them.
                let block = (at / BLOCK * BLOCK) as u64;
                let is_near = [block, block - if at / BLOCK == 4 { BLOCK as u64 } else { 0 }];
                assert!(is_near.contains(&position), "byte {at}, told of {position}");
            }
            other => panic!("byte {at}: {:?}", other.map(|(_, _, replayed)| replayed)),
        }
    }
}

#[test]
fn a_damaged_last_group_is_a_torn_tail() {
    let last_group_at = FIXTURE.len() - BLOCK;
    for at in last_group_at + 24..FIXTURE.len() {
        let (_, report, replayed) = open(&damaged(FIXTURE, at, 0));
        assert_eq!(replayed.len(), 5, "byte {at}");
        let torn = report.torn_tail.expect("a group of the segment begins there");
        assert_eq!((torn.file, torn.position), (segment_path(1), last_group_at as u64));
    }
}

#[test]
fn damage_in_an_earlier_segment_and_a_missing_segment_are_reported() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = open(&files);
    let batches: Vec<_> = (1..=20).map(|seqno| Batch::new(7, seqno, 9000)).collect();
    append(&journal, &batches).1.unwrap();
    assert_eq!(journal.usage().segment_count, 4);
    drop(journal);
    files.power_cut(0);
    let image_of = |number| files.content(&segment_path(number)).unwrap();
    let copy = || {
        let copy = SimulatedFiles::new();
        for number in 1..=4 {
            copy.insert(&segment_path(number), &image_of(number));
        }
        copy
    };
    assert_eq!(open(&copy()).2.len(), 20);
    for number in 1..=3 {
        for at in (0..image_of(number).len()).step_by(509) {
            let files = copy();
            let mut image = image_of(number);
            image[at] ^= 0x10;
            files.insert(&segment_path(number), &image);
            assert!(is_corrupt(&files, number), "segment {number}, byte {at}");
        }
        let files = copy();
        let mut image = image_of(number);
        image.truncate(image.len() - BLOCK);
        files.insert(&segment_path(number), &image);
        assert!(is_corrupt(&files, number), "segment {number} is cut off");
        let files = copy();
        files.remove(&segment_path(number)).unwrap();
        // What was released is gone from the front, and nobody can tell.
        assert_eq!(number == 1, try_open(&files, OPTIONS).is_ok(), "segment {number} is missing");
    }
    let files = copy();
    files.rename(&segment_path(2), &segment_path(1)).unwrap();
    assert!(is_corrupt(&files, 1), "a segment under another name");
}

fn is_corrupt(files: &SimulatedFiles, number: u64) -> bool {
    let result = try_open(files, OPTIONS).map(|_| ());
    let path = segment_path(number);
    matches!(result, Err(StorageError::Corrupt { file, .. }) if file == path)
}

#[test]
fn damaged_segments_never_panic_the_reader() {
    for seed in platform::seeds::seeds(60) {
        let mut random = Random::from_seed(seed);
        let mut image = FIXTURE.to_vec();
        for _ in 0..=random.below(20) {
            let at = usize::try_from(random.below(image.len() as u64)).unwrap();
            image[at] ^= 1 << random.below(8);
        }
        if random.below(3) == 0 {
            image.truncate(usize::try_from(random.below(image.len() as u64)).unwrap());
        }
        read_journal_segment(&image);
        let mut made_up = vec![0; usize::try_from(random.below(9000)).unwrap()];
        random.fill(&mut made_up);
        read_journal_segment(&made_up);
    }
    for length in 0..600 {
        read_journal_segment(&FIXTURE[BLOCK + 64..][..length]);
    }
    read_journal_segment(FIXTURE);
    read_journal_segment(b"");
}

#[test]
fn groups_of_earlier_uses_of_a_segment_are_never_believed() {
    let files = SimulatedFiles::new();
    let (journal, _, _) = open(&files);
    append(&journal, &[Batch::new(1, 1, 10)]).1.unwrap();
    assert!(journal.fill_spare().unwrap());
    let mut seqno = 1;
    let mut kept = Vec::new();
    for round in 0..40 {
        let batches: Vec<_> = (1..=10).map(|number| Batch::new(2, seqno + number, 5000)).collect();
        seqno += 10;
        let (done, outcome) = append(&journal, &batches);
        outcome.unwrap();
        kept = done;
        journal.release(Some(kept[0].0));
        if round == 20 {
            assert!(journal.usage().spare_count > 0, "segments are used again");
        }
    }
    drop(journal);
    files.power_cut(0);
    let (_, _, replayed) = open(&files);
    let end = &replayed[replayed.len() - kept.len()..];
    assert_eq!(end, kept);
    assert!(replayed.iter().all(|(_, batch)| batch.vbid == Vbid(2)));
}
