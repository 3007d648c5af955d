//! What collections take in files, read from these seldom: a bucket has a thousand.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use document::CollectionId;
use management::Metric;
use node::NodeBucket;
use platform::Instant;
use server::{COLLECTION_LABELS, ListedCollection};

use super::{count, float};

/// For so long what was read holds.
const HOLDS_FOR: Duration = Duration::from_secs(60);
/// Collections times vBuckets that are read at most at a time. Of a bucket with more nothing is
/// told.
const READS_MAX: u64 = 16_384;

/// What was read of each bucket, by the buckets' uuids.
#[derive(Default)]
pub(crate) struct CollectionDiskUsage(Mutex<BTreeMap<String, Read>>);

/// What was read, and when.
#[derive(Clone)]
struct Read {
    at: Instant,
    bytes: BTreeMap<CollectionId, u64>,
}

impl CollectionDiskUsage {
    /// What the collections of a bucket take.
    pub(crate) fn metrics(
        &self,
        bucket: &NodeBucket,
        collections: &[ListedCollection],
        now: Instant,
    ) -> Vec<Metric> {
        let reads =
            count(collections.len()).saturating_mul(bucket.bucket().config().vbucket_count.into());
        if reads > READS_MAX {
            return Vec::new();
        }
        let read = self.of_bucket(bucket, collections, now);
        let of = |one: &ListedCollection| {
            let bytes = read.bytes.get(&one.id).copied().unwrap_or_default();
            let [scope, collection] = COLLECTION_LABELS;
            Metric::gauge(
                "kv_collection_data_size_bytes",
                "What documents of active vBuckets take in files, by collection",
                float(bytes),
            )
            .with_label("bucket", bucket.name().to_owned())
            .with_label(scope, one.scope.clone())
            .with_label(collection, one.name.clone())
        };
        collections.iter().map(of).collect()
    }

    fn of_bucket(
        &self,
        bucket: &NodeBucket,
        collections: &[ListedCollection],
        now: Instant,
    ) -> Read {
        let known = self.known().get(bucket.bucket().uuid()).cloned();
        let is_known = |read: &Read| {
            let has_all = collections.iter().all(|one| read.bytes.contains_key(&one.id));
            has_all && now.since(read.at) < HOLDS_FOR
        };
        if let Some(known) = known.filter(is_known) {
            return known;
        }
        // Without the lock: this reads of every file.
        let of = |one: &ListedCollection| (one.id, bucket.bucket().collection_disk_bytes(one.id));
        let read = Read { at: now, bytes: collections.iter().map(of).collect() };
        let mut known = self.known();
        known.retain(|_, read| now.since(read.at) < HOLDS_FOR);
        known.insert(bucket.bucket().uuid().to_owned(), read.clone());
        read
    }

    /// Held for a look-up.
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Read>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
