//! A data port on a simulated machine, and its clients.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use auth::{Users, UsersConfig};
use blessed::Line;
use bucket::{Bucket, BucketConfig, ConflictResolution, EvictionPolicy, Surroundings};
use cluster::Revision;
use document::Vbid;
use executor::DeterministicPool;
use platform::network::{Network, Stream};
use platform::simulated::{SimulatedFiles, SimulatedNetwork};
use platform::{Clock, Entropy, WallTime};
use replication::Hub;
use server::{
    ClusterView, Doors, Mailboxes, Parts, ServedBucket, Server, ServerLimits, ServerOptions,
};

use super::frames::{Greeting, KnownNames, shown_frames};
use crate::support::bucket_config;

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const DATA_PORT: u16 = 11210;
const MEMCACHED_PORT: u16 = 11211;
/// How long bytes take in one direction.
const LATENCY: Duration = Duration::from_micros(10);
/// What passes after each thing that is said: everything that need not wait is answered by then.
const MOMENT: Duration = Duration::from_millis(1);
const RUNS_MAX: usize = 1_000_000;

/// What is decided about a port before it opens.
#[derive(Clone)]
pub(super) struct Options {
    limits: ServerLimits,
    flush_enabled: bool,
    bucket: BucketConfig,
}

/// A port that is open, and who has come to it.
pub(super) struct SimulatedPort {
    driver: DeterministicPool,
    network: SimulatedNetwork,
    server: Server,
    bucket: Bucket,
    clients: Vec<Client>,
    /// Who speaks now.
    current: usize,
    names: KnownNames,
}

/// The other end of a connection.
struct Client {
    stream: Option<Stream>,
    /// Whether its end has been told.
    is_closed: bool,
}

impl Default for Options {
    fn default() -> Self {
        let limits = ServerLimits::default();
        Self { limits, flush_enabled: false, bucket: bucket_config() }
    }
}

impl Options {
    pub(super) fn of(line: &Line<'_>) -> Self {
        line.allow(&["packet_bytes_max", "parked_requests_max", "login_seconds_max"]);
        let mut options = Self::default();
        let number = |name| line.number_in(name).map(|number| usize::try_from(number).unwrap());
        let limits = &mut options.limits;
        limits.packet_bytes_max = number("packet_bytes_max").unwrap_or(limits.packet_bytes_max);
        limits.parked_requests_max =
            number("parked_requests_max").unwrap_or(limits.parked_requests_max);
        if let Some(seconds) = line.number_in("login_seconds_max") {
            limits.login_time_max = Duration::from_secs(seconds);
        }
        for word in &line.words {
            match *word {
                "flush" => options.flush_enabled = true,
                "lww" => options.bucket.conflict_resolution = Some(ConflictResolution::Lww),
                "full" => options.bucket.eviction.policy = EvictionPolicy::Full,
                _ => panic!("`{}`: there is no option `{word}`", line.text),
            }
        }
        options
    }
}

impl SimulatedPort {
    pub(super) fn open(options: &Options) -> Self {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let driver = DeterministicPool::new(clock.clone(), 1);
        let network = SimulatedNetwork::new(clock.clone(), 1);
        network.set_latency(LATENCY, LATENCY);
        let mailboxes = Mailboxes::for_workers(1);
        let surroundings = Surroundings {
            clock: clock.clone(),
            files: Arc::new(SimulatedFiles::new()),
            pool: driver.pool().clone(),
            completions: Arc::new(mailboxes.clone()),
            entropy: Entropy::simulated(1),
        };
        let config = options.bucket.clone();
        let bucket = Bucket::open(surroundings, config, Path::new("/data/bucket")).unwrap();
        let hub = Hub::new(&bucket);
        bucket.observe_streams(hub.clone());
        let flush_enabled = options.flush_enabled;
        let served = ServedBucket { bucket: bucket.clone(), hub, flush_enabled };
        let parts = Parts {
            clock,
            network: network.host(SERVER).into(),
            users: Arc::new(users()),
            buckets: vec![served],
            default_bucket: "default".to_owned(),
            cluster: view(1),
            pool: driver.pool().clone(),
            mailboxes,
        };
        let options = ServerOptions { limits: options.limits, version: "7.6.0-test".to_owned() };
        let door = |port| server::open_door(&parts.network, SocketAddr::new(SERVER, port)).unwrap();
        let (data, memcached) = (door(DATA_PORT).0, Some(door(MEMCACHED_PORT).0));
        let doors = Doors { data, tls: None, memcached };
        let server = Server::start(parts, options, doors).unwrap();
        let (clients, names) = (Vec::new(), KnownNames::default());
        let mut port = Self { driver, network, server, bucket, clients, current: 0, names };
        port.pass(MOMENT);
        port
    }

