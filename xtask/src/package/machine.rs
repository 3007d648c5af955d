//! Machines that packages are for, and what this one needs to build and run for another one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::has_program;

/// A machine by its names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Machine {
    /// As ELF headers say it (e_machine).
    elf: u16,
    /// Debian's name.
    pub(super) debian: &'static str,
    /// The kernel's.
    kernel: &'static str,
}

const MACHINES: [Machine; 2] = [
    Machine { elf: 62, debian: "amd64", kernel: "x86_64" },
    Machine { elf: 183, debian: "arm64", kernel: "aarch64" },
];

impl Machine {
    /// The machine that a binary is for.
    pub(super) fn of_binary(binary: &[u8]) -> Result<&'static Self> {
        let elf = match (binary.get(..4), binary.get(18..20)) {
            (Some(b"\x7fELF"), Some(&[low, high])) => u16::from_le_bytes([low, high]),
            _ => bail!("the binary is no ELF file"),
        };
        let known = MACHINES.iter().find(|machine| machine.elf == elf);
        known.with_context(|| format!("there is no package of machine {elf}"))
    }

    /// The machine of a target such as `aarch64-unknown-linux-gnu`.
    pub(super) fn of_target(target: &str) -> Result<&'static Self> {
        let known = MACHINES
            .iter()
            .find(|machine| target.strip_prefix(machine.kernel) == Some("-unknown-linux-gnu"));
        let targets = MACHINES.map(|machine| format!("{}-unknown-linux-gnu", machine.kernel));
        known.with_context(|| format!("there is no target {target}; there are {targets:?}"))
    }

    fn is_this(&self) -> bool {
        self.kernel == std::env::consts::ARCH
    }

    /// Where its libraries are on this machine: Debian's cross compilers bring them.
    pub(super) fn library_root(&self) -> Option<PathBuf> {
        (!self.is_this()).then(|| PathBuf::from(format!("/usr/{}-linux-gnu", self.kernel)))
    }

    /// A tool of its binutils or compilers.
    pub(super) fn tool(&self, name: &str) -> String {
        if self.is_this() { name.to_owned() } else { format!("{}-linux-gnu-{name}", self.kernel) }
    }

    /// What a build for `target`, which is of this machine, needs in its environment.
    pub(super) fn build_variables(&self, target: &str) -> Vec<(String, String)> {
        if self.is_this() {
            return Vec::new();
        }
        let (compiler, underlined) = (self.tool("gcc"), target.replace('-', "_"));
        vec![
            (format!("CARGO_TARGET_{}_LINKER", underlined.to_uppercase()), compiler.clone()),
            (format!("CC_{underlined}"), compiler),
            (format!("CXX_{underlined}"), self.tool("g++")),
            (format!("AR_{underlined}"), self.tool("ar")),
        ]
    }

    /// Runs one of its binaries, by an emulator where this machine is another one.
    pub(super) fn command(&self, binary: &Path) -> Result<Command> {
        let Some(libraries) = self.library_root() else {
            return Ok(Command::new(binary));
        };
        let emulator = format!("qemu-{}-static", self.kernel);
        if !has_program(&emulator) {
            bail!(
                "{} is for {}: install qemu-user-static to run it",
                binary.display(),
                self.debian
            );
        }
        let mut command = Command::new(emulator);
        command.arg("-L").arg(libraries).arg(binary);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_and_a_target_tell_their_machine() {
        let mut binary = b"\x7fELF".to_vec();
        binary.resize(18, 0);
        binary.extend([183, 0]);
        let machine = Machine::of_binary(&binary).unwrap();
        assert_eq!(machine.debian, "arm64");
        assert_eq!(Machine::of_target("aarch64-unknown-linux-gnu").unwrap(), machine);
        binary[18] = 0;
        assert!(Machine::of_binary(&binary).is_err());
        assert!(Machine::of_binary(b"#!/bin/sh").is_err());
        for target in ["aarch64-unknown-linux-musl", "aarch64", "sparc-unknown-linux-gnu"] {
            assert!(Machine::of_target(target).is_err(), "{target}");
        }
    }

    #[test]
    fn another_machine_is_built_for_by_its_own_tools() {
        for machine in &MACHINES {
            let target = format!("{}-unknown-linux-gnu", machine.kernel);
            let variables = machine.build_variables(&target);
            let has = |name: &str| variables.iter().any(|(variable, _)| variable.starts_with(name));
            assert_eq!(has("CARGO_TARGET_"), !machine.is_this(), "{machine:?}");
            assert_eq!(has("CC_"), machine.tool("gcc") != "gcc", "{machine:?}");
        }
    }
}
