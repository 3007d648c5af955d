//! Suites that drive the built node from outside: `acceptance/<suite>/run`.
//!
//! A suite is an executable. It is called with `SETTEE_BINARY`, `WORK_DIR` (empty, its own) and
//! `CI` in its environment, and prints one line a case: `CASE name ok`, `CASE name FAIL why` or
//! `CASE name SKIP why`. It exits with 0 when no case failed. Beside it, `needs.toml` names what it
//! needs from the machine.

use std::env::{join_paths, split_paths};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::counts::Counts;
use crate::needs::{Met, Needs};
use crate::shell::{capture, cargo, is_ci, root, run, step, target_directory};

/// What became of a suite.
#[derive(Debug)]
pub(crate) struct SuiteResult {
    pub(crate) name: String,
    pub(crate) counts: Counts,
    /// Why it did not run, or how it ended badly.
    pub(crate) remark: Option<String>,
}

/// Names of all suites, sorted.
pub(crate) fn suites() -> Result<Vec<String>> {
    let directory = root().join("acceptance");
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.path().join("run").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// `cargo xtask acceptance <suite>...`
pub(crate) fn run_chosen(names: &[String]) -> Result<()> {
    let known = suites()?;
    if names.is_empty() {
        bail!("which suite? There are: {}", known.join(", "));
    }
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("there is no suite `{unknown}`. There are: {}", known.join(", "));
    }
    let results = run_suites(names)?;
    report(&results)
}

/// Builds the node once and runs these suites, one after the other.
pub(crate) fn run_suites(names: &[String]) -> Result<Vec<SuiteResult>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let binary = step("build", build_node)?;
    Ok(names.iter().map(|name| run_suite(name, &binary)).collect())
}

/// Prints a table and a closing line with the sum; an error when anything failed, or was skipped in
/// CI.
pub(crate) fn report(results: &[SuiteResult]) -> Result<()> {
    let mut total = Counts::default();
    println!();
    for SuiteResult { name, counts, remark } in results {
        println!("{name:<24} {counts}  {}", remark.as_deref().unwrap_or_default());
        total += *counts;
    }
    println!("\n{total}");
    if total.failed > 0 {
        bail!("{} failed", total.failed);
    }
    if total.skipped > 0 && is_ci() {
        bail!("{} skipped, and CI skips nothing", total.skipped);
    }
    Ok(())
}

fn build_node() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--quiet", "--profile", "acceptance", "--package", "node"]))?;
    let binary = target_directory().join("acceptance").join("settee");
    fs::canonicalize(&binary).with_context(|| format!("cannot find {}", binary.display()))
}

fn run_suite(name: &str, binary: &Path) -> SuiteResult {
    let suite = root().join("acceptance").join(name);
    let outcome = step(name, || run_in(&suite, name, binary));
    let (counts, remark) = outcome.unwrap_or_else(|error| {
        let failed = Counts { failed: 1, ..Counts::default() };
        (failed, Some(format!("{error:#}")))
    });
    SuiteResult { name: name.to_owned(), counts, remark }
}

fn run_in(suite: &Path, name: &str, binary: &Path) -> Result<(Counts, Option<String>)> {
    let programs = match Needs::read(suite)?.meet(name)? {
        Met::Ready(programs) => programs,
        Met::Missing(why) if is_ci() => bail!("{why}"),
        Met::Missing(why) => {
            println!("skipped: {why}");
            return Ok((
                Counts { skipped: 1, ..Counts::default() },
                Some(format!("skipped: {why}")),
            ));
        }
    };
    let work = target_directory().join("acceptance-work").join(name);
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = join_paths(programs.into_iter().chain(split_paths(&path)))?;
    let mut command = Command::new(suite.join("run"));
    command.current_dir(suite).env("PATH", path).env("SETTEE_BINARY", binary);
    command.env("WORK_DIR", fs::canonicalize(&work)?);
    command.env("CI", if is_ci() { "true" } else { "false" });
    let captured = capture(&mut command)?;
    Ok(judge(&captured.text, captured.succeeded))
}

/// Counts the cases and makes sure that a suite which ended badly, or did nothing, is a failure.
fn judge(output: &str, succeeded: bool) -> (Counts, Option<String>) {
    let mut counts = Counts::of_cases(output);
    let remark = match (succeeded, counts) {
        (false, Counts { failed: 0, .. }) => Some("the suite failed outside of its cases"),
        (true, Counts { passed: 0, failed: 0, skipped: 0 }) => Some("the suite has no cases"),
        _ => None,
    };
    counts.failed += u64::from(remark.is_some());
    if counts.failed > 0 {
        println!("{output}");
    } else {
        println!("{counts}");
    }
    (counts, remark.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_judged_by_its_cases() {
        let (counts, remark) = judge("CASE a ok\nCASE b SKIP no TLS\n", true);
        assert_eq!(counts, Counts { passed: 1, failed: 0, skipped: 1 });
        assert_eq!(remark, None);
        let (counts, remark) = judge("CASE a FAIL\n", false);
        assert_eq!((counts.failed, remark), (1, None));
    }

    #[test]
    fn a_suite_runs_with_its_environment_in_an_empty_directory() {
        use std::os::unix::fs::PermissionsExt;
        let suite = target_directory().join("xtask-tests").join("suite");
        fs::create_dir_all(&suite).unwrap();
        let script = "#!/bin/sh\n\
            test \"$SETTEE_BINARY\" = /node && echo CASE binary ok || echo CASE binary FAIL\n\
            test -z \"$(ls -A \"$WORK_DIR\")\" && echo CASE empty ok || echo CASE empty FAIL\n\
            touch \"$WORK_DIR/left-behind\"\n\
            test -n \"$CI\" && echo CASE ci ok\n";
        fs::write(suite.join("run"), script).unwrap();
        fs::set_permissions(suite.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        for _ in 0..2 {
            let (counts, remark) = run_in(&suite, "xtask-test", Path::new("/node")).unwrap();
            assert_eq!((counts.passed, counts.failed, remark), (3, 0, None));
        }
    }

    #[test]
    fn a_suite_that_crashes_or_does_nothing_has_failed() {
        for (output, succeeded) in [("CASE a ok\n", false), ("", true), ("", false)] {
            let (counts, remark) = judge(output, succeeded);
            assert_eq!(counts.failed, 1);
            assert!(remark.is_some());
        }
    }
}
