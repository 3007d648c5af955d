//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How often each cell is measured.
    pub rounds: usize,
    /// How long a cell of the commit table lasts at most. Writers write three times as long.
    pub seconds: f64,
    /// Where figures are appended as lines of JSON.
    pub json: Option<PathBuf>,
    /// Whether cells of the commit table begin right after an engine was opened, with the files it
    /// has then; otherwise it has written for a while.
    pub is_fresh: bool,
    /// Small numbers, to see whether everything runs.
    pub is_quick: bool,
    /// Parts of the benchmark to run; empty for all.
    pub parts: Vec<String>,
    /// Engines of the commit table to run; empty for all.
    pub engines: Vec<String>,
    /// Sizes of batches in the commit table; empty for all.
    pub batch_sizes: Vec<usize>,
    /// Loads of the writers to run; empty for all.
    pub loads: Vec<String>,
    /// Where the data goes, if not into the system's directory for temporary files.
    pub directory: Option<PathBuf>,
}

/// The parts, in their order.
pub const PARTS: [&str; 5] = ["commits", "writers", "compaction", "warmup", "replay"];

/// What the writers do: as fast as they can, or so many operations a second.
pub const LOADS: [&str; 3] = ["closed", "3000", "10000"];

const KNOWN: &str = "--rounds N, --seconds N, --json FILE, --fresh, --quick, --parts NAME[,NAME], \
                     --engines NAME[,NAME], --batches N[,N], --loads NAME[,NAME], \
                     --directory DIRECTORY";

impl Options {
    /// Reads the words of the command line.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            rounds: 3,
            seconds: 3.0,
            json: None,
            is_fresh: false,
            is_quick: false,
            parts: Vec::new(),
            engines: Vec::new(),
            batch_sizes: Vec::new(),
            loads: Vec::new(),
            directory: None,
        };
        let mut has_rounds = false;
        let mut has_seconds = false;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().with_context(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "--rounds" => {
                    options.rounds = value()?.parse().context("--rounds wants a number")?;
                    has_rounds = true;
                }
                "--seconds" => {
                    options.seconds = value()?.parse().context("--seconds wants a number")?;
                    has_seconds = true;
                }
                "--json" => options.json = Some(value()?.into()),
                "--fresh" => options.is_fresh = true,
                "--quick" => options.is_quick = true,
                "--parts" => options.parts = words(&value()?),
                "--engines" => options.engines = words(&value()?),
                "--batches" => {
                    let sizes = words(&value()?).into_iter().map(|word| word.parse());
                    let sizes: Result<Vec<usize>, _> = sizes.collect();
                    options.batch_sizes = sizes.context("--batches wants numbers")?;
                }
                "--loads" => options.loads = words(&value()?),
                "--directory" => options.directory = Some(value()?.into()),
                other => bail!("unknown option {other}; known: {KNOWN}"),
            }
        }
        if let Some(part) = options.parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
            bail!("there is no part {part}; there are {}", PARTS.join(", "));
        }
        if let Some(load) = options.loads.iter().find(|load| !LOADS.contains(&load.as_str())) {
            bail!("there is no load {load}; there are {}", LOADS.join(", "));
        }
        if !(options.seconds > 0.0 && options.seconds.is_finite()) || options.rounds == 0 {
            bail!("--seconds and --rounds want numbers above zero");
        }
        if options.is_quick {
            options.rounds = if has_rounds { options.rounds } else { 1 };
            options.seconds = if has_seconds { options.seconds } else { 0.2 };
        }
        Ok(options)
    }

    /// Whether a part is to run.
    pub fn has_part(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }

    /// Whether an engine is to run.
    pub fn has_engine(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|wanted| wanted == engine)
    }

    /// Whether writers are to write like this.
    pub fn has_load(&self, load: &str) -> bool {
        self.loads.is_empty() || self.loads.iter().any(|wanted| wanted == load)
    }

    /// Whether batches of this size are to be committed.
    pub fn has_batch(&self, size: usize) -> bool {
        self.batch_sizes.is_empty() || self.batch_sizes.contains(&size)
    }

    /// How long a cell of the commit table lasts at most.
    pub fn cell_duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// How long writers write.
    pub fn load_duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds * 3.0)
    }
}

fn words(list: &str) -> Vec<String> {
    list.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options> {
        Options::parse(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn options_are_read() {
        let all = parse(&["--rounds", "2", "--seconds", "0.5", "--json", "file", "--quick"]);
        let all = all.expect("known options");
        assert_eq!((all.rounds, all.seconds, all.is_quick), (2, 0.5, true));
        assert_eq!(all.json, Some("file".into()));
        let some = parse(&["--parts", "warmup,replay", "--engines", "redb"]).expect("known parts");
        assert!(some.has_part("replay") && !some.has_part("commits"));
        assert!(some.has_engine("redb") && !some.has_engine("fjall"));
        assert!(parse(&["--fresh"]).expect("a known option").is_fresh && !all.is_fresh);
        let one = parse(&["--loads", "closed"]).expect("a known load");
        assert!(one.has_load("closed") && !one.has_load("3000"));
        let wrong = [
            &["--rounds"][..],
            &["--rounds", "x"],
            &["--rounds", "0"],
            &["--seconds", "-1"],
            &["--seconds", "NaN"],
            &["--parts", "all"],
            &["--loads", "5000"],
            &["--batches", "1,x"],
            &["--fast"],
        ];
        for wrong in wrong {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
