//! The bucket's manifest, in memory and in the bucket's directory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use document::{CollectionId, Manifest, Map};
use platform::{FileError, FileErrorKind, Files, NotReplaced};

use super::manifest_json;
use crate::core::Wakeable;
use crate::start::{MANIFEST_NAME, OpenError};

/// The manifest of a bucket. What is read of it is what was durable before.
pub(crate) struct ManifestStore {
    files: Arc<dyn Files>,
    path: PathBuf,
    current: RwLock<Arc<Manifest>>,
    /// Held by whoever changes it, across I/O and until the vBuckets follow.
    changing: Mutex<()>,
    /// Whether any collection says something of the life of its documents, and which do.
    limits_lives: AtomicBool,
    max_ttls: RwLock<Map<CollectionId, u32>>,
    /// What the bucket says of the lives of documents whose collection says nothing.
    bucket_max_ttl: AtomicU32,
    /// What holds for documents of the default collection, which most writes are of. Changed, as
    /// what it follows from, under the lock of `max_ttls`.
    default_max_ttl: AtomicU32,
    /// Whether the file may have another one, which was refused: neither could be written. A start
    /// would take that, and drop what it drops.
    is_unsure: AtomicBool,
    /// Writes the current one until the file has it.
    pub(super) keeper: Wakeable,
    /// Hears of each change.
    watcher: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Erases the documents of dropped collections.
    pub(super) eraser: Wakeable,
    /// Whether a collection was dropped since a round of the eraser began last.
    erasure_is_due: AtomicBool,
    /// Whether it is the newest that a vBucket follows. Not so at first where the files may come
    /// from elsewhere, as there was no manifest in the directory, or one that says so: then the
    /// newest of a vBucket's is it, which shows when all are loaded. Changed by whoever has the
    /// right to change the manifest.
    is_settled: AtomicBool,
}

/// Whether the manifest in `directory` can be read, if there is one.
///
/// # Errors
/// A bucket with it does not open.
pub(crate) fn check_manifest(files: &dyn Files, directory: &Path) -> Result<(), OpenError> {
    read(files, &directory.join(MANIFEST_NAME)).map(drop)
}

