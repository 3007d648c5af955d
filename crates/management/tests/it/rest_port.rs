//! A running server and its node.

use std::net::SocketAddr;
use std::sync::Arc;

use auth::{Users, UsersConfig};
use management::{Handle, Limits, ManagementServer, Ports};

use crate::fake_node::{FakeBucket, FakeNode};
use crate::http_client::{Answer, HttpClient};

pub(crate) const USER: &str = "Administrator";
pub(crate) const PASSWORD: &str = "pass:word";

pub(crate) struct RestPort {
    pub(crate) node: Arc<FakeNode>,
    /// Its first bucket.
    pub(crate) bucket: Arc<FakeBucket>,
    pub(crate) handle: Handle,
    /// Where nobody carries out statements.
    pub(crate) query_stub: SocketAddr,
}

impl RestPort {
    pub(crate) fn start() -> Self {
        Self::start_with(Limits::default())
    }

    pub(crate) fn start_with(limits: Limits) -> Self {
        Self::start_hashing(limits, 4096)
    }

    /// The same, where a password is hashed so often before it is compared.
    pub(crate) fn start_hashing(limits: Limits, iterations: u32) -> Self {
        let users =
            Users::new(UsersConfig { iterations, verified_max: 16, ..UsersConfig::default() });
        users.set_password(USER, PASSWORD.as_bytes());
        let users = Arc::new(users);
        let node = Arc::new(FakeNode::new(Arc::clone(&users)));
        let listen = || platform::network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
        let stub = listen();
        let query_stub = stub.local_addr().unwrap();
        let ports = Ports { plain: listen(), tls: None, query_stub: Some(stub) };
        let handle = ManagementServer::start_with(ports, node.clone(), users, limits).unwrap();
        let bucket = Arc::clone(&node.buckets.lock().unwrap()[0]);
        Self { node, bucket, handle, query_stub }
    }

    pub(crate) fn connect(&self) -> HttpClient {
        HttpClient::connect(self.handle.address())
    }

    /// One request of the known user with a body, on a connection of its own.
    pub(crate) fn ask_with(&self, method: &str, target: &str, body: &str) -> Answer {
        self.connect().ask(method, target, body)
    }

    /// One request of the known user, on a connection of its own.
    pub(crate) fn ask(&self, method: &str, target: &str) -> Answer {
        self.connect().ask(method, target, "")
    }
}
