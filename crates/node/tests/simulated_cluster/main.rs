//! Two or three whole nodes in one thread: network, disks, time, threads and secrets are simulated,
//! so that a seed decides everything that happens.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

mod buckets;
mod failover;
mod identities;
mod lost_disk;
mod tls_between_nodes;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::Context;
use bucket::manifest_json;
use client::{ClientError, Connection, ConnectionOptions, Login, OwnedResponse, ServerAddress};
use cluster::{BucketPlan, ClusterPlan, PlannedNode, Revision, StorageFigures, Uuid};
use document::DurabilityLevel;
use executor::DeterministicPool;
use node::{
    BucketSettings, CarriedOut, Copies, Held, Introduction, Membership, Node, NodeBucket,
    NodeBuckets, NodeConfig, OfferPurpose, PeerLogin, PeerRefusal, Peers, PlanOffer, World,
};
use platform::network::{Network, Stream};
use platform::simulated::{SimulatedFiles, SimulatedNetwork};
use platform::{Clock, Entropy, Files, Instant, Random, WallTime};
use protocol::client::{Request, store_extras};
use protocol::frame_info::{DurabilityRequirement, FrameInfos};
use protocol::request::StoreExtras;
use protocol::{Feature, FeatureSet, Opcode, Status};

/// The default bucket, and another one.
static BUCKETS: [&str; 2] = ["default", "other"];
const VBUCKETS: u16 = 8;
const PORT: u16 = 11210;
const MANAGEMENT_PORT: u16 = 8091;
/// Where a machine with a new disk has the map.
const MAP: &str = "/map.json";
const PASSWORD: &str = "password";
/// How long a client waits for something to happen, in simulated time.
const PATIENCE: Duration = Duration::from_secs(60);
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 100));

/// A machine with a disk, and the node on it while it has power.
struct Machine {
    address: IpAddr,
    files: SimulatedFiles,
    running: Option<Running>,
    starts: u64,
}

struct Running {
    driver: DeterministicPool,
    node: Node,
}

/// The other nodes, as nodes ask them: nobody waits for an answer on a simulated network, so it is
/// there at once or not at all.
#[derive(Clone, Default)]
struct Others(Arc<Mutex<Answering>>);

#[derive(Default)]
struct Answering {
    /// By host, those with power.
    nodes: BTreeMap<String, (Arc<NodeBuckets>, Arc<Membership>)>,
    /// The host that answers, and takes no plan and empties no bucket.
    deaf: Option<String>,
    /// Whether nodes that are to empty a bucket say that their replicas have not followed in time.
    have_late_replicas: bool,
    /// Whether nobody is reached who is offered a plan.
    keep_plans: bool,
}

impl Others {
    fn set_deaf(&self, host: Option<&str>) {
        self.0.lock().unwrap().deaf = host.map(str::to_owned);
    }

    fn set_keep_plans(&self, keep_plans: bool) {
        self.0.lock().unwrap().keep_plans = keep_plans;
    }

    fn is_deaf(&self, host: &str) -> bool {
        self.0.lock().unwrap().deaf.as_deref() == Some(host)
    }

    fn find(&self, host: &str) -> anyhow::Result<(Arc<NodeBuckets>, Arc<Membership>)> {
        self.0.lock().unwrap().nodes.get(host).cloned().context("it has no power")
    }

    /// The bucket that is meant, and no other one of its name.
    fn find_meant(
        &self,
        node: &cluster::NodeAddress,
        login: &PeerLogin,
    ) -> anyhow::Result<NodeBucket> {
        let (buckets, membership) = self.find(&node.host)?;
        let told = membership.bucket_map(&login.bucket).map(|map| map.uuid);
        anyhow::ensure!(login.bucket_uuid.is_none_or(|meant| told == Some(meant)), "another one");
        buckets.get(&login.bucket).context("it has no such bucket")
    }
}

impl Peers for Others {
    fn exchange_manifest(
        &self,
        node: &cluster::NodeAddress,
        login: &PeerLogin,
        ours: &str,
    ) -> anyhow::Result<String> {
        let bucket = self.find_meant(node, login)?;
        let theirs = bucket.bucket().manifest();
        let ours = manifest_json::decode(ours.as_bytes()).map_err(anyhow::Error::msg)?;
        if theirs.uid < ours.uid {
            bucket.bucket().set_manifest(ours)?;
        }
        Ok(manifest_json::encode(&theirs))
    }

