//! One node with two buckets, as clients of either see it, over a restart too.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use bucket::{BucketType, EvictionPolicy};
use client::{ClientError, ClusterClient, Connection, ConnectionOptions, Login, ServerAddress};
use cluster::{BucketPlan, ClusterPlan};
use document::VbucketState;
use executor::ExecutorPool;
use node::{BucketSettings, Copies, Node, NodeConfig, PeerLogin, Peers, World};
use platform::files::{OpenMode, RealFiles};
use platform::network::Network;
use platform::{Clock, Entropy, File, FileError, Files};
use protocol::client::{Request, store_extras};
use protocol::request::StoreExtras;
use protocol::{Opcode, Status};
use server::BucketRefusal;

const PASSWORD: &str = "password";
const MANAGEMENT_PORT: u16 = 8091;
const PATIENCE: Duration = Duration::from_secs(60);
/// The buckets, with how many vBuckets they have.
const BUCKETS: [(&str, u16); 2] = [("travel", 4), ("orders", 8)];

fn config(directory: &Path) -> NodeConfig {
    let bucket = |(name, vbuckets): (&str, u16)| BucketSettings {
        name: name.to_owned(),
        vbuckets: Some(vbuckets),
        memory_quota_bytes: 64 << 20,
        journal_size_bytes: 64 << 20,
        ..BucketSettings::default()
    };
    NodeConfig {
        data_dir: directory.join("data"),
        port: 0,
        memcached_port: Some(0),
        password: Some(PASSWORD.into()),
        threads: 2,
        buckets: BUCKETS.map(bucket).into(),
        ..NodeConfig::default()
    }
}

/// The node is the only one.
struct Nobody;

impl Peers for Nobody {
    fn exchange_manifest(
        &self,
        _: &cluster::NodeAddress,
        _: &PeerLogin,
        ours: &str,
    ) -> anyhow::Result<String> {
        Ok(ours.to_owned())
    }

    fn copies(&self, _: &cluster::NodeAddress, _: &PeerLogin) -> anyhow::Result<Copies> {
        bail!("there is no other node")
    }
}

fn start(config: NodeConfig) -> anyhow::Result<Node> {
    start_on(Arc::new(RealFiles), config)
}

fn start_on(files: Arc<dyn Files>, config: NodeConfig) -> anyhow::Result<Node> {
    let clock = Clock::real();
    let world = World {
        pool: ExecutorPool::start(clock.clone(), config.pool_options()).unwrap(),
        clock,
        files,
        network: Network::real(),
        entropy: Entropy::real(),
        peers: Arc::new(Nobody),
    };
    let node = Node::start(world, config, MANAGEMENT_PORT)?;
    assert!(node.wait_until_serving(PATIENCE));
    node.begin_serving();
    Ok(node)
}

fn client(node: &Node, bucket: &str) -> Result<ClusterClient, ClientError> {
    let mut options = ConnectionOptions::new("test");
    options.login = Some(Login::new("Administrator", PASSWORD));
    options.bucket = Some(bucket.to_owned());
    ClusterClient::connect(&ServerAddress::new("127.0.0.1", node.port()), options)
}

fn set(client: &mut ClusterClient, name: &[u8], value: &[u8]) {
    let extras = store_extras(StoreExtras { flags: [0; 4], expiry: 0 });
    let request = Request { extras: &extras, value, ..Request::new(Opcode::Set) };
    assert_eq!(client.call(name, &request).unwrap().status(), Some(Status::Success));
}

fn get(client: &mut ClusterClient, name: &[u8]) -> Option<Vec<u8>> {
    let response = client.call(name, &Request::new(Opcode::Get)).unwrap();
    response.is_success().then(|| response.value().to_vec())
}

