//! Fetching a backup: every object checked, under the name that a node gives its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use document::Vbid;
use platform::{FileError, Files};
use storage::couchstore::layout;

use super::RestoreArguments;
use super::checked::check;
use super::crew::{self, Moved};
use super::manifest::{Manifest, VbucketPart, backup_of, object_name};
use super::spool::SpoolFile;
use super::target::Target;

/// What was fetched.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// The backup's name.
    pub backup: String,
    /// vBuckets that the bucket has.
    pub vbucket_count: u16,
    /// Which version of a document wins in the bucket.
    pub conflict_resolution: String,
    /// The bucket's scopes and collections, as JSON; older versions did not keep them.
    pub collections: Option<String>,
    /// The settings that were kept of the bucket; older versions did not keep them in backups.
    pub settings: BTreeMap<String, String>,
    /// vBuckets that have files.
    pub vbuckets: usize,
    /// vBuckets that were deleted.
    pub deleted: Vec<Vbid>,
    /// Documents alive in them.
    pub documents: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

/// Puts the files of a backup into `directory`, which is empty, and makes their contents durable;
/// the directory itself is the caller's to sync.
///
/// # Errors
/// An object is missing or not what the manifest says. What is in the directory then is of no use.
pub fn fetch(
    arguments: &RestoreArguments,
    files: Arc<dyn Files>,
    directory: &Path,
) -> anyhow::Result<RestoreReport> {
    let target = arguments.target.open(Arc::clone(&files))?;
    let manifest = choose(arguments, &*target)?;
    let kind = &manifest.bucket.bucket_type;
    ensure!(kind == "couchbase", "a backup of a bucket of the type {kind} cannot be restored");
    let restored = RestoreReport {
        backup: manifest.name.clone(),
        vbucket_count: manifest.bucket.vbucket_count,
        conflict_resolution: manifest.bucket.conflict_resolution.clone(),
        collections: manifest.collections.as_ref().map(ToString::to_string),
        settings: manifest.settings.clone(),
        vbuckets: manifest.vbuckets.len(),
        deleted: manifest.deleted.iter().map(|vbid| Vbid(*vbid)).collect(),
        documents: manifest.documents(),
        bytes: manifest.bytes(),
    };
    let moved = Moved::default();
    let jobs = manifest.vbuckets.len();
    let work = Work { target, files, manifest, directory: directory.to_path_buf(), moved };
    let moved = work.moved.clone();
    let job = move |index: usize| work.fetch(index);
    crew::run(jobs, arguments.parallel, &moved, restored.bytes, || Ok(()), job)
        .with_context(|| format!("the backup {} cannot be restored", restored.backup))?;
    Ok(restored)
}

/// The backup that the user names, or the newest one of the bucket.
fn choose(arguments: &RestoreArguments, target: &dyn Target) -> anyhow::Result<Manifest> {
    if let Some(name) = &arguments.name {
        let manifest = Manifest::get(target, name)?;
        return manifest.with_context(|| {
            format!(
                "there is no backup {name} in {}: {} is missing; settee backup --info lists those \
                 that there are",
                target.describe(),
                object_name(name)
            )
        });
    }
    let mut newest: Option<Manifest> = None;
    for object in target.list("")? {
        let Some(name) = backup_of(&object.name) else { continue };
        let Some(manifest) = Manifest::get(target, name)? else { continue };
        let is_newer = newest.as_ref().is_none_or(|other| manifest.began_at >= other.began_at);
        if manifest.bucket.name == arguments.bucket && is_newer {
            newest = Some(manifest);
        }
    }
    let Some(manifest) = newest else {
        bail!(
            "there is no complete backup of a bucket {} in {}; settee backup --info lists those \
             that there are, --name takes one of another bucket",
            arguments.bucket,
            target.describe()
        );
    };
    Ok(manifest)
}

/// What the threads share.
struct Work {
    target: Arc<dyn Target>,
    files: Arc<dyn Files>,
    manifest: Manifest,
    directory: PathBuf,
    moved: Moved,
}

impl Work {
    fn fetch(&self, index: usize) -> anyhow::Result<()> {
        let part = self.manifest.vbuckets.get(index).context("a job is one of the list")?;
        let object = format!("{}/{}", self.manifest.name, part.object);
        self.fetch_object(&object, part).map_err(|error| {
            let vbid = part.vbid;
            let what = match error.downcast_ref::<FileError>() {
                Some(FileError { path, .. }) if path.starts_with(&self.directory) => format!(
                    "vBucket {vbid} cannot be written; see whether there is room in {}",
                    self.directory.display()
                ),
                _ => {
                    format!(
                        "the object {object} of vBucket {vbid} cannot be used; use another backup"
                    )
                }
            };
            error.context(what)
        })
    }

    fn fetch_object(&self, object: &str, part: &VbucketPart) -> anyhow::Result<()> {
        let path = self.directory.join(layout::data_file(Vbid(part.vbid), 1));
        let mut file = SpoolFile::create(&*self.files, &path, &self.moved)?;
        let is_there = self.target.get(object, &mut |bytes| {
            self.moved.add(bytes.len());
            file.write(bytes)
        })?;
        ensure!(is_there, "it is missing");
        let written = file.finish()?;
        ensure!(
            written.bytes == part.bytes && written.sha256 == part.sha256,
            "its {} bytes are not those that were stored",
            written.bytes
        );
        let checked = check(&*self.files, &path, &self.moved)?;
        ensure!(part.is_of(&checked), "the manifest says something else of it");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use platform::simulated::SimulatedFiles;
    use serde_json::json;

    use super::*;
    use crate::backup::directory::DirectoryTarget;

    #[test]
    fn a_full_disk_does_not_make_a_backup_a_bad_one() {
        let simulated = SimulatedFiles::new();
        let files: Arc<dyn Files> = Arc::new(simulated.clone());
        let (target, directory) = (Path::new("/backups"), Path::new("/data"));
        files.create_directories(&target.join("b")).unwrap();
        files.create_directories(directory).unwrap();
        simulated.insert(&target.join("b/0.couch"), &[1; 1 << 20]);
        let manifest = json!({
            "format": 2, "name": "b", "node": "", "began_at": 0, "ended_at": 0,
            "cut_milliseconds": 0, "deleted": [], "empty": [],
            "bucket": {"name": "default", "uuid": "", "type": "couchbase", "vbuckets": 1},
            "vbuckets": [{"vbid": 0, "object": "0.couch", "bytes": 1 << 20, "sha256": "",
                "high_seqno": 0, "documents": 0, "tombstones": 0, "failover_table": []}],
        });
        let work = Work {
            target: Arc::new(DirectoryTarget::open(Arc::clone(&files), target).unwrap()),
            files: Arc::clone(&files),
            manifest: serde_json::from_value(manifest).unwrap(),
            directory: directory.to_path_buf(),
            moved: Moved::default(),
        };
        let error = format!("{:#}", work.fetch(0).unwrap_err());
        assert!(error.contains("use another backup: its 1048576 bytes are not"), "{error}");
        files.remove(&directory.join("0.couch.1")).unwrap();
        simulated.set_capacity((1 << 20) + (1 << 19));
        let error = format!("{:#}", work.fetch(0).unwrap_err());
        assert!(error.contains("cannot be written; see whether there is room in /data"), "{error}");
    }
}
