//! The file that says that the node serves, for whoever started it.

use std::path::Path;

use platform::{FileError, FileErrorKind, Files};
use serde::Serialize;

/// What the file says.
#[derive(Debug, Serialize)]
pub(crate) struct Ready<'a> {
    pub(crate) port: u16,
    pub(crate) management_port: u16,
    pub(crate) memcached_port: Option<u16>,
    pub(crate) tls_port: Option<u16>,
    pub(crate) management_tls_port: Option<u16>,
    pub(crate) user: &'a str,
    /// `None` when the node kept the password of an earlier start, which it does not know.
    pub(crate) password: Option<&'a str>,
    pub(crate) bucket: &'a str,
    pub(crate) pid: u32,
}

/// Writes the file, whole or not at all.
pub(crate) fn write(files: &dyn Files, path: &Path, ready: &Ready<'_>) -> Result<(), FileError> {
    let json = serde_json::to_vec(ready).expect("the ready file is JSON");
    files.replace_all(path, &json)
}

/// Removes the file of an earlier start, which would say that the node serves before it does.
pub(crate) fn remove(files: &dyn Files, path: &Path) -> Result<(), FileError> {
    match files.remove(path) {
        Err(error) if error.kind != FileErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
