//! Checks everything in a file: every header of its history, every node, every body.
//!
//! Most nodes belong to many states of a file. Each is read once; what was found out about it
//! ([`subtree::Subtree`]) is compared with whatever points to it.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod findings;
mod state_record;
mod subtree;
mod tally;
mod trees;

use crate::couchstore::chunk::BLOCK_SIZE;
use crate::couchstore::header::{self, Block};
use crate::couchstore::{CouchFile, FileHeader};
use crate::error::StorageError;
pub(crate) use findings::Findings;
pub use findings::{Finding, Scope, Severity};
use tally::Tally;
use trees::Trees;

/// What checking a file came to.
#[derive(Debug, Default)]
pub struct Verification {
    /// Bytes of the file.
    pub file_size: u64,
    /// The newest state whose header is whole.
    pub newest: Option<FileHeader>,
    /// States that were checked, the newest included.
    pub header_count: u64,
    /// Documents alive in the newest state, prepares and aborts left out.
    pub document_count: u64,
    /// What tells of scopes and collections in the newest state; no documents.
    pub event_count: u64,
    /// Tombstones in the newest state.
    pub tombstone_count: u64,
    /// Prepares and aborts in the newest state.
    pub prepare_count: u64,
    /// Local documents in the newest state.
    pub local_count: u64,
    /// Bytes of chunks that were read and are whole, those of older states included.
    pub checked_bytes: u64,
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// Findings beyond those that are listed.
    pub unlisted_count: u64,
}

impl Verification {
    /// Whether the file is what was written. Warnings do not count.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Warning)
    }
}

/// Checks everything in a file. Reads only, so it may be in use: what is committed meanwhile is
/// not looked at.
///
/// # Errors
/// Only what the system says; damage is a finding.
pub fn verify_file(file: &CouchFile) -> Result<Verification, StorageError> {
    let mut verification = Verification { file_size: file.size()?, ..Verification::default() };
    let mut findings = Findings::default();
    let mut is_damaged = false;
    let newest = header::find_newest(file.file(), verification.file_size, &mut |skipped| {
        is_damaged = true;
        findings.problem(Scope::NewestHeader, skipped.position, skipped.what);
    })?;
    if let Some(newest) = &newest {
        note_unfinished(file, newest, verification.file_size, &mut findings)?;
        check_states(file, newest, &mut verification, &mut findings)?;
    } else if !is_damaged {
        findings.problem(Scope::NewestHeader, 0, "no header: this is no couchstore file");
    }
    verification.newest = newest;
    (verification.findings, verification.unlisted_count) = findings.into_listed();
    Ok(verification)
}

/// The header of a commit is written before the type byte that makes it count. What lies between
/// is a commit that did not end, or that is under way.
fn note_unfinished(
    file: &CouchFile,
    newest: &FileHeader,
    file_size: u64,
    findings: &mut Findings,
) -> Result<(), StorageError> {
    let mut position = newest.position.saturating_add(BLOCK_SIZE);
    while position < file_size {
        note_if_header(file, position, findings)?;
        position = position.saturating_add(BLOCK_SIZE);
    }
    Ok(())
}

fn note_if_header(
    file: &CouchFile,
    position: u64,
    findings: &mut Findings,
) -> Result<(), StorageError> {
    if matches!(header::read_block(file.file(), position)?, Block::Data)
        && matches!(header::parse(file.file(), position)?, Block::Header(_))
    {
        let what = "a whole header that is not marked as one: a commit that did not end";
        findings.warning(Scope::NewestHeader, position, what);
    }
    Ok(())
}

/// Checks the newest state and all before it.
fn check_states(
    file: &CouchFile,
    newest: &FileHeader,
    verification: &mut Verification,
    findings: &mut Findings,
) -> Result<(), StorageError> {
    let mut trees = Trees::new();
    let mut tally = Tally::default();
    if trees.check(file, newest, Some(&mut tally), findings)? {
        tally.check(file, newest, findings)?;
    }
    verification.header_count = 1;
    verification.document_count = tally.alive_count.saturating_sub(tally.event_count);
    verification.event_count = tally.event_count;
    verification.tombstone_count = tally.tombstone_count;
    verification.prepare_count = tally.prepare_count;
    verification.local_count = tally.local_count;
    findings.scope = Scope::OlderState;
    let mut header = newest.clone();
    // Each step leads backwards, so this ends.
    while let Some(before) = step_back(file, &header, findings)? {
        trees.check(file, &before, None, findings)?;
        verification.header_count = verification.header_count.saturating_add(1);
        header = before;
    }
    verification.checked_bytes = trees.finish(findings);
    Ok(())
}

/// The state before `header`. A broken chain is a finding and ends it.
fn step_back(
    file: &CouchFile,
    header: &FileHeader,
    findings: &mut Findings,
) -> Result<Option<FileHeader>, StorageError> {
    let before = if header.version < 14 {
        header::find_newest(file.file(), header.position, &mut |skipped| {
            findings.problem(Scope::History, skipped.position, skipped.what);
        })?
    } else {
        match file.header_before(header) {
            Ok(before) => before,
            Err(StorageError::Corrupt { position, what, .. }) => {
                findings.problem(Scope::History, position, what);
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    };
    match &before {
        None if header.previous == Some(0) && header.position > 0 => {
            note_if_header(file, 0, findings)?;
        }
        Some(before) if header.version >= 14 && before.high_seqno > header.high_seqno => {
            let what = "the high seqno of a header is below that of the header before";
            findings.problem(Scope::History, header.position, what);
        }
        Some(before) if before.version != header.version => {
            let what = "the disk version of a header is not that of the header before";
            findings.problem(Scope::History, header.position, what);
        }
        _ => {}
    }
    Ok(before)
}
