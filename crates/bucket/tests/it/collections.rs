//! Collections of a bucket: over restarts, dropped ones, and in the files.

use std::time::Duration;

use bucket::{
    Bucket, BucketConfig, BucketType, EvictionConfig, Incoming, ManifestChangeError, Refused,
    RestoredBucket, Write, manifest_json,
};
use document::{
    Cas, CollectionId, Deletion, ItemBuilder, ItemMeta, Key, Manifest, ManifestCollection,
    ManifestEdit, RevSeqno, Seqno, Vbid, VbucketState,
};
use platform::seeds::seeds;
use platform::simulated::{Call, Fault, FaultError};
use vbucket::eviction::EvictionPolicy;
use vbucket::{Mutation, Received, ReceivedSnapshot};

use crate::compaction::compact;
use crate::damage::{kinds, with_damage_at_run_time};
use crate::prepares;
use crate::support::{Machine, OTHER, Unanswered, VBID, answered, config, files_config, written};

const FRUIT: CollectionId = CollectionId(8);

pub(crate) fn create(bucket: &Bucket, collection: &str) {
    let (scope, max_ttl, history) = ("_default", None, false);
    let edit = ManifestEdit::CreateCollection { scope, collection, max_ttl, history };
    bucket.edit_manifest(edit).unwrap();
}

pub(crate) fn drop_collection(bucket: &Bucket, collection: &str) {
    let edit = ManifestEdit::DropCollection { scope: "_default", collection };
    bucket.edit_manifest(edit).unwrap();
}

pub(crate) fn set(machine: &mut Machine, key: &[u8]) -> Result<Mutation, Unanswered> {
    let write = Write::set(VBID, Key::from_encoded(key).unwrap(), Incoming::plain(b"value"));
    let mut stored = written(machine.bucket.store(&mut machine.session, write));
    if stored == Err(Unanswered::Waits) {
        machine.run();
        stored = written(machine.bucket.store(&mut machine.session, write));
    }
    stored
}

fn exists(machine: &mut Machine, key: &[u8]) -> Result<bool, Refused> {
    let key = Key::from_encoded(key).unwrap();
    for _ in 0..2 {
        match answered(machine.bucket.get(&mut machine.session, VBID, key)) {
            Ok(_) => return Ok(true),
            Err(Unanswered::No(Refused::NotFound)) => return Ok(false),
            Err(Unanswered::No(refused)) => return Err(refused),
            Err(Unanswered::Waits) => machine.run(),
        }
    }
    panic!("the document is not found and not missing");
}

/// Documents of the collection in the vBucket, and of the default one.
fn counts(machine: &Machine) -> (Option<u64>, usize) {
    let mut counts = (None, 0);
    machine.bucket.with_vbucket(VBID, |vbucket| {
        let named = vbucket.collection(FRUIT).map(|it| it.item_count());
        counts = (named, vbucket.default_collection_count());
    });
    counts
}

fn document_count(machine: &Machine) -> usize {
    let mut count = 0;
    machine.bucket.with_vbucket(VBID, |vbucket| count = vbucket.document_count());
    count
}

#[test]
fn collections_and_their_documents_come_back() {
    for config in [config(), files_config()] {
        for seed in seeds(10) {
            let mut machine = Machine::with(config.clone());
            assert_eq!(exists(&mut machine, b"\x08k"), Err(Refused::UnknownCollection));
            create(&machine.bucket, "fruit");
            set(&mut machine, b"\x08k").unwrap();
            set(&mut machine, b"\x00k").unwrap();
            machine.run();
            let mut machine = match seed % 3 {
                0 => machine.stop_and_start(),
                1 => machine.restart(),
                _ => machine.power_cut(seed),
            };
            machine.run();
            assert_eq!(machine.bucket.manifest().uid, 1, "seed {seed}");
            assert_eq!(exists(&mut machine, b"\x08k"), Ok(true), "seed {seed}");
            assert_eq!(counts(&machine), (Some(1), 1), "seed {seed}");
            let before = machine.high_seqno(VBID);
            machine.bucket.edit_manifest(ManifestEdit::CreateScope { scope: "s" }).unwrap();
            assert_eq!(machine.high_seqno(VBID), before.next(), "one event, whoever is told again");
        }
    }
}

