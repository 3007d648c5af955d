//! Reading what is not in a vBucket's log any more: for a stream that begins further back.
//!
//! Whoever reads has taken a place in the log before. The log lets go of what is durable, which the
//! file may not have yet: so the file is brought up to date first, and then has everything in front
//! of that place.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use document::{CollectionId, Item, Map, Seqno, Set, Vbid, VbucketState};
use storage::{DroppedCollection, FileView, StorageError};
use vbucket::{ItemAction, Vbucket, VisitPosition};

use crate::core::{Bucket, BucketCore};

/// Slots of a hash table that are visited at a time, under the vBucket's lock.
const SLOTS_PORTION_MAX: usize = 1024;

/// What a backfill reads, known before its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackfillFacts {
    /// The last seqno in it.
    pub high: Seqno,
    /// Where the snapshot ends that it is in: behind `high` in a replica's file, sometimes.
    pub snapshot_end: Seqno,
    /// The last visible seqno.
    pub max_visible: Seqno,
    /// The last seqno of the default collection.
    pub default_high: Seqno,
    /// Up to here prepares are completed.
    pub high_completed: Seqno,
    /// Up to here all prepares are held.
    pub high_prepared: Seqno,
    /// Tombstones up to here may have been purged.
    pub purge: Seqno,
    /// How many items there are to be read, approximately.
    pub item_count: u64,
}

/// In which order items come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillOrder {
    /// Seqnos rise.
    BySeqno,
    /// Keys rise; without prepares and aborts.
    ByKey,
}

/// One state of a vBucket, read in portions.
pub struct Backfill {
    facts: BackfillFacts,
    source: Source,
    /// Collections that are dropped in it, and where: a file has their documents until it is
    /// compacted. Of the events that said where those came from, the ones that say where they went
    /// have taken the place. What is dropped behind its end is there up to that.
    dropped: Map<CollectionId, Seqno>,
}

enum Source {
    /// A file, from this seqno on.
    File(FileView, Seqno),
    /// A file, from this key on.
    FileByKey(FileView, Vec<u8>),
    /// What memory held, in order.
    Memory(VecDeque<Item>),
    /// There was nothing.
    Nothing,
}

impl Bucket {
    /// Begins to read what a vBucket has behind `after`: everything that its log does not have is
    /// in it. Brings the vBucket's file up to date first. Not for front-end workers. `Ok(None)` if
    /// it is not here, or still being loaded. `None` while others are writing the vBucket's file,
    /// or change its history, rather than a wait that is as long as that takes them.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn try_begin_backfill(
        &self,
        vbid: Vbid,
        after: Seqno,
        order: BackfillOrder,
    ) -> Option<Result<Option<Backfill>, StorageError>> {
        let core = &self.0;
        if !core.has_files() {
            return Some(Ok(core.backfill_from_memory(vbid, after, order)));
        }
        let applied = core.try_apply(vbid)?;
        Some(applied.and_then(|()| self.backfill_from_file(vbid, after, order)))
    }

    fn backfill_from_file(
        &self,
        vbid: Vbid,
        after: Seqno,
        order: BackfillOrder,
    ) -> Result<Option<Backfill>, StorageError> {
        let core = &self.0;
        let Some(view) = core.store.view(vbid)? else {
            let facts = BackfillFacts::default();
            let dropped = Map::default();
            return Ok(Some(Backfill { facts, source: Source::Nothing, dropped }));
        };
        let item_count = view.item_count_from(after.next())?;
        let mut facts = BackfillFacts { item_count, ..facts_of(&view)? };
        assert!(facts.high <= facts.snapshot_end, "a file ends within its snapshot");
        // The file of a replica knows what is missing up to its end. The rest of the snapshot that
        // this ends in comes behind, announced by the same marker.
        self.with_vbucket(vbid, |vbucket| {
            facts.purge = facts.purge.max(vbucket.stream_purge_seqno());
            // Of a snapshot within which it was promoted nothing more comes, whatever the file says
            // until the next flush: a replica would wait for that, with durable writes in it.
            if vbucket.state() == VbucketState::Active {
                facts.snapshot_end = facts.high;
            }
        });
        let mut dropped: Map<CollectionId, Seqno> = Map::default();
        for DroppedCollection { collection, end_seqno, .. } in view.dropped_collections()? {
            let end = dropped.entry(collection).or_default();
            *end = end_seqno.max(*end);
        }
        let source = match order {
            BackfillOrder::BySeqno => Source::File(view, after.next()),
            BackfillOrder::ByKey => Source::FileByKey(view, Vec::new()),
        };
        Ok(Some(Backfill { facts, source, dropped }))
    }
}

fn facts_of(view: &FileView) -> Result<BackfillFacts, StorageError> {
    let high = view.high_seqno();
    let plain = BackfillFacts {
        high,
        snapshot_end: high,
        max_visible: high,
        default_high: view.collection_high_seqno(CollectionId::DEFAULT)?,
        purge: view.purge_seqno(),
        ..BackfillFacts::default()
    };
    let Some(record) = view.record()? else { return Ok(plain) };
    let has_prepares = record.prepared_seqno.max(record.high_prepared_seqno) > Seqno(0);
    Ok(BackfillFacts {
        snapshot_end: record.snapshot_end.max(high),
        max_visible: if has_prepares { record.max_visible_seqno } else { high },
        high_completed: record.completed_seqno,
        high_prepared: record.high_prepared_seqno,
        ..plain
    })
}

impl Backfill {
    /// What is going to be read.
    pub fn facts(&self) -> BackfillFacts {
        self.facts
    }

