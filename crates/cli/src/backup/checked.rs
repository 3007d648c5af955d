//! Whether a file is a vBucket's, whole, and what it holds.

use std::path::Path;

use anyhow::{Context, ensure};
use platform::{Files, OpenMode};
use storage::couchstore::CouchFile;
use storage::{VBSTATE, VbucketRecord, verify_file};

use super::manifest::Branch;

/// What a vBucket's file holds.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) high_seqno: u64,
    pub(super) documents: u64,
    pub(super) tombstones: u64,
    pub(super) failover_table: Vec<Branch>,
}

/// Reads the whole file.
///
/// # Errors
/// The file is damaged, or cannot be read.
pub(super) fn check(files: &dyn Files, path: &Path) -> anyhow::Result<Checked> {
    let file = CouchFile::open(files, path, OpenMode::Read)?;
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
        tombstones: verification.tombstone_count,
        failover_table: record.failover_table.iter().map(branch).collect(),
    })
}
