//! The gate's command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
    options: [--against COMMIT|FILE]  what to compare with: a commit, or a binary of the node;\n\
    \x20                                by default the commit before, or HEAD while files differ\n\
    \x20        [--limit RATIO]          1.05: above this a step is dearer\n\
    \x20        [--only WORDS]           steps whose names contain this, as \"set 100\"\n\
    \x20        [--turns N]              9: turns of either side in a step\n\
    \x20        [--json-output FILE]     write all figures to FILE\n\
    \x20        [--quick]                a smoke test: short, small, and without meaning\n\
    \x20        [--server-cores 0[,1]]   where either node may run, all its threads included\n";

const TURNS: usize = 9;
const TURNS_QUICK: usize = 1;

/// What to compare, and how.
#[derive(Clone, Debug)]
pub struct GateOptions {
    /// A commit or a path; without it the commit before.
    pub against: Option<String>,
    /// A ratio above this is dearer.
    pub limit: f64,
    /// What the names of the steps to measure contain.
    pub only: String,
    /// Of either side in a step.
    pub turns: usize,
    /// Where results are written.
    pub json: Option<PathBuf>,
    /// Whether this is a smoke test.
    pub quick: bool,
    /// CPUs on which either node may run. The generator has the last one of the machine.
    pub server_cores: Vec<usize>,
}

impl GateOptions {
    /// Reads the command line of this process.
    pub fn from_command_line() -> Result<Self> {
        Self::parse(std::env::args().skip(1))
    }

    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            against: None,
            limit: 1.05,
            only: String::new(),
            turns: 0,
            json: None,
            quick: false,
            server_cores: vec![0],
        };
        while let Some(name) = arguments.next() {
            if name == "--quick" {
                options.quick = true;
                continue;
            }
            let value = arguments.next().with_context(|| format!("{name}: {USAGE}"))?;
            match name.as_str() {
                "--against" => options.against = Some(value),
                "--limit" => options.limit = value.parse()?,
                "--only" => options.only = value,
                "--turns" => options.turns = value.parse()?,
                "--json-output" => options.json = Some(value.into()),
                "--server-cores" => {
                    options.server_cores =
                        value.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                _ => bail!("{name} is no option\n{USAGE}"),
            }
        }
        if options.turns == 0 {
            options.turns = if options.quick { TURNS_QUICK } else { TURNS };
        }
        if options.limit.is_nan() || options.limit < 1.0 {
            bail!("--limit {}: a ratio of at least 1\n{USAGE}", options.limit);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<GateOptions> {
        GateOptions::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn quick_is_one_turn_unless_told_otherwise() {
        assert_eq!(parse("--quick").expect("valid").turns, 1);
        assert_eq!(parse("--quick --turns 3").expect("valid").turns, 3);
        let options = parse("--against HEAD~2 --limit 1.1").expect("valid");
        assert_eq!((options.turns, options.limit), (9, 1.1));
        assert_eq!(options.against.as_deref(), Some("HEAD~2"));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["--against", "--limit x", "--limit 0.9", "--limit NaN", "--what 1"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
