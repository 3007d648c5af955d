//! A bucket that keeps its documents in memory alone.

use std::path::Path;
use std::time::Duration;

use bucket::{BucketConfig, BucketType, FullPolicy, ObservedState, OpenError, Refused, WriteBlock};
use document::{Cas, Operation, Seqno, Vbid, VbucketState};
use platform::Files;

use crate::prepares;
use crate::support::{DIRECTORY, Machine, No, OTHER, Unanswered, VBID, answered, config, key};

fn ephemeral() -> BucketConfig {
    BucketConfig { bucket_type: Some(BucketType::Ephemeral), ..config() }
}

fn file_names(machine: &Machine) -> Vec<String> {
    let mut names = machine.files.list(Path::new(DIRECTORY)).unwrap();
    names.sort();
    names
}

#[test]
fn started_again_it_is_empty_and_has_a_new_history() {
    for is_orderly in [true, false] {
        let mut machine = Machine::with(ephemeral());
        machine.set(VBID, "k", b"value").unwrap();
        machine.run();
        assert_eq!(machine.get(VBID, "k").unwrap(), b"value");
        assert_eq!(file_names(&machine), ["bucket.json"], "documents are in memory alone");
        let (branches, uuid) = (machine.branches(VBID), machine.bucket.uuid().to_owned());
        let mut machine = if is_orderly { machine.stop_and_start() } else { machine.restart() };
        machine.run();
        assert_eq!(machine.bucket.uuid(), uuid);
        assert_eq!(machine.find(VBID, "k").unwrap_err(), Refused::NotFound);
        assert_eq!(machine.high_seqno(VBID), Seqno(0));
        assert_eq!(machine.branches(VBID).len(), 1);
        assert_ne!(machine.branches(VBID), branches);
        machine.set(VBID, "k", b"again").unwrap();
    }
}

#[test]
fn the_type_is_decided_when_the_bucket_is_made() {
    let mut machine = Machine::with(ephemeral());
    machine.config.bucket_type = None;
    let mut machine = machine.stop_and_start();
    assert_eq!(machine.bucket.bucket_type(), BucketType::Ephemeral);
    machine.config.bucket_type = Some(BucketType::Couchbase);
    machine.bucket.shut_down().unwrap();
    match machine.try_restart() {
        Err(OpenError::BadDescription { what, .. }) => assert!(what.contains("`ephemeral`")),
        other => panic!("{:?}", other.err()),
    }
    let machine = Machine::new();
    assert_eq!(machine.bucket.bucket_type(), BucketType::Couchbase);
}

#[test]
fn nothing_is_ever_said_to_be_on_disk() {
    let mut machine = Machine::with(ephemeral());
    let stored = machine.set(VBID, "k", b"value").unwrap();
    machine.set(VBID, "deleted", b"value").unwrap();
    machine.delete(VBID, "deleted").unwrap();
    machine.run();
    for (name, state) in [
        ("k", ObservedState::NotPersisted),
        ("deleted", ObservedState::Deleted),
        ("absent", ObservedState::NotFound),
    ] {
        let key = key(name);
        let seen = machine.bucket.observe(&mut machine.session, VBID, key.as_key());
        let seen = answered(seen).unwrap();
        assert_eq!(seen.state, state, "{name}");
    }
    let status = machine.bucket.observe_seqno(&mut machine.session, VBID, stored.uuid);
    let status = answered(status).unwrap();
    assert_eq!((status.persisted, status.high), (Seqno(0), Seqno(3)));
    assert_eq!(machine.wait(1, VBID, stored.seqno), Err(No(Refused::Ephemeral)));
    assert_eq!(machine.evict(VBID, "k"), Err(No(Refused::Ephemeral)));
    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.items_persisted, statistics.ejected_count), (0, 0));
    assert_eq!(machine.bucket.file_sizes().file_bytes, 0);
}

#[test]
fn logs_shrink_although_nothing_is_written() {
    let mut machine = Machine::with(ephemeral());
    for number in 0..1000 {
        machine.set(VBID, &format!("key-{number}"), b"value").unwrap();
        machine.set(OTHER, &format!("key-{number}"), b"value").unwrap();
    }
    assert_eq!(machine.bucket.statistics().queued_item_count, 2000);
    machine.run();
    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.queued_item_count, statistics.document_count), (0, 2000));
    assert_eq!(statistics.log_bytes, 0);
}

