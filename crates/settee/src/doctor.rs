//! `settee doctor`: the tool, and what a node says of the small files of its data directory.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cli::DoctorArguments;
use node::NoteFault;
use platform::Files;
use platform::files::RealFiles;

/// Runs the tool.
pub fn doctor(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let files: Arc<dyn Files> = Arc::new(RealFiles);
    let notes = |directory: &Path| {
        let faults = node::faults_of_notes(&files, directory).into_iter();
        faults.map(|NoteFault { path, what }| (path, what)).collect()
    };
    cli::doctor::run(arguments, &notes)
}
