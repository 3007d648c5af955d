//! A bucket whose files follow its journal: what is where, and what that means for everybody.

use std::path::Path;
use std::time::Duration;

use bucket::{
    ApplyConfig, BackfillOrder, BucketConfig, Completion, DamageKind, EvictionConfig, Persistence,
};
use bucket::{Refused, WriteBlock};
use document::{Item, Seqno, Vbid};
use platform::Files;
use platform::simulated::{Call, Fault, FaultError};
use storage::{JournalOptions, StorageError};
use vbucket::eviction::EvictionPolicy;

use crate::support::{DIRECTORY, Machine, No, OTHER, VBID, Waits, config, files_config};

const CYCLE: Duration = Duration::from_secs(10);

/// A bucket whose files are behind for a while.
fn lazy_config() -> BucketConfig {
    BucketConfig { apply: ApplyConfig { cycle: CYCLE, applier_count: 2 }, ..config() }
}

/// A bucket with documents that are in the journal alone.
fn journalled() -> Machine {
    let mut machine = Machine::with(lazy_config());
    for number in 1..=3 {
        machine.set(VBID, "key", format!("{number}").as_bytes()).unwrap();
        machine.set(OTHER, &format!("key-{number}"), b"value").unwrap();
        machine.run();
    }
    assert_eq!(applied(&machine, VBID), Seqno(0));
    machine
}

fn applied(machine: &Machine, vbid: Vbid) -> Seqno {
    let mut seqno = Seqno(0);
    machine.bucket.with_vbucket(vbid, |vbucket| seqno = vbucket.applied_seqno());
    seqno
}

fn check_journalled(machine: &mut Machine, at: &str) {
    assert_eq!(machine.get(VBID, "key").unwrap(), b"3", "{at}");
    for number in 1..=3 {
        assert_eq!(machine.get(OTHER, &format!("key-{number}")).unwrap(), b"value", "{at}");
    }
    for vbid in [VBID, OTHER] {
        assert_eq!(machine.persisted(vbid), Seqno(3), "{at}");
        assert_eq!(machine.high_seqno(vbid), Seqno(3), "{at}");
    }
}

#[test]
fn a_write_is_persisted_when_the_journal_has_it_and_leaves_memory_when_the_file_has_it() {
    let mut machine = journalled();
    check_journalled(&mut machine, "in the journal");
    assert!(machine.evict(VBID, "key").is_err(), "nobody reads the journal for it");
    machine.advance(CYCLE * 4);
    assert_eq!(applied(&machine, VBID), Seqno(3));
    machine.evict(VBID, "key").unwrap();
    assert_eq!(machine.bucket.statistics().ejected_count, 1);
    check_journalled(&mut machine, "in the file");
}

#[test]
fn a_tombstone_hides_the_document_in_the_file_until_the_file_has_it() {
    let mut machine = journalled();
    machine.advance(CYCLE * 4);
    machine.delete(VBID, "key").unwrap();
    machine.run();
    assert_eq!(machine.persisted(VBID), Seqno(4));
    assert_eq!(machine.bucket.statistics().tombstone_count, 1);
    assert_eq!(machine.get(VBID, "key"), Err(No(Refused::NotFound)));
    machine.advance(CYCLE * 4);
    assert_eq!(machine.bucket.statistics().tombstone_count, 0);
    assert_eq!(machine.get(VBID, "key"), Err(No(Refused::NotFound)));
}

#[test]
fn what_only_the_journal_has_is_there_after_a_power_cut() {
    for seed in 0..20 {
        let mut machine = journalled().power_cut(seed);
        machine.run();
        check_journalled(&mut machine, &format!("seed {seed}"));
        assert_eq!(applied(&machine, VBID), Seqno(3), "a start brings files up to date");
        let mut machine = machine.power_cut(seed);
        machine.run();
        check_journalled(&mut machine, &format!("seed {seed}, again"));
    }
}

#[test]
fn after_a_clean_stop_the_files_have_everything_and_the_journal_nothing() {
    let mut machine = journalled();
    machine.bucket.shut_down().unwrap();
    let journal = Path::new(DIRECTORY).join("journal");
    let names = machine.files.list(&journal).unwrap();
    assert!(names.iter().all(|name| name.starts_with("s.")), "{names:?}");
    for name in names {
        machine.files.remove(&journal.join(name)).unwrap();
    }
    machine = machine.restart();
    machine.run();
    check_journalled(&mut machine, "without the journal");
}

