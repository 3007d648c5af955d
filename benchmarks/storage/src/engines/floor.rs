//! The floor: one append to one preallocated file and one sync, nothing else.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Result;

use super::Engine;
use crate::documents::{DOCUMENT_SIZE, Document, key};

/// Bytes of the file; behind its end appends begin anew.
const FILE_SIZE: u64 = 256 << 20;
const ZEROS_SIZE: u64 = 1 << 20;

struct Floor {
    file: File,
    position: u64,
    buffer: Vec<u8>,
}

pub(super) fn open(directory: &Path) -> Result<Box<dyn Engine>> {
    let path = directory.join("floor");
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).read(true).write(true).open(path)?;
    if file.metadata()?.len() < FILE_SIZE {
        let zeros = vec![0; ZEROS_SIZE as usize];
        for position in (0..FILE_SIZE).step_by(zeros.len()) {
            file.write_all_at(&zeros, position)?;
        }
        file.sync_all()?;
    }
    Ok(Box::new(Floor { file, position: 0, buffer: Vec::new() }))
}

impl Engine for Floor {
    fn commit(&mut self, batch: &[Document]) -> Result<()> {
        self.buffer.clear();
        self.buffer.reserve(batch.len() * DOCUMENT_SIZE);
        for document in batch {
            self.buffer.extend_from_slice(&key(document.number));
            self.buffer.extend_from_slice(&document.body);
        }
        if self.position + self.buffer.len() as u64 > FILE_SIZE {
            self.position = 0;
        }
        self.file.write_all_at(&self.buffer, self.position)?;
        self.position += self.buffer.len() as u64;
        Ok(self.file.sync_data()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
