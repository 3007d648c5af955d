//! Damage takes one vBucket: it is out of service with a reason, and what can be done about it.

use std::path::{Path, PathBuf};

use bucket::{
    BucketConfig, CompactionEnd, DamageKind, LifeError, Persistence, Refused, WriteBlock,
};
use document::{Seqno, Vbid, VbucketState};
use platform::simulated::{Fault, FaultError, SimulatedFiles};
use platform::{Files, OpenMode};
use tracing::Level;

use crate::compaction::compact;
use crate::heard_log::HeardLog;
use crate::support::{DIRECTORY, Machine, OTHER, VBID, config, files_config};

pub(crate) const BLOCKED: Refused = Refused::Blocked(WriteBlock::VbucketFileDamaged);

/// A bucket of each kind that keeps files.
pub(crate) fn kinds() -> [BucketConfig; 2] {
    [config(), files_config()]
}

/// Two vBuckets with a document each, on disk.
pub(crate) fn with_two_documents(config: BucketConfig) -> Machine {
    let mut machine = Machine::with(config);
    for vbid in [VBID, OTHER] {
        machine.set(vbid, "key", b"value").unwrap();
    }
    machine.run();
    machine
}

/// The newest file of a vBucket.
pub(crate) fn file_of(files: &SimulatedFiles, vbid: Vbid) -> PathBuf {
    let names = files.list(Path::new(DIRECTORY)).unwrap();
    let prefix = format!("{}.couch.", vbid.0);
    let revision = |name: &String| name.strip_prefix(&prefix)?.parse::<u64>().ok();
    let newest = names.iter().filter_map(revision).max().expect("it has a file");
    Path::new(DIRECTORY).join(format!("{prefix}{newest}"))
}

fn overwrite(files: &SimulatedFiles, vbid: Vbid) -> (PathBuf, Vec<u8>) {
    let path = file_of(files, vbid);
    let damaged = vec![0xee; files.content(&path).unwrap().len()];
    files.insert(&path, &damaged);
    (path, damaged)
}

/// The same after a stop and a start by which the file of the first vBucket was overwritten; gives
/// the file and what is in it.
pub(crate) fn with_damage_at_start(config: BucketConfig) -> (Machine, PathBuf, Vec<u8>) {
    let machine = with_two_documents(config);
    machine.bucket.shut_down().unwrap();
    let (path, damaged) = overwrite(&machine.files, VBID);
    let mut machine = machine.restart();
    machine.run();
    (machine, path, damaged)
}

/// The same while it runs: an active vBucket with a write that cannot be flushed.
pub(crate) fn with_damage_at_run_time(config: BucketConfig) -> (Machine, PathBuf, Vec<u8>) {
    let config = BucketConfig { open_files_max: 1, ..config };
    let mut machine = with_two_documents(config);
    machine.evict(OTHER, "key").unwrap();
    machine.get(OTHER, "key").unwrap();
    let (path, damaged) = overwrite(&machine.files, VBID);
    machine.set(VBID, "key", b"newer").unwrap();
    machine.run();
    assert_eq!(machine.bucket.damaged_vbuckets()[0].kind, DamageKind::RefusesWrites);
    (machine, path, damaged)
}

pub(crate) fn role(machine: &Machine, vbid: Vbid) -> Option<VbucketState> {
    let mut state = None;
    machine.bucket.with_vbucket(vbid, |vbucket| state = Some(vbucket.state()));
    state
}

fn take(machine: &Machine, state: VbucketState) -> Result<(), LifeError> {
    machine.bucket.set_vbucket_state(VBID, state, None)
}

pub(crate) fn assert_set_aside(machine: &Machine, path: &Path, content: &[u8], at: &str) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".damaged");
    assert_eq!(machine.files.content(Path::new(&aside)).as_deref(), Some(content), "{at}");
}

