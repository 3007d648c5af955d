//! Making a vBucket of what a file holds: at warmup, and after a rollback.

use std::ops::ControlFlow;

use document::{Item, Map, Operation, Seqno, Vbid};
use storage::{ScanReport, StorageError};
use vbucket::eviction::EvictionPolicy;
use vbucket::{PersistentState, Restored, Vbucket};

use crate::bucket::BucketCore;

/// What is shown the items of a file, until it breaks.
pub(crate) type Visit<'a> = dyn FnMut(Item) -> ControlFlow<()> + 'a;

/// A state of a file that a vBucket is made of.
pub(crate) struct FileContent {
    pub(crate) vbid: Vbid,
    pub(crate) state: PersistentState,
    /// Documents alive.
    pub(crate) item_count: u64,
    /// Whether nothing that was acknowledged is missing.
    pub(crate) is_whole: bool,
}

/// A vBucket made of a file, without values.
pub(crate) struct Rebuilt {
    pub(crate) vbucket: Vbucket,
    /// Documents alive that were found.
    pub(crate) document_count: u64,
}

impl BucketCore {
    /// Makes a vBucket of metadata, or where documents leave memory whole of nothing but which keys
    /// there are; and of the prepares that have not ended, whole. `scan` visits the items of the
    /// file from a seqno on, with their values or without; those above its highest seqno belong to
    /// a history that has begun meanwhile, and end the visit.
    pub(crate) fn rebuild(
        &self,
        content: FileContent,
        mut scan: impl FnMut(Seqno, bool, &mut Visit<'_>) -> Result<ScanReport, StorageError>,
    ) -> Result<Rebuilt, StorageError> {
        let FileContent { vbid, state, item_count, is_whole } = content;
        let keeps_metadata = self.config.eviction.policy == EvictionPolicy::ValueOnly;
        let expected_count = usize::try_from(item_count).unwrap_or(0);
        let (high_seqno, facts) = (state.high_seqno, state.facts);
        let mut vbucket = self.restored_vbucket(Restored {
            vbid,
            state,
            document_count: if keeps_metadata { expected_count } else { 0 },
            fresh_uuid: self.new_uuid(),
            was_clean: is_whole,
        });
        if !keeps_metadata {
            vbucket.reserve_keys(expected_count);
        }
        let mut prepares = Vec::new();
        if facts.prepared_seqno > facts.completed_seqno {
            scan(facts.completed_seqno.next(), true, &mut |item: Item| {
                if item.seqno() > facts.prepared_seqno {
                    return ControlFlow::Break(());
                }
                if matches!(item.operation(), Operation::Prepare(_)) {
                    prepares.push(item);
                }
                ControlFlow::Continue(())
            })?;
        }
        // Those that ended in a part of another node's snapshot, whose end has not come: there a
        // newer version is all that tells.
        let mut newest: Map<Box<[u8]>, Seqno> = Map::default();
        newest.extend(prepares.iter().map(|item| (item.key().encoded().into(), item.seqno())));
        let mut document_count = 0;
        scan(Seqno(0), false, &mut |item: Item| {
            if item.seqno() > high_seqno {
                return ControlFlow::Break(());
            }
            if item.operation().is_prepared() {
                return ControlFlow::Continue(());
            }
            if !newest.is_empty()
                && let Some(seqno) = newest.get_mut(item.key().encoded())
            {
                *seqno = item.seqno().max(*seqno);
            }
            document_count += u64::from(!item.is_deleted());
            if item.is_deleted() || !keeps_metadata {
                vbucket.restore_key(&item);
            } else {
                drop(vbucket.restore_document(item.ejected()));
            }
            ControlFlow::Continue(())
        })?;
        for item in prepares {
            if newest.get(item.key().encoded()) == Some(&item.seqno()) {
                vbucket.restore_prepare(item);
            }
        }
        Ok(Rebuilt { vbucket, document_count })
    }
}
