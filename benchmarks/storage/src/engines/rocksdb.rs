//! RocksDB: a column family for each index.

use std::path::Path;

use anyhow::{Context, Result};
use rocksdb::{BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB};
use rocksdb::{IteratorMode, Options, WriteBatch, WriteOptions};

use super::{CACHE_BYTES, Engine, seqno_of, value_of};
use crate::documents::{Document, key};

const BY_KEY: &str = "by_key";
const BY_SEQNO: &str = "by_seqno";
/// Threads for flushes and compactions.
const BACKGROUND_THREADS: i32 = 2;

struct RocksDb {
    database: DB,
    next_seqno: u64,
}

pub(super) fn open(directory: &Path) -> Result<Box<dyn Engine>> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(usize::try_from(CACHE_BYTES)?)?);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.increase_parallelism(BACKGROUND_THREADS);
    options.set_block_based_table_factory(&blocks);
    let families =
        [BY_KEY, BY_SEQNO].map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
    let database = DB::open_cf_descriptors(&options, directory.join("rocksdb"), families)?;
    let mut newest = database.iterator_cf(family(&database, BY_SEQNO)?, IteratorMode::End);
    let last = newest.next().transpose()?.map(|(seqno, _)| seqno_of(&seqno)).transpose()?;
    drop(newest);
    let next_seqno = last.map_or(1, |last| u64::from_be_bytes(last) + 1);
    Ok(Box::new(RocksDb { database, next_seqno }))
}

fn family<'a>(database: &'a DB, name: &str) -> Result<&'a ColumnFamily> {
    database.cf_handle(name).context("a column family that was opened")
}

impl Engine for RocksDb {
    fn commit(&mut self, batch: &[Document]) -> Result<()> {
        let by_key = family(&self.database, BY_KEY)?;
        let by_seqno = family(&self.database, BY_SEQNO)?;
        let mut write = WriteBatch::default();
        for document in batch {
            let key = key(document.number);
            if let Some(old) = self.database.get_pinned_cf(by_key, key)? {
                write.delete_cf(by_seqno, seqno_of(&old)?);
            }
            write.put_cf(by_key, key, value_of(self.next_seqno, &document.body));
            write.put_cf(by_seqno, self.next_seqno.to_be_bytes(), key);
            self.next_seqno += 1;
        }
        let mut durable = WriteOptions::default();
        durable.set_sync(true);
        Ok(self.database.write_opt(write, &durable)?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
