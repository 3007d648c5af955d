//! What finds races: the executor's models, and its tests under ThreadSanitizer.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::acceptance::SuiteResult;
use crate::counts::{Counts, failures};
use crate::shell::{capture, cargo, root, step, target_directory};

/// `cargo xtask models`: the interleavings of what the executor does without locks, and of what
/// front-end workers are told.
pub(crate) fn models() -> SuiteResult {
    const MODELS: [(&str, &str); 2] = [("executor", ""), ("server", "model")];
    result_of("models", || {
        let mut sum = Counts::default();
        for (package, filter) in MODELS {
            let tests = ["test", "--package", package, "--features", "model", "--lib", filter];
            sum += run_tests(&mut cargo(&tests))?;
        }
        Ok(sum)
    })
}

/// The data port's tests once more, with one front-end worker instead of several: nothing may
/// depend on how many there are.
pub(crate) fn with_one_worker() -> SuiteResult {
    result_of("one front-end worker", || {
        let mut tests = cargo(&["test", "--package", "server", "--test", "it"]);
        run_tests(tests.env("SETTEE_TEST_WORKERS", "1"))
    })
}

/// The data port's tests once more, over io_uring, where the kernel allows it.
pub(crate) fn over_uring() -> SuiteResult {
    result_of("network loops of io_uring", || {
        let mut tests = cargo(&["test", "--package", "server", "--test", "it"]);
        run_tests(tests.env("SETTEE_TEST_NETWORK_LOOP", "uring"))
    })
}

/// `cargo xtask sanitize`: the executor's tests, the stress test included, under ThreadSanitizer.
/// That needs a standard library that was built for it, and so a nightly toolchain with the
/// library's sources.
pub(crate) fn sanitize() -> SuiteResult {
    const NAME: &str = "thread sanitizer";
    match toolchain_with_sources() {
        Ok(toolchain) => result_of(NAME, || run_tests(&mut sanitized_tests(&toolchain)?)),
        // Not every machine can have a nightly toolchain, so this counts as nothing, in CI as well;
        // the closing table says it.
        Err(why) => {
            let why = format!("not run: {why:#}");
            println!("{NAME} {why}");
            let counts = Counts::default();
            SuiteResult { name: NAME.to_owned(), counts, remark: Some(why) }
        }
    }
}

/// For a task of its own: an error when it failed.
pub(crate) fn judge(result: &SuiteResult) -> Result<()> {
    if result.counts.failed > 0 {
        bail!("{}: {}", result.name, result.remark.as_deref().unwrap_or("failed"));
    }
    Ok(())
}

/// The result of a suite that `tests` runs.
pub(crate) fn result_of(name: &str, tests: impl FnOnce() -> Result<Counts>) -> SuiteResult {
    let outcome = step(name, tests);
    let remark = outcome.as_ref().err().map(|error| format!("{error:#}"));
    let counts = outcome.unwrap_or(Counts { failed: 1, ..Counts::default() });
    SuiteResult { name: name.to_owned(), counts, remark }
}

/// Runs tests. Their output is shown when one fails.
pub(crate) fn run_tests(command: &mut Command) -> Result<Counts> {
    let captured = capture(command)?;
    let counts = Counts::of_tests(&captured.text);
    if !captured.succeeded || counts.failed > 0 || counts.passed == 0 {
        println!("{}", captured.text);
        bail!("{counts}{}", failures(&captured.text).unwrap_or_default());
    }
    println!("{counts}");
    Ok(counts)
}

/// In a directory of their own: nothing there fits what others build.
fn sanitized_tests(toolchain: &str) -> Result<Command> {
    let target = host_of(toolchain)?;
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", toolchain, "cargo", "test", "-Zbuild-std"]);
    command.args(["--package", "executor", "--lib", "--tests", "--target", &target]);
    command.arg("--target-dir").arg(target_directory().join("sanitize"));
    command.env("RUSTFLAGS", "-Zsanitizer=thread").env_remove("CARGO_TARGET_DIR");
    Ok(command)
}

/// A nightly toolchain that has the sources of the standard library. When none has, they are added
/// to the first one.
fn toolchain_with_sources() -> Result<String> {
    let toolchains = rustup(&["toolchain", "list"])?;
    let names = toolchains.lines().filter_map(|line| line.split_whitespace().next());
    let nightly: Vec<&str> = names.filter(|name| name.starts_with("nightly")).collect();
    let Some(first) = nightly.first() else { bail!("there is no nightly toolchain") };
    for toolchain in &nightly {
        let installed = ["component", "list", "--installed", "--toolchain", toolchain];
        if has_sources(&rustup(&installed)?) {
            return Ok((*toolchain).to_owned());
        }
    }
    rustup(&["component", "add", "rust-src", "--toolchain", first])
        .context("no nightly toolchain has the component rust-src")?;
    Ok((*first).to_owned())
}

/// Reads a list of components.
fn has_sources(components: &str) -> bool {
    components.lines().any(|component| component.trim() == "rust-src")
}

fn host_of(toolchain: &str) -> Result<String> {
    let version = rustup(&["run", toolchain, "rustc", "-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say for which host it is")?.to_owned())
}

fn rustup(arguments: &[&str]) -> Result<String> {
    let captured = capture(Command::new("rustup").args(arguments)).context("there is no rustup")?;
    if !captured.succeeded {
        bail!("rustup {} failed: {}", arguments.join(" "), captured.text.trim());
    }
    Ok(captured.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_a_component_of_that_name() {
        assert!(has_sources("cargo-x86_64-unknown-linux-gnu\nrust-src\n"));
        assert!(!has_sources("cargo-x86_64-unknown-linux-gnu\nrust-std-x86_64-rust-src-not\n"));
    }

    #[test]
    fn a_failure_is_an_error() {
        let result = |failed| SuiteResult {
            name: "models".to_owned(),
            counts: Counts { passed: 1, failed, skipped: 0 },
            remark: None,
        };
        assert!(judge(&result(0)).is_ok());
        assert!(judge(&result(1)).is_err());
    }
}
