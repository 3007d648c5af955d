//! Documents for threads that wait, where connections would be parked.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use bucket::{Attempted, DurabilityMinLevel, EvictionPolicy, Refused, Session};
use cluster::NodeAddress;
use document::{Cas, DurabilityLevel, KeyBuf, Vbid};
use executor::ExecutorPool;
use node::{
    AccessError, BucketSettings, Copies, DocumentToStore, Node, NodeBucket, NodeConfig, PeerLogin,
    Peers, World,
};
use platform::files::RealFiles;
use platform::network::Network;
use platform::{Clock, Entropy};

const PATIENCE: Duration = Duration::from_secs(60);
const THREADS: [usize; 2] = [1, 4];
const VBUCKETS: u16 = 4;

/// The node is the only one.
struct Nobody;

impl Peers for Nobody {
    fn exchange_manifest(&self, _: &NodeAddress, _: &PeerLogin, _: &str) -> anyhow::Result<String> {
        bail!("there is no other node")
    }

    fn copies(&self, _: &NodeAddress, _: &PeerLogin) -> anyhow::Result<Copies> {
        bail!("there is no other node")
    }
}

/// A node with one bucket, whose writes are at least as durable as this.
fn start(directory: &Path, threads: usize, level: Option<DurabilityLevel>) -> (Node, NodeBucket) {
    let bucket = BucketSettings {
        vbuckets: Some(VBUCKETS),
        memory_quota_bytes: 32 << 20,
        journal_size_bytes: 64 << 20,
        eviction_policy: EvictionPolicy::Full,
        // What was written is soon in its file, and can leave memory.
        apply_cycle: Duration::from_millis(10),
        durability_min_level: DurabilityMinLevel(level),
        ..BucketSettings::default()
    };
    let config = NodeConfig {
        data_dir: directory.join("data"),
        port: 0,
        password: Some("password".into()),
        threads,
        buckets: vec![bucket],
        ..NodeConfig::default()
    };
    let clock = Clock::real();
    let world = World {
        pool: ExecutorPool::start(clock.clone(), config.pool_options()).unwrap(),
        clock,
        files: Arc::new(RealFiles),
        network: Network::real(),
        entropy: Entropy::real(),
        peers: Arc::new(Nobody),
    };
    let node = Node::start(world, config, 8091).unwrap();
    assert!(node.wait_until_serving(PATIENCE));
    node.begin_serving();
    let bucket = node.buckets().all().remove(0);
    (node, bucket)
}

/// A document of this name in the default collection.
struct Named {
    vbid: Vbid,
    key: KeyBuf,
}

impl Named {
    fn of(name: &str) -> Self {
        let key = KeyBuf::in_default_collection(name.as_bytes()).unwrap();
        Self { vbid: Vbid::of_name(name.as_bytes(), VBUCKETS), key }
    }

    fn with<'a>(&'a self, value: &'a [u8], cas: Cas, is_new: bool) -> DocumentToStore<'a> {
        let (vbid, key) = (self.vbid, self.key.as_key());
        DocumentToStore { vbid, key, cas, is_new, flags: [1, 2, 3, 4], value }
    }

    /// Leaves the document on disk alone, once it is there.
    fn evict(&self, bucket: &NodeBucket) {
        let deadline = Clock::real().now().after(PATIENCE);
        while Clock::real().now() < deadline {
            let evicted =
                bucket.bucket().evict(&mut Session::default(), self.vbid, self.key.as_key());
            match evicted {
                Ok(Attempted::Answered(())) => return,
                // Tried again until it has been flushed, and the file follows.
                Err(Refused::NotPersisted) => std::thread::yield_now(),
                other => panic!("{other:?}"),
            }
        }
        panic!("the document does not reach its file");
    }
}

#[test]
fn a_document_is_stored_read_from_its_file_and_deleted() {
    for threads in THREADS {
        let directory = tempfile::tempdir().unwrap();
        let (node, bucket) = start(directory.path(), threads, None);
        let (documents, named) = (bucket.documents(), Named::of("a"));
        let get = || documents.get(named.vbid, named.key.as_key());
        assert_eq!(get().err(), Some(AccessError::Refused(Refused::NotFound)));
        let cas = documents.store(&named.with(b"one", Cas::ANY, true)).unwrap();
        named.evict(&bucket);
        let found = get().unwrap();
        assert_eq!((found.item.value(), found.cas), (&b"one"[..], cas));
        assert_eq!(found.item.flags(), [1, 2, 3, 4]);
        named.evict(&bucket);
        let refused = documents.store(&named.with(b"two", Cas::ANY, true));
        assert_eq!(refused, Err(AccessError::Refused(Refused::Exists)));
        let other = Cas(cas.0 + 1);
        let refused = documents.store(&named.with(b"two", other, false));
        assert_eq!(refused, Err(AccessError::Refused(Refused::CasMismatch)));
        let second = documents.store(&named.with(b"two", cas, false)).unwrap();
        let delete = |cas| documents.delete(named.vbid, named.key.as_key(), cas);
        assert_eq!(delete(cas), Err(AccessError::Refused(Refused::CasMismatch)));
        assert_eq!(delete(second), Ok(()));
        assert_eq!(get().err(), Some(AccessError::Refused(Refused::NotFound)));
        node.stop().unwrap();
    }
}

#[test]
fn a_durable_write_is_answered_when_it_is_committed() {
    for threads in THREADS {
        let directory = tempfile::tempdir().unwrap();
        let level = Some(DurabilityLevel::PersistToMajority);
        let (node, bucket) = start(directory.path(), threads, level);
        let (documents, named) = (bucket.documents(), Named::of("a"));
        let cas = documents.store(&named.with(b"one", Cas::ANY, true)).unwrap();
        let found = documents.get(named.vbid, named.key.as_key()).unwrap();
        assert_eq!((found.item.value(), found.cas), (&b"one"[..], cas));
        assert_eq!(documents.delete(named.vbid, named.key.as_key(), cas), Ok(()));
        node.stop().unwrap();
    }
}

#[test]
fn threads_that_wait_at_the_same_time_get_their_own_answers() {
    let directory = tempfile::tempdir().unwrap();
    let (node, bucket) = start(directory.path(), 4, None);
    let all: Vec<Named> = (0..20).map(|number| Named::of(&format!("document-{number}"))).collect();
    for (number, named) in all.iter().enumerate() {
        bucket.documents().store(&named.with(&[b'a'; 20][..number], Cas::ANY, true)).unwrap();
        named.evict(&bucket);
    }
    std::thread::scope(|scope| {
        for (number, named) in all.iter().enumerate() {
            let bucket = &bucket;
            scope.spawn(move || {
                let found = bucket.documents().get(named.vbid, named.key.as_key()).unwrap();
                assert_eq!(found.item.value().len(), number);
            });
        }
    });
    node.stop().unwrap();
}