#[test]
fn two_buckets_of_a_node_are_apart_over_restarts_too() {
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<Vec<u8>> = (0..50_u8).map(|number| vec![b'k', number]).collect();
    for round in 0..3_u8 {
        let node = start(config(directory.path())).unwrap();
        assert_eq!(node.buckets().default_bucket().unwrap().name(), "travel");
        assert!(client(&node, "third").is_err(), "there is no such bucket");
        for (bucket, vbuckets) in BUCKETS {
            let mut client = client(&node, bucket).unwrap();
            assert_eq!(client.routing().vbucket_count(), vbuckets, "each has a map of its own");
            for name in &names {
                let before = (round > 0).then(|| [bucket.as_bytes(), &[round - 1]].concat());
                assert_eq!(get(&mut client, name), before);
                set(&mut client, name, &[bucket.as_bytes(), &[round]].concat());
            }
            set(&mut client, bucket.as_bytes(), b"");
        }
        for (bucket, own, other) in [("travel", "travel", "orders"), ("orders", "orders", "travel")]
        {
            let mut client = client(&node, bucket).unwrap();
            assert!(get(&mut client, own.as_bytes()).is_some());
            assert!(get(&mut client, other.as_bytes()).is_none());
        }
        node.stop().unwrap();
    }
}

#[test]
fn memcached_clients_get_the_first_bucket() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(config(directory.path())).unwrap();
    for (bucket, _) in BUCKETS {
        set(&mut client(&node, bucket).unwrap(), b"k", bucket.as_bytes());
    }
    let address = ServerAddress::new("127.0.0.1", node.memcached_port().unwrap());
    let mut connection = Connection::open(&address, &ConnectionOptions::new("test")).unwrap();
    let statistics = connection.statistics("config").unwrap();
    let name = statistics.iter().find(|(name, _)| name == "ep_couch_bucket");
    assert_eq!(name.unwrap().1, "travel");
    drop(connection);
    node.stop().unwrap();
}

#[test]
fn a_map_is_carried_out_for_each_bucket_and_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(config(directory.path())).unwrap();
    let mut plan = node.membership().plan();
    assert_eq!(plan.buckets.keys().collect::<Vec<_>>(), ["orders", "travel"]);
    plan.revision.revision += 1;
    for (bucket, vbuckets) in BUCKETS {
        // Half of it is nowhere.
        let mut planned = BucketPlan::balanced(1, 0, vbuckets);
        planned.chains.iter_mut().step_by(2).for_each(|chain| chain[0] = None);
        plan = plan.with_bucket(bucket, planned);
    }
    node.carry_out(&plan).unwrap();
    let check = |node: &Node| {
        for (bucket, vbuckets) in BUCKETS {
            let map = node.membership().bucket_map(bucket).unwrap();
            assert_eq!(map.chains, plan.buckets[bucket].chains);
            let mut counts = [0; 2];
            node.buckets().get(bucket).unwrap().bucket().for_each_vbucket(|_, vbucket| {
                let states = [VbucketState::Active, VbucketState::Dead];
                let state = states.iter().position(|&state| state == vbucket.state());
                counts[state.unwrap()] += 1;
            });
            assert_eq!(counts, [vbuckets / 2; 2], "{bucket}: what is nowhere is kept");
            assert!(node.membership().pending(bucket).is_empty());
        }
    };
    check(&node);
    let mut without = ClusterPlan { buckets: [].into(), ..plan.clone() };
    without.revision.revision += 1;
    assert!(node.carry_out(&without).unwrap_err().contains("the node has a bucket"));
    node.stop().unwrap();
    let node = start(config(directory.path())).unwrap();
    check(&node);
    node.stop().unwrap();
}

#[test]
fn a_bucket_that_is_left_out_is_not_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    start(config(directory.path())).unwrap().stop().unwrap();
    let mut renamed = config(directory.path());
    renamed.buckets[1].name = "oders".to_owned();
    let error = start(renamed).err().unwrap().to_string();
    assert!(error.contains("no bucket `oders`, but `orders`"), "{error}");
    let mut one_more = config(directory.path());
    one_more
        .buckets
        .push(BucketSettings { name: "third".to_owned(), ..one_more.buckets[0].clone() });
    let node = start(one_more).unwrap();
    assert_eq!(node.buckets().all().len(), 3, "a new one beside all that there are");
    node.stop().unwrap();
}

/// Files of which those of one bucket take no writes while it is full.
struct FullFor {
    bucket: &'static str,
    is_full: Arc<AtomicBool>,
}

/// One of them.
struct FullFile {
    file: Box<dyn File>,
    is_full: Arc<AtomicBool>,
}

fn refuse_if(is_full: &AtomicBool) -> Result<(), FileError> {
    if !is_full.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(FileError::new("write", Path::new("full"), io::ErrorKind::QuotaExceeded.into()))
}