    fn exchange_plan(
        &self,
        node: &cluster::NodeAddress,
        _: &PeerLogin,
        offer: PlanOffer<'_>,
    ) -> anyhow::Result<String> {
        let (_, membership) = self.find(&node.host)?;
        anyhow::ensure!(!self.0.lock().unwrap().keep_plans, "it is not reached");
        anyhow::ensure!(
            offer.purpose == OfferPurpose::Trial || !self.is_deaf(&node.host),
            "it takes nothing"
        );
        let plan = membership.parse(offer.plan)?;
        let carried_out = match offer.purpose == OfferPurpose::Trial {
            true => membership.try_out(&plan),
            false => membership.carry_out(&plan),
        };
        match carried_out {
            CarriedOut::Refused(reason) => Err(PeerRefusal(reason).into()),
            CarriedOut::NotNow(reason) => Err(anyhow::Error::msg(reason)),
            _ => Ok(membership.plan().to_json()),
        }
    }

    fn copies(&self, node: &cluster::NodeAddress, login: &PeerLogin) -> anyhow::Result<Copies> {
        let bucket = self.find_meant(node, login)?;
        let mut copies = Copies::new();
        bucket.bucket().for_each_vbucket(|vbid, vbucket| {
            let (high_seqno, entries) = (vbucket.high_seqno().0, vbucket.failover_entries());
            let held = Held { high_seqno, branches: entries.to_vec(), ..Held::default() };
            copies.insert(vbid.0, held);
        });
        Ok(copies)
    }

    fn introduction(
        &self,
        node: &cluster::NodeAddress,
        _: &PeerLogin,
    ) -> anyhow::Result<Introduction> {
        let uuid = self.find(&node.host)?.1.uuid_of(node);
        let storage = StorageFigures { disk_free_bytes: 1, ..StorageFigures::default() };
        Ok(Introduction { uuid, storage })
    }

    fn flush(&self, node: &cluster::NodeAddress, login: &PeerLogin) -> anyhow::Result<()> {
        let (buckets, _) = self.find(&node.host)?;
        let bucket = buckets.get(&login.bucket).context("it has no such bucket")?;
        anyhow::ensure!(!self.is_deaf(&node.host), "it empties nothing");
        bucket.bucket().flush_all()?;
        anyhow::ensure!(!self.0.lock().unwrap().have_late_replicas, "its replicas are late");
        Ok(())
    }
}

/// Everything there is.
struct Cluster {
    seed: u64,
    /// The buckets of all nodes.
    buckets: &'static [&'static str],
    clock: Clock,
    random: Random,
    network: SimulatedNetwork,
    machines: Vec<Machine>,
    others: Others,
    /// The map that counts once a node is given up.
    adopted: Option<ClusterPlan>,
    /// Whether nodes speak TLS with each other.
    has_tls: bool,
    /// Of all clients: what follows from the password takes long.
    login: Login,
}

