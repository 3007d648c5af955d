//! The replicator's thread and a made-up producer, which speak over a socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use auth::{Exchange, Outcome, Users, UsersConfig};
use bucket::{
    ApplyConfig, Bucket, BucketConfig, BucketType, DamageKind, Persistence, Surroundings,
};
use document::{Cas, Datatype, RevSeqno, Seqno, VbUuid, Vbid, VbucketState};
use executor::{ExecutorPool, PoolOptions, TaskKind, ThreadCounts};
use platform::files::RealFiles;
use platform::network::Network;
use platform::simulated::SimulatedNetwork;
use platform::{Clock, Entropy, Files, OpenMode, network};
use protocol::dcp::encode_failover_log;
use protocol::dcp::{Document, EndReason, Envelope, Marker, MarkerFlags, Message};
use protocol::response::{ResponseHead, encode_with_value};
use protocol::{Feature, Frame, Opcode, Parsed, Status};
use replication::{BucketReplicator, Follow, FollowerLogin, Hub, PeerAddress, Replicator};

use crate::support::{self, Committed, Machine};

const PATIENCE: Duration = Duration::from_secs(60);

/// The producer's side of the connection.
struct Producer {
    socket: TcpStream,
    received: Vec<u8>,
    /// The bucket that the replicator has selected.
    selected: String,
}

/// A stream that was asked for.
#[derive(Clone, Copy)]
struct Asked {
    vbid: Vbid,
    opaque: u32,
    start: Seqno,
}

impl Producer {
    fn accept(listener: &TcpListener) -> Self {
        let (socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, received: Vec::new(), selected: String::new() }
    }

    /// Ends a stream of one document, and has its vBucket go back to nothing when it is asked for
    /// again.
    fn send_back(&mut self, stream: Asked) -> Asked {
        self.say(stream, &[Message::StreamEnd(EndReason::StateChanged)]);
        let asked = self.next_request();
        assert_eq!((asked.vbid, asked.start), (stream.vbid, Seqno(1)));
        let back_to = 0_u64.to_be_bytes();
        self.answer(Opcode::DcpStreamReq, asked.opaque, Status::Rollback, &back_to);
        asked
    }

    /// Grants everything until a stream is asked for.
    fn next_request(&mut self) -> Asked {
        let users =
            Users::new(UsersConfig { iterations: 4096, verified_max: 1, ..UsersConfig::default() });
        users.set_password("user", b"password");
        let mut exchange = Exchange::default();
        loop {
            let mut answer = None;
            let consumed = match Frame::parse(&self.received, usize::MAX) {
                Parsed::Complete { frame, consumed } => {
                    let opcode = Opcode::from_byte(frame.header.opcode).unwrap();
                    if let Ok(Message::StreamRequest(request)) = Message::parse(&frame) {
                        let vbid = Vbid(frame.header.vbucket_or_status);
                        let (opaque, start) = (frame.header.opaque, request.start);
                        self.received.drain(..consumed);
                        return Asked { vbid, opaque, start };
                    }
                    let key = String::from_utf8_lossy(frame.key);
                    if opcode == Opcode::SelectBucket {
                        self.selected = key.to_string();
                    }
                    let outcome = match opcode {
                        Opcode::SaslAuth => Some(exchange.start(&users, &key, frame.value)),
                        Opcode::SaslStep => Some(exchange.step(&users, &key, frame.value)),
                        _ => None,
                    };
                    let collections = Feature::Collections.code().to_be_bytes().to_vec();
                    let (status, value) = match outcome {
                        Some(Outcome::Continue(data)) => (Status::AuthContinue, data),
                        Some(Outcome::Done { server_final, .. }) => (Status::Success, server_final),
                        _ if opcode == Opcode::Hello => (Status::Success, collections),
                        _ => (Status::Success, Vec::new()),
                    };
                    answer = Some((opcode, frame.header.opaque, status, value));
                    consumed
                }
                _ => 0,
            };
            self.received.drain(..consumed);
            match answer {
                Some((opcode, opaque, status, value)) => {
                    self.answer(opcode, opaque, status, &value);
                }
                None => {
                    let mut bytes = [0; 4096];
                    let size = self.socket.read(&mut bytes).unwrap();
                    assert!(size > 0, "the replicator has closed the connection");
                    self.received.extend_from_slice(&bytes[..size]);
                }
            }
        }
    }

