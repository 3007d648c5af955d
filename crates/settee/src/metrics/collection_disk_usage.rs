//! What collections take in files, read from these seldom: a bucket has a thousand.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use document::CollectionId;
use node::NodeBucket;
use platform::Instant;
use server::ListedCollection;

/// For so long what was read holds.
const HOLDS_FOR: Duration = Duration::from_secs(60);
/// Collections times vBuckets that are read at most at a time. Of a bucket with more nothing is
/// told.
const READS_MAX: usize = 16_384;

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
    /// Bytes that the collections of a bucket take in the files of active vBuckets.
    pub(crate) fn bytes(
        &self,
        bucket: &NodeBucket,
        collections: &[ListedCollection],
        now: Instant,
    ) -> BTreeMap<CollectionId, u64> {
        let vbucket_count = usize::from(bucket.bucket().config().vbucket_count);
        if collections.len().saturating_mul(vbucket_count) > READS_MAX {
            return BTreeMap::new();
        }
        self.of_bucket(bucket, collections, now).bytes
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