#[test]
fn a_vbucket_out_of_service_says_why_and_others_serve() {
    for config in kinds() {
        let (mut machine, path, damaged) = with_damage_at_start(config);
        let [damage] = machine.bucket.damaged_vbuckets().try_into().unwrap();
        assert_eq!((damage.vbid, damage.kind), (VBID, DamageKind::OutOfService));
        assert!(damage.reason.contains("0.couch.1"), "{}", damage.reason);
        assert_eq!(machine.bucket.statistics().damaged_vbucket_count, 1);
        assert_eq!(machine.get(VBID, "key").unwrap_err(), BLOCKED);
        assert_eq!(machine.set(VBID, "key", b"refused").unwrap_err(), BLOCKED);
        assert_eq!(machine.get(OTHER, "key").unwrap(), b"value");
        let refused = take(&machine, VbucketState::Active).unwrap_err();
        assert!(matches!(refused, LifeError::Damaged { .. }), "{refused:?}");
        assert_eq!(machine.files.content(&path).as_deref(), Some(&damaged[..]));
    }
}

/// A vBucket with a document in memory and one in its file alone; and another.
fn with_a_cold_document(config: BucketConfig) -> Machine {
    let mut machine = with_two_documents(config);
    machine.set(VBID, "cold", &[b'x'; 9000]).unwrap();
    machine.run();
    machine.evict(VBID, "cold").unwrap();
    machine
}

/// As if something was copied over it: the file stays the same one.
fn cut(machine: &Machine, path: &Path, size: u64) {
    let file = machine.files.open(path, OpenMode::ReadWrite).unwrap();
    file.set_size(size).unwrap();
}

#[test]
fn a_file_that_is_cut_while_it_is_in_use_takes_one_vbucket() {
    let sizes: [fn(u64) -> u64; 5] =
        [|_| 0, |_| 1, |_| 5000, |size| size / 4096 * 4096, |size| size - 1];
    for (config, size) in
        kinds().into_iter().flat_map(|kind| sizes.map(|size| (kind.clone(), size)))
    {
        let mut machine = with_a_cold_document(config);
        let path = file_of(&machine.files, VBID);
        let before = machine.files.content(&path).unwrap().len() as u64;
        let size = size(before);
        let at = format!("{size} of {before}, {:?}", machine.config.persistence);
        cut(&machine, &path, size);
        let log = HeardLog::default();
        assert_eq!(
            log.during(|| compact(&mut machine, VBID, Default::default())),
            CompactionEnd::Failed,
            "{at}"
        );
        assert_eq!(log.count(Level::ERROR), 1, "{at}: {log:?}");
        if size < 9000 {
            let cold = machine.get(VBID, "cold").unwrap_err();
            assert_ne!(cold, Refused::NotFound, "{at}");
        }

        let log = HeardLog::default();
        machine.set(VBID, "key", b"newer").unwrap();
        log.during(|| machine.run());
        assert!(log.has(Level::ERROR, "the vBucket cannot be flushed"), "{at}: {log:?}");
        let [damage] = machine.bucket.damaged_vbuckets().try_into().unwrap();
        assert_eq!((damage.vbid, damage.kind), (VBID, DamageKind::RefusesWrites), "{at}");
        assert_eq!(machine.set(VBID, "key", b"refused").unwrap_err(), BLOCKED, "{at}");
        assert_eq!(machine.get(VBID, "key").unwrap(), b"newer", "{at}");
        machine.set(OTHER, "key", b"newer").unwrap();
        machine.run();
        assert_eq!(machine.persisted(OTHER), Seqno(2), "{at}");
        assert_eq!(machine.files.content(&path).unwrap().len() as u64, size, "{at}");

        let mut machine = machine.restart();
        machine.run();
        match machine.bucket.damaged_vbuckets().len() {
            // After a crash the journal is what tells of a lost tail, and it may have all of it.
            0 if machine.config.persistence == Persistence::Files => {}
            0 => assert!(machine.get(VBID, "cold").unwrap() == [b'x'; 9000], "{at}"),
            _ => assert_eq!(machine.get(VBID, "cold").unwrap_err(), BLOCKED, "{at}"),
        }
        assert_eq!(machine.get(OTHER, "key").unwrap(), b"newer", "{at}");
    }
}

