//! How long one insertion takes at most, beside a table that is rebuilt whole when it grows.
//!
//! `cargo test --release -p vbucket longest_insertion -- --ignored --nocapture`

use std::time::Duration;

use document::Item;
use platform::Clock;

use super::super::{HashSeed, HashTable};
use super::item;

const ITEMS: u64 = 1_000_000;
const ROUNDS: usize = 3;

/// Open addressing with a byte of tag a slot, at most seven eighths full, rebuilt with a quarter
/// more slots.
struct RebuiltTable {
    seed: HashSeed,
    tags: Vec<u8>,
    items: Vec<Option<Item>>,
    count: usize,
}

impl RebuiltTable {
    fn insert(&mut self, item: Item) {
        if (self.count + 1) * 8 > self.tags.len() * 7 {
            let capacity = (self.count + 1) * 10 / 7 + 16;
            self.tags = vec![0; capacity];
            let items = std::mem::take(&mut self.items);
            self.items.resize_with(capacity, || None);
            items.into_iter().flatten().for_each(|item| self.place(item));
        }
        self.place(item);
        self.count += 1;
    }

    fn place(&mut self, item: Item) {
        let hash = self.seed.hash(item.key().encoded());
        let capacity = self.tags.len() as u64;
        let mut slot = (((hash >> 32) * capacity) >> 32) as usize;
        while self.tags[slot] != 0 {
            slot = (slot + 1) % self.tags.len();
        }
        self.tags[slot] = 0x80 | hash as u8;
        self.items[slot] = Some(item);
    }
}

/// Times of all insertions, sorted.
fn times(items: &[Item], mut insert: impl FnMut(Item)) -> Vec<Duration> {
    let clock = Clock::real();
    let time = |item: &Item| {
        let item = item.clone();
        let before = clock.now();
        insert(item);
        clock.now().since(before)
    };
    let mut times: Vec<Duration> = items.iter().map(time).collect();
    times.sort_unstable();
    times
}

fn print(design: &str, times: &[Duration]) {
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{design:<12} sum {:>8.1?}  median {:>8.1?}  99 % {:>8.1?}  99.9 % {:>8.1?}  99.99 % {:>8.1?}  longest {:>8.1?}",
        times.iter().sum::<Duration>(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999),
        at(1.0),
    );
}

#[test]
#[ignore = "a measurement: run it alone, with --release and --nocapture"]
fn longest_insertion() {
    let items: Vec<Item> = (1..=ITEMS).map(|name| item(name, name, false)).collect();
    for _ in 0..ROUNDS {
        let seed = HashSeed::new(1);
        let (tags, elements) = (Vec::new(), Vec::new());
        let mut rebuilt = RebuiltTable { seed: seed.clone(), tags, items: elements, count: 0 };
        print("rebuilt", &times(&items, |item| rebuilt.insert(item)));
        let mut table = HashTable::new(seed);
        print("sub-tables", &times(&items, |item| drop(table.insert(item))));
    }
}
