//! The gate of every commit. Writes nothing to the tree.

use anyhow::{Result, bail};

use crate::counts::{Counts, failures};
use crate::shell::{capture, cargo, run, step};
use crate::tidy;

/// Runs every check, the cheapest first, and stops at the first that fails.
pub(crate) fn verify() -> Result<Counts> {
    step("tidy", tidy::tidy)?;
    step("fmt", || run(&mut cargo(&["fmt", "--all", "--", "--check"])))?;
    step("clippy", || {
        let lints = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
        run(&mut cargo(&lints))
    })?;
    step("docs", || {
        let mut docs = cargo(&["doc", "--quiet", "--no-deps", "--workspace"]);
        run(docs.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    step("tests", tests)
}

/// All tests of the workspace. Their output is shown when one fails.
fn tests() -> Result<Counts> {
    let has_nextest = capture(&mut cargo(&["nextest", "--version"]))?.succeeded;
    let mut command = if has_nextest {
        cargo(&["nextest", "run", "--workspace", "--all-targets"])
    } else {
        cargo(&["test", "--no-fail-fast", "--workspace", "--all-targets"])
    };
    let captured = capture(&mut command)?;
    let counts = Counts::of_tests(&captured.text);
    if !captured.succeeded || counts.failed > 0 {
        println!("{}", captured.text);
        bail!("tests: {counts}{}", failures(&captured.text).unwrap_or_default());
    }
    println!("{counts}");
    Ok(counts)
}
