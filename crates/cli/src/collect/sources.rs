//! Where it is collected: at the node's ports, and in its files.

use std::path::Path;

use anyhow::anyhow;
use client::Connection;
use platform::{FileErrorKind, Files, OpenMode};
use serde_json::Value;

use super::Collection;
use crate::node_port::NodePort;
use crate::server_arguments::{ServerArguments, explain};
use crate::timings;

/// What is asked at the REST port, and under which names it is kept. None of it has a secret.
const REST: &[(&str, &str)] = &[
    ("/pools", "node/pools.json"),
    ("/pools/default", "node/cluster.json"),
    ("/pools/default/nodeServices", "node/services.json"),
    ("/pools/default/tasks", "node/tasks.json"),
    ("/nodes/self", "node/self.json"),
    ("/nodeStatuses", "node/statuses.json"),
    ("/internalSettings", "node/internal-settings.json"),
    ("/settings/autoCompaction", "node/auto-compaction.json"),
    ("/settee/clusterMap", "node/cluster-map.json"),
    ("/settee/vbuckets/damaged", "node/damaged-vbuckets.json"),
    ("/pools/default/buckets", BUCKETS),
    ("/metrics", "node/metrics.txt"),
];
const BUCKETS: &str = "node/buckets.json";

/// The groups of statistics; the first one has no name.
const GROUPS: &[&str] = &[
    "",
    "checkpoint",
    "clocks",
    "clustermap",
    "collections",
    "compaction",
    "config",
    "connections",
    "damaged-vbuckets",
    "dcp",
    "dcpagg",
    "diskinfo",
    "durability-monitor",
    "failovers",
    "hash",
    "info",
    "journal",
    "kvstore",
    "kvtimings",
    "memory",
    "range-scans",
    "runtimes",
    "scheduler",
    "scopes",
    "settings",
    "tasks-all",
    "vbucket-details",
    "vbucket-durability-state",
    "vbucket-seqno",
    "warmup",
    "workload",
];

/// Files of the data directory that say something of the node and hold no secret.
const FILES: [&str; 4] = ["settee.json", "own-setup.json", "audit.log", "audit.log.1"];
/// Directories below the data directory that are listed.
const DEPTH_MAX: usize = 4;

/// Asks the node, and each of its buckets.
pub(super) fn rest(port: &NodePort, server: &ServerArguments, collection: &mut Collection) {
    let mut buckets = Vec::new();
    for (path, name) in REST {
        let answer = port.get(path).and_then(|mut body| Ok(body.read_to_string()?));
        match answer {
            Ok(text) => {
                if *name == BUCKETS {
                    buckets = names_of(&text);
                }
                collection.add(name, &text);
            }
            Err(error) => collection.miss(name, &error),
        }
    }
    for bucket in buckets {
        statistics(server, &bucket, collection);
    }
}

fn names_of(buckets: &str) -> Vec<String> {
    let buckets: Value = serde_json::from_str(buckets).unwrap_or_default();
    let buckets = buckets.as_array().into_iter().flatten();
    buckets.filter_map(|bucket| Some(bucket.get("name")?.as_str()?.to_owned())).collect()
}

/// All groups of a bucket's statistics, and its histograms as they are drawn.
fn statistics(server: &ServerArguments, bucket: &str, collection: &mut Collection) {
    let mut connection = match connect(server, bucket) {
        Ok(connection) => connection,
        Err(error) => return collection.miss(&format!("buckets/{bucket}"), &error),
    };
    for group in GROUPS {
        let shown = if group.is_empty() { "general" } else { group };
        let name = format!("buckets/{bucket}/{shown}.txt");
        match connection.statistics(group).map_err(explain) {
            Ok(found) => {
                let lines = found.iter().map(|(name, value)| format!("{name} {value}\n"));
                collection.add(&name, &lines.collect::<String>());
            }
            Err(error) => collection.miss(&name, &error),
        }
    }
    let name = format!("buckets/{bucket}/timings.txt");
    match timings::drawn(&mut connection, &[]) {
        Ok(text) => collection.add(&name, &text),
        Err(error) => collection.miss(&name, &error),
    }
}

fn connect(server: &ServerArguments, bucket: &str) -> anyhow::Result<Connection> {
    let mut target = server.target()?;
    target.options.bucket = Some(bucket.to_owned());
    Ok(target.connect()?.1)
}

/// What a data directory tells beside documents: chosen files, and the names and sizes of all.
pub(super) fn data_directory(files: &dyn Files, directory: &Path, collection: &mut Collection) {
    let mut listing = String::new();
    list(files, directory, DEPTH_MAX, &mut listing);
    if listing.is_empty() {
        let error = anyhow!("{} cannot be listed", directory.display());
        return collection.miss("files.txt", &error);
    }
    collection.add("files.txt", &listing);
    for name in FILES {
        add_file(files, &directory.join(name), &format!("data/{name}"), collection);
    }
    let buckets = directory.join("buckets");
    for bucket in files.list(&buckets).unwrap_or_default() {
        for name in ["bucket.json", "settings.json"] {
            let place = format!("data/buckets/{bucket}/{name}");
            add_file(files, &buckets.join(&bucket).join(name), &place, collection);
        }
    }
}

/// Appends a line for each file: its size in bytes, and its path.
fn list(files: &dyn Files, directory: &Path, depth: usize, listing: &mut String) {
    let mut names = files.list(directory).unwrap_or_default();
    names.sort();
    for name in names {
        let path = directory.join(&name);
        // What can be listed is a directory.
        if depth > 0 && files.list(&path).is_ok() {
            list(files, &path, depth - 1, listing);
            continue;
        }
        let opened = files.open(&path, OpenMode::Read);
        let size = opened.and_then(|file| file.size()).map_or("?".to_owned(), |it| it.to_string());
        listing.push_str(&format!("{size:>14} {}\n", path.display()));
    }
}

/// A log file, and those that it was rotated to.
pub(super) fn log(files: &dyn Files, path: &Path, collection: &mut Collection) {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    if !files.exists(path).unwrap_or(false) {
        let error = anyhow!("{} does not exist; check --log", path.display());
        return collection.miss(&format!("logs/{name}"), &error);
    }
    add_file(files, path, &format!("logs/{name}"), collection);
    for number in 1.. {
        let mut before = path.as_os_str().to_owned();
        before.push(format!(".{number}"));
        let before = Path::new(&before);
        if !files.exists(before).unwrap_or(false) {
            return;
        }
        add_file(files, before, &format!("logs/{name}.{number}"), collection);
    }
}

/// A file that may be missing.
fn add_file(files: &dyn Files, path: &Path, name: &str, collection: &mut Collection) {
    match files.read_all(path) {
        Ok(bytes) => collection.add(name, &String::from_utf8_lossy(&bytes)),
        Err(error) if error.kind == FileErrorKind::NotFound => {}
        Err(error) => collection.miss(name, &error.into()),
    }
}
