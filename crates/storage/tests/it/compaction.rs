//! Compaction against a model, with commits between all its phases.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use document::{CollectionId, Item, Seqno, Vbid};
use platform::files::RealFiles;
use platform::simulated::SimulatedFiles;
use platform::{Files, OpenMode, Random};
use storage::couchstore::CouchFile;
use storage::{
    CompactionObserver, CompactionOutcome, CompactionPhase, CompactionProgress, CompactionReport,
    CompactionRequest, DocumentView, Finding, Order, Scope, Selection, Severity, StorageError,
    Store, documents, verify_file,
};

use crate::batches::{
    DIRECTORY, VBID, all_of, batch, commit, item, open, random_item, record, scan, try_open,
};
use crate::model::verify_with;

/// Calls a function before each phase.
pub(crate) struct Between<F: Fn(CompactionPhase) + Sync>(pub(crate) F);

impl<F: Fn(CompactionPhase) + Sync> CompactionObserver for Between<F> {
    fn entered(&self, phase: CompactionPhase) {
        (self.0)(phase);
    }
}

pub(crate) fn compact(
    store: &Store,
    vbid: Vbid,
    request: &CompactionRequest,
    observer: &dyn CompactionObserver,
) -> Result<CompactionReport, StorageError> {
    match store.compact(vbid, request, &CompactionProgress::new(), observer)? {
        CompactionOutcome::Compacted(report) => Ok(*report),
        other => panic!("{other:?}"),
    }
}

/// What a vBucket's file should hold: the newest version of each key.
#[derive(Default)]
struct Model {
    seqno: u64,
    by_key: BTreeMap<Vec<u8>, Item>,
}

impl Model {
    /// Commits a random batch to the store, and here.
    fn commit(&mut self, store: &Store, random: &mut Random, count_max: u64) {
        let mut batch_by_key = BTreeMap::new();
        for _ in 0..random.below(count_max + 1) {
            self.seqno += 1 + random.below(3);
            let name = random.below(300);
            let item = random_item(random, name, self.seqno);
            batch_by_key.insert(item.key().encoded().to_vec(), item);
        }
        let items = batch_by_key.values().cloned().collect();
        let mut batch = batch(VBID, items);
        batch.state = record(self.seqno);
        commit(store, batch).unwrap();
        self.by_key.extend(batch_by_key);
    }

    /// The seqnos of the tombstones that a compaction of this state leaves out.
    fn purgeable(&self, request: &CompactionRequest) -> Vec<u64> {
        let highest_in = |collection: CollectionId| {
            let inside = self.by_key.values().filter(|item| item.key().collection() == collection);
            inside.map(|item| item.seqno()).max()
        };
        let (default, other) = (highest_in(CollectionId(0)), highest_in(CollectionId(0x88)));
        let is_highest = |item: &Item| [default, other].contains(&Some(item.seqno()));
        let is_old =
            |item: &Item| request.drop_deletes || item.expiry() < request.purge_before_seconds;
        let purged = self.by_key.values().filter(|item| item.is_deleted() && is_old(item));
        purged.filter(|item| !is_highest(item)).map(|item| item.seqno().0).collect()
    }
}

fn random_request(random: &mut Random) -> CompactionRequest {
    CompactionRequest {
        // The model's tombstones are from anywhere between 1970 and 2106.
        purge_before_seconds: u32::try_from(random.below(1 << 32)).unwrap(),
        drop_deletes: random.below(3) == 0,
        sync_bytes: 1 << random.below(21),
        ..CompactionRequest::default()
    }
}

