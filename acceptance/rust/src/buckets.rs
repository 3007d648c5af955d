//! Cases: buckets that are made, changed, emptied and deleted while the node runs.

use std::time::Duration;

use couchbase::collection::Collection;
use couchbase::error::{Error, ErrorKind};
use couchbase::management::buckets::bucket_manager::BucketManager;
use couchbase::management::buckets::bucket_settings::{
    BucketSettings, BucketType, CompressionMode, EvictionPolicyType,
};
use couchbase::options::kv_options::GetOptions;
use serde_json::json;

use crate::case::{Outcome, expect, expect_equal, once, wait_until, within};
use crate::sdk::{BUCKET, Sdk, connect_as_administrator};

const NAME: &str = "orders";
const QUOTA_MB: u64 = 100;
const LIMIT: Duration = Duration::from_secs(20);

cases! {
    "buckets-are-made-listed-and-dropped": made_listed_and_dropped,
    "buckets-are-changed": changed,
    "a-bucket-is-flushed-where-that-is-enabled": flushed,
    "buckets-that-cannot-be-are-refused": refused,
    "a-dropped-bucket-is-gone-for-its-clients": dropped,
}

fn settings(name: &str) -> BucketSettings {
    BucketSettings::new(name)
        .bucket_type(BucketType::COUCHBASE)
        .ram_quota_mb(QUOTA_MB)
        .num_replicas(0)
}

/// Runs a body with a new bucket, which is dropped in the end.
async fn with_bucket(
    sdk: &Sdk,
    settings: BucketSettings,
    body: impl AsyncFnOnce(BucketManager, Collection) -> Outcome,
) -> Outcome {
    let manager = sdk.cluster.buckets();
    manager.create_bucket(settings, None).await?;
    let outcome = body(manager.clone(), sdk.cluster.bucket(NAME).default_collection()).await;
    let dropped = manager.drop_bucket(NAME, None).await;
    outcome?;
    Ok(dropped?)
}

async fn expect_buckets(manager: &BucketManager, wanted: &[&str]) -> Outcome {
    let mut names = manager.get_all_buckets(None).await?;
    names.sort_by(|a, b| a.name.cmp(&b.name));
    let names = names.iter().map(|each| each.name.as_str()).collect::<Vec<_>>();
    expect_equal(&names.as_slice(), &wanted, "all buckets")
}

async fn made_listed_and_dropped(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({"of": BUCKET}), None).await?;
    for kind in [BucketType::COUCHBASE, BucketType::EPHEMERAL] {
        let settings = settings(NAME).bucket_type(kind.clone());
        let body = async |manager: BucketManager, documents: Collection| {
            let again = manager.create_bucket(settings.clone(), None);
            refused!(again, ErrorKind::BucketExists)?;
            let found = manager.get_bucket(NAME, None).await?;
            expect_equal(&found.ram_quota_mb, &Some(QUOTA_MB), "quota")?;
            expect_equal(&found.bucket_type, &Some(kind), "type")?;
            expect_buckets(&manager, &[BUCKET, NAME]).await?;
            refused!(documents.get("k", None), ErrorKind::DocumentNotFound)?;
            documents.upsert("k", NAME, None).await?;
            let read = documents.get("k", None).await?.content_as::<String>()?;
            expect_equal(&read.as_str(), &NAME, "the document")
        };
        with_bucket(sdk, settings.clone(), body).await?;
        let manager = sdk.cluster.buckets();
        refused!(manager.get_bucket(NAME, None), ErrorKind::BucketNotFound)?;
        refused!(manager.drop_bucket(NAME, None), ErrorKind::BucketNotFound)?;
    }
    sdk.expect_value(&key, json!({"of": BUCKET})).await
}

async fn changed(sdk: &Sdk) -> Outcome {
    with_bucket(sdk, settings(NAME), async |manager, documents| {
        documents.upsert("k", 1, None).await?;
        let other = settings(NAME)
            .ram_quota_mb(QUOTA_MB + 50)
            .num_replicas(1)
            .flush_enabled(true)
            .compression_mode(CompressionMode::ACTIVE);
        manager.update_bucket(other, None).await?;
        let found = manager.get_bucket(NAME, None).await?;
        expect_equal(&found.ram_quota_mb, &Some(QUOTA_MB + 50), "quota")?;
        expect_equal(&found.num_replicas, &Some(1), "replicas")?;
        expect_equal(&found.flush_enabled, &Some(true), "whether it may be flushed")?;
        expect_equal(&found.compression_mode, &Some(CompressionMode::ACTIVE), "compression")?;
        expect_equal(&documents.get("k", None).await?.content_as::<i64>()?, &1, "the document")?;
        refused!(manager.update_bucket(settings("none"), None), ErrorKind::BucketNotFound)
    })
    .await
}

async fn flushed(sdk: &Sdk) -> Outcome {
    with_bucket(sdk, settings(NAME).flush_enabled(false), async |manager, documents| {
        documents.upsert("k", 1, None).await?;
        refused!(manager.flush_bucket(NAME, None), ErrorKind::BucketNotFlushable)?;
        documents.get("k", None).await?;
        manager.update_bucket(settings(NAME).flush_enabled(true), None).await?;
        manager.flush_bucket(NAME, None).await?;
        refused!(documents.get("k", None), ErrorKind::DocumentNotFound)?;
        documents.upsert("k", 2, None).await?;
        refused!(manager.flush_bucket("none", None), ErrorKind::BucketNotFound)
    })
    .await
}

async fn refused(sdk: &Sdk) -> Outcome {
    let manager = sdk.cluster.buckets();
    let wrong = [
        settings(NAME).ram_quota_mb(1 << 24),
        settings(NAME).ram_quota_mb(99),
        settings("a/b"),
        settings(NAME).max_expiry(Duration::from_secs(1 << 31)),
    ];
    for each in wrong {
        let made = manager.create_bucket(each, None).await;
        expect(made.is_err(), "what cannot be is refused")?;
    }
    expect_buckets(&manager, &[BUCKET]).await
}

async fn dropped(sdk: &Sdk) -> Outcome {
    with_bucket(sdk, settings(NAME), async |manager, documents| {
        documents.upsert("k", 1, None).await?;
        manager.drop_bucket(NAME, None).await?;
        let read = documents.get("k", GetOptions::new().retry_strategy(once()));
        let read = tokio::time::timeout(Duration::from_secs(1), read).await;
        expect(!matches!(read, Ok(Ok(_))), "nobody reads from a dropped bucket")?;
        let full = settings(NAME).eviction_policy(EvictionPolicyType::FULL);
        manager.create_bucket(full, None).await?;
        // The SDK keeps the connections of a bucket with its object: another one has new ones.
        let cluster = connect_as_administrator().await?;
        let anew = cluster.bucket(NAME).default_collection();
        wait_until(LIMIT, "the new bucket is empty", || async {
            let read = anew.get("k", GetOptions::new().retry_strategy(once()));
            let missing = |error: &Error| matches!(error.kind(), ErrorKind::DocumentNotFound);
            within(LIMIT, read).await.is_ok_and(|read| read.is_err_and(|error| missing(&error)))
        })
        .await?;
        anew.upsert("k", 2, None).await?;
        Ok(())
    })
    .await
}
