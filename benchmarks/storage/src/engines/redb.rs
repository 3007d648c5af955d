//! redb: a table for each index.

use std::path::Path;

use anyhow::Result;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::{CACHE_BYTES, Engine, seqno_of, value_of};
use crate::documents::{Document, key};

const BY_KEY: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("by_key");
const BY_SEQNO: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("by_seqno");

struct Redb {
    database: Database,
    next_seqno: u64,
}

pub(super) fn open(directory: &Path) -> Result<Box<dyn Engine>> {
    let cache_bytes = usize::try_from(CACHE_BYTES)?;
    let path = directory.join("documents.redb");
    let database = Builder::new().set_cache_size(cache_bytes).create(path)?;
    // Makes the tables when they are missing.
    let write = database.begin_write()?;
    write.open_table(BY_KEY)?;
    write.open_table(BY_SEQNO)?;
    write.commit()?;
    let read = database.begin_read()?;
    let last = read.open_table(BY_SEQNO)?.last()?.map(|(seqno, _)| seqno.value());
    Ok(Box::new(Redb { database, next_seqno: last.unwrap_or(0) + 1 }))
}

impl Engine for Redb {
    fn commit(&mut self, batch: &[Document]) -> Result<()> {
        // Durable at once unless said otherwise.
        let write = self.database.begin_write()?;
        {
            let mut by_key = write.open_table(BY_KEY)?;
            let mut by_seqno = write.open_table(BY_SEQNO)?;
            for document in batch {
                let key = key(document.number);
                let value = value_of(self.next_seqno, &document.body);
                let old = by_key.insert(key.as_slice(), value.as_slice())?;
                let old = old.map(|old| seqno_of(old.value())).transpose()?;
                if let Some(old) = old {
                    by_seqno.remove(u64::from_be_bytes(old))?;
                }
                by_seqno.insert(self.next_seqno, key.as_slice())?;
                self.next_seqno += 1;
            }
        }
        Ok(write.commit()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
