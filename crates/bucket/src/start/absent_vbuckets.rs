//! Which vBuckets were deleted: without a file a vBucket begins empty, but not one of these.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use document::Vbid;
use platform::{FileErrorKind, Files};
use serde::{Deserialize, Serialize};

use super::open_error::OpenError;

pub(crate) const LIST_NAME: &str = "absent-vbuckets.json";
/// The version of the list's layout.
const FORMAT: u32 = 1;

/// The list. What is on it is gone, whatever files there are.
#[derive(Debug)]
pub(crate) struct AbsentVbuckets {
    path: PathBuf,
    listed: Mutex<List>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct List {
    format: u32,
    /// The last revision of each one's file: the next one is higher.
    revisions: BTreeMap<u16, u64>,
}

impl AbsentVbuckets {
    /// Reads the list in `directory`; without one nothing is absent.
    pub(crate) fn open(files: &dyn Files, directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(LIST_NAME);
        let list = match files.read_all(&path) {
            Ok(content) => match serde_json::from_slice::<List>(&content) {
                Ok(list) if list.format == FORMAT => list,
                Ok(_) => {
                    let what = "was written by a newer version; use that version".to_owned();
                    return Err(OpenError::BadDescription { path, what });
                }
                Err(_) => {
                    let what = "is not a list of vBuckets; restore it from a backup".to_owned();
                    return Err(OpenError::BadDescription { path, what });
                }
            },
            Err(error) if error.kind == FileErrorKind::NotFound => {
                List { format: FORMAT, revisions: BTreeMap::new() }
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path, listed: Mutex::new(list) })
    }

    /// What is on the list, with the last revision of its file.
    pub(crate) fn all(&self) -> Vec<(Vbid, u64)> {
        let list = self.lock();
        list.revisions.iter().map(|(vbid, revision)| (Vbid(*vbid), *revision)).collect()
    }

    /// Puts a vBucket on the list, or takes it off, durably.
    ///
    /// # Errors
    /// The list is as it was, or as it was to be if the power goes.
    pub(crate) fn set(
        &self,
        files: &dyn Files,
        vbid: Vbid,
        last_revision: Option<u64>,
    ) -> Result<(), OpenError> {
        self.change(files, |revisions| {
            match last_revision {
                Some(revision) => revisions.insert(vbid.0, revision),
                None => revisions.remove(&vbid.0),
            };
        })
    }

    /// Puts vBuckets that never had a file here on the list, durably.
    ///
    /// # Errors
    /// As those of [`AbsentVbuckets::set`].
    pub(crate) fn add(&self, files: &dyn Files, vbids: &[Vbid]) -> Result<(), OpenError> {
        if vbids.is_empty() {
            return Ok(());
        }
        self.change(files, |revisions| revisions.extend(vbids.iter().map(|vbid| (vbid.0, 0))))
    }

    fn change(
        &self,
        files: &dyn Files,
        change: impl FnOnce(&mut BTreeMap<u16, u64>),
    ) -> Result<(), OpenError> {
        let mut list = self.lock();
        let mut new = list.clone();
        change(&mut new.revisions);
        let json = serde_json::to_vec_pretty(&new).expect("numbers are JSON");
        files.replace_all(&self.path, &json)?;
        *list = new;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use platform::simulated::SimulatedFiles;

    use super::*;

    #[test]
    fn the_list_is_remembered_and_a_damaged_one_is_refused() {
        let files = SimulatedFiles::new();
        let directory = Path::new("bucket");
        files.create_directories(directory).unwrap();
        let list = AbsentVbuckets::open(&files, directory).unwrap();
        list.set(&files, Vbid(7), Some(3)).unwrap();
        list.set(&files, Vbid(900), Some(0)).unwrap();
        list.set(&files, Vbid(7), None).unwrap();
        list.add(&files, &[Vbid(8), Vbid(9)]).unwrap();
        files.power_cut(0);
        let list = AbsentVbuckets::open(&files, directory).unwrap();
        assert_eq!(list.all(), [(Vbid(8), 0), (Vbid(9), 0), (Vbid(900), 0)]);
        files.replace_all(&directory.join(LIST_NAME), b"{").unwrap();
        assert!(AbsentVbuckets::open(&files, directory).is_err());
    }
}
