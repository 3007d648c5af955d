//! Files in memory that keep what is *live* (what programs read) apart from what is *durable*
//! (what a power cut leaves), and that fail where a test wants them to.
//!
//! The model is as strict as the systems it stands for allow: a file's bytes are durable after its
//! sync, its name after the sync of its directory, and nothing before. What a failed sync should
//! have made durable is as unsure as if there had been none, although reads go on seeing it, and a
//! later sync that succeeds does not make it sure (that is how Linux behaves). Everything follows
//! from the calls and the seeds; nothing here is random by itself.

mod disk;
mod faults;
mod recording;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::aligned_buffer::is_aligned;
use crate::files::{DiskSpace, File, FileError, Files, OpenMode};
use disk::{Disk, InodeNumber};
pub use faults::{Call, CallCounts, Fault, FaultError};
pub use recording::RecordedCall;

/// A simulated disk. A handle: clones see the same files.
#[derive(Clone, Default)]
pub struct SimulatedFiles(Arc<Mutex<Disk>>);

/// An open file. After a power cut its calls fail.
struct SimulatedFile {
    disk: SimulatedFiles,
    path: PathBuf,
    inode: InodeNumber,
    /// The machine's run in which it was opened.
    boot: u64,
    writable: bool,
    is_direct: bool,
}

impl SimulatedFiles {
    /// An empty disk of unlimited size with a root directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the disk to `bytes`; writes beyond fail with [`crate::FileErrorKind::NoSpace`].
    pub fn set_capacity(&self, bytes: u64) {
        self.lock().capacity = Some(bytes);
    }

    /// Makes calls fail from now on. Faults add up; each counts its calls from here.
    pub fn fail(&self, fault: Fault) {
        self.lock().faults.arm(fault);
    }

    /// Calls succeed again.
    pub fn heal(&self) {
        self.lock().faults.disarm();
    }

    /// How many calls there were so far, failed ones included.
    pub fn calls(&self) -> CallCounts {
        self.lock().faults.counts()
    }

    /// From now on remembers the calls that change something.
    pub fn record(&self) {
        self.lock().recording.begin();
    }

    /// The calls since this was asked before, those that failed left out.
    pub fn take_recorded(&self) -> Vec<RecordedCall> {
        self.lock().recording.take()
    }

    /// Cuts the power and starts again: open files become stale, and of what was not synced
    /// nothing stays (`seed` 0) or a random part: any of the changes of directories, whatever their
    /// order was, and of each write any of its 512-byte sectors.
    pub fn power_cut(&self, seed: u64) {
        self.lock().power_cut(seed);
    }

    /// Puts a file there, whole and durable, as if it had always been there.
    pub fn insert(&self, path: &Path, content: &[u8]) {
        self.lock().insert(path, content);
    }