#[test]
fn a_drop_that_was_refused_is_not_carried_out_by_a_start() {
    let io = (Call::SyncDirectory, FaultError::Io);
    for (call, error) in [io, (Call::Rename, FaultError::LateRename)] {
        for (from_then_on, is_clean) in [(false, false), (false, true), (true, false)] {
            let mut machine = Machine::new();
            create(&machine.bucket, "fruit");
            machine.files.fail(Fault { call: Some(call), number: 1, error, from_then_on });
            let edit = ManifestEdit::DropCollection { scope: "_default", collection: "fruit" };
            let refused = machine.bucket.edit_manifest(edit);
            assert!(matches!(refused, Err(ManifestChangeError::Failed(_))));
            if from_then_on {
                let again = machine.bucket.edit_manifest(edit);
                assert!(matches!(again, Err(ManifestChangeError::Failed(_))));
                machine.run();
                machine.files.heal();
                machine.advance(Duration::from_secs(1));
            }
            set(&mut machine, b"\x08k").unwrap();
            machine.run();
            let mut machine =
                if is_clean { machine.stop_and_start() } else { machine.power_cut(0) };
            machine.run();
            assert_eq!(machine.bucket.manifest().uid, 1, "{call:?}");
            assert_eq!(exists(&mut machine, b"\x08k"), Ok(true), "{call:?}");
            machine.bucket.edit_manifest(edit).unwrap();
            assert_eq!(exists(&mut machine, b"\x08k"), Err(Refused::UnknownCollection));
        }
    }
}

/// A document of a replica comes from its active copy.
fn receive(machine: &Machine, key: &[u8], is_deletion: bool) {
    let seqno = Seqno(machine.high_seqno(VBID).0 + 1);
    let deletion = is_deletion.then_some(Deletion::Explicit);
    let meta = ItemMeta { deletion, ..ItemMeta::default() };
    let builder = ItemBuilder::new(Key::from_encoded(key).unwrap(), meta, b"value");
    let received = Received { builder, cas: Cas(seqno.0), seqno, revision: RevSeqno(9) };
    let snapshot = ReceivedSnapshot {
        start: seqno,
        end: seqno,
        is_disk: false,
        begins_checkpoint: true,
        max_visible: None,
        high_completed: None,
        high_prepared: None,
        purge_seqno: None,
    };
    prepares::announce(&machine.bucket, snapshot);
    let bucket = &machine.bucket;
    let done = bucket.on_vbucket(VBID, |vb, now, effects| vb.receive(received, now, effects));
    assert_eq!(done, Some(Ok(())));
}

#[test]
fn documents_of_a_replica_under_full_eviction_are_counted_by_its_file() {
    for config in [config(), files_config()] {
        let eviction = EvictionConfig { policy: EvictionPolicy::Full, ..config.eviction };
        let mut machine = Machine::with(BucketConfig { eviction, ..config });
        create(&machine.bucket, "fruit");
        let keys = [b"\x00a", b"\x00b", b"\x00c", b"\x08a", b"\x08b", b"\x08c"];
        for key in keys {
            set(&mut machine, key).unwrap();
        }
        machine.run();
        machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
        prepares::begin(&machine.bucket);
        for key in [b"\x00a", b"\x08a", b"\x08b"] {
            receive(&machine, key, true);
        }
        machine.run();
        assert_eq!((counts(&machine), document_count(&machine)), ((Some(1), 2), 3));
        for key in [b"\x00c", b"\x08c"] {
            let key = Key::from_encoded(key).unwrap();
            answered(machine.bucket.evict(&mut machine.session, VBID, key)).unwrap();
        }
        // The filter takes the tombstones in the file for documents.
        for key in [b"\x00a", b"\x08a", b"\x08b"] {
            receive(&machine, key, false);
        }
        assert_eq!((counts(&machine), document_count(&machine)), ((Some(2), 2), 4));
        machine.run();
        assert_eq!((counts(&machine), document_count(&machine)), ((Some(3), 3), 6));
        machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
        drop_collection(&machine.bucket, "fruit");
        machine.run();
        machine.advance(Duration::from_secs(5));
        assert_eq!((counts(&machine), document_count(&machine)), ((None, 3), 3));
    }
}

#[test]
fn events_are_no_documents_behind_a_start_or_when_keys_come_back() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let eviction = EvictionConfig { policy, ..config().eviction };
        let mut machine = Machine::with(BucketConfig { eviction, ..config() });
        create(&machine.bucket, "fruit");
        for key in [b"\x00a", b"\x08a"] {
            set(&mut machine, key).unwrap();
        }
        let mut machine = machine.stop_and_start();
        machine.run();
        let evicted = |machine: &Machine| machine.bucket.statistics().evicted_count;
        assert_eq!((document_count(&machine), evicted(&machine)), (2, 0), "{policy:?}");
        machine.bucket.set_eviction_policy(EvictionPolicy::Full);
        let key = Key::from_encoded(b"\x08a").unwrap();
        answered(machine.bucket.evict(&mut machine.session, VBID, key)).unwrap();
        assert_eq!((document_count(&machine), evicted(&machine)), (2, 1), "{policy:?}");
        machine.bucket.set_eviction_policy(EvictionPolicy::ValueOnly);
        machine.run();
        assert_eq!((document_count(&machine), evicted(&machine)), (2, 0), "{policy:?}");
    }
}

