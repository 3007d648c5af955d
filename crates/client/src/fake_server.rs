//! A server for tests: documents in a map, and failures when they are asked for.
//!
//! It runs in the test's process on a free port of loopback and ends with its value. It knows what
//! our tools send, nothing more.

mod session;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use auth::{Users, UsersConfig};
use platform::{network, threads};
use protocol::{FeatureSet, Status};

use crate::options::ServerAddress;

/// What the server can do.
#[derive(Clone, Debug, Default)]
pub struct FakeOptions {
    /// Answer as classic memcached: HELLO, login and buckets are unknown commands.
    pub is_classic: bool,
    /// Who may log in; `None`: nobody needs to.
    pub login: Option<(String, String)>,
    /// vBuckets of the map that it hands out; 0 for none.
    pub vbucket_count: u16,
}

/// A running server.
pub struct FakeServer {
    address: SocketAddr,
    state: Arc<State>,
    listener: Option<JoinHandle<()>>,
}

/// What tests look at and change while the server runs.
pub(crate) struct State {
    pub(crate) options: FakeOptions,
    pub(crate) users: Option<Users>,
    pub(crate) documents: Mutex<BTreeMap<Vec<u8>, FakeDocument>>,
    /// Answers to the next document commands, instead of carrying them out.
    pub(crate) failures: Mutex<VecDeque<Status>>,
    pub(crate) statistics: Mutex<BTreeMap<String, Vec<(String, String)>>>,
    /// The map; documents of vBuckets that it gives to others are refused.
    pub(crate) config: Mutex<Option<FakeConfig>>,
    /// Features of the last HELLO.
    pub(crate) requested: Mutex<FeatureSet>,
    pub(crate) commands: AtomicU64,
    /// Document commands until connections are closed without an answer.
    pub(crate) commands_max: AtomicU64,
    is_stopping: AtomicBool,
}

/// A stored document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeDocument {
    /// The body.
    pub value: Vec<u8>,
    /// flags:4 expiry:4.
    pub extras: Vec<u8>,
    /// Datatype bits.
    pub datatype: u8,
    /// The vBucket that the client computed.
    pub vbucket: u16,
    /// Whether the request asked for durability.
    pub is_durable: bool,
}

/// The map that the server hands out.
#[derive(Clone, Debug)]
pub(crate) struct FakeConfig {
    pub(crate) json: String,
    /// For each vBucket whether it is served here.
    pub(crate) is_mine: Vec<bool>,
}

impl FakeServer {
    /// Starts a server.
    pub fn start(options: FakeOptions) -> io::Result<Self> {
        let listener = network::listen_standard(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = listener.local_addr()?;
        let users = options.login.as_ref().map(|(user, password)| {
            let users = Users::new(UsersConfig { iterations: 4096, ..UsersConfig::default() });
            users.set_password(user, password.as_bytes());
            users
        });
        let vbucket_count = usize::from(options.vbucket_count);
        let state = Arc::new(State {
            options,
            users,
            documents: Mutex::default(),
            failures: Mutex::default(),
            statistics: Mutex::default(),
            config: Mutex::default(),
            requested: Mutex::default(),
            commands: AtomicU64::new(0),
            commands_max: AtomicU64::new(u64::MAX),
            is_stopping: AtomicBool::new(false),
        });
        let accepting = state.clone();
        let thread = threads::spawn("fake-server", move || accept(&listener, &accepting))?;
        let server = Self { address, state, listener: Some(thread) };
        if vbucket_count > 0 {
            server.set_map(1, &[server.node()], &vec![0; vbucket_count]);
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn node(&self) -> ServerAddress {
        ServerAddress::new(self.address.ip().to_string(), self.address.port())
    }

    /// A copy of all documents, by the name that the client gave them.
    pub fn documents(&self) -> BTreeMap<Vec<u8>, FakeDocument> {
        lock(&self.state.documents).clone()
    }

    /// How many document commands have come.
    pub fn command_count(&self) -> u64 {
        self.state.commands.load(Ordering::Relaxed)
    }

    /// What the last client asked for in HELLO.
    pub fn requested_features(&self) -> FeatureSet {
        *lock(&self.state.requested)
    }

    /// Answers the next document commands with these statuses.
    pub fn fail_next(&self, statuses: impl IntoIterator<Item = Status>) {
        lock(&self.state.failures).extend(statuses);
    }

    /// Closes each connection that sends a document command after this many more.
    pub fn close_after(&self, commands: u64) {
        let last = self.command_count().saturating_add(commands);
        self.state.commands_max.store(last, Ordering::Relaxed);
    }

    /// Sets the answer to STAT with this key.
    pub fn set_statistics(&self, group: &str, statistics: &[(&str, &str)]) {
        let owned = statistics.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        lock(&self.state.statistics).insert(group.to_owned(), owned.collect());
    }

    /// Hands out a new map, in which `owners` has the node's index for each vBucket.
    pub fn set_map(&self, revision: i64, nodes: &[ServerAddress], owners: &[usize]) {
        let me = nodes.iter().position(|node| *node == self.node());
        let extended: Vec<_> = nodes
            .iter()
            .map(|node| serde_json::json!({"hostname": node.host, "services": {"kv": node.port}}))
            .collect();
        let chains: Vec<_> = owners.iter().map(|owner| [*owner]).collect();
        let config = serde_json::json!({
            "rev": revision, "revEpoch": 1, "nodesExt": extended,
            "vBucketServerMap": {"serverList": [], "vBucketMap": chains},
        });
        let is_mine = owners.iter().map(|owner| Some(*owner) == me).collect();
        *lock(&self.state.config) = Some(FakeConfig { json: config.to_string(), is_mine });
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.state.is_stopping.store(true, Ordering::Release);
        // Wakes the accepting thread; when that fails it has ended already.
        drop(network::connect(self.address));
        if let Some(thread) = self.listener.take()
            && thread.join().is_err()
        {
            assert!(std::thread::panicking(), "the fake server has a bug");
        }
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    for stream in listener.incoming() {
        if state.is_stopping.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let state = state.clone();
        // A session ends when its client hangs up. Without a thread the client is hung up on.
        drop(threads::spawn("fake-session", move || session::serve(stream, &state)));
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
