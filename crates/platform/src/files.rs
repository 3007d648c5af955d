//! Files: positioned reads and writes, syncs, directories. Real here, simulated in
//! [`crate::simulated`].

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl};

use crate::aligned_buffer::is_aligned;
use crate::process::FileLock;

/// How [`Files::open`] opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist; writes fail.
    Read,
    /// The file must exist.
    ReadWrite,
    /// The file must not exist; it is created empty.
    CreateNew,
}

/// What the caller of a file operation does about its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileErrorKind {
    /// There is no such file. Callers treat it as absent.
    NotFound,
    /// The file exists already and must not.
    AlreadyExists,
    /// What should be a directory is none. Callers that look for one leave it alone.
    NotADirectory,
    /// The device or the quota is full. Callers answer "temporary failure" and retry later.
    NoSpace,
    /// No file descriptor is left. Callers close some and retry.
    TooManyOpen,
    /// Anything else, `EIO` above all. After it nothing written since the last good sync is
    /// assumed to be on disk.
    Failed,
}

/// A failed file operation: what was tried, on which file, and what the system said.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{operation} {}: {cause}", path.display())]
pub struct FileError {
    /// Sorted by what the caller does.
    pub kind: FileErrorKind,
    /// The operation's name: `open`, `read`, `write`, `sync`, ...
    pub operation: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The system's own error; part of the message, so not a source of its own.
    pub cause: Arc<io::Error>,
}

impl FileError {
    /// Wraps a system error and sorts it.
    pub fn new(operation: &'static str, path: &Path, cause: io::Error) -> Self {
        let kind = match cause.kind() {
            io::ErrorKind::NotFound => FileErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => FileErrorKind::AlreadyExists,
            io::ErrorKind::NotADirectory => FileErrorKind::NotADirectory,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FileErrorKind::NoSpace,
            _ => match cause.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
                Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => {
                    FileErrorKind::TooManyOpen
                }
                _ => FileErrorKind::Failed,
            },
        };
        Self { kind, operation, path: path.to_path_buf(), cause: Arc::new(cause) }
    }
}

/// Room on the file system that a directory is on, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// What this process may still write.
    pub free_bytes: u64,
    /// What the file system holds in all.
    pub total_bytes: u64,
}

/// An open file. All positions are bytes from its beginning.
pub trait File: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `position`; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError>;

    /// Writes all of `bytes` at `position`, extending the file as needed.
    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError>;

    /// Returns once everything written is durable (`fdatasync`).
    fn sync(&self) -> Result<(), FileError>;

    /// Length of the file in bytes.
    fn size(&self) -> Result<u64, FileError>;

    /// Cuts or extends (with zeros) the file to `size` bytes.
    fn set_size(&self, size: u64) -> Result<(), FileError>;
}

