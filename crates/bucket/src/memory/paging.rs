//! Evicting documents from vBuckets: what could leave is sampled here, and leaves a portion at a
//! time. Whoever has memory to free decides how much and from where.

use std::sync::atomic::Ordering;

use document::{Vbid, VbucketState};
use vbucket::eviction::EvictionStrategy;
use vbucket::{Effect, EvictableSample, Paged, PagingLimits};

use crate::core::BucketCore;

/// Slots that a sample looks at in all vBuckets together, about.
const SAMPLE_SLOTS: usize = 32 * 1024;
/// The same in one vBucket, at least.
const SAMPLE_SLOTS_MIN: usize = 32;
/// Slots that a write goes through itself when memory is too full for it.
const URGENT_SLOTS: usize = 128;

/// What a sample has found.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) active: EvictableSample,
    pub(super) replica: EvictableSample,
    /// The vBuckets: replicas first, then the others, each from where the last walk has ended, so
    /// that all are gone through equally often.
    pub(super) order: Vec<Vbid>,
}

impl BucketCore {
    /// Looks at a part of each vBucket's table for what could leave memory.
    pub(super) fn sample_evictable(&self) -> Samples {
        let slots_max = (SAMPLE_SLOTS / self.vbuckets.slots.len().max(1)).max(SAMPLE_SLOTS_MIN);
        let now = self.now();
        let mut samples = Samples::default();
        let mut others = Vec::new();
        for (vbid, slot) in self.slots() {
            let mut place = slot.lock();
            let Some(vbucket) = place.as_mut() else { continue };
            let (sample, order) = match vbucket.state() {
                VbucketState::Replica => (&mut samples.replica, &mut samples.order),
                _ => (&mut samples.active, &mut others),
            };
            vbucket.sample_evictable(slots_max, now, sample);
            order.push(vbid);
        }
        let last = self.memory.pager.last.load(Ordering::Relaxed);
        let first = others.partition_point(|vbid| u64::from(vbid.0) < last);
        others.rotate_left(first);
        samples.order.append(&mut others);
        samples
    }

    /// Wakes the pager if memory is full. Returns about how many bytes are in use.
    pub(crate) fn page_if_full(&self) -> u64 {
        let used_bytes = self.memory.account.estimated_used_bytes();
        if used_bytes > self.memory.limits.watermarks().high_bytes {
            self.memory.pager.wake();
        }
        used_bytes
    }

    /// Evicts a little of one vBucket on the caller's time.
    pub(crate) fn page_at_once(&self, vbid: Vbid) {
        // Without files nothing leaves at once: documents are deleted, and the log holds them for a
        // while.
        if !self.has_files() {
            return;
        }
        let threshold = self.memory.pager.threshold.load(Ordering::Relaxed);
        let threshold = u8::try_from(threshold).unwrap_or(u8::MAX);
        let strategy = EvictionStrategy::up_to(self.config.eviction.strategy, threshold);
        let limits = PagingLimits {
            slots_max: URGENT_SLOTS,
            bytes_max: u64::MAX,
            forgets_tombstones: false,
        };
        self.page(vbid, limits, |_| strategy, &mut Vec::new());
    }

    /// Evicts from the next slots of one vBucket.
    pub(super) fn page(
        &self,
        vbid: Vbid,
        limits: PagingLimits,
        strategy_for: impl FnOnce(VbucketState) -> EvictionStrategy,
        effects: &mut Vec<Effect>,
    ) -> Paged {
        let absent = Paged { is_at_end: true, ..Paged::default() };
        let now = self.now();
        let paged = self.on_vbucket(vbid, effects, |vbucket, effects| {
            vbucket.page(limits, strategy_for(vbucket.state()), now, effects)
        });
        let Ok(paged) = paged else { return absent };
        self.counters.add(&self.counters.evictions, paged.evicted_count);
        paged
    }
}
