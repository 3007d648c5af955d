//! Log lines: one event a line on standard error, readable or JSON. Where they cannot be written,
//! on a full disk or to somebody who has gone, they are left out.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

use crate::recent_log::RecentLog;

/// The last lines. They are the process's, as the log is.
static RECENT: RecentLog = RecentLog::new();

/// Sends log lines to standard error from now on. In a process that has done so already (tests)
/// nothing changes.
pub(crate) fn start(filter: &str, as_json: bool) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("--log-level `{filter}`: try info, or bucket=debug,info"))?;
    let is_coloured = io::stderr().is_terminal() && !says_no_colour();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_coloured)
        // Those are told on standard error, too, and panic if that fails.
        .log_internal_errors(false)
        .with_writer(io::stderr.and(|| &RECENT));
    let started = if as_json { builder.json().try_init() } else { builder.try_init() };
    if started.is_err() {
        tracing::debug!("log lines go where they went before");
    }
    Ok(())
}

/// The last lines that were sent, the oldest first.
pub(crate) fn recent_lines() -> Vec<String> {
    RECENT.lines()
}

/// Whether the environment asks all programs for plain text (no-color.org): by a variable that is
/// not empty.
fn says_no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
