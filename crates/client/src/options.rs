//! How a connection is opened.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use auth::Mechanism;
use auth::client::KeyCache;
use protocol::{Feature, FeatureSet};
use tls::Connector;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// Host name or address.
    pub host: String,
    /// The data port.
    pub port: u16,
}

/// Who logs in. Clones share the keys that SCRAM derives from the password.
#[derive(Clone)]
pub struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) mechanism: Mechanism,
    pub(crate) keys: Arc<Mutex<KeyCache>>,
}

/// What is agreed on before the first request.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Name and version of the program, for the server's log.
    pub agent: String,
    /// What to ask for in HELLO.
    pub features: FeatureSet,
    /// `None`: no login.
    pub login: Option<Login>,
    /// The bucket to select; `None` for the one that the connection starts with.
    pub bucket: Option<String>,
    /// How long to wait for the connection and for each response.
    pub timeout: Duration,
    /// What begins sessions of TLS; plain bytes go over the sockets without it.
    pub tls: Option<Arc<Connector>>,
    /// Speak as a memcached client does: no HELLO, no login, no bucket, vBucket 0.
    pub is_classic: bool,
}

impl ServerAddress {
    /// A host and its data port.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(formatter, "[{}]:{}", self.host, self.port);
        }
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl Login {
    /// A login with SCRAM-SHA512, see [`Login::with_mechanism`].
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        let mechanism = Mechanism::Scram(auth::HashAlgorithm::Sha512);
        let (user, password) = (user.into(), password.into());
        Self { user, password, mechanism, keys: Arc::default() }
    }

    /// The same with another mechanism. `None` when there is no mechanism of that name.
    pub fn with_mechanism(self, name: &str) -> Option<Self> {
        Some(Self { mechanism: Mechanism::from_name(name)?, ..self })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Login({:?} by {})", self.user, self.mechanism.name())
    }
}

impl ConnectionOptions {
    /// For a tool of this name: everything that our tools make use of, nobody logged in.
    pub fn new(agent: impl Into<String>) -> Self {
        const FEATURES: [Feature; 7] = [
            Feature::Xerror,
            Feature::SelectBucket,
            Feature::Json,
            Feature::AltRequestSupport,
            Feature::SyncReplication,
            Feature::Collections,
            Feature::MutationSeqno,
        ];
        Self {
            agent: agent.into(),
            features: FEATURES.into_iter().collect(),
            login: None,
            bucket: None,
            timeout: Duration::from_secs(10),
            tls: None,
            is_classic: false,
        }
    }
}
