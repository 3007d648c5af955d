//! What was known to be durable in vBuckets' files: the second witness that a start asks before it
//! believes a file. The mark of a clean stop has one of each file, and so has the journal.
//!
//! ```text
//! settee files 1
//! vbucket 7 revision 2 header 40960 seqno 250 branch 00a1b2c3d4e5 whole
//! vbucket 9 revision 1 header 8192 seqno 0 branch - unsure
//! crc 1a2b3c4d                                  CRC-32C of the lines before
//! ```
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use document::{FailoverEntry, Seqno, VbUuid, Vbid};

use crate::couchstore::CouchFile;
use crate::couchstore::FileHeader;
use crate::error::StorageError;
use crate::records::vbucket_record::VbucketRecord;

const FIRST_LINE: &str = "settee files 1";

/// Branches that a vBucket's state lists, at most: one that is not in a full list may have been.
const BRANCHES_MAX: usize = document::limits::FAILOVER_ENTRIES_MAX;

/// Where a vBucket's file was once. Commits go behind that, and a compacted file has a higher
/// revision: what is found in front of it is not what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The vBucket.
    pub vbid: Vbid,
    /// In the file's name.
    pub revision: u64,
    /// Where its newest header stood, in bytes.
    pub header_position: u64,
    /// The highest seqno in it, or what a rollback was about to leave of it.
    pub high_seqno: Seqno,
    /// The branch of history to which what it had whole belongs; `None` when it had nothing, or
    /// when a rollback may have taken it.
    pub branch: Option<VbUuid>,
}

/// A list of witnesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witnesses {
    listed: Vec<(Witness, bool)>,
}

impl Witness {
    /// Of a file in this state.
    pub(crate) fn of(
        vbid: Vbid,
        revision: u64,
        header: &FileHeader,
        record: &VbucketRecord,
    ) -> Self {
        let high_seqno = Seqno(header.high_seqno);
        let branch = branch_of(record, high_seqno);
        Self { vbid, revision, header_position: header.position, high_seqno, branch }
    }

    /// What holds of the file once a rollback may have left no more than `seqno` of it.
    pub(crate) fn rolled_back(self, seqno: Seqno) -> Self {
        Self { high_seqno: self.high_seqno.min(seqno), branch: None, ..self }
    }

