//! All scans of a bucket that are not over.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use document::{CollectionId, Seqno, VbUuid, Vbid};
use executor::HeadTimeout;
use platform::Instant;

use super::cursor::Cursor;
use super::refused::ScanRefused;
use super::scan_content::ScanContent;
use super::scan_id::ScanId;
use crate::config::BucketConfig;

/// One scan in so many handles that the bucket may have open: each keeps a file open.
const OPEN_FILES_SHARE: usize = 4;
/// Scans however many files may be open.
const SCANS_MAX: usize = 1024;

/// All scans that are not over.
pub(crate) struct RangeScans {
    scans: Mutex<BTreeMap<ScanId, Scan>>,
    pub(super) scans_max: usize,
    /// How long a scan stays that nobody goes on with.
    idle_time_max: Duration,
    pub(super) timeout: OnceLock<HeadTimeout>,
    pub(super) counters: ScanCounters,
}

/// What has become of scans.
#[derive(Default)]
pub(super) struct ScanCounters {
    pub(super) created: AtomicU64,
    pub(super) completed: AtomicU64,
    pub(super) cancelled: AtomicU64,
    pub(super) refused: AtomicU64,
}

/// What does not change of a scan.
#[derive(Clone, Debug)]
pub(super) struct ScanFacts {
    pub(super) vbid: Vbid,
    /// The branch of history that it reads.
    pub(super) uuid: VbUuid,
    pub(super) collection: CollectionId,
    pub(super) name: String,
    pub(super) content: ScanContent,
    pub(super) is_sampling: bool,
    /// The last seqno in what it reads.
    pub(super) high_seqno: Seqno,
}

/// One scan.
pub(super) struct Scan {
    pub(super) facts: ScanFacts,
    /// Where it goes on; `None` while somebody reads.
    pub(super) cursor: Option<Box<Cursor>>,
    pub(super) created: Instant,
    /// When it was gone on with last.
    pub(super) used: Instant,
    pub(super) sent_items: u64,
    pub(super) sent_bytes: u64,
}

impl RangeScans {
    pub(crate) fn new(config: &BucketConfig) -> Self {
        Self {
            scans: Mutex::default(),
            scans_max: (config.open_files_max / OPEN_FILES_SHARE).clamp(1, SCANS_MAX),
            idle_time_max: config.range_scan_idle_time_max,
            timeout: OnceLock::new(),
            counters: ScanCounters::default(),
        }
    }

    /// Whether there is a place for one more.
    pub(super) fn check_place(&self) -> Result<(), ScanRefused> {
        if self.lock().len() < self.scans_max {
            return Ok(());
        }
        self.counters.refused.fetch_add(1, Relaxed);
        Err(ScanRefused::TooMany)
    }

    /// Adds a scan, which waits for whoever goes on with it.
    pub(super) fn add(&self, id: ScanId, scan: Scan) -> Result<(), ScanRefused> {
        let mut scans = self.lock();
        if scans.len() >= self.scans_max {
            drop(scans);
            self.counters.refused.fetch_add(1, Relaxed);
            return Err(ScanRefused::TooMany);
        }
        let overdue = scan.used.after(self.idle_time_max);
        let before = scans.insert(id, scan);
        drop(scans);
        assert!(before.is_none(), "scans have different names");
        self.counters.created.fetch_add(1, Relaxed);
        self.expect_overdue(overdue);
        Ok(())
    }

    /// The collection that a scan is about.
    pub(super) fn collection_of(
        &self,
        vbid: Vbid,
        id: ScanId,
    ) -> Result<CollectionId, ScanRefused> {
        let scans = self.lock();
        let scan = scans.get(&id).filter(|scan| scan.facts.vbid == vbid);
        scan.map(|scan| scan.facts.collection).ok_or(ScanRefused::Unknown)
    }