#[test]
fn a_bucket_can_do_without_its_journal_from_the_next_start_on_and_with_it_again() {
    let mut machine = journalled();
    for persistence in [Persistence::Files, lazy_config().persistence, Persistence::Files] {
        machine.config.persistence = persistence;
        machine = machine.power_cut(0);
        machine.run();
        check_journalled(&mut machine, &format!("{persistence:?}"));
        let journal = Path::new(DIRECTORY).join("journal");
        if persistence == Persistence::Files {
            assert!(machine.files.list(&journal).unwrap().is_empty());
        }
    }
    machine.set(VBID, "key", b"in the file at once").unwrap();
    machine.run();
    assert_eq!(applied(&machine, VBID), Seqno(4));
}

#[test]
fn files_that_cannot_follow_close_the_gate_and_what_was_acknowledged_stays() {
    for seed in 0..8 {
        let mut machine = journalled();
        machine.files.set_capacity(0);
        machine.advance(CYCLE * 4);
        let blocked = Refused::Blocked(WriteBlock::DiskFull);
        assert_eq!(machine.set(VBID, "key", b"refused").unwrap_err(), blocked);
        check_journalled(&mut machine, "while the disk is full");
        machine.files.set_capacity(1 << 30);
        if seed == 0 {
            machine.advance(CYCLE * 4);
            assert_eq!(machine.bucket.statistics().disk_block, None);
            assert_eq!(applied(&machine, VBID), Seqno(3));
        } else {
            machine = machine.power_cut(seed);
            machine.run();
        }
        check_journalled(&mut machine, &format!("seed {seed}"));
        machine.set(VBID, "key", b"let in").unwrap();
    }
}

/// A bucket on a full disk, with documents in its files, and with newer versions, tombstones and
/// other documents in the journal alone.
fn full_disk(policy: EvictionPolicy, seed: u64) -> Machine {
    let eviction = EvictionConfig { policy, ..EvictionConfig::default() };
    let mut machine = Machine::with(BucketConfig { eviction, ..lazy_config() });
    for name in ["kept", "overwritten", "deleted"] {
        machine.set(VBID, name, b"in the file").unwrap();
    }
    machine.run();
    machine.advance(CYCLE * 4);
    assert_eq!(applied(&machine, VBID), Seqno(3));
    machine.set(VBID, "overwritten", b"in the journal").unwrap();
    machine.delete(VBID, "deleted").unwrap();
    machine.set(VBID, "new", b"in the journal").unwrap();
    machine.set(OTHER, "only", b"in the journal").unwrap();
    machine.run();
    machine.files.set_capacity(0);
    let mut machine = machine.power_cut(seed);
    machine.run();
    machine
}

fn check_full_disk(machine: &mut Machine, at: &str) {
    let documents = [
        (VBID, "kept", &b"in the file"[..]),
        (VBID, "overwritten", b"in the journal"),
        (VBID, "new", b"in the journal"),
        (OTHER, "only", b"in the journal"),
    ];
    for (vbid, name, value) in documents {
        assert_eq!(machine.get(vbid, name).unwrap(), value, "{at}: {name}");
    }
    assert_eq!(machine.get(VBID, "deleted"), Err(No(Refused::NotFound)), "{at}");
    assert_eq!(machine.bucket.statistics().document_count, 4, "{at}");
    assert_eq!((machine.persisted(VBID), machine.persisted(OTHER)), (Seqno(6), Seqno(1)), "{at}");
}

/// What a stream gets of a vBucket that has nothing: keys, in the order of seqnos.
fn streamed(machine: &Machine, vbid: Vbid) -> Result<Vec<String>, StorageError> {
    let begun = machine.bucket.try_begin_backfill(vbid, Seqno(0), BackfillOrder::BySeqno);
    let backfill = begun.expect("nobody writes the file")?;
    let (mut backfill, mut items) = (backfill.expect("the vBucket serves"), Vec::new());
    while backfill.read(1 << 20, &mut items)? {}
    let name = |item: &Item| String::from_utf8_lossy(item.key().name()).into_owned();
    Ok(items.iter().map(name).collect())
}

