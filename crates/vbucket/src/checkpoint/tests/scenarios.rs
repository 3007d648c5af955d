//! The log's rules, one a test. Most have a scenario of the original behind them
//! (docs/specification/engine.md, section 3.13).

use document::{Operation, Seqno, VbucketState};
use platform::Instant;

use super::support::{ABORT, Bench, COMMIT, PREPARE, item, seqnos};
use crate::checkpoint::{
    CheckpointKind, CheckpointManager, LogPersistence, MetaItem, QueueOutcome, ReadLimit, Snapshot,
    Tenure,
};

fn items(items_max: usize) -> ReadLimit {
    ReadLimit { items_max, ..ReadLimit::NONE }
}

fn disk(start: u64, end: u64) -> (CheckpointKind, Snapshot) {
    (CheckpointKind::Disk, memory(start, end).1)
}

fn memory(start: u64, end: u64) -> (CheckpointKind, Snapshot) {
    let snapshot = Snapshot {
        end: Seqno(end),
        visible_end: Seqno(end),
        high_completed: Some(Seqno(0)),
        ..Snapshot::beginning_at(Seqno(start))
    };
    (CheckpointKind::Memory, snapshot)
}

/// Announces a snapshot and receives all of it, keys 0, 1, 2, ...
fn receive(bench: &mut Bench, (kind, snapshot): (CheckpointKind, Snapshot)) {
    drop(bench.log.begin_snapshot(kind, snapshot));
    for (name, seqno) in (snapshot.start.0..=snapshot.end.0).enumerate() {
        let item = item(name, seqno, Operation::Mutation);
        drop(bench.log.queue_received(item, None));
    }
}

#[test]
fn a_newer_version_takes_the_place_of_the_older_one_in_the_open_checkpoint() {
    let mut bench = Bench::new(7, LogPersistence::File);
    bench.queue_all(&[1, 2]);
    let queued = bench.queue(1);
    assert_eq!(queued.outcome, QueueOutcome::Replaced);
    assert_eq!(queued.superseded.map(|item| item.seqno()), Some(Seqno(8)));
    assert_eq!((bench.log.unflushed_count(), bench.log.extent().items), (2, 2));
    assert_eq!(bench.flush(), [9, 10]);
}

#[test]
fn a_closed_checkpoint_keeps_the_older_version() {
    let mut bench = Bench::flushed();
    bench.queue_all(&[1, 2]);
    drop(bench.log.begin_checkpoint());
    assert_eq!(bench.queue(1).outcome, QueueOutcome::New);
    assert_eq!(bench.flush(), [1, 2, 3]);
}

#[test]
fn a_version_that_was_flushed_already_is_to_be_persisted_again() {
    let mut bench = Bench::flushed();
    let stream = bench.stream("slow", 0);
    bench.queue_all(&[1, 2]);
    assert_eq!(bench.flush(), [1, 2]);
    let queued = bench.queue(1);
    assert_eq!(queued.outcome, QueueOutcome::PersistAgain);
    assert!(queued.superseded.is_some(), "the slow stream need not see it");
    assert_eq!((bench.log.unflushed_count(), bench.log.remaining(stream)), (1, 2));
    assert_eq!(bench.flush(), [3]);
    assert_eq!(bench.read(stream), [2, 3]);
}

#[test]
fn a_reader_sees_what_was_there_when_it_began() {
    let mut bench = Bench::flushed();
    bench.queue_all(&[1, 2]);
    let range = bench.log.begin_read(bench.persistence()).unwrap();
    let queued = bench.queue(1);
    assert!(queued.superseded.is_none(), "the reader still sees it");
    assert_eq!(seqnos(&range), [1, 2]);
    assert_eq!(bench.log.unflushed_count(), 2);
    drop(bench.log.finish_read(&range, 2));
    assert_eq!(bench.log.unflushed_count(), 1);
    assert_eq!(bench.flush(), [3]);
}

#[test]
fn after_a_failed_flush_the_same_comes_again_each_key_once() {
    let mut bench = Bench::flushed();
    bench.queue_all(&[1, 2, 3]);
    let cursor = bench.persistence();
    for (name, expected) in [(1, vec![2, 3, 4]), (2, vec![3, 4, 5]), (2, vec![3, 4, 6])] {
        let range = bench.log.begin_read(cursor).unwrap();
        bench.queue_all(&[name]);
        drop(range);
        bench.log.fail_read(cursor);
        let again = bench.log.begin_read(cursor).unwrap();
        assert_eq!(seqnos(&again), expected);
        assert!(again.is_one_checkpoint());
        bench.log.fail_read(cursor);
        assert_eq!(bench.log.unflushed_count(), 3);
    }
    assert_eq!(bench.flush().len(), 3);
    assert_eq!(bench.log.unflushed_count(), 0);
}