impl Cluster {
    fn new(seed: u64, buckets: &'static [&'static str], machine_count: u8) -> Self {
        let mut cluster = Self::without_power(seed, buckets, machine_count);
        cluster.begin();
        cluster
    }

    fn without_power(seed: u64, buckets: &'static [&'static str], machine_count: u8) -> Self {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let machine = |last| Machine {
            address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)),
            files: SimulatedFiles::new(),
            running: None,
            starts: 0,
        };
        Self {
            seed,
            buckets,
            network: SimulatedNetwork::new(clock.clone(), seed),
            clock,
            random: Random::from_seed(seed),
            machines: (1..=machine_count).map(machine).collect(),
            others: Others::default(),
            adopted: None,
            has_tls: false,
            login: Login::new("Administrator", PASSWORD),
        }
    }

    /// Starts all nodes, and gives them the map.
    fn begin(&mut self) {
        (0..self.machines.len()).for_each(|index| self.start(index));
        let plan = self.plan();
        for machine in &self.machines {
            machine.running.as_ref().unwrap().node.carry_out(&plan).unwrap();
        }
    }

    fn plan(&self) -> ClusterPlan {
        if let Some(adopted) = &self.adopted {
            return adopted.clone();
        }
        let node = |machine: &Machine| PlannedNode {
            name: name_of(machine),
            address: cluster::NodeAddress {
                host: machine.address.to_string(),
                data_port: PORT,
                management_port: MANAGEMENT_PORT,
                tls: self.has_tls.then_some(tls_between_nodes::PORTS),
                external: None,
            },
        };
        let nodes = self.machines.iter().map(node).collect();
        let mut plan = ClusterPlan::of_nodes(nodes);
        plan.revision = Revision { epoch: 1, revision: 2 };
        plan.cluster_uuid = Some(Uuid::random(&Entropy::simulated(1)));
        for (&name, seed) in self.buckets.iter().zip(2..) {
            let count = self.machines.len();
            let mut bucket = BucketPlan::balanced(count, count - 1, VBUCKETS);
            bucket.uuid = Some(Uuid::random(&Entropy::simulated(seed)));
            plan = plan.with_bucket(name, bucket);
        }
        plan
    }

    /// The node on a machine, which has power.
    fn node(&self, index: usize) -> &Node {
        &self.machines[index].running.as_ref().expect("it has power").node
    }

    /// The machine of a member of the map.
    fn machine_of(&self, member: usize) -> usize {
        let name = &self.plan().nodes[member].name;
        let mut machines = self.machines.iter();
        machines.position(|machine| name_of(machine) == *name).expect("members are machines")
    }

    /// Gives a machine power.
    fn start(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        machine.starts += 1;
        let seed = self.seed << 16 | machine.starts << 8 | index as u64;
        let driver = DeterministicPool::new(self.clock.clone(), seed);
        let world = World {
            clock: self.clock.clone(),
            files: Arc::new(machine.files.clone()),
            network: self.network.host(machine.address).into(),
            entropy: Entropy::simulated(seed),
            pool: driver.pool().clone(),
            peers: Arc::new(self.others.clone()),
        };
        let config = NodeConfig {
            data_dir: PathBuf::from("/data"),
            host: machine.address,
            port: PORT,
            password: Some(PASSWORD.into()),
            tls: self.has_tls.then(tls_between_nodes::config),
            node_name: Some(name_of(machine)),
            cluster_map: machine.files.content(Path::new(MAP)).map(|_| PathBuf::from(MAP)),
            threads: 2,
            buckets: self.buckets.iter().copied().map(settings).collect(),
            ..NodeConfig::default()
        };
        let node = Node::start(world, config, MANAGEMENT_PORT).unwrap();
        let parts = (Arc::clone(node.buckets()), Arc::clone(node.membership()));
        self.others.0.lock().unwrap().nodes.insert(machine.address.to_string(), parts);
        machine.running = Some(Running { driver, node });
    }

    /// Takes a machine's power: of what its disk has not synced a part may be there.
    fn power_cut(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        self.network.power_cut(machine.address);
        machine.files.power_cut(self.random.next_u64() | 1);
        self.others.0.lock().unwrap().nodes.remove(&machine.address.to_string());
        let Running { driver, node } = machine.running.take().expect("it has power");
        driver.pool().shutdown();
        drop(node);
    }

    /// A machine without power gets a new disk, on which there is the map alone.
    fn replace_disk(&mut self, index: usize) {
        let map = self.plan().to_json();
        let machine = &mut self.machines[index];
        assert!(machine.running.is_none(), "disks are replaced without power");
        machine.files = SimulatedFiles::new();
        machine.files.insert(Path::new(MAP), map.as_bytes());
    }

    /// One thing happens. When nothing can, time passes until something does.
    fn step(&mut self) {
        let mut running: Vec<&mut Running> =
            self.machines.iter_mut().filter_map(|machine| machine.running.as_mut()).collect();
        while !running.is_empty() {
            let next = running.swap_remove(self.random.below(running.len() as u64) as usize);
            if next.driver.run_one() {
                return;
            }
        }
        let running = || self.machines.iter().filter_map(|machine| machine.running.as_ref());
        let times = running().filter_map(|running| running.driver.next_time());
        let next = times.chain(self.network.next_delivery()).min().expect("a clock ticks");
        self.clock.advance(next.since(self.clock.now()));
        running().for_each(|running| running.driver.expire());
    }

    /// Lets things happen for a while.
    fn run(&mut self, duration: Duration) {
        let end = self.clock.now().after(duration);
        while self.clock.now() < end {
            self.step();
        }
    }

    /// Everything that is on the disks.
    fn disks(&self) -> BTreeMap<(usize, PathBuf), Vec<u8>> {
        let mut found = BTreeMap::new();
        for (index, machine) in self.machines.iter().enumerate() {
            let mut directories = vec![PathBuf::from("/data")];
            while let Some(directory) = directories.pop() {
                for name in machine.files.list(&directory).unwrap() {
                    let path = directory.join(name);
                    match machine.files.content(&path) {
                        Some(content) => drop(found.insert((index, path), content)),
                        None => directories.push(path),
                    }
                }
            }
        }
        found
    }
}

