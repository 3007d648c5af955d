//! A disk that is full, that does not sync, that fails at any call.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bucket::{
    Addition, ApplyConfig, BucketConfig, CompactionOrder, Completion, CounterRequest, Incoming,
    LifeError, Placement, Refused, Write, WriteBlock,
};
use document::{ItemBuilder, ItemMeta, Key, Seqno, Vbid, VbucketState};
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use vbucket::{StoreMode, WriteCondition};

use crate::collections;
use crate::support::{DIRECTORY, Machine, No, OTHER, VBID, Waits, config, files_config};

const RETRY: Duration = Duration::from_secs(1);

fn fault(call: Option<Call>, number: u64, error: FaultError, from_then_on: bool) -> Fault {
    Fault { call, number, error, from_then_on }
}

#[test]
fn a_full_disk_blocks_writers_not_readers_and_loses_nothing_that_was_acknowledged() {
    let mut machine = Machine::with(files_config());
    machine.set(VBID, "old", b"value").unwrap();
    machine.run();
    assert_eq!(machine.persisted(VBID), Seqno(1));
    machine.files.set_capacity(0);
    let waited = machine.set(VBID, "new", &[b'x'; 10_000]).unwrap();
    assert_eq!(machine.wait(7, VBID, waited.seqno), Err(Waits));
    machine.run();

    let blocked = Refused::Blocked(WriteBlock::DiskFull);
    assert_eq!(machine.set(VBID, "old", b"refused").unwrap_err(), blocked);
    assert_eq!(machine.set(OTHER, "other", b"refused").unwrap_err(), blocked);
    assert_eq!(machine.delete(VBID, "old").unwrap_err(), blocked);
    assert_eq!(machine.get(VBID, "old").unwrap(), b"value");
    assert_eq!(machine.get(VBID, "new").unwrap(), [b'x'; 10_000]);
    let statistics = machine.bucket.statistics();
    assert_eq!(statistics.disk_block, Some(WriteBlock::DiskFull));
    assert_eq!((statistics.commits_failed, statistics.disk_refusals), (1, 3));
    assert_eq!(machine.persisted(VBID), Seqno(1));
    assert_eq!(machine.heard.take(), []);

    machine.files.set_capacity(1 << 30);
    machine.advance(RETRY);
    assert_eq!(machine.heard.take(), [(7, Completion::Persisted)]);
    assert_eq!(machine.persisted(VBID), Seqno(2));
    assert_eq!(machine.bucket.statistics().disk_block, None);
    machine.set(OTHER, "other", b"let in").unwrap();
    machine.run();
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.get(VBID, "new").unwrap(), [b'x'; 10_000]);
    assert_eq!(machine.get(OTHER, "other").unwrap(), b"let in");
}

#[test]
fn what_was_acknowledged_before_the_disk_was_full_survives_a_power_cut() {
    for seed in 0..20 {
        let mut machine = Machine::with(files_config());
        machine.set(VBID, "old", b"value").unwrap();
        machine.run();
        machine.files.set_capacity(0);
        machine.set(VBID, "old", b"unpersisted").unwrap();
        machine.run();
        machine.files.set_capacity(1 << 30);
        let mut machine = machine.power_cut(seed);
        machine.run();
        assert_eq!(machine.get(VBID, "old").unwrap(), b"value", "seed {seed}");
    }
}

/// A bucket whose journal has a document that the file of its vBucket cannot take on a full disk.
/// It is not that one's turn for a while.
fn behind_on_a_full_disk() -> Machine {
    let apply = ApplyConfig { cycle: Duration::from_secs(10), applier_count: 2 };
    let mut machine = Machine::with(BucketConfig { apply, ..config() });
    machine.set(VBID, "key", b"value").unwrap();
    machine.run();
    machine.files.set_capacity(0);
    machine.bucket.compact(VBID, CompactionOrder::default(), drop).unwrap();
    machine.run();
    let blocked = Refused::Blocked(WriteBlock::DiskFull);
    assert_eq!(machine.set(OTHER, "other", b"refused").unwrap_err(), blocked);
    machine
}

