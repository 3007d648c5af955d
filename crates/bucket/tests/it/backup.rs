//! What a backup holds: everything that was answered, or it does not begin.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use bucket::{
    ApplyConfig, BucketConfig, ConflictResolution, DamageKind, FreezeError, RestoredBucket,
};
use document::{Seqno, Vbid, VbucketState};
use platform::Files;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

use crate::damage::{BLOCKED, file_of, kinds, with_damage_at_start, with_two_documents};
use crate::support::{DIRECTORY, Machine, OTHER, VBID, config};

/// A bucket whose files are behind for a while.
fn lazy_config() -> BucketConfig {
    let apply = ApplyConfig { cycle: Duration::from_secs(10), applier_count: 1 };
    BucketConfig { apply, ..config() }
}

fn applied(machine: &Machine, vbid: Vbid) -> Seqno {
    let mut seqno = Seqno(0);
    machine.bucket.with_vbucket(vbid, |vbucket| seqno = vbucket.applied_seqno());
    seqno
}

#[test]
fn a_vbucket_out_of_service_is_missing_in_no_backup() {
    for config in kinds() {
        let (machine, _, _) = with_damage_at_start(config);
        let Err(refused) = machine.bucket.freeze(|_| true) else {
            panic!("a backup without vBucket 0")
        };
        let text = refused.to_string();
        assert!(text.contains("vBucket 0") && text.contains("0.couch.1"), "{text}");
        machine.bucket.delete_vbucket(VBID).unwrap();
        let frozen = machine.bucket.freeze(|_| true).unwrap();
        let held: Vec<Vbid> = frozen.vbuckets().iter().map(|entry| entry.vbid).collect();
        assert_eq!((held, frozen.deleted()), (vec![OTHER], &[VBID][..]));
    }
}

#[test]
fn a_backup_of_some_vbuckets_asks_nothing_of_the_others() {
    for config in kinds() {
        let (machine, _, _) = with_damage_at_start(config);
        let frozen = machine.bucket.freeze(|vbid| vbid == OTHER).unwrap();
        let held: Vec<Vbid> = frozen.vbuckets().iter().map(|entry| entry.vbid).collect();
        assert_eq!((held, frozen.deleted(), frozen.empty()), (vec![OTHER], &[][..], &[][..]));
        assert_eq!(frozen.vbuckets()[0].facts.state, Some(VbucketState::Active));
    }
}

#[test]
fn a_vbucket_that_is_read_late_has_the_role_of_the_beginning() {
    let mut machine = with_two_documents(BucketConfig { open_files_max: 1, ..config() });
    machine.run();
    let frozen = machine.bucket.freeze(|_| true).unwrap();
    let late: Vec<bool> = frozen.vbuckets().iter().map(|entry| entry.is_late).collect();
    assert_eq!(late, [false, true]);
    machine.bucket.take_over(OTHER, VbucketState::Replica).unwrap();
    assert!(frozen.write(VBID, |_| Ok(())).unwrap());
    let refused = frozen.write(OTHER, |_| Ok(())).unwrap_err();
    assert!(matches!(refused, FreezeError::OtherRole(OTHER)), "{refused}");
    machine.bucket.take_over(OTHER, VbucketState::Active).unwrap();
    assert!(frozen.write(OTHER, |_| Ok(())).unwrap());
}

#[test]
fn a_backup_that_meets_a_damaged_file_takes_note_of_it() {
    let mut machine = with_two_documents(BucketConfig { open_files_max: 1, ..lazy_config() });
    machine.advance(Duration::from_secs(60));
    let path = file_of(&machine.files, VBID);
    machine.evict(OTHER, "key").unwrap();
    machine.get(OTHER, "key").unwrap();
    machine.files.insert(&path, &vec![0xee; 8192]);
    machine.set(VBID, "key", b"waits").unwrap();
    machine.run();
    assert!(machine.bucket.damaged_vbuckets().is_empty(), "nobody has looked");
    assert!(machine.bucket.freeze(|_| true).is_err());
    assert_eq!(machine.bucket.damaged_vbuckets()[0].kind, DamageKind::RefusesWrites);
    assert_eq!(machine.set(VBID, "key", b"refused").unwrap_err(), BLOCKED);
}