#[test]
fn prepared_and_committed_versions_of_a_key_are_two_namespaces() {
    let mut bench = Bench::flushed();
    bench.queue_all(&[1]);
    drop(bench.queue_as(1, PREPARE));
    assert_eq!(bench.log.checkpoint_count(), 1);
    assert_eq!(bench.log.extent().items, 2, "neither replaces the other");
    assert_eq!(bench.log.max_visible_seqno(), Seqno(1));
}

#[test]
fn versions_of_which_one_is_part_of_a_durable_write_never_meet_in_a_checkpoint() {
    let cases = [
        (PREPARE, PREPARE),
        (PREPARE, ABORT),
        (Operation::Mutation, COMMIT),
        (COMMIT, Operation::Mutation),
    ];
    for (first, second) in cases {
        let mut bench = Bench::flushed();
        drop(bench.queue_as(1, first));
        let queued = bench.queue_as(1, second);
        assert_eq!(queued.outcome, QueueOutcome::New, "{first:?}, {second:?}");
        assert_eq!(bench.log.checkpoint_count(), 2, "{first:?}, {second:?}");
        assert_eq!(bench.flush(), [1, 2]);
    }
}

#[test]
fn a_full_checkpoint_is_closed_by_the_next_mutation() {
    let mut bench = Bench::flushed();
    bench.log.set_checkpoint_bytes_max(1);
    bench.queue_all(&[1]);
    assert_eq!(bench.log.checkpoint_count(), 1, "whatever its size, one item enters");
    bench.queue_all(&[1, 1]);
    assert_eq!(bench.log.checkpoint_count(), 3);
    assert_eq!(bench.flush(), [1, 2, 3]);
    assert_eq!(bench.log.checkpoint_count(), 1);
}

#[test]
fn a_limit_is_met_at_the_end_of_a_checkpoint() {
    let mut bench = Bench::flushed();
    for name in 1..=4 {
        bench.queue_all(&[name, name + 4]);
        drop(bench.log.begin_checkpoint());
    }
    let cursor = bench.persistence();
    assert_eq!(bench.read_limited(cursor, items(1)), (vec![1, 2], true));
    assert_eq!(bench.read_limited(cursor, items(3)), (vec![3, 4, 5, 6], true));
    let bytes = ReadLimit { item_bytes_max: 1, ..ReadLimit::NONE };
    assert_eq!(bench.read_limited(cursor, bytes), (vec![7, 8], false));
    assert_eq!(bench.log.remaining(cursor), 0);
}

#[test]
fn disk_snapshots_are_never_merged_nor_mixed_with_memory() {
    let mut bench = Bench::flushed();
    for snapshot in [memory(1, 2), memory(3, 3), disk(4, 5), disk(6, 7), memory(8, 9)] {
        receive(&mut bench, snapshot);
    }
    let cursor = bench.persistence();
    let mut reads = Vec::new();
    while bench.log.remaining(cursor) > 0 {
        reads.push(bench.read_limited(cursor, ReadLimit::NONE).0);
    }
    assert_eq!(reads, [vec![1, 2, 3], vec![4, 5], vec![6, 7], vec![8, 9]]);
}

#[test]
fn the_flusher_may_stop_within_a_disk_snapshot() {
    let mut bench = Bench::flushed();
    let (kind, snapshot) = disk(1, 4_000);
    drop(bench.log.begin_snapshot(kind, snapshot));
    for seqno in 1..=4_000 {
        drop(bench.log.queue_received(item(0, seqno, Operation::Mutation), None));
    }
    let cursor = bench.persistence();
    let limit = ReadLimit { cuts_disk_snapshots: true, ..items(1_500) };
    let (read, has_more) = bench.read_limited(cursor, limit);
    assert!(has_more && (1_500..2_600).contains(&read.len()), "{}", read.len());
    assert_eq!(bench.log.remaining(cursor), 4_000 - read.len());
    let (rest, has_more) = bench.read_limited(cursor, items(1));
    assert_eq!((rest.len(), has_more), (4_000 - read.len(), false), "streams read it whole");
}

