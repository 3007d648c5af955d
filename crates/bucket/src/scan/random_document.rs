//! GET_RANDOM_KEY: some document that is in memory.

use document::{CollectionId, Item, Vbid, expiry};
use platform::Random;
use vbucket::{ItemAction, VisitPosition};

use crate::core::{Bucket, BucketCore};

/// Slots of a hash table that are looked through at a time, under the vBucket's lock.
const SLOTS_PORTION_MAX: usize = 64;

impl Bucket {
    /// Some live document of a collection with its value in memory, of any active vBucket: the
    /// first behind a random place. `None` if memory holds none. Not for front-end workers: it may
    /// go through all that is in memory.
    pub fn random_document(&self, collection: CollectionId) -> Option<Item> {
        let core = &self.0;
        let mut random = Random::from_seed(core.factory.new_uuid().0);
        let count = core.slots.len();
        let first = random.below(u64::try_from(count).unwrap_or(1).max(1));
        let first = usize::try_from(first).unwrap_or(0);
        (0..count).find_map(|step| {
            let vbid = Vbid(u16::try_from((first + step) % count).ok()?);
            core.document_behind(vbid, VisitPosition::at(random.next_u64()), collection)
        })
    }
}

impl BucketCore {
    /// The first document behind a place in a hash table, or else in front of it.
    fn document_behind(
        &self,
        vbid: Vbid,
        start: VisitPosition,
        collection: CollectionId,
    ) -> Option<Item> {
        for (from, end) in [(start, None), (VisitPosition::default(), Some(start))] {
            let mut next = Some(from);
            while let Some(position) = next.filter(|next| end.is_none_or(|end| *next <= end)) {
                let (found, behind) = self.document_in_portion(vbid, position, collection)?;
                if found.is_some() {
                    return found;
                }
                next = behind;
            }
        }
        None
    }

    /// The first document of a portion, and where the next one begins. `None` where there is no
    /// active vBucket that has the collection.
    fn document_in_portion(
        &self,
        vbid: Vbid,
        from: VisitPosition,
        collection: CollectionId,
    ) -> Option<(Option<Item>, Option<VisitPosition>)> {
        let now_seconds = self.clock.wall_time().seconds();
        let mut found = None;
        let portion = self.on_vbucket(vbid, &mut Vec::new(), |vbucket, effects| {
            vbucket.check_served(collection).ok()?;
            let look = |item: &Item| {
                let is_there = !item.is_deleted() && !item.is_ejected();
                let is_live = is_there && !expiry::is_past(item.expiry(), now_seconds);
                if found.is_none() && is_live && item.key().collection() == collection {
                    found = Some(item.clone());
                }
                ItemAction::Keep
            };
            Some(vbucket.visit_items(from, SLOTS_PORTION_MAX, look, effects))
        });
        let behind = portion.ok()??;
        Some((found, behind))
    }
}
