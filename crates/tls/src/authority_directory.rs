//! A directory with an authority of one's own, and what it has signed.

use std::path::{Path, PathBuf};

use platform::{Clock, Files};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::pem_files::{
    CertificateError, described, make_private_directory, read_if_there, write_private,
};
use crate::self_signed::{Authority, IssueError, hosts_of, is_key_of};

/// A certificate that counts for less than this is signed anew.
const RENEWED_BEFORE_S: i64 = 60 * 86_400;

/// An authority in a directory that nobody else enters: `authority.pem` with its key, `ca.pem`
/// without, and beside them what it has signed.
pub struct AuthorityDirectory<'a> {
    clock: &'a Clock,
    files: &'a dyn Files,
    path: &'a Path,
}

/// What an authority has signed.
pub(crate) struct Issued {
    /// The chain, and its key.
    pub(crate) pem: Vec<u8>,
    /// The authority's certificate, PEM.
    pub(crate) authority: String,
}

impl<'a> AuthorityDirectory<'a> {
    /// The authority's certificate, to be handed to whoever is to trust it.
    pub const CERTIFICATE_NAME: &'static str = "ca.pem";
    /// The same with its key.
    const AUTHORITY_NAME: &'static str = "authority.pem";

    /// A directory, which need not be there yet.
    pub fn new(clock: &'a Clock, files: &'a dyn Files, path: &'a Path) -> Self {
        Self { clock, files, path }
    }

    /// Where the authority's certificate is.
    pub fn certificate_path(&self) -> PathBuf {
        self.path.join(Self::CERTIFICATE_NAME)
    }

    /// The chain and the key of the node at `host`, as they are in the file of that name: made or
    /// signed anew where they are missing or do not do. An authority that has to be made is called
    /// `name`.
    ///
    /// # Errors
    /// A file cannot be read or written, or is none of an authority.
    pub fn issue_to(
        &self,
        file_name: &str,
        host: &str,
        name: &str,
    ) -> Result<Vec<u8>, CertificateError> {
        make_private_directory(self.files, self.path)?;
        let authority = self.authority(name)?;
        let shown = authority.shown();
        let shown_path = self.certificate_path();
        // Each time: a crash may have left the authority without the file that shows it.
        if read_if_there(self.files, &shown_path)?.is_none_or(|there| there != shown.as_bytes()) {
            write_private(self.files, &shown_path, shown.as_bytes())?;
        }
        if let Some(kept) = self.kept_chain(&authority, file_name, host)? {
            return Ok(kept);
        }
        let pem = self.sign(&authority, host)?;
        write_private(self.files, &self.path.join(file_name), &pem)?;
        Ok(pem)
    }

    /// The same with nothing written; `None` where there is no authority yet.
    ///
    /// # Errors
    /// A file cannot be read, or is none of an authority.
    pub(crate) fn look(
        &self,
        file_name: &str,
        host: &str,
    ) -> Result<Option<Issued>, CertificateError> {
        let Some(authority) = self.kept_authority()? else { return Ok(None) };
        let kept = self.kept_chain(&authority, file_name, host)?;
        let pem = kept.map_or_else(|| self.sign(&authority, host), Ok)?;
        Ok(Some(Issued { pem, authority: authority.shown() }))
    }

    /// What is in a file, if it does.
    fn kept_chain(
        &self,
        authority: &Authority,
        file_name: &str,
        host: &str,
    ) -> Result<Option<Vec<u8>>, CertificateError> {
        let deadline_s = i64::from(self.clock.wall_time().seconds()) + RENEWED_BEFORE_S;
        let kept = read_if_there(self.files, &self.path.join(file_name))?;
        Ok(kept.filter(|pem| is_good(pem, &authority.shown(), &hosts_of(host), deadline_s)))
    }

    fn sign(&self, authority: &Authority, host: &str) -> Result<Vec<u8>, CertificateError> {
        let signed = authority.issue(hosts_of(host), self.clock.wall_time());
        Ok(signed.map_err(|error| self.damaged(&error))?.into_bytes())
    }

    fn authority(&self, name: &str) -> Result<Authority, CertificateError> {
        if let Some(authority) = self.kept_authority()? {
            return Ok(authority);
        }
        let made = Authority::generate(name, self.clock.wall_time());
        let authority = made.map_err(|error| CertificateError(error.to_string()))?;
        write_private(self.files, &self.authority_path(), authority.pem.as_bytes())?;
        Ok(authority)
    }

    fn kept_authority(&self) -> Result<Option<Authority>, CertificateError> {
        let Some(pem) = read_if_there(self.files, &self.authority_path())? else { return Ok(None) };
        let read = Authority::from_pem(String::from_utf8_lossy(&pem).into_owned());
        read.map(Some).map_err(|error| self.damaged(&error))
    }

    fn authority_path(&self) -> PathBuf {
        self.path.join(Self::AUTHORITY_NAME)
    }

    /// Nobody makes another by itself: clients trust the one that there was.
    fn damaged(&self, error: &IssueError) -> CertificateError {
        let path = self.authority_path();
        CertificateError(format!(
            "{} is damaged: {error}; put back a copy of it, or take it away and the node makes \
             another authority, whose {} clients are then to trust",
            path.display(),
            Self::CERTIFICATE_NAME
        ))
    }
}

/// Whether a chain has its key, is of this authority, for these hosts, and counts beyond the
/// deadline.
fn is_good(pem: &[u8], authority: &str, hosts: &[String], deadline_s: i64) -> bool {
    let chain = described(pem);
    let [(node, _), (_, signer)] = chain.as_slice() else { return false };
    let names_all = hosts.iter().all(|host| node.hosts.contains(host));
    signer == authority && names_all && node.not_after_s > deadline_s && has_its_key(pem)
}

fn has_its_key(pem: &[u8]) -> bool {
    let (key, node) = (PrivateKeyDer::from_pem_slice(pem), CertificateDer::from_pem_slice(pem));
    key.is_ok_and(|key| node.is_ok_and(|node| is_key_of(&key, &node)))
}
