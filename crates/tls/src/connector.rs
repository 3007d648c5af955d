//! Sessions that a node begins with other nodes. Each verifies who the other is.

use std::fmt::{self, Debug, Formatter};
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use platform::Clock;
use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, ConfigBuilder, StreamOwned, WantsVerifier};

use crate::acceptor::{
    InvalidMaterial, Material, NODE_AUTHORITIES, WallClock, authorities, certificates,
};
use crate::anyone::Anyone;
use crate::stream::TlsStream;

/// Begins sessions with nodes whose certificates are of given authorities.
pub struct Connector {
    clock: Clock,
    current: Mutex<Arc<Current>>,
}

struct Current {
    config: Arc<ClientConfig>,
    authorities: Vec<CertificateDer<'static>>,
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
}

impl Connector {
    /// One that believes the `node_authorities` of `material` and shows its chain to who asks; an
    /// empty chain is none.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn new(clock: Clock, material: &Material) -> Result<Self, InvalidMaterial> {
        let current = Current::of(&clock, material)?;
        Ok(Self { clock, current: Mutex::new(Arc::new(current)) })
    }

    /// One that begins sessions with whoever answers, and shows the chain of `material` to who
    /// asks: nobody listens in between, unless it is the one who answers.
    ///
    /// # Errors
    /// What is shown cannot be used.
    pub fn with_anyone(clock: Clock, material: &Material) -> Result<Self, InvalidMaterial> {
        let provider = Arc::new(ring::default_provider());
        let builder = config_builder(&clock, Arc::clone(&provider))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)));
        let current = Current::showing(material, builder, Vec::new())?;
        Ok(Self { clock, current: Mutex::new(Arc::new(current)) })
    }

    /// From now on sessions are begun with `material`. Those that are on go on as they are.
    ///
    /// # Errors
    /// It cannot be used: what was used before is used further.
    pub fn replace(&self, material: &Material) -> Result<(), InvalidMaterial> {
        let current = Arc::new(Current::of(&self.clock, material)?);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(())
    }

    /// A session on `socket`, which never blocks and leads to the node at `host`. Nothing is sent
    /// before it is flushed.
    ///
    /// # Errors
    /// Nobody can be called so.
    pub fn connect<S: Read + Write>(&self, host: &str, socket: S) -> io::Result<TlsStream<S>> {
        Ok(TlsStream::new(self.session(host)?.into(), socket))
    }

    /// The same on a socket that blocks; so does what is returned.
    ///
    /// # Errors
    /// As [`Connector::connect`].
    pub fn connect_blocking<S: Read + Write + Debug + Send>(
        &self,
        host: &str,
        socket: S,
    ) -> io::Result<impl Read + Write + Debug + Send + use<S>> {
        Ok(StreamOwned::new(self.session(host)?, socket))
    }

    /// The authorities that are believed, for whoever makes sessions otherwise.
    pub fn authorities(&self) -> Vec<CertificateDer<'static>> {
        self.current().authorities.clone()
    }

    /// What is shown to who asks: a chain and its key (PEM); none where the chain is empty.
    pub fn identity(&self) -> (Vec<CertificateDer<'static>>, Vec<u8>) {
        let current = self.current();
        (current.chain.clone(), current.key.clone())
    }

    fn session(&self, host: &str) -> io::Result<ClientConnection> {
        let config = Arc::clone(&self.current().config);
        ClientConnection::new(config, name_of(host)?).map_err(io::Error::other)
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Debug for Connector {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let current = self.current();
        let counts = (current.authorities.len(), current.chain.len());
        write!(formatter, "Connector({} authorities, a chain of {})", counts.0, counts.1)
    }
}

/// What the certificate of the node at `host` is for. IPv6 addresses may stand in brackets.
fn name_of(host: &str) -> io::Result<ServerName<'static>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(ServerName::IpAddress(address.into()));
    }
    ServerName::try_from(bare.to_owned()).map_err(|_| {
        let why = format!("no certificate is for {host:?}: the map says no host name there");
        io::Error::new(ErrorKind::InvalidInput, why)
    })
}

fn config_builder(
    clock: &Clock,
    provider: Arc<CryptoProvider>,
) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, InvalidMaterial> {
    let time: Arc<dyn TimeProvider> = Arc::new(WallClock(clock.clone()));
    ClientConfig::builder_with_details(provider, time)
        .with_safe_default_protocol_versions()
        .map_err(|error| InvalidMaterial { what: "TLS", why: error.to_string() })
}

