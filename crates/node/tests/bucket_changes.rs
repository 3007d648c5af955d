//! Buckets that are made, changed and deleted while a node runs.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::bail;
use bucket::{EvictionPolicy, Named};
use client::{ClientError, ClusterClient, Connection, ConnectionOptions, Login, ServerAddress};
use cluster::NodeAddress;
use document::{DurabilityLevel, ManifestEdit};
use document::{WantedCollection, WantedManifest, WantedScope};
use executor::ExecutorPool;
use node::{BucketSettings, Copies, MakesBuckets, Node, NodeConfig, PeerLogin, Peers, World};
use platform::files::RealFiles;
use platform::network::Network;
use platform::{Clock, Entropy};
use protocol::client::{Request, store_extras};
use protocol::frame_info::{DurabilityRequirement, FrameInfos};
use protocol::request::StoreExtras;
use protocol::{Feature, FeatureSet, Opcode, Status};
use server::{BucketAdministrator, BucketRefusal, BucketWords};

const PASSWORD: &str = "password";
const PATIENCE: Duration = Duration::from_secs(60);
const QUOTA_BYTES: u64 = 32 << 20;

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

/// A node that has made one bucket, once, and has memory for four.
fn start(directory: &Path, threads: usize) -> Node {
    start_with(directory, threads, 4)
}

fn start_with(directory: &Path, threads: usize, buckets_max: u64) -> Node {
    start_of(directory, threads, buckets_max, first_bucket())
}

fn first_bucket() -> BucketSettings {
    BucketSettings {
        vbuckets: Some(4),
        memory_quota_bytes: QUOTA_BYTES,
        journal_size_bytes: 64 << 20,
        ..BucketSettings::default()
    }
}

fn start_of(directory: &Path, threads: usize, buckets_max: u64, bucket: BucketSettings) -> Node {
    let config = NodeConfig {
        data_dir: directory.join("data"),
        port: 0,
        password: Some(PASSWORD.into()),
        threads,
        buckets: vec![bucket],
        makes_buckets: MakesBuckets::Once,
        buckets_bytes_max: buckets_max * QUOTA_BYTES,
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
    node
}

fn words(more: &[(&str, &str)]) -> BucketWords {
    let quota = QUOTA_BYTES.to_string();
    let all = [&[("max_size", quota.as_str())], more].concat();
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn options(bucket: Option<&str>) -> ConnectionOptions {
    let mut options = ConnectionOptions::new("test");
    options.login = Some(Login::new("Administrator", PASSWORD));
    options.bucket = bucket.map(str::to_owned);
    options.features =
        FeatureSet::NONE.with(Feature::AltRequestSupport).with(Feature::SyncReplication);
    options
}

fn client(node: &Node, bucket: &str) -> Result<ClusterClient, ClientError> {
    ClusterClient::connect(&ServerAddress::new("127.0.0.1", node.port()), options(Some(bucket)))
}

fn connection(node: &Node, bucket: Option<&str>) -> Connection {
    Connection::open(&ServerAddress::new("127.0.0.1", node.port()), &options(bucket)).unwrap()
}

fn set(client: &mut ClusterClient, name: &[u8]) {
    let extras = store_extras(StoreExtras { flags: [0; 4], expiry: 0 });
    let request = Request { extras: &extras, value: b"value", ..Request::new(Opcode::Set) };
    assert_eq!(client.call(name, &request).unwrap().status(), Some(Status::Success));
}

fn get(client: &mut ClusterClient, name: &[u8]) -> Option<Vec<u8>> {
    let response = client.call(name, &Request::new(Opcode::Get)).unwrap();
    response.is_success().then(|| response.value().to_vec())
}

/// Deletes a bucket, and waits until nothing of it is left.
fn delete(node: &Node, name: &str) -> Result<(), BucketRefusal> {
    let (done, is_done) = mpsc::channel();
    node.bucket_changes().delete(name, Box::new(move || done.send(()).unwrap()))?;
    is_done.recv_timeout(PATIENCE).expect("a bucket that is deleted goes");
    Ok(())
}

/// The files below a path that this process has open.
fn open_files(below: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    entries.filter(|it| std::fs::read_link(it.path()).is_ok_and(|to| to.starts_with(below))).count()
}

#[test]
fn a_bucket_is_made_used_deleted_and_made_again() {
    for threads in [1, 4] {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("data/buckets/orders");
        let node = start(directory.path(), threads);
        let changes = node.bucket_changes();
        let mut uuids = Vec::new();
        for kind in ["persistent", "ephemeral", "persistent"] {
            let words = words(&[("bucket_type", kind)]);
            changes.create("orders", &words).unwrap();
            for like in ["orders", "Orders"] {
                assert_eq!(changes.create(like, &words), Err(BucketRefusal::Exists));
                assert_eq!(changes.check_new(like, &words), Err(BucketRefusal::Exists));
            }
            uuids.push(node.buckets().get("orders").unwrap().bucket().uuid().to_owned());
            let mut orders = client(&node, "orders").unwrap();
            assert_eq!(get(&mut orders, b"k"), None, "it is a new one");
            set(&mut orders, b"k");
            set(&mut client(&node, "default").unwrap(), b"k");
            let mut held = connection(&node, Some("orders"));
            delete(&node, "orders").unwrap();
            let answer = held.call(&Request::new(Opcode::GetFailoverLog));
            let is_lost = answer.map_or(true, |it| it.status() == Some(Status::NoBucket));
            assert!(is_lost, "the connection has lost its bucket");
            assert!(!files.exists() && open_files(&files) == 0, "the files are gone");
            assert!(client(&node, "orders").is_err());
            assert_eq!(delete(&node, "orders"), Err(BucketRefusal::NotFound));
            assert_eq!(get(&mut client(&node, "default").unwrap(), b"k").unwrap(), b"value");
        }
        uuids.dedup();
        assert_eq!(uuids.len(), 3, "each is another one");
        node.stop().unwrap();
    }
}

#[test]
fn roles_in_a_bucket_go_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path(), 1);
    node.bucket_changes().create("orders", &words(&[])).unwrap();
    let roles = auth::Role::parse_all("data_reader[orders:s],data_reader[default]").unwrap();
    let bob = user("bob", &node, roles.clone());
    let edited = node.membership().edit_users(&bob, auth::Editor::Admin);
    assert_eq!(edited, Ok(Vec::new()));
    delete(&node, "orders").unwrap();
    let registry = node.users().registry();
    assert_eq!(registry.accounts["bob"].roles, roles[1..], "they were of another bucket");
    let revision = registry.revision;
    node.bucket_changes().create("orders", &words(&[])).unwrap();
    delete(&node, "orders").unwrap();
    assert_eq!(node.users().registry().revision, revision, "nothing was to change");
    node.stop().unwrap();
}

