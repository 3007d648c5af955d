//! Suites that drive the built node from outside: `acceptance/<suite>/run`.
//!
//! A suite is an executable. It is called with `SETTEE_BINARY`, `NODE_TARGET_DIR` (where that was
//! built), `WORK_DIR` (empty, its own) and `CI` in its environment, and prints one line a case:
//! `CASE name ok`, `CASE name FAIL why` or `CASE name SKIP why`. It exits with 0 when no case
//! failed. Beside it, `needs.toml` names what it needs from the machine.

use std::collections::VecDeque;
use std::env::{join_paths, split_paths};
use std::fs::{self, File, TryLockError};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::checked_build;
use crate::counts::{Counts, failures};
use crate::needs::{Met, Needs};
use crate::shell::{capture, is_ci, judged_step, root, step, target_directory};

/// What became of a suite.
#[derive(Debug)]
pub(crate) struct SuiteResult {
    pub(crate) name: String,
    pub(crate) counts: Counts,
    /// Why it did not run, or how it ended badly.
    pub(crate) remark: Option<String>,
}

impl SuiteResult {
    fn left_out(name: String, why: &str) -> Self {
        let remark = format!("left out: {why}; `cargo xtask acceptance {name}` runs it");
        Self { name, counts: Counts::default(), remark: Some(remark) }
    }
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

/// What suites are told, by the names of their environment. What is not said they choose.
const OPTIONS: [(&str, &str); 4] = [
    ("--seed", "SEED"),
    ("--rounds", "ROUNDS"),
    ("--starts", "STARTS"),
    ("--vbuckets", "VBUCKETS"),
];

/// How lines begin that tell what was measured; they are shown whatever became of the cases.
const FIGURE: &str = "FIGURE ";

/// Suites at a time that bear neighbours: most wait for nodes, clients and clocks half of the time.
const LANES: usize = 3;

/// Variables for suites.
type Environment = Vec<(&'static str, String)>;

/// `cargo xtask acceptance <suite>... [--seed n] [--rounds n] [--starts n] [--vbuckets n]`
pub(crate) fn run_chosen(arguments: &[String]) -> Result<()> {
    let known = suites()?;
    let (names, environment) = parse(arguments)?;
    if names.is_empty() {
        bail!("which suite? There are: {}", known.join(", "));
    }
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("there is no suite `{unknown}`. There are: {}", known.join(", "));
    }
    let results = run_with(&names, &environment)?;
    report(&results)
}

/// Names of suites, and what the options say to them.
fn parse(arguments: &[String]) -> Result<(Vec<String>, Environment)> {
    let (mut names, mut environment) = (Vec::new(), Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if !argument.starts_with('-') {
            names.push(argument.clone());
            continue;
        }
        let option = OPTIONS.iter().find(|(option, _)| *option == argument);
        let Some(&(option, variable)) = option else {
            let options = OPTIONS.map(|(option, _)| option).join(", ");
            bail!("there is no option `{argument}`; there are {options}");
        };
        let value = rest.next().with_context(|| format!("{option} needs a number"))?;
        value.parse::<u64>().with_context(|| format!("{option} {value} is no number"))?;
        environment.push((variable, value.clone()));
    }
    Ok((names, environment))
}

/// Runs all suites but those that say why they are left out, which are named with the reason.
pub(crate) fn run_all() -> Result<Vec<SuiteResult>> {
    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    for name in suites()? {
        match Needs::read(&root().join("acceptance").join(&name))?.left_out() {
            Some(why) => left_out.push(SuiteResult::left_out(name, why)),
            None => chosen.push(name),
        }
    }
    let mut results = run_with(&chosen, &Environment::new())?;
    results.extend(left_out);
    Ok(results)
}

/// Builds the node once and runs these suites: those first that bear neighbours, [`LANES`] at a
/// time, then the others one after the other. The results are in the order of the names.
fn run_with(names: &[String], environment: &Environment) -> Result<Vec<SuiteResult>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let binary = step("build", checked_build::node)?;
    let (mut side_by_side, mut alone) = (VecDeque::new(), Vec::new());
    for name in names {
        if Needs::read(&root().join("acceptance").join(name))?.is_side_by_side() {
            side_by_side.push_back(name);
        } else {
            alone.push(name);
        }
    }
    let side_by_side = Mutex::new(side_by_side);
    let next = || side_by_side.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let lane = || {
        let suites = iter::from_fn(next);
        suites.map(|name| run_suite(name, &binary, environment)).collect::<Vec<_>>()
    };
    let mut results = thread::scope(|scope| {
        let lanes: [_; LANES] = std::array::from_fn(|_| scope.spawn(lane));
        let lanes = lanes.into_iter();
        let results = lanes.map(|lane| lane.join().expect("what fails is a result, no panic"));
        results.flatten().collect::<Vec<_>>()
    });
    results.extend(alone.into_iter().map(|name| run_suite(name, &binary, environment)));
    results.sort_by_key(|result| names.iter().position(|name| *name == result.name));
    Ok(results)
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

fn run_suite(name: &str, binary: &Path, environment: &Environment) -> SuiteResult {
    let suite = root().join("acceptance").join(name);
    let passed = |(counts, _): &(Counts, _)| counts.failed == 0;
    let outcome = judged_step(name, passed, || run_in(&suite, name, binary, environment));
    let (counts, remark) = outcome.unwrap_or_else(|error| {
        let failed = Counts { failed: 1, ..Counts::default() };
        (failed, Some(format!("{error:#}")))
    });
    SuiteResult { name: name.to_owned(), counts, remark }
}

/// The directory of a suite's data. What failed is left there to be looked at.
fn work_of(suite: &str) -> PathBuf {
    target_directory().join("acceptance-work").join(suite)
}

/// Keeps a second run of the suite away from its directory. Ends with the file, or the process.
fn lock(work: &Path) -> Result<File> {
    let path = work.with_extension("lock");
    fs::create_dir_all(path.parent().context("work is in a directory")?)?;
    let file = File::create(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("the suite is being run already, in {}: let that end first", work.display())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn run_in(
    suite: &Path,
    name: &str,
    binary: &Path,
    environment: &Environment,
) -> Result<(Counts, Option<String>)> {
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
    let work = work_of(name);
    let _until_its_end = lock(&work)?;
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
    // A suite that runs the README's own commands need not build the node again.
    command.env("NODE_TARGET_DIR", std::path::absolute(checked_build::directory())?);
    command.envs(checked_build::PROFILE);
    command.envs(environment.iter().map(|(variable, value)| (variable, value)));
    let captured = capture(&mut command)?;
    keep_outcomes(name, &captured.text)?;
    let (counts, remark) = judge(&captured.text, captured.succeeded);
    if counts.failed == 0 {
        fs::remove_dir_all(&work)?;
    }
    Ok((counts, remark))
}

/// The outcome of each case, for tables of what works.
fn keep_outcomes(suite: &str, output: &str) -> Result<()> {
    let directory = target_directory().join("acceptance-outcomes");
    fs::create_dir_all(&directory)?;
    let cases = output.lines().filter(|line| line.starts_with("CASE "));
    let text = cases.flat_map(|line| [line, "\n"]).collect::<String>();
    fs::write(directory.join(format!("{suite}.txt")), text).context("cannot keep outcomes")
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
        let figures = output.lines().filter(|line| line.starts_with(FIGURE));
        figures.for_each(|figure| println!("{figure}"));
        println!("{counts}");
    }
    (counts, remark.map(str::to_owned).or_else(|| failures(output)))
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
        assert_eq!((counts.failed, remark), (1, Some("\n  CASE a FAIL".to_owned())));
    }

    #[test]
    fn a_suite_runs_with_its_environment_in_a_directory_that_is_kept_when_it_fails() {
        use std::os::unix::fs::PermissionsExt;
        let suite = target_directory().join("xtask-tests").join("suite");
        fs::create_dir_all(&suite).unwrap();
        let script = "#!/bin/sh\n\
            test \"$SETTEE_BINARY\" = /node && echo CASE binary ok || echo CASE binary FAIL\n\
            test -z \"$(ls -A \"$WORK_DIR\")\" && echo CASE empty ok || echo CASE empty FAIL\n\
            touch \"$WORK_DIR/left-behind\"\n\
            test -n \"$CI\" && echo CASE ci ok\n\
            test \"$SEED\" = 17 && echo CASE seed ok\n";
        fs::write(suite.join("run"), script).unwrap();
        fs::set_permissions(suite.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        for _ in 0..2 {
            let environment = vec![("SEED", "17".to_owned())];
            let node = Path::new("/node");
            let (counts, remark) = run_in(&suite, "xtask-test", node, &environment).unwrap();
            assert_eq!((counts.passed, counts.failed, remark), (4, 0, None));
            assert!(!work_of("xtask-test").exists());
        }
        let environment = vec![("SEED", "18".to_owned())];
        run_in(&suite, "xtask-test", Path::new("/other"), &environment).unwrap();
        assert!(work_of("xtask-test").join("left-behind").exists());
    }

    #[test]
    fn a_suite_that_is_being_run_is_not_run_a_second_time() {
        let work = work_of("xtask-test-of-locks");
        let first = lock(&work).unwrap();
        let refused = lock(&work).unwrap_err().to_string();
        assert!(refused.contains("being run already"), "{refused}");
        // Not by its end: a process that another test has just begun holds the file until it runs
        // its program.
        first.unlock().unwrap();
        lock(&work).unwrap();
    }

    #[test]
    fn a_suite_that_is_left_out_says_why_and_how_it_is_run() {
        let result = SuiteResult::left_out("slow".to_owned(), "it is slow");
        assert_eq!(result.counts, Counts::default());
        let remark = result.remark.unwrap();
        assert_eq!(remark, "left out: it is slow; `cargo xtask acceptance slow` runs it");
    }

    #[test]
    fn options_are_told_to_suites_and_wrong_ones_are_refused() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (names, environment) = parse(&words("chaos --seed 17 --rounds 3 crash")).unwrap();
        assert_eq!(names, ["chaos", "crash"]);
        assert_eq!(environment, [("SEED", "17".to_owned()), ("ROUNDS", "3".to_owned())]);
        for wrong in ["chaos --sed 1", "chaos --seed", "chaos --rounds many"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
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