impl Current {
    fn of(clock: &Clock, material: &Material) -> Result<Self, InvalidMaterial> {
        let believed = certificates(NODE_AUTHORITIES, &material.node_authorities)?;
        let roots = authorities(NODE_AUTHORITIES, &material.node_authorities)?;
        let provider = Arc::new(ring::default_provider());
        let builder = config_builder(clock, provider)?.with_root_certificates(roots);
        Self::showing(material, builder, believed)
    }

    /// What shows the chain of `material` to who asks; an empty one is none.
    fn showing(
        material: &Material,
        builder: ConfigBuilder<ClientConfig, WantsClientCert>,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Result<Self, InvalidMaterial> {
        let invalid = |what, why: String| InvalidMaterial { what, why };
        let mut chain = Vec::new();
        let mut config = if material.chain.is_empty() {
            builder.with_no_client_auth()
        } else {
            chain = certificates("the certificate", &material.chain)?;
            let key = PrivateKeyDer::from_pem_slice(&material.key)
                .map_err(|error| invalid("the key", error.to_string()))?;
            builder
                .with_client_auth_cert(chain.clone(), key)
                .map_err(|error| invalid("the certificate and its key", error.to_string()))?
        };
        // Every session looks at the certificate: nodes connect seldom.
        config.resumption = Resumption::disabled();
        let key = material.key.clone();
        Ok(Self { config: Arc::new(config), authorities, chain, key })
    }
}

#[cfg(test)]
mod tests {
    use platform::WallTime;

    use super::*;
    use crate::acceptor::{Acceptor, Claim};
    use crate::client_auth::{ClientAuthState, ClientCertificates, NamePath, NameRule};
    use crate::self_signed::{Authority, hosts_of};
    use crate::stream::Handshake;
    use crate::stream::tests::{End, connection};

    const NOW: WallTime = WallTime(1_700_000_000_000_000_000);
    const TURNS_MAX: usize = 100;

    fn authority(name: &str) -> Authority {
        Authority::generate(name, NOW).unwrap()
    }

    /// What a node of an authority shows that is reached at `host`.
    fn material(of: &Authority, host: &str, believed: &Authority) -> Material {
        let pem = of.issue(hosts_of(host), NOW).unwrap().into_bytes();
        let node_authorities = believed.pem.clone().into_bytes();
        Material { chain: pem.clone(), key: pem, node_authorities, ..Material::default() }
    }

    fn go_on(stream: &mut TlsStream<End>) -> io::Result<bool> {
        stream.flush()?;
        Ok(stream.shake_hands()? == Handshake::Done)
    }

    /// Has two nodes begin a session; what the first one says of it that ends it, else the other.
    fn begin(
        connector: &Connector,
        acceptor: &Acceptor,
        host: &str,
    ) -> Result<(TlsStream<End>, TlsStream<End>), String> {
        let (ours, theirs) = connection(usize::MAX, usize::MAX);
        let mut begun = connector.connect(host, ours).unwrap();
        let mut accepted = acceptor.accept(theirs).unwrap();
        for _ in 0..TURNS_MAX {
            let is_begun = go_on(&mut begun).map_err(|error| format!("connector: {error}"))?;
            let is_accepted = go_on(&mut accepted).map_err(|error| format!("acceptor: {error}"))?;
            if is_begun && is_accepted {
                return Ok((begun, accepted));
            }
        }
        panic!("the handshake does not end");
    }

