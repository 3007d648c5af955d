//! The data directory: whose it is, who uses it, and how much room there is.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use platform::{DiskSpace, FileErrorKind, Files};
use serde_json::Value;
use storage::Severity;

use super::symptom::Symptom;
use super::{DoctorArguments, NoteCheck, Report, bucket};

/// The mark of a node's data directory.
const MARK_NAME: &str = "settee.json";
/// Held by the node that uses the directory.
const LOCK_NAME: &str = "lock";
const BUCKETS_NAME: &str = "buckets";
/// Where another server may have its buckets, below its own directory.
const OTHERS_NAME: &str = "data";
/// The files of a node that are JSON.
const JSON_NAMES: [&str; 4] = [MARK_NAME, "users.json", "cluster-map.json", "own-setup.json"];
/// Percent of the disk below which there is too little room.
const FREE_PERCENT_MIN: u64 = 10;

/// Looks at a node's data directory and everything in it.
///
/// # Errors
/// It is none, or cannot be read.
pub(super) fn examine(
    files: &dyn Files,
    arguments: &DoctorArguments,
    notes: NoteCheck<'_>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let directory = &arguments.directory;
    let shown = directory.display();
    let names = files.list(directory).with_context(|| format!("{shown} cannot be read"))?;
    let has_mark = names.iter().any(|name| name == MARK_NAME);
    if !has_mark && !has_bucket(files, directory) {
        bail!(
            "{shown} is no node's data directory: it has no {MARK_NAME}; settee adopt --check \
             {shown} tells what of another server's directory a node takes over"
        );
    }
    let is_in_use = is_in_use(files, directory, &names)?;
    let use_now = if is_in_use { "a node uses it now" } else { "no node uses it now" };
    report.facts.push(format!("{shown}: {use_now}"));
    if !has_mark {
        let what = "is missing, beside buckets of a node".to_owned();
        let advice = "put it back from a copy of the directory; a start makes another, with new \
                      identities of node and cluster";
        report.symptoms.push(unreadable(&directory.join(MARK_NAME), what).advise(advice));
    }
    look_at_space(files, directory, report)?;
    for name in JSON_NAMES {
        look_at_json(files, &directory.join(name), report);
    }
    let found = buckets(files, directory)?;
    if found.is_empty() {
        report.facts.push("no bucket is here".to_owned());
    }
    for (name, path) in found {
        let data = directory.clone();
        let place = bucket::Place { directory: path, data, name, is_in_use };
        bucket::examine(files, &place, arguments.quick, report)?;
    }
    // A node that runs changes them.
    if !is_in_use {
        add_notes(notes(directory), report);
    }
    Ok(())
}

/// What a node says of files of which nothing is said yet.
fn add_notes(faults: Vec<(PathBuf, String)>, report: &mut Report) {
    for (path, what) in faults {
        let place = path.display().to_string();
        if report.symptoms.iter().all(|known| known.place != place) {
            report.symptoms.push(Symptom::new(Severity::Problem, place, what));
        }
    }
}

/// The names of what is among the buckets of the directory, and where it is.
fn buckets(files: &dyn Files, directory: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let buckets = directory.join(BUCKETS_NAME);
    let names = if files.exists(&buckets)? { files.list(&buckets)? } else { Vec::new() };
    let mut found: Vec<_> = names.into_iter().map(|it| (it.clone(), buckets.join(it))).collect();
    for (name, path) in taken_over(files, directory) {
        // As a node does: those below `buckets/` come first.
        if found.iter().all(|(known, _)| *known != name) {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Another server's buckets that a node has taken over where they are.
fn taken_over(files: &dyn Files, directory: &Path) -> Vec<(String, PathBuf)> {
    let inside = directory.join(OTHERS_NAME);
    // A directory with a mark of its own is another node's.
    let is_others = files.exists(&inside.join(MARK_NAME)).unwrap_or(true);
    let places = [Some(directory), (!is_others).then_some(&*inside)];
    let found = places.into_iter().flatten().flat_map(|place| {
        let names = files.list(place).unwrap_or_default().into_iter();
        names.map(|name| (name.clone(), place.join(name)))
    });
    found.filter(|(_, path)| bucket::is_taken_over(files, path)).collect()
}

/// Whether a bucket of a node is in the directory.
fn has_bucket(files: &dyn Files, directory: &Path) -> bool {
    let is_described = |(_, path): &(String, PathBuf)| {
        files.exists(&path.join(bucket::DESCRIPTION_NAME)).unwrap_or(false)
    };
    buckets(files, directory).unwrap_or_default().iter().any(is_described)
}

/// Takes the lock for an instant: who holds it is a node.
fn is_in_use(files: &dyn Files, directory: &Path, names: &[String]) -> anyhow::Result<bool> {
    // Without the file nobody holds it, and it is not made.
    if !names.iter().any(|name| name == LOCK_NAME) {
        return Ok(false);
    }
    let lock = files.try_lock(&directory.join(LOCK_NAME));
    let lock = lock.context("whether a node uses the directory cannot be told; ask as its user")?;
    Ok(lock.is_none())
}

fn look_at_space(files: &dyn Files, directory: &Path, report: &mut Report) -> anyhow::Result<()> {
    let DiskSpace { free_bytes, total_bytes } = files.disk_space(directory)?;
    let percent = free_bytes.saturating_mul(100) / total_bytes.max(1);
    let megabytes = |bytes: u64| bytes / 1_000_000;
    let (free, total) = (megabytes(free_bytes), megabytes(total_bytes));
    report.facts.push(format!("room on the disk: {free} of {total} MB, {percent} %"));
    if percent < FREE_PERCENT_MIN {
        let what = format!("{free} MB are free, {percent} % of the disk");
        let symptom = Symptom::new(Severity::Warning, directory.display().to_string(), what);
        let advice = "a node refuses writes when the disk is full, and compaction needs room for a \
                      second copy of a file: make room, or move the directory to a larger disk";
        report.symptoms.push(symptom.advise(advice));
    }
    Ok(())
}

/// A file that is there is JSON.
pub(super) fn look_at_json(files: &dyn Files, path: &Path, report: &mut Report) -> Option<Value> {
    let content = match files.read_all(path) {
        Ok(content) => content,
        Err(error) if error.kind == FileErrorKind::NotFound => return None,
        Err(error) => {
            let symptom = unreadable(path, error.to_string());
            report.symptoms.push(symptom.advise("check the disk, and who owns the file"));
            return None;
        }
    };
    match serde_json::from_slice(&content) {
        Ok(value) => Some(value),
        Err(error) => {
            let symptom = unreadable(path, format!("is no JSON: {error}"));
            let advice = "check the disk, and put the file back from a copy of the directory; a \
                          node does not start with it as it is";
            report.symptoms.push(symptom.advise(advice));
            None
        }
    }
}

fn unreadable(path: &Path, what: String) -> Symptom {
    Symptom::new(Severity::Problem, path.display().to_string(), what)
}
