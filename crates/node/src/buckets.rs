//! The node's buckets, by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bucket::{Bucket, Surroundings};
use executor::ExecutorPool;
use platform::Clock;
use replication::Hub;
use server::{Mailboxes, ServedBucket};

use crate::client_limits;
use crate::config::NodeConfig;
use crate::data_directory::DataDirectory;
use crate::world::World;

/// How often a node that loads before it serves says so.
const LOADING_STEP: Duration = Duration::from_secs(2);

/// A bucket that the node has open.
#[derive(Clone)]
pub struct NodeBucket {
    bucket: Bucket,
    hub: Arc<Hub>,
    flush_enabled: bool,
}

/// All of them, at least one.
pub struct NodeBuckets {
    by_name: BTreeMap<String, NodeBucket>,
    default_name: String,
}

impl NodeBucket {
    /// A bucket of which nobody knows yet who reads it.
    pub(crate) fn new(bucket: Bucket, flush_enabled: bool) -> Self {
        let hub = Hub::new(&bucket);
        bucket.observe_streams(hub.clone());
        Self { bucket, hub, flush_enabled }
    }

    /// The bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.bucket.config().name
    }

    /// Whether clients may empty it.
    pub fn flush_enabled(&self) -> bool {
        self.flush_enabled
    }

    /// Where news of its vBuckets reach streams.
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    fn served(&self) -> ServedBucket {
        let Self { bucket, hub, flush_enabled } = self.clone();
        ServedBucket { bucket, hub, flush_enabled }
    }
}

impl NodeBuckets {
    /// These, of which the first is the default one.
    pub(crate) fn of(buckets: Vec<NodeBucket>) -> Self {
        let default_name = buckets.first().expect("a node has a bucket").name().to_owned();
        let count = buckets.len();
        let by_name: BTreeMap<String, NodeBucket> =
            buckets.into_iter().map(|bucket| (bucket.name().to_owned(), bucket)).collect();
        assert_eq!(by_name.len(), count, "buckets have different names");
        Self { by_name, default_name }
    }

    /// Opens those of a configuration. What their requests wait for is reported to `mailboxes`.
    pub(crate) fn open(
        world: &World,
        config: &NodeConfig,
        directory: &DataDirectory,
        mailboxes: &Mailboxes,
        open_files_limit: u64,
    ) -> anyhow::Result<Self> {
        let open_files_max = client_limits::open_files_max(open_files_limit, config.buckets.len());
        let mut buckets = Vec::with_capacity(config.buckets.len());
        for settings in &config.buckets {
            let surroundings = Surroundings {
                clock: world.clock.clone(),
                files: Arc::clone(&world.files),
                pool: world.pool.clone(),
                completions: Arc::new(mailboxes.clone()),
                entropy: world.entropy.clone(),
            };
            let path = directory.bucket(&*world.files, &settings.name)?;
            let bucket = Bucket::open(surroundings, settings.bucket_config(open_files_max), &path)
                .with_context(|| format!("the bucket `{}`", settings.name))?;
            buckets.push(NodeBucket::new(bucket, settings.enable_flush));
        }
        Ok(Self::of(buckets))
    }

    /// All, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &NodeBucket> {
        self.by_name.values()
    }

    /// The bucket of that name.
    pub fn get(&self, name: &str) -> Option<&NodeBucket> {
        self.by_name.get(name)
    }

    /// The one of clients that select none, and of cluster maps that name none.
    pub fn default_bucket(&self) -> &NodeBucket {
        self.get(&self.default_name).expect("the default bucket is one of them")
    }

    /// As the data port takes them: the default one comes first.
    pub(crate) fn served(&self) -> Vec<ServedBucket> {
        let others = self.all().filter(|bucket| bucket.name() != self.default_name);
        let served: Vec<ServedBucket> =
            std::iter::once(self.default_bucket()).chain(others).map(NodeBucket::served).collect();
        assert_eq!(served.len(), self.by_name.len(), "every bucket is served once");
        served
    }

    /// Blocks until every vBucket serves, at most for `patience`.
    pub(crate) fn wait_until_serving(&self, clock: &Clock, patience: Duration) -> bool {
        let deadline = clock.now().after(patience);
        self.all().all(|it| it.bucket.wait_until_serving(deadline.since(clock.now())))
    }

    /// Loads all documents' keys. In a world without threads its tasks run meanwhile.
    pub(crate) fn load(&self, pool: &ExecutorPool) {
        for NodeBucket { bucket, .. } in self.all() {
            while !bucket.wait_until_serving(Duration::ZERO) {
                if !pool.help() && !bucket.wait_until_serving(LOADING_STEP) {
                    tracing::info!("loading documents before the cluster map is carried out");
                }
            }
        }
    }

    /// Flushes and closes all. An error is how many vBuckets have documents that could not be
    /// written.
    pub(crate) fn shut_down(&self) -> Result<(), usize> {
        let unflushed = self.all().filter_map(|it| it.bucket.shut_down().err());
        match unflushed.sum() {
            0 => Ok(()),
            count => Err(count),
        }
    }
}
