//! Cases: parts of documents, and their attributes.

use std::time::{Duration, SystemTime};

use couchbase::error::{Error, ErrorKind};
use couchbase::options::kv_options::{
    GetOptions, LookupInOptions, MutateInOptions, StoreSemantics, UpsertOptions,
};
use couchbase::results::kv_results::MutateInResult;
use couchbase::subdoc::lookup_in_specs::{ExistsSpecOptions, GetSpecOptions, LookupInSpec};
use couchbase::subdoc::macros::{LookupInMacros, MutateInMacros};
use couchbase::subdoc::mutate_in_specs::{MutateInSpec, RemoveSpecOptions, UpsertSpecOptions};
use couchbase::transcoding::raw_binary;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::case::{Outcome, expect, expect_equal, once, wait_until};
use crate::durability::LEVELS;
use crate::locks_and_expiry::LIFETIME_MAX;
use crate::sdk::Sdk;

cases! {
    "paths-are-looked-up": looked_up,
    "paths-that-are-not-there": not_there,
    "paths-are-changed": changed,
    "arrays-are-changed": arrays,
    "counters-in-documents": counters,
    "parents-are-created": parents,
    "documents-are-created-by-paths": created,
    "paths-change-together-or-not-at-all": together,
    "paths-need-json": need_json,
    "paths-with-cas-and-locks": cas_and_locks,
    "paths-and-expiry": expiry,
    "attributes-are-beside-the-body": attributes,
    "attributes-of-the-server": attributes_of_the_server,
    "macros-name-the-change": macros,
    "paths-are-changed-durably": durably,
    "parallel-changes-of-one-document": in_parallel,
    "removed-documents-keep-system-attributes": of_removed,
}

fn document() -> Value {
    json!({"name": "Ann", "scores": [3, 5], "address": {"city": "Ulm", "lines": [1, 2, 3]}})
}

async fn change(sdk: &Sdk, key: &str, specs: &[MutateInSpec]) -> Result<MutateInResult, Error> {
    sdk.collection.mutate_in(key, specs, None).await
}

fn get(path: &str) -> LookupInSpec {
    LookupInSpec::get(path, None)
}

fn get_attribute(path: impl Into<String>) -> LookupInSpec {
    LookupInSpec::get(path, GetSpecOptions::new().xattr(true))
}

fn has_attribute(path: &str) -> LookupInSpec {
    LookupInSpec::exists(path, ExistsSpecOptions::new().xattr(true))
}

fn upsert(path: &str, value: impl Into<Value>) -> Result<MutateInSpec, Error> {
    MutateInSpec::upsert(path, value.into(), None)
}

fn upsert_attribute(path: &str, value: impl Into<Value>) -> Result<MutateInSpec, Error> {
    let options = UpsertSpecOptions::new().xattr(true).create_path(true);
    MutateInSpec::upsert(path, value.into(), options)
}

/// What is at the path of an attribute.
async fn attribute(sdk: &Sdk, key: &str, path: impl Into<String>) -> Result<Value, Error> {
    sdk.collection.lookup_in(key, &[get_attribute(path)], None).await?.content_as(0)
}

fn number(value: &Value) -> Outcome<u64> {
    let text = value.as_str().ok_or("a text")?;
    Ok(u64::from_str_radix(text.trim_start_matches("0x"), 16)?)
}

async fn looked_up(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(document(), None).await?;
    let specs = [
        get("name"),
        get("address.lines[-1]"),
        LookupInSpec::exists("scores", None),
        LookupInSpec::count("scores", None),
        get(""),
    ];
    let found = sdk.collection.lookup_in(&key, &specs, None).await?;
    expect_equal(&found.cas(), &stored.cas(), "CAS")?;
    expect_equal(&found.content_as::<Value>(0)?, &json!("Ann"), "text")?;
    expect_equal(&found.content_as::<Value>(1)?, &json!(3), "last element")?;
    expect(found.exists(2)?, "there is such a path")?;
    expect_equal(&found.content_as::<Value>(3)?, &json!(2), "count")?;
    expect_equal(&found.content_as::<Value>(4)?, &document(), "the whole document")?;
    let paths = vec!["name".to_owned(), "address.city".to_owned()];
    let projected = sdk.collection.get(&key, GetOptions::new().projections(paths)).await?;
    let part = json!({"name": "Ann", "address": {"city": "Ulm"}});
    expect_equal(&projected.content_as::<Value>()?, &part, "part")
}

