//! Log lines: one event a line on standard error or in a file, readable or JSON. Where they cannot
//! be written, on a full disk or to somebody who has gone, they are left out.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::Context;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt};
use tracing_subscriber::layer::{Layer, Layered, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::log_file::LogFile;
use crate::recent_log::RecentLog;

/// The last lines. They are the process's, as the log is.
static RECENT: RecentLog = RecentLog::new();

/// What decides which lines there are. Lines belong to the process, so this does, too.
static FILTER: OnceLock<Filter> = OnceLock::new();

/// What lines pass before they are written.
type Filtered = Layered<reload::Layer<EnvFilter, Registry>, Registry>;

/// A filter that can be changed, and what it was made of.
struct Filter {
    handle: reload::Handle<EnvFilter, Registry>,
    text: Mutex<String>,
}

/// Sends log lines to `file`, or else to standard error, from now on. In a process that has done so
/// already (tests) nothing changes.
pub(crate) fn start(filter: &str, as_json: bool, file: Option<LogFile>) -> anyhow::Result<()> {
    let parsed = parse(filter).context("--log-level")?;
    let is_coloured = file.is_none() && io::stderr().is_terminal() && !says_no_colour();
    let writer = match file {
        Some(file) => BoxMakeWriter::new(Mutex::new(file)),
        None => BoxMakeWriter::new(io::stderr),
    };
    let (reloadable, handle) = reload::Layer::new(parsed);
    let lines = fmt::layer()
        .with_ansi(is_coloured)
        // Those are told on standard error, too, and panic if that fails.
        .log_internal_errors(false)
        .with_writer(writer.and(|| &RECENT));
    let lines: Box<dyn Layer<Filtered> + Send + Sync> =
        if as_json { lines.json().boxed() } else { lines.boxed() };
    let started = tracing_subscriber::registry().with(reloadable).with(lines).try_init();
    if started.is_err() {
        tracing::debug!("log lines go where they went before");
        return Ok(());
    }
    FILTER.get_or_init(|| Filter { handle, text: Mutex::new(filter.to_owned()) });
    Ok(())
}

/// Which lines there are now, in the words of `--log-level`; `None` where nothing is logged.
pub(crate) fn filter() -> Option<String> {
    let filter = FILTER.get()?;
    Some(filter.text.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// From now on there are others.
///
/// # Errors
/// Why not, for people: the text is no filter.
pub(crate) fn set_filter(text: &str) -> Result<(), String> {
    let parsed = parse(text).map_err(|error| format!("{error:#}"))?;
    let filter = FILTER.get().ok_or("This process does not log")?;
    let mut current = filter.text.lock().unwrap_or_else(PoisonError::into_inner);
    filter.handle.reload(parsed).map_err(|error| error.to_string())?;
    text.clone_into(&mut current);
    Ok(())
}

fn parse(filter: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(filter)
        .with_context(|| format!("`{filter}` is no filter: try info, or bucket=debug,info"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_is_none_is_refused_with_one_that_is() {
        for (text, is_filter) in
            [("info", true), ("bucket=debug,info", true), ("bucket=loud", false), ("a=b=c", false)]
        {
            let parsed = parse(text).map(drop).map_err(|error| error.to_string());
            assert_eq!(parsed.is_ok(), is_filter, "{text}");
        }
        assert!(parse("bucket=loud").unwrap_err().to_string().contains("try info"));
    }
}