#[test]
fn roles_in_a_scope_or_collection_go_with_it() {
    const ROLES: [&str; 4] = [
        "data_reader[default]",
        "data_reader[default:s]",
        "data_reader[default:s:c]",
        "data_writer[default:s:d]",
    ];
    let roles = |left: &[usize]| -> Vec<auth::Role> {
        left.iter().map(|at| auth::Role::parse(ROLES[*at]).unwrap()).collect()
    };
    let collection = |collection| ManifestEdit::CreateCollection {
        scope: "s",
        collection,
        max_ttl: None,
        history: false,
    };
    let name = "_default".to_owned();
    let default = WantedCollection { name: name.clone(), max_ttl: None, history: None };
    let default = WantedScope { name, collections: vec![default] };
    let replaced = WantedManifest { valid_on_uid: None, scopes: vec![default] };
    for (edit, left) in [
        (collection("e"), &[0, 1, 2, 3][..]),
        (ManifestEdit::DropCollection { scope: "s", collection: "c" }, &[0, 1, 3]),
        (ManifestEdit::DropScope { scope: "s" }, &[0]),
        (ManifestEdit::Replace { wanted: &replaced }, &[0]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let node = start(directory.path(), 1);
        let before = [ManifestEdit::CreateScope { scope: "s" }, collection("c"), collection("d")];
        for edit in before {
            node.membership().edit_manifest("default", edit).unwrap();
        }
        let bob = user("bob", &node, roles(&[0, 1, 2, 3]));
        node.membership().edit_users(&bob, auth::Editor::Admin).unwrap();
        node.membership().edit_manifest("default", edit).unwrap();
        let registry = node.users().registry();
        assert_eq!(registry.accounts["bob"].roles, roles(left), "{edit:?}");
        node.stop().unwrap();
    }
}

fn user(name: &str, node: &Node, roles: Vec<auth::Role>) -> auth::UsersEdit {
    auth::UsersEdit::PutUser {
        user: name.to_owned(),
        password: Some(node.users().hash(b"secret", 0)),
        full_name: String::new(),
        roles,
        groups: Vec::new(),
        limits: auth::UserLimits::default(),
    }
}

#[test]
fn whoever_hears_that_a_bucket_is_gone_finds_no_role_in_it() {
    const ROUNDS: usize = 10;
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path(), 1);
    for round in 0..ROUNDS {
        node.bucket_changes().create("orders", &words(&[])).unwrap();
        let bob = user("bob", &node, auth::Role::parse_all("data_reader[orders]").unwrap());
        node.membership().edit_users(&bob, auth::Editor::Admin).unwrap();
        let (done, is_done) = mpsc::channel();
        let users = Arc::clone(node.users());
        let place = auth::RolePlace::of_bucket("orders");
        let done = move || done.send(users.registry().has_roles_in(&place)).unwrap();
        node.bucket_changes().delete("orders", Box::new(done)).unwrap();
        assert_eq!(is_done.recv_timeout(PATIENCE), Ok(false), "round {round}");
    }
    node.stop().unwrap();
}

