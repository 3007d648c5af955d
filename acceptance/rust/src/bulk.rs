//! Cases: many operations at once.

use couchbase::options::kv_binary_options::IncrementOptions;
use serde_json::json;
use tokio::task::JoinSet;

use crate::case::{Outcome, expect_equal};
use crate::sdk::Sdk;

const COUNT: u64 = 500;

cases! {
    "parallel-operations": parallel_operations,
    "parallel-increments": parallel_increments,
}

async fn parallel_operations(sdk: &Sdk) -> Outcome {
    let mut tasks = JoinSet::new();
    for number in 0..COUNT {
        let (collection, key) = (sdk.collection.clone(), sdk.key());
        tasks.spawn(async move {
            collection.upsert(&key, json!({"n": number}), None).await?;
            let read = collection.get(&key, None).await?.content_as::<serde_json::Value>()?;
            expect_equal(&read, &json!({"n": number}), "value")
        });
    }
    while let Some(outcome) = tasks.join_next().await {
        outcome??;
    }
    Ok(())
}

async fn parallel_increments(sdk: &Sdk) -> Outcome {
    let (key, mut tasks) = (sdk.key(), JoinSet::new());
    for _ in 0..COUNT {
        let (binary, key) = (sdk.binary(), key.clone());
        let options = IncrementOptions::new().initial(1);
        tasks.spawn(async move { binary.increment(key, options).await });
    }
    let mut numbers = Vec::new();
    while let Some(result) = tasks.join_next().await {
        numbers.push(result??.content());
    }
    numbers.sort_unstable();
    expect_equal(&numbers, &(1..=COUNT).collect(), "every number once")
}
