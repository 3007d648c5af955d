//! The table with its counts against a map.

use std::collections::BTreeMap;

use document::{Cas, Deletion, Item, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno};
use platform::Random;
use platform::seeds::seeds;

use super::{HashSeed, HashTable, ItemAction, TableCounts, VisitPosition};

fn key(name: u64) -> KeyBuf {
    KeyBuf::in_default_collection(name.to_string().as_bytes()).unwrap()
}

fn name_of(item: &Item) -> u64 {
    std::str::from_utf8(item.key().name()).unwrap().parse().unwrap()
}

fn item(name: u64, seqno: u64, is_deleted: bool) -> Item {
    let deletion = is_deleted.then_some(Deletion::Explicit);
    let meta = ItemMeta { deletion, ..ItemMeta::default() };
    let value = vec![b'v'; usize::try_from(seqno % 50).unwrap()];
    let value = if is_deleted { &[][..] } else { &value };
    ItemBuilder::new(key(name).as_key(), meta, value).finish(Cas(1), Seqno(seqno), RevSeqno(1))
}

/// Compares everything that the table tells with what the model says.
fn check(table: &HashTable, model: &BTreeMap<u64, Item>, context: &str) {
    assert_eq!(table.len(), model.len(), "{context}");
    let count = |is: fn(&Item) -> bool| model.values().filter(|item| is(item)).count();
    assert_eq!(table.tombstone_count(), count(Item::is_deleted), "{context}");
    assert_eq!(table.ejected_count(), count(Item::is_ejected), "{context}");
    let items_bytes: usize = model.values().map(Item::allocation_size).sum();
    assert_eq!(table.bytes() - table.slots_bytes(), items_bytes, "{context}");
    assert!(model.iter().all(|(&name, item)| {
        table.get(key(name).as_key()).is_some_and(|held| held.seqno() == item.seqno())
    }));
}

#[test]
fn counts_follow_every_change_and_return_to_zero() {
    for seed in seeds(5) {
        let context = format!("seed {seed}");
        let mut random = Random::from_seed(seed);
        let mut table = HashTable::new(HashSeed::new(seed), TableCounts::default());
        let mut model: BTreeMap<u64, Item> = BTreeMap::new();
        let mut position = VisitPosition::default();
        for seqno in 1..10_000 {
            let name = random.below(2_000);
            match random.below(10) {
                0..5 => {
                    let new = item(name, seqno, random.below(4) == 0);
                    let before = table.insert(new.clone()).map(|item| item.seqno());
                    assert_eq!(before, model.insert(name, new).map(|item| item.seqno()));
                }
                5..7 => {
                    let removed = table.remove(key(name).as_key()).map(|item| item.seqno());
                    assert_eq!(removed, model.remove(&name).map(|item| item.seqno()));
                }
                7..9 => {
                    if let Some(held) = table.get(key(name).as_key()).cloned() {
                        table.insert(held.ejected());
                        model.insert(name, held.ejected());
                    }
                }
                _ => {
                    let act = |met: &Item| match met.seqno().0 % 16 {
                        0 => ItemAction::Remove,
                        1 => ItemAction::Replace(met.ejected()),
                        _ => ItemAction::Keep,
                    };
                    let mut removed = Vec::new();
                    let next = table.visit(position, 10, act, &mut removed);
                    position = next.unwrap_or_default();
                    for met in removed {
                        match met.seqno().0 % 16 {
                            1 => model.insert(name_of(&met), met.ejected()),
                            _ => model.remove(&name_of(&met)),
                        };
                    }
                }
            }
            if seqno % 1_000 == 0 {
                check(&table, &model, &context);
            }
        }
        for &name in model.keys() {
            assert!(table.remove(key(name).as_key()).is_some(), "{context}");
        }
        check(&table, &BTreeMap::new(), &context);
        assert_eq!(table.bytes(), 0, "{context}");
    }
}

#[test]
fn a_place_is_good_for_one_version_after_the_other() {
    let mut table = HashTable::new(HashSeed::new(1), TableCounts::default());
    let key = key(7);
    let free = table.locate(key.as_key());
    assert!(table.at(free).is_none() && table.insert_at(free, item(7, 1, false)).is_none());
    let place = table.locate(key.as_key());
    for seqno in 2..4 {
        let before = table.insert_at(place, item(7, seqno, false)).map(|item| item.seqno());
        assert_eq!(before, Some(Seqno(seqno - 1)));
        assert_eq!(table.at(place).map(Item::seqno), Some(Seqno(seqno)));
    }
    assert_eq!(table.len(), 1);
}

#[test]
#[should_panic(expected = "a place is good until the table changes")]
fn a_place_is_not_good_any_more_when_another_key_has_come() {
    let mut table = HashTable::new(HashSeed::new(1), TableCounts::default());
    let place = table.locate(key(7).as_key());
    drop(table.insert(item(8, 1, false)));
    drop(table.insert_at(place, item(7, 2, false)));
}

#[test]
fn the_order_depends_on_the_seed_and_the_history_alone() {
    let order = |seed| {
        let mut table = HashTable::new(HashSeed::new(seed), TableCounts::default());
        (0..1_000).for_each(|name| drop(table.insert(item(name, name + 1, false))));
        (0..500).for_each(|name| drop(table.remove(key(name * 2).as_key())));
        table.iter().map(|item| item.seqno().0).collect::<Vec<u64>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn what_is_similar_to_a_key_is_its_item_and_to_most_others_nothing() {
    const ITEMS: u64 = 3_000;
    let mut table = HashTable::new(HashSeed::new(1), TableCounts::default());
    (0..ITEMS).for_each(|name| drop(table.insert(item(name, name + 1, false))));
    let similar = |name| {
        let hash = table.seed.hash(key(name).as_key().encoded());
        table.sub_tables.similar(hash).map(name_of)
    };
    let found = (0..ITEMS).filter(|&name| similar(name) == Some(name)).count();
    let others = (ITEMS..2 * ITEMS).filter(|&name| similar(name).is_some()).count();
    // Of those that were met before an item some have its tag, too.
    assert!(found > 2_950, "{found} of {ITEMS}");
    assert!(others < 50, "{others} that are not here");
    (0..2 * ITEMS).for_each(|name| table.prefetch(key(name).as_key()));
}