#[test]
fn what_is_dropped_is_hidden_at_once_and_erased_from_memory_and_file() {
    for config in [config(), files_config()] {
        for drops_before_flush in [true, false] {
            let mut machine = Machine::with(config.clone());
            create(&machine.bucket, "fruit");
            for number in 0..200_u8 {
                set(&mut machine, &[8, b'k', number]).unwrap();
            }
            set(&mut machine, b"\x00k").unwrap();
            if !drops_before_flush {
                machine.run();
            }
            drop_collection(&machine.bucket, "fruit");
            assert_eq!(exists(&mut machine, b"\x08k\x01"), Err(Refused::UnknownCollection));
            assert_eq!(
                set(&mut machine, b"\x08new"),
                Err(Unanswered::No(Refused::UnknownCollection))
            );
            machine.run();
            machine.advance(Duration::from_secs(5));
            machine.run();
            assert_eq!((counts(&machine), document_count(&machine)), ((None, 1), 1));
            let done = machine.bucket.compaction_statistics();
            assert!(done.done > 0 && done.of_dropped_collections == 200, "{done:?}");
            let mut machine = machine.stop_and_start();
            machine.run();
            assert_eq!(document_count(&machine), 1);
            create(&machine.bucket, "fruit");
            let manifest = machine.bucket.manifest();
            let again = manifest.scopes[0].collections.last().unwrap();
            assert_ne!(again.id, FRUIT, "another id, and nothing in it");
            assert_eq!(exists(&mut machine, b"\x00k"), Ok(true));
        }
    }
}

#[test]
fn what_is_dropped_is_erased_also_behind_a_vbucket_that_cannot_be_flushed() {
    for config in kinds() {
        let (mut machine, ..) = with_damage_at_run_time(config);
        for name in ["fruit", "nuts"] {
            create(&machine.bucket, name);
        }
        for key in [b"\x08k", b"\x09k"] {
            let key = Key::from_encoded(key).unwrap();
            let write = Write::set(OTHER, key, Incoming::plain(b"value"));
            written(machine.bucket.store(&mut machine.session, write)).unwrap();
        }
        machine.run();
        let mut count = |name| {
            drop_collection(&machine.bucket, name);
            machine.advance(Duration::from_secs(5));
            let mut count = 0;
            machine.bucket.with_vbucket(OTHER, |vbucket| count = vbucket.document_count());
            count
        };
        assert_eq!(count("fruit"), 2);
        assert_eq!(count("nuts"), 1);
    }
}

#[test]
fn what_a_crash_has_left_of_a_dropped_collection_is_hidden_and_erased() {
    for seed in seeds(10) {
        let mut machine = Machine::with(config());
        create(&machine.bucket, "fruit");
        for number in 0..50_u8 {
            set(&mut machine, &[8, b'k', number]).unwrap();
        }
        machine.run();
        drop_collection(&machine.bucket, "fruit");
        let mut machine = machine.power_cut(seed);
        machine.run();
        machine.advance(Duration::from_secs(5));
        machine.run();
        assert_eq!(exists(&mut machine, b"\x08k\x01"), Err(Refused::UnknownCollection));
        assert_eq!(document_count(&machine), 0, "seed {seed}");
        assert_eq!(machine.bucket.compaction_statistics().of_dropped_collections, 50);
    }
}

#[test]
fn tombstones_and_events_survive_a_compaction_that_has_nothing_to_do_with_them() {
    let mut machine = Machine::with(files_config());
    create(&machine.bucket, "fruit");
    create(&machine.bucket, "nuts");
    set(&mut machine, b"\x08k").unwrap();
    drop_collection(&machine.bucket, "nuts");
    machine.run();
    compact(&mut machine, VBID, Default::default());
    let mut machine = machine.stop_and_start();
    machine.run();
    assert_eq!(counts(&machine).0, Some(1));
    assert_eq!(exists(&mut machine, b"\x09k"), Err(Refused::UnknownCollection));
}

