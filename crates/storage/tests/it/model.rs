//! Random histories against a map, on a real file system, each file checked by the verifier.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use document::{CollectionId, Item, Key, Seqno};
use platform::Random;
use platform::files::RealFiles;

use crate::batches::{VBID, all_of, batch, commit, random_item, scan, try_open};

type Model = BTreeMap<Vec<u8>, Item>;

#[test]
fn random_histories_read_back_as_they_were_written() {
    for seed in platform::seeds::seeds(4) {
        let directory = tempfile::tempdir().unwrap();
        let mut random = Random::from_seed(seed);
        let mut model = Model::new();
        let mut seqno = 0;
        let (mut store, _) = try_open(RealFiles, directory.path(), 2).unwrap();
        for round in 0..60 {
            let mut by_key = BTreeMap::new();
            for _ in 0..random.below(80) {
                seqno += 1 + random.below(3);
                let name = random.below(20) * round;
                let item = random_item(&mut random, name, seqno);
                by_key.insert(item.key().encoded().to_vec(), item);
            }
            let items: Vec<_> = by_key.values().cloned().collect();
            let report = commit(&store, batch(VBID, items)).unwrap();
            let alive = |item: &&Item| !item.is_deleted();
            let applied = report.applied.as_ref().unwrap();
            let inserts = by_key
                .iter()
                .filter(|(key, item)| alive(item) && !model.get(*key).as_ref().is_some_and(alive));
            assert_eq!(applied.inserts, inserts.count() as u64, "seed {seed}");
            let deletes = by_key.values().filter(|item| item.is_deleted()).count() as u64;
            assert_eq!(applied.deletes, deletes, "seed {seed}");
            assert_eq!(applied.inserts + applied.updates + deletes, by_key.len() as u64);
            model.extend(by_key);
            if random.below(10) == 0 {
                store = try_open(RealFiles, directory.path(), 2).unwrap().0;
            }
            if random.below(6) == 0 {
                check(&store, &model, seed);
            }
        }
        check(&store, &model, seed);
        // Every commit has its header.
        verify_with(&directory.path().join("7.couch.1"), "\"headers\": 61");
    }
}

fn check(store: &storage::Store, model: &Model, seed: u64) {
    let mut expected: Vec<_> = model.values().collect();
    let keys: Vec<_> = expected.iter().rev().map(|item| item.key()).collect();
    let found = store.get(VBID, &keys).unwrap();
    for (found, expected) in found.iter().zip(expected.iter().rev()) {
        assert_eq!(found.as_ref().map(all_of), Some(all_of(expected)), "seed {seed}");
    }
    assert!(store.get(VBID, &[Key::from_trusted(b"\x00absent")]).unwrap()[0].is_none());
    expected.sort_by_key(|item| item.seqno());
    let scanned: Vec<_> = scan(store, VBID).iter().map(all_of).collect();
    assert_eq!(scanned, expected.iter().map(|item| all_of(item)).collect::<Vec<_>>());
    let high_seqno = expected.last().map_or(Seqno(0), |item| item.seqno());
    assert_eq!(store.high_seqno(VBID).unwrap(), high_seqno, "seed {seed}");
    let alive = |item: &&&Item| !item.is_deleted();
    let count = expected.iter().filter(alive).count() as u64;
    assert_eq!(store.item_count(VBID).unwrap(), count, "seed {seed}");
    for collection in [CollectionId(0), CollectionId(0x88)] {
        let inside = expected.iter().filter(|item| item.key().collection() == collection);
        let statistics = store.collection_statistics(VBID, collection).unwrap();
        assert_eq!(statistics.item_count, inside.clone().filter(alive).count() as u64);
        let high_seqno = inside.clone().map(|item| item.seqno().0).max().unwrap_or(0);
        assert_eq!(statistics.high_seqno, high_seqno, "seed {seed}");
    }
    let sizes = store.file_sizes(VBID).unwrap();
    assert!(sizes.live_bytes < sizes.file_bytes, "seed {seed}");
}

/// Runs the independent verifier, which has to be content and to say `expected`. Without Python
/// there is none, which is an error in CI.
#[expect(clippy::print_stderr, reason = "who runs the test is to know what it did not do")]
pub(crate) fn verify_with(file: &Path, expected: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/couchverify.py");
    let arguments = [script, "--kv", "--all-headers"];
    match Command::new("python3").args(arguments).arg(file).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{said}");
            assert!(said.contains(expected), "{said}");
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI needs python3: {error}");
            eprintln!("not verified: there is no python3 here");
        }
    }
}
