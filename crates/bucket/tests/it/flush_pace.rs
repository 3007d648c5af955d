//! When writes that nobody waits for become durable.

use std::time::Duration;

use bucket::{BucketConfig, Persistence, Refused, WriteBlock};
use document::{Seqno, VbUuid, Vbid, VbucketState};
use storage::JournalOptions;

use crate::support::{Machine, No, VBID, Waits, answered, config, files_config, key};

const INTERVAL: Duration = Duration::from_millis(50);

fn deferring() -> BucketConfig {
    BucketConfig { flush_interval: INTERVAL, ..config() }
}

/// A machine with two documents, the first of which is durable.
fn with_second_put_off() -> Machine {
    let mut machine = Machine::with(deferring());
    for name in ["first", "second"] {
        machine.set(VBID, name, b"1").unwrap();
        machine.run();
    }
    assert_eq!(machine.persisted(VBID), Seqno(1));
    machine
}

#[test]
fn a_write_after_a_pause_is_flushed_at_once_and_the_next_ones_together_an_interval_later() {
    let mut machine = Machine::with(deferring());
    let commits = |machine: &Machine| machine.bucket.journal_usage().unwrap().group_count;
    let before = commits(&machine);
    machine.set(VBID, "first", b"1").unwrap();
    machine.run();
    assert_eq!(machine.persisted(VBID), Seqno(1));
    for name in ["a", "b", "c"] {
        machine.set(VBID, name, b"1").unwrap();
        machine.run();
        machine.advance(INTERVAL / 5);
    }
    assert_eq!(machine.persisted(VBID), Seqno(1));
    machine.advance(INTERVAL);
    assert_eq!(machine.persisted(VBID), Seqno(4));
    assert_eq!(commits(&machine) - before, 2);
    machine.advance(INTERVAL);
    machine.set(VBID, "after a pause", b"1").unwrap();
    machine.run();
    assert_eq!(machine.persisted(VBID), Seqno(5));
}

#[test]
fn a_state_that_is_flushed_alone_has_no_age() {
    let mut machine = Machine::with(deferring());
    let set = |machine: &Machine, role| machine.bucket.set_vbucket_state(VBID, role, None).unwrap();
    set(&machine, VbucketState::Replica);
    set(&machine, VbucketState::Active);
    machine.run();
    let counts = |machine: &Machine| {
        let timings = machine.bucket.timings();
        (timings.disk_commit.snapshot().count(), timings.storage_age.snapshot().count())
    };
    let (commits, ages) = counts(&machine);
    assert!(commits > 0 && ages == 0, "roles become durable: {commits} commits, {ages} ages");
    machine.advance(INTERVAL);
    machine.set(VBID, "k", b"1").unwrap();
    machine.run();
    assert_eq!(counts(&machine), (commits + 1, 1));
}

#[test]
fn with_an_interval_of_nothing_and_without_a_journal_each_write_is_flushed_at_once() {
    for config in [config(), BucketConfig { flush_interval: INTERVAL, ..files_config() }] {
        let mut machine = Machine::with(config);
        for count in 1..=3 {
            machine.set(VBID, "k", b"1").unwrap();
            machine.run();
            assert_eq!(machine.persisted(VBID), Seqno(count));
        }
    }
}

#[test]
fn whoever_waits_or_asks_how_far_it_has_come_has_it_flushed_at_once() {
    let wait = |machine: &mut Machine| {
        assert_eq!(machine.wait(1, VBID, Seqno(2)).unwrap_err(), Waits);
    };
    let observe = |machine: &mut Machine| {
        let name = key("second");
        answered(machine.bucket.observe(&mut machine.session, VBID, name.as_key())).unwrap();
    };
    let observe_seqno = |machine: &mut Machine| {
        let mut uuid = VbUuid(0);
        machine.bucket.with_vbucket(VBID, |vbucket| uuid = vbucket.uuid());
        answered(machine.bucket.observe_seqno(&mut machine.session, VBID, uuid)).unwrap();
    };
    let asks: [fn(&mut Machine); 3] = [wait, observe, observe_seqno];
    for (index, ask) in asks.into_iter().enumerate() {
        let mut machine = with_second_put_off();
        ask(&mut machine);
        machine.run();
        assert_eq!(machine.persisted(VBID), Seqno(2), "{index}");
    }
}