#[test]
fn a_compacted_file_holds_what_the_model_holds_whatever_is_committed_meanwhile() {
    for seed in platform::seeds::seeds(12) {
        let directory = tempfile::tempdir().unwrap();
        let mut random = Random::from_seed(seed);
        let mut store = try_open(RealFiles, directory.path(), 2).unwrap().0;
        let model = Mutex::new(Model::default());
        let (mut purge_seqno, mut revision) = (0, 1);
        model.lock().unwrap().commit(&store, &mut random, 200);
        for _ in 0..8 {
            for _ in 0..random.below(6) {
                model.lock().unwrap().commit(&store, &mut random, 80);
            }
            let request = random_request(&mut random);
            let purgeable = model.lock().unwrap().purgeable(&request);
            let chance = random.below(3);
            let random = Mutex::new(&mut random);
            let commits = |_| {
                let random = &mut random.lock().unwrap();
                if random.below(3) < chance {
                    let count_max = [3, 30, 600][usize::try_from(random.below(3)).unwrap()];
                    model.lock().unwrap().commit(&store, random, count_max);
                }
            };
            let report = compact(&store, VBID, &request, &Between(commits)).unwrap();
            assert_eq!(report.purged.tombstones, purgeable.len() as u64, "seed {seed}");
            purge_seqno = purgeable.iter().copied().max().unwrap_or(0).max(purge_seqno);
            assert_eq!(report.purge_seqno, Seqno(purge_seqno), "seed {seed}");
            revision += 1;
            let mut model = model.lock().unwrap();
            model.by_key.retain(|_, item| !purgeable.contains(&item.seqno().0));
            let path = directory.path().join(format!("7.couch.{revision}"));
            check(&store, &model, &path, seed);
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no litter");
            if seed % 2 == 0 {
                let (reopened, report) = try_open(RealFiles, directory.path(), 2).unwrap();
                store = reopened;
                assert_eq!(report.vbuckets[0].purge_seqno, Seqno(purge_seqno), "seed {seed}");
                check(&store, &model, &path, seed);
            }
        }
        verify_with(&directory.path().join(format!("7.couch.{revision}")), "\"ok\": true");
    }
}

fn check(store: &Store, model: &Model, path: &Path, seed: u64) {
    let mut expected: Vec<_> = model.by_key.values().collect();
    let keys: Vec<_> = expected.iter().map(|item| item.key()).collect();
    let found = store.get(VBID, &keys).unwrap();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.as_ref().map(all_of), Some(all_of(expected)), "seed {seed}");
    }
    expected.sort_by_key(|item| item.seqno());
    let scanned: Vec<_> = scan(store, VBID).iter().map(all_of).collect();
    assert_eq!(scanned, expected.iter().map(|item| all_of(item)).collect::<Vec<_>>());
    assert_eq!(store.state(VBID).unwrap(), Some(record(model.seqno)), "seed {seed}");
    for collection in [CollectionId(0), CollectionId(0x88)] {
        let inside = expected.iter().filter(|item| item.key().collection() == collection);
        let alive = inside.clone().filter(|item| !item.is_deleted());
        let statistics = store.collection_statistics(VBID, collection).unwrap();
        assert_eq!(statistics.item_count, alive.count() as u64, "seed {seed}");
        assert_eq!(statistics.disk_size, disk_size(path, collection), "seed {seed}");
    }
    verify_sound(&RealFiles, path);
}

/// Bytes of the documents of a collection: bodies, ids, and the metadata that we write.
fn disk_size(path: &Path, collection: CollectionId) -> u64 {
    let file = CouchFile::open(&RealFiles, path, OpenMode::Read).unwrap();
    let (header, _) = file.newest_header().unwrap();
    let selection = Selection { order: Order::ById, start_seqno: 0, with_bodies: false };
    let mut sum = 0;
    let visit = |view: &DocumentView<'_>| {
        if view.key.is_some_and(|(found, _)| found == collection) {
            sum += u64::from(view.body_size) + view.id.len() as u64 + 18;
        }
        std::ops::ControlFlow::Continue(())
    };
    documents(&file, &header, selection, visit).unwrap();
    sum
}

