//! How a bucket's directory goes: a mark says that the bucket is deleted, whatever is still there.

use std::path::Path;

use platform::files::remove_content;
use platform::{FileError, FileErrorKind, Files};

use super::bucket_file::SETTINGS_NAME;

/// That the bucket is deleted. The last file to go. No bucket's directory has such a name, so that
/// no directory of buckets is taken for a deleted one.
pub(crate) const DELETED_MARK_NAME: &str = ".deleted";

/// What may be in a directory before it is described.
const BEGINNING_NAMES: [&str; 4] = [SETTINGS_NAME, "settings.new", "bucket.new", ".deleted.new"];

/// What a directory among those of buckets is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryState {
    /// Nothing is there.
    Absent,
    /// A bucket.
    Bucket,
    /// What is left of one that was deleted.
    Deleted,
    /// The beginning of one that was never made.
    Unfinished,
    /// A file, which somebody has put there.
    NoDirectory,
}

/// What is at `directory`.
///
/// # Errors
/// The system does not say.
pub fn directory_state(files: &dyn Files, directory: &Path) -> Result<DirectoryState, FileError> {
    match state_of(files, directory) {
        Err(error) if error.kind == FileErrorKind::NotADirectory => Ok(DirectoryState::NoDirectory),
        state => state,
    }
}

fn state_of(files: &dyn Files, directory: &Path) -> Result<DirectoryState, FileError> {
    if !files.exists(directory)? {
        return Ok(DirectoryState::Absent);
    }
    if files.exists(&directory.join(DELETED_MARK_NAME))? {
        return Ok(DirectoryState::Deleted);
    }
    // The description comes last. What else is there may be somebody's documents.
    let is_beginning = |name: &String| BEGINNING_NAMES.contains(&name.as_str());
    let is_unfinished = files.list(directory)?.iter().all(is_beginning);
    Ok(if is_unfinished { DirectoryState::Unfinished } else { DirectoryState::Bucket })
}

/// Says that the bucket in `directory` is deleted, durably: from now on its documents are gone.
///
/// # Errors
/// The bucket may be deleted or not: a start tells, unless [`unmark_deleted`] does.
pub fn mark_deleted(files: &dyn Files, directory: &Path) -> Result<(), FileError> {
    files.replace_all(&directory.join(DELETED_MARK_NAME), b"")
}

/// Takes that back, durably, where it may not have come to be.
///
/// # Errors
/// The bucket may be deleted or not: a start tells.
pub fn unmark_deleted(files: &dyn Files, directory: &Path) -> Result<(), FileError> {
    match files.remove(&directory.join(DELETED_MARK_NAME)) {
        Err(error) if error.kind != FileErrorKind::NotFound => Err(error),
        _ => files.sync_directory(directory),
    }
}

/// Removes what is left in a directory that is no bucket's any more, and the directory. Nobody has
/// a file there open.
///
/// # Errors
/// Some of it is still there, and no bucket; it may be tried again.
pub fn remove_remains(files: &dyn Files, directory: &Path) -> Result<(), FileError> {
    remove_content(files, directory, &[DELETED_MARK_NAME])?;
    // Everything is gone before the mark is, whatever the disk makes of the order.
    files.sync_directory(directory)?;
    match files.remove(&directory.join(DELETED_MARK_NAME)) {
        Err(error) if error.kind != FileErrorKind::NotFound => return Err(error),
        _ => {}
    }
    files.remove_directory(directory)?;
    match directory.parent() {
        Some(parent) => files.sync_directory(parent),
        None => Ok(()),
    }
}
