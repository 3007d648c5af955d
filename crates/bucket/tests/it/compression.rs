//! What becomes of compressed values in each mode.

use bucket::{BucketConfig, CompressionMode, Incoming, inflated};
use document::compression::deflate;
use document::{Datatype, ItemMeta};
use vbucket::{Found, StoreMode, WriteCondition};

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
        let (key, condition) = (key(name), WriteCondition::default());
        let incoming = Incoming { body, is_compressed: true };
        let meta = ItemMeta::default();
        self.bucket
            .store(&mut self.session, StoreMode::Set, VBID, key.as_key(), meta, incoming, condition)
            .unwrap();
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