fn settings(bucket: &str) -> BucketSettings {
    BucketSettings {
        name: bucket.to_owned(),
        vbuckets: Some(VBUCKETS),
        memory_quota_bytes: 64 << 20,
        journal_size_bytes: 64 << 20,
        ..BucketSettings::default()
    }
}

fn name_of(machine: &Machine) -> String {
    format!("n@{}", machine.address)
}

/// The cluster, and clients in it.
#[derive(Clone)]
struct Shared(Arc<Mutex<Cluster>>);

/// A stream whose reader has the cluster go on while there is nothing to read.
struct Waiting {
    stream: Stream,
    cluster: Shared,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Cluster> {
        self.0.lock().unwrap()
    }

    /// A client of a bucket of the node on a machine.
    fn connect(&self, index: usize, bucket: &str) -> Result<Connection, ClientError> {
        let (network, host, login) = {
            let cluster = self.lock();
            let network = Network::from(cluster.network.host(CLIENT));
            (network, cluster.machines[index].address, cluster.login.clone())
        };
        let address = ServerAddress::new(host.to_string(), PORT);
        let stream = network
            .connect(SocketAddr::new(host, PORT))
            .map_err(|cause| ClientError::Unreachable { address: address.to_string(), cause })?;
        let mut options = ConnectionOptions::new("simulated");
        options.login = Some(login);
        options.bucket = Some(bucket.to_owned());
        options.features =
            FeatureSet::NONE.with(Feature::AltRequestSupport).with(Feature::SyncReplication);
        Connection::over(Waiting { stream, cluster: self.clone() }, &address, &options)
    }
}

impl Waiting {
    fn until_done<T>(
        &mut self,
        mut act: impl FnMut(&mut Stream) -> io::Result<T>,
    ) -> io::Result<T> {
        let deadline = self.cluster.lock().clock.now().after(PATIENCE);
        loop {
            match act(&mut self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            let mut cluster = self.cluster.lock();
            if cluster.clock.now() > deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            cluster.step();
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.stream.fmt(formatter)
    }
}

impl Read for Waiting {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.until_done(|stream| stream.read(target))
    }
}

impl Write for Waiting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client of a bucket of the whole cluster that remembers what it was told.
struct Client {
    cluster: Shared,
    bucket: &'static str,
    connections: BTreeMap<usize, Connection>,
    /// By key, what was acknowledged as durable.
    durable: BTreeMap<Vec<u8>, Vec<u8>>,
    ambiguous: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

fn vbucket_of(key: &[u8]) -> u16 {
    u16::from(key[key.len() - 1]) % VBUCKETS
}

impl Client {
    fn new(cluster: &Shared, bucket: &'static str) -> Self {
        Self {
            cluster: cluster.clone(),
            bucket,
            connections: BTreeMap::new(),
            durable: BTreeMap::new(),
            ambiguous: BTreeMap::new(),
        }
    }

