//! The vBuckets of a bucket.

use document::Vbid;

use super::vbucket_factory::VbucketFactory;
use super::vbucket_slot::VbucketSlot;

/// Their places, and what makes them.
pub(crate) struct Vbuckets {
    /// By number.
    pub(crate) slots: Box<[VbucketSlot]>,
    pub(crate) factory: VbucketFactory,
}

impl Vbuckets {
    /// So many empty places.
    pub(crate) fn new(count: usize, factory: VbucketFactory) -> Self {
        assert!(count.is_power_of_two(), "the description of a bucket has a power of two vBuckets");
        Self { slots: std::iter::repeat_with(VbucketSlot::default).take(count).collect(), factory }
    }

    /// The place of a vBucket; `None` above the last one.
    pub(crate) fn slot(&self, vbid: Vbid) -> Option<&VbucketSlot> {
        self.slots.get(usize::from(vbid.0))
    }

    /// All of them in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Vbid, &VbucketSlot)> {
        self.slots.iter().zip(0..).map(|(slot, vbid)| (Vbid(vbid), slot))
    }
}