#[test]
fn a_start_on_a_full_disk_serves_what_only_the_journal_has() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        for seed in 0..8 {
            let at = format!("{policy:?}, seed {seed}");
            let mut machine = full_disk(policy, seed);
            check_full_disk(&mut machine, &at);
            assert_eq!((applied(&machine, VBID), applied(&machine, OTHER)), (Seqno(3), Seqno(0)));
            // What is in the file leaves memory for it, and comes back; the rest stays.
            machine.evict(VBID, "kept").unwrap();
            for (vbid, name) in [(VBID, "overwritten"), (VBID, "new"), (OTHER, "only")] {
                assert!(machine.evict(vbid, name).is_err(), "{at}: {name}");
            }
            let streamed = streamed(&machine, VBID);
            assert!(matches!(streamed, Err(StorageError::NoSpace(_))), "{at}: {streamed:?}");
            machine.advance(CYCLE * 4);
            let blocked = Refused::Blocked(WriteBlock::DiskFull);
            assert_eq!(machine.set(VBID, "new", b"refused").unwrap_err(), blocked, "{at}");
            check_full_disk(&mut machine, &at);
            machine = machine.power_cut(seed);
            machine.run();
            check_full_disk(&mut machine, &format!("{at}, once more"));
        }
    }
}

#[test]
fn a_vbucket_that_cannot_be_loaded_on_a_full_disk_keeps_nobody_out() {
    // Who comes first, the applier or who loads the vBucket, is another one at each start.
    for starts in 1..=8 {
        let mut machine = full_disk(EvictionPolicy::ValueOnly, 0);
        machine.config.apply = config().apply;
        machine = (0..starts).fold(machine, |machine, _| machine.power_cut(0));
        let (call, error) = (Some(Call::Read), FaultError::Io);
        machine.files.fail(Fault { call, number: 1, error, from_then_on: true });
        machine.run();
        machine.files.heal();
        machine.files.set_capacity(1 << 30);
        machine.advance(CYCLE * 4);
        assert_eq!(machine.bucket.damage_of(VBID), Some(DamageKind::OutOfService), "{starts}");
        assert_eq!(machine.bucket.statistics().disk_block, None, "{starts}");
        machine.set(OTHER, "new", b"let in").unwrap();
    }
}

#[test]
fn files_get_what_they_lacked_at_a_start_once_there_is_room() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        for seed in 0..8 {
            let at = format!("{policy:?}, seed {seed}");
            let mut machine = full_disk(policy, seed);
            machine.files.set_capacity(1 << 30);
            machine.advance(CYCLE * 4);
            assert_eq!((applied(&machine, VBID), applied(&machine, OTHER)), (Seqno(6), Seqno(1)));
            assert_eq!(machine.bucket.statistics().tombstone_count, 0, "{at}");
            check_full_disk(&mut machine, &at);
            assert_eq!(
                streamed(&machine, VBID).unwrap(),
                ["kept", "overwritten", "deleted", "new"]
            );
            for (vbid, name) in [(VBID, "overwritten"), (VBID, "new"), (OTHER, "only")] {
                machine.evict(vbid, name).unwrap();
            }
            check_full_disk(&mut machine, &format!("{at}, from the file"));
            machine.set(VBID, "deleted", b"anew").unwrap();
            machine.run();
            for stop in [Machine::stop_and_start, Machine::restart] {
                machine = stop(machine);
                machine.run();
                assert_eq!(machine.get(VBID, "deleted").unwrap(), b"anew", "{at}");
                machine.delete(VBID, "deleted").unwrap();
                machine.run();
                assert_eq!(machine.bucket.statistics().document_count, 4, "{at}");
                machine.set(VBID, "deleted", b"anew").unwrap();
                machine.run();
            }
        }
    }
}

#[test]
fn a_journal_that_is_not_wanted_any_more_stays_while_the_disk_is_full() {
    let mut machine = full_disk(EvictionPolicy::ValueOnly, 0);
    machine.config.persistence = Persistence::Files;
    machine = machine.power_cut(0);
    machine.run();
    check_full_disk(&mut machine, "a full disk");
    machine.files.set_capacity(1 << 30);
    machine = machine.power_cut(0);
    machine.run();
    check_full_disk(&mut machine, "room");
    let journal = Path::new(DIRECTORY).join("journal");
    assert!(machine.files.list(&journal).unwrap().is_empty());
}

#[test]
fn a_sync_of_the_journal_that_fails_once_is_made_up_for_at_once() {
    let mut machine = journalled();
    let (call, error) = (Some(Call::Sync), FaultError::Io);
    machine.files.fail(Fault { call, number: 1, error, from_then_on: false });
    let mutation = machine.set(VBID, "new", b"value").unwrap();
    assert_eq!(machine.wait(3, VBID, mutation.seqno), Err(Waits));
    machine.run();
    assert_eq!(machine.heard.take(), [(3, Completion::Persisted)]);
    assert_eq!(machine.bucket.journal_usage().unwrap().failure_count, 1);
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.get(VBID, "new").unwrap(), b"value");
}

