//! Cases: two nodes, one replica.

use std::time::Duration;

use couchbase::durability_level::DurabilityLevel;
use couchbase::error::{Error, ErrorKind};
use couchbase::get_replica_strategy::{GetReplicaStrategy, ReplicaIndex};
use couchbase::options::kv_options::{InsertOptions, RemoveOptions, ReplaceOptions, UpsertOptions};
use couchbase::results::kv_results::MutationResult;
use serde_json::{Value, json};

use crate::case::{Outcome, expect, expect_equal, expect_in_vain, wait_until, within};
use crate::collections::expect_unknown;
use crate::durability::LEVELS;
use crate::encryption;
use crate::sdk::Sdk;

const COUNT: usize = 40;
const LIMIT: Duration = Duration::from_secs(20);
const BRIEF: Duration = Duration::from_secs(3);

cases! {
    "tls-two-nodes": behind_tls,
    "sdk-durable-writes-at-every-level": durable_writes,
    "sdk-replicas-can-be-read": replicas,
    "sdk-collections-on-two-nodes": collections,
    "sdk-stopped-replica-makes-durable-writes-ambiguous": stopped_replica,
    "sdk-failover-keeps-the-sdk-working": failover,
}

fn keys(name: &str) -> Vec<String> {
    (0..COUNT).map(|number| format!("{name}-{number}")).collect()
}

async fn behind_tls(_: &Sdk) -> Outcome {
    let sizes = (0..COUNT).collect::<Vec<_>>();
    encryption::exchange(encryption::by_password()?, "tls", &sizes).await
}

async fn put(
    sdk: &Sdk,
    key: &str,
    value: i64,
    level: DurabilityLevel,
) -> Result<MutationResult, Error> {
    sdk.collection.upsert(key, value, UpsertOptions::new().durability_level(level)).await
}

async fn durable_writes(sdk: &Sdk) -> Outcome {
    for level in LEVELS {
        for (number, key) in keys(&format!("durable-{level}")).iter().enumerate() {
            let insert = InsertOptions::new().durability_level(level.clone());
            sdk.collection.insert(key, 0, insert).await?;
            let cas = put(sdk, key, 1, level.clone()).await?.cas();
            let replace = ReplaceOptions::new().durability_level(level.clone()).cas(cas);
            sdk.collection.replace(key, 2, replace).await?;
            sdk.expect_value(key, 2).await?;
            if number % 2 == 1 {
                let remove = RemoveOptions::new().durability_level(level.clone());
                sdk.collection.remove(key, remove).await?;
                sdk.expect_gone(key).await?;
            }
        }
    }
    sdk.order("CLUSTER replicated")
}

async fn replicas(sdk: &Sdk) -> Outcome {
    for key in keys("replica") {
        sdk.collection.upsert(&key, json!({"key": key}), None).await?;
    }
    sdk.order("CLUSTER replicated")?;
    let first = || GetReplicaStrategy::from_index(ReplicaIndex::First, None);
    for key in keys("replica") {
        let copy = sdk.collection.get_replica(&key, first(), None).await?;
        expect_equal(&copy.content_as::<Value>()?, &json!({"key": key}), "copy")?;
        expect(copy.is_replica(), "it is one of a replica")?;
    }
    let absent = sdk.collection.get_replica("absent", first(), None);
    refused!(absent, ErrorKind::DocumentNotFoundOnReplica | ErrorKind::DocumentNotFound)
}

async fn collections(sdk: &Sdk) -> Outcome {
    let manager = sdk.bucket.collections();
    manager.create_scope("shop", None).await?;
    manager.create_collection("shop", "fruit", None, None).await?;
    let fruit = sdk.bucket.scope("shop").collection("fruit");
    for key in keys("fruit") {
        let options = UpsertOptions::new().durability_level(DurabilityLevel::MAJORITY);
        fruit.upsert(&key, &key, options).await?;
        let read = fruit.get(&key, None).await?.content_as::<String>()?;
        expect_equal(&read, &key, "value")?;
    }
    manager.drop_scope("shop", None).await?;
    expect_unknown(&fruit).await
}

async fn stopped_replica(sdk: &Sdk) -> Outcome {
    // Which node has the active copy of a key is not asked: some keys' replicas are stopped.
    for key in keys("stopped") {
        sdk.collection.upsert(&key, 1, None).await?;
    }
    sdk.order("CLUSTER pause 1")?;
    let mut of_first = Vec::new();
    for key in keys("stopped") {
        let read = within(Duration::from_millis(500), sdk.collection.get(&key, None)).await;
        if matches!(read, Ok(Ok(_))) {
            of_first.push(key);
        }
        if of_first.len() == 2 {
            break;
        }
    }
    let [durable, ordinary] = &of_first[..] else { return Err("no keys of the first node".into()) };
    let write = put(sdk, durable, 2, DurabilityLevel::MAJORITY);
    expect_in_vain(BRIEF, write).await?;
    sdk.expect_value(durable, 1).await?;
    sdk.collection.upsert(ordinary, 3, None).await?;
    sdk.expect_value(ordinary, 3).await?;
    sdk.order("CLUSTER resume 1")?;
    wait_until(LIMIT, "durable writes go on", || async {
        let write = put(sdk, durable, 4, DurabilityLevel::MAJORITY);
        matches!(within(BRIEF, write).await, Ok(Ok(_)))
    })
    .await?;
    sdk.expect_value(durable, 4).await
}

async fn failover(sdk: &Sdk) -> Outcome {
    let level = || DurabilityLevel::PERSIST_TO_MAJORITY;
    for key in keys("failover") {
        put(sdk, &key, 1, level()).await?;
    }
    sdk.order("CLUSTER kill 0")?;
    sdk.order("CLUSTER failover 0")?;
    for key in keys("failover") {
        wait_until(LIMIT, "it can be read", || async {
            within(BRIEF, sdk.value(&key)).await.is_ok_and(|read| read.is_ok())
        })
        .await?;
        sdk.expect_value(&key, 1).await?;
        sdk.collection.upsert(&key, 2, None).await?;
    }
    // One of two copies is missing: no majority can be reached.
    let impossible = put(sdk, "failover-0", 3, level());
    refused!(impossible, ErrorKind::DurabilityImpossible)?;
    sdk.order("CLUSTER recover 0")?;
    sdk.order("CLUSTER replicated")?;
    wait_until(LIMIT, "durable writes go on", || async {
        matches!(within(BRIEF, put(sdk, "failover-0", 2, level())).await, Ok(Ok(_)))
    })
    .await?;
    for key in keys("failover") {
        sdk.expect_value(&key, 2).await?;
    }
    Ok(())
}