#[test]
fn a_memory_snapshot_that_continues_is_taken_in_and_a_disk_snapshot_is_not() {
    let mut bench = Bench::flushed();
    receive(&mut bench, memory(1, 2));
    assert!(bench.log.extend_snapshot(memory(3, 3).1));
    drop(bench.log.queue_received(item(5, 3, Operation::Mutation), None));
    assert_eq!(bench.log.checkpoint_count(), 1);
    receive(&mut bench, disk(4, 5));
    assert!(!bench.log.extend_snapshot(memory(9, 9).1));
    let range = bench.log.begin_read(bench.persistence()).unwrap();
    let ends: Vec<u64> = range.snapshots().iter().map(|(_, snapshot)| snapshot.end.0).collect();
    assert_eq!(ends, [3, 5]);
}

#[test]
fn the_failover_seqno_is_the_end_of_the_last_complete_snapshot() {
    let mut bench = Bench::flushed();
    receive(&mut bench, memory(1, 3));
    assert_eq!(bench.log.failover_seqno(), Seqno(3));
    let (kind, snapshot) = memory(4, 6);
    drop(bench.log.begin_snapshot(kind, snapshot));
    assert_eq!(bench.log.snapshot_position(), (Seqno(3), Seqno(3), Seqno(3)));
    drop(bench.log.queue_received(item(1, 5, Operation::Mutation), None));
    assert_eq!(bench.log.failover_seqno(), Seqno(3), "half a snapshot is none");
    assert_eq!(bench.log.snapshot_position(), (Seqno(5), Seqno(4), Seqno(6)));
    drop(bench.log.queue_received(item(2, 6, Operation::Mutation), None));
    assert_eq!(bench.log.failover_seqno(), Seqno(6));
}

#[test]
fn a_consumed_checkpoint_leaves_when_its_last_cursor_does() {
    let mut bench = Bench::flushed();
    let stream = bench.stream("stream", 0);
    for _ in 0..3 {
        bench.queue_all(&[1, 2]);
        drop(bench.log.begin_checkpoint());
    }
    assert_eq!(bench.flush().len(), 6);
    assert_eq!(bench.log.checkpoint_count(), 4, "the stream has not read them");
    bench.read_limited(stream, items(1));
    assert_eq!(bench.log.checkpoint_count(), 3);
    let detached = bench.log.remove_cursor(stream).unwrap();
    assert_eq!(detached.extent().items, 4);
    assert_eq!((bench.log.checkpoint_count(), bench.log.extent().items), (1, 0));
}

#[test]
fn only_the_oldest_part_leaves() {
    let mut bench = Bench::flushed();
    let fast = bench.stream("fast", 0);
    for name in 1..=3 {
        bench.queue_all(&[name]);
        drop(bench.log.begin_checkpoint());
    }
    bench.read(fast);
    assert_eq!(bench.log.checkpoint_count(), 4, "the flusher has read nothing yet");
    assert_eq!(bench.log.lowest_cursor_seqno(), Some(Seqno(1)));
    bench.flush();
    assert_eq!(bench.log.checkpoint_count(), 1);
}

#[test]
fn streams_that_come_back_find_what_is_kept_of_the_open_checkpoint_until_it_is_expelled() {
    let mut bench = Bench::flushed();
    let stream = bench.stream("stream", 0);
    bench.queue_all(&[1, 2, 3]);
    bench.flush();
    bench.read(stream);
    let again = bench.log.register("stream", Seqno(1), Tenure::WhileMemoryLasts).unwrap();
    assert_eq!((again.next_seqno, again.needs_backfill), (Seqno(2), false));
    assert_eq!(bench.read(again.id), [2, 3]);
    let expellable = bench.log.expellable_bytes();
    let expelled = bench.log.expel().unwrap();
    assert_eq!(expelled.extent().bytes(), expellable);
    assert_eq!(expelled.extent().items, 3);
    let late = bench.log.register("late", Seqno(1), Tenure::WhileMemoryLasts).unwrap();
    assert_eq!((late.next_seqno, late.needs_backfill), (Seqno(4), true));
    let up_to_date = bench.log.register("up to date", Seqno(3), Tenure::WhileMemoryLasts).unwrap();
    assert_eq!((up_to_date.next_seqno, up_to_date.needs_backfill), (Seqno(4), false));
}

#[test]
fn without_streams_nothing_is_kept_that_is_flushed() {
    let mut bench = Bench::flushed();
    bench.queue_all(&[1, 2, 3]);
    bench.flush();
    assert_eq!((bench.log.extent().items, bench.log.extent().bytes()), (0, 0));
    assert!(bench.log.register("late", Seqno(2), Tenure::WhileMemoryLasts).unwrap().needs_backfill);
}

