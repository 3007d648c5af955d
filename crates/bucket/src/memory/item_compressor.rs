//! Compresses values behind the clients' backs, in the mode that asks for it.
//!
//! A value that was found not to be worth it is not tried again, and no item has room to say so.
//! So each vBucket has a seqno up to which everything was tried: what is newer is tried in the next
//! round. Only what has left the log is tried, because the log would keep the plain value, too.

use std::time::Duration;

use document::{Item, Seqno, VbUuid, Vbid};
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};
use platform::Instant;
use vbucket::{Effect, ItemAction, Vbucket, VisitPosition};

use super::compression::is_compressible;
use crate::config::CompressionMode;
use crate::core::{Bucket, BucketCore};

static COMPRESSOR: TaskName = TaskName::new("ItemCompressorTask", TaskKind::NonIo)
    .priority(7)
    .expected(Duration::from_millis(100));

/// Slots looked at while one vBucket's lock is held: a few microseconds.
const PORTION_SLOTS_MAX: usize = 128;

struct Compressor {
    bucket: Bucket,
    /// By vBucket.
    progress: Vec<Progress>,
    /// The vBucket that comes next.
    current: u16,
    /// What the last portion held, to be tried.
    candidates: Vec<Item>,
    candidates_of: Vbid,
    effects: Vec<Effect>,
}

/// How far a vBucket was gone through.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Of which history; another one begins at the beginning.
    uuid: VbUuid,
    /// Everything up to here was tried.
    tried_up_to: Seqno,
    /// The round that is under way: what it tries, and where it goes on.
    round: Option<(Seqno, VisitPosition)>,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let progress = vec![Progress::default(); bucket.0.vbuckets.slots.len()];
    let task = Compressor {
        bucket: bucket.clone(),
        progress,
        current: 0,
        candidates: Vec::new(),
        candidates_of: Vbid(0),
        effects: Vec::new(),
    };
    let handle = pool.schedule(&bucket.0.background.owner, &COMPRESSOR, task)?;
    bucket.0.memory.compressor.set(handle);
    Ok(())
}

impl Task for Compressor {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = self.bucket.0.clone();
        if core.memory.compression.mode() != CompressionMode::Active {
            // What comes into memory meanwhile is not known to have been tried.
            self.progress.fill(Progress::default());
            self.candidates.clear();
            return Next::Sleep;
        }
        self.run_until(&core, context.started().after(core.config.item_compressor_chunk_duration));
        Next::SleepFor(core.config.item_compressor_interval)
    }
}

impl Compressor {
    /// Goes on until every vBucket had its turn, or the time is over.
    fn run_until(&mut self, core: &BucketCore, deadline: Instant) {
        let mut vbuckets_left = self.progress.len();
        while vbuckets_left > 0 {
            if !self.try_candidates(core, deadline) {
                return;
            }
            if !self.collect_portion(core) {
                self.current = (self.current + 1) % core.config.vbucket_count;
                vbuckets_left -= 1;
            }
            if core.clock.now() >= deadline {
                return;
            }
        }
    }

    /// Collects the values of the current vBucket's next portion. False when its round is over.
    fn collect_portion(&mut self, core: &BucketCore) -> bool {
        let vbid = Vbid(self.current);
        let progress = &mut self.progress[usize::from(self.current)];
        self.candidates_of = vbid;
        let candidates = &mut self.candidates;
        let (visited_count, goes_on) = core
            .on_vbucket(vbid, &mut self.effects, |vbucket, effects| {
                progress.collect(vbucket, candidates, effects)
            })
            .unwrap_or((0, false));
        core.counters.add(&core.counters.compressor_visited, visited_count);
        goes_on
    }

    /// Compresses what was collected, outside of locks. False when the time was over before.
    fn try_candidates(&mut self, core: &BucketCore, deadline: Instant) -> bool {
        while let Some(item) = self.candidates.pop() {
            if let Some(compressed) = core.memory.compression.with_compressed_value(&item) {
                self.replace(core, compressed);
            }
            if core.clock.now() >= deadline {
                return false;
            }
        }
        true
    }

    /// Puts a compressed value in the place of the plain one, if that is still there.
    fn replace(&mut self, core: &BucketCore, compressed: Item) {
        let is_replaced = core
            .on_vbucket(self.candidates_of, &mut self.effects, |vbucket, effects| {
                vbucket.replace_form(compressed, effects)
            })
            .unwrap_or(false);
        core.counters.add(&core.counters.compressor_compressed, usize::from(is_replaced));
    }
}

impl Progress {
    /// Collects what the next portion holds to be tried. Returns how many items were looked at, and
    /// whether the round goes on.
    fn collect(
        &mut self,
        vbucket: &mut Vbucket,
        candidates: &mut Vec<Item>,
        effects: &mut Vec<Effect>,
    ) -> (usize, bool) {
        if self.uuid != vbucket.uuid() {
            *self = Self { uuid: vbucket.uuid(), ..Self::default() };
        }
        let new_round = (vbucket.persisted_seqno(), VisitPosition::default());
        let (last, from) = self.round.unwrap_or(new_round);
        if last <= self.tried_up_to {
            return (0, false);
        }
        let is_new = |item: &Item| item.seqno() > self.tried_up_to && item.seqno() <= last;
        let mut visited_count = 0;
        let look = |item: &Item| {
            visited_count += 1;
            if is_new(item) && is_compressible(item) {
                candidates.push(item.clone());
            }
            ItemAction::Keep
        };
        let next = vbucket.visit_items(from, PORTION_SLOTS_MAX, look, effects);
        self.round = next.map(|next| (last, next));
        if next.is_none() {
            self.tried_up_to = last;
        }
        (visited_count, next.is_some())
    }
}