#[test]
fn a_missing_file_is_told_in_words() {
    for config in kinds() {
        let machine = with_two_documents(config);
        machine.bucket.shut_down().unwrap();
        machine.files.remove(&file_of(&machine.files, VBID)).unwrap();
        let mut machine = machine.restart();
        machine.run();
        let [damage] = machine.bucket.damaged_vbuckets().try_into().unwrap();
        let reason = &*damage.reason;
        assert!(reason.starts_with("0.couch.1: it was revision 1 with a header at"), "{reason}");
        assert!(reason.contains("and seqno 1, and is missing; put it back"), "{reason}");
    }
}

#[test]
fn a_damaged_copy_that_another_node_has_begins_empty_and_its_file_is_set_aside() {
    for config in kinds() {
        for state in [VbucketState::Replica, VbucketState::Pending] {
            for finds in [with_damage_at_start, with_damage_at_run_time] {
                let at = format!("{state:?} {:?}", config.persistence);
                let (machine, path, damaged) = finds(config.clone());
                take(&machine, state).unwrap();
                assert_eq!(
                    (role(&machine, VBID), machine.high_seqno(VBID)),
                    (Some(state), Seqno(0))
                );
                assert!(machine.bucket.damaged_vbuckets().is_empty(), "{at}");
                assert_set_aside(&machine, &path, &damaged, &at);
                // It stays what it is, also over a crash, and so does the file.
                let mut machine = machine.power_cut(1);
                machine.run();
                assert_eq!(
                    (role(&machine, VBID), machine.high_seqno(VBID)),
                    (Some(state), Seqno(0))
                );
                assert_set_aside(&machine, &path, &damaged, &at);
                take(&machine, VbucketState::Active).unwrap();
                machine.set(VBID, "key", b"new").unwrap();
                machine.run();
                assert_eq!(machine.persisted(VBID), Seqno(1), "{at}");
            }
        }
    }
}

#[test]
fn a_damaged_vbucket_that_is_given_up_keeps_what_it_has() {
    for config in kinds() {
        let (machine, path, damaged) = with_damage_at_start(config.clone());
        let refused = take(&machine, VbucketState::Dead).unwrap_err();
        assert!(matches!(refused, LifeError::Damaged { .. }), "{refused:?}");
        assert_eq!(machine.files.content(&path).as_deref(), Some(&damaged[..]));

        let (machine, path, damaged) = with_damage_at_run_time(config);
        let before = machine.high_seqno(VBID);
        // The journal takes the role, the file cannot.
        let taken = take(&machine, VbucketState::Dead);
        assert!(matches!(taken, Ok(()) | Err(LifeError::NotPersisted)), "{taken:?}");
        assert_eq!(role(&machine, VBID), Some(VbucketState::Dead), "it does not serve");
        assert_eq!(machine.high_seqno(VBID), before, "and whoever wants it can have it");
        assert_eq!(machine.files.content(&path).as_deref(), Some(&damaged[..]));
        machine.bucket.delete_vbucket(VBID).unwrap();
        assert_set_aside(&machine, &path, &damaged, "deleted");
    }
}

#[test]
fn a_vbucket_out_of_service_can_be_deleted_and_made_again() {
    for config in kinds() {
        let (machine, path, damaged) = with_damage_at_start(config);
        machine.bucket.delete_vbucket(VBID).unwrap();
        assert!(matches!(machine.bucket.delete_vbucket(VBID), Err(LifeError::NotHere)));
        assert_set_aside(&machine, &path, &damaged, "deleted");
        let mut machine = machine.power_cut(2);
        machine.run();
        assert_eq!(role(&machine, VBID), None);
        assert!(machine.bucket.damaged_vbuckets().is_empty());
        take(&machine, VbucketState::Active).unwrap();
        machine.set(VBID, "key", b"new").unwrap();
        assert_set_aside(&machine, &path, &damaged, "made again");
    }
}