#[test]
fn what_a_backup_brings_to_the_files_may_leave_memory() {
    let mut machine = Machine::with(lazy_config());
    machine.set(VBID, "key", b"value").unwrap();
    machine.delete(VBID, "key").unwrap();
    machine.set(VBID, "other", b"value").unwrap();
    machine.run();
    assert_eq!(applied(&machine, VBID), Seqno(0));
    drop(machine.bucket.freeze(|_| true).unwrap());
    assert_eq!(applied(&machine, VBID), Seqno(3));
    assert_eq!(machine.bucket.statistics().tombstone_count, 0);
}

#[test]
fn a_backup_that_begins_while_the_journal_is_full_has_the_newest_writes() {
    let mut machine = Machine::with(lazy_config());
    for number in 0..60 {
        machine.set(VBID, &format!("key-{number}"), &vec![b'x'; 100_000]).unwrap();
        machine.set(OTHER, &format!("key-{number}"), &vec![b'x'; 100_000]).unwrap();
    }
    let frozen = machine.bucket.freeze(|_| true).unwrap();
    let seqnos: Vec<Seqno> = frozen.vbuckets().iter().map(|entry| entry.facts.high_seqno).collect();
    assert_eq!(seqnos, [Seqno(60); 2]);
    assert!(machine.bucket.statistics().journal_full_waits > 0, "the journal was full");
}

#[test]
fn a_backup_that_begins_while_the_bucket_is_emptied_has_what_is_left() {
    for config in kinds() {
        let mut machine = with_two_documents(config);
        machine.set(VBID, "key", b"newer").unwrap();
        let is_emptied = Cell::new(false);
        let frozen = machine.bucket.freeze(|vbid| {
            // Behind the look at how far the first vBucket has to be flushed.
            if vbid == OTHER && !is_emptied.replace(true) {
                machine.bucket.flush_all().unwrap();
            }
            true
        });
        let frozen = frozen.unwrap();
        let counts: Vec<u64> = frozen.vbuckets().iter().map(|it| it.facts.document_count).collect();
        assert!(counts.iter().all(|count| *count == 0), "{counts:?}");
    }
}

#[test]
fn a_backup_without_the_newest_writes_does_not_begin() {
    for config in kinds() {
        let mut machine = with_two_documents(config);
        machine.set(VBID, "key", b"newer").unwrap();
        let error = FaultError::Io;
        machine.files.fail(Fault { call: Some(Call::Sync), number: 1, error, from_then_on: true });
        let Err(refused) = machine.bucket.freeze(|_| true) else {
            panic!("a backup without a write")
        };
        assert!(refused.to_string().contains("vBucket 0"), "{refused}");
        machine.files.heal();
        machine.advance(Duration::from_secs(1));
        let frozen = machine.bucket.freeze(|_| true).unwrap();
        assert_eq!(frozen.vbuckets()[0].facts.high_seqno, Seqno(2));
    }
}

#[test]
fn nothing_is_written_in_the_place_of_a_file_that_is_not_believed() {
    let mut machine = with_two_documents(BucketConfig { open_files_max: 1, ..lazy_config() });
    machine.advance(Duration::from_secs(60));
    let path = file_of(&machine.files, VBID);
    machine.set(VBID, "other", b"in the journal alone").unwrap();
    machine.run();
    machine.files.insert(&path, &vec![0xee; 8192]);
    let mut machine = machine.power_cut(0);
    machine.run();
    machine.bucket.compact_all().unwrap();
    machine.run();
    assert!(machine.bucket.freeze(|_| true).is_err());
    assert_eq!(file_of(&machine.files, VBID), path);
    assert_eq!(machine.get(VBID, "other").unwrap_err(), BLOCKED);
}

#[test]
fn what_was_deleted_is_so_after_a_restore_too_and_the_same_version_wins() {
    let files = SimulatedFiles::new();
    let directory = Path::new(DIRECTORY);
    files.create_directories(directory).unwrap();
    let restored = BucketConfig { conflict_resolution: Some(ConflictResolution::Lww), ..config() };
    let content = RestoredBucket { manifest: None, deleted: &[Vbid(1), Vbid(3)] };
    bucket::describe_restored(&files, directory, &restored, &content).unwrap();
    let mut machine = Machine::begin(files, config()).unwrap();
    machine.run();
    let mut there = Vec::new();
    machine.bucket.for_each_vbucket(|vbid, _| there.push(vbid));
    assert_eq!(there, [Vbid(0), Vbid(2)]);
    assert_eq!(machine.bucket.conflict_resolution(), ConflictResolution::Lww);
}
