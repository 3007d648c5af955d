//! What is durable in the order of keys against a model: with some of it in the journal alone, and
//! whatever is committed, applied, compacted or deleted meanwhile.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use document::{Cas, RevSeqno, Seqno};
use document::{CollectionId, DurabilityLevel, Item, ItemBuilder, ItemMeta, Operation};
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, Random, WallTime};
use storage::{
    CompactionProgress, CompactionRequest, JournalOptions, KeyView, Store, StoreOptions,
};

use crate::batches::{DIRECTORY, VBID, all_of, batch, commit, item, key, random_item};

/// Half of the expiries that random items have are before it.
const NOW_SECONDS: u32 = 1 << 31;

type Model = BTreeMap<Vec<u8>, Item>;

fn open_with(files: &SimulatedFiles, journal: Option<JournalOptions>) -> Store {
    let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
    let options = StoreOptions { entropy: Entropy::real(), clock, open_files_max: 8, journal };
    Store::open(Arc::new(files.clone()), Path::new(DIRECTORY), options).unwrap().0
}

fn random_key(random: &mut Random) -> Vec<u8> {
    let prefix: &[u8] = if random.below(5) == 0 { &[0x88, 0x01] } else { &[0] };
    [prefix, format!("key-{:05}", random.below(210)).as_bytes()].concat()
}

/// What a view finds in a range: everything that can be told of it, and whether it is live.
fn found(
    view: &KeyView,
    from: &[u8],
    to: &[u8],
    count_max: usize,
) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
    let mut found = Vec::new();
    view.scan(from, to, |entry| {
        let item = entry.item()?;
        assert_eq!(entry.key()?, item.key());
        found.push((all_of(&item), entry.is_live(NOW_SECONDS)?));
        let is_enough = found.len() == count_max;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
    .unwrap();
    found
}

fn check(view: &KeyView, model: &Model, random: &mut Random) {
    for _ in 0..10 {
        let (from, to) = (random_key(random), random_key(random));
        let count_max = if random.below(2) == 0 { usize::MAX } else { 5 };
        let in_range = model.iter().filter(|(key, _)| from <= **key && **key < to);
        let is_live = |item: &Item| {
            !item.is_deleted() && (item.expiry() == 0 || item.expiry() >= NOW_SECONDS)
        };
        let expected: Vec<_> =
            in_range.map(|(_, item)| (all_of(item), is_live(item))).take(count_max).collect();
        let found = format!("{:?}", found(view, &from, &to, count_max));
        assert_eq!(found, format!("{expected:?}"), "{from:?} {to:?}");
    }
    let high = model.values().map(Item::seqno).max().unwrap_or_default();
    assert_eq!(view.high_seqno(), high);
    for seqno in (0..high.0 + 2).map(Seqno) {
        let is_last_change = model.values().any(|item| item.seqno() == seqno);
        assert_eq!(view.has_change(seqno).unwrap(), is_last_change, "{seqno:?}");
    }
    for collection in [0, 0x88].map(CollectionId) {
        let is_alive = |item: &&Item| !item.is_deleted() && item.key().collection() == collection;
        let count = model.values().filter(is_alive).count() as u64;
        let counted = view.item_count(collection).unwrap();
        assert!((count..=count * 2).contains(&counted), "{counted} of {count}");
    }
}

#[test]
fn a_view_is_what_was_durable_whatever_comes_after() {
    for seed in platform::seeds::seeds(12) {
        println!("seed {seed}");
        let mut random = Random::from_seed(seed);
        let files = SimulatedFiles::new();
        let journal = (seed % 3 != 0).then(JournalOptions::default);
        let store = open_with(&files, journal);
        let (mut seqno, mut model) = (0, Model::new());
        let mut held = Vec::new();
        for _ in 0..30 {
            match random.below(5) {
                0 => drop(store.apply(VBID).unwrap()),
                1 => {
                    let (request, progress) =
                        (CompactionRequest::default(), CompactionProgress::new());
                    store.compact(VBID, &request, &progress, &()).unwrap();
                }
                _ => {
                    let mut names: Vec<u64> =
                        (0..1 + random.below(40)).map(|_| random.below(200)).collect();
                    names.sort_unstable();
                    names.dedup();
                    let next = |name: &u64| {
                        seqno += 1;
                        random_item(&mut random, *name, seqno)
                    };
                    let items: Vec<Item> = names.iter().map(next).collect();
                    let by_key = |item: &Item| (item.key().encoded().to_vec(), item.clone());
                    model.extend(items.iter().map(by_key));
                    commit(&store, batch(VBID, items)).unwrap();
                }
            }
            let view = store.key_view(VBID).unwrap();
            check(&view, &model, &mut random);
            if random.below(4) == 0 {
                held.push((view, model.clone()));
            }
        }
        store.delete(VBID).unwrap();
        check(&store.key_view(VBID).unwrap(), &Model::new(), &mut random);
        for (view, model) in &held {
            check(view, model, &mut random);
        }
    }
}

#[test]
fn what_readers_do_not_see_is_in_no_view() {
    for is_applied in [false, true] {
        let store = open_with(&SimulatedFiles::new(), Some(JournalOptions::default()));
        let prepare = |name: &str, seqno: u64| {
            let operation = Operation::Prepare(DurabilityLevel::Majority);
            let builder =
                ItemBuilder::step(key(name).as_key(), ItemMeta::default(), operation, b"new");
            builder.finish(Cas(seqno), Seqno(seqno), RevSeqno(1))
        };
        let committed = prepare("c", 4).committed(Seqno(5));
        let items = vec![
            item("a", 1, b"old"),
            prepare("a", 2),
            prepare("b", 3),
            prepare("c", 4),
            committed,
        ];
        commit(&store, batch(VBID, items)).unwrap();
        if is_applied {
            store.apply(VBID).unwrap();
        }
        assert_eq!(store.unapplied_bytes(VBID) == 0, is_applied);
        let view = store.key_view(VBID).unwrap();
        let mut found = Vec::new();
        view.scan(&[0], &[1], |entry| {
            let item = entry.item()?;
            found.push((item.key().name().to_vec(), item.seqno().0, item.value().to_vec()));
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        let expected = [("a", 1, "old"), ("c", 5, "new")];
        let expected = expected.map(|(name, seqno, value)| {
            (name.as_bytes().to_vec(), seqno, value.as_bytes().to_vec())
        });
        assert_eq!(found, expected);
        let changes: Vec<u64> =
            (1..7).filter(|seqno| view.has_change(Seqno(*seqno)).unwrap()).collect();
        assert_eq!(changes, [1, 5]);
    }
}
