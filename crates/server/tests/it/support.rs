//! A server with buckets in a temporary directory, and a client that sends what it is told.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use auth::{Users, UsersConfig};
use bucket::{Bucket, BucketConfig, BucketType, FullPolicy, Persistence, Surroundings};
use cluster::Revision;
use executor::{DeterministicPool, ExecutorPool, PoolOptions};
use platform::files::RealFiles;
use platform::network::{Listener, Network};
use platform::{Clock, Entropy};
use server::{COMMAND_STATISTICS, SERVER_STATISTICS, ServerStatistics, Statistic};
use server::{ClusterView, Doors, Mailboxes, Parts, ServedBucket, Server};
use server::{ServerLimits, ServerOptions, TlsDoor};
use tls::Acceptor;

/// Front-end workers of a server, unless the environment says otherwise.
const WORKERS: usize = 4;
/// Names another number of front-end workers.
const WORKERS_VARIABLE: &str = "SETTEE_TEST_WORKERS";

/// Names another kind of network loop: `uring`.
const NETWORK_LOOP_VARIABLE: &str = "SETTEE_TEST_NETWORK_LOOP";

const PATIENCE: Duration = Duration::from_secs(20);

/// Where a server begins.
struct Ground {
    directory: tempfile::TempDir,
    /// Who works for its buckets, if that is not who works for the server.
    pool: Option<ExecutorPool>,
}

impl Ground {
    /// Where nothing was before.
    fn fresh() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), pool: None }
    }
}

pub(crate) struct Port {
    pub(crate) server: Server,
    /// The first bucket.
    pub(crate) bucket: Bucket,
    /// The others.
    other_buckets: Vec<Bucket>,
    pub(crate) address: SocketAddr,
    /// Where clients are let in without a login.
    pub(crate) memcached_address: SocketAddr,
    /// Who may log in: `user`, an administrator, at first.
    pub(crate) users: Arc<Users>,
    /// Where clients speak TLS, if they may.
    pub(crate) tls_address: Option<SocketAddr>,
    clock: Clock,
    pool: ExecutorPool,
    directory: tempfile::TempDir,
}

impl Port {
    pub(crate) fn open() -> Self {
        Self::with(ServerLimits::default(), false)
    }

    /// A server that may be told to empty its bucket.
    pub(crate) fn with_flush() -> Self {
        Self::with(ServerLimits::default(), true)
    }

    pub(crate) fn with_limits(limits: ServerLimits) -> Self {
        Self::with(limits, false)
    }

    /// The same with so many workers.
    pub(crate) fn with_workers(workers: usize, limits: ServerLimits) -> Self {
        let door = free_door();
        Self::on(Ground::fresh(), door, workers, vec![bucket_config()], limits, false, None)
    }

    /// A server whose bucket has no disk.
    pub(crate) fn ephemeral(policy: FullPolicy, memory_quota_bytes: u64) -> Self {
        let config = BucketConfig {
            bucket_type: Some(BucketType::Ephemeral),
            ephemeral_full_policy: policy,
            memory_quota_bytes,
            ..bucket_config()
        };
        Self::with_bucket(config, ServerLimits::default(), false)
    }

    /// A server with a bucket of four vBuckets, otherwise as `config` says.
    pub(crate) fn with_config(config: BucketConfig) -> Self {
        let config = BucketConfig { vbucket_count: 4, ..config };
        Self::with_bucket(config, ServerLimits::default(), false)
    }

    fn with(limits: ServerLimits, flush_enabled: bool) -> Self {
        Self::with_bucket(bucket_config(), limits, flush_enabled)
    }

    /// A server that is started when `clients` are at its door already, and they.
    pub(crate) fn open_late(workers: usize, clients: usize) -> (Self, Vec<Client>) {
        let door = free_door();
        let clients = (0..clients).map(|_| Client::connected_to(door.1)).collect();
        let limits = ServerLimits::default();
        (
            Self::on(Ground::fresh(), door, workers, vec![bucket_config()], limits, false, None),
            clients,
        )
    }

    fn with_bucket(config: BucketConfig, limits: ServerLimits, flush_enabled: bool) -> Self {
        let door = free_door();
        Self::on(Ground::fresh(), door, worker_count(), vec![config], limits, flush_enabled, None)
    }

    /// A server with several buckets that may be emptied. The first is that of clients who select
    /// none.
    pub(crate) fn with_buckets(configs: Vec<BucketConfig>, workers: usize) -> Self {
        let door = free_door();
        Self::on(Ground::fresh(), door, workers, configs, ServerLimits::default(), true, None)
    }

