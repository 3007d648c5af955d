//! Removing files that may be gone already.

use std::path::Path;

use platform::{FileErrorKind, Files};

use crate::error::StorageError;

/// Removes a file; it is no error if there is none.
pub(crate) fn remove_if_there(files: &dyn Files, path: &Path) -> Result<(), StorageError> {
    match files.remove(path) {
        Err(error) if error.kind != FileErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