#[test]
fn a_replica_whose_file_is_damaged_goes_back_to_nothing() {
    for config in kinds() {
        let (machine, path, damaged) = with_damage_at_start(config.clone());
        assert!(machine.bucket.needs_rebuild(VBID));
        assert_eq!(machine.bucket.rollback(VBID, Seqno(0)).unwrap(), Seqno(0));
        assert_eq!(role(&machine, VBID), Some(VbucketState::Replica));
        assert_set_aside(&machine, &path, &damaged, "at a start");

        let config = BucketConfig { open_files_max: 1, ..config };
        let mut machine = with_two_documents(config);
        take(&machine, VbucketState::Replica).unwrap();
        machine.run();
        machine.evict(OTHER, "key").unwrap();
        machine.get(OTHER, "key").unwrap();
        let (path, damaged) = overwrite(&machine.files, VBID);
        assert!(!machine.bucket.needs_rebuild(VBID), "nobody knows yet");
        assert_eq!(machine.bucket.rollback(VBID, Seqno(0)).unwrap(), Seqno(0));
        assert_eq!(role(&machine, VBID), Some(VbucketState::Replica));
        assert_set_aside(&machine, &path, &damaged, "at run time");
        assert!(!machine.bucket.needs_rebuild(VBID));
        machine.bucket.rebuild_replica(VBID, || true).unwrap();
    }
}

#[test]
fn only_copies_of_another_nodes_vbucket_are_built_anew_unasked() {
    use VbucketState::{Active, Dead, Pending, Replica};
    for (config, state) in kinds()
        .into_iter()
        .flat_map(|kind| [Active, Dead, Replica, Pending].map(|state| (kind.clone(), state)))
    {
        let mut machine = with_two_documents(BucketConfig { open_files_max: 1, ..config });
        machine.evict(OTHER, "key").unwrap();
        machine.get(OTHER, "key").unwrap();
        let (path, damaged) = overwrite(&machine.files, VBID);
        machine.set(VBID, "key", b"newer").unwrap();
        // Without a journal this finds the damage, and the role is taken up in memory.
        take(&machine, state).ok();
        machine.run();
        let [damage] = machine.bucket.damaged_vbuckets().try_into().unwrap();
        assert_eq!((damage.vbid, damage.kind), (VBID, DamageKind::RefusesWrites), "{state:?}");
        let is_copy = [Replica, Pending].contains(&state);
        assert_eq!(machine.bucket.needs_rebuild(VBID), is_copy, "{state:?}");
        let built = machine.bucket.rebuild_replica(VBID, || true);
        assert_eq!(role(&machine, VBID), Some(state));
        if is_copy {
            built.unwrap();
            assert_eq!(
                (machine.high_seqno(VBID), machine.bucket.damaged_vbuckets()),
                (Seqno(0), vec![])
            );
            assert_set_aside(&machine, &path, &damaged, "built anew");
        } else {
            let refused = built.unwrap_err();
            assert!(matches!(refused, LifeError::WrongState(found) if found == state), "{refused}");
            assert_eq!(machine.high_seqno(VBID), Seqno(2), "what is in memory stays");
            assert_eq!(machine.files.content(&path).as_deref(), Some(&damaged[..]));
        }
    }
}

#[test]
fn emptying_the_bucket_sets_damaged_files_aside() {
    for config in kinds() {
        for finds in [with_damage_at_start, with_damage_at_run_time] {
            let (mut machine, path, damaged) = finds(config.clone());
            machine.bucket.flush_all().unwrap();
            assert!(machine.bucket.damaged_vbuckets().is_empty());
            assert_set_aside(&machine, &path, &damaged, "emptied");
            machine.set(VBID, "key", b"new").unwrap();
            machine.run();
            assert_eq!(machine.get(VBID, "key").unwrap(), b"new");
        }
    }
}

