//! The disk behind the simulated files: contents and names, each live and durable.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::faults::Faults;
use super::recording::Recording;
use crate::files::DiskSpace;
use crate::random::Random;

/// A device writes whole sectors or nothing of them.
const SECTOR_SIZE: u64 = 512;

/// Names a file's content, whatever its path.
pub(super) type InodeNumber = u64;

#[derive(Default)]
pub(super) struct Disk {
    pub(super) faults: Faults,
    pub(super) recording: Recording,
    /// Bytes that all files together may have.
    pub(super) capacity: Option<u64>,
    /// Rises with every power cut.
    pub(super) boot: u64,
    pub(super) open_count: usize,
    pub(super) open_count_max: usize,
    /// Content by inode number. Unlinked contents stay until the power cut, for their readers.
    inodes: Vec<Inode>,
    live: Names,
    durable: Names,
    /// What happened to names since their directories were synced, in order.
    name_changes: Vec<NameChange>,
}

/// The names of a disk. Its root is always there.
#[derive(Clone, Default)]
struct Names {
    files: BTreeMap<PathBuf, InodeNumber>,
    directories: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// What happened to the content since `durable`, in order.
    changes: Vec<(Change, Fate)>,
}

/// What has become of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Waits for its sync.
    Pending,
    /// Its sync failed: it may have reached the device or not, and no later sync writes it.
    Lost,
    /// Its sync succeeded.
    Durable,
}

enum Change {
    Write { position: u64, bytes: Vec<u8> },
    Resize(u64),
}

#[derive(Clone)]
enum NameChange {
    CreateDirectory { path: PathBuf },
    Create { path: PathBuf, inode: InodeNumber },
    Rename { from: PathBuf, to: PathBuf, inode: InodeNumber },
    Remove { path: PathBuf },
    RemoveDirectory { path: PathBuf },
}

