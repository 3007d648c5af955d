//! Cases: TLS. Its files are named by variables.

use std::env::var;
use std::time::Duration;

use couchbase::authenticator::{Authenticator, CertificateAuthenticator, PasswordAuthenticator};
use couchbase::cluster::Cluster;
use couchbase::options::cluster_options::{ClusterOptions, TlsOptions};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::case::{Failure, Outcome, expect, within};
use crate::sdk::{BUCKET, READY, Sdk};

const BRIEF: Duration = Duration::from_secs(3);
const SIZES: [usize; 5] = [1, 5000, 20_000, 1 << 20, 15 << 20];

cases! {
    "tls-exchanges-documents": exchanges,
    "tls-of-another-authority-is-refused": of_another_authority,
    "tls-client-certificate": client_certificate,
    "tls-certificate-of-nobody": certificate_of_nobody,
}

pub(crate) fn by_password() -> Result<Authenticator, Failure> {
    Ok(PasswordAuthenticator::new(var("SETTEE_USER")?, var("SETTEE_PASSWORD")?).into())
}

/// The user whom a certificate names.
fn by_certificate(certificate: &str, key: &str) -> Result<Authenticator, Failure> {
    let key = PrivateKeyDer::from_pem_file(var(key)?)?;
    Ok(CertificateAuthenticator::new(certificates(certificate)?, key).into())
}

fn certificates(variable: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    Ok(CertificateDer::pem_file_iter(var(variable)?)?.collect::<Result<_, _>>()?)
}

/// A cluster object behind TLS that trusts the authorities of a file, when its bucket can be used.
async fn connected(
    authenticator: Authenticator,
    authorities: &str,
    limit: Duration,
) -> Result<Cluster, Failure> {
    let trusted = certificates(authorities)?;
    let options = ClusterOptions::new(authenticator)
        .tls_options(TlsOptions::new().add_ca_certificates(trusted));
    let cluster = within(limit, Cluster::connect(var("SETTEE_TLS_CONNECT")?, options)).await??;
    within(limit, cluster.bucket(BUCKET).wait_until_ready(None)).await??;
    Ok(cluster)
}

/// Stores and reads documents of these sizes in bytes behind TLS.
pub(crate) async fn exchange(authenticator: Authenticator, name: &str, sizes: &[usize]) -> Outcome {
    let cluster = connected(authenticator, "SETTEE_AUTHORITY", READY).await?;
    let collection = cluster.bucket(BUCKET).default_collection();
    for size in sizes {
        let (key, value) = (format!("{name}-{size}"), "x".repeat(*size));
        collection.upsert(&key, &value, None).await?;
        let read = collection.get(&key, None).await?.content_as::<String>()?;
        expect(read == value, &format!("{size} bytes come back"))?;
    }
    Ok(())
}

async fn exchanges(_: &Sdk) -> Outcome {
    exchange(by_password()?, "tls", &SIZES).await
}

async fn of_another_authority(_: &Sdk) -> Outcome {
    let cluster = connected(by_password()?, "SETTEE_OTHER_AUTHORITY", BRIEF).await;
    expect(cluster.is_err(), "who trusts another authority does not connect")
}

async fn client_certificate(_: &Sdk) -> Outcome {
    let own = by_certificate("SETTEE_CERTIFICATE", "SETTEE_KEY")?;
    exchange(own, "tls-certificate", &[100]).await
}

async fn certificate_of_nobody(_: &Sdk) -> Outcome {
    let stranger = by_certificate("SETTEE_STRANGERS_CERTIFICATE", "SETTEE_STRANGERS_KEY")?;
    let cluster = connected(stranger, "SETTEE_AUTHORITY", BRIEF).await;
    expect(cluster.is_err(), "the certificate of an unknown user opens nothing")?;
    exchange(by_password()?, "tls-after-nobody", &[100]).await
}
