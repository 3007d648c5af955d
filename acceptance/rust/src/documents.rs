//! Cases: whole documents.

use couchbase::error::{Error, ErrorKind};
use couchbase::options::kv_options::{RemoveOptions, ReplaceOptions};
use serde_json::json;

use crate::case::{Outcome, expect, expect_equal};
use crate::sdk::{BUCKET, Sdk};

cases! {
    "upsert-and-get": upsert_and_get,
    "upsert-overwrites": upsert_overwrites,
    "insert-new": insert_new,
    "insert-existing": insert_existing,
    "get-missing": get_missing,
    "replace-existing": replace_existing,
    "replace-missing": replace_missing,
    "replace-with-cas": replace_with_cas,
    "replace-with-stale-cas": replace_with_stale_cas,
    "exists": exists,
    "remove": remove,
    "remove-missing": remove_missing,
    "remove-with-stale-cas": remove_with_stale_cas,
    "insert-after-remove": insert_after_remove,
    "mutation-tokens": mutation_tokens,
    "unicode-key": unicode_key,
    "key-of-250-bytes": key_of_250_bytes,
    "key-of-251-bytes": key_of_251_bytes,
}

async fn upsert_and_get(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(json!({"n": 1}), None).await?;
    let read = sdk.collection.get(&key, None).await?;
    expect(stored.cas() != 0, "a store returns a CAS")?;
    expect_equal(&read.cas(), &stored.cas(), "CAS that is read")?;
    sdk.expect_value(&key, json!({"n": 1})).await
}

/// A document with an old and a present CAS; it holds 2.
async fn overwritten(sdk: &Sdk) -> Result<(String, u64, u64), Error> {
    let (key, first) = sdk.stored(1, None).await?;
    let second = sdk.collection.upsert(&key, 2, None).await?;
    Ok((key, first.cas(), second.cas()))
}

async fn upsert_overwrites(sdk: &Sdk) -> Outcome {
    let (key, stale, present) = overwritten(sdk).await?;
    expect(present > stale, "the CAS of a document grows")?;
    sdk.expect_value(&key, 2).await
}

async fn insert_new(sdk: &Sdk) -> Outcome {
    let key = sdk.key();
    sdk.collection.insert(&key, 1, None).await?;
    sdk.expect_value(&key, 1).await
}

async fn insert_existing(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(1, None).await?;
    refused!(sdk.collection.insert(&key, 2, None), ErrorKind::DocumentExists)?;
    sdk.expect_value(&key, 1).await
}

async fn get_missing(sdk: &Sdk) -> Outcome {
    refused!(sdk.collection.get(sdk.key(), None), ErrorKind::DocumentNotFound)
}

async fn replace_existing(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(1, None).await?;
    sdk.collection.replace(&key, 2, None).await?;
    sdk.expect_value(&key, 2).await
}

async fn replace_missing(sdk: &Sdk) -> Outcome {
    let key = sdk.key();
    refused!(sdk.collection.replace(&key, 1, None), ErrorKind::DocumentNotFound)?;
    sdk.expect_gone(&key).await
}

async fn replace_with_cas(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(1, None).await?;
    let options = ReplaceOptions::new().cas(stored.cas());
    let replaced = sdk.collection.replace(&key, 2, options).await?;
    expect(replaced.cas() != stored.cas(), "a replace changes the CAS")?;
    sdk.expect_value(&key, 2).await
}

async fn replace_with_stale_cas(sdk: &Sdk) -> Outcome {
    let (key, stale, _) = overwritten(sdk).await?;
    let options = ReplaceOptions::new().cas(stale);
    refused!(sdk.collection.replace(&key, 3, options), ErrorKind::CasMismatch)?;
    sdk.expect_value(&key, 2).await
}

async fn exists(sdk: &Sdk) -> Outcome {
    let key = sdk.key();
    sdk.expect_gone(&key).await?;
    let stored = sdk.collection.upsert(&key, 1, None).await?;
    let found = sdk.collection.exists(&key, None).await?;
    expect(found.exists(), "a stored document exists")?;
    expect_equal(&found.cas(), &stored.cas(), "CAS of a document")?;
    sdk.collection.remove(&key, None).await?;
    sdk.expect_gone(&key).await
}

async fn remove(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(1, None).await?;
    let removed = sdk.collection.remove(&key, None).await?;
    expect(removed.cas() > stored.cas(), "a removal has a CAS of its own")?;
    refused!(sdk.collection.get(&key, None), ErrorKind::DocumentNotFound)
}

async fn remove_missing(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(1, None).await?;
    sdk.collection.remove(&key, None).await?;
    refused!(sdk.collection.remove(&key, None), ErrorKind::DocumentNotFound)?;
    refused!(sdk.collection.remove(sdk.key(), None), ErrorKind::DocumentNotFound)
}

async fn remove_with_stale_cas(sdk: &Sdk) -> Outcome {
    let (key, stale, present) = overwritten(sdk).await?;
    let options = RemoveOptions::new().cas(stale);
    refused!(sdk.collection.remove(&key, options), ErrorKind::CasMismatch)?;
    sdk.expect_value(&key, 2).await?;
    sdk.collection.remove(&key, RemoveOptions::new().cas(present)).await?;
    sdk.expect_gone(&key).await
}

async fn insert_after_remove(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(1, None).await?;
    let removed = sdk.collection.remove(&key, None).await?;
    let inserted = sdk.collection.insert(&key, 2, None).await?;
    expect(inserted.cas() > removed.cas(), "the CAS grows over a removal")?;
    sdk.expect_value(&key, 2).await
}

async fn mutation_tokens(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(1, None).await?;
    let replaced = sdk.collection.replace(&key, 2, None).await?;
    let removed = sdk.collection.remove(&key, None).await?;
    let first = stored.mutation_token().ok_or("a mutation returns a token")?;
    expect(first.partition_uuid() != 0, "a token has a uuid")?;
    for (distance, result) in (0..).zip([&stored, &replaced, &removed]) {
        let token = result.mutation_token().ok_or("a mutation returns a token")?;
        expect_equal(&token.bucket_name(), &BUCKET, "bucket")?;
        expect_equal(&token.partition_id(), &first.partition_id(), "vBucket")?;
        expect_equal(&token.partition_uuid(), &first.partition_uuid(), "uuid")?;
        expect_equal(&token.sequence_number(), &(first.sequence_number() + distance), "seqno")?;
    }
    Ok(())
}

async fn unicode_key(sdk: &Sdk) -> Outcome {
    for name in ["\u{e4}\u{f6}\u{fc}", "\u{65e5}\u{672c}\u{8a9e}", "\u{1f6cb}", "a b/c\t%41"] {
        let key = format!("{name}{}", sdk.key());
        sdk.collection.upsert(&key, name, None).await?;
        sdk.expect_value(&key, name).await?;
    }
    Ok(())
}

async fn key_of_250_bytes(sdk: &Sdk) -> Outcome {
    let key = "k".repeat(250);
    sdk.collection.upsert(&key, 250, None).await?;
    sdk.expect_value(&key, 250).await
}

async fn key_of_251_bytes(sdk: &Sdk) -> Outcome {
    let attempt = sdk.collection.upsert("k".repeat(251), 251, None);
    let result = tokio::time::timeout(crate::sdk::READY, attempt).await?;
    expect(result.is_err(), "a key of 251 bytes is refused")
}
