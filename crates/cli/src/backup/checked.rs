//! Whether a file is a vBucket's, whole, and what it holds.

use std::path::Path;

use anyhow::{Context, ensure};
use platform::{File, FileError, Files, OpenMode};
use storage::couchstore::CouchFile;
use storage::{VBSTATE, VbucketRecord, verify_file};

use super::crew::Moved;
use super::manifest::Branch;

/// What a vBucket's file holds.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) high_seqno: u64,
    pub(super) documents: u64,
    pub(super) system_events: u64,
    pub(super) tombstones: u64,
    pub(super) failover_table: Vec<Branch>,
}

/// Reads the whole file; `moved` hears of each part that is read.
///
/// # Errors
/// The file is damaged, or cannot be read.
pub(super) fn check(files: &dyn Files, path: &Path, moved: &Moved) -> anyhow::Result<Checked> {
    let file = LiveFile { file: files.open(path, OpenMode::Read)?, moved: moved.clone() };
    let file = CouchFile::new(Box::new(file), path);
    let verification = verify_file(&file)?;
    if let Some(finding) = verification.findings.first() {
        let what = &finding.what;
        ensure!(verification.is_sound(), "damaged at byte {}: {what}", finding.position);
    }
    let header = verification.newest.as_ref().context("it has no header")?;
    let text = file.reader(header).local(VBSTATE)?.context("it has no vBucket state")?;
    let high_seqno = header.high_seqno;
    let record = VbucketRecord::decode(&text, document::Seqno(high_seqno));
    let record = record.context("its vBucket state is not understood")?;
    let branch =
        |entry: &document::FailoverEntry| Branch { uuid: entry.uuid.0, seqno: entry.seqno.0 };
    Ok(Checked {
        high_seqno,
        documents: verification.document_count,
        system_events: verification.event_count,
        tombstones: verification.tombstone_count,
        failover_table: record.failover_table.iter().map(branch).collect(),
    })
}

/// A file whose readers give a sign of life with each part.
struct LiveFile {
    file: Box<dyn File>,
    moved: Moved,
}

impl File for LiveFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        let count = self.file.read_at(buffer, position)?;
        self.moved.beat();
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        self.file.write_at(bytes, position)
    }

    fn sync(&self) -> Result<(), FileError> {
        self.file.sync()
    }

    fn size(&self) -> Result<u64, FileError> {
        self.file.size()
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        self.file.set_size(size)
    }
}

#[cfg(test)]
mod tests {
    use platform::simulated::SimulatedFiles;

    use super::*;

    #[test]
    fn whoever_checks_a_file_gives_signs_of_life_with_what_is_read() {
        let (files, path) = (SimulatedFiles::new(), Path::new("/d/7.part"));
        files.create_directories(Path::new("/d")).unwrap();
        files.open(path, OpenMode::CreateNew).unwrap().write_at(&[1; 1 << 20], 0).unwrap();
        let moved = Moved::default();
        check(&files, path, &moved).unwrap_err();
        let signs = moved.activity();
        assert!(signs > 10, "{signs} signs of a mebibyte in which a header is looked for");
    }
}
