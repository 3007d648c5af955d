//! The slots against a map.

use std::collections::BTreeMap;

use document::{Cas, Item, ItemBuilder, ItemMeta, Key, KeyBuf, RevSeqno, Seqno};
use platform::Random;
use platform::seeds::seeds;

use super::Slots;

fn item(name: u64, seqno: u64) -> Item {
    let key = KeyBuf::in_default_collection(name.to_string().as_bytes()).unwrap();
    ItemBuilder::new(key.as_key(), ItemMeta::default(), b"").finish(
        Cas(1),
        Seqno(seqno),
        RevSeqno(1),
    )
}

/// A hash that sends many keys to the same slots and tags.
fn poor_hash(key: Key<'_>) -> u64 {
    let sum: u64 = key.name().iter().map(|&byte| u64::from(byte)).sum();
    (sum << 56) | (sum % 3)
}

fn good_hash(key: Key<'_>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in key.name() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    hash
}

#[test]
fn random_histories_leave_what_a_map_would_hold() {
    for hash in [poor_hash, good_hash] {
        for seed in seeds(5) {
            let mut random = Random::from_seed(seed);
            let (mut slots, mut model) = (Slots::default(), BTreeMap::new());
            for seqno in 1..5_000 {
                // Phases of growing and of shrinking.
                let grows = (seqno / 1_000) % 2 == 0;
                let name = random.below(600);
                let new = item(name, seqno);
                let found = slots.find(hash(new.key()), new.key());
                assert_eq!(found.is_some(), model.contains_key(&name), "seed {seed}");
                match found {
                    Some(slot) if random.below(3) == 0 || !grows => {
                        assert_eq!(slots.remove(slot).seqno().0, model[&name], "seed {seed}");
                        model.remove(&name);
                    }
                    Some(slot) => {
                        assert_eq!(slots.replace(slot, new).seqno().0, model[&name]);
                        model.insert(name, seqno);
                    }
                    None => {
                        slots.add(hash(new.key()), new, |item| hash(item.key()));
                        model.insert(name, seqno);
                    }
                }
                assert_eq!(slots.len(), model.len(), "seed {seed}");
            }
            let mut held: Vec<u64> = slots.iter().map(|item| item.seqno().0).collect();
            held.sort_unstable();
            let mut expected: Vec<u64> = model.into_values().collect();
            expected.sort_unstable();
            assert_eq!(held, expected, "seed {seed}");
        }
    }
}

#[test]
fn a_growing_table_wastes_little() {
    let mut slots = Slots::default();
    for count in 1..=20_000 {
        let new = item(count, count);
        slots.add(good_hash(new.key()), new, |item| good_hash(item.key()));
        let bytes_per_item = slots.bytes() as u64 / count;
        assert!(count < 200 || bytes_per_item <= 13, "{bytes_per_item} bytes at {count}");
    }
}

#[test]
fn room_that_was_reserved_is_not_made_again() {
    let mut slots = Slots::default();
    slots.reserve(1_000, |item| good_hash(item.key()));
    let bytes = slots.bytes();
    for count in 1..=1_000 {
        let new = item(count, count);
        slots.add(good_hash(new.key()), new, |item| good_hash(item.key()));
    }
    assert_eq!(slots.bytes(), bytes);
}

#[test]
fn churn_on_a_full_table_does_not_make_it_grow() {
    let mut slots = Slots::default();
    for count in 0..1_000 {
        let new = item(count, 1);
        slots.add(good_hash(new.key()), new, |item| good_hash(item.key()));
    }
    let bytes = slots.bytes();
    for count in 1_000..50_000 {
        let old = item(count - 1_000, 1);
        let slot = slots.find(good_hash(old.key()), old.key()).unwrap();
        slots.remove(slot);
        let new = item(count, 1);
        slots.add(good_hash(new.key()), new, |item| good_hash(item.key()));
    }
    assert!(slots.bytes() <= bytes + bytes / 4, "{} after {bytes}", slots.bytes());
}
