//! The certificates of a node, in files: those that it was given, or its own in its data directory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use platform::{Clock, Files};

use crate::acceptor::{Acceptor, InvalidMaterial, Material};
use crate::authority_directory::AuthorityDirectory;
use crate::certificate_facts::CertificateFacts;
use crate::client_auth::ClientCertificates;
use crate::connector::Connector;
use crate::pem_files::{
    CertificateError, certificate_texts, described, make_private_directory, read_file,
    read_if_there, write_private,
};

/// What the authority has signed for the node, with its key.
const NODE_NAME: &str = "node.pem";
/// What is asked of clients.
const CLIENTS_NAME: &str = "client-certificates.json";

/// Where certificates are.
#[derive(Clone, Debug, Default)]
pub struct CertificateSources {
    /// The node's own directory for them.
    pub directory: PathBuf,
    /// Its chain, the node's first, if it was given one.
    pub certificate: Option<PathBuf>,
    /// The key of that.
    pub key: Option<PathBuf>,
    /// The authorities that sign clients' certificates, if not the node's own.
    pub client_authorities: Option<PathBuf>,
    /// The authorities that sign nodes' certificates, where nodes speak TLS with each other.
    pub node_authorities: Option<PathBuf>,
    /// The host that clients are told.
    pub advertised_host: String,
}

/// The certificates of a node. Its files are read when it starts and when somebody says so.
pub struct CertificateStore {
    clock: Clock,
    files: Arc<dyn Files>,
    sources: CertificateSources,
    acceptor: Arc<Acceptor>,
    /// What speaks with other nodes, if that is by TLS.
    connector: Option<Arc<Connector>>,
    /// What is used. Its lock is held while files are read, by who changes them.
    material: Mutex<Material>,
}

impl CertificateStore {
    /// Reads the files. What the node was not given it makes.
    ///
    /// # Errors
    /// A file cannot be read, or not be used.
    pub fn open(
        clock: Clock,
        files: Arc<dyn Files>,
        sources: CertificateSources,
    ) -> Result<Self, CertificateError> {
        let material = read(&clock, &*files, &sources)?;
        let acceptor = Acceptor::new(clock.clone(), &material);
        let acceptor = Arc::new(acceptor.map_err(|error| CertificateError(error.to_string()))?);
        let connector = sources.node_authorities.as_ref();
        let connector = connector.map(|_| Connector::new(clock.clone(), &material)).transpose();
        let connector = connector.map_err(|error| CertificateError(error.to_string()))?;
        let connector = connector.map(Arc::new);
        Ok(Self { clock, files, sources, acceptor, connector, material: Mutex::new(material) })
    }

    /// Whether a node could begin with the files that it is given. Nothing is made, and what a node
    /// makes itself is not looked at.
    ///
    /// # Errors
    /// As those of [`Self::open`].
    pub fn check(
        clock: Clock,
        files: &dyn Files,
        sources: &CertificateSources,
    ) -> Result<(), CertificateError> {
        let read = |path: &Option<PathBuf>| {
            path.as_ref().map_or(Ok(Vec::new()), |path| read_file(files, path))
        };
        let material = Material {
            chain: read(&sources.certificate)?,
            key: read(&sources.key)?,
            client_authorities: read(&sources.client_authorities)?,
            node_authorities: read(&sources.node_authorities)?,
            clients: ClientCertificates::default(),
        };
        if sources.certificate.is_none() {
            return Ok(());
        }
        let checked = Acceptor::new(clock, &material).map(drop);
        checked.map_err(|error| CertificateError(error.to_string()))
    }

    /// What makes sessions with them.
    pub fn acceptor(&self) -> &Arc<Acceptor> {
        &self.acceptor
    }

    /// What begins sessions with other nodes; none where nodes speak plainly.
    pub fn connector(&self) -> Option<&Arc<Connector>> {
        self.connector.as_ref()
    }

    /// Reads the files again. New sessions are made with what they say.
    ///
    /// # Errors
    /// A file cannot be read, or not be used: what was used before is used further.
    pub fn reload(&self) -> Result<(), CertificateError> {
        // Held while the files are read: what is read first does not replace what is read later.
        let mut material = self.material.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = read(&self.clock, &*self.files, &self.sources)?;
        self.use_material(&fresh)?;
        *material = fresh;
        Ok(())
    }

