//! Fuzzing of everything that reads foreign bytes. The targets are in `fuzz/`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::acceptance::SuiteResult;
use crate::checked_build;
use crate::counts::Counts;
use crate::shell::{run, step};

/// The targets, as `fuzz/` knows them.
const TARGETS: &[&str] = &[
    "frame",
    "range_scan",
    "text",
    "couchstore_file",
    "journal_segment",
    "scram",
    "user_texts",
    "rest",
    "cluster_plan",
    "subdocument_path",
    "subdocument_request",
    "collection_id",
    "attributes",
];

/// Seconds a target when everything is tested.
const SECONDS_SHORT: u32 = 5;

/// `cargo xtask fuzz <target> [--seconds n] [--seed n]`
pub(crate) fn run_chosen(arguments: &[String]) -> Result<()> {
    let (target, options) = arguments
        .split_first()
        .with_context(|| format!("which target? There are: {}", TARGETS.join(", ")))?;
    if !TARGETS.contains(&target.as_str()) {
        bail!("there is no target `{target}`. There are: {}", TARGETS.join(", "));
    }
    fuzz(target, options)
}

/// Every target for a short time.
pub(crate) fn run_all() -> Vec<SuiteResult> {
    let seconds = ["--seconds".to_owned(), SECONDS_SHORT.to_string()];
    let run_one = |target: &&str| {
        let name = format!("fuzz {target}");
        let outcome = step(&name, || fuzz(target, &seconds));
        let failed = u64::from(outcome.is_err());
        SuiteResult {
            name,
            counts: Counts { passed: 1 - failed, failed, skipped: 0 },
            remark: outcome.err().map(|error| format!("{error:#}")),
        }
    };
    TARGETS.iter().map(run_one).collect()
}

fn fuzz(target: &str, options: &[String]) -> Result<()> {
    run(Command::new(checked_build::fuzzer()?).arg(target).args(options))
}
