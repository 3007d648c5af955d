//! `settee doctor`: what is wrong with a data directory, and what to do about it.

mod bucket;
mod directory;
mod last_stop;
mod symptom;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use platform::Files;
use platform::files::RealFiles;
use serde_json::json;
use storage::Severity;

use crate::output::with_stdout;
use crate::output_format::OutputFormat;
use symptom::Symptom;

/// Checks a data directory, explains what it finds, and proposes what to do
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct DoctorArguments {
    /// A node's data directory
    #[arg(value_name = "DIRECTORY", default_value = "settee-data")]
    pub directory: PathBuf,
    /// Leave out what takes long: reading every file to its end
    #[arg(long)]
    pub quick: bool,
    /// How findings are shown
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Table)]
    output: OutputFormat,
}

const HELP: &str = "\
It looks at whose the directory is and whether a node uses it, at the room on the disk, at the
descriptions of buckets, at what is left of earlier damage, and, unless --quick is said, at every
file as settee verify-file does. While no node runs there, what a start reads first is read as a
start reads it. Nothing is written, and the node may run.
Exit code: 0 when nothing is damaged, 1 otherwise. Warnings are no damage.

Examples:
  settee doctor /srv/settee
  settee doctor --quick /srv/settee
  settee doctor -o json /srv/settee | jq '.symptoms[] | select(.severity == \"problem\")'";

/// Has a node read what a start reads of a data directory before documents: the files that it would
/// not take, or goes on without, each with what is wrong and what to do.
pub type NoteCheck<'a> = &'a dyn Fn(&Path) -> Vec<(PathBuf, String)>;

/// What was looked at, and found.
#[derive(Default)]
struct Report {
    /// What is so, a line each.
    facts: Vec<String>,
    symptoms: Vec<Symptom>,
    file_count: u64,
    checked_bytes: u64,
}

/// Runs the tool.
///
/// # Errors
/// The directory cannot be read.
pub fn run(arguments: &DoctorArguments, notes: NoteCheck<'_>) -> anyhow::Result<ExitCode> {
    with_stdout(|out| write_to(arguments, &RealFiles, notes, out))
}

/// Writes the result to `out`. The exit code tells whether nothing is damaged.
///
/// # Errors
/// The directory cannot be read, or nothing can be written.
pub fn write_to(
    arguments: &DoctorArguments,
    files: &dyn Files,
    notes: NoteCheck<'_>,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let mut report = Report::default();
    directory::examine(files, arguments, notes, &mut report)?;
    match arguments.output {
        OutputFormat::Table => report.write_lines(out)?,
        OutputFormat::Json => report.write_json(out)?,
    }
    Ok(if report.problem_count() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Report {
    fn problem_count(&self) -> usize {
        self.symptoms.iter().filter(|symptom| symptom.severity == Severity::Problem).count()
    }

    fn write_lines(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        for fact in &self.facts {
            writeln!(out, "{fact}")?;
        }
        for symptom in &self.symptoms {
            symptom.write_lines(out)?;
        }
        let problem_count = self.problem_count();
        let warning_count = self.symptoms.len() - problem_count;
        let megabytes = self.checked_bytes / 1_000_000;
        let checked = format!("{} files, {megabytes} MB checked", self.file_count);
        writeln!(out, "{checked}: {problem_count} problems, {warning_count} warnings")?;
        Ok(())
    }

    fn write_json(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let symptoms: Vec<_> = self.symptoms.iter().map(Symptom::to_json).collect();
        let object = json!({
            "facts": self.facts,
            "symptoms": symptoms,
            "files": self.file_count,
            "checked_bytes": self.checked_bytes,
            "sound": self.problem_count() == 0,
        });
        writeln!(out, "{object}")?;
        Ok(())
    }
}
