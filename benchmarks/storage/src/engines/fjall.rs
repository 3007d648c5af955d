//! fjall: a keyspace for each index.

use std::path::Path;

use anyhow::Result;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{CACHE_BYTES, Engine, seqno_of, value_of};
use crate::documents::{Document, key};

struct Fjall {
    database: Database,
    by_key: Keyspace,
    by_seqno: Keyspace,
    next_seqno: u64,
}

pub(super) fn open(directory: &Path) -> Result<Box<dyn Engine>> {
    let database = Database::builder(directory.join("fjall")).cache_size(CACHE_BYTES).open()?;
    let by_key = database.keyspace("by_key", KeyspaceCreateOptions::default)?;
    let by_seqno = database.keyspace("by_seqno", KeyspaceCreateOptions::default)?;
    let last = by_seqno.last_key_value().map(|entry| entry.key()).transpose()?;
    let last = last.map(|key| seqno_of(&key)).transpose()?;
    let next_seqno = last.map_or(1, |last| u64::from_be_bytes(last) + 1);
    Ok(Box::new(Fjall { database, by_key, by_seqno, next_seqno }))
}

impl Engine for Fjall {
    fn commit(&mut self, batch: &[Document]) -> Result<()> {
        let mut write = self.database.batch().durability(Some(PersistMode::SyncData));
        for document in batch {
            let key = key(document.number);
            if let Some(old) = self.by_key.get(key)? {
                write.remove(&self.by_seqno, seqno_of(&old)?);
            }
            write.insert(&self.by_key, key, value_of(self.next_seqno, &document.body));
            write.insert(&self.by_seqno, self.next_seqno.to_be_bytes(), key);
            self.next_seqno += 1;
        }
        Ok(write.commit()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
