//! Real Folly, where the machine has it: found by pkg-config or CMake, never fetched or built.
//!
//! What is built is a program of our own (`folly/folly_benchmark.cpp`) that runs one measurement
//! and prints it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::benchmarks::{Benchmark, Cell};
use crate::harness::Measured;

/// Language standards to try: the headers of a newer Folly want the first, older compilers know
/// only the second.
const STANDARDS: [&str; 2] = ["-std=gnu++20", "-std=gnu++17"];
const OPTIMISATION: [&str; 2] = ["-O3", "-DNDEBUG"];
const PACKAGE: &str = "libfolly";

/// The built program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollyProgram(PathBuf);

/// Programs that find Folly and build with it.
#[derive(Clone, Debug)]
struct Tools {
    pkg_config: PathBuf,
    compiler: PathBuf,
    cmake: PathBuf,
}

/// Looks for Folly and builds the program. None, with one line that says so, where there is no
/// Folly.
pub fn find_and_build() -> Result<Option<FollyProgram>> {
    let tools =
        Tools { pkg_config: "pkg-config".into(), compiler: "c++".into(), cmake: "cmake".into() };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("folly");
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| source.with_file_name("target"), PathBuf::from);
    let found = tools.find_and_build(&source, &target.join("folly_benchmark"))?;
    if found.is_none() {
        println!(
            "folly: n/a, not installed; looked for with `pkg-config --exists {PACKAGE}` and \
             CMake's `find_package(folly CONFIG)`"
        );
    }
    Ok(found)
}

impl FollyProgram {
    /// As reports name it.
    pub const NAME: &'static str = "folly";

    /// Raw Folly has no tasks that live long.
    pub fn takes_part(benchmark: Benchmark) -> bool {
        benchmark != Benchmark::LongLivedScheduleRun
    }

    /// Runs one measurement in a process of its own.
    pub fn measure(&self, cell: &Cell, duration: Duration) -> Result<Measured> {
        let mut command = Command::new(&self.0);
        command.args([
            cell.benchmark.name(),
            &cell.threads.to_string(),
            &cell.items.to_string(),
            &duration.as_secs_f64().to_string(),
            cell.waiting.map_or("none", |waiting| waiting.name()),
        ]);
        let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
        ensure!(output.status.success(), "{command:?}: {}", text(&output));
        parse(&String::from_utf8_lossy(&output.stdout))
    }
}

/// Reads the line that the program prints.
fn parse(line: &str) -> Result<Measured> {
    let value: Value = serde_json::from_str(line.trim())?;
    let number = |name: &str| value[name].as_u64().with_context(|| format!("no {name}: {line}"));
    Ok(Measured {
        operations: number("operations")?,
        wall: Duration::from_nanos(number("wall_ns")?),
        cpu: Duration::from_nanos(number("cpu_ns")?),
        voluntary_switches: number("voluntary_switches")?,
    })
}

impl Tools {
    fn find_and_build(&self, source: &Path, build: &Path) -> Result<Option<FollyProgram>> {
        std::fs::create_dir_all(build)?;
        if let Some(flags) = self.pkg_config_flags()? {
            return self.compile(source, build, &flags).map(Some);
        }
        self.build_with_cmake(source, build)
    }

    /// What the compiler needs to know of Folly, if pkg-config knows Folly.
    fn pkg_config_flags(&self) -> Result<Option<Vec<String>>> {
        let run = |arguments: &[&str]| output(Command::new(&self.pkg_config).args(arguments));
        if !run(&["--exists", PACKAGE])?.is_some_and(|output| output.status.success()) {
            return Ok(None);
        }
        let flags = run(&["--cflags", "--libs", PACKAGE])?;
        let flags = flags.filter(|output| output.status.success());
        let flags = flags.with_context(|| format!("pkg-config has no flags for {PACKAGE}"))?;
        let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
        Ok(Some(flags.split_whitespace().map(str::to_owned).collect()))
    }

    fn compile(&self, source: &Path, build: &Path, flags: &[String]) -> Result<FollyProgram> {
        let program = build.join("folly_benchmark");
        let mut said = String::new();
        for standard in STANDARDS {
            let mut command = Command::new(&self.compiler);
            command.arg(standard).args(OPTIMISATION);
            // Libraries come after what needs them.
            command.arg(source.join("folly_benchmark.cpp")).arg("-o").arg(&program).args(flags);
            let output = output(&mut command)?.context("there is no C++ compiler `c++`")?;
            if output.status.success() {
                return Ok(FollyProgram(program));
            }
            said = format!("{command:?}:\n{}", text(&output));
        }
        anyhow::bail!("Folly is installed, but its benchmark does not compile: {said}")
    }

    /// None where CMake, or a Folly that it knows, is not there.
    fn build_with_cmake(&self, source: &Path, build: &Path) -> Result<Option<FollyProgram>> {
        let mut configure = Command::new(&self.cmake);
        configure.arg("-S").arg(source).arg("-B").arg(build).arg("-DCMAKE_BUILD_TYPE=Release");
        if !output(&mut configure)?.is_some_and(|output| output.status.success()) {
            return Ok(None);
        }
        let mut command = Command::new(&self.cmake);
        let built = output(command.arg("--build").arg(build))?.context("CMake has vanished")?;
        ensure!(
            built.status.success(),
            "Folly is installed, but its benchmark does not build: {}",
            text(&built)
        );
        Ok(Some(FollyProgram(build.join("folly_benchmark"))))
    }
}

/// Runs a program; none where it is not installed.
fn output(command: &mut Command) -> Result<Option<Output>> {
    match command.output() {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot start {command:?}")),
    }
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout))
}

#[cfg(test)]
mod tests;