    /// A server with a door for TLS, too.
    pub(crate) fn with_tls(workers: usize, acceptor: Arc<Acceptor>) -> Self {
        let door = free_door();
        let (limits, tls) = (ServerLimits::default(), Some(acceptor));
        Self::on(Ground::fresh(), door, workers, vec![bucket_config()], limits, false, tls)
    }

    /// A server on what this one leaves behind, whose bucket is loaded when the pool runs.
    pub(crate) fn start_again(mut self) -> (Self, DeterministicPool) {
        let directory = std::mem::replace(&mut self.directory, tempfile::tempdir().unwrap());
        drop(self);
        let loading = DeterministicPool::new(Clock::simulated(Clock::real().wall_time()), 1);
        let ground = Ground { directory, pool: Some(loading.pool().clone()) };
        let (limits, configs) = (ServerLimits::default(), vec![bucket_config()]);
        (Self::on(ground, free_door(), worker_count(), configs, limits, false, None), loading)
    }

    fn on(
        ground: Ground,
        (data, address): (Listener, SocketAddr),
        workers: usize,
        configs: Vec<BucketConfig>,
        limits: ServerLimits,
        flush_enabled: bool,
        tls: Option<Arc<Acceptor>>,
    ) -> Self {
        let directory = ground.directory;
        let clock = Clock::real();
        let pool = ExecutorPool::start(clock.clone(), PoolOptions::for_cpus(2)).unwrap();
        let bucket_pool = ground.pool.unwrap_or_else(|| pool.clone());
        let mailboxes = Mailboxes::for_workers(workers);
        let open = |config: BucketConfig| {
            let surroundings = Surroundings {
                clock: bucket_pool.clock().clone(),
                files: Arc::new(RealFiles),
                pool: bucket_pool.clone(),
                completions: Arc::new(mailboxes.clone()),
                entropy: Entropy::simulated(1),
            };
            let directory = directory.path().join(&config.name);
            Bucket::open(surroundings, config, &directory).unwrap()
        };
        let mut buckets: Vec<Bucket> = configs.into_iter().map(open).collect();
        let iterations = auth::credentials::ITERATIONS_MIN;
        let users = Users::new(UsersConfig { iterations, ..UsersConfig::default() });
        users.set_password("user", b"password");
        let users = Arc::new(users);
        let config_of = |bucket: &Bucket| match bucket.config().name.as_str() {
            "default" => ("default".to_owned(), "{\"rev\":1}".to_owned()),
            name => (name.to_owned(), format!("{{\"name\":\"{name}\",\"rev\":1}}")),
        };
        let cluster = ClusterView {
            revision: Revision { epoch: 1, revision: 1 },
            global_config: "{\"global\":true}".to_owned(),
            bucket_configs: buckets.iter().map(config_of).collect(),
        };
        let served = |bucket: &Bucket| {
            let hub = replication::Hub::new(bucket);
            bucket.observe_streams(hub.clone());
            ServedBucket { bucket: bucket.clone(), hub, flush_enabled }
        };
        let parts = Parts {
            clock: clock.clone(),
            network: network(),
            users: Arc::clone(&users),
            buckets: buckets.iter().map(served).collect(),
            default_bucket: buckets[0].config().name.clone(),
            cluster,
            pool: pool.clone(),
            mailboxes,
        };
        let options = ServerOptions { limits, version: "7.6.0-test".to_owned() };
        let (memcached, memcached_address) = free_door();
        let (tls, tls_address) = tls
            .map(|acceptor| {
                let (listener, address) = free_door();
                (TlsDoor { listener, acceptor }, address)
            })
            .unzip();
        let doors = Doors { data, tls, memcached: Some(memcached) };
        let server = Server::start(parts, options, doors).unwrap();
        let bucket = buckets.remove(0);
        let other_buckets = buckets;
        Self {
            server,
            bucket,
            other_buckets,
            address,
            memcached_address,
            users,
            tls_address,
            clock,
            pool,
            directory,
        }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connected_to(self.address)
    }

    /// A client that has said HELLO with these features, who it is and which bucket it wants.
    pub(crate) fn client(&self, features: &[u16]) -> Client {
        let mut client = self.connect();
        client.hello(features);
        self.log_in(client)
    }

    /// The same, of the bucket of that name.
    pub(crate) fn client_of(&self, bucket: &str, features: &[u16]) -> Client {
        let mut client = self.client(features);
        assert_eq!(client.ask(frame(0x89).key(bucket.as_bytes())).status, 0, "{bucket}");
        client
    }

    /// A client that has not said HELLO, as memcached's do.
    pub(crate) fn classic_client(&self) -> Client {
        self.log_in(self.connect())
    }

