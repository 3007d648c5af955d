//! Bytes that nobody wrote: flipped, cut, made up.

use std::path::Path;

use platform::Random;
use platform::simulated::SimulatedFiles;
use storage::fuzzing::read_couchstore_file;

use crate::batches::{VBID, batch, commit, item, open};

const FIXTURES: [&[u8]; 4] = [
    include_bytes!("../fixtures/couchstore/golden-v14.couch.1"),
    include_bytes!("../fixtures/couchstore/0.couch.1"),
    include_bytes!("../fixtures/couchstore/compacted-v14.couch.1"),
    include_bytes!("../fixtures/couchstore/mixed-rollbacks-v14.couch.1"),
];

#[test]
fn damaged_files_never_panic_the_reader() {
    for seed in platform::seeds::seeds(40) {
        let mut random = Random::from_seed(seed);
        for fixture in FIXTURES {
            let mut image = fixture.to_vec();
            for _ in 0..=random.below(20) {
                let at = usize::try_from(random.below(image.len() as u64)).unwrap();
                image[at] ^= 1 << random.below(8);
            }
            if random.below(3) == 0 {
                image.truncate(usize::try_from(random.below(image.len() as u64)).unwrap());
            }
            read_couchstore_file(&image);
            write_into(&image);
        }
    }
}

/// Commits to a damaged file: an error or not, but no panic.
fn write_into(image: &[u8]) {
    let files = SimulatedFiles::new();
    files.insert(Path::new("bucket/7.couch.1"), image);
    let (store, _) = open(files);
    let high_seqno = store.high_seqno(VBID).unwrap().0;
    let items = (1..50).map(|index| item(&format!("k{}", index * 37), high_seqno + index, b"v"));
    drop(commit(&store, batch(VBID, items.collect())));
}

#[test]
fn made_up_files_never_panic_the_reader() {
    for seed in platform::seeds::seeds(200) {
        let mut random = Random::from_seed(seed);
        let mut image = vec![0; usize::try_from(random.below(20_000)).unwrap()];
        random.fill(&mut image);
        for block in image.chunks_mut(4096) {
            block[0] = u8::try_from(random.below(2)).unwrap();
        }
        read_couchstore_file(&image);
    }
    for fixture in FIXTURES {
        read_couchstore_file(fixture);
    }
    read_couchstore_file(b"");
}
