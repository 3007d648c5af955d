//! The sub-tables against a map, their work and their memory.

use std::cell::Cell;
use std::collections::BTreeMap;

use document::{Cas, Item, ItemBuilder, ItemMeta, Key, KeyBuf, RevSeqno, Seqno};
use platform::Random;
use platform::seeds::seeds;

use super::super::node::{NODE_ITEMS, Node};
use super::{ITEMS_MEAN_MAX, ITEMS_MEAN_MIN, ItemAction, SubTable, SubTables, VisitPosition};

fn item(name: u64, seqno: u64) -> Item {
    let key = KeyBuf::in_default_collection(name.to_string().as_bytes()).unwrap();
    ItemBuilder::new(key.as_key(), ItemMeta::default(), b"").finish(
        Cas(1),
        Seqno(seqno),
        RevSeqno(1),
    )
}

fn name_of(item: &Item) -> u64 {
    std::str::from_utf8(item.key().name()).unwrap().parse().unwrap()
}

/// A hash that sends many keys to the same sub-tables and tags.
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
    hash.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (hash >> 31)
}

/// Tables, what they should hold, and how many items one operation has rehashed at most.
struct Bench {
    tables: SubTables,
    model: BTreeMap<u64, u64>,
    hash: fn(Key<'_>) -> u64,
    rehashed_max: usize,
}

impl Bench {
    fn new(hash: fn(Key<'_>) -> u64) -> Self {
        Self { tables: SubTables::default(), model: BTreeMap::new(), hash, rehashed_max: 0 }
    }

    fn insert(&mut self, name: u64, seqno: u64) {
        let new = item(name, seqno);
        let hash = (self.hash)(new.key());
        let before = match self.tables.find(hash, new.key()) {
            Some(place) => Some(self.tables.replace(place, new).seqno().0),
            None => {
                let rehashed = Cell::new(0);
                self.tables.add(hash, new, |item| {
                    rehashed.set(rehashed.get() + 1);
                    (self.hash)(item.key())
                });
                self.rehashed_max = self.rehashed_max.max(rehashed.get());
                None
            }
        };
        assert_eq!(before, self.model.insert(name, seqno));
    }

    fn remove(&mut self, name: u64) {
        let key = KeyBuf::in_default_collection(name.to_string().as_bytes()).unwrap();
        let place = self.tables.find((self.hash)(key.as_key()), key.as_key());
        let removed = place.map(|place| self.tables.remove(place).seqno().0);
        assert_eq!(removed, self.model.remove(&name));
    }

    /// The longest of the sub-tables.
    fn longest(&self) -> usize {
        self.tables.tables.iter().map(|table| table.iter().count()).max().unwrap_or(0)
    }

    /// Whether everything is there, and everything else is consistent.
    fn check(&self, seed: u64) {
        let held: BTreeMap<u64, u64> =
            self.tables.iter().map(|item| (name_of(item), item.seqno().0)).collect();
        assert_eq!(held, self.model, "seed {seed}");
        assert_eq!(self.tables.len(), self.model.len(), "seed {seed}");
        for item in self.tables.iter() {
            let place = self.tables.find((self.hash)(item.key()), item.key()).unwrap();
            assert_eq!(self.tables.item(place).seqno(), item.seqno(), "seed {seed}");
        }
        let nodes = |table: &SubTable| table.iter().count().div_ceil(NODE_ITEMS);
        let node_count: usize = self.tables.tables.iter().map(nodes).sum();
        let expected = node_count * size_of::<Node>() + self.tables.tables.bytes();
        assert_eq!(self.tables.bytes(), expected, "seed {seed}");
    }
}

#[test]
fn random_histories_leave_what_a_map_would_hold() {
    for hash in [poor_hash, good_hash] {
        for seed in seeds(5) {
            let mut random = Random::from_seed(seed);
            let mut bench = Bench::new(hash);
            let mut position = None;
            for step in 1..20_000 {
                // Phases of growing and of shrinking.
                let grows = (step / 2_000) % 2 == 0;
                let name = random.below(3_000);
                match (grows, random.below(100)) {
                    (_, 0) => position = visit(&mut bench, &mut random, position, step),
                    (true, 1..70) | (false, 1..30) => bench.insert(name, step),
                    _ => bench.remove(name),
                }
                if step % 500 == 0 {
                    bench.check(seed);
                }
            }
            while let Some((&name, _)) = bench.model.first_key_value() {
                bench.remove(name);
            }
            assert_eq!((bench.tables.len(), bench.tables.bytes()), (0, 0), "seed {seed}");
        }
    }
}

/// One portion that keeps, replaces and removes at random.
fn visit(
    bench: &mut Bench,
    random: &mut Random,
    from: Option<VisitPosition>,
    step: u64,
) -> Option<VisitPosition> {
    let mut removed = Vec::new();
    let model = &mut bench.model;
    let mut expected = 0;
    let act = |met: &Item| {
        let name = name_of(met);
        assert_eq!(model[&name], met.seqno().0, "what is met is what is held");
        match random.below(8) {
            0 => {
                model.remove(&name);
                expected += 1;
                ItemAction::Remove
            }
            1 => {
                model.insert(name, step);
                expected += 1;
                ItemAction::Replace(item(name, step))
            }
            _ => ItemAction::Keep,
        }
    };
    let next = bench.tables.visit(from.unwrap_or_default(), 100, act, &mut removed);
    assert_eq!(removed.len(), expected);
    next
}

#[test]
fn no_insertion_rehashes_more_than_a_sub_table() {
    let mut bench = Bench::new(good_hash);
    for name in 0..100_000 {
        let longest_before = if name % 1_000 == 0 { bench.longest() } else { 0 };
        bench.insert(name, 1);
        assert!(longest_before <= 3 * ITEMS_MEAN_MAX, "{longest_before} items in a sub-table");
    }
    println!("at most {} items rehashed by one insertion", bench.rehashed_max);
    assert!(bench.rehashed_max <= 3 * ITEMS_MEAN_MAX, "{} rehashed", bench.rehashed_max);
}

#[test]
fn sub_tables_come_and_go_with_the_items_without_thrashing() {
    let mut bench = Bench::new(good_hash);
    for name in 0..50_000 {
        bench.insert(name, 1);
        let count = bench.tables.tables.len();
        assert!(bench.tables.len() <= count * ITEMS_MEAN_MAX);
        assert!(count == 1 || bench.tables.len() > (count - 1) * ITEMS_MEAN_MAX);
    }
    for name in 0..50_000 {
        let (count, rehashed) = (bench.tables.tables.len(), bench.rehashed_max);
        if name % 100 == 0 {
            for again in 0..10 {
                bench.remove(name + again);
                bench.insert(name + again, 2);
            }
            assert!(count - bench.tables.tables.len() <= 1 && bench.rehashed_max == rehashed);
        }
        bench.remove(name);
        let count = bench.tables.tables.len();
        assert!(count <= 1 || bench.tables.len() >= (count - 1) * ITEMS_MEAN_MIN);
    }
    assert_eq!(bench.tables.bytes(), 0);
}

#[test]
fn a_table_takes_at_most_eleven_bytes_a_document_on_average() {
    let mut bench = Bench::new(good_hash);
    let (mut count, mut sum, mut sample_count) = (0, 0.0, 0);
    let mut worst: f64 = 0.0;
    let mut next_sample = 100;
    while count < 1_000_000 {
        let new = item(count, 1);
        bench.tables.add(good_hash(new.key()), new, |item| good_hash(item.key()));
        count += 1;
        if count == next_sample {
            let bytes = bench.tables.bytes() as f64 / count as f64;
            (sum, sample_count, worst) = (sum + bytes, sample_count + 1, worst.max(bytes));
            next_sample = (count * 103 / 100).min(1_000_000);
        }
    }
    let mean = sum / f64::from(sample_count);
    let last = bench.tables.bytes() as f64 / count as f64;
    println!("bytes a document: mean {mean:.2}, worst {worst:.2}, at a million {last:.2}");
    assert!(mean <= 11.0 && worst <= 13.0, "mean {mean:.2}, worst {worst:.2}");
}

#[test]
fn an_item_of_an_unchanged_table_is_met_exactly_once() {
    for count in [0, 1, 64, 65, 130, 1_000, 4_097, 20_000] {
        let mut bench = Bench::new(good_hash);
        (0..count).for_each(|name| bench.insert(name, 1));
        for slots_max in [0, 1, 50, 1_000, usize::MAX] {
            let mut met = BTreeMap::new();
            let mut position = Some(VisitPosition::default());
            while let Some(from) = position {
                let mut met_now = 0;
                let act = |item: &Item| {
                    *met.entry(name_of(item)).or_insert(0) += 1;
                    met_now += 1;
                    ItemAction::Keep
                };
                position = bench.tables.visit(from, slots_max, act, &mut Vec::new());
                assert!(met_now <= slots_max.saturating_add(3 * ITEMS_MEAN_MAX));
            }
            assert_eq!(met.len() as u64, count);
            assert!(met.values().all(|&times| times == 1), "{count} items by {slots_max}");
        }
    }
}

#[test]
fn an_item_that_stays_is_met_while_the_table_grows_and_shrinks() {
    for seed in seeds(20) {
        let mut random = Random::from_seed(seed);
        let mut bench = Bench::new(good_hash);
        // Names below 1000 stay; the others come and go.
        (0..1_000).for_each(|name| bench.insert(name, 1));
        let mut others: Vec<u64> = Vec::new();
        let mut met = BTreeMap::new();
        let mut position = Some(VisitPosition::default());
        let mut portion_count = 0;
        while let Some(from) = position {
            let act = |item: &Item| {
                *met.entry(name_of(item)).or_insert(0) += 1;
                ItemAction::Keep
            };
            position = bench.tables.visit(from, 50, act, &mut Vec::new());
            portion_count += 1;
            for _ in 0..random.below(400) {
                let grows = random.below(16) < 5 + (portion_count / 5) % 2 * 6;
                let other = 1_000 + random.below(1_000_000);
                if grows && !bench.model.contains_key(&other) {
                    bench.insert(other, 1);
                    others.push(other);
                } else if let Some(name) = others.pop() {
                    bench.remove(name);
                }
            }
            assert!(portion_count < 10_000, "the walk ends, seed {seed}");
        }
        assert!((0..1_000).all(|name| met.contains_key(&name)), "seed {seed}");
    }
}

#[test]
fn a_walk_that_removes_everything_leaves_no_memory() {
    let mut bench = Bench::new(good_hash);
    (0..10_000).for_each(|name| bench.insert(name, 1));
    let mut removed = Vec::new();
    let mut position = Some(VisitPosition::default());
    while let Some(from) = position {
        position = bench.tables.visit(from, 100, |_| ItemAction::Remove, &mut removed);
    }
    assert_eq!((removed.len(), bench.tables.len(), bench.tables.bytes()), (10_000, 0, 0));
}

#[test]
fn sub_tables_that_were_reserved_are_not_made_again() {
    let mut bench = Bench::new(good_hash);
    bench.tables.reserve(10_000, |_| unreachable!("there is nothing to rehash"));
    let count = bench.tables.tables.len();
    (0..10_000).for_each(|name| bench.insert(name, 1));
    assert_eq!((bench.rehashed_max, bench.tables.tables.len()), (0, count));
    bench.check(0);
}

#[test]
fn room_that_was_reserved_for_nothing_goes_with_the_next_removals() {
    let mut bench = Bench::new(good_hash);
    bench.tables.reserve(100_000, |_| unreachable!("there is nothing to rehash"));
    for name in 0..1_000 {
        bench.insert(name, 1);
        bench.remove(name);
    }
    assert_eq!(bench.tables.bytes(), 0);
}