    /// What is asked of clients.
    pub fn clients(&self) -> ClientCertificates {
        self.material.lock().unwrap_or_else(PoisonError::into_inner).clients.clone()
    }

    /// From now on this is asked of clients, also after the next start.
    ///
    /// # Errors
    /// It cannot be used or not be kept: what was asked before is asked further.
    pub fn set_clients(&self, clients: ClientCertificates) -> Result<(), CertificateError> {
        let mut material = self.material.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Material { clients, ..material.clone() };
        // Before the file is written: the next start could not begin with what is refused here.
        Acceptor::new(self.clock.clone(), &fresh)
            .map_err(|error| CertificateError(error.to_string()))?;
        let text = serde_json::to_vec(&fresh.clients).expect("rules are JSON");
        write_private(&*self.files, &self.sources.directory.join(CLIENTS_NAME), &text)?;
        // Kept before it counts: what clients are asked for now is asked after a start, too.
        self.use_material(&fresh)?;
        *material = fresh;
        Ok(())
    }

    /// What clients are to trust, PEM: the last certificate of the node's chain, which is its own
    /// authority's where it has made that itself.
    pub fn trusted_pem(&self) -> String {
        let material = self.material.lock().unwrap_or_else(PoisonError::into_inner);
        certificate_texts(&material.chain).pop().unwrap_or_default()
    }

    /// The same, in words.
    pub fn trusted(&self) -> Option<CertificateFacts> {
        self.chain().into_iter().next_back().map(|(facts, _)| facts)
    }

    /// The node's chain, its own certificate first: in words, and as PEM.
    pub fn chain(&self) -> Vec<(CertificateFacts, String)> {
        let material = self.material.lock().unwrap_or_else(PoisonError::into_inner);
        described(&material.chain)
    }

    /// The authorities that clients' certificates are believed of.
    pub fn client_authorities(&self) -> Vec<(CertificateFacts, String)> {
        let material = self.material.lock().unwrap_or_else(PoisonError::into_inner);
        described(&material.client_authorities)
    }

    /// The authorities that other nodes' certificates are believed of.
    pub fn node_authorities(&self) -> Vec<(CertificateFacts, String)> {
        let material = self.material.lock().unwrap_or_else(PoisonError::into_inner);
        described(&material.node_authorities)
    }

    /// Whether the node has made its certificate itself.
    pub fn is_self_signed(&self) -> bool {
        self.sources.certificate.is_none()
    }

    /// Where a file is that clients can trust.
    pub fn trusted_path(&self) -> PathBuf {
        match &self.sources.certificate {
            Some(path) => path.clone(),
            None => self.sources.directory.join(AuthorityDirectory::CERTIFICATE_NAME),
        }
    }

    fn use_material(&self, material: &Material) -> Result<(), CertificateError> {
        let error = |error: InvalidMaterial| CertificateError(error.to_string());
        // What is refused changes neither of them.
        Acceptor::new(self.clock.clone(), material).map_err(error)?;
        if let Some(connector) = &self.connector {
            connector.replace(material).map_err(error)?;
        }
        self.acceptor.replace(material).map_err(error)
    }
}

