//! The statistics of collections, a row each: STAT shows them behind the numbers of the scope and
//! of the collection, Prometheus reads them with their names as labels.

use bucket::Bucket;
use document::{CollectionId, Map, VbucketState};
use vbucket::CollectionFigures;

use crate::statistic::{MetricName, Statistic};

const OPERATIONS_HELP: &str = "Operations on documents of active vBuckets, by collection";

/// The labels that say which collection.
pub const COLLECTION_LABELS: [&str; 2] = ["scope", "collection"];

type Row = Statistic<CollectionFigures>;

/// What collections have and have done.
pub static COLLECTION_STATISTICS: &[Row] = &[
    Row::gauge("Live documents of active vBuckets, by collection", |it| it.documents)
        .stat(&[("items", &["collections"])])
        .metric("kv_collection_item_count"),
    Row::gauge("Documents of active vBuckets in memory, by collection", |it| it.items_bytes)
        .bytes()
        .stat(&[("mem_used", &["collections"])])
        .metric("kv_collection_mem_used_bytes"),
    Row::counter("Reads that found a document of the collection", |it| it.reads)
        .stat(&[("ops_get", &["collections"])])
        .read_as(operations(&[("op", "get")])),
    Row::counter("Documents of the collection stored", |it| it.stores)
        .stat(&[("ops_store", &["collections"])])
        .read_as(operations(&[("op", "store")])),
    Row::counter("Documents of the collection deleted by request", |it| it.deletions)
        .stat(&[("ops_delete", &["collections"])])
        .read_as(operations(&[("op", "delete")])),
];

const fn operations(labels: &'static [(&'static str, &'static str)]) -> MetricName {
    MetricName::one_of("kv_collection_ops", OPERATIONS_HELP, labels)
}

/// What is told of one collection.
#[derive(Clone, Debug)]
pub struct ListedCollection {
    /// The name of its scope.
    pub scope: String,
    /// Its own.
    pub name: String,
    /// Its identity.
    pub id: CollectionId,
    /// How long its documents live at most, where the manifest says that.
    pub max_ttl_seconds: Option<u32>,
    /// What the active vBuckets have of it.
    pub figures: CollectionFigures,
}

/// The collections of a bucket, in the order of its manifest. Takes no lock that a request waits
/// for.
pub(crate) fn of_collections(bucket: &Bucket) -> Vec<ListedCollection> {
    let (manifest, counts) = (bucket.manifest(), collection_counts(bucket));
    let collections = manifest.collections().map(|(scope, collection)| ListedCollection {
        scope: scope.name.clone(),
        name: collection.name.clone(),
        id: collection.id,
        max_ttl_seconds: collection.max_ttl,
        figures: counts.get(&collection.id).copied().unwrap_or_default(),
    });
    collections.collect()
}

/// The collections of the active vBuckets together. Takes no lock that a request waits for.
pub(crate) fn collection_counts(bucket: &Bucket) -> Map<CollectionId, CollectionFigures> {
    let mut sums: Map<CollectionId, CollectionFigures> = Map::default();
    bucket.for_each_figures(|_, vbucket| {
        if vbucket.state() != VbucketState::Active {
            return;
        }
        for (id, here) in vbucket.collections() {
            *sums.entry(id).or_default() += here;
        }
    });
    sums
}
