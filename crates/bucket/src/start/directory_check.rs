//! What an opening would say of a bucket's directory, found out without one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{FileErrorKind, Files};
use storage::{JOURNAL_NOTE_NAME, Witnesses, check_journal_note};

use super::absent_vbuckets::AbsentVbuckets;
use super::bucket_file::{
    CLEAN_MARK_NAME, LAST_STOP_NAME, LOST_SETTINGS, SETTINGS_NAME, check_description,
    has_lost_settings,
};
use super::open_error::OpenError;
use crate::collections::check_manifest;
use crate::config::BucketConfig;

/// What is wrong with what a bucket's directory says of the bucket.
#[derive(Debug, Default)]
pub struct DirectoryCheck {
    /// Why the bucket does not open.
    pub refusals: Vec<OpenError>,
    /// Files that are damaged or gone, and without which it opens, with what that means.
    pub missed: Vec<(PathBuf, &'static str)>,
}

const DAMAGED_MARK: &str = "is damaged: a start goes on without it, and nobody can tell whether \
     the end of the journal or of a file is missing; put it back from a copy of the directory, or \
     compare with a replica or a backup";

/// Reads what says something of the bucket in `directory`, and makes nothing; its documents are not
/// looked at. With a configuration it is compared with that. No node has the bucket open.
pub fn check_directory(
    files: &dyn Files,
    directory: &Path,
    config: Option<&BucketConfig>,
) -> DirectoryCheck {
    let mut check = DirectoryCheck::default();
    let read = [
        check_description(files, directory, config),
        AbsentVbuckets::open(files, directory).map(drop),
        check_manifest(files, directory),
    ];
    check.refusals.extend(read.into_iter().filter_map(Result::err));
    if has_lost_settings(files, directory) {
        check.missed.push((directory.join(SETTINGS_NAME), LOST_SETTINGS));
    }
    let mark = directory.join(CLEAN_MARK_NAME);
    match files.exists(&mark) {
        // Files have everything then, whatever is noted of a journal.
        Ok(true) => check.add_mark(files, mark),
        Ok(false) => {
            check.add_mark(files, directory.join(LAST_STOP_NAME));
            let accepts_loss = config.is_some_and(|config| config.accepts_lost_journal);
            match check_journal_note(files, directory) {
                Ok(true) => {}
                Ok(false) => check.missed.push((directory.join(JOURNAL_NOTE_NAME), DAMAGED_MARK)),
                Err(_) if accepts_loss => {}
                Err(error) => check.refusals.push(error.into()),
            }
        }
        Err(error) => check.refusals.push(error.into()),
    }
    check
}

/// Reads the journal of the bucket in `directory` as an opening does, and changes nothing. No node
/// has the bucket open.
///
/// # Errors
/// With what an opening is refused.
pub fn check_journal(files: &Arc<dyn Files>, directory: &Path) -> Result<(), OpenError> {
    Ok(storage::journal::check_journal(files, directory)?)
}

impl DirectoryCheck {
    fn add_mark(&mut self, files: &dyn Files, path: PathBuf) {
        let is_damaged = match files.read_all(&path) {
            // One of an older version says nothing.
            Ok(text) => !text.is_empty() && Witnesses::decode(&text).is_none(),
            Err(error) => error.kind != FileErrorKind::NotFound,
        };
        if is_damaged {
            self.missed.push((path, DAMAGED_MARK));
        }
    }
}