#[test]
fn who_is_waited_for_does_not_stand_behind_what_others_have_left_in_memory() {
    let options = JournalOptions {
        segment_bytes: 16 << 20,
        bytes_max: 256 << 20,
        group_bytes_max: 8 << 20,
        portion_bytes: 1 << 20,
    };
    let persistence = Persistence::Journal(options);
    let memory_quota_bytes = 1 << 30;
    let mut machine = Machine::with(BucketConfig {
        persistence,
        memory_quota_bytes,
        vbucket_count: 8,
        ..deferring()
    });
    let others = [1, 2, 3, 4, 5, 6].map(Vbid);
    for vbid in others {
        machine.bucket.set_vbucket_state(vbid, VbucketState::Active, None).unwrap();
    }
    machine.run();
    for (vbid, number) in others.into_iter().flat_map(|vbid| (0..3).map(move |n| (vbid, n))) {
        machine.set(vbid, &format!("{number}"), &[7; 2 << 20]).unwrap();
    }
    let seqno = machine.set(VBID, "k", b"1").unwrap().seqno;
    assert_eq!(machine.wait(1, VBID, seqno).unwrap_err(), Waits);
    while machine.persisted(VBID) < seqno {
        assert!(machine.driver.run_one(), "there is something to flush");
    }
    let is_ahead = |vbid: &&Vbid| machine.persisted(**vbid) > Seqno(0);
    let ahead = others.iter().filter(is_ahead).count();
    assert!(ahead <= 2, "of the others a portion may go by age: {ahead}");
    machine.run();
    assert!(others.iter().all(|vbid| machine.persisted(*vbid) == Seqno(3)), "they follow");
}

#[test]
fn a_backup_has_what_is_put_off() {
    let machine = with_second_put_off();
    let frozen = machine.bucket.freeze(|_| true).unwrap();
    let [entry] = frozen.vbuckets() else { panic!("vBuckets without documents have no files") };
    assert_eq!((entry.vbid, entry.facts.high_seqno), (VBID, Seqno(2)));
}

#[test]
fn a_backup_has_more_than_goes_into_one_flush() {
    let mut machine = Machine::with(BucketConfig {
        memory_quota_bytes: 400_000,
        flush_batch_bytes_max: 1000,
        ..deferring()
    });
    machine.set(VBID, "first", b"1").unwrap();
    machine.run();
    // Many checkpoints, because the quota is small.
    for number in 0..40 {
        machine.set(VBID, &format!("k{number}"), &[b'x'; 500]).unwrap();
    }
    let frozen = machine.bucket.freeze(|_| true).unwrap();
    assert_eq!(frozen.vbuckets()[0].facts.high_seqno, Seqno(41));
}

#[test]
fn a_stop_flushes_what_is_put_off() {
    let mut machine = with_second_put_off().stop_and_start();
    machine.run();
    assert_eq!(machine.get(VBID, "second").unwrap(), b"1");
}

#[test]
fn when_the_logs_memory_is_short_nothing_is_put_off_for_long() {
    let mut machine = Machine::with(BucketConfig {
        memory_quota_bytes: 100_000,
        flush_interval: Duration::from_secs(1_000_000),
        ..config()
    });
    machine.set(VBID, "first", b"1").unwrap();
    machine.run();
    for _ in 0..3 {
        let refused =
            (0..).find_map(|number| machine.set(VBID, &format!("k{number}"), &[b'x'; 1000]).err());
        assert_eq!(refused, Some(No(Refused::Blocked(WriteBlock::Checkpoints))));
        machine.advance(Duration::from_millis(100));
        assert_eq!(machine.persisted(VBID), machine.high_seqno(VBID));
    }
}
