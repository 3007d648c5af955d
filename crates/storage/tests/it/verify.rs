//! The verifier: what it accepts, what it finds, and that an independent one says the same.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use document::{Cas, ItemBuilder, ItemMeta, Key, RevSeqno, Seqno};
use platform::files::RealFiles;
use platform::simulated::SimulatedFiles;
use platform::{Files, OpenMode, Random};
use storage::couchstore::{CouchFile, FileHeader};
use storage::{
    DocumentCounts, Order, Scope, Selection, Severity, StorageError, Verification, documents,
    verify_file,
};

use crate::batches::{VBID, batch, commit, open, random_item};

const FIXTURES: [(&str, &[u8]); 6] = [
    ("0", include_bytes!("../fixtures/couchstore/0.couch.1")),
    ("1", include_bytes!("../fixtures/couchstore/1.couch.1")),
    ("golden-v14", include_bytes!("../fixtures/couchstore/golden-v14.couch.1")),
    ("mixed-rollbacks-v14", include_bytes!("../fixtures/couchstore/mixed-rollbacks-v14.couch.1")),
    ("compacted-v14", include_bytes!("../fixtures/couchstore/compacted-v14.couch.1")),
    ("legacy-v11", include_bytes!("../fixtures/couchstore/legacy-v11.couch.1")),
];

fn opened(image: &[u8]) -> CouchFile {
    let files = SimulatedFiles::new();
    let path = Path::new("data/0.couch.1");
    files.insert(path, image);
    CouchFile::open(&files, path, OpenMode::Read).unwrap()
}

fn verified(image: &[u8]) -> Verification {
    verify_file(&opened(image)).unwrap()
}

/// Runs the independent verifier. Without Python there is none, which is an error in CI.
fn independently_verified(image: &[u8]) -> Option<(bool, String)> {
    let target = tempfile::tempdir().unwrap();
    let path = target.path().join("0.couch.1");
    RealFiles.replace_all(&path, image).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/couchverify.py");
    let arguments = [script, "--kv", "--all-headers"];
    match Command::new("python3").args(arguments).arg(&path).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            Some((output.status.success(), said))
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI needs python3: {error}");
            None
        }
    }
}

fn assert_both_accept(name: &str, image: &[u8]) {
    let verification = verified(image);
    assert!(verification.is_sound(), "{name}: {:?}", verification.findings);
    let Some((is_sound, said)) = independently_verified(image) else { return };
    assert!(is_sound, "{name}: {said}");
    let headers = format!("\"headers\": {},", verification.header_count);
    assert!(said.contains(&headers), "{name}: {headers} {said}");
    let prepares_included = verification.newest.as_ref().map_or(0, FileHeader::alive_count);
    if prepares_included > 0 {
        assert!(said.contains(&format!("\"alive\": {prepares_included},")), "{name}: {said}");
    }
}

/// A file of ours after random commits.
fn written_by_us(seed: u64) -> Vec<u8> {
    let mut random = Random::from_seed(seed);
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    let mut seqno = 0;
    for _ in 0..20 {
        let mut items = Vec::new();
        for index in 0..random.below(40) {
            seqno += 1;
            let name = index * 3 + random.below(3);
            items.push(random_item(&mut random, name, seqno));
        }
        commit(&store, batch(VBID, items)).unwrap();
    }
    files.content(Path::new("bucket/7.couch.1")).unwrap()
}

#[test]
fn files_of_the_original_and_of_ours_are_accepted_by_both_verifiers() {
    for (name, image) in FIXTURES {
        assert_both_accept(name, image);
    }
    for seed in platform::seeds::seeds(4) {
        assert_both_accept(&format!("seed {seed}"), &written_by_us(seed));
    }
}

fn counted(image: &[u8]) -> DocumentCounts {
    let file = opened(image);
    let (header, _) = file.newest_header().unwrap();
    DocumentCounts::of(&file, &header).unwrap()
}

#[test]
fn neither_prepares_nor_events_count_as_documents() {
    for (name, image) in FIXTURES {
        let verification = verified(image);
        let (documents, tombstones) = (verification.document_count, verification.tombstone_count);
        assert_eq!(counted(image), DocumentCounts { documents, tombstones }, "{name}");
    }
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    // The default collection, an event, and another collection.
    let items = (1..).zip([0, 1, 8]).map(|(seqno, collection)| {
        let meta = ItemMeta::default();
        let builder = ItemBuilder::new(Key::from_trusted(&[collection, b'k']), meta, b"value");
        builder.finish(Cas(seqno), Seqno(seqno), RevSeqno(1))
    });
    commit(&store, batch(VBID, items.collect())).unwrap();
    let image = files.content(Path::new("bucket/7.couch.1")).unwrap();
    assert_eq!(verified(&image).event_count, 1);
    assert_eq!(counted(&image), DocumentCounts { documents: 2, tombstones: 0 });
}

#[test]
fn what_a_node_would_load_has_no_warnings() {
    for (name, image) in FIXTURES.into_iter().take(2) {
        assert!(verified(image).findings.is_empty(), "{name}: {:?}", verified(image).findings);
    }
    let verification = verified(FIXTURES[0].1);
    assert_eq!(verification.document_count, 250);
    assert_eq!(verification.newest.map(|header| header.position), Some(45056));
}

