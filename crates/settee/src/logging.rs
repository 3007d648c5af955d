//! Log lines: one event a line on standard error, readable or JSON. Where they cannot be written,
//! on a full disk or to somebody who has gone, they are left out.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use anyhow::Context;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

type SetFilter = dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync;

/// What changes the filter of the process's log lines.
static SET_FILTER: OnceLock<Box<SetFilter>> = OnceLock::new();

/// Sends log lines to standard error from now on. In a process that has done so already (tests)
/// nothing changes.
pub(crate) fn start(filter: &str, as_json: bool) -> anyhow::Result<()> {
    let filter = parse(filter)?;
    let is_coloured = io::stderr().is_terminal() && !says_no_colour();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_coloured)
        // Those are told on standard error, too, and panic if that fails.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    let started = if as_json {
        let builder = builder.json().with_filter_reloading();
        let handle = builder.reload_handle();
        builder.finish().try_init().map(|()| keep(move |filter| handle.reload(filter)))
    } else {
        let builder = builder.with_filter_reloading();
        let handle = builder.reload_handle();
        builder.finish().try_init().map(|()| keep(move |filter| handle.reload(filter)))
    };
    if started.is_err() {
        tracing::debug!("log lines go where they went before");
    }
    Ok(())
}

/// From now on the filter says what is logged.
///
/// # Errors
/// It is no filter: what was logged before is logged further.
pub(crate) fn set_filter(filter: &str) -> anyhow::Result<()> {
    let filter = parse(filter)?;
    SET_FILTER.get().map_or(Ok(()), |set| set(filter)).context("the log's filter stays as it was")
}

fn parse(filter: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(filter)
        .with_context(|| format!("--log-level `{filter}`: try info, or bucket=debug,info"))
}

fn keep(set: impl Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync + 'static) {
    SET_FILTER.get_or_init(|| Box::new(set));
}

/// Whether the environment asks all programs for plain text (no-color.org): by a variable that is
/// not empty.
fn says_no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
