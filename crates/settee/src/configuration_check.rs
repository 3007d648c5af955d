//! `settee serve --check`: what keeps a node from starting is found before it is stopped.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::ensure;
use node::{FoundDirectory, check_start};
use platform::{Clock, Entropy, Files};

use crate::audit;
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
    entropy: &Entropy,
    config: &ServeConfig,
) -> anyhow::Result<ExitCode> {
    InitFiles::read(&**files, config.init_dir.as_deref())?;
    if let Some(place) = config.ready_file.as_deref().and_then(Path::parent) {
        let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        ensure!(files.exists(place)?, "--ready-file: there is no directory {}", place.display());
        check_writable(place, "--ready-file")?;
    }
    let node = config.node_config();
    let found = check_start(clock, files, entropy, &node)?;
    check_writable(&node.data_dir, "--data-dir")?;
    if config.audit_log {
        audit::tell_fault(&**files, &node.data_dir);
    }
    let found = match found {
        FoundDirectory::Unused => "a start makes the data directory",
        FoundDirectory::OfNode => "a start goes on with the data directory",
        FoundDirectory::OfOriginal => "a start takes over the files in the data directory",
    };
    let line = format!("the configuration is right: {found} {}\n", node.data_dir.display());
    // Nobody may be there to read it; whether it is right tells the exit status.
    drop(io::stdout().write_all(line.as_bytes()));
    Ok(ExitCode::SUCCESS)
}

/// Whether something could be made in the directory, or this in the nearest one that is there.
fn check_writable(directory: &Path, flag: &str) -> anyhow::Result<()> {
    let shown = directory.display();
    let refusal = format!("{flag}: this user may not write to {shown}; let it, or name another");
    ensure!(platform::files::may_be_written(directory), refusal);
    Ok(())
}
