//! Cases: connecting, and what is told of connections.

use std::env::var;
use std::time::Duration;

use couchbase::options::diagnostic_options::PingOptions;
use couchbase::results::diagnostics::PingState;
use couchbase::service_type::ServiceType;

use crate::case::{Outcome, expect, expect_equal, expect_in_vain, within};
use crate::sdk::{BUCKET, READY, Sdk, connect, connect_as_administrator};

const PATIENCE: Duration = Duration::from_secs(2);

cases! {
    "connect": connect_and_read,
    "wait-until-ready": wait_until_ready,
    "ping": ping,
    "diagnostics": diagnostics,
    "wrong-password-is-refused": wrong_password,
    "unknown-user-is-refused": unknown_user,
    "unknown-bucket-is-refused": unknown_bucket,
}

async fn connect_and_read(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(1, None).await?;
    let cluster = connect_as_administrator().await?;
    let collection = cluster.bucket(BUCKET).default_collection();
    expect(collection.exists(key, None).await?.exists(), "a fresh cluster object reads")
}

async fn wait_until_ready(sdk: &Sdk) -> Outcome {
    within(READY, sdk.cluster.wait_until_ready(None)).await??;
    Ok(within(READY, sdk.bucket.wait_until_ready(None)).await??)
}

async fn ping(sdk: &Sdk) -> Outcome {
    let options = PingOptions::new().service_types(vec![ServiceType::KV]);
    let report = sdk.bucket.ping(options).await?;
    let endpoints = report.services.get(&ServiceType::KV).ok_or("the data service answers")?;
    expect(!endpoints.is_empty(), "the data service answers a ping")?;
    let states = endpoints.iter().map(|endpoint| &endpoint.state);
    states.into_iter().try_for_each(|state| expect_equal(state, &PingState::Ok, "state"))
}

async fn diagnostics(sdk: &Sdk) -> Outcome {
    let result = sdk.cluster.diagnostics(None).await?;
    let endpoints = result.services.get(&ServiceType::KV).ok_or("connections are known")?;
    expect(!endpoints.is_empty(), "connections of the data service are known")
}

/// The SDK repeats what is refused until somebody stops it.
pub(crate) async fn expect_refused(user: &str, password: &str) -> Outcome {
    let Ok(Ok(cluster)) = tokio::time::timeout(PATIENCE, connect(user, password)).await else {
        return Ok(());
    };
    let Ok(cluster) = cluster else { return Ok(()) };
    let bucket = cluster.bucket(BUCKET);
    expect_in_vain(PATIENCE, bucket.default_collection().exists("refused", None)).await
}

async fn wrong_password(_: &Sdk) -> Outcome {
    expect_refused(&var("SETTEE_USER")?, "wrong").await
}

async fn unknown_user(_: &Sdk) -> Outcome {
    expect_refused("nobody", &var("SETTEE_PASSWORD")?).await
}

async fn unknown_bucket(sdk: &Sdk) -> Outcome {
    let absent = sdk.cluster.bucket("absent").default_collection();
    expect_in_vain(PATIENCE, absent.get("k", None)).await
}
