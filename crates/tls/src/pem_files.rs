//! Files of certificates and keys (PEM), which nobody else reads.

use std::path::Path;

use platform::{FileErrorKind, Files};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::certificate_facts::CertificateFacts;

/// Certificates cannot be used or made, in words for whoever has written the files.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CertificateError(pub(crate) String);

/// Makes a directory that nobody else enters.
pub(crate) fn make_private_directory(
    files: &dyn Files,
    directory: &Path,
) -> Result<(), CertificateError> {
    let made = files.create_directories(directory).and_then(|()| files.make_private(directory));
    made.map_err(|error| CertificateError(error.to_string()))
}

/// The certificates of a PEM text, each by itself. What is no certificate is left out.
pub(crate) fn certificate_texts(pem: &[u8]) -> Vec<String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let text = String::from_utf8_lossy(pem);
    let parts = text.split(BEGIN).skip(1);
    let whole = parts.filter_map(|part| part.split_once(END));
    whole.map(|(body, _)| format!("{BEGIN}{body}{END}\n")).collect()
}

pub(crate) fn described(pem: &[u8]) -> Vec<(CertificateFacts, String)> {
    let certificates = certificate_texts(pem).into_iter().filter_map(|text| {
        let der = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        Some((CertificateFacts::of(&der)?, text))
    });
    certificates.collect()
}

pub(crate) fn read_file(files: &dyn Files, path: &Path) -> Result<Vec<u8>, CertificateError> {
    files.read_all(path).map_err(|error| CertificateError(error.to_string()))
}

pub(crate) fn read_if_there(
    files: &dyn Files,
    path: &Path,
) -> Result<Option<Vec<u8>>, CertificateError> {
    match files.read_all(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind == FileErrorKind::NotFound => Ok(None),
        Err(error) => Err(CertificateError(error.to_string())),
    }
}

/// The directory lets nobody else in, so that the file is private from its first byte on.
pub(crate) fn write_private(
    files: &dyn Files,
    path: &Path,
    content: &[u8],
) -> Result<(), CertificateError> {
    let written = files.replace_all(path, content).and_then(|()| files.make_private(path));
    written.map_err(|error| CertificateError(error.to_string()))
}

/// The same for what whoever is told of an error goes on without: a start must not find it.
pub(crate) fn replace_private(
    files: &dyn Files,
    path: &Path,
    content: &[u8],
) -> Result<(), CertificateError> {
    let replaced = files.replace_or_restore(path, content);
    replaced.map_err(|left| CertificateError(left.error.to_string()))?;
    // It counts from here on: where this fails the directory, which lets nobody in, is enough.
    drop(files.make_private(path));
    Ok(())
}
