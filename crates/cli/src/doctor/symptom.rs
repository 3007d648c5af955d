//! One thing that is not as it should be, with what to do about it.

use std::io::{self, Write};

use serde_json::{Value, json};
use storage::Severity;

use crate::verify_file::severity_name;

/// What was found, and a way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symptom {
    pub(super) severity: Severity,
    /// A path, or a bucket.
    pub(super) place: String,
    pub(super) what: String,
    /// From the best to the worst, for people.
    pub(super) advices: Vec<String>,
    /// What can be typed in their place, as far as that is known.
    pub(super) commands: Vec<String>,
}

impl Symptom {
    pub(super) fn new(
        severity: Severity,
        place: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        let (advices, commands) = (Vec::new(), Vec::new());
        Self { severity, place: place.into(), what: what.into(), advices, commands }
    }

    /// With a sentence about what to do.
    #[must_use]
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advices.push(advice.into());
        self
    }

    /// With something that can be typed.
    #[must_use]
    pub(super) fn command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    pub(super) fn write_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}: {}: {}", severity_name(self.severity), self.place, self.what)?;
        for advice in &self.advices {
            writeln!(out, "  what to do: {advice}")?;
        }
        for command in &self.commands {
            writeln!(out, "    {command}")?;
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "severity": severity_name(self.severity),
            "place": self.place,
            "what": self.what,
            "what_to_do": self.advices,
            "commands": self.commands,
        })
    }
}
