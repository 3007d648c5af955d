//! Moves documents out of pages that they hardly fill, so that the allocator gets the pages back.
//!
//! An allocator cannot move what it has given out: after many documents have gone, those that are
//! left hold on to all pages. A round counts how full each page is, and moves the documents of the
//! sparse ones. It costs a look at every document, so it comes only when the process occupies more
//! than all its buckets use together, and enough of this one has changed since the last one.

use std::time::Duration;

use document::{Item, Vbid};
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext, TaskKind, TaskName};
use platform::{Instant, accounts, allocator, process};
use vbucket::{Effect, ItemAction, VisitPosition};

use super::page_density::{PageDensity, SparsePages};
use crate::core::{Bucket, BucketCore};

static DEFRAGMENTER: TaskName = TaskName::new("DefragmenterTask", TaskKind::NonIo)
    .priority(7)
    .expected(Duration::from_millis(5));

/// Items looked at while one vBucket's lock is held: a few microseconds.
const PORTION_SLOTS_MAX: usize = 128;

/// Bytes moved while one vBucket's lock is held.
const PORTION_MOVED_BYTES_MAX: usize = 32 * 1024;

/// How often a portion is gone through again because of that limit.
const PORTION_REPEATS_MAX: usize = 50;

/// Part of the pages that a round must be able to give back.
const RECLAIMABLE_MIN: f64 = 0.05;

/// How many times as long as it ran it pauses: clients share its CPU, and nobody waits for it.
const CHUNKS_PER_PAUSE: u32 = 4;

/// A round comes after this part of the documents has changed.
const CHANGED_MIN: f64 = 0.05;

struct Defragmenter {
    bucket: Bucket,
    phase: Phase,
    /// Changes of documents up to the last round.
    changes_seen: u64,
    effects: Vec<Effect>,
}

enum Phase {
    /// Between rounds.
    Resting,
    /// Finds out which pages are sparse.
    Counting(Walk, PageDensity),
    /// Empties them.
    Moving(Walk, SparsePages),
}

/// How far a walk through all vBuckets has come.
#[derive(Clone, Copy, Default)]
struct Walk {
    vbid: u16,
    position: VisitPosition,
    repeat_count: usize,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = Defragmenter {
        bucket: bucket.clone(),
        phase: Phase::Resting,
        changes_seen: 0,
        effects: Vec::new(),
    };
    let handle = pool.schedule_asleep(&bucket.0.background.owner, &DEFRAGMENTER, task)?;
    handle.snooze(bucket.0.config.defragmenter_interval);
    Ok(())
}

impl Task for Defragmenter {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = self.bucket.0.clone();
        let deadline = context.started().after(core.config.defragmenter_chunk_duration);
        self.phase = match std::mem::replace(&mut self.phase, Phase::Resting) {
            Phase::Resting if self.is_due(&core) => {
                Phase::Counting(Walk::default(), PageDensity::default())
            }
            Phase::Resting => Phase::Resting,
            Phase::Counting(walk, density) => self.count(&core, walk, density, deadline),
            Phase::Moving(walk, sparse) => self.empty(&core, walk, sparse, deadline),
        };
        match self.phase {
            Phase::Resting => Next::SleepFor(core.config.defragmenter_interval),
            _ if core.clock.now() < deadline => Next::Again,
            _ => Next::SleepFor(core.config.defragmenter_chunk_duration * CHUNKS_PER_PAUSE),
        }
    }
}

impl Defragmenter {
    /// Whether a round is likely to be worth its cost.
    fn is_due(&mut self, core: &BucketCore) -> bool {
        // The process has the documents of all buckets.
        let wasted = process::resident_bytes().saturating_sub(accounts::totals().used_bytes);
        if wasted < core.config.defragmenter_wasted_bytes_min {
            return false;
        }
        let (mut changes, mut count) = (0, 0);
        self.bucket.for_each_vbucket(|_, vbucket| {
            let done = vbucket.statistics();
            changes += done.updates + done.deletions + done.expirations + done.ejections;
            changes += done.auto_deletions;
            count += vbucket.document_count();
        });
        // Fewer than the last time: the bucket was emptied, and its vBuckets count anew.
        let new = changes.checked_sub(self.changes_seen).unwrap_or(changes);
        let is_due = new as f64 > count as f64 * CHANGED_MIN;
        if is_due {
            self.changes_seen = changes;
        }
        is_due
    }

    fn count(
        &mut self,
        core: &BucketCore,
        mut walk: Walk,
        mut density: PageDensity,
        deadline: Instant,
    ) -> Phase {
        while core.clock.now() < deadline {
            let goes_on = walk.step(core, &mut self.effects, |item| {
                density.add(item);
                ItemAction::Keep
            });
            if !goes_on {
                return match density.sparse_pages(RECLAIMABLE_MIN) {
                    Some(sparse) => Phase::Moving(Walk::default(), sparse),
                    None => end_round(core),
                };
            }
        }
        Phase::Counting(walk, density)
    }

    fn empty(
        &mut self,
        core: &BucketCore,
        mut walk: Walk,
        mut sparse: SparsePages,
        deadline: Instant,
    ) -> Phase {
        while core.clock.now() < deadline {
            let (mut moved_bytes, mut moved_count, mut is_complete) = (0, 0, true);
            // What was moved before has left blocks in the sparse pages: none of these next.
            allocator::share_kept_blocks();
            let here = walk;
            let goes_on = walk.step(core, &mut self.effects, |item| {
                if !is_movable(item, &sparse) {
                    return ItemAction::Keep;
                }
                if moved_bytes >= PORTION_MOVED_BYTES_MAX {
                    is_complete = false;
                    return ItemAction::Keep;
                }
                moved_bytes += item.allocation_size();
                moved_count += 1;
                let moved = item.moved();
                sparse.keep_page_of(&moved);
                ItemAction::Replace(moved)
            });
            core.counters.add(&core.counters.defragmenter_moved, moved_count);
            if !is_complete && here.repeat_count < PORTION_REPEATS_MAX {
                walk = Walk { repeat_count: here.repeat_count + 1, ..here };
            } else if !goes_on {
                return end_round(core);
            }
        }
        Phase::Moving(walk, sparse)
    }
}

impl Walk {
    /// Goes through one portion. False when that was the last one.
    fn step(
        &mut self,
        core: &BucketCore,
        effects: &mut Vec<Effect>,
        act: impl FnMut(&Item) -> ItemAction,
    ) -> bool {
        let vbid = Vbid(self.vbid);
        let next = core.on_vbucket(vbid, effects, |vbucket, effects| {
            vbucket.visit_items(self.position, PORTION_SLOTS_MAX, act, effects)
        });
        *self = match next.ok().flatten() {
            Some(position) => Self { position, repeat_count: 0, ..*self },
            None => Self { vbid: self.vbid + 1, ..Self::default() },
        };
        core.slot(Vbid(self.vbid)).is_some()
    }
}

/// What the log or a connection holds as well would only become two.
fn is_movable(item: &Item, sparse: &SparsePages) -> bool {
    sparse.contain(item) && !item.is_shared()
}

/// Pages whose blocks were freed by other threads go back when the threads that filled them look.
fn end_round(core: &BucketCore) -> Phase {
    core.counters.add(&core.counters.defragmenter_rounds, 1);
    allocator::release_all_unused();
    core.listeners.release_memory();
    Phase::Resting
}
