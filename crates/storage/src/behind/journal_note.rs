//! What a bucket's directory says about its journal, beside the journal: a start that finds no
//! segment, or not the newest, would take the rest for all there was.
//!
//! ```text
//! settee journal 1
//! id 00112233445566ff
//! segment 12              that held a group when this was written
//! crc 1a2b3c4d            CRC-32C of the lines before
//! ```

use std::path::Path;

use platform::{FileErrorKind, Files};

use crate::error::StorageError;
use crate::journal::{JOURNAL_DIRECTORY, JournalId, is_segment_name, segment_view};
use crate::removal::remove_if_there;

/// The note's name in a bucket's directory.
pub const NOTE_NAME: &str = "journal-in-use";
const FIRST_LINE: &str = "settee journal 1";

/// A journal that groups were written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalNote {
    pub(crate) id: JournalId,
    /// The number of a segment that held a group; none before it is newer.
    pub(crate) segment: u64,
}

/// What is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FoundNote {
    /// No journal is in use, or a version wrote to it that left no note.
    #[default]
    Nothing,
    Note(JournalNote),
    /// It can be read, and says nothing.
    Damaged,
}

impl JournalNote {
    /// # Errors
    /// [`StorageError::JournalNoteUnreadable`], above all.
    pub(crate) fn read(files: &dyn Files, bucket: &Path) -> Result<FoundNote, StorageError> {
        match files.read_all(&bucket.join(NOTE_NAME)) {
            Ok(text) => Ok(Self::decode(&text).map_or(FoundNote::Damaged, FoundNote::Note)),
            Err(error) if error.kind == FileErrorKind::NotFound => Ok(FoundNote::Nothing),
            Err(error) if error.kind == FileErrorKind::Failed => {
                Err(StorageError::JournalNoteUnreadable(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes it durably.
    pub(crate) fn write(&self, files: &dyn Files, bucket: &Path) -> Result<(), StorageError> {
        Ok(files.replace_all(&bucket.join(NOTE_NAME), self.encode().as_bytes())?)
    }

    /// Says durably that no journal is in use.
    pub(crate) fn remove(files: &dyn Files, bucket: &Path) -> Result<(), StorageError> {
        remove_if_there(files, &bucket.join(NOTE_NAME))?;
        Ok(files.sync_directory(bucket)?)
    }

    fn encode(&self) -> String {
        let covered = format!("{FIRST_LINE}\nid {}\nsegment {}\n", self.id, self.segment);
        let crc = crc32c::crc32c(covered.as_bytes());
        format!("{covered}crc {crc:08x}\n")
    }

    fn decode(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.lines();
        let is_ours = lines.next() == Some(FIRST_LINE);
        let id = u64::from_str_radix(lines.next()?.strip_prefix("id ")?, 16).ok()?;
        let segment = lines.next()?.strip_prefix("segment ")?.parse().ok()?;
        let note = Self { id: JournalId(id), segment };
        (is_ours && note.encode() == text).then_some(note)
    }
}

/// Whether what is noted of the journal of the bucket in a directory can be read. Changes nothing.
///
/// # Errors
/// [`StorageError::JournalMissing`]: the journal that is noted is not there, so that a start that
/// follows no clean stop is refused; so is one of [`StorageError::JournalNoteUnreadable`].
/// Otherwise what the system says.
pub fn check_journal_note(files: &dyn Files, bucket: &Path) -> Result<bool, StorageError> {
    let id = match JournalNote::read(files, bucket)? {
        FoundNote::Nothing => return Ok(true),
        FoundNote::Damaged => None,
        FoundNote::Note(note) => Some(note.id),
    };
    let directory = bucket.join(JOURNAL_DIRECTORY);
    let names = match files.list(&directory) {
        Err(error) if error.kind == FileErrorKind::NotFound => Vec::new(),
        names => names?,
    };
    for name in names.iter().filter(|name| is_segment_name(name)) {
        // Without a header it was never used, or has lost what it held.
        if segment_view(files, &directory.join(name))?.is_some() {
            return Ok(id.is_some());
        }
    }
    Err(StorageError::JournalMissing { directory, id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_as_it_was_written_and_no_damaged_one_is_read() {
        let note = JournalNote { id: JournalId(0x12_3456_789a), segment: 17 };
        let text = note.encode();
        assert_eq!(JournalNote::decode(text.as_bytes()), Some(note));
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            assert_eq!(JournalNote::decode(&damaged), None, "byte {at}");
            assert_eq!(JournalNote::decode(&text.as_bytes()[..at]), None, "cut at {at}");
        }
    }
}
