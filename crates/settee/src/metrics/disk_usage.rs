//! What the files of buckets take, asked of the system seldom: a bucket has a thousand files.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use management::Metric;
use node::{NodeBucket, NodeBuckets};
use platform::Instant;

use super::float;

/// For so long what the system has said holds.
const HOLDS_FOR: Duration = Duration::from_secs(10);

/// What the system has said of each bucket, by the buckets' uuids.
#[derive(Default)]
pub(crate) struct DiskUsage(Mutex<BTreeMap<String, Asked>>);

/// What it said, and when.
#[derive(Clone, Copy)]
struct Asked {
    at: Instant,
    /// Of the files, and of what in them is live.
    bytes: [u64; 2],
}

impl DiskUsage {
    /// What the files of all buckets take.
    pub(crate) fn metrics(&self, buckets: &NodeBuckets, now: Instant) -> Vec<Metric> {
        let buckets = buckets.all();
        self.known().retain(|uuid, _| buckets.iter().any(|it| it.bucket().uuid() == uuid));
        buckets.iter().flat_map(|bucket| self.of_bucket(bucket, now)).collect()
    }

    fn of_bucket(&self, bucket: &NodeBucket, now: Instant) -> [Metric; 6] {
        let known = self.known().get(bucket.bucket().uuid()).copied();
        let known = known.filter(|asked| now.since(asked.at) < HOLDS_FOR);
        // Without the lock: this asks for every file.
        let asked = known.unwrap_or_else(|| {
            let sizes = bucket.bucket().file_sizes();
            Asked { at: now, bytes: [sizes.file_bytes, sizes.live_bytes] }
        });
        self.known().insert(bucket.bucket().uuid().to_owned(), asked);
        let [file_bytes, live_bytes] = asked.bytes;
        let (files, live) =
            ("Bytes of the bucket's files", "Bytes in the bucket's files that are live");
        let all = [
            ("couch_docs_actual_disk_size", files, file_bytes),
            ("kv_ep_db_file_size_bytes", files, file_bytes),
            ("kv_storage_bytes", files, file_bytes),
            ("couch_docs_data_size", live, live_bytes),
            ("kv_ep_db_data_size_bytes", live, live_bytes),
            ("kv_logical_data_size_bytes", live, live_bytes),
        ];
        all.map(|(name, help, bytes)| {
            Metric::gauge(name, help, float(bytes)).with_label("bucket", bucket.name().to_owned())
        })
    }

    /// Held for a look-up.
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