/// Everything that can be read from a file, newest state first.
fn content(image: &[u8]) -> Result<Vec<String>, StorageError> {
    let file = opened(image);
    let (header, report) = file.newest_header()?;
    let mut content = vec![format!("{:?}", report.skipped)];
    let mut state = Some(header);
    while let Some(header) = state {
        content.push(format!("{header:?}"));
        for order in [Order::BySeqno, Order::ById] {
            let selection = Selection { order, start_seqno: 0, with_bodies: true };
            documents(&file, &header, selection, |document| {
                content.push(format!("{document:?}"));
                ControlFlow::Continue(())
            })?;
        }
        let local = |id: &[u8], value: &[u8]| content.push(format!("{id:?} {value:?}"));
        file.reader(&header).local_documents(local)?;
        state = file.header_before(&header)?;
    }
    Ok(content)
}

#[test]
fn a_flipped_byte_is_reported_or_changes_nothing_that_can_be_read() {
    for seed in platform::seeds::seeds(1) {
        let ours = written_by_us(seed);
        let mut random = Random::from_seed(seed);
        let originals = FIXTURES.into_iter().take(5);
        for (name, image) in originals.chain([("ours", ours.as_slice())]) {
            let expected = content(image).unwrap();
            let warnings = verified(image).findings;
            let mut reported = 0;
            for round in 0..100 {
                let mut damaged = image.to_vec();
                // Every fifth flip hits the type byte of a block.
                let at = random.below(image.len() as u64);
                let at = if round % 5 == 0 { at / 4096 * 4096 } else { at };
                let bit = 1 << random.below(8);
                damaged[usize::try_from(at).unwrap()] ^= bit;
                let verification = verified(&damaged);
                if verification.is_sound() && verification.findings == warnings {
                    let now = content(&damaged);
                    assert!(
                        now.is_ok_and(|now| now == expected),
                        "seed {seed}: {name}, bit {bit:#x} of byte {at} is not reported"
                    );
                } else {
                    reported += 1;
                }
            }
            assert!(reported > 10, "seed {seed}: {name}: {reported} of 100 flips reported");
        }
    }
}

#[test]
fn what_the_independent_verifier_rejects_is_rejected() {
    for seed in platform::seeds::seeds(1) {
        let ours = written_by_us(seed);
        let mut random = Random::from_seed(seed);
        let (mut rejected, mut compared) = (0, 0);
        let originals = FIXTURES.into_iter().take(5);
        for (name, image) in originals.chain([("ours", ours.as_slice())]) {
            for _ in 0..5 {
                let mut damaged = image.to_vec();
                let at = usize::try_from(random.below(image.len() as u64)).unwrap();
                damaged[at] ^= 1 << random.below(8);
                let Some((is_sound, said)) = independently_verified(&damaged) else { return };
                let verification = verified(&damaged);
                let agrees = is_sound || !verification.is_sound();
                assert!(agrees, "seed {seed}: {name}, byte {at} of {}: {said}", image.len());
                rejected += u32::from(!is_sound);
                compared += 1;
            }
        }
        assert!(rejected > 5, "seed {seed}: only {rejected} of {compared} were rejected");
    }
}

#[test]
fn damage_says_what_it_affects_and_where() {
    let (_, golden) = FIXTURES[2];
    let flipped = |at: usize, bit: u8| {
        let mut image = golden.to_vec();
        image[at] ^= bit;
        verified(&image)
    };
    let cases = [
        // The body of seqno 1, the by-id leaf, the by-seqno leaf, the local leaf.
        (0x3a, Scope::CurrentState, 0x30),
        (0x60, Scope::CurrentState, 0x55),
        (0xe0, Scope::CurrentState, 0xd5),
        (0x160, Scope::CurrentState, 0x150),
        // The two headers.
        (0x1010, Scope::NewestHeader, 0x1000),
        (0x10, Scope::History, 0),
    ];
    for (at, scope, position) in cases {
        let verification = flipped(at, 1);
        let mut problems = verification.findings.iter();
        let found = problems.find(|finding| finding.severity == Severity::Problem);
        let found = found.map(|finding| (finding.scope, finding.position));
        assert_eq!(found, Some((scope, position)), "byte {at:#x}");
    }
    // Without its type byte the last commit never ended.
    let verification = flipped(0x1000, 1);
    assert!(verification.is_sound(), "{:?}", verification.findings);
    let unfinished = &verification.findings[0];
    assert_eq!((unfinished.scope, unfinished.position), (Scope::NewestHeader, 0x1000));
    assert_eq!(verification.newest.map(|header| header.high_seqno), Some(0));
}

#[test]
fn what_is_no_couchstore_file_is_a_finding_not_an_error() {
    for image in [b"".as_slice(), b"x", &[0; 5000], b"\x01garbage", &[0xff; 9000]] {
        let verification = verified(image);
        assert!(!verification.is_sound());
        assert!(verification.newest.is_none());
    }
}
