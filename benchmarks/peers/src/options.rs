//! The command line that all benchmarks share.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
    options: [--json FILE]           append results to FILE, one JSON document a line\n\
    \x20        [--quick]               a smoke test: short, small, and without meaning\n\
    \x20        [--rounds N]            repetitions of every measurement\n\
    \x20        [--seconds N]           duration of one measurement\n\
    \x20        [--server-cores 0[,1]]  where every server may run, all its threads included\n\
    \x20        [--threads N]           front-end threads of every server, for GET and SET alone\n";

/// How to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where results are appended.
    pub json: Option<PathBuf>,
    /// Whether this is a smoke test.
    pub quick: bool,
    /// Repetitions of every measurement.
    pub rounds: usize,
    /// Duration of one measurement, in seconds.
    pub seconds: f64,
    /// CPUs on which every server may run. The generator has the last one of the machine.
    pub server_cores: Vec<usize>,
    /// Front-end threads of every server, where a benchmark compares them.
    pub threads: usize,
}

impl Options {
    /// Reads the command line of this process.
    pub fn from_command_line(rounds: usize) -> Result<Self> {
        Self::parse(std::env::args().skip(1), rounds)
    }

    /// Reads arguments, without what the benchmark itself has taken of them.
    pub fn parse(arguments: impl Iterator<Item = String>, rounds: usize) -> Result<Self> {
        let mut options = Self {
            json: None,
            quick: false,
            rounds,
            seconds: 2.0,
            server_cores: vec![0],
            threads: 1,
        };
        let mut given = [false; 2];
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            if name == "--quick" {
                options.quick = true;
                continue;
            }
            let value = arguments.next().with_context(|| format!("{name}: {USAGE}"))?;
            match name.as_str() {
                "--json" => options.json = Some(value.into()),
                "--rounds" => (options.rounds, given[0]) = (value.parse()?, true),
                "--seconds" => (options.seconds, given[1]) = (value.parse()?, true),
                "--server-cores" => {
                    options.server_cores =
                        value.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                "--threads" => options.threads = value.parse()?,
                _ => bail!("{name} is no option\n{USAGE}"),
            }
        }
        if options.quick {
            options.rounds = if given[0] { options.rounds } else { 1 };
            options.seconds = if given[1] { options.seconds } else { 0.2 };
        }
        let has_servers = !options.server_cores.is_empty() && options.threads > 0;
        if options.rounds == 0 || options.seconds <= 0.0 || !has_servers {
            bail!("nothing to measure\n{USAGE}");
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(line.split_whitespace().map(str::to_owned), 5)
    }

    #[test]
    fn quick_is_short_unless_told_otherwise() {
        let options = parse("--quick --seconds 1 --server-cores 0,1 --threads 4").expect("valid");
        assert_eq!((options.rounds, options.seconds), (1, 1.0));
        assert_eq!((options.server_cores, options.threads), (vec![0, 1], 4));
        assert_eq!(parse("").expect("valid").rounds, 5);
    }

    #[test]
    fn nonsense_is_refused() {
        for line in
            ["--rounds", "--rounds 0", "--what 1", "--server-cores x", "--seconds 0", "--threads 0"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