/// A file system.
pub trait Files: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError>;

    /// Opens a file whose writes pass by the system's cache, where the file system can do that.
    /// Each write is of a multiple of [`crate::aligned_buffer::DIRECT_ALIGNMENT`] bytes, at such a
    /// position, out of an [`crate::AlignedBuffer`]; nobody reads through it.
    fn open_direct(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        self.open(path, mode)
    }

    /// Takes the lock on `path`, creating the file. `None` when another process holds it. A disk
    /// that no other process can have needs none.
    fn try_lock(&self, path: &Path) -> Result<Option<FileLock>, FileError> {
        if !self.exists(path)? {
            self.open(path, OpenMode::CreateNew)?;
        }
        Ok(Some(FileLock::of_nobody_else()))
    }

    /// Makes a file its user's alone, where there are others.
    fn make_private(&self, path: &Path) -> Result<(), FileError> {
        let _ = path;
        Ok(())
    }

    /// Renames a file, replacing the target. Durable only after [`Files::sync_directory`].
    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError>;

    /// Removes a file. Durable only after [`Files::sync_directory`].
    fn remove(&self, path: &Path) -> Result<(), FileError>;

    /// Removes a directory that is empty. Durable only after [`Files::sync_directory`] of its
    /// parent.
    fn remove_directory(&self, directory: &Path) -> Result<(), FileError>;

    /// Makes creations, renames and removals inside `directory` durable.
    fn sync_directory(&self, directory: &Path) -> Result<(), FileError>;

    /// Creates `directory`, in one that is there; one that is there stays. Durable only after
    /// [`Files::sync_directory`] of its parent.
    fn create_directory(&self, directory: &Path) -> Result<(), FileError>;

    /// Names of everything inside `directory`, sorted.
    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError>;

    /// Whether `path` exists. A link to a place that does not exist is an error, as is everything
    /// else that keeps the system from telling: only "no" means that nothing is there.
    fn exists(&self, path: &Path) -> Result<bool, FileError>;

    /// Room on the file system that `directory` is on; without end where nothing limits it.
    fn disk_space(&self, directory: &Path) -> Result<DiskSpace, FileError> {
        let _ = directory;
        Ok(DiskSpace { free_bytes: u64::MAX, total_bytes: u64::MAX })
    }

    /// Creates `directory` and its parents where they are missing, durably: each name is before
    /// anything is made in the directory, also after an attempt that was cut short.
    fn create_directories(&self, directory: &Path) -> Result<(), FileError> {
        let mut missing = Vec::new();
        for path in directory.ancestors() {
            if path.as_os_str().is_empty() || self.exists(path)? {
                sync_name(self, path)?;
                break;
            }
            missing.push(path);
        }
        for path in missing.iter().rev() {
            // Whoever asked knows the whole path, not the part of it that could not be made.
            let of_whole = |error| FileError { path: directory.to_path_buf(), ..error };
            self.create_directory(path).map_err(of_whole)?;
            self.sync_directory(directory_of(path))?;
        }
        // Says so when a file has its name.
        self.create_directory(directory)
    }

    /// The whole content of a small file.
    fn read_all(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        let file = self.open(path, OpenMode::Read)?;
        let size = usize::try_from(file.size()?).unwrap_or(usize::MAX);
        let mut content = vec![0; size];
        let length = file.read_at(&mut content, 0)?;
        content.truncate(length);
        Ok(content)
    }

    /// Replaces the content of a small file: after a crash there is the old or the new one, whole.
    fn replace_all(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        let fresh = path.with_extension("new");
        // An attempt that was cut short has left it.
        match self.remove(&fresh) {
            Err(error) if error.kind != FileErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let write = || {
            let file = self.open(&fresh, OpenMode::CreateNew)?;
            file.write_at(content, 0)?;
            // Before the name: a crash could otherwise leave the new name with nothing of the
            // content.
            file.sync()?;
            self.rename(&fresh, path)
        };
        let written = write();
        if written.is_err() {
            // A full disk has no room for what is of no use. Another attempt tries this again.
            drop(self.remove(&fresh));
        }
        written?;
        self.sync_directory(directory_of(path))
    }

    /// The same for content that whoever is told of an error goes on without: the new one may have
    /// its name by then, and a start would take it. So what was there before is put back.
    ///
    /// # Errors
    /// The content is what it was, as far as [`NotReplaced`] says.
    fn replace_or_restore(&self, path: &Path, content: &[u8]) -> Result<(), NotReplaced> {
        let before = self.read_all(path);
        let Err(error) = self.replace_all(path, content) else { return Ok(()) };
        let restored = match before {
            Ok(before) => self.restore(path, Some(&before)),
            Err(absent) if absent.kind == FileErrorKind::NotFound => self.restore(path, None),
            Err(unreadable) => Err(unreadable),
        };
        Err(NotReplaced { error, is_unsure: restored.is_err() })
    }

    /// Gives a file back the content that it had, or no file where there was none. Durable on
    /// return.
    fn restore(&self, path: &Path, before: Option<&[u8]>) -> Result<(), FileError> {
        if let Some(before) = before {
            return self.replace_all(path, before);
        }
        match self.remove(path) {
            Err(error) if error.kind != FileErrorKind::NotFound => Err(error),
            _ => self.sync_directory(directory_of(path)),
        }
    }
}

/// The content of a file is what it was.
#[derive(Debug)]
pub struct NotReplaced {
    /// Why.
    pub error: FileError,
    /// Whether a start may find the new content all the same: what was there could not be put back.
    pub is_unsure: bool,
}

