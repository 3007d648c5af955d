//! Cases: counters, and bytes that are added.

use couchbase::error::{Error, ErrorKind};
use couchbase::options::kv_binary_options::{
    AppendOptions, DecrementOptions, IncrementOptions, PrependOptions,
};
use couchbase::transcoding::raw_binary;

use crate::case::{Outcome, expect, expect_equal};
use crate::sdk::{READY, Sdk};

cases! {
    "append": append,
    "prepend": prepend,
    "append-with-stale-cas": append_with_stale_cas,
    "append-missing": append_missing,
    "increment-creates": increment_creates,
    "increment": increment,
    "decrement": decrement,
    "decrement-stops-at-zero": decrement_stops_at_zero,
    "increment-missing": increment_missing,
    "increment-not-a-number": increment_not_a_number,
    "counter-is-a-document": counter_is_a_document,
}

async fn stored_bytes(sdk: &Sdk, text: &str) -> Result<(String, u64), Error> {
    let (bytes, flags) = raw_binary::encode(text.as_bytes())?;
    let key = sdk.key();
    let stored = sdk.collection.upsert_raw(&key, bytes, flags, None).await?;
    Ok((key, stored.cas()))
}

async fn expect_bytes(sdk: &Sdk, key: &str, text: &str) -> Outcome {
    let read = sdk.collection.get(key, None).await?;
    expect_equal(&read.content_as_raw().0, &text.as_bytes(), "value")
}

async fn append(sdk: &Sdk) -> Outcome {
    let (key, _) = stored_bytes(sdk, "hello").await?;
    sdk.binary().append(&key, b" world", None).await?;
    expect_bytes(sdk, &key, "hello world").await
}

async fn prepend(sdk: &Sdk) -> Outcome {
    let (key, _) = stored_bytes(sdk, "world").await?;
    sdk.binary().prepend(&key, b"hello ", None).await?;
    expect_bytes(sdk, &key, "hello world").await
}

async fn append_with_stale_cas(sdk: &Sdk) -> Outcome {
    let (key, cas) = stored_bytes(sdk, "hello").await?;
    sdk.binary().append(&key, b" ", AppendOptions::new().cas(cas)).await?;
    let append = AppendOptions::new().cas(cas);
    refused!(sdk.binary().append(&key, b"x", append), ErrorKind::CasMismatch)?;
    let prepend = PrependOptions::new().cas(cas);
    refused!(sdk.binary().prepend(&key, b"x", prepend), ErrorKind::CasMismatch)?;
    expect_bytes(sdk, &key, "hello ").await
}

async fn append_missing(sdk: &Sdk) -> Outcome {
    refused!(sdk.binary().append(sdk.key(), b"x", None), ErrorKind::DocumentNotFound)?;
    refused!(sdk.binary().prepend(sdk.key(), b"x", None), ErrorKind::DocumentNotFound)
}

/// A counter with this value.
async fn counter(sdk: &Sdk, initial: u64) -> Outcome<String> {
    let key = sdk.key();
    let options = IncrementOptions::new().initial(initial);
    let result = sdk.binary().increment(&key, options).await?;
    expect_equal(&result.content(), &initial, "initial value")?;
    Ok(key)
}

async fn increment_creates(sdk: &Sdk) -> Outcome {
    let key = counter(sdk, 100).await?;
    sdk.expect_value(&key, 100).await
}

async fn increment(sdk: &Sdk) -> Outcome {
    let key = counter(sdk, 1).await?;
    let first = sdk.binary().increment(&key, None).await?;
    expect(first.cas() != 0, "a counter returns a CAS")?;
    expect_equal(&first.content(), &2, "counter")?;
    let options = IncrementOptions::new().delta(40);
    expect_equal(&sdk.binary().increment(&key, options).await?.content(), &42, "counter")
}

async fn decrement(sdk: &Sdk) -> Outcome {
    let key = counter(sdk, 42).await?;
    expect_equal(&sdk.binary().decrement(&key, None).await?.content(), &41, "counter")?;
    let options = DecrementOptions::new().delta(40);
    expect_equal(&sdk.binary().decrement(&key, options).await?.content(), &1, "counter")
}

async fn decrement_stops_at_zero(sdk: &Sdk) -> Outcome {
    let key = counter(sdk, 2).await?;
    let options = DecrementOptions::new().delta(10);
    expect_equal(&sdk.binary().decrement(&key, options).await?.content(), &0, "counter")
}

async fn increment_missing(sdk: &Sdk) -> Outcome {
    let key = sdk.key();
    refused!(sdk.binary().increment(&key, None), ErrorKind::DocumentNotFound)?;
    sdk.expect_gone(&key).await
}

async fn increment_not_a_number(sdk: &Sdk) -> Outcome {
    let (key, _) = stored_bytes(sdk, "twelve").await?;
    let result = tokio::time::timeout(READY, sdk.binary().increment(&key, None)).await?;
    expect(result.is_err(), "a text is refused as a counter")?;
    expect_bytes(sdk, &key, "twelve").await
}

async fn counter_is_a_document(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(41, None).await?;
    expect_equal(&sdk.binary().increment(&key, None).await?.content(), &42, "counter")?;
    sdk.expect_value(&key, 42).await
}
