//! A log file that stays small: one that is large enough becomes the first of those of before.
//!
//! ```text
//! <file>      the newest lines
//! <file>.1    those before them, and so on up to <file>.<kept>
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::files::open_log;
use platform::{File, FileError, FileErrorKind, Files};

/// Files of before that are kept.
const KEPT_MAX: u32 = 5;

/// Where log lines go.
pub(crate) struct LogFile {
    files: Arc<dyn Files>,
    path: PathBuf,
    /// Bytes from which on a file becomes one of before.
    bytes_max: u64,
    /// `None` after it could not be written, until it can.
    current: Option<Current>,
}

/// The file that lines go to.
struct Current {
    file: Box<dyn File>,
    size: u64,
    /// Bytes from which on it is to become one of before.
    renamed_from: u64,
}

impl LogFile {
    /// Goes on with the file at `path`, or begins it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(
        files: Arc<dyn Files>,
        path: &Path,
        bytes_max: u64,
    ) -> Result<Self, FileError> {
        let mut log = Self { files, path: path.to_path_buf(), bytes_max, current: None };
        log.current = Some(log.begin()?);
        Ok(log)
    }

    fn begin(&self) -> Result<Current, FileError> {
        let (file, size) = open_log(&*self.files, &self.path)?;
        Ok(Current { file, size, renamed_from: self.bytes_max })
    }

    /// Appends a line. One that cannot be written is left out, and the next one is tried.
    fn append(&mut self, line: &[u8]) -> Result<(), FileError> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.begin()?,
        };
        if current.size >= current.renamed_from {
            match self.rotate() {
                Ok(()) => current = self.begin()?,
                // The line has a place all the same. Tried again behind as much; nobody is told,
                // because this is where that would be written.
                Err(_) => current.renamed_from = current.size.saturating_add(self.bytes_max),
            }
        }
        current.file.write_at(line, current.size)?;
        let written = u64::try_from(line.len()).unwrap_or(u64::MAX);
        current.size = current.size.saturating_add(written);
        self.current = Some(current);
        Ok(())
    }

    /// Renames every file to the name behind its own; the last one is replaced.
    fn rotate(&self) -> Result<(), FileError> {
        for number in (0..KEPT_MAX).rev() {
            let (from, to) = (self.numbered(number), self.numbered(number + 1));
            match self.files.rename(&from, &to) {
                Err(error) if error.kind != FileErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The name of the file that was the newest so many files ago.
    fn numbered(&self, number: u32) -> PathBuf {
        if number == 0 {
            return self.path.clone();
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        name.into()
    }
}

impl io::Write for LogFile {
    /// Takes all of a line, which comes at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.append(line).map_err(io::Error::other)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use platform::files::RealFiles;
    use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

    use super::*;

    fn text(path: &Path) -> String {
        platform::files::read_text(path).unwrap()
    }

    #[test]
    fn a_file_that_is_large_enough_is_kept_and_the_oldest_one_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = LogFile::open(Arc::new(RealFiles), &path, 4).unwrap();
        for number in 0..10 {
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        assert_eq!(text(&path), "line 9\n");
        for number in 1..=KEPT_MAX {
            assert_eq!(text(&log.numbered(number)), format!("line {}\n", 9 - number));
        }
        assert_eq!(RealFiles.list(directory.path()).unwrap().len(), 1 + KEPT_MAX as usize);
    }

    #[test]
    fn a_start_goes_on_with_the_file_that_there_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for line in ["one\n", "two\n"] {
            let mut log = LogFile::open(Arc::new(RealFiles), &path, 1000).unwrap();
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(text(&path), "one\ntwo\n");
        let nowhere = directory.path().join("none/log");
        assert!(LogFile::open(Arc::new(RealFiles), &nowhere, 1000).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_tried_again_with_the_next_line() {
        let files = SimulatedFiles::new();
        let path = Path::new("/log");
        let mut log = LogFile::open(Arc::new(files.clone()), path, 1000).unwrap();
        log.write_all(b"first\n").unwrap();
        let (call, error) = (Some(Call::Write), FaultError::NoSpace);
        files.fail(Fault { call, number: 1, error, from_then_on: false });
        assert!(log.write_all(b"second\n").is_err());
        log.write_all(b"third\n").unwrap();
        assert_eq!(files.content(path).unwrap(), b"first\nthird\n");
    }

    #[test]
    fn a_file_that_cannot_be_renamed_takes_every_line_until_it_can() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = LogFile::open(Arc::new(RealFiles), &path, 4).unwrap();
        log.write_all(b"first\n").unwrap();
        // No file can be renamed to a directory.
        let last_but_one = log.numbered(KEPT_MAX - 1);
        drop(LogFile::open(Arc::new(RealFiles), &last_but_one, 4).unwrap());
        let obstacle = log.numbered(KEPT_MAX);
        RealFiles.create_directories(&obstacle.join("inside")).unwrap();
        log.write_all(b"second\n").unwrap();
        log.write_all(b"third\n").unwrap();
        assert_eq!(text(&path), "first\nsecond\nthird\n");
        platform::files::remove_tree(&obstacle).unwrap();
        log.write_all(b"fourth\n").unwrap();
        assert_eq!(text(&path), "fourth\n");
        assert_eq!(text(&log.numbered(1)), "first\nsecond\nthird\n");
    }
}