impl From<NotReplaced> for FileError {
    fn from(not_replaced: NotReplaced) -> Self {
        not_replaced.error
    }
}

/// The directory that a name is in.
pub fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// Makes the name of a directory durable that was there, and may have been made a moment ago by
/// somebody who was ended. Not where nothing can be made: in a directory that this process may not
/// open, or on a file system that syncs no directories.
fn sync_name(files: &(impl Files + ?Sized), directory: &Path) -> Result<(), FileError> {
    if directory.parent().is_none() {
        return Ok(());
    }
    match files.sync_directory(directory_of(directory)) {
        Err(error) if is_nothing_to_sync(&error.cause) => Ok(()),
        synced => synced,
    }
}

fn is_nothing_to_sync(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported)
}

/// The text of a file that a person has written.
pub fn read_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Whether this process may make something in `directory`, or that itself in the nearest one above
/// that is there. Nothing is made; it is said of this moment alone.
pub fn may_be_written(directory: &Path) -> bool {
    let Ok(absolute) = std::path::absolute(directory) else { return false };
    let nearest = absolute.ancestors().find(|place| place.exists());
    nearest.is_some_and(|place| access(place, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

/// Removes a directory with everything in it. For temporary ones.
pub fn remove_tree(directory: &Path) -> Result<(), FileError> {
    fs::remove_dir_all(directory).map_err(|error| FileError::new("remove", directory, error))
}

/// Opens a file that lines are appended to, or begins it, for this user's eyes alone. With it comes
/// its size in bytes.
pub fn open_log(files: &dyn Files, path: &Path) -> Result<(Box<dyn File>, u64), FileError> {
    let opened = match files.open(path, OpenMode::ReadWrite) {
        Err(error) if error.kind == FileErrorKind::NotFound => {
            files.open(path, OpenMode::CreateNew)
        }
        opened => opened,
    };
    let file = opened?;
    files.make_private(path)?;
    let size = file.size()?;
    Ok((file, size))
}

/// Removes what is in `directory`, but for the files called `kept`; also after an attempt that was
/// cut short. Durable only after [`Files::sync_directory`].
pub fn remove_content(files: &dyn Files, directory: &Path, kept: &[&str]) -> Result<(), FileError> {
    for name in files.list(directory)? {
        if kept.contains(&name.as_str()) {
            continue;
        }
        let path = directory.join(name);
        match files.remove(&path) {
            Err(error) if error.kind == FileErrorKind::NotFound => {}
            // It may be a directory.
            Err(error) => {
                // Of what is no directory, why it cannot be removed as a file says more.
                remove_content(files, &path, &[]).map_err(|_| error)?;
                files.remove_directory(&path)?;
            }
            Ok(()) => {}
        }
    }
    Ok(())
}

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

struct RealFile {
    file: fs::File,
    path: PathBuf,
    /// Whether writes are to pass by the system's cache.
    is_direct: bool,
}

impl OpenMode {
    fn options(self) -> fs::OpenOptions {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match self {
            Self::Read => {}
            Self::ReadWrite => {
                options.write(true);
            }
            Self::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        options
    }
}

impl Files for RealFiles {
    fn try_lock(&self, path: &Path) -> Result<Option<FileLock>, FileError> {
        FileLock::try_acquire(path).map_err(|error| FileError::new("lock", path, error))
    }

    fn make_private(&self, path: &Path) -> Result<(), FileError> {
        let made = crate::process::make_private(path);
        made.map_err(|error| FileError::new("make private", path, error))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        let file =
            mode.options().open(path).map_err(|error| FileError::new("open", path, error))?;
        Ok(Box::new(RealFile { file, path: path.to_path_buf(), is_direct: false }))
    }

    fn open_direct(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        let flags = OFlags::DIRECT.bits().cast_signed();
        match mode.options().custom_flags(flags).open(path) {
            Ok(file) => Ok(Box::new(RealFile { file, path: path.to_path_buf(), is_direct: true })),
            // A file system without this may have created the file before it said so.
            Err(error) if is_invalid(&error) && mode == OpenMode::CreateNew && path.exists() => {
                self.open(path, OpenMode::ReadWrite)
            }
            Err(error) if is_invalid(&error) => self.open(path, mode),
            Err(error) => Err(FileError::new("open", path, error)),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        fs::rename(from, to).map_err(|error| FileError::new("rename", from, error))
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        fs::remove_file(path).map_err(|error| FileError::new("remove", path, error))
    }

    fn remove_directory(&self, directory: &Path) -> Result<(), FileError> {
        fs::remove_dir(directory)
            .map_err(|error| FileError::new("remove directory", directory, error))
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), FileError> {
        fs::File::open(directory)
            .and_then(|handle| handle.sync_all())
            .map_err(|error| FileError::new("sync directory", directory, error))
    }

    fn create_directory(&self, directory: &Path) -> Result<(), FileError> {
        match fs::create_dir(directory) {
            Err(_) if directory.is_dir() => Ok(()),
            created => {
                created.map_err(|error| FileError::new("create directory", directory, error))
            }
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        let wrap = |error| FileError::new("list", directory, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).map_err(wrap)? {
            names.push(entry.map_err(wrap)?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> Result<bool, FileError> {
        let is_nothing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match fs::metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if is_nothing(&error) => match fs::symlink_metadata(path) {
                Err(error) if is_nothing(&error) => Ok(false),
                // It has come between the two looks.
                Ok(found) if !found.is_symlink() => Ok(true),
                // A dangling link, or nobody can tell.
                Ok(_) => Err(FileError::new("follow", path, error)),
                Err(error) => Err(FileError::new("stat", path, error)),
            },
            Err(error) => Err(FileError::new("stat", path, error)),
        }
    }

    fn disk_space(&self, directory: &Path) -> Result<DiskSpace, FileError> {
        let space = rustix::fs::statvfs(directory)
            .map_err(|error| FileError::new("statvfs", directory, error.into()))?;
        Ok(DiskSpace {
            free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
            total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        })
    }
}

impl RealFile {
    /// Ends the passing by of the cache.
    fn use_cache(&self) -> io::Result<()> {
        let flags = fcntl_getfl(&self.file)?;
        Ok(fcntl_setfl(&self.file, flags - OFlags::DIRECT)?)
    }
}

fn is_invalid(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], position + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::new("read", &self.path, error)),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        assert!(
            !self.is_direct || is_aligned(bytes, position),
            "direct writes are of whole blocks"
        );
        let mut written = self.file.write_all_at(bytes, position);
        if self.is_direct && written.as_ref().is_err_and(is_invalid) {
            // A device with larger sectors, or a file system that says only now that it cannot.
            written = self.use_cache().and_then(|()| self.file.write_all_at(bytes, position));
        }
        written.map_err(|error| FileError::new("write", &self.path, error))
    }

    fn sync(&self) -> Result<(), FileError> {
        self.file.sync_data().map_err(|error| FileError::new("sync", &self.path, error))
    }

    fn size(&self) -> Result<u64, FileError> {
        self.file
            .metadata()
            .map(|metadata| metadata.len())
            .map_err(|error| FileError::new("stat", &self.path, error))
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        self.file.set_len(size).map_err(|error| FileError::new("resize", &self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replace_all_leaves_only_the_new_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        for content in [b"first".as_slice(), b"the second, longer", b""] {
            RealFiles.replace_all(&path, content).unwrap();
            assert_eq!(RealFiles.read_all(&path).unwrap(), content);
        }
        assert_eq!(RealFiles.list(directory.path()).unwrap(), ["state.json"]);
    }

    #[test]
    fn directories_are_made_where_they_are_missing() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("data/buckets/default");
        for _ in 0..2 {
            RealFiles.create_directories(&path).unwrap();
            assert_eq!(RealFiles.list(&path).unwrap(), [""; 0]);
        }
        RealFiles.create_directories(Path::new("/")).unwrap();
        RealFiles.create_directories(Path::new(".")).unwrap();
        fs::write(root.path().join("file"), b"").unwrap();
        let on_a_file = RealFiles.create_directories(&root.path().join("file"));
        assert_eq!(on_a_file.unwrap_err().kind, FileErrorKind::AlreadyExists);
        assert!(RealFiles.create_directories(&root.path().join("file/inside")).is_err());
    }

    #[test]
    fn only_what_is_not_there_does_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        assert!(!RealFiles.exists(&path("absent")).unwrap());
        assert!(!RealFiles.exists(&path("absent").join("inside")).unwrap());
        assert!(RealFiles.exists(directory.path()).unwrap());
        fs::write(path("file"), b"").unwrap();
        assert!(RealFiles.exists(&path("file")).unwrap());
        assert!(RealFiles.exists(&path("file").join("inside")).is_err());
        std::os::unix::fs::symlink(path("not mounted"), path("dangling")).unwrap();
        std::os::unix::fs::symlink(path("loop"), path("loop")).unwrap();
        for name in ["dangling", "loop"] {
            assert!(RealFiles.exists(&path(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn what_comes_while_it_is_looked_for_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("now and then");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    fs::create_dir(&path).unwrap();
                    fs::remove_dir(&path).unwrap();
                }
            });
            let looks: Vec<_> = (0..20_000).map(|_| RealFiles.exists(&path)).collect();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(looks.iter().all(Result::is_ok), "{:?}", looks.iter().find(|it| it.is_err()));
        });
    }

    #[test]
    fn errors_say_what_the_caller_does() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("absent");
        let kind = |result: Result<Box<dyn File>, FileError>| result.err().unwrap().kind;
        assert_eq!(kind(RealFiles.open(&path, OpenMode::Read)), FileErrorKind::NotFound);
        RealFiles.open(&path, OpenMode::CreateNew).unwrap();
        assert_eq!(kind(RealFiles.open(&path, OpenMode::CreateNew)), FileErrorKind::AlreadyExists);
        let below = RealFiles.exists(&path.join("below")).unwrap_err();
        let inside = RealFiles.list(&path).unwrap_err();
        assert_eq!([below.kind, inside.kind], [FileErrorKind::NotADirectory; 2]);
    }

    #[test]
    fn what_may_be_written_is_told_of_the_nearest_directory_that_is_there() {
        let directory = tempfile::tempdir().unwrap();
        assert!(may_be_written(directory.path()) && may_be_written(&directory.path().join("a/b")));
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(!may_be_written(&file.join("a")));
        assert_eq!(RealFiles.list(directory.path()).unwrap(), ["file"]);
    }

    #[test]
    fn what_passes_by_the_cache_is_read_like_anything_else() {
        // The second one is in memory, where not every system can pass by.
        let parents = [std::env::temp_dir(), PathBuf::from("/dev/shm")];
        for parent in parents.iter().filter(|parent| parent.exists()) {
            let directory = tempfile::tempdir_in(parent).unwrap();
            let path = directory.path().join("journal");
            let mut block = crate::AlignedBuffer::zeroed(8192);
            let file = RealFiles.open_direct(&path, OpenMode::CreateNew).unwrap();
            for (round, position) in [(1, 0), (2, 8192), (3, 4096)] {
                block.fill(round);
                file.write_at(&block, position).unwrap();
                file.sync().unwrap();
            }
            let content = RealFiles.read_all(&path).unwrap();
            let rounds: Vec<u8> = content.chunks(4096).map(|block| block[17]).collect();
            assert_eq!(rounds, [1, 3, 3, 2]);
            drop(file);
            let file = RealFiles.open_direct(&path, OpenMode::ReadWrite).unwrap();
            block.fill(4);
            file.write_at(&block, 0).unwrap();
            assert_eq!(RealFiles.read_all(&path).unwrap()[..8192], block[..]);
            assert!(RealFiles.open_direct(&path, OpenMode::CreateNew).is_err());
        }
    }

    #[test]
    fn a_file_that_cannot_pass_by_the_cache_uses_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let options = OpenMode::CreateNew.options();
        let file =
            RealFile { file: options.open(&path).unwrap(), path: path.clone(), is_direct: true };
        // Not every file system can, and one that cannot has nothing to end.
        fcntl_setfl(&file.file, OFlags::DIRECT).ok();
        file.use_cache().unwrap();
        file.file.write_all_at(b"three", 1).unwrap();
        assert_eq!(RealFiles.read_all(&path).unwrap(), b"\0three");
    }
}
