//! Everything that can be tested, in one run.

use anyhow::Result;

use crate::acceptance::{self, SuiteResult};
use crate::needs::{Met, Needs};
use crate::shell::{free_bytes, root};
use crate::{fuzz, measurements, races, verify};

struct Step {
    name: &'static str,
    run: fn() -> Result<Vec<SuiteResult>>,
}

/// In the order of their cost. Suites of `acceptance/` are found by their `run`.
const STEPS: &[Step] = &[
    Step { name: "verify", run: verify_step },
    Step { name: "races", run: races_step },
    Step { name: "benchmarks", run: || Ok(measurements::check_all()) },
    Step { name: "fuzz", run: || Ok(fuzz::run_all()) },
    Step { name: "acceptance", run: acceptance::run_all },
];

/// A whole run from nothing, all that is built included, and room to spare.
const DISK_BYTES_WANTED: u64 = 20 << 30;

fn races_step() -> Result<Vec<SuiteResult>> {
    Ok(vec![races::models(), races::with_one_worker(), races::over_uring(), races::sanitize()])
}

/// `cargo xtask test`. A step that cannot run at all ends the test.
pub(crate) fn test() -> Result<()> {
    if let Some(free) = free_bytes(&root()).filter(|free| *free < DISK_BYTES_WANTED) {
        let (free, wanted) = (free >> 30, DISK_BYTES_WANTED >> 30);
        println!("warning: {free} GiB of disk are free; a run from nothing wants {wanted}");
    }
    let mut results = Vec::new();
    for step in STEPS {
        println!("== {}", step.name);
        results.extend((step.run)()?);
    }
    acceptance::report(&results)
}

/// Tests of the workspace run real programs, too. What is missing they skip; in CI they fail. What
/// fails here does not end the run: the other steps tell more of the same change.
fn verify_step() -> Result<Vec<SuiteResult>> {
    if let Met::Missing(what) = Needs::of_program("memcached").meet("verify")? {
        println!("tests against memcached are skipped: {what}");
    }
    Ok(vec![races::result_of("verify", verify::verify)])
}
