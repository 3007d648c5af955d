//! Other programs: where they are, running them, reading what they print.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether this is a run for the record, in which nothing may be skipped.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// `cargo` with these arguments, in the root of the repository.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    command
}

/// Whether `program` is in the search path.
pub(crate) fn has_program(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Runs a command that prints to the terminal; its failure is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

/// Bytes that are free where `directory` is; `None` where `df` does not tell.
pub(crate) fn free_bytes(directory: &Path) -> Option<u64> {
    let captured = capture(Command::new("df").arg("-Pk").arg(directory)).ok()?;
    let available = captured.text.lines().nth(1)?.split_whitespace().nth(3)?;
    available.parse::<u64>().ok()?.checked_mul(1024)
}

/// What a command printed, and whether it succeeded.
pub(crate) struct Captured {
    pub(crate) succeeded: bool,
    /// Standard output, then standard error.
    pub(crate) text: String,
}

/// Runs a command to its end and keeps what it prints.
pub(crate) fn capture(command: &mut Command) -> Result<Captured> {
    command.stdin(Stdio::null());
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Captured { succeeded: output.status.success(), text })
}

/// Does one step of a task and prints its name and duration.
pub(crate) fn step<T>(name: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    judged_step(name, |_| true, body)
}

/// A step whose result can be bad without being an error.
pub(crate) fn judged_step<T>(
    name: &str,
    is_good: impl FnOnce(&T) -> bool,
    body: impl FnOnce() -> Result<T>,
) -> Result<T> {
    println!("{name} ...");
    let started = Instant::now();
    let outcome = body();
    let word = if outcome.as_ref().is_ok_and(is_good) { "ok" } else { "FAILED" };
    println!("{name} {word}, {:.1} s", started.elapsed().as_secs_f64());
    outcome.with_context(|| format!("step `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_free_room_and_none_is_told_of_one_that_is_not_there() {
        assert!(free_bytes(&root()).is_some_and(|bytes| bytes > 0));
        assert_eq!(free_bytes(Path::new("/no/such/directory")), None);
    }
}
