//! Writing results.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Writes text to standard output. A reader that has gone away, as `head` does, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Gives `write` standard output with a buffer. A reader that has gone away, as `head` does, ends
/// the tool and is no error.
pub(crate) fn with_stdout(
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    let result = write(&mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match result {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        result => result,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Writes a note to standard error. Nobody can be told when that fails.
pub(crate) fn note(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
