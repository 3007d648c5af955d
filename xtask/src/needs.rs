//! What a suite needs from the machine, and how to get it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell::{capture, has_program, run, target_directory};

/// The content of a suite's `needs.toml`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Needs {
    /// Programs that must be in the search path.
    programs: Vec<String>,
    /// Debian packages that bring the programs.
    apt: Vec<String>,
    /// Python packages, installed into a virtual environment of the suite.
    pip: Vec<String>,
    /// Whether the suite is built with Go.
    go: bool,
    /// Why a run of everything leaves the suite out; it is run by its name.
    left_out: Option<String>,
    /// Whether the suite waits more than it computes and bears neighbours: some such run at a time.
    side_by_side: bool,
}

/// A machine that has what a suite needs, or the reason why it has not.
#[derive(Debug)]
pub(crate) enum Met {
    /// Directories to search for programs first.
    Ready(Vec<PathBuf>),
    Missing(String),
}

impl Needs {
    /// Reads `needs.toml` of a suite; a suite without one needs nothing.
    pub(crate) fn read(suite: &Path) -> Result<Self> {
        let path = suite.join("needs.toml");
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(&path)?;
        toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Why a run of everything leaves the suite out.
    pub(crate) fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// Whether another suite may run beside it.
    pub(crate) fn is_side_by_side(&self) -> bool {
        self.side_by_side
    }

    /// A program that a Debian package of the same name brings.
    pub(crate) fn of_program(name: &str) -> Self {
        let names = vec![name.to_owned()];
        Self { programs: names.clone(), apt: names, ..Self::default() }
    }

    /// Installs what is missing, where that is possible. `suite` names the environment.
    pub(crate) fn meet(&self, suite: &str) -> Result<Met> {
        // Packages are installed by one at a time.
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |program: &String| !has_program(program);
        if self.programs.iter().any(is_missing) && !self.apt.is_empty() && is_root() {
            self.install_packages();
        }
        let mut missing: Vec<&str> = self
            .programs
            .iter()
            .filter(|program| is_missing(program))
            .map(String::as_str)
            .collect();
        if self.go && !has_program("go") {
            missing.push("go");
        }
        if !self.pip.is_empty() && !has_program("python3") {
            missing.push("python3");
        }
        if !missing.is_empty() {
            return Ok(Met::Missing(format!("not installed: {}", missing.join(", "))));
        }
        if self.pip.is_empty() {
            return Ok(Met::Ready(Vec::new()));
        }
        match self.python_environment(suite) {
            Ok(programs) => Ok(Met::Ready(vec![programs])),
            Err(error) => Ok(Met::Missing(format!("no Python environment: {error:#}"))),
        }
    }

    /// Asks apt; whether it helped shows in the search path.
    fn install_packages(&self) {
        let install = ["install", "--yes", "--no-install-recommends"];
        for arguments in [vec!["update"], [&install[..], &self.apt_names()].concat()] {
            let mut command = Command::new("apt-get");
            command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
            match capture(&mut command) {
                Ok(captured) if captured.succeeded => {}
                Ok(captured) => println!("{command:?} failed:\n{}", captured.text),
                Err(error) => println!("{error:#}"),
            }
        }
    }

    fn apt_names(&self) -> Vec<&str> {
        self.apt.iter().map(String::as_str).collect()
    }

    /// A virtual environment with the Python packages; made once, and again when they change.
    fn python_environment(&self, suite: &str) -> Result<PathBuf> {
        let directory = target_directory().join("python").join(suite);
        let programs = directory.join("bin");
        let marker = directory.join("installed");
        let wanted = self.pip.join("\n");
        if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
            return Ok(programs);
        }
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory))?;
        let install = ["install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(programs.join("pip")).args(install).args(&self.pip))?;
        std::fs::write(marker, wanted)?;
        Ok(programs)
    }
}

fn is_root() -> bool {
    capture(Command::new("id").arg("-u")).is_ok_and(|captured| captured.text.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_says_what_it_needs() {
        let needs: Needs =
            toml::from_str("programs = ['cbc']\napt = ['libcouchbase3-tools']\ngo = true").unwrap();
        assert_eq!(needs.programs, ["cbc"]);
        assert_eq!(needs.apt_names(), ["libcouchbase3-tools"]);
        assert!(needs.go);
        assert!(needs.pip.is_empty());
    }

    #[test]
    fn a_misspelt_need_is_an_error() {
        assert!(toml::from_str::<Needs>("program = ['cbc']").is_err());
    }

    #[test]
    fn a_missing_program_is_named() {
        let needs = Needs { programs: vec!["no-such-program".to_owned()], ..Needs::default() };
        let Met::Missing(why) = needs.meet("suite").unwrap() else { panic!("it is missing") };
        assert_eq!(why, "not installed: no-such-program");
    }

    #[test]
    fn who_needs_nothing_is_ready() {
        assert!(matches!(Needs::default().meet("suite").unwrap(), Met::Ready(_)));
    }
}
