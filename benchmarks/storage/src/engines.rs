//! What makes batches of documents durable: ours in its modes, its peers, and the floor.
//!
//! Every engine keeps the same two indexes: the newest version by key, and the keys by seqno, where
//! the entry of the version before is removed.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::documents::Document;

mod fjall;
mod floor;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod settee;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use settee::{ALONE, JOURNAL, JOURNAL_1024, PLAIN, REOPENED};

/// Memory that a peer may use for what it reads, in bytes.
const CACHE_BYTES: u64 = 512 << 20;

/// An open database.
pub trait Engine {
    /// Makes a batch durable. Each key is in it once.
    fn commit(&mut self, batch: &[Document]) -> Result<()>;

    /// What is done between two commits, outside of what is measured.
    fn between(&mut self) -> Result<()> {
        Ok(())
    }

    /// What of the last commit was the making of items, which is done before in a node.
    fn made_items_in(&self) -> Duration {
        Duration::ZERO
    }

    /// Bytes of blocks that were written by syncs so far; `None` when nobody has counted.
    fn block_bytes(&self) -> Option<u64> {
        None
    }

    /// Brings what is durable to where it is read from, if that was put off.
    fn drain(&mut self) -> Result<()> {
        Ok(())
    }

    /// Ends it in order.
    fn close(self: Box<Self>) -> Result<()>;
}

/// How to open an engine.
pub struct Kind {
    /// Its name in tables.
    pub name: &'static str,
    /// Opens what is in a directory, or makes it.
    pub open: fn(&Path) -> Result<Box<dyn Engine>>,
    /// Whether it has anything that is loaded beforehand.
    pub has_documents: bool,
}

/// The name of the floor.
pub const FLOOR: &str = "floor";
/// The peers whose throughput is to be doubled.
pub const DOUBLED: [&str; 2] = ["RocksDB", "fjall"];

/// All that were built.
pub fn kinds() -> Vec<Kind> {
    let kind = |name, open| Kind { name, open, has_documents: true };
    let mut kinds = vec![
        Kind { name: FLOOR, open: floor::open, has_documents: false },
        kind(JOURNAL, settee::open_journal),
        kind(ALONE, settee::open_alone),
        kind(JOURNAL_1024, settee::open_journal_1024),
        kind(PLAIN, settee::open_plain),
        kind(REOPENED, settee::open_reopened),
    ];
    #[cfg(feature = "rocksdb")]
    kinds.push(kind(DOUBLED[0], rocksdb::open));
    kinds.push(kind("redb", redb::open));
    kinds.push(kind(DOUBLED[1], fjall::open));
    #[cfg(feature = "sqlite")]
    kinds.push(kind("SQLite", sqlite::open));
    kinds
}

/// The value under a key: the seqno, then the body.
fn value_of(seqno: u64, body: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(8 + body.len());
    value.extend_from_slice(&seqno.to_be_bytes());
    value.extend_from_slice(body);
    value
}

/// The seqno in the value under a key.
fn seqno_of(value: &[u8]) -> Result<[u8; 8]> {
    let seqno = value.first_chunk().copied();
    seqno.ok_or_else(|| anyhow::anyhow!("a value of {} bytes has no seqno", value.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::Documents;

    #[test]
    fn every_engine_commits_updates_and_opens_again() {
        for kind in kinds() {
            let directory = tempfile::tempdir().expect("a directory");
            let mut documents = Documents::new(300, 1);
            for round in 0..2 {
                let mut engine = (kind.open)(directory.path()).expect(kind.name);
                for size in [1, 100, 300] {
                    engine.commit(&documents.draw(size)).expect(kind.name);
                    engine.between().expect(kind.name);
                }
                engine.drain().expect(kind.name);
                engine.close().unwrap_or_else(|error| panic!("{} {round}: {error}", kind.name));
            }
        }
    }
}