fn read(
    clock: &Clock,
    files: &dyn Files,
    sources: &CertificateSources,
) -> Result<Material, CertificateError> {
    let directory = &sources.directory;
    make_private_directory(files, directory)?;
    let (chain, key) = match (&sources.certificate, &sources.key) {
        (Some(certificate), Some(key)) => (read_file(files, certificate)?, read_file(files, key)?),
        _ => {
            let host = &sources.advertised_host;
            let own = AuthorityDirectory::new(clock, files, directory);
            let both = own.issue_to(NODE_NAME, host, &format!("Settee node {host}"))?;
            (both.clone(), both)
        }
    };
    let client_authorities = match &sources.client_authorities {
        Some(path) => read_file(files, path)?,
        None if sources.certificate.is_none() => {
            read_file(files, &directory.join(AuthorityDirectory::CERTIFICATE_NAME))?
        }
        None => Vec::new(),
    };
    let node_authorities = sources.node_authorities.as_ref();
    let node_authorities = node_authorities.map(|path| read_file(files, path)).transpose()?;
    let node_authorities = node_authorities.unwrap_or_default();
    let clients = match read_if_there(files, &directory.join(CLIENTS_NAME))? {
        None => ClientCertificates::default(),
        Some(text) => serde_json::from_slice(&text).map_err(|error| {
            let path = directory.join(CLIENTS_NAME);
            CertificateError(format!("{} is damaged: {error}", path.display()))
        })?,
    };
    Ok(Material { chain, key, client_authorities, clients, node_authorities })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use platform::WallTime;
    use platform::files::RealFiles;

    use super::*;
    use crate::client_auth::{ClientAuthState, NamePath, NameRule};
    use crate::self_signed::Authority;

    fn sources(directory: &Path, host: &str) -> CertificateSources {
        CertificateSources {
            directory: directory.join("certificates"),
            advertised_host: host.to_owned(),
            ..CertificateSources::default()
        }
    }

    fn open(sources: CertificateSources) -> Result<CertificateStore, CertificateError> {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        CertificateStore::open(clock, Arc::new(RealFiles), sources)
    }

    #[test]
    fn what_a_node_has_made_stays_and_is_signed_anew_for_another_host() {
        let root = tempfile::tempdir().unwrap();
        let first = open(sources(root.path(), "one.example")).unwrap();
        let again = open(sources(root.path(), "one.example")).unwrap();
        assert_eq!(first.chain(), again.chain());
        let other = open(sources(root.path(), "two.example")).unwrap();
        assert_eq!(first.trusted_pem(), other.trusted_pem(), "whoever trusts it goes on");
        assert_ne!(first.chain()[0], other.chain()[0]);
        assert_eq!(other.chain()[0].0.hosts.last().unwrap(), "two.example");
    }

    #[test]
    fn nobody_else_reads_the_keys() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let store = open(sources(root.path(), "h")).unwrap();
        store.set_clients(rules()).unwrap();
        let directory = root.path().join("certificates");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o077;
        assert_eq!(mode(&directory), 0);
        for name in RealFiles.list(&directory).unwrap() {
            assert_eq!(mode(&directory.join(&name)), 0, "{name}");
        }
    }

    fn rules() -> ClientCertificates {
        let (prefix, delimiter) = (String::new(), String::new());
        let prefixes = vec![NameRule { path: NamePath::CommonName, prefix, delimiter }];
        ClientCertificates { state: ClientAuthState::Enable, prefixes }
    }

    #[test]
    fn what_is_asked_of_clients_is_kept_and_nonsense_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let store = open(sources(root.path(), "h")).unwrap();
        store.set_clients(rules()).unwrap();
        let none = ClientCertificates { prefixes: Vec::new(), ..rules() };
        assert!(store.set_clients(none).is_err());
        assert_eq!(store.clients(), rules());
        assert_eq!(open(sources(root.path(), "h")).unwrap().clients(), rules());
    }

    #[test]
    fn a_bad_file_is_refused_with_a_reason_and_the_old_one_stays() {
        let root = tempfile::tempdir().unwrap();
        let own = open(sources(root.path(), "h")).unwrap();
        let given = root.path().join("given.pem");
        let node = RealFiles.read_all(&root.path().join("certificates/node.pem")).unwrap();
        RealFiles.replace_all(&given, &node).unwrap();
        let (certificate, key) = (Some(given.clone()), Some(given.clone()));
        let store =
            open(CertificateSources { certificate, key, ..sources(root.path(), "h") }).unwrap();
        let before = store.acceptor().config();
        let authority = Authority::generate("other", WallTime(1_700_000_000_000_000_000)).unwrap();
        let only_key = authority.pem.split_at(authority.pem.find("-----BEGIN PRIVATE").unwrap()).1;
        let mixed = format!("{}{only_key}", own.chain()[0].1);
        for (bad, reason) in [
            ("", "BEGIN CERTIFICATE"),
            ("-----BEGIN CERTIFICATE-----\nAA", "the certificate"),
            (own.chain()[0].1.as_str(), "the key"),
            (mixed.as_str(), "the certificate and its key"),
        ] {
            RealFiles.replace_all(&given, bad.as_bytes()).unwrap();
            let error = store.reload().unwrap_err().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
            assert!(Arc::ptr_eq(&before, &store.acceptor().config()));
        }
        RealFiles.remove(&given).unwrap();
        assert!(store.reload().unwrap_err().to_string().contains("given.pem"));
        RealFiles.replace_all(&given, &node).unwrap();
        store.reload().unwrap();
        assert!(!Arc::ptr_eq(&before, &store.acceptor().config()));
    }
}