    fn answer(&mut self, opcode: Opcode, opaque: u32, status: Status, value: &[u8]) {
        let head = ResponseHead::plain(opcode.byte(), opaque, status, value.len());
        let mut bytes = Vec::new();
        encode_with_value(&mut bytes, &head, value);
        self.socket.write_all(&bytes).unwrap();
    }

    fn grant(&mut self, asked: Asked) {
        let mut value = Vec::new();
        encode_failover_log([(VbUuid(7), Seqno(0))], &mut value);
        self.answer(Opcode::DcpStreamReq, asked.opaque, Status::Success, &value);
    }

    fn say(&mut self, asked: Asked, messages: &[Message<'_>]) {
        let Asked { vbid, opaque, .. } = asked;
        let envelope = Envelope { opaque, vbid, stream_id: None, has_collections: true };
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| message.encode(envelope, &mut bytes));
        self.socket.write_all(&bytes).unwrap();
    }

    /// A snapshot from where the stream begins on, of which one document is left, at `seqno`.
    fn send_document(&mut self, asked: Asked, seqno: u64) {
        let (start, end) = (asked.start, Seqno(seqno));
        let flags = MarkerFlags::MEMORY.with(MarkerFlags::CHECKPOINT);
        let marker = Marker { start, end, flags, ..Marker::default() };
        let document = Document {
            key: b"\0k",
            value: b"v",
            datatype: Datatype::RAW,
            cas: Cas(seqno << 16),
            seqno: Seqno(seqno),
            revision: RevSeqno(seqno),
            flags: [0; 4],
            expiry: 0,
            lock_seconds: 0,
            heat: 0,
        };
        self.say(asked, &[Message::SnapshotMarker(marker), Message::Mutation(document)]);
    }
}

fn wait_for(bucket: &Bucket, vbid: Vbid, seqno: u64) {
    let (clock, (_sender, never)) = (Clock::real(), mpsc::channel::<()>());
    let deadline = clock.now().after(PATIENCE);
    let high = || bucket.on_vbucket(vbid, |vbucket, _, _| vbucket.high_seqno().0);
    while high() != Some(seqno) {
        assert!(clock.now() < deadline, "{vbid} is at {:?} and not at {seqno}", high());
        never.recv_timeout(Duration::from_millis(1)).unwrap_or_default();
    }
}

fn config() -> BucketConfig {
    let apply = ApplyConfig { cycle: Duration::ZERO, applier_count: 1 };
    let (flush_interval, open_files_max) = (Duration::ZERO, 1);
    let config = BucketConfig::named("default");
    BucketConfig { vbucket_count: 2, apply, flush_interval, open_files_max, ..config }
}

fn open_bucket(pool: &ExecutorPool, config: BucketConfig, directory: &Path) -> (Bucket, Arc<Hub>) {
    let surroundings = Surroundings {
        clock: pool.clock().clone(),
        files: Arc::new(RealFiles),
        pool: pool.clone(),
        completions: Arc::<Committed>::default(),
        entropy: Entropy::simulated(1),
    };
    let bucket = Bucket::open(surroundings, config, directory).unwrap();
    assert!(bucket.wait_until_serving(PATIENCE));
    let hub = Hub::new(&bucket);
    bucket.observe_streams(hub.clone());
    (bucket, hub)
}

fn begin_following(following: &BucketReplicator, vbids: &[Vbid], listener: &TcpListener) {
    let port = listener.local_addr().unwrap().port();
    let peer = PeerAddress {
        name: "n_0".to_owned(),
        host: "127.0.0.1".to_owned(),
        port,
        tls_port: None,
        bucket_uuid: None,
    };
    let follow = |&vbid: &Vbid| Follow { vbid, peer: peer.clone() };
    following.follow(vbids.iter().map(follow).collect());
}

fn login() -> FollowerLogin {
    FollowerLogin {
        node: "n_1".to_owned(),
        user: "user".to_owned(),
        password: "password".to_owned(),
        entropy: Entropy::real(),
        connector: None,
    }
}

