//! What people are told about a certificate.

use std::fmt::Write;
use std::net::IpAddr;

use platform::WallTime;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::time::ASN1Time;

/// Whose end is closer than 30 days is warned of.
const SOON_SECONDS: i64 = 30 * 24 * 60 * 60;

/// A certificate, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Whose it is.
    pub subject: String,
    /// Who says so.
    pub issuer: String,
    /// Seconds since 1970 from which it counts.
    pub not_before_s: i64,
    /// Seconds since 1970 until which it counts.
    pub not_after_s: i64,
    /// SHA-256 of its DER form: hexadecimal pairs with colons between them, as openssl prints it.
    pub fingerprint: String,
    /// Hosts that it is for, as names and addresses.
    pub hosts: Vec<String>,
    /// Whether it may sign others.
    pub is_authority: bool,
    /// Whether it may be shown by a server, as it says for what it is or does not.
    pub is_for_servers: bool,
}

impl CertificateFacts {
    /// Of a certificate that can be read.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
        let names = parsed.subject_alternative_name().ok().flatten();
        let names = names.map(|extension| extension.value.general_names.as_slice());
        let uses = parsed.extended_key_usage().ok().flatten();
        Some(Self {
            subject: parsed.subject().to_string(),
            issuer: parsed.issuer().to_string(),
            not_before_s: parsed.validity().not_before.timestamp(),
            not_after_s: parsed.validity().not_after.timestamp(),
            fingerprint: fingerprint(certificate),
            hosts: names.unwrap_or_default().iter().filter_map(host).collect(),
            is_authority: parsed.is_ca(),
            is_for_servers: uses.is_none_or(|uses| uses.value.any || uses.value.server_auth),
        })
    }

    /// Why no client would believe it at this time, of a server that shows it.
    pub fn fault_at(&self, now: WallTime) -> Option<String> {
        let now_s = i64::from(now.seconds());
        match () {
            () if now_s > self.not_after_s => Some(format!("it ended {}", day(self.not_after_s))),
            () if now_s < self.not_before_s => {
                Some(format!("it counts from {} on", day(self.not_before_s)))
            }
            () if !self.is_for_servers => Some("it is not for servers".to_owned()),
            () => None,
        }
    }

    /// What people should do something about soon, or at once.
    pub fn warning_at(&self, now: WallTime) -> Option<String> {
        let left_s = self.not_after_s.saturating_sub(now.seconds().into());
        let ends_soon = || format!("it ends {}", day(self.not_after_s));
        self.fault_at(now).or_else(|| (left_s < SOON_SECONDS).then(ends_soon))
    }
}

/// Such as `Jan  1 00:00:00 2021 +00:00`.
fn day(seconds: i64) -> String {
    let time = ASN1Time::from_timestamp(seconds);
    time.map_or_else(|_| format!("{seconds} s behind 1970"), |time| time.to_string())
}

fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

fn fingerprint(der: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(der) {
        let colon = if text.is_empty() { "" } else { ":" };
        write!(text, "{colon}{byte:02X}").expect("a text grows");
    }
    text
}
