//! What is tested whole is built as a release, but fast, and with its assertions.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell::{cargo, run, target_directory};

/// What differs from the profile of a release.
pub(crate) const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true"),
];

/// Where it is built, apart from what is released.
pub(crate) fn directory() -> PathBuf {
    target_directory().join("acceptance")
}

/// The node that the suites start.
pub(crate) fn node() -> Result<PathBuf> {
    build("settee")
}

/// What feeds mutated bytes to readers.
pub(crate) fn fuzzer() -> Result<PathBuf> {
    build("fuzz")
}

/// Builds both, whichever is wanted: each by itself would choose other features of what they share,
/// and build it a second time.
fn build(program: &str) -> Result<PathBuf> {
    let packages = ["--package", "settee", "--package", "fuzz"];
    let mut build = cargo(&["build", "--quiet", "--release"]);
    run(build.args(packages).arg("--target-dir").arg(directory()).envs(PROFILE))?;
    let binary = directory().join("release").join(program);
    fs::canonicalize(&binary).with_context(|| format!("cannot find {}", binary.display()))
}
