//! What leaves the backlog before it is applied.

use document::{
    Cas, DurabilityLevel, ItemBuilder, ItemMeta, KeyBuf, Operation, RevSeqno, Seqno, VbucketState,
};

use super::*;
use crate::records::vbucket_record::VbucketRecord;

const VBID: Vbid = Vbid(7);

/// Versions of documents, one after the other; their numbers name them.
fn batch(previous_seqno: u64, numbers: impl Iterator<Item = u64>) -> FlushBatch {
    let items: Vec<Item> = numbers
        .zip(previous_seqno + 1..)
        .map(|(number, seqno)| {
            let key = KeyBuf::in_default_collection(&number.to_be_bytes()).unwrap();
            let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), b"value");
            builder.finish(Cas(seqno), Seqno(seqno), RevSeqno(1))
        })
        .collect();
    let state = VbucketRecord::new(VbucketState::Active);
    FlushBatch { vbid: VBID, previous_seqno: Seqno(previous_seqno), items, state }
}

fn seqnos(backlog: &Backlog) -> Vec<u64> {
    let pending = backlog.take(VBID).expect("something waits");
    let seqnos = pending.items.iter().map(|item| item.seqno().0).collect();
    backlog.put_back(pending);
    seqnos
}

#[test]
fn older_versions_leave_it_when_there_is_much() {
    let backlog = Backlog::default();
    let now = Instant::default();
    assert_eq!(backlog.push(Lsn(1), batch(0, (0..63).map(|_| 1)), now), None);
    assert!(backlog.trim(VBID).is_empty(), "too little for a look");
    assert_eq!(backlog.push(Lsn(2), batch(63, 2..3), now), Some(64));
    assert_eq!(backlog.trim(VBID).len(), 62);
    assert_eq!(seqnos(&backlog), [63, 64]);
    assert_eq!(backlog.usage().items, 2);
    assert_eq!(backlog.push(Lsn(3), batch(64, 3..4), now), None);
}

#[test]
fn what_memory_still_has_is_not_searched() {
    let backlog = Backlog::default();
    let now = Instant::default();
    let first = batch(0, (0..64).map(|_| 1));
    let in_memory = first.items[..33].to_vec();
    assert_eq!(backlog.push(Lsn(1), first, now), Some(64));
    assert!(backlog.trim(VBID).is_empty(), "more than half of it is shared");
    drop(in_memory);
    let next = batch(64, (0..63).map(|_| 1));
    assert_eq!(backlog.push(Lsn(2), next, now), None, "the next look is at twice as many");
    assert_eq!(backlog.push(Lsn(3), batch(127, 2..3), now), Some(128));
    assert_eq!(backlog.trim(VBID).len(), 126);
    assert_eq!(seqnos(&backlog), [127, 128]);
}

/// Durable writes, each committed right behind its prepare; their numbers name the documents.
fn durable_batch(numbers: impl Iterator<Item = u64>) -> FlushBatch {
    let mut items = Vec::new();
    for (number, prepare) in numbers.zip((1..).step_by(2)) {
        let key = KeyBuf::in_default_collection(&number.to_be_bytes()).unwrap();
        let operation = Operation::Prepare(DurabilityLevel::Majority);
        let builder = ItemBuilder::step(key.as_key(), ItemMeta::default(), operation, b"value");
        let item = builder.finish(Cas(prepare), Seqno(prepare), RevSeqno(1));
        let commit = item.committed(Seqno(prepare + 1));
        items.extend([item, commit]);
    }
    let mut state = VbucketRecord::new(VbucketState::Active);
    state.completed_seqno = items[items.len() - 2].seqno();
    FlushBatch { vbid: VBID, previous_seqno: Seqno(0), items, state }
}

#[test]
fn older_durable_writes_leave_it_like_others() {
    let backlog = Backlog::default();
    assert_eq!(
        backlog.push(Lsn(1), durable_batch((0..32).map(|_| 1)), Instant::default()),
        Some(64)
    );
    assert_eq!(backlog.trim(VBID).len(), 63);
    assert_eq!(seqnos(&backlog), [64]);
}

#[test]
fn durable_writes_that_memory_still_has_are_not_searched() {
    let backlog = Backlog::default();
    let batch = durable_batch(0..32);
    let mut in_memory = batch.items.clone();
    in_memory.retain(|item| !item.operation().is_prepared());
    assert_eq!(backlog.push(Lsn(1), batch, Instant::default()), Some(64));
    assert!(backlog.trim(VBID).is_empty(), "all of it is shared");
    drop(in_memory);
}

#[test]
fn much_is_trimmed_while_more_comes() {
    let backlog = Backlog::default();
    let now = Instant::default();
    assert_eq!(backlog.push(Lsn(1), batch(0, (0..10_000).map(|n| n % 10)), now), Some(10_000));
    backlog.trim_later(VBID);
    assert_eq!(backlog.next_untrimmed(), Some(VBID));
    assert_eq!(backlog.next_untrimmed(), None);
    let trimmed = std::thread::scope(|scope| {
        let trimmed = scope.spawn(|| backlog.trim_apart(VBID).len());
        for number in 0..200 {
            let seqno = 10_000 + number;
            backlog.push(Lsn(2 + number), batch(seqno, 5..6), now);
            assert!(backlog.usage().items >= 10, "the newest of each document is kept");
        }
        trimmed.join().unwrap()
    });
    let left = 10_200 - trimmed;
    assert!(trimmed >= 9_990, "{trimmed}");
    let seqnos = seqnos(&backlog);
    assert_eq!(seqnos.len(), left);
    assert!(seqnos.is_sorted(), "what came later stands behind");
    assert_eq!(seqnos.last(), Some(&10_200));
    assert_eq!(backlog.usage().items, left);
    let bytes: u64 = bytes_of(&backlog.take(VBID).unwrap().items);
    assert!(bytes > 0);
    assert_eq!(backlog.usage().bytes, 0, "what is taken is not counted, and nothing is left");
}

#[test]
fn what_was_applied_meanwhile_is_not_trimmed() {
    let backlog = Backlog::default();
    backlog.push(Lsn(1), batch(0, (0..5_000).map(|_| 1)), Instant::default());
    backlog.trim_later(VBID);
    drop(backlog.take(VBID));
    backlog.finish(VBID);
    assert_eq!(backlog.next_untrimmed(), Some(VBID));
    assert!(backlog.trim_apart(VBID).is_empty());
    assert_eq!(backlog.usage(), BacklogUsage::default());
}
