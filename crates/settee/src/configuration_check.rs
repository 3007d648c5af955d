//! `settee serve --check`: what keeps a node from starting is found before it is stopped.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use node::{FoundDirectory, check_start};
use platform::{Clock, Files};

use crate::init_files::InitFiles;
use crate::settings::ServeConfig;

/// Reads what a start would read, and says what it would do with the data directory. Nothing is
/// made, and a node may use the directory meanwhile.
///
/// # Errors
/// What would keep a node from starting.
pub(crate) fn run(
    clock: &Clock,
    files: &Arc<dyn Files>,
    config: &ServeConfig,
) -> anyhow::Result<ExitCode> {
    InitFiles::read(&**files, config.init_dir.as_deref())?;
    let node = config.node_config();
    let found = match check_start(clock, files, &node)? {
        FoundDirectory::Unused => "a start makes the data directory",
        FoundDirectory::OfNode => "a start goes on with the data directory",
        FoundDirectory::OfOriginal => "a start takes over the files in the data directory",
    };
    let line = format!("the configuration is right: {found} {}\n", node.data_dir.display());
    // Nobody may be there to read it; whether it is right tells the exit status.
    drop(io::stdout().write_all(line.as_bytes()));
    Ok(ExitCode::SUCCESS)
}