#[test]
fn a_full_journal_delays_persistence_until_files_have_followed() {
    let options = JournalOptions {
        segment_bytes: 64 << 10,
        bytes_max: 128 << 10,
        group_bytes_max: 32 << 10,
        portion_bytes: 4096,
    };
    let config = BucketConfig { persistence: Persistence::Journal(options), ..lazy_config() };
    let mut machine = Machine::with(config);
    let mut last = Seqno(0);
    for number in 0..100 {
        last = machine.set(VBID, &format!("{number}"), &[7; 4096]).unwrap().seqno;
        machine.driver.run_one();
    }
    assert_eq!(machine.wait(1, VBID, last), Err(Waits));
    machine.advance(CYCLE * 4);
    assert_eq!(machine.heard.take(), [(1, Completion::Persisted)]);
    let mut machine = machine.power_cut(0);
    machine.run();
    for number in 0..100 {
        assert_eq!(machine.get(VBID, &format!("{number}")).unwrap(), [7; 4096]);
    }
}

#[test]
fn an_emptied_bucket_stays_empty_whatever_the_journal_had() {
    for seed in 0..20 {
        let machine = journalled();
        machine.bucket.flush_all().unwrap();
        let mut machine = machine.power_cut(seed);
        machine.run();
        assert_eq!(machine.bucket.statistics().document_count, 0, "seed {seed}");
        machine.set(VBID, "key", b"anew").unwrap();
        machine.run();
        let mut machine = machine.power_cut(seed);
        machine.run();
        assert_eq!(machine.get(VBID, "key").unwrap(), b"anew", "seed {seed}");
        assert_eq!(machine.bucket.statistics().document_count, 1, "seed {seed}");
    }
}

#[test]
fn a_file_of_another_time_than_the_journal_is_out_of_service_and_what_the_journal_has_stays() {
    let mut machine = Machine::with(files_config());
    machine.set(VBID, "key", b"old").unwrap();
    machine.run();
    let path = Path::new(DIRECTORY).join("0.couch.1");
    let old = machine.files.content(&path).unwrap();
    for number in 0..3 {
        machine.set(VBID, &format!("{number}"), b"value").unwrap();
    }
    machine.run();
    machine.config = lazy_config();
    let mut machine = machine.power_cut(0);
    machine.run();
    machine.set(VBID, "key", b"newer").unwrap();
    machine.set(OTHER, "key", b"value").unwrap();
    machine.run();
    let newest = machine.files.content(&path).unwrap();
    machine.files.insert(&path, &old);
    for _ in 0..2 {
        machine = machine.power_cut(0);
        machine.run();
        assert!(machine.set(VBID, "key", b"refused").is_err(), "it is out of service");
        assert_eq!(machine.get(OTHER, "key").unwrap(), b"value");
    }
    machine.files.insert(&path, &newest);
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.get(VBID, "key").unwrap(), b"newer");
}

#[test]
fn a_damaged_file_neither_fills_the_journal_nor_loses_what_only_the_journal_has() {
    let options = JournalOptions {
        segment_bytes: 64 << 10,
        bytes_max: 256 << 10,
        group_bytes_max: 32 << 10,
        portion_bytes: 4096,
    };
    let config = BucketConfig { persistence: Persistence::Journal(options), ..lazy_config() };
    let mut machine = Machine::with(config);
    let path = Path::new(DIRECTORY).join("0.couch.1");
    machine.set(VBID, "in the file", b"value").unwrap();
    machine.run();
    machine.advance(CYCLE * 4);
    let intact = machine.files.content(&path).unwrap();
    machine.set(VBID, "in the file", b"newer").unwrap();
    machine.set(VBID, "in the journal", b"value").unwrap();
    machine.run();
    // The trees, not the header, which is in the last block.
    let mut damaged = intact.clone();
    damaged[60..4000].fill(0xff);
    machine.files.insert(&path, &damaged);
    machine.advance(CYCLE * 4);
    let refused = Refused::Blocked(WriteBlock::VbucketFileDamaged);
    assert_eq!(machine.set(VBID, "key", b"refused").unwrap_err(), refused);

    // The others write several times what the journal may hold.
    for number in 0..400 {
        machine.set(OTHER, &format!("{}", number % 40), &[number as u8; 4096]).unwrap();
        machine.advance(Duration::from_millis(500));
    }
    let last = machine.high_seqno(OTHER);
    assert_eq!(machine.wait(1, OTHER, last), Ok(()));

    // Somebody brings the file back: the journal still continues it.
    machine.files.insert(&path, &intact);
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.get(VBID, "in the file").unwrap(), b"newer");
    assert_eq!(machine.get(VBID, "in the journal").unwrap(), b"value");
    assert_eq!(machine.persisted(OTHER), last);
}