/// The manifest in the file, and whether vBuckets may follow a newer one.
fn read(files: &dyn Files, path: &Path) -> Result<Option<(Manifest, bool)>, OpenError> {
    let text = match files.read_all(path) {
        Err(error) if error.kind == FileErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let refuse = |why| OpenError::BadDescription {
        path: path.to_owned(),
        what: format!(
            "cannot be read: {why}; put it back from a copy of the directory, or move it away: the \
             bucket has the scopes and collections then that its files and its journal know"
        ),
    };
    manifest_json::decode_file(&text).map(Some).map_err(refuse)
}

impl ManifestStore {
    /// Reads the manifest of the bucket in `directory`; one that was never changed has none there.
    /// `max_ttl` is how many seconds documents live at most whose collection does not say it; 0: as
    /// long as they like.
    pub(crate) fn open(
        files: &Arc<dyn Files>,
        directory: &Path,
        max_ttl: u32,
    ) -> Result<Self, OpenError> {
        let path = directory.join(MANIFEST_NAME);
        let found = read(&**files, &path)?;
        let store = Self {
            files: Arc::clone(files),
            path,
            current: RwLock::default(),
            changing: Mutex::default(),
            limits_lives: AtomicBool::new(false),
            max_ttls: RwLock::default(),
            bucket_max_ttl: AtomicU32::new(max_ttl),
            default_max_ttl: AtomicU32::new(max_ttl),
            is_unsure: AtomicBool::new(false),
            keeper: Wakeable::default(),
            watcher: OnceLock::new(),
            eraser: Wakeable::default(),
            erasure_is_due: AtomicBool::new(false),
            is_settled: AtomicBool::new(
                found.as_ref().is_some_and(|(_, may_be_behind)| !may_be_behind),
            ),
        };
        store.show(found.map(|(manifest, _)| manifest).unwrap_or_default());
        Ok(store)
    }

    /// The manifest.
    pub(crate) fn current(&self) -> Arc<Manifest> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has the documents of dropped collections erased.
    pub(crate) fn wake_eraser(&self) {
        self.erasure_is_due.store(true, Ordering::Release);
        self.eraser.wake();
    }

    /// A round of the eraser begins.
    pub(super) fn begin_erasure(&self) {
        self.erasure_is_due.store(false, Ordering::Release);
    }

    /// Whether another round has to follow: this one has passed the vBuckets of the last drop.
    pub(super) fn is_erasure_due(&self) -> bool {
        self.erasure_is_due.load(Ordering::Acquire)
    }

    /// From now on `watcher` hears of each change.
    pub(super) fn watch(&self, watcher: Box<dyn Fn() + Send + Sync>) {
        assert!(self.watcher.set(watcher).is_ok(), "a bucket's manifest has one watcher");
    }

    /// Says that there is another one. For whoever has changed it, after the right to is given up.
    pub(super) fn tell(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher();
        }
    }

    /// The right to change it.
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `manifest` durable, then the current one. For whoever has the right.
    ///
    /// # Errors
    /// It is not the current one, and no start takes it; where the disk does not let that be made
    /// sure, it is as soon as it does.
    pub(super) fn replace(&self, manifest: Manifest) -> Result<(), FileError> {
        // What is put back on an error is what the file has.
        self.make_sure()?;
        self.write(&manifest)?;
        self.show(manifest);
        Ok(())
    }

    /// Whether it is known which manifest the bucket has.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Acquire)
    }

    /// Takes a newer manifest, of a vBucket, for now: the next start finds it again where it was
    /// found. For whoever has the right, before it is settled.
    pub(super) fn adopt(&self, manifest: Manifest) {
        assert!(!self.is_settled(), "what is settled is changed durably");
        self.show(manifest);
    }

    /// No vBucket follows a newer manifest than the current one, which is made durable: from now on
    /// it counts, whatever a vBucket's file says. For whoever has the right.
    pub(super) fn settle(&self) -> Result<(), FileError> {
        if self.is_settled() { Ok(()) } else { self.write(&self.current()) }
    }

    /// Makes sure that the file has no manifest that was refused. For whoever has the right.
    pub(super) fn make_sure(&self) -> Result<(), FileError> {
        if self.is_unsure.load(Ordering::Relaxed) {
            self.write(&self.current())?;
        }
        Ok(())
    }

    fn write(&self, manifest: &Manifest) -> Result<(), FileError> {
        let text = manifest_json::encode_whole(manifest);
        if let Err(NotReplaced { error, is_unsure }) =
            self.files.replace_or_restore(&self.path, text.as_bytes())
        {
            if is_unsure && !self.is_unsure.load(Ordering::Relaxed) {
                let path = self.path.display();
                tracing::warn!(%error, %path, "a manifest that was refused may be in the file");
                self.is_unsure.store(true, Ordering::Relaxed);
                self.keeper.wake();
            }
            return Err(error);
        }
        self.is_unsure.store(false, Ordering::Relaxed);
        self.is_settled.store(true, Ordering::Release);
        Ok(())
    }

    /// The longest life of documents of a collection, in seconds, by itself or else by the bucket;
    /// 0: there is none.
    #[inline]
    pub(super) fn max_ttl(&self, collection: CollectionId) -> u32 {
        if collection == CollectionId::DEFAULT {
            return self.default_max_ttl.load(Ordering::Relaxed);
        }
        if !self.limits_lives.load(Ordering::Relaxed) {
            return self.bucket_max_ttl();
        }
        let limits = self.max_ttls.read().unwrap_or_else(PoisonError::into_inner);
        limits.get(&collection).copied().unwrap_or_else(|| self.bucket_max_ttl())
    }

    pub(super) fn bucket_max_ttl(&self) -> u32 {
        self.bucket_max_ttl.load(Ordering::Relaxed)
    }

    pub(super) fn set_bucket_max_ttl(&self, seconds: u32) {
        let limits = self.max_ttls.write().unwrap_or_else(PoisonError::into_inner);
        self.bucket_max_ttl.store(seconds, Ordering::Relaxed);
        self.settle_default_max_ttl(&limits);
    }

    fn settle_default_max_ttl(&self, limits: &Map<CollectionId, u32>) {
        let own = limits.get(&CollectionId::DEFAULT).copied();
        self.default_max_ttl.store(own.unwrap_or(self.bucket_max_ttl()), Ordering::Relaxed);
    }

    fn show(&self, manifest: Manifest) {
        let limited = |(_, it): (_, &document::ManifestCollection)| Some((it.id, it.max_ttl?));
        let limits: Map<_, _> = manifest.collections().filter_map(limited).collect();
        self.limits_lives.store(!limits.is_empty(), Ordering::Relaxed);
        let mut shown = self.max_ttls.write().unwrap_or_else(PoisonError::into_inner);
        self.settle_default_max_ttl(&limits);
        *shown = limits;
        drop(shown);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(manifest);
    }
}
