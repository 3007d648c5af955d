//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::benchmarks::timeout_add_cancel::SECONDS_MAX;

const USAGE: &str = "\
The executor pool and its peers:
OneShotScheduleRun, LongLivedScheduleRun, TimeoutAddCancel, tail, idle.

options: [--json FILE]     append results to FILE, one JSON document a line
         [--quick]         a smoke test: short, small, and without meaning
         [--rounds N]      repetitions of every measurement, pools taking turns; 5
         [--seconds S]     duration of one measurement; 0.25
         [--filter TEXT]   only what contains TEXT, or one of several with commas between, such as
                           `OneShot`, `<settee>`, `tail<tokio>` or `/threads:16`
";

/// How to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where results are appended.
    pub json: Option<PathBuf>,
    /// Whether this is a smoke test.
    pub quick: bool,
    /// Repetitions of every measurement.
    pub rounds: usize,
    /// Duration of one measurement.
    pub duration: Duration,
    /// Texts of which the name of a measurement contains one; all are measured if there are none.
    filter: Vec<String>,
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// To measure.
    Measure(Options),
    /// To say how to use the program.
    Help(&'static str),
}

impl Command {
    /// Reads the arguments.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut json = None;
        let mut quick = false;
        let mut rounds = None;
        let mut seconds = None;
        let mut filter = Vec::new();
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            let mut value =
                || arguments.next().with_context(|| format!("{name} needs a value\n{USAGE}"));
            match name.as_str() {
                "--help" | "-h" => return Ok(Self::Help(USAGE)),
                "--quick" => quick = true,
                "--json" => json = Some(value()?.into()),
                "--rounds" => rounds = Some(value()?.parse::<usize>()?),
                "--seconds" => seconds = Some(value()?.parse::<f64>()?),
                "--filter" => filter.extend(value()?.split(',').map(str::to_owned)),
                _ => bail!("{name} is no option\n{USAGE}"),
            }
        }
        let rounds = rounds.unwrap_or(if quick { 1 } else { 5 });
        let seconds = seconds.unwrap_or(if quick { 0.005 } else { 0.25 });
        if rounds == 0 || seconds.is_nan() || seconds <= 0.0 {
            bail!("nothing to measure\n{USAGE}");
        }
        if seconds > SECONDS_MAX {
            bail!("at most {SECONDS_MAX} seconds: after more, timers fire");
        }
        let duration = Duration::from_secs_f64(seconds);
        Ok(Self::Measure(Options { json, quick, rounds, duration, filter }))
    }
}

impl Options {
    /// Whether the filter lets a measurement of this name pass.
    pub fn wants(&self, name: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|text| name.contains(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command> {
        Command::parse(line.split_whitespace().map(str::to_owned))
    }

    fn options(line: &str) -> Options {
        match parse(line).expect("valid") {
            Command::Measure(options) => options,
            Command::Help(_) => panic!("help was not asked for"),
        }
    }

    #[test]
    fn quick_is_short_unless_told_otherwise() {
        let quick = options("--quick --rounds 3");
        assert_eq!((quick.rounds, quick.duration), (3, Duration::from_millis(5)));
        let normal = options("--seconds 0.5 --json x");
        assert_eq!((normal.rounds, normal.duration), (5, Duration::from_millis(500)));
        assert_eq!(normal.json, Some("x".into()));
    }

    #[test]
    fn a_filter_names_several_texts() {
        let filtered = options("--filter OneShot,<tokio>");
        for (name, wanted) in [
            ("OneShotScheduleRun<cb3>/threads:1", true),
            ("TimeoutAddCancel<tokio>/threads:1", true),
            ("TimeoutAddCancel<cb3>/threads:1", false),
        ] {
            assert_eq!(filtered.wants(name), wanted, "{name}");
        }
        assert!(options("").wants("anything"));
    }

    #[test]
    fn nonsense_is_refused_and_help_is_given() {
        for line in ["--rounds", "--rounds 0", "--what 1", "--seconds 0", "--seconds 11"] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(parse("--help").expect("valid"), Command::Help(USAGE));
    }
}
