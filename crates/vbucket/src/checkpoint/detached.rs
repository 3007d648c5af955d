//! A part of the log that nobody needs any more.

use std::sync::Arc;

use super::extent::Extent;
use super::segment::Segment;

/// What has left a log and is still to be freed: dropping it does that, outside of every lock.
#[derive(Debug)]
#[must_use = "dropping it here may free a lot under a lock"]
pub struct Detached {
    /// Old heads: each owns what follows up to the first segment that somebody else holds.
    heads: Vec<Arc<Segment>>,
    /// The places of a checkpoint's segments, which were remembered while it was open.
    index: Vec<Arc<Segment>>,
    extent: Extent,
}

impl Detached {
    pub(super) fn new(
        head: Option<Arc<Segment>>,
        index: Vec<Arc<Segment>>,
        extent: Extent,
    ) -> Option<Self> {
        let is_something = head.is_some() || !index.is_empty();
        is_something.then(|| Self { heads: head.into_iter().collect(), index, extent })
    }

    /// Both together.
    pub(super) fn joined(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(mut one), Some(other)) => {
                one.heads.extend(other.heads);
                one.index.extend(other.index);
                one.extent += other.extent;
                Some(one)
            }
            (one, other) => one.or(other),
        }
    }

    /// How much log it was.
    pub fn extent(&self) -> Extent {
        self.extent
    }
}
