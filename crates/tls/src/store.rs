//! The certificates of a node, in files: those that it was given, or its own in its data directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use platform::{Clock, FileErrorKind, Files};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::acceptor::{Acceptor, Material};
use crate::certificate_facts::CertificateFacts;
use crate::client_auth::ClientCertificates;
use crate::self_signed::{Authority, IssueError, hosts_of};

/// The node's own authority, with its key.
const AUTHORITY_NAME: &str = "authority.pem";
/// The same without, to be handed to clients.
const AUTHORITY_CERTIFICATE_NAME: &str = "ca.pem";
/// What the authority has signed for the node, with its key.
const NODE_NAME: &str = "node.pem";
/// What is asked of clients.
const CLIENTS_NAME: &str = "client-certificates.json";
/// A certificate of its own that counts for less than this is signed anew.
const RENEWED_BEFORE_S: i64 = 60 * 86_400;

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
    /// The host that clients are told.
    pub advertised_host: String,
}

/// The certificates cannot be used, in words for whoever has written the files.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CertificateError(String);

/// The certificates of a node. Its files are read when it starts and when somebody says so.
pub struct CertificateStore {
    clock: Clock,
    files: Arc<dyn Files>,
    sources: CertificateSources,
    acceptor: Arc<Acceptor>,
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
        Ok(Self { clock, files, sources, acceptor, material: Mutex::new(material) })
    }

    /// What makes sessions with them.
    pub fn acceptor(&self) -> &Arc<Acceptor> {
        &self.acceptor
    }

    /// Reads the files again. New sessions are made with what they say.
    ///
    /// # Errors
    /// A file cannot be read, or not be used: what was used before is used further.
    pub fn reload(&self) -> Result<(), CertificateError> {
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
        Acceptor::new(self.clock.clone(), &fresh)
            .map_err(|error| CertificateError(error.to_string()))?;
        let text = serde_json::to_vec(&fresh.clients).expect("rules are JSON");
        write_private(&*self.files, &self.sources.directory.join(CLIENTS_NAME), &text)?;
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

    /// Whether the node has made its certificate itself.
    pub fn is_self_signed(&self) -> bool {
        self.sources.certificate.is_none()
    }

    /// Where a file is that clients can trust.
    pub fn trusted_path(&self) -> PathBuf {
        match &self.sources.certificate {
            Some(path) => path.clone(),
            None => self.sources.directory.join(AUTHORITY_CERTIFICATE_NAME),
        }
    }

    fn use_material(&self, material: &Material) -> Result<(), CertificateError> {
        let replaced = self.acceptor.replace(material);
        replaced.map_err(|error| CertificateError(error.to_string()))
    }
}

fn read(
    clock: &Clock,
    files: &dyn Files,
    sources: &CertificateSources,
) -> Result<Material, CertificateError> {
    let directory = &sources.directory;
    let made = files.create_directories(directory).and_then(|()| files.make_private(directory));
    made.map_err(|error| CertificateError(error.to_string()))?;
    let (chain, key) = match (&sources.certificate, &sources.key) {
        (Some(certificate), Some(key)) => (read_file(files, certificate)?, read_file(files, key)?),
        _ => {
            let both = own_certificate(clock, files, sources)?;
            (both.clone(), both)
        }
    };
    let client_authorities = match &sources.client_authorities {
        Some(path) => read_file(files, path)?,
        None if sources.certificate.is_none() => {
            read_file(files, &directory.join(AUTHORITY_CERTIFICATE_NAME))?
        }
        None => Vec::new(),
    };
    let clients = match read_if_there(files, &directory.join(CLIENTS_NAME))? {
        None => ClientCertificates::default(),
        Some(text) => serde_json::from_slice(&text).map_err(|error| {
            let path = directory.join(CLIENTS_NAME);
            CertificateError(format!("{} is damaged: {error}", path.display()))
        })?,
    };
    Ok(Material { chain, key, client_authorities, clients })
}

/// The node's own chain and key, made or signed anew where they are missing or do not do.
fn own_certificate(
    clock: &Clock,
    files: &dyn Files,
    sources: &CertificateSources,
) -> Result<Vec<u8>, CertificateError> {
    let issue_error = |error: IssueError| CertificateError(error.to_string());
    let now = clock.wall_time();
    let path = sources.directory.join(AUTHORITY_NAME);
    let authority = match read_if_there(files, &path)? {
        Some(pem) => Authority { pem: String::from_utf8_lossy(&pem).into_owned() },
        None => {
            let name = format!("Settee node {}", sources.advertised_host);
            let authority = Authority::generate(&name, now).map_err(issue_error)?;
            write_private(files, &path, authority.pem.as_bytes())?;
            authority
        }
    };
    let shown = certificate_texts(authority.pem.as_bytes()).concat();
    let shown_path = sources.directory.join(AUTHORITY_CERTIFICATE_NAME);
    if read_if_there(files, &shown_path)?.is_none_or(|there| there != shown.as_bytes()) {
        write_private(files, &shown_path, shown.as_bytes())?;
    }
    let path = sources.directory.join(NODE_NAME);
    let hosts = hosts_of(&sources.advertised_host);
    let deadline_s = i64::from(now.seconds()) + RENEWED_BEFORE_S;
    match read_if_there(files, &path)? {
        Some(pem) if is_good(&pem, &shown, &hosts, deadline_s) => Ok(pem),
        _ => {
            let pem = authority.issue(hosts, now).map_err(issue_error)?;
            write_private(files, &path, pem.as_bytes())?;
            Ok(pem.into_bytes())
        }
    }
}

/// Whether a chain is of this authority, for these hosts, and counts beyond the deadline.
fn is_good(pem: &[u8], authority: &str, hosts: &[String], deadline_s: i64) -> bool {
    let chain = described(pem);
    let [(node, _), (_, signer)] = chain.as_slice() else { return false };
    let names_all = hosts.iter().all(|host| node.hosts.contains(host));
    signer == authority && names_all && node.not_after_s > deadline_s
}

/// The certificates of a PEM text, each by itself. What is no certificate is left out.
fn certificate_texts(pem: &[u8]) -> Vec<String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let text = String::from_utf8_lossy(pem);
    let parts = text.split(BEGIN).skip(1);
    let whole = parts.filter_map(|part| part.split_once(END));
    whole.map(|(body, _)| format!("{BEGIN}{body}{END}\n")).collect()
}

fn described(pem: &[u8]) -> Vec<(CertificateFacts, String)> {
    let certificates = certificate_texts(pem).into_iter().filter_map(|text| {
        let der = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        Some((CertificateFacts::of(&der)?, text))
    });
    certificates.collect()
}

fn read_file(files: &dyn Files, path: &Path) -> Result<Vec<u8>, CertificateError> {
    files.read_all(path).map_err(|error| CertificateError(error.to_string()))
}

fn read_if_there(files: &dyn Files, path: &Path) -> Result<Option<Vec<u8>>, CertificateError> {
    match files.read_all(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind == FileErrorKind::NotFound => Ok(None),
        Err(error) => Err(CertificateError(error.to_string())),
    }
}

/// The directory lets nobody else in, so that the file is private from its first byte on.
fn write_private(files: &dyn Files, path: &Path, content: &[u8]) -> Result<(), CertificateError> {
    let written = files.replace_all(path, content).and_then(|()| files.make_private(path));
    written.map_err(|error| CertificateError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use platform::WallTime;
    use platform::files::RealFiles;

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
