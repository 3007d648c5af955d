//! The bucket's memory: what is refused and what is let in.

use std::time::Duration;

use bucket::{Attempted, BucketConfig, Incoming, Persistence, Refused, Write, WriteBlock};
use document::{DurabilityLevel, VbucketState};
use vbucket::{SyncWriteRequest, Waiter, WriteCondition, Written};

use crate::support::{Machine, VBID, config, key};

fn small() -> Machine {
    let checkpoint_memory_ratio = 1.0;
    Machine::with(BucketConfig { memory_quota_bytes: 100_000, checkpoint_memory_ratio, ..config() })
}

#[test]
fn while_checkpoints_are_full_writes_wait_for_the_flusher() {
    let mut machine = Machine::with(BucketConfig { memory_quota_bytes: 100_000, ..config() });
    let mut count = 0;
    let refused = loop {
        match machine.set(VBID, &format!("key-{count}"), &[b'x'; 1000]) {
            Ok(_) => count += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, Refused::Blocked(WriteBlock::Checkpoints));
    let statistics = machine.bucket.statistics();
    assert_eq!(statistics.checkpoints_quota_bytes, 20_000);
    assert!(statistics.checkpoints_bytes >= 20_000);
    assert_eq!((statistics.checkpoint_refusals, statistics.memory_refusals), (1, 0));
    machine.run();
    let statistics = machine.bucket.statistics();
    assert_eq!((statistics.checkpoints_bytes, statistics.log_bytes), (0, 0));
    assert_eq!(statistics.checkpoint_items_removed, count);
    assert!(statistics.checkpoint_recoveries > 0, "the upper mark has woken the recovery");
    machine.set(VBID, "there is room again", b"value").unwrap();
}

#[test]
fn a_durable_write_finds_room_in_checkpoints_that_are_full_for_others() {
    let mut machine = Machine::with(BucketConfig { memory_quota_bytes: 1_000_000, ..config() });
    let chains = Some(vec![vec![Some("here".to_owned())]]);
    machine.bucket.set_vbucket_state(VBID, VbucketState::Active, chains).unwrap();
    machine.run();
    while machine.set(VBID, "plain", &[b'x'; 1000]).is_ok() {}
    let deadline = machine.clock.now().after(Duration::from_secs(1000));
    let level = DurabilityLevel::Majority;
    let sync_write = Some(SyncWriteRequest { level, deadline, waiter: Waiter(1) });
    let condition = WriteCondition { sync_write, ..WriteCondition::default() };
    let large = vec![b'x'; (64 << 10) + 1];
    let large_key = key("large");
    let write = Write::set(VBID, large_key.as_key(), Incoming::plain(&large));
    let refused = machine.bucket.store(&mut machine.session, Write { condition, ..write });
    assert_eq!(refused, Err(Refused::Blocked(WriteBlock::Checkpoints)));
    let mut begun = 0;
    let refused = loop {
        let key = key(&format!("durable-{begun}"));
        let value = Incoming::plain(&[b'x'; 100]);
        let write = Write { condition, ..Write::set(VBID, key.as_key(), value) };
        match machine.bucket.store(&mut machine.session, write) {
            Ok(Attempted::Answered(Written::Begun)) => begun += 1,
            Err(refused) => break refused,
            Ok(_) => panic!("a durable write is over at once"),
        }
    };
    assert_eq!(refused, Refused::Blocked(WriteBlock::Checkpoints));
    assert!(begun >= 5, "{begun}");
    let statistics = machine.bucket.statistics();
    assert!((225_000..227_000).contains(&statistics.checkpoints_bytes), "an eighth is more");
}

#[test]
fn above_the_ratio_stores_are_refused_and_deletes_let_in() {
    let mut machine = small();
    let mut stored = Vec::new();
    let refused = loop {
        let name = format!("key-{}", stored.len());
        match machine.set(VBID, &name, &[b'x'; 1000]) {
            Ok(_) => stored.push(name),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, Refused::Blocked(WriteBlock::Memory));
    let statistics = machine.bucket.statistics();
    assert!(statistics.used_bytes() >= 93_000);
    assert!(statistics.used_bytes() < 96_000);
    assert_eq!((statistics.memory_refusals, statistics.disk_refusals), (1, 0));
    assert!((60..93).contains(&stored.len()), "{}", stored.len());
    assert_eq!(machine.get(VBID, &stored[0]).unwrap(), [b'x'; 1000]);
    for name in &stored {
        machine.delete(VBID, name).unwrap();
    }
    machine.run();
    machine.set(VBID, "there is room again", b"value").unwrap();
}

#[test]
fn the_marks_of_checkpoints_follow_the_quota() {
    const MIB: u64 = 1 << 20;
    // A journal that is large enough for checkpoints of any of these sizes.
    let persistence = Persistence::default();
    let config = BucketConfig { memory_quota_bytes: 100 * MIB, persistence, ..config() };
    let machine = Machine::with(config);
    for quota in [100 * MIB, 400 * MIB, 200 * MIB] {
        machine.bucket.set_memory_quota(quota).unwrap();
        let statistics = machine.bucket.statistics();
        let per_vbucket = quota / 5 / u64::from(machine.bucket.config().vbucket_count);
        assert_eq!(statistics.checkpoints_quota_bytes, quota / 5);
        assert_eq!(statistics.checkpoints_upper_mark_bytes, quota / 50 * 9);
        assert_eq!(statistics.checkpoints_lower_mark_bytes, quota / 25 * 3);
        assert_eq!(statistics.checkpoint_bytes_max as u64, per_vbucket / 10);
    }
}