    /// Takes the place where a scan goes on. Nobody else does until it is put back.
    pub(super) fn take(
        &self,
        vbid: Vbid,
        id: ScanId,
    ) -> Result<(ScanFacts, Box<Cursor>), ScanRefused> {
        let mut scans = self.lock();
        let scan = scans.get_mut(&id).filter(|scan| scan.facts.vbid == vbid);
        let scan = scan.ok_or(ScanRefused::Unknown)?;
        let cursor = scan.cursor.take().ok_or(ScanRefused::Busy)?;
        Ok((scan.facts.clone(), cursor))
    }

    /// Gives back what was taken, until somebody goes on. If the scan was cancelled meanwhile, what
    /// was taken is dropped.
    pub(super) fn put_back(&self, id: ScanId, cursor: Box<Cursor>, now: Instant) {
        let mut scans = self.lock();
        let Some(scan) = scans.get_mut(&id) else { return };
        scan.used = now;
        let before = scan.cursor.replace(cursor);
        drop(scans);
        assert!(before.is_none(), "one goes on with a scan at a time");
        self.expect_overdue(now.after(self.idle_time_max));
    }

    /// Notes what a scan has found; says whether it has not been cancelled.
    pub(super) fn note_sent(&self, id: ScanId, items: u64, bytes: u64) -> bool {
        let mut scans = self.lock();
        let Some(scan) = scans.get_mut(&id) else { return false };
        scan.sent_items += items;
        scan.sent_bytes += bytes;
        true
    }

    /// Whether a scan has not been cancelled.
    pub(super) fn is_there(&self, id: ScanId) -> bool {
        self.lock().contains_key(&id)
    }

    /// Takes a scan out.
    pub(super) fn remove(&self, id: ScanId) -> Option<Scan> {
        self.lock().remove(&id)
    }

    /// Takes a scan out that a client does not want any more.
    pub(super) fn cancel(&self, vbid: Vbid, id: ScanId) -> Result<(), ScanRefused> {
        let mut scans = self.lock();
        let is_there = scans.get(&id).is_some_and(|scan| scan.facts.vbid == vbid);
        if !is_there {
            return Err(ScanRefused::Unknown);
        }
        let cancelled = scans.remove(&id);
        // A scan that goes may close its file: not under the lock (invariant 10).
        drop(scans);
        drop(cancelled);
        self.counters.cancelled.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Cancels the scans of a vBucket whose history ends, or goes on elsewhere.
    pub(crate) fn cancel_all_of(&self, vbid: Vbid) {
        let mut scans = self.lock();
        let cancelled: Vec<Scan> =
            scans.extract_if(.., |_, scan| scan.facts.vbid == vbid).map(|(_, scan)| scan).collect();
        drop(scans);
        let count = u64::try_from(cancelled.len()).unwrap_or(u64::MAX);
        self.counters.cancelled.fetch_add(count, Relaxed);
    }

    /// Cancels the scans that nobody has gone on with for too long. Returns when the next one will
    /// be.
    pub(super) fn cancel_overdue(&self, now: Instant) -> Option<Instant> {
        let mut scans = self.lock();
        let overdue_at = |scan: &Scan| scan.used.after(self.idle_time_max);
        // One whose place somebody has taken out is being read.
        let is_overdue = |scan: &Scan| scan.cursor.is_some() && overdue_at(scan) <= now;
        let cancelled: Vec<Scan> =
            scans.extract_if(.., |_, scan| is_overdue(scan)).map(|(_, scan)| scan).collect();
        let waiting = scans.values().filter(|scan| scan.cursor.is_some());
        let next = waiting.map(overdue_at).min();
        drop(scans);
        let count = u64::try_from(cancelled.len()).unwrap_or(u64::MAX);
        self.counters.cancelled.fetch_add(count, Relaxed);
        next
    }

    /// Lets `look` see every scan.
    pub(super) fn for_each(&self, mut look: impl FnMut(ScanId, &Scan)) {
        self.lock().iter().for_each(|(id, scan)| look(*id, scan));
    }

    fn expect_overdue(&self, overdue: Instant) {
        if let Some(timeout) = self.timeout.get() {
            timeout.expect_by(overdue);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ScanId, Scan>> {
        self.scans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