impl Disk {
    pub(super) fn find(&self, path: &Path) -> io::Result<InodeNumber> {
        self.live.files.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<InodeNumber> {
        if self.live.files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !self.live.has_directory(parent(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inode = self.new_inode(Inode::default());
        self.change_name(NameChange::Create { path: path.to_path_buf(), inode });
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from)?;
        let (from, to) = (from.to_path_buf(), to.to_path_buf());
        self.change_name(NameChange::Rename { from, to, inode });
        Ok(())
    }

    /// A directory is not removed like a file, and one with something in it not at all.
    pub(super) fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        if !self.list(path)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.change_name(NameChange::RemoveDirectory { path: path.to_path_buf() });
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        if self.live.directories.contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.find(path)?;
        self.change_name(NameChange::Remove { path: path.to_path_buf() });
        Ok(())
    }

    pub(super) fn sync_directory(&mut self, directory: &Path) {
        let directory = if directory == Path::new(".") { Path::new("") } else { directory };
        for change in std::mem::take(&mut self.name_changes) {
            if change.directory() == directory {
                change.apply(&mut self.durable);
            } else {
                self.name_changes.push(change);
            }
        }
    }

    pub(super) fn create_directory(&mut self, path: &Path) -> io::Result<()> {
        if self.live.has_directory(path) {
            return Ok(());
        }
        if self.live.files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !self.live.has_directory(parent(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change_name(NameChange::CreateDirectory { path: path.to_path_buf() });
        Ok(())
    }

    pub(super) fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        if self.live.files.contains_key(directory) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !self.live.has_directory(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let paths = self.live.files.keys().chain(&self.live.directories);
        let inside = paths.filter(|path| path.parent() == Some(directory));
        let names = inside.filter_map(|path| path.file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.live.files.contains_key(path) || self.live.has_directory(path)
    }

    pub(super) fn read(&self, inode: InodeNumber, buffer: &mut [u8], position: u64) -> usize {
        let live = &self.inode(inode).live;
        let start = index(position).min(live.len());
        let count = buffer.len().min(live.len() - start);
        buffer[..count].copy_from_slice(&live[start..start + count]);
        count
    }

    pub(super) fn write(
        &mut self,
        inode: InodeNumber,
        bytes: &[u8],
        position: u64,
    ) -> io::Result<()> {
        let end = position + bytes.len() as u64;
        self.check_capacity(inode, end)?;
        let inode = self.inode_mut(inode);
        let change = Change::Write { position, bytes: bytes.to_vec() };
        change.apply(&mut inode.live);
        inode.changes.push((change, Fate::Pending));
        Ok(())
    }

    pub(super) fn set_size(&mut self, inode: InodeNumber, size: u64) -> io::Result<()> {
        self.check_capacity(inode, size)?;
        let inode = self.inode_mut(inode);
        inode.live.resize(index(size), 0);
        inode.changes.push((Change::Resize(size), Fate::Pending));
        Ok(())
    }

    pub(super) fn size(&self, inode: InodeNumber) -> u64 {
        self.inode(inode).live.len() as u64
    }

    pub(super) fn sync(&mut self, inode: InodeNumber) {
        let inode = self.inode_mut(inode);
        inode.settle(Fate::Durable);
        // Changes are applied in order: behind one whose sync failed they wait for the power cut,
        // which decides about that one.
        if inode.changes.iter().all(|(_, fate)| *fate == Fate::Durable) {
            for (change, _) in inode.changes.drain(..) {
                change.apply(&mut inode.durable);
            }
        }
    }

    /// The system forgets what it could not write: the next sync will not write it either.
    pub(super) fn fail_sync(&mut self, inode: InodeNumber) {
        self.inode_mut(inode).settle(Fate::Lost);
    }

    pub(super) fn insert(&mut self, path: &Path, content: &[u8]) {
        let directories = parent(path).ancestors().filter(|path| path.parent().is_some());
        let directories: Vec<_> = directories.map(Path::to_path_buf).collect();
        let inode = Inode { live: content.to_vec(), durable: content.to_vec(), changes: vec![] };
        let inode = self.new_inode(inode);
        for names in [&mut self.live, &mut self.durable] {
            names.files.insert(path.to_path_buf(), inode);
            names.directories.extend(directories.iter().cloned());
        }
    }

    pub(super) fn content(&self, path: &Path) -> Option<Vec<u8>> {
        Some(self.inode(*self.live.files.get(path)?).live.clone())
    }

    pub(super) fn power_cut(&mut self, seed: u64) {
        let mut random = (seed != 0).then(|| Random::from_seed(seed));
        let kept = random.as_mut().map_or_else(Vec::new, |random| self.kept_name_changes(random));
        for (change, is_kept) in std::mem::take(&mut self.name_changes).into_iter().zip(kept) {
            if is_kept {
                change.apply(&mut self.durable);
            }
        }
        self.durable.drop_unreachable();
        for inode in &mut self.inodes {
            inode.power_cut(random.as_mut());
        }
        // Contents without a name are gone. Numbers start again: open files are stale.
        let mut inodes = Vec::new();
        for number in self.durable.files.values_mut() {
            let inode = std::mem::take(&mut self.inodes[index(*number)]);
            *number = inodes.len() as u64;
            inodes.push(inode);
        }
        self.inodes = inodes;
        self.live = self.durable.clone();
        self.boot += 1;
        self.open_count = 0;
    }

    /// Which changes of names reach the disk: on some file systems those before a moment, on most
    /// any of them.
    fn kept_name_changes(&self, random: &mut Random) -> Vec<bool> {
        let count = self.name_changes.len();
        if random.below(4) == 0 {
            let end = index(random.below(count as u64 + 1));
            return (0..count).map(|number| number < end).collect();
        }
        (0..count).map(|_| random.below(2) == 0).collect()
    }

    fn change_name(&mut self, change: NameChange) {
        change.clone().apply(&mut self.live);
        self.name_changes.push(change);
    }

    /// Room on a disk of a size; of one without, as much as there can be.
    pub(super) fn space(&self) -> DiskSpace {
        let total_bytes = self.capacity.unwrap_or(u64::MAX);
        let free_bytes = total_bytes.saturating_sub(self.used_bytes());
        DiskSpace { free_bytes, total_bytes }
    }

    fn used_bytes(&self) -> u64 {
        self.live.files.values().map(|inode| self.size(*inode)).sum()
    }

    fn check_capacity(&self, inode: InodeNumber, end: u64) -> io::Result<()> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        let growth = end.saturating_sub(self.size(inode));
        if growth > 0 && self.used_bytes() + growth > capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn new_inode(&mut self, inode: Inode) -> InodeNumber {
        self.inodes.push(inode);
        self.inodes.len() as u64 - 1
    }

    fn inode(&self, number: InodeNumber) -> &Inode {
        &self.inodes[index(number)]
    }

    fn inode_mut(&mut self, number: InodeNumber) -> &mut Inode {
        &mut self.inodes[index(number)]
    }
}

impl Names {
    fn has_directory(&self, path: &Path) -> bool {
        path.parent().is_none() || self.directories.contains(path)
    }

    /// What is in a directory that is not there is not there.
    fn drop_unreachable(&mut self) {
        // Parents come first.
        for path in std::mem::take(&mut self.directories) {
            if self.has_directory(parent(&path)) {
                self.directories.insert(path);
            }
        }
        let directories = &self.directories;
        let is_there = |path: &Path| path.parent().is_none() || directories.contains(path);
        self.files.retain(|path, _| is_there(parent(path)));
    }
}

impl Inode {
    fn settle(&mut self, settled: Fate) {
        for (_, fate) in &mut self.changes {
            if *fate == Fate::Pending {
                *fate = settled;
            }
        }
    }

    fn power_cut(&mut self, mut random: Option<&mut Random>) {
        for (change, fate) in std::mem::take(&mut self.changes) {
            if fate == Fate::Durable {
                change.apply(&mut self.durable);
            } else if let Some(random) = &mut random {
                change.apply_torn(&mut self.durable, random);
            }
        }
        self.live = self.durable.clone();
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { position, bytes } => put(content, index(*position), bytes),
            Self::Resize(size) => content.resize(index(*size), 0),
        }
    }

    fn apply_torn(&self, content: &mut Vec<u8>, random: &mut Random) {
        let Self::Write { position, bytes } = self else {
            if random.below(2) == 0 {
                self.apply(content);
            }
            return;
        };
        // One write in three is whole, one is lost, one is torn.
        let fate = random.below(3);
        let mut start = 0;
        while start < bytes.len() {
            let at = position + start as u64;
            let end = bytes.len().min(start + index(SECTOR_SIZE - at % SECTOR_SIZE));
            if fate == 0 || (fate == 2 && random.below(2) == 0) {
                put(content, index(at), &bytes[start..end]);
            }
            start = end;
        }
    }
}

impl NameChange {
    fn directory(&self) -> &Path {
        match self {
            Self::CreateDirectory { path }
            | Self::Create { path, .. }
            | Self::Remove { path }
            | Self::RemoveDirectory { path }
            | Self::Rename { to: path, .. } => parent(path),
        }
    }

    fn apply(self, Names { files: names, directories }: &mut Names) {
        match self {
            Self::CreateDirectory { path } => {
                directories.insert(path);
            }
            Self::Create { path, inode } => {
                names.insert(path, inode);
            }
            Self::Remove { path } => {
                names.remove(&path);
            }
            Self::RemoveDirectory { path } => {
                directories.remove(&path);
            }
            // Also when an earlier change of that content's name is lost.
            Self::Rename { from, to, inode } => {
                if names.get(&from) == Some(&inode) {
                    names.remove(&from);
                }
                names.insert(to, inode);
            }
        }
    }
}

fn put(content: &mut Vec<u8>, position: usize, bytes: &[u8]) {
    let end = position + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[position..end].copy_from_slice(bytes);
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("simulated disks fit the address space")
}