    fn log_in(&self, mut client: Client) -> Client {
        let reply = client.ask(frame(0x21).key(b"PLAIN").value(b"\0user\0password"));
        assert_eq!(reply.status, 0);
        let name = &self.bucket.config().name;
        assert_eq!(client.ask(frame(0x89).key(name.as_bytes())).status, 0);
        client
    }

    pub(crate) fn wait_for(&self, what: &str, mut is_so: impl FnMut(ServerStatistics) -> bool) {
        let deadline = self.clock.now().after(PATIENCE);
        while !is_so(self.server.statistics()) {
            let statistics = self.server.statistics();
            assert!(self.clock.now() < deadline, "{what}: {statistics:?}");
            std::thread::yield_now();
        }
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        read(SERVER_STATISTICS, &self.server.statistics(), name)
            .or_else(|| read(COMMAND_STATISTICS, &self.server.all_commands(), name))
            .unwrap()
    }
}

fn read<S>(table: &[Statistic<S>], of: &S, name: &str) -> Option<u64> {
    let is_it = |it: &&Statistic<S>| it.shown.iter().any(|(known, _)| *known == name);
    Some((table.iter().find(is_it)?.read)(of))
}

/// How many front-end workers a server has in this run.
fn worker_count() -> usize {
    let Some(count) = std::env::var_os(WORKERS_VARIABLE) else { return WORKERS };
    count.to_str().and_then(|count| count.parse().ok()).expect("a number of workers")
}

fn network() -> Network {
    match std::env::var_os(NETWORK_LOOP_VARIABLE).as_ref().map(|name| name.to_str()) {
        None => Network::real(),
        Some(Some("uring")) => Network::with_uring().expect("rings are allowed here"),
        Some(other) => panic!("{NETWORK_LOOP_VARIABLE}: there is no network loop {other:?}"),
    }
}

/// What is persisted can leave memory: without a journal it is in its file.
pub(crate) fn bucket_config() -> BucketConfig {
    BucketConfig {
        vbucket_count: 4,
        persistence: Persistence::Files,
        ..BucketConfig::named("default")
    }
}

/// A listener on any port of the loopback interface, and its address.
fn free_door() -> (Listener, SocketAddr) {
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let (listener, port) = server::open_door(&Network::real(), address).unwrap();
    (listener, (Ipv4Addr::LOCALHOST, port).into())
}

impl Drop for Port {
    fn drop(&mut self) {
        self.server.stop();
        let mut flushed = vec![self.bucket.shut_down()];
        flushed.extend(self.other_buckets.iter().map(Bucket::shut_down));
        self.pool.shutdown();
        assert!(std::thread::panicking() || flushed.iter().all(Result::is_ok));
    }
}

/// A frame, field by field, also a wrong one.
#[derive(Clone, Debug)]
pub(crate) struct RawFrame {
    pub(crate) magic: u8,
    pub(crate) opcode: u8,
    pub(crate) datatype: u8,
    pub(crate) vbucket: u16,
    pub(crate) opaque: u32,
    pub(crate) cas: u64,
    pub(crate) framing: Vec<u8>,
    pub(crate) extras: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

pub(crate) fn frame(opcode: u8) -> RawFrame {
    RawFrame {
        magic: 0x80,
        opcode,
        datatype: 0,
        vbucket: 0,
        opaque: 0,
        cas: 0,
        framing: vec![],
        extras: vec![],
        key: vec![],
        value: vec![],
    }
}

/// SET without flags and expiry.
pub(crate) fn set(key: &[u8], value: &[u8]) -> RawFrame {
    frame(0x01).extras(&[0; 8]).key(key).value(value)
}

pub(crate) fn get(key: &[u8]) -> RawFrame {
    frame(0x00).key(key)
}

impl RawFrame {
    pub(crate) fn key(mut self, key: &[u8]) -> Self {
        self.key = key.to_vec();
        self
    }

    pub(crate) fn extras(mut self, extras: &[u8]) -> Self {
        self.extras = extras.to_vec();
        self
    }

    pub(crate) fn value(mut self, value: &[u8]) -> Self {
        self.value = value.to_vec();
        self
    }

    pub(crate) fn opaque(mut self, opaque: u32) -> Self {
        self.opaque = opaque;
        self
    }

    pub(crate) fn cas(mut self, cas: u64) -> Self {
        self.cas = cas;
        self
    }

    pub(crate) fn vbucket(mut self, vbucket: u16) -> Self {
        self.vbucket = vbucket;
        self
    }

    pub(crate) fn datatype(mut self, datatype: u8) -> Self {
        self.datatype = datatype;
        self
    }