#[test]
fn buckets_and_their_settings_are_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path(), 2);
    let said = words(&[("max_vbuckets", "8"), ("flush_enabled", "true"), ("num_replicas", "2")]);
    node.bucket_changes().create("orders", &said).unwrap();
    let more = [("max_size", "50331648"), ("compression_mode", "off"), ("num_replicas", "1")];
    let more = more.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    node.bucket_changes().change("orders", &more, true).unwrap();
    assert_eq!(node.buckets().get("orders").unwrap().settings().replica_count, 2, "a trial");
    node.bucket_changes().change("orders", &more, false).unwrap();
    let majority = vec![("durability_min_level".to_owned(), "majority".to_owned())];
    node.bucket_changes().change("default", &majority, false).unwrap();
    set(&mut client(&node, "orders").unwrap(), b"k");
    node.stop().unwrap();
    for _ in 0..2 {
        let node = start(directory.path(), 2);
        let orders = node.buckets().get("orders").unwrap();
        let settings = orders.settings();
        assert_eq!((settings.vbuckets, settings.replica_count), (Some(8), 1));
        assert!(settings.enable_flush);
        assert_eq!(orders.bucket().memory_quota_bytes(), 48 << 20);
        let level = node.buckets().get("default").unwrap().bucket().durability_min_level();
        assert!(level.0.is_some());
        assert_eq!(get(&mut client(&node, "orders").unwrap(), b"k").unwrap(), b"value");
        drop(orders);
        node.stop().unwrap();
    }
}

/// Writes a document that is to live so long, and returns how long it will, in seconds.
fn life(client: &mut ClusterClient, wanted_seconds: u32) -> Option<u32> {
    let extras = store_extras(StoreExtras { flags: [0; 4], expiry: wanted_seconds });
    let request = Request { extras: &extras, ..Request::new(Opcode::Set) };
    assert_eq!(client.call(b"k", &request).unwrap().status(), Some(Status::Success));
    let meta = client.call(b"k", &Request::new(Opcode::GetMeta)).unwrap();
    // Deleted, flags, expiry. Source: docs/specification/protocol.md, GET_META.
    let expiry = u32::from_be_bytes(meta.extras()[8..12].try_into().unwrap());
    (expiry != 0).then(|| expiry - Clock::real().wall_time().seconds())
}

#[test]
fn a_bucket_limits_the_lives_of_documents_whose_collection_says_nothing_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path(), 1);
    let changes = node.bucket_changes();
    changes.create("orders", &words(&[("max_ttl", "3600")])).unwrap();
    let collections =
        [("none", None, Some(3600)), ("never", Some(0), None), ("own", Some(9), Some(9))];
    for (collection, max_ttl, expected) in collections {
        let edit = ManifestEdit::CreateCollection {
            scope: "_default",
            collection,
            max_ttl,
            history: false,
        };
        let manifest = node.membership().edit_manifest("orders", edit).unwrap();
        let made = manifest.collections().find(|(_, it)| it.name == collection).unwrap().1.id;
        let orders = node.buckets().get("orders").unwrap();
        assert_eq!(orders.bucket().max_ttl(made), expected, "{collection}");
    }
    let mut documents = client(&node, "orders").unwrap();
    let is_limited = |life: Option<u32>| life.is_some_and(|life| (3500..=3600).contains(&life));
    assert!(is_limited(life(&mut documents, 0)) && is_limited(life(&mut documents, 7200)));
    assert!(life(&mut documents, 60).is_some_and(|life| life <= 60));
    let limit = |seconds: &str| vec![("max_ttl".to_owned(), seconds.to_owned())];
    changes.change("orders", &limit("0"), false).unwrap();
    assert_eq!(life(&mut documents, 0), None);
    changes.change("orders", &limit("3600"), false).unwrap();
    node.stop().unwrap();
    let node = start(directory.path(), 1);
    assert!(is_limited(life(&mut client(&node, "orders").unwrap(), 0)), "it is kept");
    node.stop().unwrap();
}

