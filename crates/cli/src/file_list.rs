//! Which files a tool is to read: one that is named, or those of a bucket or a data directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use platform::Files;
use storage::couchstore::layout::{self, FileName};

/// Where a node's data directory has its buckets.
const BUCKETS_NAME: &str = "buckets";

/// The couchstore files that `paths` stand for, those of a directory in the order of buckets and
/// vBuckets.
pub(crate) fn couchstore_files(
    files: &dyn Files,
    paths: &[PathBuf],
) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        found.extend(files_of(files, path)?);
    }
    Ok(found)
}

fn files_of(files: &dyn Files, path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !files.exists(path) {
        bail!("{} does not exist", path.display());
    }
    // What cannot be listed is a file.
    let Ok(names) = files.list(path) else { return Ok(vec![path.to_path_buf()]) };
    let mut found = data_files(path, &names);
    if found.is_empty() && names.iter().any(|name| name == BUCKETS_NAME) {
        let buckets = path.join(BUCKETS_NAME);
        for bucket in files.list(&buckets).context("the buckets cannot be listed")? {
            let directory = buckets.join(bucket);
            // What is no directory is no bucket.
            let names = files.list(&directory).unwrap_or_default();
            found.extend(data_files(&directory, &names));
        }
    }
    if found.is_empty() {
        bail!(
            "{} holds no couchstore files (<vBucket>.couch.<revision>); give one of them, a \
             bucket's directory, or a node's data directory",
            path.display()
        );
    }
    Ok(found)
}

fn data_files(directory: &Path, names: &[String]) -> Vec<PathBuf> {
    let mut found: Vec<_> = names
        .iter()
        .filter_map(|name| match layout::parse(name) {
            FileName::Data(vbid, revision) => Some((vbid, revision, directory.join(name))),
            _ => None,
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, _, path)| path).collect()
}