async fn not_there(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(document(), None).await?;
    let specs = [
        get("none"),
        get("name.first"),
        get("name"),
        LookupInSpec::exists("none", None),
        get("a..b"),
    ];
    let found = sdk.collection.lookup_in(&key, &specs, None).await?;
    refused!(async { found.content_as::<Value>(0) }, ErrorKind::PathNotFound)?;
    refused!(async { found.content_as::<Value>(1) }, ErrorKind::PathMismatch)?;
    expect_equal(&found.content_as::<Value>(2)?, &json!("Ann"), "another path is answered")?;
    expect(!found.exists(3)?, "there is no such path")?;
    refused!(async { found.content_as::<Value>(4) }, ErrorKind::PathInvalid)?;
    let missing = sdk.key();
    let specs = [get("a")];
    refused!(sdk.collection.lookup_in(missing, &specs, None), ErrorKind::DocumentNotFound)
}

async fn changed(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(document(), None).await?;
    let specs = [
        upsert("name", "Eva")?,
        MutateInSpec::insert("born", 1980, None)?,
        MutateInSpec::replace("address.city", "Bonn", None)?,
        MutateInSpec::remove("scores", None),
    ];
    let changed = change(sdk, &key, &specs).await?;
    expect(changed.cas() > stored.cas(), "the CAS grows")?;
    expect(changed.mutation_token().is_some(), "there is a token")?;
    let address = json!({"city": "Bonn", "lines": [1, 2, 3]});
    let expected = json!({"name": "Eva", "born": 1980, "address": address});
    sdk.expect_value(&key, expected).await?;
    let insert = [MutateInSpec::insert("born", 1, None)?];
    refused!(change(sdk, &key, &insert), ErrorKind::PathExists)?;
    let replace = [MutateInSpec::replace("none", 1, None)?];
    refused!(change(sdk, &key, &replace), ErrorKind::PathNotFound)?;
    let remove = [MutateInSpec::remove("none", None)];
    refused!(change(sdk, &key, &remove), ErrorKind::PathNotFound)?;
    let mismatch = [upsert("name.first", 1)?];
    refused!(change(sdk, &key, &mismatch), ErrorKind::PathMismatch)?;
    let missing = sdk.key();
    refused!(change(sdk, &missing, &mismatch), ErrorKind::DocumentNotFound)
}

async fn arrays(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({"list": [2]}), None).await?;
    let specs = [
        MutateInSpec::array_append("list", &[3, 4], None)?,
        MutateInSpec::array_prepend("list", &[1], None)?,
        MutateInSpec::array_insert("list[1]", &[1.5], None)?,
        MutateInSpec::array_add_unique("list", 5, None)?,
    ];
    change(sdk, &key, &specs).await?;
    sdk.expect_value(&key, json!({"list": [1, 1.5, 2, 3, 4, 5]})).await?;
    let twice = [MutateInSpec::array_add_unique("list", 5, None)?];
    refused!(change(sdk, &key, &twice), ErrorKind::PathExists)?;
    let far = [MutateInSpec::array_insert("list[9]", &[5], None)?];
    refused!(change(sdk, &key, &far), ErrorKind::PathNotFound)
}

async fn counters(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({"n": 5, "text": "a"}), None).await?;
    let specs = [MutateInSpec::increment("n", 3, None)?, MutateInSpec::decrement("m", 2, None)?];
    let counted = change(sdk, &key, &specs).await?;
    expect_equal(&counted.content_as::<i64>(0)?, &8, "counter")?;
    expect_equal(&counted.content_as::<i64>(1)?, &-2, "new counter")?;
    let text = [MutateInSpec::increment("text", 1, None)?];
    refused!(change(sdk, &key, &text), ErrorKind::PathMismatch)?;
    let far = [MutateInSpec::increment("n", i64::MAX, None)?];
    expect(change(sdk, &key, &far).await.is_err(), "too large a number")?;
    sdk.expect_value(&key, json!({"n": 8, "text": "a", "m": -2})).await
}

async fn parents(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({}), None).await?;
    let orphan = [upsert("a.b.c", 1)?];
    refused!(change(sdk, &key, &orphan), ErrorKind::PathNotFound)?;
    let creates = || UpsertSpecOptions::new().create_path(true);
    change(sdk, &key, &[MutateInSpec::upsert("a.b.c", 1, creates())?]).await?;
    sdk.expect_value(&key, json!({"a": {"b": {"c": 1}}})).await?;
    let deep = [MutateInSpec::upsert(["a"; 36].join("."), 1, creates())?];
    refused!(change(sdk, &key, &deep), ErrorKind::PathTooDeep | ErrorKind::PathTooBig)
}