pub(crate) fn verify_sound(files: &dyn Files, path: &Path) {
    let file = CouchFile::open(files, path, OpenMode::Read).unwrap();
    let verification = verify_file(&file).unwrap();
    // Tests' states are not the nodes', and a power cut leaves a commit that did not end.
    let is_wrong = |finding: &&Finding| match finding.scope {
        Scope::VbucketState => false,
        Scope::NewestHeader => finding.severity != Severity::Warning,
        _ => true,
    };
    let wrong: Vec<_> = verification.findings.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn readers_go_on_with_the_state_that_they_have() {
    let files = SimulatedFiles::new();
    let (store, _) = open(files.clone());
    let items = |from: u64| (from..from + 50).map(|seqno| item(&seqno.to_string(), seqno, b"v"));
    commit(&store, batch(VBID, items(1).collect())).unwrap();
    let mut seen = 0;
    let report = store
        .scan(VBID, Seqno(0), true, |found| {
            seen += 1;
            if seen == 10 {
                commit(&store, batch(VBID, items(51).collect())).unwrap();
                compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
                assert!(!files.exists(&Path::new(DIRECTORY).join("7.couch.1")).unwrap());
            }
            assert_eq!(found.value(), b"v");
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((seen, report.high_seqno), (50, Seqno(50)));
    assert_eq!(scan(&store, VBID).len(), 100);
}

#[test]
fn a_compaction_that_has_to_end_changes_nothing() {
    type Interruption = fn(&Store, &CompactionProgress);
    let cases: [(&str, Interruption, usize); 4] = [
        ("aborted", |_, progress| progress.abort(), 40),
        ("deleted", |store, _| store.delete(VBID).unwrap(), 0),
        ("all deleted", |store, _| store.delete_all(|_| ()).unwrap(), 0),
        (
            "made anew",
            |store, _| {
                store.delete(VBID).unwrap();
                commit(store, batch(VBID, vec![item("other", 900, b"v")])).unwrap();
            },
            1,
        ),
    ];
    let phases =
        [CompactionPhase::Copying, CompactionPhase::CatchingUp, CompactionPhase::Switching];
    for (name, interrupt, left) in cases {
        for phase in phases {
            let files = SimulatedFiles::new();
            let (store, _) = open(files.clone());
            let items = (1..=40).map(|seqno| item(&seqno.to_string(), seqno, b"value"));
            commit(&store, batch(VBID, items.collect())).unwrap();
            let progress = CompactionProgress::new();
            let observer = Between(|entered| {
                if entered == phase {
                    interrupt(&store, &progress);
                }
            });
            let request = CompactionRequest::default();
            let outcome = store.compact(VBID, &request, &progress, &observer).unwrap();
            assert!(matches!(outcome, CompactionOutcome::Aborted), "{name} {phase:?} {outcome:?}");
            assert_eq!(scan(&store, VBID).len(), left, "{name} before {phase:?}");
            let names = files.list(Path::new(DIRECTORY)).unwrap();
            assert!(names.iter().all(|name| !name.contains("compact")), "{name}: {names:?}");
            assert!(store.compactions().is_empty());
            drop(store);
            let (store, _) = open(files);
            assert_eq!(scan(&store, VBID).len(), left, "{name} before {phase:?}");
        }
    }
}

#[test]
fn one_compaction_of_a_vbucket_runs_at_a_time_and_one_without_a_file_does_nothing() {
    let (store, _) = open(SimulatedFiles::new());
    let request = CompactionRequest::default();
    let again = || store.compact(VBID, &request, &CompactionProgress::new(), &());
    assert!(matches!(again().unwrap(), CompactionOutcome::NoFile));
    commit(&store, batch(VBID, vec![item("a", 1, b"v")])).unwrap();
    let observer = Between(|phase| {
        assert!(matches!(again().unwrap(), CompactionOutcome::Busy));
        let [(vbid, progress)] = &store.compactions()[..] else { panic!("one is under way") };
        assert_eq!((*vbid, progress.phase()), (VBID, phase));
    });
    compact(&store, VBID, &request, &observer).unwrap();
    compact(&store, VBID, &request, &()).unwrap();
    store.delete(VBID).unwrap();
    assert!(matches!(again().unwrap(), CompactionOutcome::NoFile));
}
