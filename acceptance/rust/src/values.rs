//! Cases: values of all kinds and sizes.

use couchbase::error::ErrorKind;
use couchbase::transcoding::{raw_binary, raw_json, raw_string};
use serde_json::json;

use crate::case::{Outcome, expect, expect_equal};
use crate::sdk::Sdk;

const BYTES_MAX: usize = 20 << 20;

cases! {
    "json-values": json_values,
    "json-as-text": json_as_text,
    "string-values": string_values,
    "binary-values": binary_values,
    "empty-value": empty_value,
    "value-of-1-mib": value_of_1_mib,
    "value-of-20-mib": value_of_20_mib,
    "value-above-20-mib": value_above_20_mib,
    "compressible-value": compressible_value,
}

async fn json_values(sdk: &Sdk) -> Outcome {
    for value in [
        json!({}),
        json!([]),
        json!({"a": {"b": [1, 2, {"c": null}]}}),
        json!([true, false, null]),
        json!("text"),
        json!(""),
        json!(0),
        json!(-1),
        json!(9_007_199_254_740_992_i64),
        json!(1.5),
        json!({"\u{e4}": "\u{1f6cb}"}),
    ] {
        let (key, _) = sdk.stored(value.clone(), None).await?;
        sdk.expect_value(&key, value).await?;
    }
    Ok(())
}

async fn expect_return(sdk: &Sdk, (bytes, flags): (&[u8], u32)) -> Outcome {
    let key = sdk.key();
    sdk.collection.upsert_raw(&key, bytes, flags, None).await?;
    let read = sdk.collection.get(&key, None).await?;
    let (got, got_flags) = read.content_as_raw();
    expect_equal(&got_flags, &flags, "flags")?;
    expect(got == bytes, "bytes come back unchanged")
}

async fn json_as_text(sdk: &Sdk) -> Outcome {
    let text = r#"{"a" : 1,  "b":[ 2 ] }"#;
    expect_return(sdk, raw_json::encode(&text)?).await
}

async fn string_values(sdk: &Sdk) -> Outcome {
    for text in ["plain", "\u{e4}\u{f6} \u{65e5}\u{672c} \u{1f6cb}", "{not json"] {
        expect_return(sdk, raw_string::encode(text)?).await?;
    }
    Ok(())
}

async fn binary_values(sdk: &Sdk) -> Outcome {
    let everything: Vec<u8> = (0..=255).collect();
    for value in [&everything[..], b"\0", b"\r\n", &everything.repeat(100)] {
        expect_return(sdk, raw_binary::encode(value)?).await?;
    }
    Ok(())
}

async fn empty_value(sdk: &Sdk) -> Outcome {
    expect_return(sdk, raw_binary::encode(b"")?).await
}

/// Bytes that do not compress: those of a generator by Marsaglia.
fn noise(size: usize) -> Vec<u8> {
    let mut state = size as u64 | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}

async fn value_of_1_mib(sdk: &Sdk) -> Outcome {
    expect_return(sdk, raw_binary::encode(&noise(1 << 20))?).await
}

async fn value_of_20_mib(sdk: &Sdk) -> Outcome {
    expect_return(sdk, raw_binary::encode(&noise(BYTES_MAX))?).await?;
    expect_return(sdk, raw_binary::encode(&noise(BYTES_MAX - 1))?).await
}

async fn value_above_20_mib(sdk: &Sdk) -> Outcome {
    let (key, value) = (sdk.key(), noise(BYTES_MAX + 1));
    let (bytes, flags) = raw_binary::encode(&value)?;
    let store = sdk.collection.upsert_raw(&key, bytes, flags, None);
    refused!(store, ErrorKind::ValueTooLarge)?;
    sdk.expect_gone(&key).await
}

async fn compressible_value(sdk: &Sdk) -> Outcome {
    expect_return(sdk, raw_string::encode(&"to be compressed ".repeat(1000))?).await
}