async fn created(sdk: &Sdk) -> Outcome {
    let (key, other) = (sdk.key(), sdk.key());
    let options = |semantics| MutateInOptions::new().store_semantics(semantics);
    for (path, value) in [("a", 1), ("b", 2)] {
        let specs = [upsert(path, value)?];
        sdk.collection.mutate_in(&key, &specs, options(StoreSemantics::Upsert)).await?;
    }
    sdk.expect_value(&key, json!({"a": 1, "b": 2})).await?;
    let specs = [MutateInSpec::insert("a", 1, None)?];
    sdk.collection.mutate_in(&other, &specs, options(StoreSemantics::Insert)).await?;
    let specs = [MutateInSpec::insert("b", 1, None)?];
    // The SDK calls what is there already another version.
    let again = sdk.collection.mutate_in(&other, &specs, options(StoreSemantics::Insert));
    refused!(again, ErrorKind::DocumentExists | ErrorKind::CasMismatch)?;
    sdk.expect_value(&other, json!({"a": 1})).await
}

async fn together(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(json!({"a": 1}), None).await?;
    let specs = [upsert("b", 2)?, MutateInSpec::insert("a", 2, None)?, upsert("c", 3)?];
    refused!(change(sdk, &key, &specs), ErrorKind::PathExists)?;
    sdk.expect_value(&key, json!({"a": 1})).await?;
    expect_equal(&sdk.collection.get(&key, None).await?.cas(), &stored.cas(), "CAS")
}

async fn need_json(sdk: &Sdk) -> Outcome {
    let (key, (bytes, flags)) = (sdk.key(), raw_binary::encode(b"\x00\xff")?);
    sdk.collection.upsert_raw(&key, bytes, flags, None).await?;
    let found = sdk.collection.lookup_in(&key, &[get("a")], None).await?;
    refused!(async { found.content_as::<Value>(0) }, ErrorKind::DocumentNotJSON)?;
    let specs = [upsert("a", 1)?];
    refused!(change(sdk, &key, &specs), ErrorKind::DocumentNotJSON)
}

async fn cas_and_locks(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(json!({"a": 1}), None).await?;
    let options = |cas| MutateInOptions::new().cas(cas);
    let specs = [upsert("a", 2)?];
    let stale = sdk.collection.mutate_in(&key, &specs, options(stored.cas() + 1));
    refused!(stale, ErrorKind::CasMismatch)?;
    sdk.collection.mutate_in(&key, &specs, options(stored.cas())).await?;
    let lock = sdk.collection.get_and_lock(&key, Duration::from_secs(15), None).await?;
    let locked = MutateInOptions::new().retry_strategy(once());
    let third = [upsert("a", 3)?];
    refused!(sdk.collection.mutate_in(&key, &third, locked), ErrorKind::DocumentLocked)?;
    sdk.collection.mutate_in(&key, &[upsert("a", 4)?], options(lock.cas())).await?;
    sdk.expect_value(&key, json!({"a": 4})).await
}

async fn expires(sdk: &Sdk, key: &str) -> Result<bool, Error> {
    let read = sdk.collection.get(key, GetOptions::new().expiry(true)).await?;
    // Of a document without an expiry the SDK tells the second 0.
    Ok(read.expiry_time().is_some_and(|time| time.timestamp() != 0))
}

async fn expiry(sdk: &Sdk) -> Outcome {
    let options = UpsertOptions::new().expiry(Duration::from_secs(60));
    let (key, _) = sdk.stored(json!({}), options).await?;
    let preserves = MutateInOptions::new().preserve_expiry(true);
    sdk.collection.mutate_in(&key, &[upsert("a", 1)?], preserves).await?;
    expect(expires(sdk, &key).await?, "the expiry is kept")?;
    change(sdk, &key, &[upsert("a", 2)?]).await?;
    expect(!expires(sdk, &key).await?, "without an expiry it lasts")?;
    let brief = MutateInOptions::new().expiry(Duration::from_secs(1));
    sdk.collection.mutate_in(&key, &[upsert("a", 3)?], brief).await?;
    wait_until(LIFETIME_MAX, "it expires", || sdk.is_gone(&key)).await
}

async fn attributes(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({"a": 1}), None).await?;
    let specs = [
        upsert_attribute("meta.by", "me")?,
        upsert_attribute("_system", json!([1]))?,
        upsert("b", 2)?,
    ];
    change(sdk, &key, &specs).await?;
    sdk.expect_value(&key, json!({"a": 1, "b": 2})).await?;
    expect_equal(&attribute(sdk, &key, "meta.by").await?, &json!("me"), "attribute")?;
    sdk.collection.replace(&key, json!({"c": 3}), None).await?;
    expect_equal(&attribute(sdk, &key, "meta").await?, &json!({"by": "me"}), "stores keep it")?;
    let options = RemoveSpecOptions::new().xattr(true);
    change(sdk, &key, &[MutateInSpec::remove("meta", options)]).await?;
    let found = sdk.collection.lookup_in(&key, &[has_attribute("meta")], None).await?;
    expect(!found.exists(0)?, "it is removed")?;
    expect_equal(&attribute(sdk, &key, "_system").await?, &json!([1]), "another stays")?;
    sdk.expect_value(&key, json!({"c": 3})).await
}

