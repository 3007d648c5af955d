//! A file that is written from its beginning to its end and never read: its bytes go elsewhere as
//! they come.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use platform::{File, FileError};

/// Takes the bytes, in order.
type Sink = Box<dyn FnMut(&[u8]) -> io::Result<()> + Send>;

/// Zeros that fill a gap are handed on so many at a time.
const ZEROS: [u8; 4096] = [0; 4096];

/// A file whose bytes go to a sink.
pub(super) struct StreamFile {
    /// For errors.
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    sink: Sink,
    /// Bytes that the sink has had.
    size: u64,
}

impl StreamFile {
    pub(super) fn new(path: &Path, sink: Sink) -> Self {
        Self { path: path.to_path_buf(), state: Mutex::new(State { sink, size: 0 }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsupported(&self, operation: &'static str) -> FileError {
        let what = "a stream is written once, from its beginning to its end";
        FileError::new(operation, &self.path, io::Error::other(what))
    }
}

impl State {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (self.sink)(bytes)?;
        self.size = self.size.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

impl File for StreamFile {
    fn read_at(&self, _buffer: &mut [u8], _position: u64) -> Result<usize, FileError> {
        Err(self.unsupported("read"))
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        let mut state = self.state();
        if position < state.size {
            return Err(self.unsupported("write"));
        }
        let failed = |error| FileError::new("stream", &self.path, error);
        // What a file system fills with zeros.
        while state.size < position {
            let gap = usize::try_from(position - state.size).unwrap_or(usize::MAX);
            state.append(&ZEROS[..gap.min(ZEROS.len())]).map_err(failed)?;
        }
        state.append(bytes).map_err(failed)
    }

    fn sync(&self) -> Result<(), FileError> {
        Ok(())
    }

    fn size(&self) -> Result<u64, FileError> {
        Ok(self.state().size)
    }

    fn set_size(&self, _size: u64) -> Result<(), FileError> {
        Err(self.unsupported("resize"))
    }
}