#[test]
fn what_waits_for_a_damaged_file_neither_goes_to_the_journal_again_nor_hurries_others() {
    let config = BucketConfig { memory_quota_bytes: 8 << 20, ..lazy_config() };
    let mut machine = Machine::with(config);
    let path = Path::new(DIRECTORY).join("0.couch.1");
    machine.set(VBID, "in the file", b"value").unwrap();
    machine.run();
    machine.advance(CYCLE * 4);
    let mut damaged = machine.files.content(&path).unwrap();
    // More than a twentieth of the quota, and less than half of the journal.
    for number in 0..7 {
        machine.set(VBID, &format!("{number}"), &[7; 64 << 10]).unwrap();
    }
    machine.run();
    // The trees, not the header, which is in the last block.
    damaged[60..4000].fill(0xff);
    machine.files.insert(&path, &damaged);
    machine.advance(CYCLE * 4);
    let refused = Refused::Blocked(WriteBlock::VbucketFileDamaged);
    assert_eq!(machine.set(VBID, "key", b"refused").unwrap_err(), refused);

    let journal = |machine: &Machine| machine.bucket.statistics().journal.unwrap();
    let before = journal(&machine);
    machine.advance(CYCLE * 4);
    assert_eq!(journal(&machine).written_bytes, before.written_bytes, "nobody writes");
    machine.set(OTHER, "key", b"value").unwrap();
    machine.advance(CYCLE / 2);
    assert_eq!(machine.bucket.statistics().backlog.vbuckets, 2, "the other one has time");
    machine.advance(CYCLE * 4);
    assert_eq!(machine.bucket.statistics().backlog.vbuckets, 1);
}

#[test]
fn damage_that_a_replay_meets_keeps_one_vbucket_away_and_its_journal() {
    let mut machine = Machine::with(lazy_config());
    for vbid in [VBID, OTHER] {
        for number in 0..10 {
            machine.set(vbid, &format!("{number}"), b"in the file").unwrap();
        }
    }
    machine.run();
    machine.advance(CYCLE * 4);
    let path = Path::new(DIRECTORY).join("0.couch.1");
    let intact = machine.files.content(&path).unwrap();
    for vbid in [VBID, OTHER] {
        machine.set(vbid, "1", b"in the journal").unwrap();
    }
    machine.run();
    let mut damaged = intact.clone();
    let header_at = (damaged.len() - 1) / 4096 * 4096;
    damaged[60..header_at].iter_mut().for_each(|byte| *byte ^= 0x55);
    for block in 0..header_at / 4096 {
        damaged[block * 4096] = intact[block * 4096];
    }
    machine.files.insert(&path, &damaged);
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.get(OTHER, "1").unwrap(), b"in the journal");
    assert!(machine.get(VBID, "1").is_err(), "its vBucket does not serve");
    machine.files.insert(&path, &intact);
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.get(VBID, "1").unwrap(), b"in the journal");
    assert_eq!(machine.get(VBID, "2").unwrap(), b"in the file");
}

fn journal_memory_bytes(machine: &Machine) -> u64 {
    machine.bucket.journal_usage().unwrap().memory_bytes
}

#[test]
fn the_journal_gives_memory_back_when_nothing_came_for_a_second_after_many_items() {
    let mut machine = Machine::with(lazy_config());
    machine.set(VBID, "alone", b"value").unwrap();
    machine.run();
    machine.advance(Duration::from_secs(2));
    assert!(journal_memory_bytes(&machine) > 0, "a few items are not worth it");
    for number in 0..10_000 {
        machine.set(VBID, &format!("key-{number}"), b"value").unwrap();
        if number % 500 == 0 {
            machine.run();
        }
    }
    machine.run();
    machine.advance(Duration::from_millis(900));
    machine.set(VBID, "alone", b"another").unwrap();
    machine.run();
    machine.advance(Duration::from_millis(900));
    assert!(journal_memory_bytes(&machine) > 0, "something came meanwhile");
    machine.advance(Duration::from_millis(200));
    machine.advance(Duration::from_millis(200));
    assert_eq!(journal_memory_bytes(&machine), 0);
    machine.set(VBID, "alone", b"the last").unwrap();
    machine.run();
    assert_eq!(machine.get(VBID, "alone").unwrap(), b"the last");
}
