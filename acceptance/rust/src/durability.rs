//! Cases: durable writes, and what is there after a restart.

use std::time::Duration;

use couchbase::durability_level::DurabilityLevel;
use couchbase::error::ErrorKind;
use couchbase::options::kv_binary_options::{
    AppendOptions, DecrementOptions, IncrementOptions, PrependOptions,
};
use couchbase::options::kv_options::{InsertOptions, RemoveOptions, ReplaceOptions, UpsertOptions};
use couchbase::results::kv_results::MutationResult;
use serde_json::{Value, json};

use crate::case::{Outcome, expect, expect_equal, wait_until, within};
use crate::locks_and_expiry::LIFETIME_MAX;
use crate::sdk::{READY, Sdk};

pub(crate) const LEVELS: [DurabilityLevel; 3] = [
    DurabilityLevel::MAJORITY,
    DurabilityLevel::MAJORITY_AND_PERSIST_ACTIVE,
    DurabilityLevel::PERSIST_TO_MAJORITY,
];
const COUNT: usize = 200;

cases! {
    "durable-writes-are-committed": durable_writes,
    "restart-keeps-everything": restart_keeps_everything,
    "restart-goes-on-in-the-same-branch": restart_goes_on,
}

async fn durable_writes(sdk: &Sdk) -> Outcome {
    for level in LEVELS {
        durable_life(sdk, level).await?;
    }
    Ok(())
}

/// Takes a document from its insertion to its removal.
async fn durable_life(sdk: &Sdk, level: DurabilityLevel) -> Outcome {
    let (key, count) = (sdk.key(), sdk.key());
    let insert = || InsertOptions::new().durability_level(level.clone());
    let upsert = UpsertOptions::new().durability_level(level.clone());
    let replace = |cas| ReplaceOptions::new().durability_level(level.clone()).cas(cas);
    let first = sdk.collection.insert(&key, 1, insert()).await?;
    let second = sdk.collection.upsert(&key, 2, upsert).await?;
    let stale = sdk.collection.replace(&key, 3, replace(first.cas()));
    refused!(stale, ErrorKind::CasMismatch)?;
    let third = sdk.collection.replace(&key, 3, replace(second.cas())).await?;
    refused!(sdk.collection.insert(&key, 4, insert()), ErrorKind::DocumentExists)?;
    let read = sdk.collection.get(&key, None).await?;
    expect_equal(&read.content_as::<i64>()?, &3, "value")?;
    expect_equal(&read.cas(), &third.cas(), "CAS")?;
    expect(seqno(&third)? > seqno(&second)?, "seqnos of commits rise")?;
    durable_count(sdk, &count, level.clone()).await?;
    let remove = RemoveOptions::new().durability_level(level);
    sdk.collection.remove(&key, remove).await?;
    sdk.expect_gone(&key).await
}

async fn durable_count(sdk: &Sdk, key: &str, level: DurabilityLevel) -> Outcome {
    for value in [41, 42] {
        let options = IncrementOptions::new().initial(41).durability_level(level.clone());
        expect_equal(&sdk.binary().increment(key, options).await?.content(), &value, "counter")?;
    }
    let options = DecrementOptions::new().delta(2).durability_level(level.clone());
    expect_equal(&sdk.binary().decrement(key, options).await?.content(), &40, "counter")?;
    let append = AppendOptions::new().durability_level(level.clone());
    sdk.binary().append(key, b"0", append).await?;
    sdk.binary().prepend(key, b"1", PrependOptions::new().durability_level(level)).await?;
    sdk.expect_value(key, 1400).await
}

fn seqno(result: &MutationResult) -> Outcome<u64> {
    Ok(result.mutation_token().ok_or("a token")?.sequence_number())
}

async fn restart_keeps_everything(sdk: &Sdk) -> Outcome {
    let mut stored = Vec::new();
    for number in 0..COUNT {
        stored.push(sdk.stored(json!({"n": number}), None).await?);
    }
    let (removed, _) = sdk.stored(1, None).await?;
    sdk.collection.remove(&removed, None).await?;
    let (counter, _) = sdk.stored(41, None).await?;
    let options = UpsertOptions::new().expiry(Duration::from_secs(2));
    let (expiring, _) = sdk.stored(1, options).await?;
    sdk.order("NODE restart")?;
    wait_until(READY, "the same SDK object works", || async {
        let attempt = sdk.collection.exists(&removed, None);
        within(Duration::from_secs(1), attempt).await.is_ok_and(|result| result.is_ok())
    })
    .await?;
    for (number, (key, before)) in stored.iter().enumerate() {
        let read = sdk.collection.get(key, None).await?;
        expect_equal(&read.content_as::<Value>()?, &json!({"n": number}), "value")?;
        expect_equal(&read.cas(), &before.cas(), "CAS")?;
    }
    sdk.expect_gone(&removed).await?;
    expect_equal(&sdk.binary().increment(&counter, None).await?.content(), &42, "counter")?;
    wait_until(LIFETIME_MAX, "the expiry is kept", || sdk.is_gone(&expiring)).await
}

async fn restart_goes_on(sdk: &Sdk) -> Outcome {
    let (key, before) = sdk.stored(1, None).await?;
    sdk.order("NODE restart")?;
    let after = within(READY, sdk.collection.upsert(&key, 2, None)).await??;
    let uuid = |result: &MutationResult| result.mutation_token().map(|it| it.partition_uuid());
    expect(after.cas() > before.cas(), "the CAS grows")?;
    expect_equal(&uuid(&after), &uuid(&before), "uuid")?;
    expect(seqno(&after)? > seqno(&before)?, "seqnos go on")
}