/// A request on a document of "orders", by a connection that is never made anew.
fn ask(connection: &mut Connection, opcode: Opcode, name: &str, durable: bool) -> Status {
    let durability = durable.then_some(DurabilityRequirement {
        level: DurabilityLevel::Majority,
        timeout_ms: Some(30_000),
    });
    let is_write = opcode == Opcode::Set;
    let extras = store_extras(StoreExtras { flags: [0; 4], expiry: 0 });
    let request = Request {
        vbucket: u16::from(name.as_bytes()[0]) % 4,
        infos: FrameInfos { durability, ..FrameInfos::default() },
        extras: if is_write { &extras } else { &[] },
        key: name.as_bytes(),
        value: if is_write { b"value" } else { b"" },
        ..Request::new(opcode)
    };
    connection.call(&request).unwrap().status().unwrap()
}

/// Names that begin with each other letter, for the other vBuckets.
fn names(of: &str) -> Vec<String> {
    (0..40).map(|number: u8| format!("{}-{of}-{number}", char::from(b'a' + number % 4))).collect()
}

#[test]
fn what_leaves_memory_changes_while_clients_write_and_read_and_nobody_is_disconnected() {
    for threads in [1, 4] {
        let directory = tempfile::tempdir().unwrap();
        // What is in no file yet does not leave memory.
        let at_once = BucketSettings { apply_cycle: Duration::ZERO, ..first_bucket() };
        let node = start_of(directory.path(), threads, 4, at_once);
        node.bucket_changes().create("orders", &words(&[])).unwrap();
        let (kept, is_over) = (names("kept"), AtomicBool::new(false));
        let rounds_written = AtomicUsize::new(0);
        let mut first = connection(&node, Some("orders"));
        for name in &kept {
            assert_eq!(ask(&mut first, Opcode::Set, name, true), Status::Success);
        }
        std::thread::scope(|scope| {
            // What is on disk leaves memory again and again, with its key where it may.
            scope.spawn(|| {
                let mut evicting = connection(&node, Some("orders"));
                while !is_over.load(Ordering::Acquire) {
                    for name in &kept {
                        ask(&mut evicting, Opcode::EvictKey, name, false);
                    }
                }
            });
            scope.spawn(|| {
                let mut reading = connection(&node, Some("orders"));
                while !is_over.load(Ordering::Acquire) {
                    for name in &kept {
                        assert_eq!(ask(&mut reading, Opcode::Get, name, false), Status::Success);
                    }
                }
            });
            scope.spawn(|| {
                let mut writing = connection(&node, Some("orders"));
                for durable in [true, false].iter().cycle() {
                    if is_over.load(Ordering::Acquire) {
                        break;
                    }
                    for name in &names("written") {
                        let set = ask(&mut writing, Opcode::Set, name, *durable);
                        assert_eq!(set, Status::Success, "{name}");
                    }
                    rounds_written.fetch_add(1, Ordering::Release);
                }
            });
            let _end = EndsWith(&is_over);
            for round in 0..4 {
                let policy = ["full_eviction", "value_only"][round % 2];
                let said = words(&[("item_eviction_policy", policy)]);
                node.bucket_changes().change("orders", &said, false).unwrap();
                assert_eq!(policy_of(&node).name(), policy, "at once");
                let orders = node.buckets().get("orders").unwrap();
                // Keys have left, or are all there.
                wait_until(policy, || match policy_of(&node) {
                    EvictionPolicy::Full => orders.bucket().statistics().evicted_count > 0,
                    EvictionPolicy::ValueOnly => {
                        orders.bucket().statistics().loading_keys_count == 0
                    }
                });
                if policy == "value_only" {
                    assert_eq!(orders.bucket().statistics().evicted_count, 0, "keys stay");
                }
                // Durable and plain ones, since the policy changed.
                let wanted = rounds_written.load(Ordering::Acquire) + 2;
                wait_until("clients write", || rounds_written.load(Ordering::Acquire) >= wanted);
            }
        });
        drop(first);
        node.stop().unwrap();
        let node = start(directory.path(), threads);
        assert_eq!(policy_of(&node), EvictionPolicy::ValueOnly);
        let mut again = connection(&node, Some("orders"));
        for name in kept.iter().chain(&names("written")) {
            assert_eq!(ask(&mut again, Opcode::Get, name, false), Status::Success, "{name}");
        }
        node.stop().unwrap();
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let clock = Clock::real();
    let deadline = clock.now().after(PATIENCE);
    while !is_so() {
        assert!(clock.now() < deadline, "{what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Says that it is over when it goes, by a failure, too.
struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn what_an_ephemeral_bucket_does_when_it_is_full_changes_at_once_and_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut node = start(directory.path(), 1);
    node.bucket_changes().create("orders", &words(&[("bucket_type", "ephemeral")])).unwrap();
    let policy = |node: &Node| node.buckets().get("orders").unwrap().bucket().full_policy().name();
    assert_eq!(policy(&node), "auto_delete");
    for wanted in ["fail_new_data", "auto_delete"] {
        let said = words(&[("ephemeral_full_policy", wanted)]);
        node.bucket_changes().change("orders", &said, false).unwrap();
        assert_eq!(policy(&node), wanted);
        node.stop().unwrap();
        node = start(directory.path(), 1);
        assert_eq!(policy(&node), wanted, "it is kept");
    }
    node.stop().unwrap();
}

fn policy_of(node: &Node) -> EvictionPolicy {
    node.buckets().get("orders").unwrap().bucket().eviction_policy()
}

#[test]
fn a_node_may_have_no_bucket() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path(), 1);
    delete(&node, "default").unwrap();
    node.stop().unwrap();
    let node = start(directory.path(), 1);
    assert!(node.buckets().all().is_empty(), "one that was deleted is not made again");
    let mut connection = connection(&node, None);
    assert_eq!(connection.call(&Request::new(Opcode::ListBuckets)).unwrap().value(), b"");
    assert!(connection.call(&Request::new(Opcode::GetClusterConfig)).unwrap().is_success());
    node.bucket_changes().create("default", &words(&[])).unwrap();
    set(&mut client(&node, "default").unwrap(), b"k");
    node.stop().unwrap();
}

#[test]
fn what_does_not_fit_or_cannot_be_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(directory.path(), 1);
    let changes = node.bucket_changes();
    let refused_by = |words: &BucketWords, name: &str| match changes.create(name, words) {
        Err(BucketRefusal::Invalid(word, _)) => word,
        other => panic!("{name} {words:?}: {other:?}"),
    };
    let quota = |bytes: u64| vec![("max_size".to_owned(), bytes.to_string())];
    assert_eq!(refused_by(&quota(3 * QUOTA_BYTES + 1), "orders"), "max_size");
    assert_eq!(refused_by(&quota(1 << 20), "orders"), "max_size");
    assert_eq!(refused_by(&words(&[]), ".orders"), "name");
    assert_eq!(refused_by(&words(&[]), "../orders"), "name");
    assert_eq!(refused_by(&words(&[]), &"x".repeat(101)), "name");
    changes.create("orders", &quota(2 * QUOTA_BYTES)).unwrap();
    let more = changes.change("default", &quota(2 * QUOTA_BYTES + 1), false).unwrap_err();
    assert!(more.to_string().contains("64 MiB of the node's 128 MiB are free"), "{more}");
    changes.change("default", &quota(QUOTA_BYTES / 2), false).unwrap();
    changes.create("travel", &quota(QUOTA_BYTES)).unwrap();
    let missing = changes.change("none", &words(&[]), false);
    assert_eq!(missing, Err(BucketRefusal::NotFound));
    node.stop().unwrap();
}

