//! What the command line says.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// How to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How often each cell is measured.
    pub rounds: usize,
    /// Where figures are appended as lines of JSON.
    pub json: Option<PathBuf>,
    /// Small numbers, to see whether everything runs.
    pub is_quick: bool,
}

impl Options {
    /// Reads `--rounds N`, `--json FILE` and `--quick`.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut options = Self { rounds: 10, json: None, is_quick: false };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().with_context(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "--rounds" => {
                    options.rounds = value()?.parse().context("--rounds wants a number")?
                }
                "--json" => options.json = Some(value()?.into()),
                "--quick" => options.is_quick = true,
                other => bail!("unknown option {other}; known: --rounds N, --json FILE, --quick"),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options> {
        Options::parse(words.iter().map(|&word| word.to_owned()))
    }

    #[test]
    fn options_are_read() {
        let all = parse(&["--rounds", "3", "--json", "file", "--quick"]).expect("known options");
        assert_eq!(all, Options { rounds: 3, json: Some("file".into()), is_quick: true });
        for wrong in [&["--rounds"][..], &["--rounds", "x"], &["--fast"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
