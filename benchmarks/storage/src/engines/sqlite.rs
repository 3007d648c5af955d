//! SQLite: one table by seqno with an index by key, a write-ahead log, every commit synced.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, params};

use super::{CACHE_BYTES, Engine};
use crate::documents::{Document, key};

struct Sqlite {
    connection: Connection,
    next_seqno: i64,
}

pub(super) fn open(directory: &Path) -> Result<Box<dyn Engine>> {
    let connection = Connection::open(directory.join("documents.sqlite"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Negative: in KiB.
    connection.pragma_update(None, "cache_size", -i64::try_from(CACHE_BYTES >> 10)?)?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS documents \
         (seqno INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, body BLOB NOT NULL)",
    )?;
    let last: Option<i64> =
        connection.query_row("SELECT max(seqno) FROM documents", [], |row| row.get(0))?;
    Ok(Box::new(Sqlite { connection, next_seqno: last.unwrap_or(0) + 1 }))
}

impl Engine for Sqlite {
    fn commit(&mut self, batch: &[Document]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            // The old row of the key goes, and with it its seqno.
            let mut insert =
                transaction.prepare_cached("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)")?;
            for document in batch {
                let key = key(document.number);
                insert.execute(params![self.next_seqno, key, document.body.as_slice()])?;
                self.next_seqno += 1;
            }
        }
        Ok(transaction.commit()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.connection.close().map_err(|(_, error)| error.into())
    }
}
