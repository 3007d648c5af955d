//! A directory whose description is gone: what is beside it tells that there was one.

use std::path::Path;

use platform::{FileError, FileErrorKind, Files};
use storage::JOURNAL_NOTE_NAME;
use storage::couchstore::layout::{self, FileName};
use storage::journal::{JOURNAL_DIRECTORY, is_segment_name};

use super::absent_vbuckets::LIST_NAME;
use super::adoption::is_bucket_directory;
use super::bucket_file::{
    CLEAN_MARK_NAME, DESCRIPTION_NAME, LAST_STOP_NAME, MANIFEST_NAME, SETTINGS_NAME,
};
use super::open_error::OpenError;

/// What nothing but a bucket of this server has in its directory, and none before it is described.
const OWN_NAMES: [&str; 5] =
    [CLEAN_MARK_NAME, LAST_STOP_NAME, LIST_NAME, MANIFEST_NAME, JOURNAL_NOTE_NAME];

/// Refuses a directory without a description that had one: how many vBuckets a bucket has, and
/// which version of a document wins, stands nowhere else, and documents would not be found in a
/// bucket of another number of vBuckets.
pub(super) fn check(files: &dyn Files, directory: &Path) -> Result<(), OpenError> {
    let Some(trace) = trace(files, directory)? else { return Ok(()) };
    let what = format!(
        "is missing, and `{trace}` beside it says that the bucket had one: put it back from a copy \
         of the directory, as nothing else says how many vBuckets the bucket has; or restore a \
         backup into a new directory; or leave the vBuckets' files (`*.couch.*`) alone in the \
         directory, which are taken over as another server's then, without what only the journal \
         has"
    );
    Err(OpenError::BadDescription { path: directory.join(DESCRIPTION_NAME), what })
}

/// Whether another server's files in `directory` are those of a bucket that a node has opened
/// there: beside them is what nothing but a node makes. What the system does not say is no.
pub fn is_taken_over(files: &dyn Files, directory: &Path) -> bool {
    let is_described = || files.exists(&directory.join(DESCRIPTION_NAME)).unwrap_or(false);
    let has_trace = || trace(files, directory).is_ok_and(|trace| trace.is_some());
    is_bucket_directory(files, directory) && (is_described() || has_trace())
}

/// The name in the directory that tells.
fn trace(files: &dyn Files, directory: &Path) -> Result<Option<String>, FileError> {
    let names = match files.list(directory) {
        Err(error) if error.kind == FileErrorKind::NotFound => return Ok(None),
        names => names?,
    };
    let is_data = |name: &String| matches!(layout::parse(name), FileName::Data(..));
    let has_data = names.iter().any(is_data);
    // Settings come before the description, and documents behind it.
    let is_own =
        |name: &&String| OWN_NAMES.contains(&name.as_str()) || (has_data && *name == SETTINGS_NAME);
    if let Some(name) = names.iter().find(is_own) {
        return Ok(Some(name.clone()));
    }
    // The directory alone may be a device that was mounted for a bucket to come.
    let in_journal = files.list(&directory.join(JOURNAL_DIRECTORY)).unwrap_or_default();
    let segment = in_journal.iter().find(|name| is_segment_name(name));
    Ok(segment.map(|name| format!("{JOURNAL_DIRECTORY}/{name}")))
}
