//! The terminal that a person may be looking at.

use std::io::{IsTerminal, stderr, stdout};

/// Whether a person reads standard error as it is written.
pub fn is_stderr_terminal() -> bool {
    stderr().is_terminal()
}

/// Columns of the terminal on standard output; `None` when that is something else.
pub fn stdout_columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}