#[test]
fn a_bucket_without_a_quota_of_its_own_has_what_others_leave() {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let bucket = BucketSettings { has_part_of_rest: true, ..first_bucket() };
        start_of(directory.path(), 1, 8, bucket)
    };
    let quota = |bytes: u64| vec![("max_size".to_owned(), bytes.to_string())];
    let node = start();
    let has = |node: &Node, parts: u64| {
        let bucket = node.buckets().get("default").unwrap();
        assert_eq!(bucket.bucket().memory_quota_bytes(), parts * QUOTA_BYTES);
    };
    has(&node, 8);
    node.bucket_changes().create("orders", &quota(3 * QUOTA_BYTES)).unwrap();
    has(&node, 5);
    node.bucket_changes().change("orders", &quota(2 * QUOTA_BYTES), false).unwrap();
    has(&node, 6);
    // 16 MiB are the least that a bucket can have.
    let most = node.bucket_changes().create("travel", &quota(6 * QUOTA_BYTES));
    assert!(
        matches!(&most, Err(BucketRefusal::Invalid(word, _)) if word == "max_size"),
        "{most:?}"
    );
    has(&node, 6);
    let flush = vec![("flush_enabled".to_owned(), "true".to_owned())];
    node.bucket_changes().change("default", &flush, false).unwrap();
    node.stop().unwrap();

    let node = start();
    has(&node, 6);
    node.bucket_changes().create("travel", &quota(QUOTA_BYTES)).unwrap();
    has(&node, 5);
    node.bucket_changes().change("default", &quota(QUOTA_BYTES), false).unwrap();
    node.bucket_changes().delete("orders", Box::new(|| {})).unwrap();
    has(&node, 1);
    node.stop().unwrap();
    let node = start();
    has(&node, 1);
    node.stop().unwrap();
}