#[test]
fn whenever_the_power_goes_a_damaged_file_is_kept_and_no_empty_vbucket_becomes_active() {
    type Order = fn(&Machine) -> Result<(), LifeError>;
    let orders: [Order; 2] = [
        |machine| take(machine, VbucketState::Replica),
        |machine| machine.bucket.delete_vbucket(VBID),
    ];
    for config in kinds() {
        for order in orders {
            let mut number = 0;
            loop {
                number += 1;
                let (machine, path, damaged) = with_damage_at_start(config.clone());
                let error = FaultError::Io;
                machine.files.fail(Fault { call: None, number, error, from_then_on: true });
                let is_done = order(&machine).is_ok();
                machine.files.heal();
                let mut machine = machine.power_cut(number);
                machine.run();
                let at = format!("call {number}, {:?}", config.persistence);
                assert_ne!(role(&machine, VBID), Some(VbucketState::Active), "{at}");
                if machine.files.content(&path).as_deref() != Some(&damaged[..]) {
                    assert_set_aside(&machine, &path, &damaged, &at);
                }
                assert_eq!(machine.get(OTHER, "key").unwrap(), b"value", "{at}");
                // What was cut short can be ordered again.
                take(&machine, VbucketState::Replica).unwrap();
                assert_eq!(role(&machine, VBID), Some(VbucketState::Replica), "{at}");
                assert_set_aside(&machine, &path, &damaged, &at);
                if is_done {
                    break;
                }
            }
            assert!(number > 6, "{number} calls");
        }
    }
}

#[test]
fn what_cannot_be_made_anew_stays_out_of_service_and_is_tried_again() {
    for config in kinds() {
        let mut number = 0;
        loop {
            number += 1;
            let (machine, path, damaged) = with_damage_at_start(config.clone());
            let error = FaultError::NoSpace;
            machine.files.fail(Fault { call: None, number, error, from_then_on: true });
            let made = machine.bucket.rebuild_replica(VBID, || true);
            machine.files.heal();
            if made.is_ok() {
                break;
            }
            assert!(machine.bucket.needs_rebuild(VBID), "call {number}");
            assert_eq!(role(&machine, VBID), None, "call {number}");
            machine.bucket.rebuild_replica(VBID, || true).unwrap();
            assert_eq!(role(&machine, VBID), Some(VbucketState::Replica));
            assert_set_aside(&machine, &path, &damaged, &format!("call {number}"));
        }
        assert!(number > 6, "{number} calls");
    }
}

#[test]
fn what_could_not_be_made_anew_and_is_emptied_is_not_deleted_by_a_start() {
    for config in kinds() {
        let (mut number, mut emptied_count) = (0, 0);
        loop {
            number += 1;
            let (mut machine, ..) = with_damage_at_start(config.clone());
            let error = FaultError::Io;
            machine.files.fail(Fault { call: None, number, error, from_then_on: true });
            let made = machine.bucket.rebuild_replica(VBID, || true);
            machine.files.heal();
            if made.is_ok() {
                break;
            }
            // A replica stays what it is: its active copy is elsewhere.
            machine.bucket.flush_all().unwrap();
            assert_eq!(role(&machine, VBID), None, "call {number}");
            let refused = take(&machine, VbucketState::Active).unwrap_err();
            assert!(matches!(refused, LifeError::Damaged { .. }), "{refused:?}");
            machine.bucket.flush_all().unwrap();
            if role(&machine, VBID).is_some() {
                emptied_count += 1;
                machine.set(VBID, "key", b"new").unwrap();
                machine.run();
                let mut machine = machine.restart();
                machine.run();
                assert_eq!(machine.get(VBID, "key").as_deref(), Ok(&b"new"[..]), "call {number}");
            }
        }
        assert!(emptied_count > 6, "{emptied_count} of {number} calls");
    }
}
