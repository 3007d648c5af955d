//! How many documents the collections of a bucket have.

use bucket::Bucket;
use document::{CollectionId, Map, VbucketState};

/// Documents of the active vBuckets by collection.
pub(crate) fn collection_counts(bucket: &Bucket) -> Map<CollectionId, u64> {
    let mut sums: Map<CollectionId, u64> = Map::default();
    bucket.for_each_vbucket(|_, vbucket| {
        if vbucket.state() != VbucketState::Active {
            return;
        }
        let default = sums.entry(CollectionId::DEFAULT).or_default();
        let count = vbucket.default_collection_count();
        *default += u64::try_from(count).unwrap_or(u64::MAX);
        for (id, here) in vbucket.collections() {
            *sums.entry(id).or_default() += here.item_count;
        }
    });
    sums
}
