//! Files of the original, whole and damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::Vbid;
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, OpenMode, WallTime};

use crate::compaction::progress::CompactionProgress;
use crate::compaction::request::CompactionRequest;
use crate::compaction::successor::Successor;
use crate::couchstore::CouchFile;
use crate::error::StorageError;
use crate::store::Store;
use crate::store::vbucket_file::Snapshot;

const FIXTURES: [(&str, &[u8]); 6] = [
    ("0", include_bytes!("../../../tests/fixtures/couchstore/0.couch.1")),
    ("1", include_bytes!("../../../tests/fixtures/couchstore/1.couch.1")),
    ("golden", include_bytes!("../../../tests/fixtures/couchstore/golden-v14.couch.1")),
    ("mixed", include_bytes!("../../../tests/fixtures/couchstore/mixed-rollbacks-v14.couch.1")),
    ("compacted", include_bytes!("../../../tests/fixtures/couchstore/compacted-v14.couch.1")),
    ("legacy", include_bytes!("../../../tests/fixtures/couchstore/legacy-v11.couch.1")),
];

fn opened(files: &SimulatedFiles, path: &Path) -> Snapshot {
    let file = CouchFile::open(files, path, OpenMode::Read).unwrap();
    let (header, _) = file.newest_header().unwrap();
    Snapshot { file: Arc::new(file), header }
}

/// Everything of a state but where it lies.
fn told(snapshot: &Snapshot) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut reader = snapshot.file.reader(&snapshot.header);
    let mut documents = Vec::new();
    let flow = reader.scan_by_seqno(0, |info, bodies| {
        let body = bodies.stored(info)?.map(<[u8]>::to_vec);
        let kind = (info.deleted, info.content_meta, info.rev_seqno);
        documents.push((info.seqno, info.id.to_vec(), kind, info.rev_meta.to_vec(), body));
        Ok(std::ops::ControlFlow::Continue(()))
    });
    assert!(flow.unwrap().is_continue());
    let mut locals = Vec::new();
    reader.local_documents(|id, content| locals.push((id.to_vec(), content.to_vec()))).unwrap();
    let header = &snapshot.header;
    (documents, locals, (header.high_seqno, header.purge_seqno, header.timestamp))
}

#[test]
fn files_of_the_original_are_compacted_into_the_newest_version() {
    for (name, image) in FIXTURES {
        let files = SimulatedFiles::new();
        let path = PathBuf::from("bucket/7.couch.1");
        files.insert(&path, image);
        let before = opened(&files, &path);
        let target = PathBuf::from("bucket/7.couch.2");
        let file = CouchFile::open(&files, &target, OpenMode::CreateNew).unwrap();
        let (request, progress) = (CompactionRequest::default(), CompactionProgress::new());
        let successor = Successor::copy(&before, &file, &request, &progress, &()).unwrap().unwrap();
        let size_before = before.header.live_bytes();
        let prepares_purged = successor.tally.purged.prepares;
        successor.finish().unwrap();
        let after = opened(&files, &target);
        assert_eq!(after.header.version, 14, "{name}");
        let verification = crate::verify_file(&file).unwrap();
        assert!(verification.is_sound(), "{name}: {:?}", verification.findings);
        if prepares_purged == 0 {
            assert_eq!(told(&after), told(&before), "{name}");
        }
        // Nodes are built fuller or emptier, but what is copied is what was live.
        assert!(after.header.live_bytes() < size_before * 5 / 4, "{name}");
    }
}

#[test]
fn damaged_trees_end_a_compaction_with_an_error_never_a_panic() {
    for (name, image) in FIXTURES {
        for seed in platform::seeds::seeds(40) {
            let mut random = platform::Random::from_seed(seed);
            let mut image = image.to_vec();
            for _ in 0..3 {
                let at = usize::try_from(random.below(image.len() as u64)).unwrap();
                image[at] ^= 1 << random.below(8);
            }
            let files = SimulatedFiles::new();
            files.insert(Path::new("bucket/7.couch.1"), &image);
            let clock = Clock::simulated(WallTime(0));
            let options = crate::StoreOptions {
                entropy: Entropy::real(),
                clock,
                open_files_max: 2,
                journal: None,
            };
            let (store, _) = Store::open(Arc::new(files), Path::new("bucket"), options).unwrap();
            let (request, progress) = (CompactionRequest::default(), CompactionProgress::new());
            let done = store.compact(Vbid(7), &request, &progress, &());
            let is_expected = matches!(done, Ok(_) | Err(StorageError::Corrupt { .. }));
            assert!(is_expected, "{name}, seed {seed}: {done:?}");
        }
    }
}
