//! Changing the manifest, and having vBuckets follow it.

use std::sync::Arc;

use document::{CollectionId, Manifest, ManifestCollection, ManifestEdit, ManifestError};
use document::{ManifestScope, ScopeId, Vbid, manifest::DEFAULT_NAME};
use platform::FileError;
use vbucket::Vbucket;

use crate::core::{Bucket, BucketCore};

/// Why the manifest is what it was.
#[derive(Debug)]
pub enum ManifestChangeError {
    /// What is asked for cannot be.
    Refused(ManifestError),
    /// Which scopes and collections there are is not known before all vBuckets are loaded, whose
    /// files came from elsewhere. Clients try again.
    Loading,
    /// It could not be made durable: clients may try again.
    Failed(FileError),
}

impl std::fmt::Display for ManifestChangeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(formatter),
            Self::Loading => formatter.write_str("The bucket is being loaded; try again"),
            Self::Failed(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for ManifestChangeError {}

impl Bucket {
    /// Which scopes and collections the bucket has.
    pub fn manifest(&self) -> Arc<Manifest> {
        self.0.manifest.current()
    }

    /// Whether the manifest has this collection.
    pub fn has_collection(&self, collection: CollectionId) -> bool {
        collection == CollectionId::DEFAULT
            || self.manifest().collections().any(|(_, it)| it.id == collection)
    }

    /// The longest life of a document of this collection, in seconds, if that is limited: by the
    /// collection, or else by the bucket. Source: docs/specification/protocol.md, maxTTL.
    #[inline]
    pub fn max_ttl(&self, collection: CollectionId) -> Option<u32> {
        let seconds = self.0.manifest.max_ttl(collection);
        (seconds > 0).then_some(seconds)
    }

    /// The longest life of a document whose collection says nothing of it, in seconds; 0: none.
    pub fn max_ttl_seconds(&self) -> u32 {
        self.0.manifest.bucket_max_ttl()
    }

    /// Changes it, for writes from now on.
    pub fn set_max_ttl_seconds(&self, seconds: u32) {
        self.0.manifest.set_bucket_max_ttl(seconds);
    }

    /// Whether it is known yet which manifest the bucket has; before that it cannot be changed.
    pub fn knows_its_manifest(&self) -> bool {
        self.0.check_manifest_is_known().is_ok()
    }

    /// Changes the manifest, if that changes anything. It is durable on return, and the active
    /// vBuckets that are loaded follow it; the others do when they are. Not for front-end workers.
    ///
    /// # Errors
    /// See [`ManifestChangeError`].
    pub fn edit_manifest(
        &self,
        edit: ManifestEdit<'_>,
    ) -> Result<Arc<Manifest>, ManifestChangeError> {
        let changing = self.0.manifest.lock();
        self.0.check_manifest_is_known()?;
        let current = self.manifest();
        let next = current.edited(edit).map_err(ManifestChangeError::Refused)?;
        if next.uid == current.uid {
            return Ok(current);
        }
        self.0.change_manifest(next)?;
        let changed = self.manifest();
        drop(changing);
        self.0.manifest.tell();
        Ok(changed)
    }

    /// Puts another manifest into the place of the one that there is, as
    /// [`Bucket::edit_manifest`]. The same one again does no harm.
    ///
    /// # Errors
    /// See [`ManifestChangeError`].
    pub fn set_manifest(&self, next: Manifest) -> Result<(), ManifestChangeError> {
        let changing = self.0.manifest.lock();
        self.0.check_manifest_is_known()?;
        let current = self.manifest();
        if !current.check_next(&next).map_err(ManifestChangeError::Refused)? {
            return Ok(());
        }
        self.0.change_manifest(next.continuing(&current))?;
        drop(changing);
        self.0.manifest.tell();
        Ok(())
    }

    /// Has `watcher` called after each change of the manifest, by the thread that makes it and
    /// under no lock of the bucket; it must not block.
    pub fn watch_manifest(&self, watcher: impl Fn() + Send + Sync + 'static) {
        self.0.manifest.watch(Box::new(watcher));
    }
}

impl BucketCore {
    /// Makes a manifest durable and has the vBuckets follow it. The caller has the right to.
    fn change_manifest(&self, next: Manifest) -> Result<(), ManifestChangeError> {
        self.manifest.replace(next).map_err(ManifestChangeError::Failed)?;
        self.slots().for_each(|(vbid, _)| self.have_manifest_followed(vbid));
        Ok(())
    }

    /// Whether it can be changed: what is given out next was never given out before.
    fn check_manifest_is_known(&self) -> Result<(), ManifestChangeError> {
        let is_known = self.manifest.is_settled() || !self.background.warmup.is_loading_metadata();
        if is_known { Ok(()) } else { Err(ManifestChangeError::Loading) }
    }

    /// All vBuckets are loaded: which manifest the bucket has is known.
    pub(crate) fn settle_manifest(&self) {
        let _changing = self.manifest.lock();
        if let Err(error) = self.manifest.settle() {
            // Until it is changed, or the next start finds it again where it was found.
            tracing::warn!(%error, "the manifest of the vBuckets could not be kept");
        }
    }

    /// Has a vBucket follow the manifest, if it is active and here. Whoever makes a vBucket active
    /// calls this behind it: a manifest that comes at the same time finds the vBucket, or this
    /// finds the manifest.
    pub(crate) fn have_manifest_followed(&self, vbid: Vbid) {
        let (manifest, now) = (self.manifest.current(), self.now());
        let mut refused = None;
        let follow = |vbucket: &mut Vbucket, effects: &mut Vec<_>| {
            refused = vbucket.follow_manifest(&manifest, now, effects).err();
        };
        // One that is not here follows when it comes.
        let _is_here = self.on_vbucket(vbid, &mut Vec::new(), follow);
        if let Some(error) = refused {
            let (uid, vbucket) = (manifest.uid, vbid.0);
            tracing::error!(%error, vbucket, uid, "a vBucket keeps the collections that it has");
        }
    }

    /// A vBucket whose file came from elsewhere tells of collections that the bucket does not know
    /// of before its manifest is settled: the newest such manifest is its.
    pub(crate) fn adopt_manifest_of(&self, vbid: Vbid) {
        if self.manifest.is_settled() {
            return;
        }
        let known = self.manifest.current().uid;
        let manifest = self.slot(vbid).and_then(|slot| {
            let vbucket = slot.lock();
            vbucket.as_ref().filter(|vbucket| vbucket.manifest_uid() > known).map(manifest_of)
        });
        let Some(manifest) = manifest else { return };
        let changing = self.manifest.lock();
        let current = self.manifest.current();
        // Another vBucket may have brought a newer one; and a file from elsewhere may say anything.
        if manifest.uid <= current.uid || manifest.check().is_err() {
            return;
        }
        let uid = manifest.uid;
        self.manifest.adopt(manifest.continuing(&current));
        self.slots().for_each(|(vbid, _)| self.have_manifest_followed(vbid));
        drop(changing);
        tracing::info!(vbucket = vbid.0, uid, "the manifest of a vBucket is newer");
        self.manifest.tell();
    }
}

/// The manifest that a vBucket follows, as far as its history tells.
fn manifest_of(vbucket: &Vbucket) -> Manifest {
    let mut manifest = Manifest { uid: vbucket.manifest_uid(), ..Manifest::default() };
    for (id, name) in vbucket.scopes() {
        if id != ScopeId::DEFAULT {
            let (name, collections) = (name.to_owned(), Vec::new());
            manifest.scopes.push(ManifestScope { id, name, collections });
        }
    }
    manifest.scopes.sort_unstable_by_key(|scope| scope.id);
    let mut collections: Vec<_> = vbucket.collections().collect();
    collections.sort_unstable_by_key(|(id, _)| *id);
    for (id, it) in collections {
        let scope = manifest.scopes.iter_mut().find(|scope| scope.id == it.scope);
        if let Some(scope) = scope.filter(|_| &*it.name != DEFAULT_NAME) {
            let (name, max_ttl, history) = (it.name.to_string(), it.max_ttl, it.history);
            scope.collections.push(ManifestCollection { id, name, max_ttl, history });
        }
    }
    manifest.continuing(&Manifest::default())
}