    /// Appends items in the order that was asked for until they take `bytes_max`, approximately.
    /// Returns whether there may be more.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, bytes_max: usize, items: &mut Vec<Item>) -> Result<bool, StorageError> {
        let mut bytes = 0;
        let dropped = &self.dropped;
        match &mut self.source {
            Source::Nothing => Ok(false),
            Source::Memory(waiting) => {
                while bytes < bytes_max {
                    let Some(item) = waiting.pop_front() else { return Ok(false) };
                    bytes += item.allocation_size();
                    items.push(item);
                }
                Ok(!waiting.is_empty())
            }
            Source::File(view, from) => {
                let mut has_more = false;
                view.scan(*from, |item| {
                    *from = item.seqno().next();
                    // Also of what is left out: a portion takes so long to read.
                    bytes += item.allocation_size();
                    if !is_dropped(&item, dropped) {
                        items.push(item);
                    }
                    has_more = bytes >= bytes_max;
                    if has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                Ok(has_more)
            }
            Source::FileByKey(view, from) => {
                let mut has_more = false;
                let mut last = Vec::new();
                view.scan_by_key(from, |item| {
                    // Also of what is left out: the next portion goes on behind it.
                    last.clear();
                    last.extend_from_slice(item.key().encoded());
                    if !item.operation().is_prepared() && !is_dropped(&item, dropped) {
                        bytes += item.allocation_size();
                        items.push(item);
                    }
                    has_more = bytes >= bytes_max;
                    if has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                // The least key behind the last one.
                last.push(0);
                *from = last;
                Ok(has_more)
            }
        }
    }
}

fn is_dropped(item: &Item, dropped: &Map<CollectionId, Seqno>) -> bool {
    is_named(item) && dropped.get(&item.key().collection()).is_some_and(|end| item.seqno() <= *end)
}

/// Whether it is of a document in a named collection.
fn is_named(item: &Item) -> bool {
    let key = item.key();
    !key.is_in_default_collection() && !key.is_of_event()
}

impl BucketCore {
    /// What the memory of a bucket without files holds. The table is visited in portions while it
    /// changes; the log since then says what has become of what was met before.
    fn backfill_from_memory(
        &self,
        vbid: Vbid,
        after: Seqno,
        order: BackfillOrder,
    ) -> Option<Backfill> {
        let name = format!("backfill:{}", self.vbuckets.factory.new_uuid().0);
        let mut effects = Vec::new();
        let opened = self.on_vbucket(vbid, &mut effects, |vbucket, _| {
            // A place that could be dropped would leave a mixture of moments.
            vbucket.hold_log(&name)
        });
        let cursor = opened.ok()??;
        let mut newest: Map<(bool, Vec<u8>), Item> = Map::default();
        let mut next = Some(VisitPosition::default());
        while let Some(from) = next {
            let mut met = Vec::new();
            let portion = self.on_vbucket(vbid, &mut effects, |vbucket, effects| {
                let keep = |item: &Item| {
                    met.push(item.clone());
                    ItemAction::Keep
                };
                vbucket.visit_items(from, SLOTS_PORTION_MAX, keep, effects)
            });
            next = portion.ok()?;
            met.into_iter().for_each(|item| keep_newest(&mut newest, item));
        }
        let since = self.on_vbucket(vbid, &mut effects, |vbucket, effects| {
            // A log that has taken the place of that one does not know the cursor: what was met is
            // history.
            let is_same_history = vbucket.has_stream(cursor);
            let range = vbucket.read_stream(cursor);
            vbucket.close_stream(cursor, effects);
            // Neither prepares nor events are in the table.
            let mut beside = vbucket.prepared_items();
            beside.extend(vbucket.events());
            let open: Set<CollectionId> = vbucket.collections().map(|(id, _)| id).collect();
            is_same_history.then(|| (range, beside, open, facts_of_memory(vbucket)))
        });
        let (range, beside, open, facts) = since.ok()??;
        let since = range.map(|range| range.items()).unwrap_or_default();
        beside.into_iter().chain(since).for_each(|item| keep_newest(&mut newest, item));
        // Documents of dropped collections are in the table until they are erased.
        let is_there = |item: &Item| !is_named(item) || open.contains(&item.key().collection());
        let mut items: Vec<Item> =
            newest.into_values().filter(|item| item.seqno() > after && is_there(item)).collect();
        match order {
            BackfillOrder::BySeqno => items.sort_unstable_by_key(Item::seqno),
            BackfillOrder::ByKey => {
                items.retain(|item| !item.operation().is_prepared());
                items.sort_unstable_by(|one, other| one.key().cmp(&other.key()));
            }
        }
        assert!(items.iter().all(|item| item.seqno() > after), "what is known is not read again");
        let item_count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        let facts = BackfillFacts { item_count, ..facts };
        Some(Backfill { facts, source: Source::Memory(items.into()), dropped: Map::default() })
    }
}

fn keep_newest(newest: &mut Map<(bool, Vec<u8>), Item>, item: Item) {
    let key = (item.operation().is_prepared(), item.key().encoded().to_vec());
    let known = newest.entry(key).or_insert_with(|| item.clone());
    if known.seqno() < item.seqno() {
        *known = item;
    }
}

fn facts_of_memory(vbucket: &Vbucket) -> BackfillFacts {
    let high = vbucket.high_seqno();
    BackfillFacts {
        high,
        snapshot_end: vbucket.stream_position().snapshot_end.max(high),
        max_visible: vbucket.max_visible_seqno(),
        default_high: vbucket.collection_high_seqno(CollectionId::DEFAULT).unwrap_or_default(),
        high_completed: vbucket.high_completed_seqno(),
        high_prepared: vbucket.high_prepared_seqno(),
        purge: vbucket.stream_purge_seqno(),
        item_count: 0,
    }
}
