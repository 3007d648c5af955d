//! Which vBuckets are visited, and in which order.

use std::cmp::Ordering;
use std::collections::VecDeque;

use document::Vbid;
use platform::Random;

/// The ids of the vBuckets to visit, as they stand when the visits begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitOrder(Vec<Vbid>);

impl VisitOrder {
    /// All vBuckets below `vbucket_count`, ascending.
    pub fn ascending(vbucket_count: u16) -> Self {
        Self((0..vbucket_count).map(Vbid).collect())
    }

    /// `vbids`, in their order.
    pub fn of(vbids: impl IntoIterator<Item = Vbid>) -> Self {
        Self(vbids.into_iter().collect())
    }

    /// Only those that `is_wanted` accepts.
    pub fn filtered(mut self, mut is_wanted: impl FnMut(Vbid) -> bool) -> Self {
        self.0.retain(|&vbid| is_wanted(vbid));
        self
    }

    /// Those that `compare` calls less come first; equal ones keep their order.
    pub fn sorted_by(mut self, mut compare: impl FnMut(Vbid, Vbid) -> Ordering) -> Self {
        self.0.sort_by(|&one, &other| compare(one, other));
        self
    }

    /// In an order of `random`, each as likely as any other.
    pub fn shuffled(mut self, random: &mut Random) -> Self {
        // Fisher and Yates, as Durstenfeld wrote it down (CACM 7, algorithm 235).
        for end in (2..=self.0.len()).rev() {
            let chosen = random.below(end as u64) as usize;
            self.0.swap(end - 1, chosen);
        }
        self
    }

    /// The ids.
    pub fn vbids(&self) -> &[Vbid] {
        &self.0
    }

    pub(super) fn into_queue(self) -> VecDeque<Vbid> {
        self.0.into()
    }
}
