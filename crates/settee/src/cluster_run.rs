//! `settee cluster-run`: several nodes on this machine, and playing with their failure.

mod arguments;
mod control;
mod directory;
mod member_port;
mod process;
mod supervisor;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;

pub use arguments::ClusterRunArguments;
use directory::Directory;
use supervisor::Supervisor;

/// Runs a cluster until it is told to stop, or tells the running one what to do.
pub fn cluster_run(arguments: &ClusterRunArguments) -> anyhow::Result<ExitCode> {
    let directory = Directory::new(&arguments.dir);
    let Some(command) = arguments.order.command(arguments.force, arguments.bucket.as_ref()) else {
        Supervisor::start(directory, arguments)?.run()?;
        return Ok(ExitCode::SUCCESS);
    };
    let nowhere = || format!("no cluster is in {}", arguments.dir.display());
    let description = directory.description()?.with_context(nowhere)?;
    let address = description.control.with_context(nowhere)?;
    say(&control::tell(address, &description.secret, command)?);
    Ok(ExitCode::SUCCESS)
}

/// Tells the person in front of the terminal.
fn say(line: &str) {
    // Nodes do not end because nobody reads any more what is said of them.
    let _unread = writeln!(std::io::stdout(), "{line}");
}