async fn attributes_of_the_server(sdk: &Sdk) -> Outcome {
    let (key, stored) = sdk.stored(json!({"a": 1}), None).await?;
    let document = attribute(sdk, &key, LookupInMacros::Document).await?;
    let token = stored.mutation_token().ok_or("a token")?;
    expect_equal(&number(&document["CAS"])?, &stored.cas(), "CAS")?;
    expect_equal(&number(&document["seqno"])?, &token.sequence_number(), "seqno")?;
    expect_equal(&document["deleted"], &json!(false), "deleted")?;
    expect_equal(&document["datatype"], &json!(["json"]), "datatype")?;
    for name in [
        LookupInMacros::ExpiryTime,
        LookupInMacros::CAS,
        LookupInMacros::SeqNo,
        LookupInMacros::LastModified,
        LookupInMacros::IsDeleted,
        LookupInMacros::ValueSizeBytes,
        LookupInMacros::RevId,
    ] {
        attribute(sdk, &key, name).await?;
    }
    let clock = attribute(sdk, &key, "$vbucket.HLC").await?;
    let told: u64 = clock["now"].as_str().ok_or("the time")?.parse()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    expect(told.abs_diff(now) < 60, "the time")?;
    change(sdk, &key, &[upsert_attribute("x", 1)?]).await?;
    expect_equal(&attribute(sdk, &key, "$XTOC").await?, &json!(["x"]), "keys")
}

fn macro_of(path: &str, value: MutateInMacros) -> Result<MutateInSpec, Error> {
    let options = UpsertSpecOptions::new().xattr(true).create_path(true);
    MutateInSpec::upsert(path, value, options)
}

async fn macros(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({"a": 1}), None).await?;
    let specs = [
        macro_of("m.cas", MutateInMacros::CAS)?,
        macro_of("m.seqno", MutateInMacros::SeqNo)?,
        macro_of("m.sum", MutateInMacros::ValueCrc32c)?,
    ];
    let changed = change(sdk, &key, &specs).await?;
    let written = attribute(sdk, &key, "m").await?;
    let token = changed.mutation_token().ok_or("a token")?;
    expect_equal(&number(&written["cas"])?.swap_bytes(), &changed.cas(), "CAS")?;
    expect_equal(&number(&written["seqno"])?, &token.sequence_number(), "seqno")?;
    let sum = attribute(sdk, &key, "$document.value_crc32c").await?;
    expect_equal(&sum, &written["sum"], "sum")
}

async fn durably(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({"n": 1}), None).await?;
    for level in LEVELS {
        let options = MutateInOptions::new().durability_level(level.clone());
        let specs = [MutateInSpec::increment("n", 1, None)?, macro_of("cas", MutateInMacros::CAS)?];
        // The SDK sends attributes first, and tells results in the order of its caller.
        let counted = sdk.collection.mutate_in(&key, &specs, options).await?;
        let read = sdk.collection.get(&key, None).await?;
        expect_equal(&read.content_as::<Value>()?["n"], &counted.content_as(0)?, "counter")?;
        expect_equal(&read.cas(), &counted.cas(), "CAS")?;
        let written = attribute(sdk, &key, "cas").await?;
        expect_equal(&number(&written)?.swap_bytes(), &counted.cas(), "CAS")?;
    }
    sdk.expect_value(&key, json!({"n": 4})).await
}

async fn in_parallel(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({"n": 0}), None).await?;
    let (mut expected, mut tasks) = (json!({"n": 400}), JoinSet::new());
    for writer in 0..16 {
        let (collection, key, name) = (sdk.collection.clone(), key.clone(), format!("of{writer}"));
        expected[&name] = json!(25);
        tasks.spawn(async move {
            for _ in 0..25 {
                let specs = [
                    MutateInSpec::increment("n", 1, None)?,
                    MutateInSpec::increment(&name, 1, None)?,
                ];
                collection.mutate_in(&key, &specs, None).await?;
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(result) = tasks.join_next().await {
        result??;
    }
    sdk.expect_value(&key, expected).await
}

async fn of_removed(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(json!({"a": 1}), None).await?;
    let specs = [upsert_attribute("_system", json!({"kept": 1}))?, upsert_attribute("meta", 1)?];
    change(sdk, &key, &specs).await?;
    sdk.collection.remove(&key, None).await?;
    let paths = [get_attribute("_system"), has_attribute("meta")];
    refused!(sdk.collection.lookup_in(&key, &paths, None), ErrorKind::DocumentNotFound)?;
    let options = LookupInOptions::new().access_deleted(true);
    let found = sdk.collection.lookup_in(&key, &paths, options).await?;
    expect_equal(&found.content_as::<Value>(0)?, &json!({"kept": 1}), "the system's")?;
    expect(!found.exists(1)?, "the user's attribute is gone")
}
