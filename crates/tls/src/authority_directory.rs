//! A directory with an authority of one's own, and what it has signed.

use std::path::{Path, PathBuf};

use platform::{Clock, Files};

use crate::pem_files::{
    CertificateError, certificate_texts, described, make_private_directory, read_if_there,
    write_private,
};
use crate::self_signed::{Authority, IssueError, hosts_of};

/// A certificate that counts for less than this is signed anew.
const RENEWED_BEFORE_S: i64 = 60 * 86_400;

/// An authority in a directory that nobody else enters: `authority.pem` with its key, `ca.pem`
/// without, and beside them what it has signed.
pub struct AuthorityDirectory<'a> {
    clock: &'a Clock,
    files: &'a dyn Files,
    path: &'a Path,
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
        let issue_error = |error: IssueError| CertificateError(error.to_string());
        make_private_directory(self.files, self.path)?;
        let now = self.clock.wall_time();
        let authority = self.authority(name)?;
        let shown = certificate_texts(authority.pem.as_bytes()).concat();
        let shown_path = self.certificate_path();
        // Each time: a crash may have left the authority without the file that shows it.
        if read_if_there(self.files, &shown_path)?.is_none_or(|there| there != shown.as_bytes()) {
            write_private(self.files, &shown_path, shown.as_bytes())?;
        }
        let path = self.path.join(file_name);
        let hosts = hosts_of(host);
        let deadline_s = i64::from(now.seconds()) + RENEWED_BEFORE_S;
        match read_if_there(self.files, &path)? {
            Some(pem) if is_good(&pem, &shown, &hosts, deadline_s) => Ok(pem),
            _ => {
                let pem = authority.issue(hosts, now).map_err(issue_error)?;
                write_private(self.files, &path, pem.as_bytes())?;
                Ok(pem.into_bytes())
            }
        }
    }

    fn authority(&self, name: &str) -> Result<Authority, CertificateError> {
        let path = self.path.join(Self::AUTHORITY_NAME);
        if let Some(pem) = read_if_there(self.files, &path)? {
            return Ok(Authority { pem: String::from_utf8_lossy(&pem).into_owned() });
        }
        let made = Authority::generate(name, self.clock.wall_time());
        let authority = made.map_err(|error| CertificateError(error.to_string()))?;
        write_private(self.files, &path, authority.pem.as_bytes())?;
        Ok(authority)
    }
}

/// Whether a chain is of this authority, for these hosts, and counts beyond the deadline.
fn is_good(pem: &[u8], authority: &str, hosts: &[String], deadline_s: i64) -> bool {
    let chain = described(pem);
    let [(node, _), (_, signer)] = chain.as_slice() else { return false };
    let names_all = hosts.iter().all(|host| node.hosts.contains(host));
    signer == authority && names_all && node.not_after_s > deadline_s
}