#[test]
fn writers_are_let_in_soon_after_the_disk_has_room_for_files_again() {
    let mut machine = behind_on_a_full_disk();
    machine.files.set_capacity(u64::MAX);
    machine.advance(RETRY * 2);
    machine.set(OTHER, "other", b"let in").unwrap();
}

#[test]
fn a_rollback_that_fails_once_the_file_has_what_it_lacked_keeps_nobody_out() {
    let mut machine = behind_on_a_full_disk();
    machine.files.set_capacity(u64::MAX);
    machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
    // The first two make the file durable.
    machine.files.fail(fault(Some(Call::Sync), 3, FaultError::Io, true));
    assert!(matches!(machine.bucket.rollback(VBID, Seqno(0)), Err(LifeError::Storage(_))));
    machine.files.heal();
    assert_eq!(machine.bucket.backlog().vbuckets, 0);
    machine.advance(RETRY * 2);
    machine.set(OTHER, "other", b"let in").unwrap();
}

#[test]
fn a_vbucket_that_is_deleted_on_a_full_disk_keeps_nobody_out() {
    let mut machine = behind_on_a_full_disk();
    machine.files.set_capacity(u64::MAX);
    machine.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
    machine.bucket.delete_vbucket(VBID).unwrap();
    machine.set(OTHER, "other", b"let in").unwrap();
}

#[test]
fn a_deleted_vbucket_whose_file_stayed_keeps_nobody_out_once_its_place_is_taken_or_empty_for_good()
{
    let takes: [fn(&Machine); 2] = [
        |machine| machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap(),
        |machine| machine.bucket.flush_all().unwrap(),
    ];
    for take in takes {
        let mut machine = Machine::new();
        machine.set(VBID, "key", b"value").unwrap();
        machine.run();
        machine.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
        machine.files.fail(fault(Some(Call::Remove), 2, FaultError::Io, true));
        assert!(matches!(machine.bucket.delete_vbucket(VBID), Err(LifeError::Storage(_))));
        machine.run();
        let blocked = Refused::Blocked(WriteBlock::DiskFailed);
        assert_eq!(machine.set(OTHER, "other", b"refused").unwrap_err(), blocked);
        machine.files.heal();
        take(&machine);
        machine.set(OTHER, "other", b"let in").unwrap();
        machine.run();
        assert_eq!(machine.bucket.statistics().disk_block, None);
    }
}

#[test]
fn files_follow_the_journal_behind_one_that_cannot() {
    let mut machine = Machine::new();
    for vbid in [VBID, OTHER] {
        machine.set(vbid, "key", b"value").unwrap();
    }
    machine.run();
    machine.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
    machine.set(OTHER, "key", b"newer").unwrap();
    machine.files.fail(fault(Some(Call::Remove), 2, FaultError::Io, true));
    assert!(matches!(machine.bucket.delete_vbucket(VBID), Err(LifeError::Storage(_))));
    machine.run();
    machine.advance(RETRY * 4);
    assert_eq!(machine.persisted(OTHER), Seqno(2));
    // What leaves memory is in the file.
    machine.evict(OTHER, "key").unwrap();
    assert_eq!(machine.get(OTHER, "key").unwrap(), b"newer");
    assert!(machine.bucket.statistics().applies_failed > 1, "the other is tried again, too");
}

