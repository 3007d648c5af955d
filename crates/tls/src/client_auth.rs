//! Who a client's certificate names. Source: the original's REST settings `clientCertAuth`.

use serde::{Deserialize, Serialize};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// Rules that one setting may have, as the original.
const RULES_MAX: usize = 10;
/// Bytes of a rule's prefix and delimiters.
const RULE_BYTES_MAX: usize = 256;

/// What clients are to show, and how users are found in it. As JSON: `{"state": "enable",
/// "prefixes": [{"path": "subject.cn", "prefix": "", "delimiter": ""}]}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificates {
    /// Whether they are asked for one.
    pub state: ClientAuthState,
    /// Tried one after the other; the first that finds a name counts.
    #[serde(default)]
    pub prefixes: Vec<NameRule>,
}

/// Whether clients are asked for a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuthState {
    /// No.
    #[default]
    Disable,
    /// They may show one, and log in otherwise when they do not.
    Enable,
    /// They must.
    Mandatory,
}

/// Where a name is in a certificate, and which part of it is the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRule {
    /// The field.
    pub path: NamePath,
    /// What stands before the name; a field without it has no name.
    #[serde(default)]
    pub prefix: String,
    /// The name ends before the first of these characters.
    #[serde(default)]
    pub delimiter: String,
}

/// A field of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NamePath {
    /// The subject's common name.
    #[serde(rename = "subject.cn")]
    CommonName,
    /// An alternative name that is a host's.
    #[serde(rename = "san.dnsname", alias = "san.dns")]
    Dns,
    /// One that is a URI.
    #[serde(rename = "san.uri")]
    Uri,
    /// One that is a mail address.
    #[serde(rename = "san.email")]
    Email,
}

/// Why such a setting is refused, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRules(&'static str);

impl ClientCertificates {
    /// Refuses what finds nobody, or takes too long.
    ///
    /// # Errors
    /// There are too many or too long rules, or none where clients are asked.
    pub fn check(&self) -> Result<(), InvalidRules> {
        if self.prefixes.len() > RULES_MAX {
            return Err(InvalidRules("prefixes: at most 10"));
        }
        if self.state != ClientAuthState::Disable && self.prefixes.is_empty() {
            return Err(InvalidRules("prefixes: at least one, unless the state is disable"));
        }
        let is_long = |rule: &NameRule| rule.prefix.len() + rule.delimiter.len() > RULE_BYTES_MAX;
        if self.prefixes.iter().any(is_long) {
            return Err(InvalidRules("prefixes: prefix and delimiter have at most 256 bytes"));
        }
        Ok(())
    }

    /// The user that a certificate (DER) names, if it names one.
    pub fn user_in(&self, certificate: &[u8]) -> Option<String> {
        let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
        self.prefixes.iter().find_map(|rule| rule.name_in(&certificate))
    }
}

impl NameRule {
    fn name_in(&self, certificate: &X509Certificate<'_>) -> Option<String> {
        let names = match self.path {
            NamePath::CommonName => common_names(certificate),
            NamePath::Dns | NamePath::Uri | NamePath::Email => {
                alternative_names(certificate, self.path)
            }
        };
        names.iter().find_map(|name| self.part_of(name)).map(str::to_owned)
    }

    fn part_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        let name = name.strip_prefix(&self.prefix)?;
        let name = name.split(|character| self.delimiter.contains(character)).next()?;
        (!name.is_empty()).then_some(name)
    }
}

fn common_names<'a>(certificate: &'a X509Certificate<'_>) -> Vec<&'a str> {
    certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()).collect()
}

fn alternative_names<'a>(certificate: &'a X509Certificate<'_>, path: NamePath) -> Vec<&'a str> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = extension.value.general_names.iter().filter_map(|name| match (path, name) {
        (NamePath::Dns, GeneralName::DNSName(name))
        | (NamePath::Uri, GeneralName::URI(name))
        | (NamePath::Email, GeneralName::RFC822Name(name)) => Some(*name),
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate() -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "cb-alice.example;x");
        let uri = SanType::URI("urn:team:bob@site".try_into().unwrap());
        let email = SanType::Rfc822Name("carol@example".try_into().unwrap());
        params.subject_alt_names.extend([uri, email]);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn rules(text: &str) -> ClientCertificates {
        let found: Vec<NameRule> = text
            .split(',')
            .map(|rule| {
                let mut parts = rule.split('|').map(str::to_owned);
                let path = match parts.next().as_deref() {
                    Some("cn") => NamePath::CommonName,
                    Some("dns") => NamePath::Dns,
                    Some("uri") => NamePath::Uri,
                    _ => NamePath::Email,
                };
                let mut next = || parts.next().unwrap_or_default();
                NameRule { path, prefix: next(), delimiter: next() }
            })
            .collect();
        ClientCertificates { state: ClientAuthState::Enable, prefixes: found }
    }

    #[test]
    fn a_certificate_names_whom_the_first_rule_that_fits_finds() {
        let certificate = certificate();
        for (rule, user) in [
            ("cn", Some("cb-alice.example;x")),
            ("cn|cb-|.;", Some("alice")),
            ("cn|nobody-", None),
            ("cn|nobody-,dns", Some("db.example")),
            ("dns||.", Some("db")),
            ("uri|urn:team:|@", Some("bob")),
            ("email||@", Some("carol")),
            ("email||c", None),
        ] {
            assert_eq!(rules(rule).user_in(&certificate).as_deref(), user, "{rule}");
        }
        assert_eq!(rules("cn").user_in(b"no certificate"), None);
    }

    #[test]
    fn rules_that_find_nobody_or_are_too_many_are_refused() {
        let none = ClientCertificates { prefixes: Vec::new(), ..rules("cn") };
        assert!(none.check().is_err());
        assert!(rules(&["cn"; 11].join(",")).check().is_err());
        assert!(rules(&format!("cn|{}", "x".repeat(257))).check().is_err());
        assert!(rules("cn,dns").check().is_ok());
        assert!(ClientCertificates::default().check().is_ok());
    }
}