    #[test]
    fn a_node_is_believed_that_has_a_certificate_for_its_host_which_counts_now() {
        let (ours, other) = (authority("ours"), authority("other"));
        let late = WallTime(NOW.0 + 20 * 365 * 86_400 * 1_000_000_000);
        for (signer, host, now, refusal) in [
            (&ours, "n1.example", NOW, None),
            (&ours, "10.0.0.1", NOW, None),
            (&ours, "[fe80::7]", NOW, None),
            (&other, "n1.example", NOW, Some("UnknownIssuer")),
            (&ours, "n2.example", NOW, Some("not valid for name")),
            (&ours, "n1.example", late, Some("expired")),
        ] {
            let named = if host == "n2.example" { "n1.example" } else { host };
            let shown = material(signer, named, &ours);
            let acceptor = Acceptor::new(Clock::simulated(NOW), &shown).unwrap();
            let connector = Connector::new(Clock::simulated(now), &material(&ours, "x", &ours));
            let result = begin(&connector.unwrap(), &acceptor, host);
            match (result, refusal) {
                (Ok((mut begun, mut accepted)), None) => {
                    begun.write_all(b"hello").unwrap();
                    let mut target = [0; 9];
                    assert_eq!(accepted.read(&mut target).unwrap().bytes, 5);
                }
                (Err(error), Some(why)) => {
                    let is_clear = error.contains("--tls-node-ca") && error.contains(why);
                    assert!(is_clear && error.starts_with("connector: "), "{host}: {error}");
                }
                (result, refusal) => panic!("{host}: {:?}, not {refusal:?}", result.err()),
            }
        }
    }

    #[test]
    fn who_does_not_care_begins_a_session_with_anyone() {
        let (ours, other) = (authority("ours"), authority("other"));
        let shown = material(&other, "n1.example", &ours);
        let acceptor = Acceptor::new(Clock::simulated(NOW), &shown).unwrap();
        let nothing = Material::default();
        let connector = Connector::with_anyone(Clock::simulated(NOW), &nothing).unwrap();
        assert!(begin(&connector, &acceptor, "n2.example").is_ok());
    }

    #[test]
    fn sessions_are_begun_with_what_was_read_last() {
        let (ours, other) = (authority("ours"), authority("other"));
        let shown = material(&ours, "h", &ours);
        let acceptor = Acceptor::new(Clock::simulated(NOW), &shown).unwrap();
        let believing = |authority| material(&ours, "x", authority);
        let connector = Connector::new(Clock::simulated(NOW), &believing(&other)).unwrap();
        assert!(begin(&connector, &acceptor, "h").is_err());
        connector.replace(&believing(&ours)).unwrap();
        assert!(begin(&connector, &acceptor, "h").is_ok());
        let nonsense = Material { node_authorities: b"?".to_vec(), ..believing(&ours) };
        assert!(connector.replace(&nonsense).is_err());
        assert!(begin(&connector, &acceptor, "h").is_ok(), "it goes on as before");
    }

    #[test]
    fn where_clients_show_certificates_nodes_show_theirs_and_are_no_users() {
        let (ours, of_clients) = (authority("ours"), authority("of clients"));
        let (prefix, delimiter) = (String::new(), String::new());
        let rule = NameRule { path: NamePath::CommonName, prefix, delimiter };
        for state in [ClientAuthState::Enable, ClientAuthState::Mandatory] {
            let clients = ClientCertificates { state, prefixes: vec![rule.clone()] };
            let client_authorities = of_clients.pem.clone().into_bytes();
            let shown = material(&ours, "h", &ours);
            let shown = Material { clients, client_authorities, ..shown };
            let acceptor = Acceptor::new(Clock::simulated(NOW), &shown).unwrap();
            let client = |of: &Authority, pem: String| {
                let (chain, key) = (pem.clone().into_bytes(), pem.into_bytes());
                let material = Material { chain, key, ..material(of, "x", &ours) };
                Connector::new(Clock::simulated(NOW), &material).unwrap()
            };
            let node = client(&ours, ours.issue(hosts_of("n2"), NOW).unwrap());
            let user = client(&ours, of_clients.issue_to_client("bob", NOW).unwrap());
            let false_user = client(&ours, ours.issue_to_client("bob", NOW).unwrap());
            let pem = of_clients.issue_to_client("ann", NOW).unwrap().into_bytes();
            let material = Material { chain: pem.clone(), key: pem, ..Material::default() };
            let careless = Connector::with_anyone(Clock::simulated(NOW), &material).unwrap();
            for (connector, claim) in [
                (node, Ok(Claim::None)),
                (user, Ok(Claim::User("bob".to_owned()))),
                (careless, Ok(Claim::User("ann".to_owned()))),
                (false_user, Err(())),
            ] {
                let begun = begin(&connector, &acceptor, "h").map_err(drop);
                let found = begun.map(|(_, stream)| acceptor.claim_of(stream.peer_chain()));
                assert_eq!(found, claim, "{state:?}");
            }
        }
    }
}
