//! The benchmarks' own tests: a measurement of something broken is worse than none.

use std::process::Command;

use crate::acceptance::SuiteResult;
use crate::races::{result_of, run_tests};
use crate::shell::{cargo, run, target_directory};

const PACKAGES: [&str; 4] = ["peers", "executor", "checkpoints", "storage"];

/// Lints and tests each package of `benchmarks`, which are workspaces of their own; in one
/// directory, since most of what they build is the same.
pub(crate) fn check_all() -> Vec<SuiteResult> {
    PACKAGES.map(check).into()
}

fn check(package: &str) -> SuiteResult {
    let manifest = format!("benchmarks/{package}/Cargo.toml");
    result_of(&format!("benchmarks/{package}"), || {
        run(&mut cargo(&["fmt", "--manifest-path", &manifest, "--", "--check"]))?;
        let lints = ["clippy", "--quiet", "--all-targets", "--manifest-path", &manifest];
        run(in_common(&mut cargo(&lints)).args(["--", "-D", "warnings"]))?;
        run_tests(in_common(&mut cargo(&["test", "--manifest-path", &manifest])))
    })
}

fn in_common(command: &mut Command) -> &mut Command {
    command.env("CARGO_TARGET_DIR", target_directory().join("benchmarks"));
    command.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
}
