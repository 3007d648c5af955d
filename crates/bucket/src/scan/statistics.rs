//! What scans there are.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use document::{CollectionId, Seqno, Vbid};

use super::scan_content::ScanContent;
use super::scan_id::ScanId;
use crate::core::Bucket;

/// The scans of a bucket, and what has become of earlier ones.
#[derive(Clone, Debug, Default)]
pub struct RangeScanStatistics {
    /// Scans that are not over, in the order of their names.
    pub open: Vec<OpenScan>,
    /// As many may be open at a time.
    pub scans_max: usize,
    /// Scans that were made.
    pub created: u64,
    /// Scans that came to their end.
    pub completed: u64,
    /// Scans that were ended before: by a client, because nobody went on with them, because a
    /// client was gone, or because their vBucket was.
    pub cancelled: u64,
    /// Scans that were not made because there were too many.
    pub refused: u64,
}

/// A scan that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenScan {
    /// What clients know it by.
    pub id: ScanId,
    /// What people know it by; may be empty.
    pub name: String,
    /// Where it reads.
    pub vbid: Vbid,
    /// What it reads.
    pub collection: CollectionId,
    /// What it finds of documents.
    pub content: ScanContent,
    /// Whether it chooses by chance.
    pub is_sampling: bool,
    /// The last seqno in what it reads.
    pub high_seqno: Seqno,
    /// Whether somebody is being sent what it finds.
    pub is_continued: bool,
    /// Results so far.
    pub sent_items: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// How long it has been there.
    pub age: Duration,
}

impl Bucket {
    /// What scans there are.
    pub fn range_scan_statistics(&self) -> RangeScanStatistics {
        let now = self.0.clock.now();
        let scans = &self.0.range_scans;
        let mut open = Vec::new();
        scans.for_each(|id, scan| {
            let facts = &scan.facts;
            open.push(OpenScan {
                id,
                name: facts.name.clone(),
                vbid: facts.vbid,
                collection: facts.collection,
                content: facts.content,
                is_sampling: facts.is_sampling,
                high_seqno: facts.high_seqno,
                is_continued: scan.cursor.is_none(),
                sent_items: scan.sent_items,
                sent_bytes: scan.sent_bytes,
                age: now.since(scan.created),
            });
        });
        RangeScanStatistics {
            open,
            scans_max: scans.scans_max,
            created: scans.counters.created.load(Relaxed),
            completed: scans.counters.completed.load(Relaxed),
            cancelled: scans.counters.cancelled.load(Relaxed),
            refused: scans.counters.refused.load(Relaxed),
        }
    }
}