#[test]
fn expelling_lets_go_what_the_slowest_cursor_has_read_and_no_more() {
    let mut bench = Bench::flushed();
    let (slow, fast) = (bench.stream("slow", 0), bench.stream("fast", 0));
    bench.queue_all(&[1, 2]);
    bench.read(slow);
    bench.queue_all(&[3, 4]);
    bench.read(fast);
    bench.flush();
    let expelled = bench.log.expel().unwrap();
    assert_eq!(expelled.extent().items, 2);
    assert_eq!(bench.log.remaining(slow), 2);
    assert_eq!(bench.read(slow), [3, 4]);
    assert!(bench.log.expel().is_some());
    assert!(bench.log.expel().is_none(), "there is nothing more");
}

#[test]
fn a_version_of_an_expelled_one_is_a_new_item() {
    let mut bench = Bench::flushed();
    let stream = bench.stream("stream", 0);
    bench.queue_all(&[1, 2]);
    bench.flush();
    bench.read(stream);
    drop(bench.log.expel());
    assert_eq!(bench.queue(1).outcome, QueueOutcome::PersistAgain);
    assert_eq!((bench.log.unflushed_count(), bench.log.remaining(stream)), (1, 1));
    assert_eq!(bench.read(stream), [3]);
}

#[test]
fn a_checkpoint_can_be_expelled_whole_and_go_on() {
    let mut bench = Bench::flushed();
    let stream = bench.stream("stream", 0);
    bench.queue_all(&[1]);
    bench.flush();
    bench.read(stream);
    drop(bench.log.expel());
    assert_eq!(bench.log.extent().bytes(), 0);
    assert_eq!(bench.log.open_checkpoint_id(), 1);
    bench.queue_all(&[2]);
    assert_eq!(bench.read(stream), [2]);
}

#[test]
fn cursors_that_keep_more_than_the_flusher_may_be_dropped() {
    let mut bench = Bench::flushed();
    let slow = bench.stream("slow", 0);
    bench.queue_all(&[1]);
    drop(bench.log.begin_checkpoint());
    assert!(bench.log.cursors_to_drop(Instant::default()).is_empty(), "the flusher is as slow");
    bench.queue_all(&[2]);
    bench.flush();
    assert_eq!(bench.log.cursors_to_drop(Instant::default()), [slow]);
    bench.read(slow);
    assert!(bench.log.cursors_to_drop(Instant::default()).is_empty());
}

#[test]
fn without_a_file_cursors_behind_the_open_checkpoint_may_be_dropped() {
    let mut bench = Bench::new(0, LogPersistence::None);
    let slow = bench.stream("slow", 0);
    bench.queue_all(&[1]);
    assert!(bench.log.cursors_to_drop(Instant::default()).is_empty());
    drop(bench.log.begin_checkpoint());
    assert_eq!(bench.log.cursors_to_drop(Instant::default()), [slow]);
}

#[test]
fn a_cursor_that_is_registered_again_keeps_what_it_stands_on() {
    for (after, expected) in [(0, vec![1, 2, 3, 4]), (1, vec![2, 3, 4]), (3, vec![4]), (4, vec![])]
    {
        let mut bench = Bench::flushed();
        bench.stream("stream", 0);
        bench.queue_all(&[1, 2]);
        drop(bench.log.begin_checkpoint());
        bench.queue_all(&[3, 4]);
        bench.flush();
        let again = bench.log.register("stream", Seqno(after), Tenure::WhileMemoryLasts).unwrap();
        assert!(!again.needs_backfill, "after {after}");
        assert_eq!(bench.log.remaining(again.id), expected.len(), "after {after}");
        assert_eq!(bench.read(again.id), expected, "after {after}");
        assert_eq!(bench.log.cursors().len(), 2);
    }
}

#[test]
fn nobody_registers_behind_the_end() {
    let mut bench = Bench::flushed();
    bench.queue_all(&[1, 2]);
    assert_eq!(bench.log.register("stream", Seqno(3), Tenure::WhileMemoryLasts), Err(Seqno(2)));
}

#[test]
fn a_change_of_role_has_its_place_and_takes_no_seqno() {
    let mut bench = Bench::flushed();
    bench.queue_all(&[1]);
    bench.log.queue_state(VbucketState::Replica);
    bench.queue_all(&[2]);
    bench.log.queue_state(VbucketState::Active);
    let range = bench.log.begin_read(bench.persistence()).unwrap();
    let meta = |state| MetaItem::VbucketState(state);
    let expected =
        [(Seqno(2), meta(VbucketState::Replica)), (Seqno(3), meta(VbucketState::Active))];
    assert_eq!(range.metas(), expected);
    assert_eq!(seqnos(&range), [1, 2]);
}