    pub(crate) fn magic(mut self, magic: u8) -> Self {
        self.magic = magic;
        self
    }

    /// Makes it a flexible frame.
    pub(crate) fn framing(mut self, framing: &[u8]) -> Self {
        self.magic = 0x08;
        self.framing = framing.to_vec();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let body = self.framing.len() + self.extras.len() + self.key.len() + self.value.len();
        let mut bytes = vec![self.magic, self.opcode];
        let key_size = u16::try_from(self.key.len()).unwrap();
        if self.framing.is_empty() {
            bytes.extend(key_size.to_be_bytes());
        } else {
            bytes.push(u8::try_from(self.framing.len()).unwrap());
            bytes.push(u8::try_from(key_size).unwrap());
        }
        bytes.push(u8::try_from(self.extras.len()).unwrap());
        bytes.push(self.datatype);
        bytes.extend(self.vbucket.to_be_bytes());
        bytes.extend(u32::try_from(body).unwrap().to_be_bytes());
        bytes.extend(self.opaque.to_be_bytes());
        bytes.extend(self.cas.to_be_bytes());
        for section in [&self.framing, &self.extras, &self.key, &self.value] {
            bytes.extend_from_slice(section);
        }
        bytes
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) opcode: u8,
    pub(crate) status: u16,
    pub(crate) datatype: u8,
    pub(crate) opaque: u32,
    pub(crate) cas: u64,
    pub(crate) framing: Vec<u8>,
    pub(crate) extras: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl Reply {
    /// The seqno of a mutation, for a client with mutation tokens.
    pub(crate) fn mutation_seqno(&self) -> u64 {
        u64::from_be_bytes(self.extras[8..].try_into().unwrap())
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

impl Client {
    pub(crate) fn connected_to(address: SocketAddr) -> Self {
        let stream = platform::network::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }

    pub(crate) fn hello(&mut self, features: &[u16]) -> Vec<u8> {
        let value: Vec<u8> = features.iter().flat_map(|code| code.to_be_bytes()).collect();
        let reply = self.ask(frame(0x1f).key(b"test").value(&value));
        assert_eq!(reply.status, 0);
        reply.value
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn ask(&mut self, request: RawFrame) -> Reply {
        self.send(&request.bytes());
        let reply = self.receive();
        assert_eq!((reply.opcode, reply.opaque), (request.opcode, request.opaque), "{request:?}");
        reply
    }

    pub(crate) fn receive(&mut self) -> Reply {
        self.try_receive().expect("the server answers")
    }

    /// The next response; `None` when the server has closed the connection.
    pub(crate) fn try_receive(&mut self) -> Option<Reply> {
        let mut header = [0; 24];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if is_closed(error.kind()) => return None,
            Err(error) => panic!("{error}"),
        }
        let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        let (framing_size, key_size) = match header[0] {
            // A request of the server's on a connection of replication has the same form.
            0x80 | 0x81 => (0, usize::from(u16::from_be_bytes([header[2], header[3]]))),
            0x18 => (usize::from(header[2]), usize::from(header[3])),
            other => panic!("magic {other:#x}"),
        };
        let mut body = vec![0; number(8) as usize];
        self.stream.read_exact(&mut body).unwrap();
        let mut rest = body.as_slice();
        let mut section = |size: usize| {
            let (section, after) = rest.split_at(size);
            rest = after;
            section.to_vec()
        };
        let (framing, extras) = (section(framing_size), section(header[4].into()));
        let key = section(key_size);
        Some(Reply {
            opcode: header[1],
            status: u16::from_be_bytes([header[6], header[7]]),
            datatype: header[5],
            opaque: number(12),
            cas: u64::from_be_bytes(header[16..].try_into().unwrap()),
            framing,
            extras,
            key,
            value: rest.to_vec(),
        })
    }

    /// The statistics of a group, or the status that it failed with.
    pub(crate) fn statistics(&mut self, group: &str) -> Result<Vec<(String, String)>, Reply> {
        self.send(&frame(0x10).key(group.as_bytes()).bytes());
        let mut statistics = Vec::new();
        loop {
            let reply = self.receive();
            if reply.status != 0 {
                return Err(reply);
            }
            if reply.key.is_empty() {
                assert!(reply.value.is_empty(), "{group}");
                return Ok(statistics);
            }
            let text = |bytes| String::from_utf8(bytes).unwrap();
            statistics.push((text(reply.key), text(reply.value)));
        }
    }

    /// Everything up to the end of the connection, as a text.
    pub(crate) fn text(&mut self) -> String {
        let mut text = String::new();
        self.stream.read_to_string(&mut text).unwrap();
        text
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        self.try_receive().is_none()
    }
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
