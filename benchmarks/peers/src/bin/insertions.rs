//! How long one insertion into a vBucket takes at most, beside a table that is rebuilt whole when
//! it grows.

use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use anyhow::Result;
use document::{Cas, Item, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno};
use document::{VbUuid, Vbid, VbucketState};
use peers::options::Options;
use peers::report::{self, Figure};
use serde_json::json;
use vbucket::{HashSeed, MemoryAccount, PersistentState, Restored, Vbucket};

const ITEMS: u64 = 1_000_000;
const ITEMS_QUICK: u64 = 50_000;

#[global_allocator]
static ALLOCATOR: platform::allocator::Allocator = platform::allocator::Allocator;

/// Open addressing with a byte of tag a slot, at most seven eighths full, rebuilt with a quarter
/// more slots.
#[derive(Default)]
struct RebuiltTable {
    hasher: document::Map<(), ()>,
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
        let mut hasher = self.hasher.hasher().build_hasher();
        hasher.write(item.key().encoded());
        let hash = hasher.finish();
        let mut slot = (((hash >> 32) * self.tags.len() as u64) >> 32) as usize;
        while self.tags[slot] != 0 {
            slot = (slot + 1) % self.tags.len();
        }
        self.tags[slot] = 0x80 | (hash as u8 & 0x7f);
        self.items[slot] = Some(item);
    }
}

fn item(number: u64) -> Item {
    let name = format!("key:{number:012}");
    let key = KeyBuf::in_default_collection(name.as_bytes()).expect("16 bytes are a key");
    let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), &[b'v'; 32]);
    builder.finish(Cas(1), Seqno(number), RevSeqno(1))
}

fn empty_vbucket(account: &MemoryAccount) -> Vbucket {
    let state = PersistentState {
        high_seqno: Seqno(ITEMS),
        max_cas: Cas(1),
        ..PersistentState::new(VbucketState::Active)
    };
    let restored = Restored {
        vbid: Vbid(0),
        state,
        document_count: 0,
        fresh_uuid: VbUuid(1),
        was_clean: true,
    };
    Vbucket::restore(restored, HashSeed::new(1), account.clone())
}

/// Times of all insertions, sorted.
fn times(items: u64, mut insert: impl FnMut(Item)) -> Vec<Duration> {
    let mut times = Vec::new();
    for number in 1..=items {
        let item = item(number);
        let started = Instant::now();
        insert(item);
        times.push(started.elapsed());
    }
    times.sort_unstable();
    times
}

fn main() -> Result<()> {
    platform::allocator::set_up();
    let options = Options::from_command_line(3)?;
    let items = if options.quick { ITEMS_QUICK } else { ITEMS };
    println!("{items} insertions into one vBucket, microseconds");
    println!("                 50 %     99 %   99.9 %    99.99 %        max");
    let account = MemoryAccount::default();
    let mut figures = Vec::new();
    for design in ["rebuilt", "sub-tables"] {
        let mut rounds: [Vec<f64>; 5] = Default::default();
        for _ in 0..options.rounds {
            let times = if design == "rebuilt" {
                let mut table = RebuiltTable::default();
                times(items, |item| table.insert(item))
            } else {
                let mut vbucket = empty_vbucket(&account);
                times(items, |item| drop(vbucket.restore_document(item)))
            };
            for (of, share) in rounds.iter_mut().zip([0.5, 0.99, 0.999, 0.9999, 1.0]) {
                let index = ((times.len() - 1) as f64 * share) as usize;
                of.push(times[index].as_secs_f64() * 1e6);
            }
        }
        let [half, p99, p999, p9999, max] = rounds.each_ref().map(|of| report::median(of));
        println!("{design:<12} {half:>8.2} {p99:>8.2} {p999:>8.2} {p9999:>10.2} {max:>10.1}");
        let [.., longest] = rounds;
        figures.push(Figure {
            bench: "insertions",
            variant: design.to_owned(),
            params: json!({"items": items}),
            metric: "longest",
            unit: "us",
            rounds: longest,
        });
    }
    report::append(options.json.as_deref(), &figures)
}