#[test]
fn a_change_of_role_alone_is_something_to_read() {
    let mut bench = Bench::flushed();
    bench.log.queue_state(VbucketState::Replica);
    assert!(!bench.log.is_flushed());
    assert!(bench.flush().is_empty());
    assert!(bench.log.is_flushed());
    assert_eq!(bench.log.extent().bytes(), 0);
}

#[test]
fn a_checkpoint_ends_with_what_had_come_when_it_was_closed_though_that_is_nothing() {
    let mut bench = Bench::flushed();
    let stream = bench.stream("stream", 0);
    bench.queue_all(&[1, 2]);
    // A replica is told of a snapshot of which nothing comes, and of another role twice.
    let (kind, snapshot) = memory(3, 5);
    drop(bench.log.begin_snapshot(kind, snapshot));
    bench.log.queue_state(VbucketState::Pending);
    for _ in 0..2 {
        drop(bench.log.begin_checkpoint());
        bench.log.queue_state(VbucketState::Active);
    }
    drop(bench.log.begin_checkpoint());
    bench.queue_all(&[3]);
    let sections = bench.log.begin_read(stream).unwrap().sections();
    let ends = sections.iter().map(|section| (section.items.len(), section.snapshot.end.0));
    assert_eq!(ends.collect::<Vec<_>>(), [(2, 2), (0, 2), (0, 2), (0, 2), (1, 3)]);
}

#[test]
fn a_reset_moves_every_cursor_to_the_new_end() {
    let mut bench = Bench::flushed();
    let stream = bench.stream("stream", 0);
    bench.queue_all(&[1, 2, 3]);
    let range = bench.log.begin_read(stream).unwrap();
    let gone = bench.log.reset(Seqno(1)).unwrap();
    assert_eq!(gone.extent().items, 3);
    assert!(bench.log.finish_read(&range, 3).is_none(), "what was read is not there any more");
    assert_eq!((bench.log.remaining(stream), bench.log.high_seqno()), (0, Seqno(1)));
    assert_eq!((bench.log.extent().bytes(), bench.log.failover_seqno()), (0, Seqno(0)));
    bench.newest.fill([None, None]);
    bench.queue_all(&[4]);
    assert_eq!(bench.read(stream), [2]);
    assert_eq!(bench.flush(), [2]);
}

#[test]
fn a_read_from_before_a_reset_does_not_end_one_from_after_it() {
    let mut bench = Bench::flushed();
    let stream = bench.stream("stream", 0);
    bench.queue_all(&[1, 2, 3]);
    let before = bench.log.begin_read(stream).unwrap();
    drop(bench.log.reset(Seqno(0)));
    bench.newest.fill([None, None]);
    bench.queue_all(&[1, 2]);
    let after = bench.log.begin_read(stream).unwrap();
    assert!(bench.log.finish_read(&before, 3).is_none());
    assert_eq!(bench.log.remaining(stream), 2);
    drop(bench.log.finish_read(&after, 2));
    assert_eq!(bench.log.remaining(stream), 0);
}

#[test]
fn a_replica_finds_superseded_versions_behind_gaps() {
    let mut bench = Bench::flushed();
    let (kind, snapshot) = memory(1, 5_000_000_000);
    drop(bench.log.begin_snapshot(kind, snapshot));
    let mut newest = None;
    for seqno in [3, 70, 71, 4_000_000, 4_999_999_999] {
        let item = item(1, seqno, Operation::Mutation);
        let queued = bench.log.queue_received(item.clone(), newest.as_ref());
        assert_eq!(queued.superseded.is_some(), newest.is_some(), "at {seqno}");
        newest = Some(item);
    }
    assert_eq!(bench.flush(), [4_999_999_999]);
}

#[test]
fn a_long_chain_is_freed_without_a_deep_stack() {
    let mut log = CheckpointManager::continuing(Seqno(0), LogPersistence::File);
    log.set_checkpoint_bytes_max(1);
    for seqno in 1..=200_000 {
        drop(log.queue(item(0, seqno, Operation::Mutation), None));
    }
    let range = log.begin_read(log.persistence_cursor().unwrap()).unwrap();
    let detached = log.finish_read(&range, range.item_count()).unwrap();
    assert_eq!(detached.extent().items, 200_000);
    drop(range);
    drop(detached);
}

#[test]
#[should_panic(expected = "outside of locks")]
#[cfg(debug_assertions)]
fn what_leaves_the_log_is_not_freed_under_a_lock() {
    let mut bench = Bench::flushed();
    bench.queue_all(&[1, 2, 3]);
    let range = bench.log.begin_read(bench.persistence()).unwrap();
    let detached = bench.log.finish_read(&range, 3);
    drop(range);
    let _zone = platform::no_free::Zone::enter();
    drop(detached);
}
