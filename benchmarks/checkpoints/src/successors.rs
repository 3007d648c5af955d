//! The original's later benchmarks: each step that is done under the lock, for 1 000 to 100 000
//! elements.

use std::hint::black_box;
use std::time::Instant;

use document::{Item, Seqno};
use vbucket::checkpoint::{
    CheckpointKind, CheckpointManager, CursorId, LogPersistence, Snapshot, Tenure,
};

use crate::log::Mutations;

/// One of them.
pub struct Successor {
    /// The original's name.
    pub name: &'static str,
    /// Prepares a log of so many elements and measures the step: nanoseconds.
    pub measure: fn(usize) -> f64,
}

/// All of them.
pub const SUCCESSORS: [Successor; 8] = [
    Successor { name: "ExtractClosedUnrefCheckpoints", measure: extract_closed },
    Successor { name: "ExtractItemsToExpel/Memory/Open", measure: |n| expel(n, MEMORY, false) },
    Successor { name: "ExtractItemsToExpel/Memory/Closed", measure: |n| expel(n, MEMORY, true) },
    Successor { name: "ExtractItemsToExpel/Disk/Open", measure: |n| expel(n, DISK, false) },
    Successor { name: "ExtractItemsToExpel/Disk/Closed", measure: |n| expel(n, DISK, true) },
    Successor { name: "GetLowestCursor", measure: lowest_cursor },
    Successor { name: "GetCursorsToDrop", measure: cursors_to_drop },
    Successor { name: "CreateCheckpoint", measure: create_checkpoint },
];

const MEMORY: CheckpointKind = CheckpointKind::Memory;
const DISK: CheckpointKind = CheckpointKind::Disk;

/// So many looks are timed together: one alone is shorter than a clock can tell.
const LOOKS: u32 = 1_000;

/// Removing the only cursor that keeps N closed checkpoints, all of them read by the flusher.
fn extract_closed(count: usize) -> f64 {
    let mut log = with_checkpoints(count);
    let slow =
        log.register("slow", Seqno(0), Tenure::WhileMemoryLasts).expect("seqno 0 is there").id;
    flush(&mut log);
    let started = start_cold();
    let detached = log.remove_cursor(slow);
    let took = nanos(started);
    assert!(detached.is_some_and(|detached| detached.extent().items >= count - 1), "all go");
    took
}

/// Expelling N items of one checkpoint that both readers have read.
fn expel(count: usize, kind: CheckpointKind, is_closed: bool) -> f64 {
    let mut log = CheckpointManager::continuing(Seqno(0), LogPersistence::File);
    let stream =
        log.register("stream", Seqno(0), Tenure::WhileMemoryLasts).expect("seqno 0 is there").id;
    let snapshot = Snapshot {
        end: Seqno(count as u64),
        high_completed: Some(Seqno(0)),
        ..Snapshot::beginning_at(Seqno(1))
    };
    drop(log.begin_snapshot(kind, snapshot));
    let mut mutations = Mutations::default();
    for _ in 0..count {
        drop(log.queue_received(mutations.next_item(), None));
    }
    read(&mut log, stream);
    let flusher = log.persistence_cursor().expect("a log with a file has a flusher");
    let range = log.begin_read(flusher).expect("there is something to flush");
    if !is_closed {
        drop(log.finish_read(&range, count));
        drop(range);
        let started = start_cold();
        let detached = log.expel();
        let took = nanos(started);
        assert!(detached.is_some_and(|detached| detached.extent().items == count), "all go");
        return took;
    }
    // What is closed leaves as soon as it is read: confirming the read is the step.
    drop(log.begin_checkpoint());
    let started = start_cold();
    let detached = log.finish_read(&range, count);
    let took = nanos(started);
    assert!(detached.is_some_and(|detached| detached.extent().items == count), "all go");
    took
}

/// Looking for the slowest of three cursors that are N items apart.
fn lowest_cursor(count: usize) -> f64 {
    let log = with_cursors_apart(count);
    let started = Instant::now();
    for _ in 0..LOOKS {
        black_box(black_box(&log).lowest_cursor_seqno());
    }
    nanos(started) / f64::from(LOOKS)
}

/// Looking for cursors to drop, N checkpoints apart.
fn cursors_to_drop(count: usize) -> f64 {
    let (mut log, now) = (with_cursors_apart(count), platform::Instant::default());
    assert_eq!(log.cursors_to_drop(now).len(), 2, "both streams are slow");
    let started = Instant::now();
    for _ in 0..LOOKS {
        black_box(black_box(&mut log).cursors_to_drop(now));
    }
    nanos(started) / f64::from(LOOKS)
}

/// Beginning a checkpoint behind N others.
fn create_checkpoint(count: usize) -> f64 {
    let mut log = with_checkpoints(count);
    let started = start_cold();
    let detached = log.begin_checkpoint();
    let took = nanos(started);
    drop(detached);
    took
}

/// A log of `count` checkpoints of one item each.
fn with_checkpoints(count: usize) -> CheckpointManager {
    let mut log = CheckpointManager::continuing(Seqno(0), LogPersistence::File);
    log.set_checkpoint_bytes_max(1);
    let mut mutations = Mutations::default();
    let mut newest: Option<Item> = None;
    for _ in 0..count {
        let item = mutations.next_item();
        let replaced = newest.replace(item.clone());
        drop(log.queue(item, replaced.as_ref()));
    }
    log
}

fn with_cursors_apart(count: usize) -> CheckpointManager {
    let mut log = with_checkpoints(count);
    for after in [0, count / 2] {
        let name = format!("stream at {after}");
        log.register(&name, Seqno(after as u64), Tenure::WhileMemoryLasts)
            .expect("the seqno is there");
    }
    flush(&mut log);
    log
}

fn flush(log: &mut CheckpointManager) {
    let flusher = log.persistence_cursor().expect("a log with a file has a flusher");
    read(log, flusher);
}

fn read(log: &mut CheckpointManager, cursor: CursorId) {
    if let Some(range) = log.begin_read(cursor) {
        let count = range.item_count();
        drop(log.finish_read(&range, count));
    }
}

/// Begins to time a step that can be done only once. Caches hold nothing of the log then, be it
/// small or large: otherwise the step would be a small log's alone to find what it needs in them.
fn start_cold() -> Instant {
    const CACHES_BYTES: usize = 64 << 20;
    const LINE_BYTES: usize = 64;
    let mut bytes = vec![0_u8; CACHES_BYTES];
    for line in bytes.chunks_mut(LINE_BYTES) {
        line[0] = line[0].wrapping_add(1);
    }
    black_box(&bytes);
    Instant::now()
}

fn nanos(started: Instant) -> f64 {
    started.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_successor_can_be_measured() {
        for successor in SUCCESSORS {
            assert!((successor.measure)(2_000) > 0.0, "{}", successor.name);
        }
    }
}