#[test]
fn clients_make_and_delete_buckets_by_the_protocol() {
    for threads in [1, 4] {
        let directory = tempfile::tempdir().unwrap();
        let node = start(directory.path(), threads);
        let mut first = connection(&node, Some("default"));
        let mut status = |opcode, key: &[u8], value: &[u8]| {
            let request = Request { key, value, ..Request::new(opcode) };
            first.call(&request).unwrap().status().unwrap()
        };
        let config = format!("ep.so\0max_size={QUOTA_BYTES};max_vbuckets=8;ht_size=47");
        let config = config.as_bytes();
        assert_eq!(status(Opcode::CreateBucket, b"orders", config), Status::Success);
        assert_eq!(status(Opcode::CreateBucket, b"orders", config), Status::KeyEexists);
        assert_eq!(status(Opcode::CreateBucket, b"a/b", config), Status::Einval);
        assert_eq!(status(Opcode::CreateBucket, b"b", b"ep.so\0what=x"), Status::Einval);
        assert_eq!(status(Opcode::DeleteBucket, b"none", b""), Status::KeyEnoent);
        assert_eq!(status(Opcode::DeleteBucket, b"orders", b"{\"force\":5}"), Status::Einval);
        let mut second = connection(&node, Some("orders"));
        let listed = second.call(&Request::new(Opcode::ListBuckets)).unwrap();
        assert_eq!(listed.value(), b"default orders");
        let force = b"{\"force\":true}";
        assert_eq!(status(Opcode::DeleteBucket, b"orders", force), Status::Success);
        assert!(!directory.path().join("data/buckets/orders").exists());
        // Who has a bucket deleted that it has selected itself hears of the end.
        assert_eq!(status(Opcode::DeleteBucket, b"default", b""), Status::Success);
        assert_eq!(status(Opcode::GetFailoverLog, b"", b""), Status::NoBucket);
        assert_eq!(status(Opcode::ListBuckets, b"", b""), Status::Success);
        assert!(node.buckets().all().is_empty());
        node.stop().unwrap();
    }
}

#[test]
fn a_hundred_small_buckets_start_soon_and_take_little() {
    const COUNT: u64 = 100;
    let directory = tempfile::tempdir().unwrap();
    let start = || start_with(directory.path(), 1, COUNT + 1);
    let node = start();
    let before = platform::process::resident_bytes();
    for number in 0..COUNT {
        let said = words(&[("max_vbuckets", "64")]);
        node.bucket_changes().create(&format!("b{number}"), &said).unwrap();
    }
    let grown = platform::process::resident_bytes().saturating_sub(before);
    node.stop().unwrap();
    let clock = Clock::real();
    let begun = clock.now();
    let node = start();
    let took = clock.now().since(begun);
    println!("{COUNT} buckets: {} KiB each, started again in {took:?}", (grown / COUNT) >> 10);
    assert_eq!(node.buckets().all().len(), 101);
    assert!(grown / COUNT < 8 << 20, "a bucket takes {} bytes", grown / COUNT);
    for number in 0..COUNT {
        delete(&node, &format!("b{number}")).unwrap();
    }
    assert_eq!(node.buckets().all().len(), 1);
    node.stop().unwrap();
}
