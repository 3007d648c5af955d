//! Damaged files are not removed when others take their places: they are renamed, for people who
//! want to see what can still be read.

use std::path::PathBuf;
use std::sync::Arc;

use document::{Seqno, Vbid};
use platform::OpenMode;

use crate::couchstore::CouchFile;
use crate::couchstore::layout::{self, FileName};
use crate::error::StorageError;
use crate::locks::lock;
use crate::store::Store;
use crate::store::open_files::Entry;
use crate::store::start_up;

/// What there is of a vBucket whose file is damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// The file; `None` when there is none.
    pub file: Option<PathBuf>,
    /// Its name once it is set aside.
    pub aside: Option<PathBuf>,
    /// Its size in bytes.
    pub file_bytes: u64,
    /// What its newest header that is whole says, which may be of an older state: high seqno, and
    /// documents alive. Nothing tells how much of that can be read.
    pub newest_header: Option<(Seqno, u64)>,
    /// The highest seqno that the file is known to have had.
    pub known_seqno: Option<Seqno>,
    /// Changes that only the journal has.
    pub journal_items: usize,
}

impl Store {
    /// From now on nothing is written to the file of a vBucket, which is damaged, and it is not
    /// removed: [`Store::delete`] and whatever else puts another into its place sets it aside.
    pub fn distrust(&self, vbid: Vbid) {
        lock(&self.entry_or_new(vbid).handle).is_distrusted = true;
        if let Some(journalled) = &self.journalled {
            journalled.backlog.hold(vbid);
        }
    }

    /// What there is of a vBucket, as far as that can be read without believing it. Reads the file:
    /// not for front-end workers.
    pub fn remains(&self, vbid: Vbid) -> Remains {
        let names = start_up::files_by_vbucket(self.files(), self.directory());
        let mut names = names.ok().and_then(|mut names| names.remove(&vbid)).unwrap_or_default();
        names.retain(|name| matches!(layout::parse(name), FileName::Data(..)));
        let name = names.pop();
        let file = name.as_ref().map(|name| self.directory().join(name));
        let opened = file.as_deref().map(|path| {
            let file = CouchFile::open(self.files(), path, OpenMode::Read)?;
            let (header, _) = file.newest_whole_header()?;
            Ok::<_, StorageError>((Seqno(header.high_seqno), header.alive_count()))
        });
        let size = |path: &PathBuf| self.files().open(path, OpenMode::Read).ok()?.size().ok();
        let witness = self.entry(vbid).and_then(|entry| lock(&entry.handle).witness);
        Remains {
            aside: name.and_then(|name| self.free_name(&name).ok()),
            file_bytes: file.as_ref().and_then(size).unwrap_or(0),
            newest_header: opened.and_then(Result::ok),
            known_seqno: witness.map(|witness| witness.high_seqno),
            journal_items: self.unapplied_items(vbid).len(),
            file,
        }
    }

    /// Sets the files of those of `entries` aside that are not to be removed, durably. The caller
    /// holds the writer of each.
    pub(crate) fn set_aside(&self, entries: &[Arc<Entry>]) -> Result<(), StorageError> {
        let is_distrusted = |entry: &&Arc<Entry>| lock(&entry.handle).is_distrusted;
        let distrusted: Vec<_> = entries.iter().filter(is_distrusted).collect();
        if distrusted.is_empty() {
            return Ok(());
        }
        let names = start_up::files_by_vbucket(self.files(), self.directory())?;
        let of_all = || distrusted.iter().filter_map(|entry| names.get(&entry.vbid));
        distrusted.iter().for_each(|entry| entry.abort_compaction());
        // Those that the newest ones hide go first, durably: the power may bring them back.
        let hidden: Vec<_> = of_all().flat_map(|names| start_up::hidden_files(names)).collect();
        for name in &hidden {
            self.rename_damaged(name)?;
        }
        if !hidden.is_empty() {
            self.sync_directory()?;
        }
        let is_data = |name: &&String| matches!(layout::parse(name), FileName::Data(..));
        for name in of_all().filter_map(|names| names.last()).filter(is_data) {
            self.rename_damaged(name)?;
        }
        self.sync_directory()?;
        // Not before the sync: the power may bring a damaged file back under its old name until
        // then.
        for entry in distrusted {
            lock(&entry.handle).is_distrusted = false;
        }
        Ok(())
    }

    fn rename_damaged(&self, name: &str) -> Result<(), StorageError> {
        let place = self.free_name(name)?;
        Ok(self.files().rename(&self.directory().join(name), &place)?)
    }

    /// Where a damaged file goes.
    fn free_name(&self, name: &str) -> Result<PathBuf, StorageError> {
        for place in layout::damaged_files(name).map(|name| self.directory().join(name)) {
            if !self.files().exists(&place)? {
                return Ok(place);
            }
        }
        unreachable!("there is no end of names")
    }
}