    /// What the file holds right now, without counting as a call.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        self.lock().content(path)
    }

    /// How many files are open.
    pub fn open_count(&self) -> usize {
        self.lock().open_count
    }

    /// How many files were open at a time, at most, since this was asked before.
    pub fn take_open_count_max(&self) -> usize {
        let mut disk = self.lock();
        let now = disk.open_count;
        std::mem::replace(&mut disk.open_count_max, now)
    }

    fn open_file(
        &self,
        path: &Path,
        mode: OpenMode,
        is_direct: bool,
    ) -> Result<Box<dyn File>, FileError> {
        let wrap = |error| FileError::new("open", path, error);
        let mut disk = self.lock();
        disk.faults.check(Call::Open).map_err(wrap)?;
        let inode = match mode {
            OpenMode::Read | OpenMode::ReadWrite => disk.find(path),
            OpenMode::CreateNew => disk.create(path),
        };
        let inode = inode.map_err(wrap)?;
        if mode == OpenMode::CreateNew {
            disk.recording.note_path(RecordedCall::Create, path);
        }
        let file = SimulatedFile {
            disk: self.clone(),
            path: path.to_path_buf(),
            inode,
            boot: disk.boot,
            writable: mode != OpenMode::Read,
            is_direct,
        };
        disk.open_count += 1;
        disk.open_count_max = disk.open_count_max.max(disk.open_count);
        Ok(Box::new(file))
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        // A panicking test must not hide behind a second panic: the disk is plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for SimulatedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        self.open_file(path, mode, false)
    }

    fn open_direct(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        self.open_file(path, mode, true)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        let wrap = |error| FileError::new("rename", from, error);
        let mut disk = self.lock();
        let is_late = disk.faults.is_rename_late();
        let checked = disk.faults.check(Call::Rename).map_err(wrap);
        if checked.is_err() && !is_late {
            return checked;
        }
        disk.rename(from, to).map_err(wrap)?;
        let (from, to) = (from.to_path_buf(), to.to_path_buf());
        disk.recording.note(|| RecordedCall::Rename { from, to });
        checked
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        let mut disk = self.lock();
        disk.faults
            .check(Call::Remove)
            .and_then(|()| disk.remove(path))
            .map_err(|error| FileError::new("remove", path, error))?;
        disk.recording.note_path(RecordedCall::Remove, path);
        Ok(())
    }

    fn remove_directory(&self, directory: &Path) -> Result<(), FileError> {
        let mut disk = self.lock();
        disk.faults
            .check(Call::Remove)
            .and_then(|()| disk.remove_directory(directory))
            .map_err(|error| FileError::new("remove directory", directory, error))?;
        disk.recording.note_path(RecordedCall::RemoveDirectory, directory);
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), FileError> {
        let mut disk = self.lock();
        disk.faults
            .check(Call::SyncDirectory)
            .map_err(|error| FileError::new("sync directory", directory, error))?;
        disk.sync_directory(directory);
        disk.recording.note_path(RecordedCall::SyncDirectory, directory);
        Ok(())
    }

    fn create_directory(&self, directory: &Path) -> Result<(), FileError> {
        let mut disk = self.lock();
        let is_new = !disk.exists(directory);
        disk.create_directory(directory)
            .map_err(|error| FileError::new("create directory", directory, error))?;
        if is_new {
            disk.recording.note_path(RecordedCall::CreateDirectory, directory);
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        self.lock().list(directory).map_err(|error| FileError::new("list", directory, error))
    }

    fn exists(&self, path: &Path) -> Result<bool, FileError> {
        Ok(self.lock().exists(path))
    }

    fn disk_space(&self, _: &Path) -> Result<DiskSpace, FileError> {
        Ok(self.lock().space())
    }
}

impl SimulatedFile {
    /// Locks the disk for one call, unless the call is to fail.
    fn call(&self, call: Call) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.disk.lock();
        disk.faults.check(call)?;
        if disk.boot != self.boot {
            return Err(io::Error::other("the power was cut since this file was opened"));
        }
        Ok(disk)
    }

    fn wrap<T>(&self, operation: &'static str, result: io::Result<T>) -> Result<T, FileError> {
        result.map_err(|error| FileError::new(operation, &self.path, error))
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl File for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        assert!(!self.is_direct, "nobody reads through a file that is open for direct writes");
        let done = self.call(Call::Read).map(|disk| disk.read(self.inode, buffer, position));
        self.wrap("read", done)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        assert!(
            !self.is_direct || is_aligned(bytes, position),
            "direct writes are of whole blocks"
        );
        let mut disk = self.disk.lock();
        if disk.boot == self.boot
            && let Some(half) = disk.faults.short_write(bytes)
        {
            // What fitted is there, for reads and perhaps for the disk.
            let error = disk.write(self.inode, half, position).err();
            let error = error.unwrap_or_else(|| io::ErrorKind::WriteZero.into());
            return self.wrap("write", Err(error));
        }
        drop(disk);
        let done = self.check_writable().and_then(|()| {
            let mut disk = self.call(Call::Write)?;
            disk.write(self.inode, bytes, position)?;
            let (path, size) = (self.path.clone(), bytes.len() as u64);
            disk.recording.note(|| RecordedCall::Write { path, position, size });
            Ok(())
        });
        self.wrap("write", done)
    }

    fn sync(&self) -> Result<(), FileError> {
        let done = match self.call(Call::Sync) {
            Ok(mut disk) => {
                disk.sync(self.inode);
                disk.recording.note_path(RecordedCall::Sync, &self.path);
                Ok(())
            }
            Err(error) => {
                let mut disk = self.disk.lock();
                if disk.boot == self.boot {
                    disk.fail_sync(self.inode);
                }
                Err(error)
            }
        };
        self.wrap("sync", done)
    }

    fn size(&self) -> Result<u64, FileError> {
        let disk = self.disk.lock();
        Ok(if disk.boot == self.boot { disk.size(self.inode) } else { 0 })
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        let done = self.check_writable().and_then(|()| {
            let mut disk = self.call(Call::Write)?;
            disk.set_size(self.inode, size)?;
            let path = self.path.clone();
            disk.recording.note(|| RecordedCall::Resize { path, size });
            Ok(())
        });
        self.wrap("resize", done)
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut disk = self.disk.lock();
        if disk.boot == self.boot {
            disk.open_count -= 1;
        }
    }
}
