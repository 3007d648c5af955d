//! How a scan begins: what it has to see is waited for, and then held as it is.

use std::ops::ControlFlow;
use std::time::Duration;

use document::{CollectionId, Seqno, VbUuid, Vbid};
use storage::{KeyView, StorageError};
use vbucket::{Refusal, Vbucket};

use super::cursor::{Chance, Cursor, ScanSampling};
use super::key_range::KeyRange;
use super::refused::ScanRefused;
use super::registry::{Scan, ScanFacts};
use super::scan_content::ScanContent;
use super::scan_id::ScanId;
use crate::core::{Attempted, Bucket, BucketCore, Refused, Session};

/// What waits for a file is laid over it as long as that takes no more memory; otherwise the file
/// is brought up to date first.
const LAID_OVER_BYTES_MAX: u64 = 64 << 10;
/// Tombstones and documents whose time is over that are passed in the search for a first result.
/// Behind so many there may be none, which whoever goes on finds out.
const PASSED_MAX: usize = 100_000;

/// A scan that is to be made.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// The vBucket.
    pub vbid: Vbid,
    /// What people know it by.
    pub name: String,
    /// The collection.
    pub collection: CollectionId,
    /// Which of its keys.
    pub range: KeyRange,
    /// Only some, chosen by chance.
    pub sampling: Option<ScanSampling>,
    /// What is found of them.
    pub content: ScanContent,
    /// What it has to see.
    pub snapshot: Option<ScanSnapshot>,
}

/// What a scan has to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanSnapshot {
    /// The branch of history.
    pub uuid: VbUuid,
    /// Everything up to here.
    pub seqno: Seqno,
    /// Whether `seqno` has to be the last change of a document.
    pub must_exist: bool,
    /// How long to wait until `seqno` is persisted.
    pub timeout: Duration,
}

impl Bucket {
    /// Whether a scan can be made that has to see this: at once, or later through the session's
    /// waiter. Then [`Bucket::open_range_scan`] makes it.
    ///
    /// # Errors
    /// Why not.
    pub fn await_scan_snapshot(
        &self,
        session: &mut Session,
        vbid: Vbid,
        collection: CollectionId,
        snapshot: Option<ScanSnapshot>,
    ) -> Result<Attempted<()>, ScanRefused> {
        self.check_has_disk()?;
        let now = self.time_of(session).monotonic;
        let timeout = snapshot.map_or(Duration::ZERO, |snapshot| snapshot.timeout);
        let deadline = now.after(timeout.min(self.config().range_scan_idle_time_max));
        let waiter = session.waiter;
        let result = self.attempt(session, vbid, |vbucket, effects| {
            vbucket.check_served(collection)?;
            let Some(snapshot) = snapshot else { return Ok(Standing::Ready) };
            if vbucket.uuid() != snapshot.uuid {
                return Ok(Standing::OtherHistory);
            }
            if vbucket.persisted_seqno() >= snapshot.seqno {
                return Ok(Standing::Ready);
            }
            if timeout.is_zero() {
                vbucket.hurry_flush(effects);
                return Ok(Standing::NotPersisted);
            }
            let is_persisted =
                vbucket.wait_for_persistence(snapshot.seqno, deadline, waiter, effects);
            Ok(if is_persisted { Standing::Ready } else { Standing::Waits })
        });
        match self.answer(session, vbid, result)? {
            Attempted::Answered(Standing::Ready) => Ok(Attempted::Answered(())),
            Attempted::Answered(Standing::OtherHistory) => Err(ScanRefused::OtherHistory),
            Attempted::Answered(Standing::NotPersisted) => Err(ScanRefused::NotPersisted),
            Attempted::Answered(Standing::Waits) => {
                self.expect_timeout(deadline);
                Ok(Attempted::Waits)
            }
            Attempted::Waits => Ok(Attempted::Waits),
        }
    }