#[test]
fn a_write_for_which_there_is_no_collection_is_told_so_though_the_disk_is_full() {
    let mut machine = Machine::with(files_config());
    collections::create(&machine.bucket, "fruit");
    machine.run();
    machine.files.set_capacity(0);
    machine.set(VBID, "key", b"value").unwrap();
    machine.run();
    let (bucket, session) = (machine.bucket.clone(), &mut machine.session);
    let blocked = Refused::Blocked(WriteBlock::DiskFull);
    let elsewhere = Vbid(500);
    for (vbid, key, refused) in [
        (VBID, &b"\0k"[..], blocked),
        (VBID, b"\x08k", blocked),
        (VBID, b"\x09k", Refused::UnknownCollection),
        (elsewhere, b"\x08k", Refused::NotMyVbucket),
        (elsewhere, b"\x09k", Refused::NotMyVbucket),
    ] {
        let key = Key::from_encoded(key).unwrap();
        let (value, condition) = (Incoming::plain(b"1"), WriteCondition::default());
        let addition = Addition { vbid, key, placement: Placement::Back, added: value, condition };
        let count =
            CounterRequest { is_increment: true, delta: 1, created_with: None, expiry: None };
        let large = ItemBuilder::new(key, ItemMeta::default(), &[b'x'; 40_000]);
        let refusals = [
            bucket.store(session, Write::set(vbid, key, value)).unwrap_err(),
            bucket.store_received(session, StoreMode::Set, vbid, large, condition).unwrap_err(),
            bucket.concatenate(session, addition).unwrap_err(),
            bucket.count(session, vbid, key, count, condition).unwrap_err(),
            bucket.touch(session, vbid, key, 0).unwrap_err(),
            bucket.delete(session, vbid, key, condition).unwrap_err(),
        ];
        assert_eq!(refusals, [refused; 6], "{key:?} of {vbid}");
    }
}

#[test]
fn a_failing_disk_is_tried_once_an_interval() {
    let mut machine = Machine::new();
    machine.files.fail(fault(Some(Call::Sync), 1, FaultError::Io, true));
    machine.set(VBID, "key", b"value").unwrap();
    machine.run();
    assert_eq!(machine.bucket.statistics().commits_failed, 1);
    machine.advance(RETRY * 10);
    assert_eq!(machine.bucket.statistics().commits_failed, 11);
}

#[test]
fn a_sync_that_fails_once_is_made_up_for() {
    let mut machine = Machine::with(files_config());
    machine.files.fail(fault(Some(Call::Sync), 1, FaultError::Io, false));
    let mutation = machine.set(VBID, "key", b"value").unwrap();
    assert_eq!(machine.wait(3, VBID, mutation.seqno), Err(Waits));
    machine.run();
    let blocked = Refused::Blocked(WriteBlock::DiskFailed);
    assert_eq!(machine.set(VBID, "key", b"refused").unwrap_err(), blocked);
    assert_eq!(machine.heard.take(), []);
    machine.advance(RETRY);
    assert_eq!(machine.heard.take(), [(3, Completion::Persisted)]);
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.get(VBID, "key").unwrap(), b"value");
}

#[test]
fn one_vbucket_that_cannot_be_flushed_keeps_the_gate_closed() {
    let mut machine = Machine::with(files_config());
    machine.set(VBID, "key", b"value").unwrap();
    machine.set(OTHER, "key", b"value").unwrap();
    // The first vBucket of the group fails, the second does not.
    machine.files.fail(fault(Some(Call::Sync), 1, FaultError::Io, false));
    machine.run();
    assert_eq!((machine.persisted(VBID), machine.persisted(OTHER)), (Seqno(0), Seqno(1)));
    assert_eq!(machine.bucket.statistics().disk_block, Some(WriteBlock::DiskFailed));
    // Whoever has an old map learns of the new one here, too.
    for (vbid, refused) in
        [(VBID, Refused::Blocked(WriteBlock::DiskFailed)), (Vbid(500), Refused::NotMyVbucket)]
    {
        assert_eq!(machine.set(vbid, "key", b"more").unwrap_err(), refused);
        assert_eq!(machine.delete(vbid, "key").unwrap_err(), refused);
    }
    machine.advance(RETRY);
    assert_eq!(machine.persisted(VBID), Seqno(1));
    assert_eq!(machine.bucket.statistics().disk_block, None);
}