/// A node that follows others, with so many threads for what waits for files.
struct Node {
    bucket: Bucket,
    replicator: Replicator,
    following: BucketReplicator,
    pool: ExecutorPool,
    directory: Arc<tempfile::TempDir>,
}

impl Node {
    fn start() -> Self {
        let bucket_type = Some(BucketType::Ephemeral);
        let config = BucketConfig { bucket_type, ..config() };
        Self::open(Arc::new(tempfile::tempdir().unwrap()), config, 1)
    }

    fn open(directory: Arc<tempfile::TempDir>, config: BucketConfig, threads: usize) -> Self {
        let aux_io = ThreadCounts { normal: threads, quick: 0 };
        let options = PoolOptions { aux_io, ..PoolOptions::for_cpus(threads) };
        let pool = ExecutorPool::start(Clock::real(), options).unwrap();
        let (bucket, hub) = open_bucket(&pool, config, &directory.path().join("b"));
        let replicator = Replicator::start(login(), pool.clone(), Network::real()).unwrap();
        let following = replicator.replicate(bucket.clone(), hub);
        Self { bucket, replicator, following, pool, directory }
    }

    /// Follows vBuckets of the node at `listener`.
    fn begin_following(&self, vbids: [Vbid; 2], listener: &TcpListener) {
        begin_following(&self.following, &vbids, listener);
    }

    /// The same; the node grants the streams and sends a document.
    fn follow(&self, vbids: [Vbid; 2], listener: &TcpListener) -> (Producer, [Asked; 2]) {
        for vbid in vbids {
            self.bucket.set_vbucket_state(vbid, VbucketState::Replica, None).unwrap();
        }
        self.begin_following(vbids, listener);
        let mut producer = Producer::accept(listener);
        let streams = vbids.map(|vbid| {
            let asked = producer.next_request();
            assert_eq!((asked.vbid, asked.start), (vbid, Seqno(0)));
            producer.grant(asked);
            producer.send_document(asked, 1);
            wait_for(&self.bucket, vbid, 1);
            asked
        });
        (producer, streams)
    }

    fn stop(&self) {
        self.replicator.stop();
        assert_eq!(self.bucket.shut_down(), Ok(()));
        self.pool.shutdown();
    }
}

/// No thread is there for what waits for files, until somebody says so.
fn hold_files_up(node: &Node) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let block = move || released.recv().unwrap_or_default();
    node.pool.add(node.bucket.task_owner(), TaskKind::AuxIo, block).unwrap();
    release
}