#[test]
fn tombstones_are_purged_when_they_are_old() {
    let mut machine = Machine::with(ephemeral());
    let second = Duration::from_secs(1);
    for number in 0..500 {
        machine.set(VBID, &format!("key-{number}"), b"value").unwrap();
    }
    machine.run();
    let mut last = Seqno(0);
    for number in 0..400 {
        last = machine.delete(VBID, &format!("key-{number}")).unwrap().seqno;
    }
    machine.advance(second * 59);
    machine.set(VBID, "young", b"value").unwrap();
    machine.delete(VBID, "young").unwrap();
    machine.run();
    assert_eq!(machine.bucket.statistics().tombstone_count, 401);
    machine.advance(second);
    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.tombstone_count, statistics.document_count), (1, 100));
    assert_eq!(statistics.vbuckets.purged_tombstones, 400);
    let purge_seqno = |machine: &Machine| {
        let mut seqno = Seqno(0);
        machine.bucket.with_vbucket(VBID, |vbucket| seqno = vbucket.purge_seqno());
        seqno
    };
    assert_eq!(purge_seqno(&machine), last);
    machine.bucket.set_tombstone_purge_age_seconds(0);
    machine.bucket.set_tombstone_purge_interval_seconds(1);
    machine.delete(VBID, "key-499").unwrap();
    machine.run();
    assert_eq!(machine.bucket.statistics().tombstone_count, 2);
    machine.advance(second);
    assert_eq!(machine.bucket.statistics().tombstone_count, 0, "asked for within a second");
}

fn failing_new_data() -> BucketConfig {
    BucketConfig {
        memory_quota_bytes: 100_000,
        checkpoint_memory_ratio: 1.0,
        ephemeral_full_policy: FullPolicy::FailNewData,
        ..ephemeral()
    }
}

/// Stores documents until one is refused. Returns their names, and why.
fn fill(
    machine: &mut Machine,
    mut names: impl Iterator<Item = String>,
) -> (Vec<String>, Unanswered) {
    let mut stored = Vec::new();
    loop {
        let name = names.next().unwrap();
        match machine.set(VBID, &name, &[b'x'; 1000]) {
            Ok(_) => stored.push(name),
            Err(refused) => return (stored, refused),
        }
    }
}

#[test]
fn memory_that_the_log_still_holds_is_refused_for_now_only() {
    let interval = Duration::from_millis(50);
    let mut machine =
        Machine::with(BucketConfig { flush_interval: interval, ..failing_new_data() });
    // What is flushed at once is over: the next documents wait for their round.
    machine.set(VBID, "first", b"1").unwrap();
    machine.run();
    let mut names = (0..).map(|number| format!("key-{number}"));
    let (stored, refused) = fill(&mut machine, &mut names);
    assert_eq!(refused, Refused::Blocked(WriteBlock::Memory), "{} stored", stored.len());
    machine.run();
    let (more, refused) = fill(&mut machine, &mut names);
    assert!(!more.is_empty(), "the refusal has the log flushed and freed at once");
    assert_eq!(refused, Refused::Blocked(WriteBlock::Memory));
    let mut refused = Vec::new();
    for _ in 0..3 {
        machine.run();
        refused.push(fill(&mut machine, &mut names));
    }
    let last = (Vec::new(), No(Refused::Blocked(WriteBlock::NoMemory)));
    assert_eq!(refused.last(), Some(&last));
    machine.advance(Duration::from_secs(600));
    assert_eq!(fill(&mut machine, &mut names), last, "that is for good");
}

#[test]
fn a_full_bucket_that_may_not_delete_refuses_new_documents_for_good() {
    let mut machine = Machine::with(failing_new_data());
    let mut names = (0..).map(|number| format!("key-{number}"));
    let mut stored = Vec::new();
    loop {
        let (more, refused) = fill(&mut machine, &mut names);
        stored.extend(more);
        // Checkpoints that gave nothing back are asked again a little later.
        machine.advance(Duration::from_secs(1));
        if refused == Refused::Blocked(WriteBlock::NoMemory) {
            break;
        }
    }
    machine.advance(Duration::from_secs(600));
    assert_eq!(machine.bucket.statistics().document_count, stored.len(), "all are there");
    for name in &stored[..10] {
        machine.delete(VBID, name).unwrap();
    }
    machine.run();
    machine.set(VBID, "there is room again", &[b'x'; 1000]).unwrap();
}