    /// One request to the node where the vBucket is active.
    fn ask(&mut self, request: &Request<'_>) -> Result<OwnedResponse, ClientError> {
        let index = {
            let cluster = self.cluster.lock();
            let chain = cluster.plan().buckets[self.bucket].chain(request.vbucket).to_vec();
            cluster.machine_of(chain[0].expect("every vBucket is active somewhere"))
        };
        let answer = self.connection(index)?.call(request);
        if answer.is_err() {
            self.connections.remove(&index);
        }
        answer
    }

    /// The connection to a node.
    fn connection(&mut self, index: usize) -> Result<&mut Connection, ClientError> {
        match self.connections.entry(index) {
            Entry::Occupied(connection) => Ok(connection.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(self.cluster.connect(index, self.bucket)?)),
        }
    }

    /// Writes once. The status, if there was an answer.
    fn set(&mut self, key: &[u8], value: &[u8], is_durable: bool) -> Option<Status> {
        let durability = is_durable.then_some(DurabilityRequirement {
            level: DurabilityLevel::PersistToMajority,
            timeout_ms: Some(3000),
        });
        let request = Request {
            vbucket: vbucket_of(key),
            infos: FrameInfos { durability, ..FrameInfos::default() },
            extras: &store_extras(StoreExtras { flags: [0; 4], expiry: 0 }),
            key,
            value,
            ..Request::new(Opcode::Set)
        };
        let status = self.ask(&request).ok().and_then(|response| response.status());
        match status {
            Some(Status::Success) if is_durable => {
                self.durable.insert(key.to_vec(), value.to_vec());
                self.ambiguous.remove(key);
            }
            _ => self.ambiguous.entry(key.to_vec()).or_default().push(value.to_vec()),
        }
        status
    }

    /// The document, if there is one, once its vBucket is loaded and nothing is in doubt about it.
    fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let request = Request { vbucket: vbucket_of(key), key, ..Request::new(Opcode::Get) };
        let begun = self.cluster.lock().clock.now();
        loop {
            let response = self.ask(&request).expect("the node answers");
            match response.status() {
                Some(Status::Etmpfail | Status::SyncWriteReCommitInProgress) => {}
                _ => return response.is_success().then(|| response.value().to_vec()),
            }
            let mut cluster = self.cluster.lock();
            assert!(cluster.clock.now().since(begun) < PATIENCE, "{key:?} is not served");
            cluster.run(Duration::from_millis(10));
        }
    }

    /// Writes durably until it succeeds.
    fn write_until_durable(&mut self, key: &[u8], value: &[u8]) {
        let begun = self.cluster.lock().clock.now();
        while self.set(key, value, true) != Some(Status::Success) {
            let mut cluster = self.cluster.lock();
            assert!(cluster.clock.now().since(begun) < PATIENCE, "no durable write succeeds");
            cluster.run(Duration::from_millis(50));
        }
    }

    /// Everything that was acknowledged as durable is there, or something newer that may be.
    fn check(&mut self) {
        for (key, value) in self.durable.clone() {
            let found = self.get(&key).expect("an acknowledged document is there");
            let may_be = self.ambiguous.get(&key).is_some_and(|values| values.contains(&found));
            assert!(found == value || may_be, "{key:?} is {found:?}, acknowledged was {value:?}");
        }
    }
}

/// What a run comes to.
#[derive(PartialEq)]
struct Outcome {
    ended: Instant,
    disks: BTreeMap<(usize, PathBuf), Vec<u8>>,
}

/// Plain and durable writes; a machine loses power, others go on; it comes back, and so do durable
/// writes; nothing that was acknowledged as durable is lost, at the end with both restarted.
fn run(seed: u64) -> Outcome {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(seed, &BUCKETS[..1], 2))));
    let mut client = Client::new(&cluster, BUCKETS[0]);
    let keys: Vec<Vec<u8>> = (0..24_u8).map(|number| vec![b'k', number]).collect();
    for (number, key) in keys.iter().enumerate() {
        client.write_until_durable(key, format!("first-{number}").as_bytes());
        let plain = [b"plain-", key.as_slice()].concat();
        assert_eq!(client.set(&plain, b"value", false), Some(Status::Success), "seed {seed}");
    }
    client.check();
    let lost = usize::from(seed.is_multiple_of(2));
    cluster.lock().power_cut(lost);
    let plan = cluster.lock().plan();
    for key in &keys {
        let is_served = plan.buckets[client.bucket].chain(vbucket_of(key))[0] != Some(lost);
        let status = client.set(key, b"second", false);
        assert_eq!(status == Some(Status::Success), is_served, "seed {seed}");
    }
    cluster.lock().start(lost);
    for key in &keys {
        client.write_until_durable(key, b"third");
    }
    client.check();
    for index in 0..2 {
        cluster.lock().power_cut(index);
    }
    for index in 0..2 {
        cluster.lock().start(index);
    }
    client.connections.clear();
    for key in &keys {
        assert_eq!(client.get(key).as_deref(), Some(&b"third"[..]), "seed {seed}");
    }
    drop(client);
    let mut cluster = cluster.lock();
    cluster.run(Duration::from_secs(30));
    let outcome = Outcome { ended: cluster.clock.now(), disks: cluster.disks() };
    (0..2).for_each(|index| cluster.power_cut(index));
    outcome
}