/// Waits until what has waited for files is done.
fn wait_for_files(node: &Node) {
    let (tell, told) = mpsc::channel();
    let say = move || tell.send(()).unwrap();
    node.pool.add(node.bucket.task_owner(), TaskKind::AuxIo, say).unwrap();
    told.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn other_streams_go_on_while_a_replica_goes_back() {
    let node = Node::start();
    let listener = network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
    let (mut producer, streams) = node.follow([Vbid(0), Vbid(1)], &listener);
    let bucket = &node.bucket;
    let release = hold_files_up(&node);
    let asked = producer.send_back(streams[0]);
    for seqno in 2..5 {
        producer.send_document(streams[1], seqno);
        wait_for(bucket, Vbid(1), seqno);
    }
    wait_for(bucket, Vbid(0), 1);
    release.send(()).unwrap();
    let again = producer.next_request();
    assert_eq!((again.vbid, again.opaque, again.start), (Vbid(0), asked.opaque, Seqno(0)));
    wait_for(bucket, Vbid(0), 0);
    producer.grant(again);
    producer.send_document(again, 1);
    wait_for(bucket, Vbid(0), 1);
    node.stop();
}

#[test]
fn a_replica_does_not_go_back_because_of_a_node_that_it_follows_no_more() {
    let node = Node::start();
    let listener = network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
    let (mut producer, streams) = node.follow([Vbid(0), Vbid(1)], &listener);
    let bucket = &node.bucket;
    let release = hold_files_up(&node);
    producer.send_back(streams[0]);
    wait_until("it is told to go back", || node.pool.queued_count(TaskKind::AuxIo) > 0);
    // By the next map the node is gone, and somebody asks how far its replicas are.
    node.following.follow(Vec::new()).wait();
    wait_for(bucket, Vbid(0), 1);
    release.send(()).unwrap();
    wait_for_files(&node);
    wait_for(bucket, Vbid(0), 1);
    node.stop();
}

/// Overwrites the newest file of vBucket 0.
fn overwrite_file(directory: &tempfile::TempDir) {
    let bucket = directory.path().join("b");
    let files = RealFiles.list(&bucket).unwrap();
    let newest = files.iter().filter(|name| is_data_of_0(name)).max().unwrap();
    let path = bucket.join(newest);
    let size = RealFiles.open(&path, OpenMode::Read).unwrap().size().unwrap();
    let file = RealFiles.open(&path, OpenMode::ReadWrite).unwrap();
    file.write_at(&vec![0xee; usize::try_from(size).unwrap()], 0).unwrap();
}

fn is_data_of_0(name: &str) -> bool {
    name.strip_prefix("0.couch.").is_some_and(|revision| revision.parse::<u64>().is_ok())
}

fn set_aside_count(directory: &tempfile::TempDir) -> usize {
    let files = RealFiles.list(&directory.path().join("b")).unwrap();
    files.iter().filter(|name| name.ends_with(".damaged")).count()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let (clock, (_sender, never)) = (Clock::real(), mpsc::channel::<()>());
    let deadline = clock.now().after(PATIENCE);
    while !is_so() {
        assert!(clock.now() < deadline, "{what}");
        never.recv_timeout(Duration::from_millis(1)).unwrap_or_default();
    }
}

#[test]
fn a_damaged_replica_is_built_anew_from_its_active_without_any_person() {
    for persistence in [config().persistence, Persistence::Files] {
        for threads in [1, 4] {
            let config = BucketConfig { persistence, ..config() };
            let node = Node::open(Arc::new(tempfile::tempdir().unwrap()), config.clone(), threads);
            let listener = network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
            let vbids = [Vbid(0), Vbid(1)];
            let (mut producer, streams) = node.follow(vbids, &listener);
            let applied = |bucket: &Bucket| {
                bucket.on_vbucket(Vbid(0), |vbucket, _, _| vbucket.applied_seqno().0)
            };
            wait_until("the file has the document", || applied(&node.bucket) == Some(1));
            // While it runs.
            overwrite_file(&node.directory);
            producer.send_document(streams[0], 2);
            let again = producer.next_request();
            assert_eq!((again.vbid, again.start), (Vbid(0), Seqno(0)));
            assert_eq!(set_aside_count(&node.directory), 1);
            producer.grant(again);
            producer.send_document(again, 3);
            wait_until("the new file has the document", || applied(&node.bucket) == Some(3));
            assert!(node.bucket.damaged_vbuckets().is_empty());
            producer.send_document(streams[1], 2);
            wait_for(&node.bucket, Vbid(1), 2);
            // Before it runs.
            node.stop();
            let directory = Arc::clone(&node.directory);
            drop((node, producer));
            overwrite_file(&directory);
            let node = Node::open(directory, config, threads);
            assert_eq!(node.bucket.damaged_vbuckets()[0].kind, DamageKind::OutOfService);
            assert_eq!(set_aside_count(&node.directory), 1, "nobody has its documents yet");
            node.begin_following(vbids, &listener);
            let mut producer = Producer::accept(&listener);
            let asked = [producer.next_request(), producer.next_request()];
            let again = asked.into_iter().find(|asked| asked.vbid == Vbid(0)).unwrap();
            assert_eq!((again.start, set_aside_count(&node.directory)), (Seqno(0), 2));
            producer.grant(again);
            producer.send_document(again, 4);
            wait_until("the new file has the document", || applied(&node.bucket) == Some(4));
            node.stop();
        }
    }
}

#[test]
fn a_damaged_replica_is_not_built_anew_because_of_a_node_that_it_follows_no_more() {
    let node = Node::open(Arc::new(tempfile::tempdir().unwrap()), config(), 1);
    let listener = network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
    let vbids = [Vbid(0), Vbid(1)];
    let (producer, _) = node.follow(vbids, &listener);
    node.stop();
    let directory = Arc::clone(&node.directory);
    drop((node, producer));
    overwrite_file(&directory);
    let node = Node::open(directory, config(), 1);
    let release = hold_files_up(&node);
    node.begin_following(vbids, &listener);
    assert_eq!(Producer::accept(&listener).next_request().vbid, Vbid(1));
    wait_until("it is to begin anew", || node.pool.queued_count(TaskKind::AuxIo) > 0);
    // By the next map the node is gone, and what is here may be the last of it.
    node.following.follow(Vec::new()).wait();
    release.send(()).unwrap();
    wait_for_files(&node);
    assert_eq!(node.bucket.damaged_vbuckets()[0].kind, DamageKind::OutOfService);
    assert_eq!(set_aside_count(&node.directory), 0);
    node.stop();
}

/// The loop had been kept from looking for so long that it took the node for silent, whose messages
/// it had not read yet.
#[test]
fn a_node_is_not_silent_whose_messages_have_not_been_read() {
    let mut machine = Machine::with(support::config());
    let network = SimulatedNetwork::new(machine.clock.clone(), 1);
    let host = |last| Network::from(network.host([10, 0, 0, last].into()));
    let listener = host(1).listen(([10, 0, 0, 1], 1).into()).unwrap();
    let pool = machine.driver.pool().clone();
    let replicator = Replicator::start(login(), pool, host(2)).unwrap();
    let following = replicator.replicate(machine.bucket.clone(), machine.hub.clone());
    let (name, host) = ("n_0".to_owned(), "10.0.0.1".to_owned());
    let peer = PeerAddress { name, host, port: 1, tls_port: None, bucket_uuid: None };
    following.follow(vec![Follow { vbid: Vbid(0), peer }]);
    let mut socket = loop {
        machine.run();
        if let Ok(socket) = listener.accept() {
            break socket;
        }
    };
    // The beginning of an answer.
    socket.write_all(&[0x81]).unwrap();
    machine.clock.advance(Duration::from_secs(21));
    machine.driver.advance(Duration::from_secs(1), 1_000);
    assert!(listener.accept().is_err(), "the connection stays");
    machine.clock.advance(Duration::from_secs(21));
    machine.driver.advance(Duration::from_secs(1), 1_000);
    assert!(listener.accept().is_ok(), "nothing more has come: there is another one");
    replicator.stop();
}

#[test]
fn each_bucket_follows_a_node_over_a_connection_of_its_own() {
    let node = Node::start();
    let config = BucketConfig {
        name: "other".to_owned(),
        bucket_type: Some(BucketType::Ephemeral),
        ..config()
    };
    let (other, other_hub) = open_bucket(&node.pool, config, &node.directory.path().join("other"));
    let other_following = node.replicator.replicate(other.clone(), other_hub.clone());
    let listener = network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
    let buckets = [("default", &node.bucket, 5), ("other", &other, 1)];
    for (_, bucket, _) in buckets {
        bucket.set_vbucket_state(Vbid(0), VbucketState::Replica, None).unwrap();
    }
    for following in [&node.following, &other_following] {
        begin_following(following, &[Vbid(0)], &listener);
    }
    let mut producers = [Producer::accept(&listener), Producer::accept(&listener)];
    let asked: Vec<Asked> = producers.iter_mut().map(Producer::next_request).collect();
    for (name, bucket, seqno) in buckets {
        let index = producers.iter().position(|producer| producer.selected == name).unwrap();
        producers[index].grant(asked[index]);
        producers[index].send_document(asked[index], seqno);
        wait_for(bucket, Vbid(0), seqno);
    }
    wait_for(&node.bucket, Vbid(0), 5);
    wait_until("the bucket shows its own connection", || {
        let connections = other_hub.consumer_status();
        connections.len() == 1 && connections[0].connection == "replication:n_0->n_1:other"
    });
    // What one bucket does not follow any more the other still does.
    node.following.follow(Vec::new());
    producers.iter_mut().zip(&asked).for_each(|(producer, &asked)| {
        if producer.selected == "other" {
            producer.send_document(asked, 2);
        }
    });
    wait_for(&other, Vbid(0), 2);
    node.replicator.stop();
    assert_eq!(other.shut_down(), Ok(()));
    node.stop();
}
