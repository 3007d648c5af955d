//! Group "range-scans": which there are, how far they are, and what has become of others.

use bucket::{OpenScan, ScanContent};

use super::emitter::{Emitter, NoGroup, vbucket_argument};
use crate::buckets::BucketPart;
use crate::connection::Sight;
use crate::range_scan_statistics::RANGE_SCAN_STATISTICS;

/// Group "range-scans".
pub(super) fn range_scans(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let only = vbucket_argument(argument)?;
    let statistics = part.bucket.range_scan_statistics();
    super::emitter::statistics(emitter, "range-scans", RANGE_SCAN_STATISTICS, &statistics);
    let manifest = part.bucket.manifest();
    // Its name is how it is gone on with.
    let sees = |scan: &OpenScan| match manifest.collection_of_id(scan.collection) {
        Some((scope, collection)) => emitter.listener.sight.sees(&scope.name, &collection.name),
        None => matches!(emitter.listener.sight, Sight::All),
    };
    let is_wanted = |scan: &&OpenScan| only.is_none_or(|vbid| vbid == scan.vbid);
    let shown: Vec<_> =
        statistics.open.iter().filter(is_wanted).filter(|scan| sees(scan)).collect();
    for scan in shown {
        let OpenScan { id, vbid, .. } = scan;
        let mut emit = |name: &str, value: &dyn std::fmt::Display| {
            emitter.emit(&format!("vb_{vbid}:{id}:{name}"), value);
        };
        emit("name", &scan.name);
        emit("collection", &scan.collection);
        emit("key_only", &(scan.content == ScanContent::Keys));
        emit("sampling", &scan.is_sampling);
        emit("snapshot_seqno", &scan.high_seqno.0);
        emit("continued", &scan.is_continued);
        emit("sent_items", &scan.sent_items);
        emit("sent_bytes", &scan.sent_bytes);
        emit("seconds", &scan.age.as_secs());
    }
    Ok(())
}
