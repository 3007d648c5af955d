//! Which vBuckets were deleted: without a file a vBucket begins empty, but not one of these.

use std::collections::{BTreeMap, BTreeSet};
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
    known: Mutex<Known>,
}

/// What is known of the list.
#[derive(Debug)]
struct Known {
    list: List,
    /// vBuckets of which the file may say something else: it could not be changed, nor put back,
    /// and may have been. What it says at the next start would count.
    unsure: BTreeSet<u16>,
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
        Ok(Self { path, known: Mutex::new(Known { list, unsure: BTreeSet::new() }) })
    }

    /// What is on the list, with the last revision of its file.
    pub(crate) fn all(&self) -> Vec<(Vbid, u64)> {
        let known = self.lock();
        known.list.revisions.iter().map(|(vbid, revision)| (Vbid(*vbid), *revision)).collect()
    }

    /// Puts a vBucket on the list, or takes it off, durably.
    ///
    /// # Errors
    /// The list is as it was. If it could not be written at all, the file may say otherwise of this
    /// vBucket until [`AbsentVbuckets::make_present`] or another change succeeds.
    pub(crate) fn set(
        &self,
        files: &dyn Files,
        vbid: Vbid,
        last_revision: Option<u64>,
    ) -> Result<(), OpenError> {
        self.change(files, &mut self.lock(), &[vbid], |revisions| {
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
        self.change(files, &mut self.lock(), vbids, |revisions| {
            revisions.extend(vbids.iter().map(|vbid| (vbid.0, 0)));
        })
    }

    /// Makes sure that no start finds one of `vbids` deleted. Writes nothing where that is sure.
    ///
    /// # Errors
    /// As those of [`AbsentVbuckets::set`]: what goes on regardless may be gone after a start.
    pub(crate) fn make_present(&self, files: &dyn Files, vbids: &[Vbid]) -> Result<(), OpenError> {
        let mut known = self.lock();
        let may_be_listed = |vbid: &Vbid| {
            known.list.revisions.contains_key(&vbid.0) || known.unsure.contains(&vbid.0)
        };
        let listed: Vec<Vbid> = vbids.iter().copied().filter(may_be_listed).collect();
        if listed.is_empty() {
            return Ok(());
        }
        self.change(files, &mut known, &listed, |revisions| {
            revisions.retain(|vbid, _| !listed.contains(&Vbid(*vbid)));
        })
    }

    fn change(
        &self,
        files: &dyn Files,
        known: &mut Known,
        changed: &[Vbid],
        change: impl FnOnce(&mut BTreeMap<u16, u64>),
    ) -> Result<(), OpenError> {
        let mut new = known.list.clone();
        change(&mut new.revisions);
        let written = self.write(files, &new);
        match &written {
            Ok(()) => known.list = new,
            // The new one may be in its place although that failed, and the callers go on as if it
            // were not.
            Err(_) if self.write(files, &known.list).is_ok() => {}
            Err(_) => {
                known.unsure.extend(changed.iter().map(|vbid| vbid.0));
                return written;
            }
        }
        known.unsure.clear();
        written
    }

    fn write(&self, files: &dyn Files, list: &List) -> Result<(), OpenError> {
        let json = serde_json::to_vec_pretty(list).expect("numbers are JSON");
        Ok(files.replace_all(&self.path, &json)?)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

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

    #[test]
    fn a_list_that_could_not_be_written_is_put_back_or_is_unsure_until_another_is_written() {
        let no_sync = |from_then_on| Fault {
            call: Some(Call::SyncDirectory),
            number: 1,
            error: FaultError::Io,
            from_then_on,
        };
        let files = SimulatedFiles::new();
        let directory = Path::new("bucket");
        files.create_directories(directory).unwrap();
        let found = || AbsentVbuckets::open(&files, directory).unwrap().all();
        let list = AbsentVbuckets::open(&files, directory).unwrap();
        list.set(&files, Vbid(900), Some(3)).unwrap();
        files.fail(no_sync(false));
        assert!(list.set(&files, Vbid(7), Some(3)).is_err());
        assert_eq!(found(), [(Vbid(900), 3)]);

        files.fail(no_sync(true));
        assert!(list.set(&files, Vbid(7), Some(3)).is_err());
        assert!(list.make_present(&files, &[Vbid(7), Vbid(8)]).is_err());
        let calls = files.calls().total();
        list.make_present(&files, &[Vbid(6), Vbid(8)]).unwrap();
        assert_eq!(files.calls().total(), calls, "of those it is sure");
        files.heal();
        list.make_present(&files, &[Vbid(7)]).unwrap();
        files.power_cut(0);
        assert_eq!(found(), [(Vbid(900), 3)]);
        list.make_present(&files, &[Vbid(900)]).unwrap();
        files.power_cut(0);
        assert_eq!(found(), []);
    }
}