#[test]
fn a_seed_decides_every_byte_and_no_durable_write_is_lost() {
    let seeds = platform::seeds::seeds(3);
    let outcomes: Vec<(u64, Outcome)> = seeds.map(|seed| (seed, run(seed))).collect();
    let (seed, first) = &outcomes[0];
    let journal = Path::new("/data/buckets/default/journal");
    assert!(first.disks.keys().any(|(_, path)| path.starts_with(journal)), "there is a journal");
    let again = run(*seed);
    assert_eq!(first.ended, again.ended, "seed {seed}");
    for (place, content) in &first.disks {
        assert!(again.disks.get(place) == Some(content), "{place:?} differs, seed {seed}");
    }
    assert!(*first == again, "seed {seed}");
    assert!(outcomes.iter().skip(1).all(|(_, other)| other.disks != first.disks));
}

/// The connections of replication that a bucket of a node shows, in both directions.
fn replication_of(client: &mut Client, index: usize) -> Vec<String> {
    let statistics = client.connection(index).unwrap().statistics("dcp").unwrap();
    let name = |(name, _): (String, String)| {
        Some(name.strip_prefix("eq_dcpq:")?.strip_suffix(":type")?.to_owned())
    };
    let mut names: Vec<String> = statistics.into_iter().filter_map(name).collect();
    names.sort_unstable();
    names
}

#[test]
fn every_bucket_has_replicas_of_its_own_and_loses_no_durable_write() {
    for seed in platform::seeds::seeds(2) {
        let cluster = Shared(Arc::new(Mutex::new(Cluster::new(seed, &BUCKETS, 2))));
        let mut clients = BUCKETS.map(|bucket| Client::new(&cluster, bucket));
        let keys: Vec<Vec<u8>> = (0..12_u8).map(|number| vec![b'k', number]).collect();
        let write = |clients: &mut [Client; 2], round: &str| {
            for client in clients {
                let value = format!("{round} of {}", client.bucket);
                keys.iter().for_each(|key| client.write_until_durable(key, value.as_bytes()));
            }
        };
        let check = |clients: &mut [Client; 2], round: &str| {
            for client in clients {
                let value = format!("{round} of {}", client.bucket).into_bytes();
                for key in &keys {
                    assert_eq!(client.get(key).as_ref(), Some(&value), "seed {seed}");
                }
            }
        };
        write(&mut clients, "first");
        check(&mut clients, "first");
        for client in &mut clients {
            for index in 0..2 {
                let name = |from: u8, to: u8| {
                    format!("replication:n@10.0.0.{from}->n@10.0.0.{to}:{}", client.bucket)
                };
                let names = [name(1, 2), name(2, 1)];
                assert_eq!(replication_of(client, index), names, "seed {seed}");
            }
        }
        cluster.lock().power_cut(0);
        cluster.lock().start(0);
        write(&mut clients, "second");
        (0..2).for_each(|index| cluster.lock().power_cut(index));
        (0..2).for_each(|index| cluster.lock().start(index));
        clients.iter_mut().for_each(|client| client.connections.clear());
        check(&mut clients, "second");
        drop(clients);
        (0..2).for_each(|index| cluster.lock().power_cut(index));
    }
}