    /// Makes a scan of what is durable now. Not for front-end workers.
    ///
    /// # Errors
    /// Why there is none.
    pub fn open_range_scan(&self, request: &ScanRequest) -> Result<ScanId, ScanRefused> {
        let core = &self.0;
        let vbid = request.vbid;
        // Before anything is read for it; `add` looks again.
        core.range_scans.check_place()?;
        // In this order: what is on this branch now is in the view.
        let uuid = core.scanned_branch(vbid, request.collection)?;
        if request.snapshot.is_some_and(|snapshot| snapshot.uuid != uuid) {
            return Err(ScanRefused::OtherHistory);
        }
        let view = core.key_view(vbid)?;
        let unreadable = |error| core.scan_failed(vbid, &error);
        if let Some(snapshot) = request.snapshot {
            if view.high_seqno() < snapshot.seqno {
                return Err(ScanRefused::NotPersisted);
            }
            if snapshot.must_exist && !view.has_change(snapshot.seqno).map_err(unreadable)? {
                return Err(ScanRefused::NoSuchChange);
            }
        }
        let now_seconds = core.clock.wall_time().seconds();
        if is_empty(&view, &request.range, now_seconds).map_err(unreadable)? {
            return Err(ScanRefused::Empty);
        }
        let chance = match request.sampling {
            None => None,
            Some(sampling) => {
                let count = view.item_count(request.collection).map_err(unreadable)?;
                Chance::of(sampling, count)
            }
        };
        let facts = ScanFacts {
            vbid,
            uuid,
            collection: request.collection,
            name: request.name.clone(),
            content: request.content,
            is_sampling: request.sampling.is_some(),
            high_seqno: view.high_seqno(),
        };
        let cursor = Cursor { view, range: request.range.clone(), chance };
        let now = core.clock.now();
        let scan = Scan {
            facts,
            cursor: Some(Box::new(cursor)),
            created: now,
            used: now,
            sent_items: 0,
            sent_bytes: 0,
        };
        let id = core.new_scan_id();
        core.range_scans.add(id, scan)?;
        // Whoever has ended the branch since then has ended this scan, or is seen now.
        if core.scanned_branch(vbid, CollectionId::DEFAULT) != Ok(uuid) {
            drop(core.range_scans.remove(id));
            return Err(ScanRefused::Vbucket(Refused::NotMyVbucket));
        }
        Ok(id)
    }

    /// Ends a scan that is not wanted any more.
    ///
    /// # Errors
    /// There is none.
    pub fn cancel_range_scan(&self, vbid: Vbid, id: ScanId) -> Result<(), ScanRefused> {
        self.0.scanned_branch(vbid, CollectionId::DEFAULT)?;
        self.0.range_scans.cancel(vbid, id)
    }
}

/// How a vBucket stands to what a scan has to see.
enum Standing {
    Ready,
    Waits,
    OtherHistory,
    NotPersisted,
}

/// Whether surely nothing is found in a range.
fn is_empty(view: &KeyView, range: &KeyRange, now_seconds: u32) -> Result<bool, StorageError> {
    let (mut is_empty, mut passed) = (true, 0);
    view.scan(&range.from, &range.to, |entry| {
        passed += 1;
        is_empty = !entry.is_live(now_seconds)? && passed < PASSED_MAX;
        Ok(if is_empty { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(is_empty)
}

impl BucketCore {
    /// The branch of history that an active vBucket is on, which has this collection.
    pub(super) fn scanned_branch(
        &self,
        vbid: Vbid,
        collection: CollectionId,
    ) -> Result<VbUuid, ScanRefused> {
        let look = |vbucket: &mut Vbucket| match vbucket.check_served(collection) {
            Ok(()) => Ok(vbucket.uuid()),
            Err(Refusal::UnknownCollection) => Err(Refusal::UnknownCollection),
            // To wait is for whoever asks first.
            Err(_) => Err(Refusal::NotActive),
        };
        let branch = self.on_vbucket(vbid, &mut Vec::new(), |vbucket, _| look(vbucket));
        let branch = branch.and_then(|branch| branch);
        branch.map_err(|refusal| Refused::from_refusal(&refusal).into())
    }

    /// What is durable of a vBucket in the order of its keys. Waits for who writes its file.
    pub(super) fn key_view(&self, vbid: Vbid) -> Result<KeyView, ScanRefused> {
        let failed = |error| self.scan_failed(vbid, &error);
        if self.store.unapplied_bytes(vbid) > LAID_OVER_BYTES_MAX {
            self.apply(vbid).map_err(failed)?;
        }
        self.store.key_view(vbid).map_err(failed)
    }

    /// Of a full disk others tell.
    pub(super) fn scan_failed(&self, vbid: Vbid, error: &StorageError) -> ScanRefused {
        let message = "a scan cannot read its vBucket's file";
        match error {
            StorageError::NoSpace(_) => tracing::debug!(%error, vbucket = vbid.0, message),
            _ => tracing::error!(%error, vbucket = vbid.0, message),
        }
        ScanRefused::Unreadable
    }

    fn new_scan_id(&self) -> ScanId {
        let mut id = [0; 16];
        let (left, right) = id.split_at_mut(8);
        for half in [left, right] {
            half.copy_from_slice(&self.vbuckets.factory.new_uuid().0.to_be_bytes());
        }
        ScanId(id)
    }
}
