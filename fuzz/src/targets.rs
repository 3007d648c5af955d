//! What is fuzzed, and the well-formed inputs that mutation begins with.

use std::fs;
use std::path::Path;

/// A reader of foreign bytes.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Must not panic, whatever the bytes.
    pub(crate) read: fn(&[u8]),
    pub(crate) corpus: fn() -> Vec<Vec<u8>>,
}

/// All targets; `xtask/src/fuzz.rs` lists the same names.
pub(crate) const TARGETS: &[Target] = &[
    Target { name: "frame", read: protocol::fuzzing::frame, corpus: frames },
    Target {
        name: "couchstore_file",
        read: storage::fuzzing::read_couchstore_file,
        corpus: couchstore_files,
    },
    Target {
        name: "journal_segment",
        read: storage::fuzzing::read_journal_segment,
        corpus: journal_segments,
    },
    Target { name: "scram", read: auth::fuzzing::scram, corpus: scram_messages },
];

/// A request of every opcode with extras of the usual sizes.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for opcode in 0..=u8::MAX {
        for extras in [0, 3, 4, 8, 20, 24] {
            frames.push(request(opcode, &vec![0; extras], b"\x00key", b"{\"value\":1}"));
        }
        frames.push(request(opcode, &[], b"", b""));
    }
    frames
}

/// The header of a request: magic, opcode, key length u16, extras length u8, datatype u8, vBucket
/// u16, body length u32, opaque u32, CAS u64; then extras, key and value.
fn request(opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let key_size = u16::try_from(key.len()).expect("keys here are short");
    let extras_size = u8::try_from(extras.len()).expect("extras here are short");
    let body_size = u32::try_from(extras.len() + key.len() + value.len()).expect("so are bodies");
    let mut bytes = vec![0x80, opcode];
    bytes.extend_from_slice(&key_size.to_be_bytes());
    bytes.extend_from_slice(&[extras_size, 0, 0, 7]);
    bytes.extend_from_slice(&body_size.to_be_bytes());
    bytes.extend_from_slice(&[0; 12]);
    for part in [extras, key, value] {
        bytes.extend_from_slice(part);
    }
    bytes
}

/// The couchstore files that the tests of `storage` read, small ones, and an empty one.
fn couchstore_files() -> Vec<Vec<u8>> {
    fixtures("couchstore")
}

/// Segments, and what is in their first groups.
fn journal_segments() -> Vec<Vec<u8>> {
    const GROUP_AT: usize = 4096;
    let mut segments = fixtures("journal");
    let after_header = segments.iter().filter_map(|segment| segment.get(GROUP_AT + 64..));
    let payloads: Vec<_> = after_header.map(<[u8]>::to_vec).collect();
    segments.extend(payloads);
    segments
}

fn fixtures(directory: &str) -> Vec<Vec<u8>> {
    const SIZE_MAX: u64 = 256 << 10;
    let mut files = vec![Vec::new()];
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/storage/tests/fixtures");
    let root = fixtures.join(directory);
    let mut directories = vec![root];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        // The order decides what a seed means.
        entries.sort();
        for path in entries {
            let size = fs::metadata(&path).map_or(u64::MAX, |metadata| metadata.len());
            if path.is_dir() {
                directories.push(path);
            } else if size <= SIZE_MAX
                && let Ok(bytes) = fs::read(&path)
            {
                files.push(bytes);
            }
        }
    }
    files
}

/// Messages of the exchange of RFC 5802, section 5, and of PLAIN (RFC 4616).
fn scram_messages() -> Vec<Vec<u8>> {
    [
        &b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"[..],
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        b"\0user\0password",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}