#[test]
fn a_full_bucket_deletes_what_is_used_least_and_goes_on() {
    let quota_bytes = 1_000_000;
    let mut machine =
        Machine::with(BucketConfig { memory_quota_bytes: quota_bytes, ..ephemeral() });
    machine.bucket.set_tombstone_purge_age_seconds(1);
    machine.bucket.set_tombstone_purge_interval_seconds(1);
    let hot: Vec<String> = (0..100).map(|number| format!("hot-{number}")).collect();
    for name in &hot {
        machine.set(VBID, name, &[b'x'; 1000]).unwrap();
        machine.find(VBID, name).unwrap().item.set_heat(100);
    }
    for number in 0..10_000 {
        let vbid = [VBID, OTHER][number % 2];
        machine.set(vbid, &format!("cold-{number}"), &[b'x'; 1000]).unwrap();
        if number % 10 == 0 {
            machine.advance(Duration::from_millis(100));
        }
    }
    machine.run();
    let statistics = machine.bucket.statistics();
    assert!(statistics.used_bytes() <= quota_bytes * 85 / 100, "{statistics:?}");
    assert!(statistics.used_bytes() > quota_bytes * 70 / 100, "{statistics:?}");
    assert_eq!((statistics.memory_refusals, statistics.ejected_count), (0, 0));
    let deleted = statistics.vbuckets.auto_deletions;
    assert_eq!(usize::try_from(deleted).unwrap() + statistics.document_count, 10_100);
    assert!(statistics.pager_rounds > 1);
    for name in &hot {
        assert_eq!(machine.get(VBID, name).unwrap().len(), 1000, "{name}");
    }
    let (one, other) = (machine.high_seqno(VBID).0, machine.high_seqno(OTHER).0);
    assert_eq!(one + other, 10_100 + deleted, "each deletion has its place in history");
}

#[test]
fn tombstones_never_crowd_out_documents() {
    let quota_bytes = 1_000_000;
    let config = BucketConfig { memory_quota_bytes: quota_bytes, ..ephemeral() };
    let mut machine = Machine::with(config);
    // How many there were, summed up over time: they go in rounds, when the log is done with them.
    let (mut documents, mut tombstones) = (0, 0);
    for number in 0..50_000 {
        machine.set(VBID, &format!("key-{number}"), &[b'x'; 50]).unwrap();
        if number % 100 == 0 {
            // No tombstone grows old.
            machine.advance(Duration::from_millis(1));
            let statistics = machine.bucket.statistics();
            documents += statistics.document_count;
            tombstones += statistics.tombstone_count;
        }
    }
    machine.run();
    let statistics = machine.bucket.statistics();
    assert_eq!(statistics.memory_refusals, 0);
    assert!(statistics.vbuckets.auto_deletions > 40_000, "{statistics:?}");
    assert!(documents > 2 * tombstones, "{documents} documents, {tombstones} tombstones");
}

#[test]
fn a_bucket_of_replicas_alone_forgets_tombstones_and_goes_on_receiving() {
    let config = BucketConfig { memory_quota_bytes: 1_000_000, ..ephemeral() };
    let mut machine = Machine::with(config);
    for vbid in (0..4).map(Vbid) {
        machine.bucket.set_vbucket_state(vbid, VbucketState::Replica, None).unwrap();
    }
    prepares::begin(&machine.bucket);
    for seqno in 1..=20_000 {
        prepares::announce(&machine.bucket, prepares::snapshot(seqno, seqno, false));
        let name = format!("key-{seqno}");
        prepares::receive(&machine.bucket, &name, seqno, Operation::Mutation, true);
        if seqno % 100 == 0 {
            // No tombstone grows old.
            machine.advance(Duration::from_millis(1));
            assert!(machine.bucket.has_room_to_receive(), "{seqno}");
        }
    }
    machine.run();
    let statistics = machine.bucket.statistics();
    assert!(statistics.vbuckets.purged_tombstones > 10_000, "{statistics:?}");
}

#[test]
fn the_policy_can_change_while_the_bucket_is_full() {
    let mut machine = Machine::with(BucketConfig {
        memory_quota_bytes: 100_000,
        ephemeral_full_policy: FullPolicy::FailNewData,
        ..ephemeral()
    });
    let fill = |machine: &mut Machine| loop {
        let name = format!("k{}", machine.high_seqno(VBID));
        if let Err(refused) = machine.set(VBID, &name, &[b'x'; 500]) {
            return refused;
        }
    };
    // The log is full long before the bucket is.
    while fill(&mut machine) == Refused::Blocked(WriteBlock::Checkpoints) {
        machine.run();
    }
    machine.bucket.set_full_policy(FullPolicy::AutoDelete);
    let refused = machine.set(VBID, "new", b"value").unwrap_err();
    assert_eq!(refused, Refused::Blocked(WriteBlock::Memory), "there will be room");
    machine.run();
    machine.set(VBID, "new", b"value").unwrap();
    assert!(machine.bucket.statistics().vbuckets.auto_deletions > 0);
}

#[test]
fn it_is_emptied_like_any_other() {
    let mut machine = Machine::with(ephemeral());
    let before = machine.set(VBID, "k", b"value").unwrap();
    machine.run();
    machine.bucket.flush_all().unwrap();
    assert_eq!(machine.find(VBID, "k").unwrap_err(), Refused::NotFound);
    assert_ne!(machine.set(VBID, "k", b"value").unwrap().uuid, before.uuid);
    let seen = machine.bucket.observe(&mut machine.session, VBID, key("k").as_key());
    let seen = answered(seen).unwrap();
    assert_eq!(seen.state, ObservedState::NotPersisted);
    assert_ne!(seen.cas, Cas::ANY);
}
