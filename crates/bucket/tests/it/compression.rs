//! What becomes of compressed values in each mode.

use std::time::Duration;

use bucket::{BucketConfig, CompressionMode, Incoming, Write, inflated};
use document::Datatype;
use document::compression::deflate;
use platform::Random;
use platform::seeds::seeds;
use vbucket::Found;

use crate::support::{Machine, VBID, config, key};

const MODES: [CompressionMode; 3] =
    [CompressionMode::Off, CompressionMode::Passive, CompressionMode::Active];

fn machine(compression: CompressionMode) -> Machine {
    Machine::with(BucketConfig { compression, ..config() })
}

fn text() -> Vec<u8> {
    b"to be compressed ".repeat(100)
}

fn is_compressed(found: &Found) -> bool {
    found.item.datatype().contains(Datatype::SNAPPY)
}

impl Machine {
    fn set_compressed(&mut self, name: &str, body: &[u8]) {
        let (key, incoming) = (key(name), Incoming { body, is_compressed: true });
        let write = Write::set(VBID, key.as_key(), incoming);
        self.bucket.store(&mut self.session, write).unwrap();
    }

    /// The document, from its file if need be.
    fn found(&mut self, name: &str) -> Found {
        self.get(VBID, name).unwrap();
        self.find(VBID, name).unwrap()
    }
}

#[test]
fn what_comes_compressed_is_kept_so_unless_the_mode_is_off() {
    for mode in MODES {
        let mut machine = machine(mode);
        machine.set_compressed("k", &deflate(&text()));
        let found = machine.found("k");
        assert_eq!(is_compressed(&found), mode != CompressionMode::Off, "{mode:?}");
        assert_eq!(*inflated(&found.item), text());
    }
}

#[test]
fn what_saves_too_little_is_kept_inflated() {
    for (ratio, is_kept) in [(1.2, true), (1000.0, false)] {
        let config = BucketConfig { min_compression_ratio: ratio, ..config() };
        let mut machine = Machine::with(config);
        machine.set_compressed("k", &deflate(&text()));
        assert_eq!(is_compressed(&machine.found("k")), is_kept, "ratio {ratio}");
    }
}

#[test]
fn a_value_from_a_file_is_kept_as_the_mode_of_the_moment_wants() {
    for mode in MODES {
        for arrives_compressed in [false, true] {
            let mut machine = machine(CompressionMode::Passive);
            if arrives_compressed {
                machine.set_compressed("k", &deflate(&text()));
            } else {
                machine.set(VBID, "k", &text()).unwrap();
            }
            machine.run();
            machine.bucket.set_compression_mode(mode);
            machine.evict(VBID, "k").unwrap();
            let evicted = machine.found("k");
            let mut machine = machine.stop_and_start();
            machine.bucket.set_compression_mode(mode);
            machine.run();
            let warmed_up = machine.found("k");
            let wanted = match mode {
                CompressionMode::Off => false,
                CompressionMode::Passive => arrives_compressed,
                CompressionMode::Active => true,
            };
            for found in [evicted, warmed_up] {
                assert_eq!(is_compressed(&found), wanted, "{mode:?}, {arrives_compressed}");
                assert_eq!(*inflated(&found.item), text());
            }
        }
    }
}

/// Long enough for the compressor to come.
const INTERVAL: Duration = Duration::from_millis(250);

#[test]
fn the_compressor_leaves_everything_about_a_document_but_its_form() {
    let mut machine = machine(CompressionMode::Active);
    let names: Vec<String> = (0..300).map(|number| format!("key-{number}")).collect();
    let stored: Vec<_> =
        names.iter().map(|name| machine.set(VBID, name, &text()).unwrap()).collect();
    machine.delete(VBID, &names[0]).unwrap();
    machine.run();
    let before = machine.bucket.statistics();
    machine.advance(INTERVAL);
    for (name, mutation) in names.iter().zip(&stored).skip(1) {
        let found = machine.find(VBID, name).unwrap();
        assert!(is_compressed(&found), "{name}");
        assert_eq!(*inflated(&found.item), text());
        assert_eq!((found.cas, found.item.seqno()), (mutation.cas, mutation.seqno));
        assert_eq!(found.item.revision().0, 1);
    }
    let after = machine.bucket.statistics();
    assert_eq!(after.compressor_compressed, 299);
    assert_eq!(after.datatype_counts[usize::from(Datatype::SNAPPY.bits())], 299);
    assert_eq!(after.items_persisted, before.items_persisted, "files keep what they have");
    assert!(after.documents_bytes < before.documents_bytes / 4);
}

#[test]
fn the_compressor_tries_each_version_once() {
    let mut machine = machine(CompressionMode::Active);
    let mut random = Random::from_seed(1);
    let mut noise = vec![0; 1000];
    noise.fill_with(|| random.next_u64().to_le_bytes()[0]);
    machine.set(VBID, "noise", &noise).unwrap();
    machine.run();
    machine.advance(INTERVAL);
    let tried = machine.bucket.statistics();
    assert_eq!((tried.compressor_visited, tried.compressor_compressed), (1, 0));
    machine.advance(INTERVAL * 10);
    assert_eq!(machine.bucket.statistics().compressor_visited, 1, "there is nothing new");
    machine.set(VBID, "text", &text()).unwrap();
    machine.run();
    machine.advance(INTERVAL);
    let tried = machine.bucket.statistics();
    assert_eq!((tried.compressor_visited, tried.compressor_compressed), (3, 1));
    machine.bucket.flush_all().unwrap();
    machine.set(VBID, "in a new history", &text()).unwrap();
    machine.run();
    machine.advance(INTERVAL);
    assert_eq!(machine.bucket.statistics().compressor_compressed, 2);
}

#[test]
fn a_change_of_the_mode_reaches_the_compressor() {
    let mut machine = machine(CompressionMode::Passive);
    machine.set(VBID, "k", &text()).unwrap();
    machine.run();
    machine.advance(INTERVAL * 4);
    assert!(!is_compressed(&machine.found("k")), "passive");
    machine.bucket.set_compression_mode(CompressionMode::Active);
    machine.run();
    assert!(is_compressed(&machine.found("k")), "active");
    machine.bucket.set_compression_mode(CompressionMode::Off);
    machine.set(VBID, "k", &text()).unwrap();
    machine.run();
    machine.advance(INTERVAL * 4);
    assert!(!is_compressed(&machine.found("k")), "off");
}

#[test]
fn a_document_that_changes_while_it_is_compressed_stays_changed() {
    for seed in seeds(50) {
        let mut machine = machine(CompressionMode::Active);
        let mut random = Random::from_seed(seed);
        let mut wanted = vec![None; 20];
        for _ in 0..300 {
            let number = random.below(20) as usize;
            let name = format!("key-{number}");
            match random.below(5) {
                0..3 => {
                    let value = b"word ".repeat(random.below(100) as usize);
                    machine.set(VBID, &name, &value).unwrap();
                    wanted[number] = Some(value);
                }
                3 => {
                    machine.delete(VBID, &name).ok();
                    wanted[number] = None;
                }
                _ => drop(machine.driver.run_one()),
            }
            if random.below(20) == 0 {
                machine.advance(INTERVAL);
            }
        }
        for (number, value) in wanted.iter().enumerate() {
            let found = machine.find(VBID, &format!("key-{number}")).ok();
            let read = found.map(|found| inflated(&found.item).into_owned());
            assert_eq!(read, *value, "seed {seed}, key-{number}");
        }
    }
}
