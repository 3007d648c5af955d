//! The certificates of a node, in files: those that it was given, or its own in its data directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use platform::{Clock, Files, WallTime};

use crate::acceptor::{Acceptor, CLIENT_AUTHORITIES, InvalidMaterial, Material, authorities};
use crate::authority_directory::{AuthorityDirectory, Issued};
use crate::certificate_facts::CertificateFacts;
use crate::client_auth::ClientCertificates;
use crate::connector::Connector;
use crate::pem_files::{
    CertificateError, certificate_texts, described, make_private_directory, read_file,
    read_if_there, replace_private,
};
use crate::self_signed::{Authority, IssueError, hosts_of};

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

    /// Whether a node could begin with the files that it is given, with the authority that it has
    /// made, and with what it has kept of what is asked of clients. Nothing is made.
    ///
    /// # Errors
    /// As those of [`Self::open`].
    pub fn check(
        clock: Clock,
        files: &dyn Files,
        sources: &CertificateSources,
    ) -> Result<(), CertificateError> {
        let material = read_with(files, sources, || Own::look(&clock, files, sources))?;
        let error = |error: InvalidMaterial| CertificateError(error.to_string());
        Acceptor::new(clock.clone(), &material).map_err(error)?;
        if sources.node_authorities.is_some() {
            Connector::new(clock, &material).map_err(error)?;
        }
        Ok(())
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
    /// A file cannot be read, or not be used, or no client would believe what is new: what was used
    /// before is used further.
    pub fn reload(&self) -> Result<(), CertificateError> {
        // Held while the files are read: what is read first does not replace what is read later.
        let mut material = self.material.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = read(&self.clock, &*self.files, &self.sources)?;
        // A start goes on with one that no client believes: a node that is there can be mended. In
        // the place of one that they do believe it is a mistake.
        if fresh.chain != material.chain {
            refuse_fault(&fresh, self.clock.wall_time())?;
        }
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
        replace_private(&*self.files, &self.sources.directory.join(CLIENTS_NAME), &text)?;
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

    /// What should be done something about of what clients are shown: it ends soon, or nobody
    /// believes it.
    pub fn warning(&self) -> Option<String> {
        let (shown, _) = self.chain().into_iter().next()?;
        shown.warning_at(self.clock.wall_time())
    }

    /// The time by which certificates end.
    pub fn now(&self) -> WallTime {
        self.clock.wall_time()
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

/// What a node shows that was given nothing to show.
struct Own {
    /// The chain, and its key.
    pem: Vec<u8>,
    /// Who has signed it.
    authority: Vec<u8>,
}

impl Own {
    /// What the node has made, or makes now.
    fn of_node(
        clock: &Clock,
        files: &dyn Files,
        sources: &CertificateSources,
    ) -> Result<Self, CertificateError> {
        let (directory, host) = (&sources.directory, &sources.advertised_host);
        let own = AuthorityDirectory::new(clock, files, directory);
        let pem = own.issue_to(NODE_NAME, host, &format!("Settee node {host}"))?;
        let authority = read_file(files, &directory.join(AuthorityDirectory::CERTIFICATE_NAME))?;
        Ok(Self { pem, authority })
    }

    /// What the node would show, with nothing written.
    fn look(
        clock: &Clock,
        files: &dyn Files,
        sources: &CertificateSources,
    ) -> Result<Self, CertificateError> {
        let own = AuthorityDirectory::new(clock, files, &sources.directory);
        match own.look(NODE_NAME, &sources.advertised_host)? {
            Some(Issued { pem, authority }) => Ok(Self { pem, authority: authority.into_bytes() }),
            None => Self::of_nobody(clock, sources),
        }
    }

    /// As a node makes it, and in no file.
    fn of_nobody(clock: &Clock, sources: &CertificateSources) -> Result<Self, CertificateError> {
        let error = |error: IssueError| CertificateError(error.to_string());
        let now = clock.wall_time();
        let authority = Authority::generate("nobody", now).map_err(error)?;
        let pem = authority.issue(hosts_of(&sources.advertised_host), now).map_err(error)?;
        Ok(Self { pem: pem.into_bytes(), authority: authority.shown().into_bytes() })
    }
}

fn read(
    clock: &Clock,
    files: &dyn Files,
    sources: &CertificateSources,
) -> Result<Material, CertificateError> {
    make_private_directory(files, &sources.directory)?;
    read_with(files, sources, || Own::of_node(clock, files, sources))
}

/// Refuses a chain that no client would believe.
fn refuse_fault(material: &Material, now: WallTime) -> Result<(), CertificateError> {
    let shown = described(&material.chain).into_iter().next();
    match shown.and_then(|(shown, _)| shown.fault_at(now)) {
        Some(fault) => Err(CertificateError(format!("the certificate: {fault}"))),
        None => Ok(()),
    }
}

/// Reads the files that there are; `own` is shown where no certificate was given.
fn read_with(
    files: &dyn Files,
    sources: &CertificateSources,
    own: impl FnOnce() -> Result<Own, CertificateError>,
) -> Result<Material, CertificateError> {
    let read_given = |path: &Option<PathBuf>| {
        path.as_ref().map(|path| read_file(files, path)).transpose().map(Option::unwrap_or_default)
    };
    let (chain, key, own_authority) = match &sources.certificate {
        Some(certificate) => {
            (read_file(files, certificate)?, read_given(&sources.key)?, Vec::new())
        }
        None => {
            let Own { pem, authority } = own()?;
            (pem.clone(), pem, authority)
        }
    };
    let client_authorities = match &sources.client_authorities {
        Some(path) => read_client_authorities(files, path)?,
        None => own_authority,
    };
    let node_authorities = read_given(&sources.node_authorities)?;
    let path = sources.directory.join(CLIENTS_NAME);
    let clients = match read_if_there(files, &path)? {
        None => ClientCertificates::default(),
        Some(text) => serde_json::from_slice(&text)
            .map_err(|error| CertificateError(format!("{} is damaged: {error}", path.display())))?,
    };
    Ok(Material { chain, key, client_authorities, clients, node_authorities })
}

/// Also while no client is asked for a certificate: whoever asks later is not told then that the
/// file was of no use all along.
fn read_client_authorities(files: &dyn Files, path: &Path) -> Result<Vec<u8>, CertificateError> {
    let pem = read_file(files, path)?;
    authorities(CLIENT_AUTHORITIES, &pem).map_err(|InvalidMaterial { what, why }| {
        let shown = path.display();
        CertificateError(format!("--tls-client-ca {shown}: {why}; write {what} into it (PEM)"))
    })?;
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use platform::files::RealFiles;
    use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

    use super::*;
    use crate::client_auth::{ClientAuthState, NamePath, NameRule};

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
    fn a_start_does_not_ask_clients_for_what_the_disk_refused() {
        let files = SimulatedFiles::new();
        let open = || {
            let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
            let sources = sources(Path::new("/data"), "h");
            CertificateStore::open(clock, Arc::new(files.clone()), sources).unwrap()
        };
        let fail = |call| {
            let call = Some(call);
            files.fail(Fault { call, number: 1, error: FaultError::Io, from_then_on: false });
        };
        let mandatory = ClientCertificates { state: ClientAuthState::Mandatory, ..rules() };
        for kept in [ClientCertificates::default(), rules()] {
            let store = open();
            store.set_clients(kept.clone()).unwrap();
            fail(Call::SyncDirectory);
            assert!(store.set_clients(mandatory.clone()).is_err());
            assert_eq!(store.clients(), kept, "what was asked is asked further");
            assert_eq!(open().clients(), kept, "and after a start");
        }
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

    #[test]
    fn what_no_client_believes_does_not_come_into_the_place_of_what_they_do() {
        let now = WallTime(1_700_000_000_000_000_000);
        let long_ago = WallTime(1_000_000_000_000_000_000);
        let root = tempfile::tempdir().unwrap();
        let authority = Authority::generate("own", now).unwrap();
        let issue = |at| authority.issue(hosts_of("h"), at).unwrap();
        let given = root.path().join("given.pem");
        let keep = |pem: &str| RealFiles.replace_all(&given, pem.as_bytes()).unwrap();
        let open = || {
            let (certificate, key) = (Some(given.clone()), Some(given.clone()));
            open(CertificateSources { certificate, key, ..sources(root.path(), "h") }).unwrap()
        };
        keep(&issue(now));
        let store = open();
        assert_eq!(store.warning(), None);
        let before = store.acceptor().config();
        for (bad, reason) in [
            (issue(long_ago), "the certificate: it ended "),
            (issue(WallTime(1_900_000_000_000_000_000)), "the certificate: it counts from "),
            (authority.issue_to_client("app", now).unwrap(), "it is not for servers"),
        ] {
            keep(&bad);
            let error = store.reload().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(Arc::ptr_eq(&before, &store.acceptor().config()));
            // A start goes on with it, and a reload of other files as well.
            let begun = open();
            assert!(begun.warning().is_some());
            begun.reload().unwrap();
        }
    }

    #[test]
    fn a_file_with_no_authority_of_clients_is_refused_while_none_is_asked_for() {
        let root = tempfile::tempdir().unwrap();
        let authority = Authority::generate("a", WallTime(1_700_000_000_000_000_000)).unwrap();
        let given = root.path().join("clients.pem");
        let client_authorities = Some(given.clone());
        let sources = CertificateSources { client_authorities, ..sources(root.path(), "h") };
        let keep = |pem: &str| RealFiles.replace_all(&given, pem.as_bytes()).unwrap();
        keep(&authority.pem);
        let store = open(sources.clone()).unwrap();
        assert_eq!(store.clients().state, ClientAuthState::Disable);
        let before = store.client_authorities();
        for bad in ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAA"] {
            keep(bad);
            let refused = store.reload().unwrap_err().to_string();
            let begins = format!("--tls-client-ca {}: ", given.display());
            assert!(refused.starts_with(&begins) && refused.contains("; write "), "{refused}");
            assert_eq!(store.client_authorities(), before, "the old ones stay");
            assert_eq!(check(&sources), Err(refused.clone()));
            let begun = open(sources.clone()).err().map(|error| error.to_string());
            assert_eq!(begun, Some(refused));
        }
    }

    #[test]
    fn a_damaged_authority_is_named_and_what_clients_trust_stays() {
        let now = WallTime(1_700_000_000_000_000_000);
        let root = tempfile::tempdir().unwrap();
        let sources = sources(root.path(), "one.example");
        let trusted = open(sources.clone()).unwrap().trusted_pem();
        let path = sources.directory.join("authority.pem");
        let sound = String::from_utf8(RealFiles.read_all(&path).unwrap()).unwrap();
        let key_of = |pem: &str| pem.split_at(pem.find("-----BEGIN PRIVATE").unwrap()).1.to_owned();
        let other = Authority::generate("other", now).unwrap().pem;
        // Another host: what was signed before does not do any more.
        let sources = CertificateSources { advertised_host: "two.example".to_owned(), ..sources };
        for bad in [
            String::new(),
            key_of(&sound),
            sound.replacen("MII", "!!!", 1),
            trusted.clone(),
            format!("{trusted}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            format!("{trusted}{}", key_of(&other)),
        ] {
            RealFiles.replace_all(&path, bad.as_bytes()).unwrap();
            let refused = check(&sources).unwrap_err();
            let begins = format!("{} is damaged: ", path.display());
            assert!(refused.starts_with(&begins) && refused.contains("; put back"), "{refused}");
            let begun = open(sources.clone()).err().map(|error| error.to_string());
            assert_eq!(begun, Some(refused), "{bad}");
            let shown = RealFiles.read_all(&sources.directory.join("ca.pem")).unwrap();
            assert_eq!(shown, trusted.as_bytes());
        }
        RealFiles.replace_all(&path, sound.as_bytes()).unwrap();
        assert_eq!(check(&sources), Ok(()));
        assert_eq!(open(sources).unwrap().trusted_pem(), trusted);
    }

    #[test]
    fn a_chain_whose_key_is_damaged_is_signed_anew() {
        let root = tempfile::tempdir().unwrap();
        let sources = sources(root.path(), "h");
        let before = open(sources.clone()).unwrap();
        let path = sources.directory.join(NODE_NAME);
        let sound = String::from_utf8(RealFiles.read_all(&path).unwrap()).unwrap();
        let chain = sound.split_at(sound.find("-----BEGIN PRIVATE").unwrap()).0;
        RealFiles.replace_all(&path, chain.as_bytes()).unwrap();
        assert_eq!(check(&sources), Ok(()));
        let after = open(sources).unwrap();
        assert_eq!(after.trusted_pem(), before.trusted_pem());
        assert_ne!(after.chain()[0], before.chain()[0]);
    }

    fn check(sources: &CertificateSources) -> Result<(), String> {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        CertificateStore::check(clock, &RealFiles, sources).map_err(|error| error.to_string())
    }

    #[test]
    fn a_check_finds_what_keeps_a_node_from_beginning_and_makes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let own = sources(root.path(), "h");
        assert_eq!(check(&own), Ok(()));
        assert!(RealFiles.list(root.path()).unwrap().is_empty());
        open(own.clone()).unwrap().set_clients(rules()).unwrap();
        let node = own.directory.join(NODE_NAME);
        let (certificate, key) = (Some(node.clone()), Some(node.clone()));
        let given = CertificateSources { certificate, key, ..own.clone() };
        let bad = root.path().join("bad.pem");
        RealFiles.replace_all(&bad, b"no certificate").unwrap();
        let believed = |base: &CertificateSources, path: &Path| CertificateSources {
            client_authorities: Some(path.to_owned()),
            ..base.clone()
        };
        let joined = |base: &CertificateSources, path: &Path| CertificateSources {
            node_authorities: Some(path.to_owned()),
            ..base.clone()
        };
        let given = believed(&given, &node);
        for good in [&own, &given, &joined(&own, &node), &joined(&given, &node)] {
            assert_eq!(check(good), Ok(()));
            open(good.clone()).unwrap();
        }
        let mut refused = Vec::new();
        for base in [&own, &given] {
            refused.extend([believed(base, &bad), joined(base, &bad)]);
        }
        let assert_refused = |sources: CertificateSources| {
            let why = check(&sources).unwrap_err();
            assert_eq!(open(sources).err().map(|error| error.to_string()), Some(why));
        };
        refused.into_iter().for_each(assert_refused);
        assert_refused(CertificateSources { key: None, ..given.clone() });
        RealFiles.replace_all(&own.directory.join(CLIENTS_NAME), b"{").unwrap();
        [own, given].into_iter().for_each(assert_refused);
    }
}
