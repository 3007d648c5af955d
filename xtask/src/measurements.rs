//! The benchmarks' own tests: a measurement of something broken is worse than none.

use crate::acceptance::SuiteResult;
use crate::races::{result_of, run_tests};
use crate::shell::{cargo, run};

const PACKAGES: [&str; 4] = ["peers", "executor", "checkpoints", "storage"];

/// Lints and tests each package of `benchmarks`, which are workspaces of their own.
pub(crate) fn check_all() -> Vec<SuiteResult> {
    PACKAGES.map(check).into()
}

fn check(package: &str) -> SuiteResult {
    let manifest = format!("benchmarks/{package}/Cargo.toml");
    result_of(&format!("benchmarks/{package}"), || {
        run(&mut cargo(&["fmt", "--manifest-path", &manifest, "--", "--check"]))?;
        let lints = ["clippy", "--quiet", "--all-targets", "--manifest-path", &manifest];
        run(cargo(&lints).args(["--", "-D", "warnings"]))?;
        run_tests(&mut cargo(&["test", "--manifest-path", &manifest]))
    })
}