    /// Whether the file in the state `found` has everything that this one tells of. `branches` are
    /// those that `found` lists, newest first.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn is_continued_by(
        &self,
        found: &Self,
        branches: &[FailoverEntry],
        file: &CouchFile,
    ) -> Result<bool, StorageError> {
        if found.revision != self.revision {
            let knows_branch = self.branch.is_none_or(|branch| {
                branches.len() >= BRANCHES_MAX || branches.iter().any(|entry| entry.uuid == branch)
            });
            let is_later = found.revision > self.revision && found.high_seqno >= self.high_seqno;
            return Ok(is_later && knows_branch);
        }
        if found.header_position == self.header_position {
            // A rollback that was about to come would have moved it.
            return Ok(found.high_seqno >= self.high_seqno);
        }
        if found.header_position < self.header_position {
            return Ok(false);
        }
        // A file only grows: the header stands where it stood.
        match file.header_at(self.header_position) {
            Ok(header) => Ok(header.high_seqno >= self.high_seqno.0),
            Err(StorageError::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What the records of a journal, in their order, say of where files were.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownFiles(BTreeMap<Vbid, Witness>);

impl KnownFiles {
    /// Where a file was.
    pub(crate) fn note(&mut self, witness: Witness) {
        self.0.insert(witness.vbid, witness);
    }

    /// The vBucket was deleted: what was known of its file counts for nothing any more.
    pub(crate) fn note_deleted(&mut self, vbid: Vbid) {
        self.0.remove(&vbid);
    }

    /// The vBucket's file was about to go back to `seqno`.
    pub(crate) fn note_rolled_back(&mut self, vbid: Vbid, seqno: Seqno) {
        if let Some(witness) = self.0.get_mut(&vbid) {
            *witness = witness.rolled_back(seqno);
        }
    }

    /// What is known of all files, by vBucket.
    pub(crate) fn to_witnesses(&self) -> Vec<Witness> {
        self.0.values().copied().collect()
    }
}

/// The branch to which what the vBucket has whole belongs. Later ones may be forgotten when it
/// becomes active, and one that begins behind all of that when it follows a node that does not know
/// it: nothing has come in it.
fn branch_of(record: &VbucketRecord, high_seqno: Seqno) -> Option<VbUuid> {
    let is_whole = record.snapshot_end <= high_seqno;
    let whole_seqno = if is_whole { high_seqno } else { record.snapshot_start };
    let is_older = |entry: &&FailoverEntry| entry.seqno < whole_seqno;
    record.failover_table.iter().find(is_older).map(|entry| entry.uuid)
}

impl Witnesses {
    /// Adds one; `is_whole` if its file held everything that was acknowledged.
    pub fn add(&mut self, witness: Witness, is_whole: bool) {
        self.listed.push((witness, is_whole));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Witness> {
        self.listed.iter().map(|(witness, _)| witness)
    }

    /// Whether the vBucket's file held everything that was acknowledged.
    pub fn is_whole(&self, vbid: Vbid) -> bool {
        self.listed.iter().any(|(witness, is_whole)| witness.vbid == vbid && *is_whole)
    }

    /// The text.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("{FIRST_LINE}\n");
        for (witness, is_whole) in &self.listed {
            let Witness { vbid, revision, header_position, high_seqno, branch } = witness;
            let branch = branch.map_or_else(|| "-".to_owned(), |uuid| format!("{:012x}", uuid.0));
            let state = if *is_whole { "whole" } else { "unsure" };
            let written = writeln!(
                text,
                "vbucket {} revision {revision} header {header_position} seqno {} branch {branch} \
                 {state}",
                vbid.0, high_seqno.0
            );
            written.expect("text takes what is written to it");
        }
        let crc = crc32c::crc32c(text.as_bytes());
        text.push_str(&format!("crc {crc:08x}\n"));
        text.into_bytes()
    }

    /// Reads the text; `None` if it is not what was written.
    pub fn decode(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (covered, crc) = text.strip_suffix('\n')?.rsplit_once("crc ")?;
        if crc != format!("{:08x}", crc32c::crc32c(covered.as_bytes())) {
            return None;
        }
        let mut lines = covered.lines();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let listed: Option<Vec<_>> = lines.map(decode_line).collect();
        Some(Self { listed: listed? })
    }
}

fn decode_line(line: &str) -> Option<(Witness, bool)> {
    let mut words = line.split(' ');
    let mut value = |name: &str| words.next().filter(|word| *word == name).and(words.next());
    let vbid = Vbid(value("vbucket")?.parse().ok()?);
    let revision = value("revision")?.parse().ok()?;
    let header_position = value("header")?.parse().ok()?;
    let high_seqno = Seqno(value("seqno")?.parse().ok()?);
    let branch = match value("branch")? {
        "-" => None,
        uuid => Some(VbUuid(u64::from_str_radix(uuid, 16).ok()?)),
    };
    let is_whole = match (words.next()?, words.next()) {
        ("whole", None) => true,
        ("unsure", None) => false,
        _ => return None,
    };
    Some((Witness { vbid, revision, header_position, high_seqno, branch }, is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_back_as_it_was_written_and_no_damaged_one_is_read() {
        let mut list = Witnesses::default();
        for (number, branch) in [(1, Some(VbUuid(0xabc))), (7, None), (1023, Some(VbUuid(1)))] {
            let witness = Witness {
                vbid: Vbid(number),
                revision: u64::from(number) + 3,
                header_position: 4096 * u64::from(number),
                high_seqno: Seqno(99),
                branch,
            };
            list.add(witness, number != 7);
        }
        let text = list.encode();
        assert_eq!(Witnesses::decode(&text), Some(list.clone()));
        assert!(list.is_whole(Vbid(1)) && !list.is_whole(Vbid(7)) && !list.is_whole(Vbid(2)));
        for at in 0..text.len() {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            assert_eq!(Witnesses::decode(&damaged), None, "byte {at}");
            assert_eq!(Witnesses::decode(&text[..at]), None, "cut at {at}");
        }
        assert_eq!(Witnesses::decode(&Witnesses::default().encode()), Some(Witnesses::default()));
    }
}
