//! GET_RANDOM_KEY: some document, of memory if one is met there soon, else of a file.

use std::ops::ControlFlow;

use document::{CollectionId, Item, Vbid, expiry};
use platform::Random;
use storage::{KeyView, StorageError};
use vbucket::{ItemAction, Vbucket, VisitPosition};

use super::key_range::KeyRange;
use crate::core::{Bucket, BucketCore, Refused};

/// Slots of a hash table that are looked through at a time, under the vBucket's lock.
const SLOTS_PORTION_MAX: usize = 64;

/// Slots and documents that one search passes in memory, of all vBuckets together.
const LOOKS_MAX: usize = 1 << 16;

/// Files that one search looks into, and keys that it passes in each.
const FILES_MAX: usize = 4;
const FILE_KEYS_MAX: usize = 10_000;

/// What a search has met of a vBucket.
enum Met {
    Document(Item),
    /// Surely nothing of the collection is alive there.
    Nothing,
    /// Something may be, where was not looked.
    Unclear,
}

/// What is left of a search in memory, and how.
struct Search {
    collection: CollectionId,
    now_seconds: u32,
    looks_left: usize,
}

/// What a portion of a hash table had.
struct Portion {
    found: Option<Item>,
    /// Whether a document has its value elsewhere.
    has_ejected: bool,
    next: Option<VisitPosition>,
}

impl Bucket {
    /// Some live document of a collection, of any active vBucket: the first with its value in
    /// memory behind a random place, or if none is met there soon, one of a file. Not for front-end
    /// workers: it reads files.
    ///
    /// # Errors
    /// [`Refused::NotFound`] if surely none is there; [`Refused::NotMet`] if none was met where one
    /// search looks, which begins elsewhere the next time.
    pub fn random_document(&self, collection: CollectionId) -> Result<Item, Refused> {
        let core = &self.0;
        let mut random = Random::from_seed(core.vbuckets.factory.new_uuid().0);
        let count = core.vbuckets.slots.len();
        let first = random.below(u64::try_from(count).unwrap_or(1).max(1));
        let first = usize::try_from(first).unwrap_or(0);
        let now_seconds = core.clock.wall_time().seconds();
        let mut search = Search { collection, now_seconds, looks_left: LOOKS_MAX };
        let mut unclear = Vec::new();
        for step in 0..count {
            let Ok(vbid) = u16::try_from((first + step) % count).map(Vbid) else { continue };
            let start = VisitPosition::at(random.next_u64());
            match core.document_in_memory(vbid, start, &mut search) {
                Met::Document(item) => return Ok(item),
                Met::Nothing => {}
                Met::Unclear => unclear.push(vbid),
            }
        }
        core.document_in_files(&unclear, &search)
    }
}

impl BucketCore {
    /// The first document of a vBucket behind a place in its hash table, or else in front of it.
    fn document_in_memory(&self, vbid: Vbid, start: VisitPosition, search: &mut Search) -> Met {
        let has_any = |vbucket: &mut Vbucket, _: &mut Vec<_>| {
            vbucket.check_served(search.collection).ok()?;
            Some(may_have(vbucket, search.collection))
        };
        let Ok(Some((true, mut is_elsewhere))) = self.on_vbucket(vbid, &mut Vec::new(), has_any)
        else {
            return Met::Nothing;
        };
        for (from, end) in [(start, None), (VisitPosition::default(), Some(start))] {
            let mut next = Some(from);
            while let Some(position) = next.filter(|next| end.is_none_or(|end| *next <= end)) {
                if search.looks_left == 0 {
                    return Met::Unclear;
                }
                let Some(portion) = self.look_at_portion(vbid, position, search) else {
                    return Met::Nothing;
                };
                if let Some(item) = portion.found {
                    return Met::Document(item);
                }
                is_elsewhere |= portion.has_ejected;
                next = portion.next;
            }
        }
        if is_elsewhere { Met::Unclear } else { Met::Nothing }
    }

    /// `None` where there is no active vBucket that has the collection.
    fn look_at_portion(
        &self,
        vbid: Vbid,
        from: VisitPosition,
        search: &mut Search,
    ) -> Option<Portion> {
        let Search { collection, now_seconds, .. } = *search;
        let (mut found, mut has_ejected, mut looks) = (None, false, SLOTS_PORTION_MAX);
        let portion = self.on_vbucket(vbid, &mut Vec::new(), |vbucket, effects| {
            vbucket.check_served(collection).ok()?;
            let look = |item: &Item| {
                looks += 1;
                let is_live = !item.is_deleted() && !expiry::is_past(item.expiry(), now_seconds);
                if is_live && item.key().collection() == collection {
                    has_ejected |= item.is_ejected();
                    if found.is_none() && !item.is_ejected() {
                        found = Some(item.clone());
                    }
                }
                ItemAction::Keep
            };
            Some(vbucket.visit_items(from, SLOTS_PORTION_MAX, look, effects))
        });
        search.looks_left = search.looks_left.saturating_sub(looks);
        let next = portion.ok()??;
        Some(Portion { found, has_ejected, next })
    }

    /// A document of the files of vBuckets of which memory does not tell.
    fn document_in_files(&self, unclear: &[Vbid], search: &Search) -> Result<Item, Refused> {
        // What memory alone has was not looked at where it was too much.
        let mut is_certain = unclear.len() <= FILES_MAX && search.looks_left > 0;
        for vbid in unclear.iter().take(FILES_MAX) {
            match self.document_in_file(*vbid, search) {
                Met::Document(item) => return Ok(item),
                Met::Nothing => {}
                Met::Unclear => is_certain = false,
            }
        }
        Err(if is_certain { Refused::NotFound } else { Refused::NotMet })
    }

    fn document_in_file(&self, vbid: Vbid, search: &Search) -> Met {
        if !self.has_files() || self.scanned_branch(vbid, search.collection).is_err() {
            return Met::Unclear;
        }
        let Ok(view) = self.key_view(vbid) else { return Met::Unclear };
        match first_live(&view, search) {
            Ok(met) => met,
            Err(error) => {
                self.scan_failed(vbid, &error);
                Met::Unclear
            }
        }
    }
}

/// Whether a vBucket may have a document of the collection, and whether one may be in its file
/// alone.
fn may_have(vbucket: &Vbucket, collection: CollectionId) -> (bool, bool) {
    let is_elsewhere = vbucket.document_count() > vbucket.document_count_in_memory();
    let has_any = match vbucket.collection(collection) {
        Some(named) => named.item_count() > 0,
        None => vbucket.default_collection_count() > 0,
    };
    (has_any || vbucket.counts_by_guess(), is_elsewhere)
}

/// The first live document of the collection.
fn first_live(view: &KeyView, search: &Search) -> Result<Met, StorageError> {
    let range = KeyRange::of_collection(search.collection);
    let (mut met, mut passed) = (Met::Nothing, 0);
    view.scan(&range.from, &range.to, |entry| {
        if entry.is_live(search.now_seconds)? {
            met = Met::Document(entry.item()?);
            return Ok(ControlFlow::Break(()));
        }
        passed += 1;
        if passed < FILE_KEYS_MAX {
            return Ok(ControlFlow::Continue(()));
        }
        met = Met::Unclear;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(met)
}
