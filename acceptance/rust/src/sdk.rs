//! The SDK's objects that the cases share.

use std::env::var;
use std::io::{BufRead, Lines, StdinLock, stdin};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use couchbase::authenticator::PasswordAuthenticator;
use couchbase::bucket::Bucket;
use couchbase::cluster::Cluster;
use couchbase::collection::{BinaryCollection, Collection};
use couchbase::error::{Error, ErrorKind};
use couchbase::options::cluster_options::ClusterOptions;
use couchbase::options::kv_options::UpsertOptions;
use couchbase::results::kv_results::MutationResult;
use serde_json::Value;

use crate::case::{Outcome, expect, expect_equal, within};

pub(crate) const BUCKET: &str = "default";
pub(crate) const READY: Duration = Duration::from_secs(30);

/// One cluster object, connected once.
pub(crate) struct Sdk {
    pub(crate) cluster: Cluster,
    pub(crate) bucket: Bucket,
    pub(crate) collection: Collection,
    names: AtomicU64,
    answers: Mutex<Lines<StdinLock<'static>>>,
}

impl Sdk {
    pub(crate) async fn connected() -> Outcome<Self> {
        let cluster = connect_as_administrator().await?;
        let bucket = cluster.bucket(BUCKET);
        within(READY, bucket.wait_until_ready(None)).await??;
        let collection = bucket.default_collection();
        let answers = Mutex::new(stdin().lock().lines());
        Ok(Self { cluster, bucket, collection, names: AtomicU64::new(1), answers })
    }

    pub(crate) fn binary(&self) -> BinaryCollection {
        self.collection.binary()
    }

    /// One that no other case uses.
    pub(crate) fn key(&self) -> String {
        format!("key-{}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// A new document: its key, and what its store returned.
    pub(crate) async fn stored(
        &self,
        value: impl Into<Value>,
        options: impl Into<Option<UpsertOptions>>,
    ) -> Result<(String, MutationResult), Error> {
        let key = self.key();
        let result = self.collection.upsert(&key, value.into(), options).await?;
        Ok((key, result))
    }

    pub(crate) async fn value(&self, key: &str) -> Result<Value, Error> {
        self.collection.get(key, None).await?.content_as()
    }

    pub(crate) async fn expect_value(&self, key: &str, wanted: impl Into<Value>) -> Outcome {
        expect_equal(&self.value(key).await?, &wanted.into(), "value")
    }

    /// Whether no document has this key; an error is no answer.
    pub(crate) async fn is_gone(&self, key: &str) -> bool {
        match self.collection.exists(key, None).await {
            Ok(result) => !result.exists(),
            // The SDK says so of a key that was never stored.
            Err(error) => matches!(error.kind(), ErrorKind::DocumentNotFound),
        }
    }

    pub(crate) async fn expect_gone(&self, key: &str) -> Outcome {
        expect(self.is_gone(key).await, &format!("{key} is no document"))
    }

    /// Asks whoever runs the nodes, and waits until it is done.
    pub(crate) fn order(&self, line: &str) -> Outcome {
        println!("{line}");
        let answer = self.answers.lock().map_err(|error| error.to_string())?.next();
        let answer = answer.ok_or("nobody answers")??;
        expect(answer == "NODE ready" || answer == "CLUSTER done", &format!("{line}: {answer}"))
    }
}

/// Another cluster object of the node's administrator.
pub(crate) async fn connect_as_administrator() -> Outcome<Cluster> {
    Ok(connect(&var("SETTEE_USER")?, &var("SETTEE_PASSWORD")?).await??)
}

/// A cluster object that is connected.
pub(crate) async fn connect(user: &str, password: &str) -> Outcome<Result<Cluster, Error>> {
    let authenticator = PasswordAuthenticator::new(user, password).into();
    let target = var("SETTEE_CONNECT")?;
    within(READY, Cluster::connect(target, ClusterOptions::new(authenticator))).await
}
