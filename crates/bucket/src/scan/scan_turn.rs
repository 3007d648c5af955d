//! How a scan goes on, as fast as its client takes what it finds.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use document::{CollectionId, Vbid};

use super::cursor::{Cursor, LimitsLeft, Portion, PortionEnd, ScanSink};
use super::refused::ScanRefused;
use super::registry::ScanFacts;
use super::scan_content::ScanContent;
use super::scan_id::ScanId;
use crate::core::Bucket;

/// After how much a scan pauses until it is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimits {
    /// Results.
    pub items_max: Option<u64>,
    /// Bytes of them.
    pub bytes_max: Option<u64>,
    /// Time.
    pub time_max: Option<Duration>,
}

/// A scan that somebody goes on with; nobody else can meanwhile. Dropped before a limit or the end
/// is reached, it cancels the scan: whoever wanted its results is gone.
pub struct ScanTurn {
    bucket: Bucket,
    id: ScanId,
    facts: ScanFacts,
    cursor: Option<Box<Cursor>>,
    limits: LimitsLeft,
}

impl Bucket {
    /// The collection that a scan is about: who goes on with it or ends it has to have rights
    /// there.
    ///
    /// # Errors
    /// There is none of that name, or its vBucket is not active any more.
    pub fn range_scan_collection(
        &self,
        vbid: Vbid,
        id: ScanId,
    ) -> Result<CollectionId, ScanRefused> {
        self.0.scanned_branch(vbid, CollectionId::DEFAULT)?;
        self.0.range_scans.collection_of(vbid, id)
    }

    /// Goes on with a scan; results are what [`ScanTurn::read`] finds.
    ///
    /// # Errors
    /// There is none, somebody goes on with it already, or its vBucket is not active any more.
    pub fn continue_range_scan(
        &self,
        vbid: Vbid,
        id: ScanId,
        limits: ScanLimits,
    ) -> Result<ScanTurn, ScanRefused> {
        let uuid = self.0.scanned_branch(vbid, CollectionId::DEFAULT)?;
        let (facts, cursor) = self.0.range_scans.take(vbid, id)?;
        let started = self.0.clock.now();
        let is_other_history = facts.uuid != uuid;
        let limits = LimitsLeft {
            items: limits.items_max.unwrap_or(u64::MAX),
            bytes: limits.bytes_max.unwrap_or(u64::MAX),
            deadline: limits.time_max.map(|time| started.after(time)),
            has_found: false,
        };
        let turn = ScanTurn { bucket: self.clone(), id, facts, cursor: Some(cursor), limits };
        if is_other_history {
            // It goes with the turn.
            return Err(ScanRefused::Unknown);
        }
        turn.check_collection()?;
        Ok(turn)
    }
}

impl ScanTurn {
    /// Reads a portion into `sink`. Not for front-end workers. Nothing is read after another end
    /// than that of a portion.
    pub fn read(&mut self, sink: &mut dyn ScanSink) -> PortionEnd {
        let scans = &self.bucket.0.range_scans;
        // It may have been cancelled between two portions.
        let Some(mut cursor) = self.cursor.take().filter(|_| scans.is_there(self.id)) else {
            return PortionEnd::Ended(ScanRefused::Cancelled);
        };
        if let Err(refused) = self.check_collection() {
            self.cancel();
            return PortionEnd::Ended(refused);
        }
        let core = &self.bucket.0;
        let mut portion = Portion::begin(&core.clock, core.clock.wall_time().seconds());
        let read = cursor.read(&mut portion, &mut self.limits, self.facts.content, sink);
        let is_there = scans.note_sent(self.id, portion.items, portion.bytes);
        let end = match read {
            Ok(_) if !is_there => PortionEnd::Ended(ScanRefused::Cancelled),
            Ok(end) => end,
            Err(error) => PortionEnd::Ended(core.scan_failed(self.facts.vbid, &error)),
        };
        match end {
            PortionEnd::Portion => self.cursor = Some(cursor),
            PortionEnd::Paused => scans.put_back(self.id, cursor, core.clock.now()),
            PortionEnd::Complete => {
                drop(scans.remove(self.id));
                scans.counters.completed.fetch_add(1, Relaxed);
            }
            PortionEnd::Ended(_) => self.cancel(),
        }
        end
    }

    /// A collection that is dropped is not read on.
    fn check_collection(&self) -> Result<(), ScanRefused> {
        let ScanFacts { vbid, collection, .. } = self.facts;
        match collection {
            CollectionId::DEFAULT => Ok(()),
            named => self.bucket.0.scanned_branch(vbid, named).map(|_| ()),
        }
    }

    fn cancel(&self) {
        let scans = &self.bucket.0.range_scans;
        if scans.remove(self.id).is_some() {
            scans.counters.cancelled.fetch_add(1, Relaxed);
        }
    }

    /// What is found of documents.
    pub fn content(&self) -> ScanContent {
        self.facts.content
    }
}

impl fmt::Debug for ScanTurn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ScanTurn").field(&self.id).finish()
    }
}

impl Drop for ScanTurn {
    fn drop(&mut self) {
        if self.cursor.take().is_some() {
            self.cancel();
        }
    }
}
