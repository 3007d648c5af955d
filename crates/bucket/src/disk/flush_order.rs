//! Whose flush comes first.

use document::Vbid;
use platform::Instant;
use vbucket::Vbucket;

use crate::core::VbucketSlot;

/// One in so many portions goes by age alone.
const PORTIONS_BY_AGE: u64 = 4;

/// Whose turn is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlushOrder {
    /// Who is waited for, and then who has waited longest: a durable write that is to be on disk
    /// does not stand behind all that a flood has left in memory, only behind its own vBucket's.
    AwaitedFirst,
    /// Who has waited longest.
    ByAge,
}

/// A vBucket in its turn.
pub(super) struct FlushTurn<'a> {
    pub(super) vbid: Vbid,
    pub(super) slot: &'a VbucketSlot,
    pub(super) is_awaited: bool,
    queued_since: Instant,
}

impl FlushOrder {
    /// That of a flusher's portion, counted from 0. Now and then age alone counts: who is not
    /// waited for gets on, too.
    pub(super) fn of_portion(portion: u64) -> Self {
        match portion % PORTIONS_BY_AGE {
            0 => Self::ByAge,
            _ => Self::AwaitedFirst,
        }
    }

    /// The vBuckets that are here, in this order.
    pub(super) fn turns<'a>(self, slots: &[(Vbid, &'a VbucketSlot)]) -> Vec<FlushTurn<'a>> {
        let turn_of = |&(vbid, slot): &(Vbid, &'a VbucketSlot)| {
            let (is_awaited, queued_since) = slot.lock().as_ref().map(Vbucket::flush_turn)?;
            Some(FlushTurn { vbid, slot, is_awaited, queued_since })
        };
        let mut turns: Vec<_> = slots.iter().filter_map(turn_of).collect();
        turns.sort_by_key(|turn| {
            let is_first = turn.is_awaited && self == Self::AwaitedFirst;
            (!is_first, turn.queued_since)
        });
        turns
    }
}