#[test]
fn a_vbucket_that_becomes_active_or_empty_follows_the_manifest() {
    let mut machine = Machine::with(config());
    machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
    create(&machine.bucket, "fruit");
    assert_eq!(counts(&machine).0, None, "a replica follows events");
    machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
    assert_eq!(counts(&machine).0, Some(0));
    set(&mut machine, b"\x08k").unwrap();
    machine.bucket.flush_all().unwrap();
    assert_eq!(counts(&machine), (Some(0), 0));
    set(&mut machine, b"\x08k").unwrap();
}

#[test]
fn an_ephemeral_bucket_keeps_its_manifest_and_none_of_its_documents() {
    let kind = BucketConfig { bucket_type: Some(BucketType::Ephemeral), ..config() };
    let mut machine = Machine::with(kind);
    create(&machine.bucket, "fruit");
    set(&mut machine, b"\x08k").unwrap();
    machine.run();
    let mut machine = machine.stop_and_start();
    machine.run();
    // Another node may hold a replica: who has nothing writes no history before it is told to.
    assert_eq!(machine.high_seqno(VBID), Seqno(0));
    machine.bucket.assume_topology(&vec![vec![Some("a".to_owned())]]);
    assert_eq!(exists(&mut machine, b"\x08k"), Ok(false));
    drop_collection(&machine.bucket, "fruit");
    machine.run();
    assert_eq!(exists(&mut machine, b"\x08k"), Err(Refused::UnknownCollection));
}

#[test]
fn a_bucket_whose_files_come_from_elsewhere_has_their_collections() {
    let mut machine = Machine::with(files_config());
    machine.bucket.edit_manifest(ManifestEdit::CreateScope { scope: "s" }).unwrap();
    create(&machine.bucket, "fruit");
    set(&mut machine, b"\x09k").unwrap();
    machine.run();
    machine.bucket.shut_down().unwrap();
    let manifest = std::path::Path::new(crate::support::DIRECTORY).join("manifest.json");
    platform::Files::remove(&machine.files, &manifest).unwrap();
    let mut machine = machine.restart();
    machine.run();
    let manifest = machine.bucket.manifest();
    assert_eq!((manifest.uid, manifest.collections().count()), (2, 2));
    assert!(manifest.scope("s").is_some());
    assert_eq!(exists(&mut machine, b"\x09k"), Ok(true));
}

/// Tries to make a collection.
fn try_create(bucket: &Bucket, collection: &str) -> Result<u64, ManifestChangeError> {
    let (scope, max_ttl, history) = ("_default", None, false);
    let edit = ManifestEdit::CreateCollection { scope, collection, max_ttl, history };
    bucket.edit_manifest(edit).map(|manifest| manifest.uid)
}

fn is_loading<T>(result: Result<T, ManifestChangeError>) -> bool {
    matches!(result, Err(ManifestChangeError::Loading))
}

#[test]
fn what_files_from_elsewhere_know_is_known_before_a_collection_gets_an_id() {
    let machine = Machine::with(files_config());
    create(&machine.bucket, "fruit");
    create(&machine.bucket, "bread");
    machine.bucket.shut_down().unwrap();
    let known = machine.bucket.manifest();
    let path = std::path::Path::new(crate::support::DIRECTORY).join("manifest.json");
    platform::Files::remove(&machine.files, &path).unwrap();
    let machine = machine.restart();
    assert!(!machine.bucket.knows_its_manifest());
    assert!(is_loading(try_create(&machine.bucket, "orders")));
    assert!(is_loading(machine.bucket.set_manifest(Manifest { uid: 9, ..Manifest::default() })));
    // A start that is cut off leaves the next one what there is to find.
    let mut machine = machine.restart();
    assert!(is_loading(try_create(&machine.bucket, "orders")));
    machine.run();
    assert_eq!(machine.bucket.manifest(), known);
    assert_eq!(try_create(&machine.bucket, "orders").unwrap(), 3);
    assert_eq!(machine.bucket.manifest().next_collection, 11);
    // From here on the bucket has a manifest of its own, which says all.
    let machine = machine.stop_and_start();
    assert_eq!(try_create(&machine.bucket, "sweets").unwrap(), 4);
}

