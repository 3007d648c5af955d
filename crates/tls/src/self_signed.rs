//! Certificates for nodes that were given none: an authority of their own, and what it signs.

use std::net::IpAddr;

use platform::WallTime;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::certificate_facts::CertificateFacts;
use crate::pem_files::certificate_texts;

const DAY_S: i64 = 86_400;
/// For how long certificates count: the clocks of clients may be behind by a day.
const DAYS_BEFORE: i64 = 1;
const DAYS_AFTER: i64 = 3650;
/// Hosts that every node is reached by from its own machine.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// An authority: who trusts it trusts what it signs.
#[derive(Clone)]
pub struct Authority {
    /// Its certificate, and behind it its key. For nobody else.
    pub pem: String,
}

/// No certificate could be made.
#[derive(Debug, thiserror::Error)]
#[error("a certificate cannot be made: {0}")]
pub struct IssueError(String);

impl From<rcgen::Error> for IssueError {
    fn from(error: rcgen::Error) -> Self {
        Self(error.to_string())
    }
}

impl Authority {
    /// A new one, called `name` and a number of its own: clients may trust those of several nodes.
    pub fn generate(name: &str, now: WallTime) -> Result<Self, IssueError> {
        let key = KeyPair::generate()?;
        let digest = Sha256::digest(key.public_key_raw());
        let number =
            digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        let mut params = params(&format!("{name} {number:016x}"), Vec::new(), now)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { pem: format!("{certificate}{}", key.serialize_pem()) })
    }

    /// One that was kept as this text. Its key is read when it signs.
    ///
    /// # Errors
    /// The text has no certificate, or one that cannot be read.
    pub(crate) fn from_pem(pem: String) -> Result<Self, IssueError> {
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes());
        let certificate = certificate.map_err(|error| IssueError(error.to_string()))?;
        if CertificateFacts::of(&certificate).is_none() {
            return Err(IssueError("its certificate cannot be read".to_owned()));
        }
        Ok(Self { pem })
    }

    /// Its certificate without its key, PEM: for everybody.
    pub(crate) fn shown(&self) -> String {
        certificate_texts(self.pem.as_bytes()).concat()
    }

    /// Signs a node's certificate for `hosts`, which are names and addresses: nodes show it to
    /// clients and to each other. Returns its chain and its key, PEM.
    pub fn issue(&self, hosts: Vec<String>, now: WallTime) -> Result<String, IssueError> {
        let usages = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign("Settee node", hosts, &usages, now)
    }

    /// Signs a certificate that a client can show, in `user`'s name. Returns the same.
    pub fn issue_to_client(&self, user: &str, now: WallTime) -> Result<String, IssueError> {
        self.sign(user, Vec::new(), &[ExtendedKeyUsagePurpose::ClientAuth], now)
    }

    fn sign(
        &self,
        name: &str,
        hosts: Vec<String>,
        usages: &[ExtendedKeyUsagePurpose],
        now: WallTime,
    ) -> Result<String, IssueError> {
        let unread = |error: rustls::pki_types::pem::Error| IssueError(error.to_string());
        let authority = CertificateDer::from_pem_slice(self.pem.as_bytes()).map_err(unread)?;
        let key = PrivateKeyDer::from_pem_slice(self.pem.as_bytes()).map_err(unread)?;
        if !is_key_of(&key, &authority) {
            return Err(IssueError("its key is not the one of its certificate".to_owned()));
        }
        let issuer = Issuer::from_ca_cert_der(&authority, KeyPair::try_from(&key)?)?;
        let key = KeyPair::generate()?;
        let mut params = params(name, hosts, now)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages.to_vec();
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(format!("{certificate}{}", self.with_key(&key)))
    }

    /// The authority's certificate, and behind it another key than its own.
    fn with_key(&self, key: &KeyPair) -> String {
        let own_key = self.pem.find("-----BEGIN PRIVATE").unwrap_or(self.pem.len());
        format!("{}{}", self.pem.split_at(own_key).0, key.serialize_pem())
    }
}

/// Whether what the key signs is believed to be of who has the certificate.
pub(crate) fn is_key_of(key: &PrivateKeyDer<'_>, certificate: &CertificateDer<'_>) -> bool {
    let chain = vec![certificate.clone().into_owned()];
    let provider = ring::default_provider();
    CertifiedKey::from_der(chain, key.clone_key(), &provider).is_ok()
}

fn params(name: &str, hosts: Vec<String>, now: WallTime) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = i64::from(now.seconds());
    let day = |days: i64| {
        let at = OffsetDateTime::from_unix_timestamp(now + days * DAY_S);
        at.unwrap_or(OffsetDateTime::UNIX_EPOCH)
    };
    (params.not_before, params.not_after) = (day(-DAYS_BEFORE), day(DAYS_AFTER));
    Ok(params)
}

/// Hosts that a node's certificate is for whose clients are told `advertised`.
pub(crate) fn hosts_of(advertised: &str) -> Vec<String> {
    let mut hosts: Vec<String> = LOCAL_HOSTS.map(str::to_owned).to_vec();
    let bare = advertised.trim_start_matches('[').trim_end_matches(']');
    let name = bare.parse().map_or_else(|_| bare.to_owned(), |ip: IpAddr| ip.to_string());
    if !hosts.contains(&name) {
        hosts.push(name);
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_a_certificate_for_its_machine_and_what_clients_are_told() {
        let now = WallTime(1_700_000_000 * 1_000_000_000);
        let authority = Authority::generate("of a node", now).unwrap();
        for (advertised, last) in
            [("db.example", "db.example"), ("::1", "::1"), ("[fe80::7]", "fe80::7")]
        {
            let pem = authority.issue(hosts_of(advertised), now).unwrap();
            let chain = CertificateDer::pem_slice_iter(pem.as_bytes());
            let facts: Vec<CertificateFacts> =
                chain.map(|one| CertificateFacts::of(&one.unwrap()).unwrap()).collect();
            assert_eq!(facts.len(), 2);
            assert_eq!(facts[0].hosts[..3], LOCAL_HOSTS);
            assert_eq!(facts[0].hosts.last().unwrap(), last);
            assert_eq!((facts[0].is_authority, facts[1].is_authority), (false, true));
            assert_eq!(facts[0].issuer, facts[1].subject);
            assert!(facts[0].not_before_s < i64::from(now.seconds()));
            assert_eq!(facts[0].fingerprint.len(), 32 * 3 - 1);
        }
    }
}
