//! A running server and its node.

use std::sync::Arc;

use auth::{Users, UsersConfig};
use management::{Handle, Limits, ManagementServer};

use crate::fake_node::FakeNode;
use crate::http_client::{Answer, HttpClient};

pub(crate) const USER: &str = "Administrator";
pub(crate) const PASSWORD: &str = "pass:word";

pub(crate) struct RestPort {
    pub(crate) node: Arc<FakeNode>,
    pub(crate) handle: Handle,
}

impl RestPort {
    pub(crate) fn start() -> Self {
        Self::start_with(Limits::default())
    }

    pub(crate) fn start_with(limits: Limits) -> Self {
        let users = Users::new(UsersConfig { iterations: 4096, verified_max: 16 });
        users.set_password(USER, PASSWORD.as_bytes());
        let node = Arc::new(FakeNode::new());
        let listener = platform::network::listen_standard(([127, 0, 0, 1], 0).into()).unwrap();
        let handle =
            ManagementServer::start_with(listener, node.clone(), Arc::new(users), limits).unwrap();
        Self { node, handle }
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