/// Writes, flushes and waits; gives the highest seqno of each vBucket that was acknowledged as
/// persisted. Document `n` is written by seqno `n` of its vBucket.
fn scenario(machine: &mut Machine) -> [Seqno; 2] {
    for number in 1..=4 {
        for vbid in [VBID, OTHER] {
            match machine.set(vbid, &format!("key-{number}"), format!("{number}").as_bytes()) {
                Ok(_) | Err(No(Refused::Blocked(_) | Refused::Warming)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        machine.run();
    }
    [machine.persisted(VBID), machine.persisted(OTHER)]
}

fn check_acknowledged(machine: &mut Machine, acknowledged: [Seqno; 2], at: &str) {
    for (vbid, Seqno(acknowledged)) in [VBID, OTHER].into_iter().zip(acknowledged) {
        for number in 1..=acknowledged {
            let value = machine.get(vbid, &format!("key-{number}"));
            assert!(value.is_ok(), "{at}: document {number} of {acknowledged}: {value:?}");
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_at_whatever_call_the_disk_begins_to_fail() {
    let mut counted = Machine::begin(SimulatedFiles::new(), config()).unwrap();
    let opening = counted.files.calls().total();
    assert_eq!(scenario(&mut counted), [Seqno(4); 2]);
    let count = counted.files.calls().total() - opening;
    assert!(count > 30, "{count} calls");
    let errors = [FaultError::Io, FaultError::NoSpace, FaultError::TooManyOpen];
    for number in 1..=count {
        for error in errors.into_iter().chain([FaultError::ShortWrite]) {
            for from_then_on in [false, true] {
                let at = format!("call {number} {error:?} from then on: {from_then_on}");
                let mut machine = Machine::begin(SimulatedFiles::new(), config()).unwrap();
                machine.files.fail(fault(None, number, error, from_then_on));
                let acknowledged = scenario(&mut machine);
                // Reads go on from memory.
                check_acknowledged(&mut machine, acknowledged, &at);
                machine.files.heal();
                let mut machine = machine.power_cut(number);
                machine.run();
                check_acknowledged(&mut machine, acknowledged, &at);
            }
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_at_whatever_sync_the_disk_fails_and_flushing_recovers() {
    for number in 1..=12 {
        for from_then_on in [false, true] {
            for seed in 0..8 {
                let at = format!("sync {number}, from then on: {from_then_on}, seed {seed}");
                let mut machine = Machine::new();
                machine.files.fail(fault(Some(Call::Sync), number, FaultError::Io, from_then_on));
                let acknowledged = scenario(&mut machine);
                if seed % 2 == 0 {
                    machine.files.heal();
                    machine.advance(RETRY);
                    assert_eq!(machine.bucket.statistics().disk_block, None, "{at}");
                    let high = [machine.high_seqno(VBID), machine.high_seqno(OTHER)];
                    let persisted = [machine.persisted(VBID), machine.persisted(OTHER)];
                    assert_eq!(persisted, high, "{at}");
                    let mut machine = machine.power_cut(seed);
                    machine.run();
                    assert_eq!([machine.high_seqno(VBID), machine.high_seqno(OTHER)], high, "{at}");
                } else {
                    machine.files.heal();
                    let mut machine = machine.power_cut(seed);
                    machine.run();
                    check_acknowledged(&mut machine, acknowledged, &at);
                }
            }
        }
    }
}

#[test]
fn a_start_that_fails_at_any_call_loses_nothing() {
    let mut machine = Machine::new();
    let acknowledged = scenario(&mut machine);
    machine.bucket.shut_down().unwrap();
    for number in 1..60 {
        for error in [FaultError::Io, FaultError::NoSpace, FaultError::TooManyOpen] {
            machine.files.fail(fault(None, number, error, false));
            let files = machine.files.clone();
            machine = match machine.try_restart() {
                Ok(machine) => machine,
                Err(_) => Machine::begin(files, config()).unwrap(),
            };
            machine.run();
            machine.files.heal();
            // A vBucket that could not be loaded refuses; it is there after the next start.
            machine = machine.restart();
            machine.run();
            check_acknowledged(&mut machine, acknowledged, &format!("call {number} {error:?}"));
        }
    }
}

#[test]
fn a_stop_with_a_failing_disk_says_so_and_counts_as_a_crash() {
    let mut machine = Machine::new();
    machine.set(VBID, "key", b"value").unwrap();
    machine.run();
    let branches = machine.branches(VBID);
    machine.files.fail(fault(Some(Call::Sync), 1, FaultError::Io, true));
    machine.set(VBID, "key", b"never flushed").unwrap();
    assert_eq!(machine.bucket.shut_down(), Err(1));
    machine.files.heal();
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(machine.get(VBID, "key").unwrap(), b"value");
    assert_eq!(machine.branches(VBID)[1..], branches);
}

#[test]
fn a_stop_that_brings_many_files_up_to_date_at_once_loses_nothing_whatever_fails() {
    // Enough for four threads.
    let vbids = || (0..32).map(Vbid);
    let apply = ApplyConfig { cycle: Duration::from_secs(10), applier_count: 2 };
    let config = BucketConfig { vbucket_count: 32, apply, ..config() };
    let syncs =
        [1, 2, 9, 33, 50].map(|number| Some(fault(Some(Call::Sync), number, FaultError::Io, true)));
    let writes = [1, 20, 31]
        .map(|number| Some(fault(Some(Call::Write), number, FaultError::NoSpace, false)));
    for failing in [None].into_iter().chain(syncs).chain(writes) {
        let mut machine = Machine::with(config.clone());
        for vbid in vbids() {
            machine.set(vbid, "key", b"value").unwrap();
        }
        machine.run();
        assert_eq!(machine.bucket.statistics().backlog.vbuckets, 32, "{failing:?}");
        let branches = machine.branches(VBID);
        if let Some(fault) = failing {
            machine.files.fail(fault);
        }
        assert_eq!(machine.bucket.shut_down(), Ok(()), "{failing:?}: the journal has it all");
        machine.files.heal();
        let mut machine = machine.power_cut(0);
        machine.run();
        assert_eq!(machine.branches(VBID) == branches, failing.is_none(), "{failing:?}");
        for vbid in vbids() {
            assert_eq!(machine.get(vbid, "key").unwrap(), b"value", "{vbid:?}, {failing:?}");
        }
    }
}

#[test]
fn a_damaged_file_stops_the_writes_of_its_vbucket_and_no_others() {
    let config = BucketConfig { open_files_max: 1, ..files_config() };
    let mut machine = Machine::with(config);
    for vbid in [VBID, OTHER] {
        machine.set(vbid, "key", b"value").unwrap();
        machine.run();
    }
    let path = Path::new(DIRECTORY).join("0.couch.1");
    let size = machine.files.content(&path).unwrap().len();
    machine.files.insert(&path, &vec![0xee; size]);
    machine.set(VBID, "key", b"never flushed").unwrap();
    machine.set(OTHER, "key", b"flushed").unwrap();
    machine.run();

    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.disk_block, statistics.damaged_vbucket_count), (None, 1));
    let blocked = Refused::Blocked(WriteBlock::VbucketFileDamaged);
    assert_eq!(machine.set(VBID, "key", b"refused").unwrap_err(), blocked);
    assert_eq!(machine.delete(VBID, "key").unwrap_err(), blocked);
    assert_eq!(machine.get(VBID, "key").unwrap(), b"never flushed");
    for number in 3..6 {
        machine.set(OTHER, "key", b"value").unwrap();
        machine.advance(RETRY);
        assert_eq!(machine.persisted(OTHER), Seqno(number));
    }
    let statistics = machine.bucket.statistics();
    assert_eq!(statistics.commits_failed, 1, "another try would not help");

    machine.bucket.flush_all().unwrap();
    machine.set(VBID, "key", b"new").unwrap();
    machine.run();
    assert_eq!(machine.persisted(VBID), Seqno(1));
    assert_eq!(machine.bucket.statistics().damaged_vbucket_count, 0);
    assert_eq!(machine.bucket.shut_down(), Ok(()));
}

#[test]
fn a_stop_with_a_damaged_file_is_not_a_clean_one() {
    let config = BucketConfig { open_files_max: 1, ..files_config() };
    let mut machine = Machine::with(config);
    for vbid in [VBID, OTHER] {
        machine.set(vbid, "key", b"value").unwrap();
        machine.run();
    }
    let path = Path::new(DIRECTORY).join("0.couch.1");
    machine.files.insert(&path, b"not what was written");
    machine.set(VBID, "key", b"never flushed").unwrap();
    machine.run();
    assert_eq!(machine.bucket.shut_down(), Err(1));
}

#[test]
fn a_read_that_fails_is_reported_and_succeeds_later() {
    let mut machine = Machine::new();
    machine.set(VBID, "key", b"value").unwrap();
    machine.run();
    machine.evict(VBID, "key").unwrap();
    machine.files.fail(fault(Some(Call::Read), 1, FaultError::Io, true));
    machine.session.waiter = vbucket::Waiter(5);
    assert_eq!(machine.find(VBID, "key").unwrap_err(), Waits);
    machine.run();
    assert_eq!(machine.heard.take(), [(5, Completion::ReadFailed)]);
    assert_eq!(machine.bucket.statistics().reads_failed, 1);
    machine.files.heal();
    assert_eq!(machine.get(VBID, "key").unwrap(), b"value");
}

/// A value of 2 to 8 KB that compression makes no smaller.
fn value_of(number: u32) -> Vec<u8> {
    let mut state = number;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..2_000 + number * 37 % 6_000).map(|_| next()).collect()
}

/// Writes until the disk is full, with other sizes and pauses for each seed. Returns the number in
/// what was acknowledged last of each key.
fn fill(machine: &mut Machine, seed: u32) -> BTreeMap<(Vbid, String), u32> {
    let blocked = Refused::Blocked(WriteBlock::DiskFull);
    let mut acknowledged = BTreeMap::new();
    let mut refused_count = 0;
    for number in 1_u32..10_000 {
        let vbid = if number % 2 == 0 { VBID } else { OTHER };
        let name = (number - number % 3 * 7 % number).to_string();
        let value = value_of(number);
        match machine.set(vbid, &name, &value) {
            Ok(_) => drop(acknowledged.insert((vbid, name), number)),
            Err(refused) => {
                assert_eq!(refused, blocked);
                refused_count += 1;
            }
        }
        if number % (5 + seed % 23) == 0 {
            machine.run();
        }
        if number % (50 + seed % 31) == 0 {
            machine.advance(RETRY / 4);
        }
        if refused_count > 20 + seed % 40 {
            return acknowledged;
        }
    }
    panic!("the disk has an end")
}

#[test]
fn an_orderly_stop_on_a_disk_that_is_full_loses_nothing_that_was_acknowledged() {
    for (seed, config) in (0..10).flat_map(|seed| [(seed, config()), (seed, files_config())]) {
        let at = format!("seed {seed}, {:?}", config.persistence);
        let machine = Machine::with(BucketConfig {
            flush_interval: Duration::from_millis(50),
            apply: ApplyConfig { cycle: RETRY / 2, applier_count: 1 },
            ..config
        });
        machine.files.set_capacity((4 << 20) + u64::from(seed) * 10_000);
        let mut machine = machine.stop_and_start();
        machine.run();
        let acknowledged = fill(&mut machine, seed);
        machine.bucket.shut_down().unwrap_or_else(|count| panic!("{at}: {count} vBuckets"));
        let mut machine = machine.restart();
        machine.run();
        for ((vbid, name), number) in acknowledged {
            assert_eq!(machine.get(vbid, &name).unwrap(), value_of(number), "{at}: {name}");
        }
    }
}
