//! Small files that say how a node is to work, and that are changed while it does: users, settings
//! of buckets, the node's own words. A change that the disk refused is in none of them for good.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use platform::{FileError, FileErrorKind, Files};

/// Writes them.
pub(crate) struct KeptFiles {
    files: Arc<dyn Files>,
    /// What is to be in those that may have something that was refused, which a disk that takes
    /// nothing has kept from being put back; `None` for no file. Held while one is written.
    unsure: Mutex<BTreeMap<PathBuf, Option<Vec<u8>>>>,
    /// Has [`KeptFiles::make_sure`] called later.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl KeptFiles {
    pub(crate) fn new(files: Arc<dyn Files>) -> Self {
        Self { files, unsure: Mutex::default(), wake: OnceLock::new() }
    }

    /// Has `wake` called whenever there is something to be made sure.
    pub(crate) fn wake_with(&self, wake: Box<dyn Fn() + Send + Sync>) {
        assert!(self.wake.set(wake).is_ok(), "one makes sure of files");
    }

    /// Gives a file this content, durably.
    ///
    /// # Errors
    /// It has what it had; where the disk does not let that be made sure, as soon as it does.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        let mut unsure = self.lock();
        // What is put back on an error is what the file has now.
        self.make_sure_of(path, &mut unsure)?;
        let before = match self.files.read_all(path) {
            Ok(before) => Some(Some(before)),
            Err(absent) if absent.kind == FileErrorKind::NotFound => Some(None),
            // Nobody could put it back.
            Err(_) => None,
        };
        let Err(left) = self.files.replace_or_restore(path, content) else { return Ok(()) };
        if left.is_unsure {
            tracing::warn!(
                error = %left.error,
                path = %path.display(),
                "a change that was refused may be in the file"
            );
            if let Some(before) = before {
                unsure.insert(path.to_owned(), before);
            }
        }
        drop(unsure);
        if let Some(wake) = self.wake.get().filter(|_| left.is_unsure) {
            wake();
        }
        Err(left.error)
    }

    /// Reads a file that has nothing that was refused.
    pub(crate) fn read_all(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        self.make_sure_of(path, &mut self.lock())?;
        self.files.read_all(path)
    }

    /// Whether a file may have something that was refused.
    pub(crate) fn has_unsure(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Puts back what can be.
    pub(crate) fn make_sure(&self) {
        let mut unsure = self.lock();
        let paths: Vec<PathBuf> = unsure.keys().cloned().collect();
        for path in paths {
            // Who asks for the file meanwhile is told why not.
            drop(self.make_sure_of(&path, &mut unsure));
        }
    }

    fn make_sure_of(
        &self,
        path: &Path,
        unsure: &mut BTreeMap<PathBuf, Option<Vec<u8>>>,
    ) -> Result<(), FileError> {
        let Some(before) = unsure.get(path) else { return Ok(()) };
        match self.files.restore(path, before.as_deref()) {
            // A bucket that was deleted has taken its directory along.
            Err(error) if error.kind != FileErrorKind::NotFound => return Err(error),
            _ => {}
        }
        unsure.remove(path);
        tracing::info!(path = %path.display(), "the file has again what it had");
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Option<Vec<u8>>>> {
        self.unsure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

    use super::*;

    /// A disk with the file of these names, and what keeps them.
    fn start() -> (SimulatedFiles, KeptFiles, Arc<AtomicUsize>) {
        let files = SimulatedFiles::new();
        files.create_directories(Path::new("/data")).unwrap();
        let kept = KeptFiles::new(Arc::new(files.clone()));
        let woken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&woken);
        kept.wake_with(Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        (files, kept, woken)
    }

    fn fail(files: &SimulatedFiles) {
        let call = Some(Call::SyncDirectory);
        files.fail(Fault { call, number: 1, error: FaultError::Io, from_then_on: true });
    }

    #[test]
    fn what_was_refused_is_gone_as_soon_as_the_disk_lets_it() {
        let path = Path::new("/data/file");
        for before in [None, Some(&b"before"[..])] {
            let (files, kept, woken) = start();
            if let Some(before) = before {
                kept.replace(path, before).unwrap();
            }
            fail(&files);
            assert!(kept.replace(path, b"refused").is_err());
            assert!(kept.has_unsure() && woken.load(Ordering::Relaxed) == 1);
            kept.make_sure();
            assert!(kept.has_unsure(), "the disk takes nothing yet");
            assert!(kept.read_all(path).is_err(), "nobody reads what was refused");
            files.heal();
            kept.make_sure();
            assert!(!kept.has_unsure());
            files.power_cut(0);
            assert_eq!(files.content(path).as_deref(), before);
        }
    }

    #[test]
    fn a_change_behind_one_that_was_refused_goes_back_to_what_counts() {
        let path = Path::new("/data/file");
        let (files, kept, _) = start();
        kept.replace(path, b"before").unwrap();
        fail(&files);
        for refused in [b"one", b"two"] {
            assert!(kept.replace(path, refused).is_err());
        }
        files.heal();
        kept.make_sure();
        assert_eq!(kept.read_all(path).unwrap(), b"before");
        fail(&files);
        assert!(kept.replace(path, b"three").is_err());
        files.heal();
        kept.replace(path, b"after").unwrap();
        kept.make_sure();
        files.power_cut(0);
        assert_eq!(files.content(path).as_deref(), Some(&b"after"[..]));
    }

    #[test]
    fn what_is_gone_with_its_directory_is_no_longer_put_back() {
        let (files, kept, _) = start();
        let directory = Path::new("/data/bucket");
        files.create_directories(directory).unwrap();
        fail(&files);
        assert!(kept.replace(&directory.join("file"), b"refused").is_err());
        files.heal();
        bucket::remove_remains(&files, directory).unwrap();
        kept.make_sure();
        assert!(!kept.has_unsure());
    }
}