impl FullFor {
    fn refuse(&self, path: &Path) -> Result<(), FileError> {
        if self.is_of_bucket(path) { refuse_if(&self.is_full) } else { Ok(()) }
    }

    fn is_of_bucket(&self, path: &Path) -> bool {
        path.components().any(|part| part.as_os_str() == self.bucket)
    }

    fn watched(&self, path: &Path, file: Box<dyn File>) -> Box<dyn File> {
        match self.is_of_bucket(path) {
            true => Box::new(FullFile { file, is_full: Arc::clone(&self.is_full) }),
            false => file,
        }
    }
}

impl Files for FullFor {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        if mode == OpenMode::CreateNew {
            self.refuse(path)?;
        }
        Ok(self.watched(path, RealFiles.open(path, mode)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.refuse(to)?;
        RealFiles.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        RealFiles.remove(path)
    }

    fn remove_directory(&self, directory: &Path) -> Result<(), FileError> {
        RealFiles.remove_directory(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), FileError> {
        RealFiles.sync_directory(directory)
    }

    fn create_directory(&self, directory: &Path) -> Result<(), FileError> {
        RealFiles.create_directory(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        RealFiles.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool, FileError> {
        RealFiles.exists(path)
    }
}

impl File for FullFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        self.file.read_at(buffer, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        refuse_if(&self.is_full)?;
        self.file.write_at(bytes, position)
    }

    fn sync(&self) -> Result<(), FileError> {
        refuse_if(&self.is_full)?;
        self.file.sync()
    }

    fn size(&self) -> Result<u64, FileError> {
        self.file.size()
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        refuse_if(&self.is_full)?;
        self.file.set_size(size)
    }
}

/// How many changes of a bucket are not durable yet.
fn unflushed(node: &Node, bucket: &str) -> u64 {
    let mut count = 0;
    node.buckets().get(bucket).unwrap().bucket().for_each_vbucket(|_, vbucket| {
        count += vbucket.high_seqno().0 - vbucket.persisted_seqno().0;
    });
    count
}

/// Waits until every change of a bucket is durable.
fn wait_until_durable(node: &Node, bucket: &str) {
    let clock = Clock::real();
    let deadline = clock.now().after(PATIENCE);
    while unflushed(node, bucket) > 0 {
        assert!(clock.now() < deadline, "{} changes of {bucket} wait", unflushed(node, bucket));
        std::thread::yield_now();
    }
}

#[test]
fn a_bucket_whose_disk_is_full_holds_no_other_up() {
    for threads in [1, 4] {
        let directory = tempfile::tempdir().unwrap();
        let is_full = Arc::new(AtomicBool::new(false));
        let files = Arc::new(FullFor { bucket: "travel", is_full: Arc::clone(&is_full) });
        let node = start_on(files, NodeConfig { threads, ..config(directory.path()) }).unwrap();
        let (mut travel, mut orders) =
            (client(&node, "travel").unwrap(), client(&node, "orders").unwrap());
        set(&mut travel, b"before", b"v");
        wait_until_durable(&node, "travel");
        is_full.store(true, Ordering::Relaxed);
        set(&mut travel, b"during", b"v");
        for round in 0..20_u8 {
            for number in 0..20_u8 {
                set(&mut orders, &[b'k', round, number], b"v");
            }
            wait_until_durable(&node, "orders");
        }
        assert!(unflushed(&node, "travel") > 0, "its disk took nothing");
        assert_eq!(get(&mut travel, b"before").as_deref(), Some(&b"v"[..]), "it is read meanwhile");
        is_full.store(false, Ordering::Relaxed);
        wait_until_durable(&node, "travel");
        node.stop().unwrap();
    }
}

#[test]
fn settings_that_the_disk_does_not_keep_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let is_full = Arc::new(AtomicBool::new(false));
    let files = Arc::new(FullFor { bucket: "travel", is_full: Arc::clone(&is_full) });
    let node = start_on(files, config(directory.path())).unwrap();
    let quota = || {
        let travel = node.buckets().get("travel").unwrap();
        (travel.bucket().memory_quota_bytes(), travel.settings().memory_quota_bytes)
    };
    let before = quota();
    is_full.store(true, Ordering::Relaxed);
    for bytes in [before.0 / 2, before.0 + (16 << 20)] {
        let words = vec![("max_size".to_owned(), bytes.to_string())];
        node.bucket_changes().change("travel", &words, true).unwrap();
        let refused = node.bucket_changes().change("travel", &words, false);
        assert!(matches!(&refused, Err(BucketRefusal::Failed(_))), "{refused:?}");
        assert_eq!(quota(), before);
        is_full.store(false, Ordering::Relaxed);
        node.bucket_changes().change("travel", &words, false).unwrap();
        assert_eq!(quota(), (bytes, bytes));
        let words = vec![("max_size".to_owned(), before.0.to_string())];
        node.bucket_changes().change("travel", &words, false).unwrap();
        is_full.store(true, Ordering::Relaxed);
    }
    is_full.store(false, Ordering::Relaxed);
    node.stop().unwrap();
}

#[test]
fn a_bucket_whose_files_are_damaged_holds_no_other_up() {
    for threads in [1, 4] {
        let directory = tempfile::tempdir().unwrap();
        let started = NodeConfig { threads, ..config(directory.path()) };
        let node = start(started.clone()).unwrap();
        for bucket in ["travel", "orders"] {
            let mut client = client(&node, bucket).unwrap();
            (0..40_u8).for_each(|number| set(&mut client, &[b'k', number], b"v"));
        }
        let path = directory.path().join("data/buckets/travel");
        node.stop().unwrap();
        let names = RealFiles.list(&path).unwrap();
        assert!(names.iter().any(|name| name.contains(".couch.")), "{names:?}");
        for name in names.iter().filter(|name| name.contains(".couch.")) {
            let file = RealFiles.open(&path.join(name), OpenMode::ReadWrite).unwrap();
            file.write_at(&[0xa5; 64], file.size().unwrap().saturating_sub(64)).unwrap();
        }
        let node = start(started).unwrap();
        let mut orders = client(&node, "orders").unwrap();
        for number in 0..40_u8 {
            assert_eq!(get(&mut orders, &[b'k', number]).as_deref(), Some(&b"v"[..]));
            set(&mut orders, &[b'n', number], b"v");
        }
        wait_until_durable(&node, "orders");
        // What becomes of the damaged one is said elsewhere.
        node.stop().unwrap_or_default();
    }
}

/// Bytes that a bucket takes, but for its filters: those remember keys of tombstones on disk.
fn used_bytes(node: &Node, bucket: &str) -> u64 {
    let now = node.buckets().get(bucket).unwrap().bucket().statistics();
    now.used_bytes() - u64::try_from(now.filter_bytes).unwrap()
}

/// The same once nothing moves any more in the background.
fn settled_bytes(node: &Node, bucket: &str) -> u64 {
    let (mut bytes, mut count) = (used_bytes(node, bucket), 0);
    while count < 20 {
        std::thread::park_timeout(Duration::from_millis(5));
        let now = used_bytes(node, bucket);
        count = if now == bytes { count + 1 } else { 0 };
        bytes = now;
    }
    bytes
}

/// Waits until each bucket takes so many bytes, to the byte.
fn wait_for_bytes(node: &Node, expected: &[(&str, u64)], when: &str) {
    let clock = Clock::real();
    let deadline = clock.now().after(PATIENCE);
    for (bucket, bytes) in expected {
        while used_bytes(node, bucket) != *bytes {
            let found = used_bytes(node, bucket);
            assert!(clock.now() < deadline, "{bucket} {when}: {found} bytes, not {bytes}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

/// Has a client work on a bucket, one name after the other.
fn on_names(node: &Node, bucket: &str, act: impl Fn(&mut ClusterClient, &[u8], usize)) {
    let mut client = client(node, bucket).unwrap();
    for number in 0..180_u8 {
        act(&mut client, &[b'k', number], usize::from(number) * 30);
    }
}

#[test]
fn the_memory_of_each_bucket_is_its_own_and_comes_back_to_the_byte() {
    const KINDS: [(&str, BucketType, EvictionPolicy); 3] = [
        ("travel", BucketType::Couchbase, EvictionPolicy::ValueOnly),
        ("orders", BucketType::Couchbase, EvictionPolicy::Full),
        ("carts", BucketType::Ephemeral, EvictionPolicy::ValueOnly),
    ];
    for threads in [1, 4] {
        let directory = tempfile::tempdir().unwrap();
        let settings = |(name, bucket_type, eviction_policy): (&str, _, _)| BucketSettings {
            name: name.to_owned(),
            bucket_type: Some(bucket_type),
            eviction_policy,
            vbuckets: Some(4),
            memory_quota_bytes: 64 << 20,
            flush_interval: Duration::ZERO,
            apply_cycle: Duration::ZERO,
            journal_size_bytes: 64 << 20,
            ..BucketSettings::default()
        };
        let buckets = KINDS.map(settings).into();
        let node = start(NodeConfig { threads, buckets, ..config(directory.path()) }).unwrap();
        let mut expected = KINDS.map(|(name, ..)| (name, settled_bytes(&node, name)));
        let empty = expected;
        for (place, (name, ..)) in KINDS.into_iter().enumerate() {
            on_names(&node, name, |client, key, size| set(client, key, &vec![b'v'; size]));
            wait_until_durable(&node, name);
            expected[place].1 = settled_bytes(&node, name);
            assert!(expected[place].1 > empty[place].1 + 180 * 1000, "{name} is full");
            wait_for_bytes(&node, &expected, "behind a load");
        }
        // Each is emptied while the others are read, which moves nothing of theirs.
        for (place, (name, bucket_type, _)) in KINDS.into_iter().enumerate() {
            std::thread::scope(|scope| {
                for (other, ..) in KINDS.into_iter().filter(|(other, ..)| *other != name) {
                    let node = &node;
                    scope.spawn(move || {
                        on_names(node, other, |client, key, _| drop(get(client, key)));
                    });
                }
                match bucket_type {
                    BucketType::Couchbase => on_names(&node, name, |client, key, _| {
                        client.call(key, &Request::new(Opcode::Delete)).unwrap();
                    }),
                    // Its tombstones stay for a while.
                    BucketType::Ephemeral => {
                        node.buckets().get(name).unwrap().bucket().flush_all().unwrap();
                    }
                }
            });
            expected[place] = empty[place];
            wait_for_bytes(&node, &expected, "behind deletions");
            on_names(&node, name, |client, key, size| set(client, key, &vec![b'v'; size]));
            node.buckets().get(name).unwrap().bucket().flush_all().unwrap();
            wait_for_bytes(&node, &expected, "behind a flush");
        }
        node.stop().unwrap();
    }
}

#[test]
fn a_bucket_whose_memory_is_full_refuses_its_own_writes_alone() {
    for threads in [1, 4] {
        let directory = tempfile::tempdir().unwrap();
        let is_full = Arc::new(AtomicBool::new(false));
        let files = Arc::new(FullFor { bucket: "travel", is_full: Arc::clone(&is_full) });
        let node = start_on(files, NodeConfig { threads, ..config(directory.path()) }).unwrap();
        let mut orders = client(&node, "orders").unwrap();
        // What cannot be written to the disk cannot leave memory.
        is_full.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let mut crowd = Vec::new();
            for number in 0..4_u8 {
                let mut travel = client(&node, "travel").unwrap();
                crowd.push(scope.spawn(move || fill(&mut travel, number)));
            }
            for writer in crowd {
                for number in 0..100_u8 {
                    set(&mut orders, &[b'k', number], b"v");
                }
                writer.join().unwrap();
            }
        });
        (0..100_u8).for_each(|number| set(&mut orders, &[b'n', number], b"v"));
        wait_until_durable(&node, "orders");
        is_full.store(false, Ordering::Relaxed);
        wait_until_durable(&node, "travel");
        node.stop().unwrap();
    }
}

/// Writes until the bucket has no memory for more.
fn fill(client: &mut ClusterClient, writer: u8) {
    let extras = store_extras(StoreExtras { flags: [0; 4], expiry: 0 });
    let value = vec![writer; 256 << 10];
    for number in 0..u16::MAX {
        let request = Request { extras: &extras, value: &value, ..Request::new(Opcode::Set) };
        let key = [&[writer][..], &number.to_be_bytes()].concat();
        match client.call(&key, &request).unwrap().status() {
            Some(Status::Success) => {}
            Some(Status::Etmpfail | Status::Enomem) => return,
            status => panic!("{status:?}"),
        }
    }
    panic!("the quota ends somewhere");
}
