//! The node at one moment, by its statistics and by what the system says of it.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::couchbase::{high_seqnos, statistics};
use crate::dcp_reader::Progress;
use crate::process_stat::resident_bytes;
use crate::servers::Server;

/// Of a block in what the system says of a file.
const BLOCK_BYTES: u64 = 512;

/// Gauges, and counters since the start of the node.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeSample {
    /// What the process occupies.
    pub resident_bytes: u64,
    /// What the bucket says it uses.
    pub used_bytes: u64,
    /// Live documents.
    pub documents: u64,
    /// Of them in memory, in percent.
    pub resident_percent: f64,
    /// What all files of the node occupy, the journal's among them.
    pub disk_bytes: u64,
    /// What those of vBuckets are.
    pub file_bytes: u64,
    /// What of that is live.
    pub live_file_bytes: u64,
    /// Writes that wait to become durable.
    pub queued: u64,
    /// Values and documents read from disk.
    pub fetched: u64,
    /// Compactions done.
    pub compactions: u64,
    /// Documents expired.
    pub expired: u64,
    /// Rounds of the expiry pager.
    pub expiry_rounds: u64,
    /// Values and documents that have left memory.
    pub evicted: u64,
    /// Writes, reads and compactions that failed, and damages that were found.
    pub failures: u64,
    /// Items that a reader of all vBuckets has received.
    pub streamed: u64,
    /// By how many seqnos it is behind.
    pub lag: u64,
}

impl NodeSample {
    /// Now. `stream` has selected the bucket, and `progress` is that of a reader of all vBuckets.
    pub fn take(server: &Server, stream: &mut TcpStream, progress: &Progress) -> Result<Self> {
        // The reader comes before the node, so that the lag is never shown too small.
        let (streamed, read) = (progress.items(), progress.seqnos());
        let lag = high_seqnos(stream)?.saturating_sub(read);
        let mut found: HashMap<String, String> = statistics(stream, "")?.into_iter().collect();
        found.extend(statistics(stream, "diskinfo")?);
        let number = |name: &str| -> Result<u64> {
            let value = found.get(name).with_context(|| format!("there is no statistic {name}"))?;
            value.parse().with_context(|| format!("{name} is {value}"))
        };
        let sum = |names: &[&str]| names.iter().map(|name| number(name)).sum::<Result<u64>>();
        Ok(Self {
            resident_bytes: resident_bytes(server.pid())?,
            used_bytes: number("mem_used")?,
            documents: number("curr_items")?,
            resident_percent: found["vb_active_perc_mem_resident"].parse()?,
            disk_bytes: disk_bytes(&server.data_directory())?,
            file_bytes: number("ep_db_file_size")?,
            live_file_bytes: number("ep_db_data_size")?,
            queued: number("ep_diskqueue_items")?,
            fetched: sum(&["ep_bg_fetched", "ep_bg_meta_fetched"])?,
            compactions: number("ep_compaction_done")?,
            expired: number("vb_active_expired")?,
            expiry_rounds: number("ep_num_expiry_pager_runs")?,
            evicted: number("ep_num_value_ejects")?,
            failures: sum(&FAILURES)?,
            streamed,
            lag,
        })
    }
}

const FAILURES: [&str; 8] = [
    "ep_item_commit_failed",
    "ep_data_write_failed",
    "ep_data_read_failed",
    "ep_vbuckets_damaged",
    "ep_vbuckets_incomplete",
    "ep_compaction_failed",
    "ep_compaction_damaged_bodies",
    "ep_cursors_dropped",
];

/// What the files below a directory occupy. What is removed meanwhile is left out.
fn disk_bytes(directory: &Path) -> Result<u64> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut bytes = 0;
    for entry in entries {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += disk_bytes(&entry.path())?,
            Ok(metadata) => bytes += metadata.blocks() * BLOCK_BYTES,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_directories_count() {
        let directory = tempfile::tempdir().expect("there is a disk");
        let inner = directory.path().join("inner");
        std::fs::create_dir(&inner).expect("writable");
        for path in [directory.path().join("one"), inner.join("two")] {
            std::fs::write(path, vec![1; 10_000]).expect("writable");
        }
        let bytes = disk_bytes(directory.path()).expect("readable");
        assert!((20_000..80_000).contains(&bytes), "{bytes}");
        assert_eq!(disk_bytes(&inner.join("nowhere")).expect("nothing is there"), 0);
    }
}
