//! Which files a tool is to read: one that is named, or those of a bucket or a data directory.
//! A bucket has couchstore files and segments of a journal; names tell them apart.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use platform::Files;
use storage::couchstore::layout::{self, FileName};
use storage::journal;

/// Where a node's data directory has its buckets.
const BUCKETS_NAME: &str = "buckets";

/// The files that `paths` stand for, those of a directory in the order of buckets and vBuckets; the
/// segments of a bucket's journal follow its files, by number. If a bucket is named, the paths are
/// data directories, of which it alone is meant.
pub(crate) fn bucket_files(
    files: &dyn Files,
    paths: &[PathBuf],
    bucket: Option<&str>,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        match bucket {
            None => found.extend(files_of(files, path)?),
            Some(name) => found.extend(files_of(files, &bucket_directory(files, path, name)?)?),
        }
    }
    Ok(found)
}

/// Where a data directory has the bucket of that name.
fn bucket_directory(files: &dyn Files, path: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let buckets = path.join(BUCKETS_NAME);
    let Ok(names) = files.list(&buckets) else {
        bail!("{} is no node's data directory, of which --bucket is a part", path.display());
    };
    if !names.iter().any(|known| known == name) {
        bail!("{} has no bucket `{name}`, but `{}`", path.display(), names.join("`, `"));
    }
    Ok(buckets.join(name))
}

fn files_of(files: &dyn Files, path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !files.exists(path)? {
        bail!("{} does not exist", path.display());
    }
    // What cannot be listed is a file.
    let Ok(names) = files.list(path) else { return Ok(vec![path.to_path_buf()]) };
    let mut found = files_inside(files, path, &names);
    if found.is_empty() && names.iter().any(|name| name == BUCKETS_NAME) {
        let buckets = path.join(BUCKETS_NAME);
        for bucket in files.list(&buckets).context("the buckets cannot be listed")? {
            let directory = buckets.join(bucket);
            // What is no directory is no bucket.
            let names = files.list(&directory).unwrap_or_default();
            found.extend(files_inside(files, &directory, &names));
        }
    }
    if found.is_empty() {
        bail!(
            "{} holds no couchstore files (<vBucket>.couch.<revision>) nor segments of a \
             journal (j.<number>); give one of them, a bucket's directory, or a node's data \
             directory",
            path.display()
        );
    }
    Ok(found)
}

/// Whether a file is a segment of a journal, by its name.
pub(crate) fn is_segment(path: &Path) -> bool {
    path.file_name().is_some_and(|name| journal::is_segment_name(&name.to_string_lossy()))
}

/// What a bucket's directory holds, or a journal's.
fn files_inside(files: &dyn Files, directory: &Path, names: &[String]) -> Vec<PathBuf> {
    let mut found = data_files(directory, names);
    found.extend(segments(directory, names));
    let journal = directory.join(journal::JOURNAL_DIRECTORY);
    if let Ok(names) = files.list(&journal) {
        found.extend(segments(&journal, &names));
    }
    found
}

/// Names of segments are in the order of their numbers.
fn segments(directory: &Path, names: &[String]) -> impl Iterator<Item = PathBuf> {
    names.iter().filter(|name| journal::is_segment_name(name)).map(|name| directory.join(name))
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
