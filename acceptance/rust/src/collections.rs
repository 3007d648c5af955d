//! Cases: scopes and collections, and documents in them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use couchbase::collection::Collection;
use couchbase::error::{Error, ErrorKind};
use couchbase::management::collections::collection_settings::{
    CreateCollectionSettings, MaxExpiryValue, UpdateCollectionSettings,
};
use couchbase::options::kv_binary_options::IncrementOptions;

use crate::case::{Outcome, expect, expect_equal, expect_in_vain, wait_until};
use crate::sdk::{BUCKET, Sdk, connect_as_administrator};

const LIMIT: Duration = Duration::from_secs(10);
/// Longer than the SDK's first look-ups. Who stops it during one leaves a look-up behind for which
/// all later ones of that name wait (`resolve_collection_id_slow`).
const BRIEF: Duration = Duration::from_millis(400);

cases! {
    "collections-come-and-go": come_and_go,
    "documents-in-collections": documents,
    "dropped-collection": dropped_collection,
    "collection-expiry": collection_expiry,
    "collection-expiry-changes": collection_expiry_changes,
    "unknown-collection": unknown_collection,
}

/// The names of all collections by scope.
async fn listed(sdk: &Sdk) -> Result<BTreeMap<String, Vec<String>>, Error> {
    let scopes = sdk.bucket.collections().get_all_scopes(None).await?;
    let names = |scope: &couchbase::results::collections_mgmt_results::ScopeSpec| {
        let mut names: Vec<String> =
            scope.collections().iter().map(|each| each.name().to_owned()).collect();
        names.sort();
        names
    };
    Ok(scopes.iter().map(|scope| (scope.name().to_owned(), names(scope))).collect())
}

/// A new collection, which can be used.
async fn created(
    sdk: &Sdk,
    name: &str,
    settings: impl Into<Option<CreateCollectionSettings>>,
) -> Result<Collection, Error> {
    let manager = sdk.bucket.collections();
    if !listed(sdk).await?.contains_key("shop") {
        manager.create_scope("shop", None).await?;
    }
    manager.create_collection("shop", name, settings, None).await?;
    Ok(sdk.bucket.scope("shop").collection(name))
}

/// Nothing is read or stored where no collection is known. Whatever its strategy, the SDK repeats
/// this without an end (`RetryReason::always_retry` of `couchbase-core` 1.1), so it is stopped.
pub(crate) async fn expect_unknown(collection: &Collection) -> Outcome {
    expect_in_vain(BRIEF, collection.get("k", None)).await?;
    expect_in_vain(BRIEF, collection.upsert("k", 2, None)).await
}

async fn come_and_go(sdk: &Sdk) -> Outcome {
    let manager = sdk.bucket.collections();
    manager.create_scope("market", None).await?;
    refused!(manager.create_scope("market", None), ErrorKind::ScopeExists)?;
    manager.create_collection("market", "fruit", None, None).await?;
    let again = manager.create_collection("market", "fruit", None, None);
    refused!(again, ErrorKind::CollectionExists)?;
    let nowhere = manager.create_collection("nowhere", "fruit", None, None);
    refused!(nowhere, ErrorKind::ScopeNotFound)?;
    expect(manager.create_scope("_mine", None).await.is_err(), "a name of the system's")?;
    expect_equal(&listed(sdk).await?["market"], &vec!["fruit".to_owned()], "collections")?;
    manager.drop_collection("market", "fruit", None).await?;
    let dropped = manager.drop_collection("market", "fruit", None);
    refused!(dropped, ErrorKind::CollectionNotFound)?;
    manager.drop_scope("market", None).await?;
    refused!(manager.drop_scope("market", None), ErrorKind::ScopeNotFound)?;
    expect(!listed(sdk).await?.contains_key("market"), "the scope is gone")
}

async fn documents(sdk: &Sdk) -> Outcome {
    let (fruit, nuts) = (created(sdk, "fruit", None).await?, created(sdk, "nuts", None).await?);
    let key = sdk.key();
    fruit.upsert(&key, "fruit", None).await?;
    nuts.upsert(&key, "nuts", None).await?;
    refused!(sdk.collection.get(&key, None), ErrorKind::DocumentNotFound)?;
    let read = fruit.get(&key, None).await?.content_as::<String>()?;
    expect_equal(&read.as_str(), &"fruit", "value")?;
    fruit.remove(&key, None).await?;
    refused!(fruit.get(&key, None), ErrorKind::DocumentNotFound)?;
    let read = nuts.get(&key, None).await?.content_as::<String>()?;
    expect_equal(&read.as_str(), &"nuts", "value")?;
    let options = IncrementOptions::new().initial(7);
    expect_equal(&nuts.binary().increment("count", options).await?.content(), &7, "counter")
}

async fn dropped_collection(sdk: &Sdk) -> Outcome {
    created(sdk, "short", None).await?.upsert("k", 1, None).await?;
    // The look-ups that are stopped are those of another object.
    let other = connect_as_administrator().await?;
    let collection = other.bucket(BUCKET).scope("shop").collection("short");
    collection.get("k", None).await?;
    sdk.bucket.collections().drop_collection("shop", "short", None).await?;
    expect_unknown(&collection).await?;
    let again = created(sdk, "short", None).await?;
    refused!(again.get("k", None), ErrorKind::DocumentNotFound)?;
    again.upsert("k", 3, None).await?;
    expect_equal(&again.get("k", None).await?.content_as::<i64>()?, &3, "value")
}

async fn is_gone(collection: &Collection) -> bool {
    matches!(collection.exists("k", None).await, Ok(result) if !result.exists())
}

fn seconds(count: u64) -> MaxExpiryValue {
    MaxExpiryValue::Seconds(Duration::from_secs(count))
}

async fn collection_expiry(sdk: &Sdk) -> Outcome {
    let settings = CreateCollectionSettings::new().max_expiry(seconds(2));
    let collection = created(sdk, "fresh", settings).await?;
    let began = Instant::now();
    collection.upsert("k", 1, None).await?;
    wait_until(LIMIT, "it is over by itself", || is_gone(&collection)).await?;
    expect(began.elapsed() > Duration::from_millis(900), "not at once")
}

async fn collection_expiry_changes(sdk: &Sdk) -> Outcome {
    let collection = created(sdk, "changing", None).await?;
    let manager = sdk.bucket.collections();
    let settings = UpdateCollectionSettings::new().max_expiry(seconds(1));
    manager.update_collection("shop", "changing", settings.clone(), None).await?;
    collection.upsert("k", 1, None).await?;
    wait_until(LIMIT, "it is over", || is_gone(&collection)).await?;
    let unknown = manager.update_collection("shop", "none", settings, None);
    refused!(unknown, ErrorKind::CollectionNotFound)
}

async fn unknown_collection(sdk: &Sdk) -> Outcome {
    let unknown = sdk.bucket.scope("_default").collection("unknown");
    expect_unknown(&unknown).await?;
    expect_unknown(&sdk.bucket.scope("unknown").collection("c")).await
}
