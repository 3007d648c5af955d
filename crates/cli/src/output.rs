//! Writing results.

use std::io::{self, Write};

/// Writes text to standard output. A reader that has gone away, as `head` does, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a note to standard error. Nobody can be told when that fails.
pub(crate) fn note(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