    /// Somebody comes to the data port, and speaks from now on.
    pub(super) fn connect(&mut self) {
        self.connect_to(DATA_PORT);
    }

    pub(super) fn connect_to_memcached_port(&mut self) {
        self.connect_to(MEMCACHED_PORT);
    }

    fn connect_to(&mut self, port: u16) {
        let network: Network = self.network.host(CLIENT).into();
        let stream = network.connect(SocketAddr::new(SERVER, port)).unwrap();
        self.current = self.clients.len();
        self.clients.push(Client { stream: Some(stream), is_closed: false });
        self.pass(MOMENT);
    }

    /// The client at `index` speaks from now on.
    pub(super) fn turn_to(&mut self, index: usize) {
        assert!(index < self.clients.len(), "there is a client {index}");
        self.current = index;
    }

    pub(super) fn names(&self) -> &KnownNames {
        &self.names
    }

    /// Whoever speaks sends `bytes`, which arrive together.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let stream = self.clients[self.current].stream.as_mut().expect("it has not hung up");
        match stream.write_all(bytes) {
            Err(error) if is_end(error.kind()) => {}
            written => written.unwrap(),
        }
        self.pass(MOMENT);
    }

    pub(super) fn hang_up(&mut self) {
        self.clients[self.current] = Client { stream: None, is_closed: true };
        self.pass(MOMENT);
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.driver.advance(time, RUNS_MAX);
    }

    /// The cluster's map has another revision.
    pub(super) fn publish(&mut self, revision: i64) {
        self.server.publish(view(revision));
        self.pass(MOMENT);
    }

    /// What clients have received. What comes to another than the one that speaks has its number
    /// before it.
    pub(super) fn heard(&mut self) -> Vec<String> {
        let mut heard = Vec::new();
        for (index, client) in self.clients.iter_mut().enumerate() {
            let (bytes, closes) = client.received();
            let mut lines = shown_frames(&bytes, &mut self.names);
            lines.extend(closes.then(|| "closes".to_owned()));
            let is_speaker = index == self.current;
            let numbered =
                |line: String| if is_speaker { line } else { format!("[{index}] {line}") };
            heard.extend(lines.into_iter().map(numbered));
        }
        for vbid in (0..self.bucket.config().vbucket_count).map(Vbid) {
            let mut uuid = 0;
            self.bucket.with_vbucket(vbid, |vbucket| uuid = vbucket.uuid().0);
            let (uuid, name) = (format!("{uuid:016x}"), format!("<uuid of {}>", vbid.0));
            heard.iter_mut().for_each(|line| *line = line.replace(&uuid, &name));
        }
        heard
    }

    /// Whoever speaks asks, and is answered that it is so.
    pub(super) fn expect_success(&mut self, request: &Greeting) {
        self.write(&request.0.bytes());
        let heard = self.heard();
        assert!(matches!(&heard[..], [one] if one.starts_with("SUCCESS ")), "{heard:?}");
    }
}

impl Client {
    /// The bytes that have come, and whether the end has.
    fn received(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let Some(stream) = &mut self.stream else { return (bytes, false) };
        let mut buffer = [0; 1 << 16];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return (bytes, false),
                Err(error) if is_end(error.kind()) => break,
                Err(error) => panic!("{error}"),
            }
        }
        (bytes, !std::mem::replace(&mut self.is_closed, true))
    }
}

impl Drop for SimulatedPort {
    fn drop(&mut self) {
        self.driver.pool().shutdown();
    }
}

fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

fn users() -> Users {
    let iterations = auth::credentials::ITERATIONS_MIN;
    let config =
        UsersConfig { iterations, entropy: Entropy::simulated(2), ..UsersConfig::default() };
    let users = Users::new(config);
    users.set_password("user", b"password");
    users
}

fn view(revision: i64) -> ClusterView {
    ClusterView {
        revision: Revision { epoch: 1, revision },
        global_config: format!("{{\"global\":{revision}}}"),
        bucket_configs: [("default".to_owned(), format!("{{\"rev\":{revision}}}"))].into(),
    }
}
