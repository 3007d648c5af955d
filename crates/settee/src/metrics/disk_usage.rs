//! What the files of buckets take, asked of the system seldom: a bucket has a thousand files.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use management::Metric;
use node::NodeBuckets;
use platform::Instant;

use super::float;

/// For so long what the system has said holds.
const HOLDS_FOR: Duration = Duration::from_secs(10);

/// Bytes of files and of what in them is live, by the buckets' uuids, and when they were asked for.
#[derive(Default)]
pub(crate) struct DiskUsage(Mutex<BTreeMap<String, (Instant, u64, u64)>>);

impl DiskUsage {
    /// What the files of all buckets take.
    pub(crate) fn metrics(&self, buckets: &NodeBuckets, now: Instant) -> Vec<Metric> {
        let buckets = buckets.all();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|uuid, _| buckets.iter().any(|bucket| bucket.bucket().uuid() == uuid));
        let mut metrics = Vec::new();
        for bucket in &buckets {
            let asked = || {
                let sizes = bucket.bucket().file_sizes();
                (now, sizes.file_bytes, sizes.live_bytes)
            };
            let found = known.entry(bucket.bucket().uuid().to_owned()).or_insert_with(asked);
            if now.since(found.0) >= HOLDS_FOR {
                *found = asked();
            }
            let (_, file_bytes, live_bytes) = *found;
            let all = [
                ("couch_docs_actual_disk_size", "Bytes of the bucket's files", file_bytes),
                ("couch_docs_data_size", "Bytes in them that are live", live_bytes),
            ];
            metrics.extend(all.map(|(name, help, bytes)| {
                Metric::gauge(name, help, float(bytes))
                    .with_label("bucket", bucket.name().to_owned())
            }));
        }
        metrics
    }
}