#[test]
fn a_restored_bucket_has_the_manifest_of_the_backup_or_what_a_vbucket_knows_beyond() {
    let machine = Machine::with(files_config());
    create(&machine.bucket, "fruit");
    let (older, files) = (machine.bucket.manifest(), machine.files.clone());
    create(&machine.bucket, "bread");
    machine.bucket.shut_down().unwrap();
    let content = RestoredBucket { manifest: Some((*older).clone()), deleted: &[] };
    let directory = std::path::Path::new(crate::support::DIRECTORY);
    bucket::describe_restored(&files, directory, &files_config(), &content).unwrap();
    let mut machine = machine.restart();
    assert_eq!(machine.bucket.manifest(), older);
    assert!(is_loading(try_create(&machine.bucket, "orders")));
    machine.run();
    assert_eq!(
        (machine.bucket.manifest().uid, try_create(&machine.bucket, "orders").unwrap()),
        (2, 3)
    );
    let uids = |machine: &Machine| {
        let mut uids = Vec::new();
        machine.bucket.for_each_vbucket(|_: Vbid, vbucket| uids.push(vbucket.manifest_uid()));
        uids
    };
    assert_eq!(uids(&machine), [3; 4]);
}

#[test]
fn a_manifest_of_others_is_taken_if_it_follows() {
    let machine = Machine::new();
    create(&machine.bucket, "fruit");
    let ours = manifest_json::encode(&machine.bucket.manifest());
    let same = manifest_json::decode(ours.as_bytes()).unwrap();
    machine.bucket.set_manifest(same.clone()).unwrap();
    assert!(machine.bucket.set_manifest(Manifest::default()).is_err());
    machine.bucket.set_manifest(Manifest { uid: 0x1f, ..same }).unwrap();
    assert_eq!(machine.bucket.manifest().uid, 0x1f);
    let mut uids = Vec::new();
    machine.bucket.for_each_vbucket(|_: Vbid, vbucket| uids.push(vbucket.manifest_uid()));
    assert_eq!(uids, [0x1f; 4]);
}

/// Bytes of all files of the bucket.
fn disk_bytes(machine: &Machine) -> usize {
    let directory = std::path::Path::new(crate::support::DIRECTORY);
    let names = platform::Files::list(&machine.files, directory).unwrap();
    names
        .iter()
        .filter_map(|name| machine.files.content(&directory.join(name)))
        .map(|it| it.len())
        .sum()
}

#[test]
fn a_collection_that_holds_nothing_takes_less_than_1_kib_of_each_file() {
    const COUNT: usize = 1000;
    let mut machine = Machine::with(files_config());
    machine.run();
    let before = disk_bytes(&machine);
    let mut manifest = Manifest { uid: 1, ..Manifest::default() };
    manifest.scopes[0].collections.extend((0..COUNT).map(|number| ManifestCollection {
        id: CollectionId(8 + u32::try_from(number).unwrap()),
        name: format!("collection-{number}"),
        max_ttl: None,
        history: false,
    }));
    machine.bucket.set_manifest(manifest.continuing(&Manifest::default())).unwrap();
    machine.run();
    let mut vbucket_count = 0;
    machine.bucket.for_each_vbucket(|_, vbucket| {
        assert_eq!(vbucket.collections().count(), COUNT);
        vbucket_count += 1;
    });
    let taken = disk_bytes(&machine) - before;
    assert!(taken <= COUNT * vbucket_count * 1024, "{taken} bytes in {vbucket_count} vBuckets");
    let mut machine = machine.stop_and_start();
    machine.run();
    set(&mut machine, b"\x08k").unwrap();
}

#[test]
fn the_default_collection_limits_the_lives_of_its_documents_when_its_manifest_says_so() {
    let with = |uid: u64, max_ttl: &str| {
        let json = format!(
            r#"{{"uid":"{uid:x}","scopes":[{{"name":"_default","uid":"0","collections":[
                {{"name":"_default","uid":"0"{max_ttl}}},{{"name":"fruit","uid":"8"}}]}}]}}"#
        );
        manifest_json::decode(json.as_bytes()).unwrap()
    };
    let mut machine = Machine::with(BucketConfig { max_ttl_seconds: 60, ..config() });
    let lives = |machine: &Machine| {
        [CollectionId::DEFAULT, FRUIT].map(|collection| machine.bucket.max_ttl(collection))
    };
    assert_eq!(lives(&machine), [Some(60), Some(60)]);
    for (uid, said, own) in [
        (1, r#","maxTTL":5"#, Some(5)),
        (2, r#","maxTTL":0"#, None),
        (3, "", Some(60)),
        (4, r#","maxTTL":7"#, Some(7)),
    ] {
        machine.bucket.set_manifest(with(uid, said)).unwrap();
        assert_eq!(lives(&machine), [own, Some(60)], "{said}");
    }
    machine.bucket.set_max_ttl_seconds(90);
    assert_eq!(lives(&machine), [Some(7), Some(90)]);
    machine.run();
    let machine = machine.restart();
    assert_eq!(lives(&machine), [Some(7), Some(60)], "as the manifest and the settings say");
}
