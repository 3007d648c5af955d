//! The log against a plain list of what was queued.

use document::{Cas, Item, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno};
use platform::Random;
use platform::seeds::seeds;

use super::CheckpointManager;

fn item(name: u64, seqno: u64) -> Item {
    let key = KeyBuf::in_default_collection(format!("key{name}").as_bytes()).unwrap();
    ItemBuilder::new(key.as_key(), ItemMeta::default(), b"value").finish(
        Cas(seqno),
        Seqno(seqno),
        RevSeqno(1),
    )
}

fn seqnos(checkpoints: &[std::sync::Arc<super::ClosedCheckpoint>]) -> Vec<u64> {
    checkpoints.iter().flat_map(|closed| closed.items().map(|item| item.seqno().0)).collect()
}

#[test]
fn a_newer_version_empties_the_slot_of_the_older_one() {
    let mut log = CheckpointManager::continuing(Seqno(7));
    let first = item(1, 8);
    assert!(log.queue(first.clone(), None).is_none());
    assert!(log.queue(item(2, 9), None).is_none());
    let superseded = log.queue(item(1, 10), Some(&first)).unwrap();
    assert_eq!(superseded.seqno(), Seqno(8));
    assert_eq!(log.item_count(), 2);
    assert_eq!(seqnos(&log.unflushed(usize::MAX)), [9, 10]);
}

#[test]
fn what_a_flush_has_taken_is_not_deduplicated() {
    let mut log = CheckpointManager::continuing(Seqno(0));
    let first = item(1, 1);
    log.queue(first.clone(), None);
    let slots_bytes = log.own_bytes();
    let taken = log.unflushed(usize::MAX);
    assert!(log.queue(item(1, 2), Some(&first)).is_none(), "the flush may be writing it");
    assert_eq!(seqnos(&taken), [1]);
    assert_eq!(log.own_bytes(), 2 * slots_bytes + first.allocation_size());
    assert_eq!(log.remove_flushed(Seqno(1)).len(), 1);
    assert_eq!(log.own_bytes(), slots_bytes);
    assert_eq!(seqnos(&log.unflushed(usize::MAX)), [2]);
}

#[test]
fn a_batch_ends_at_a_checkpoint_once_it_is_large_enough() {
    let mut log = CheckpointManager::continuing(Seqno(0));
    for seqno in 1..=3 {
        log.queue(item(seqno, seqno), None);
        assert!(!log.unflushed(1).is_empty());
    }
    assert_eq!(log.checkpoint_count(), 4);
    assert_eq!(seqnos(&log.unflushed(1)), [1]);
    assert_eq!(seqnos(&log.unflushed(2 * item(1, 1).allocation_size())), [1, 2]);
    assert_eq!(seqnos(&log.unflushed(usize::MAX)), [1, 2, 3]);
}

#[test]
fn a_full_checkpoint_is_closed() {
    let mut log = CheckpointManager::continuing(Seqno(0));
    for seqno in 1..=10_000 {
        assert_eq!(log.checkpoint_count(), 1, "at {seqno}");
        log.queue(item(seqno, seqno), None);
    }
    assert_eq!(log.checkpoint_count(), 2);
    log.queue(item(0, 10_001), None);
    assert_eq!(log.item_count(), 10_001);
}

#[test]
fn random_histories_flush_the_newest_version_of_every_key_once() {
    for seed in seeds(20) {
        let mut random = Random::from_seed(seed);
        let mut log = CheckpointManager::continuing(Seqno(0));
        let mut newest: Vec<Option<Item>> = vec![None; 10];
        let mut flushed = vec![0; 10];
        for _ in 0..2_000 {
            if random.below(20) > 0 {
                let name = usize::try_from(random.below(10)).unwrap();
                let item = item(name as u64, log.high_seqno().0 + 1);
                log.queue(item.clone(), newest[name].as_ref());
                newest[name] = Some(item);
            } else {
                flush(&mut log, &mut flushed, &mut random, seed);
            }
        }
        while !log.is_flushed() {
            flush(&mut log, &mut flushed, &mut random, seed);
        }
        let expected: Vec<u64> =
            newest.iter().map(|item| item.as_ref().map_or(0, |item| item.seqno().0)).collect();
        assert_eq!(flushed, expected, "seed {seed}");
        assert_eq!((log.own_bytes(), log.item_count()), (0, 0), "seed {seed}");
    }
}

/// Takes a batch; half of the time the flush fails and the batch is offered again later.
fn flush(log: &mut CheckpointManager, flushed: &mut [u64], random: &mut Random, seed: u64) {
    let batch = log.unflushed(200);
    let Some(last) = batch.last() else { return };
    if random.below(2) == 0 {
        return;
    }
    for item in batch.iter().flat_map(|closed| closed.items()) {
        let name: usize = std::str::from_utf8(&item.key().name()[3..]).unwrap().parse().unwrap();
        assert!(flushed[name] < item.seqno().0, "seed {seed}: seqnos of a key rise");
        flushed[name] = item.seqno().0;
    }
    let removed = log.remove_flushed(last.last_seqno());
    assert_eq!(removed.len(), batch.len(), "seed {seed}");
}
