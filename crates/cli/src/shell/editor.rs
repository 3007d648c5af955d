//! Lines from a person at a terminal.

use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};

use super::order::ShellLine;
use crate::output::note;

const PROMPT: &str = "settee> ";
/// What was typed before, in the person's home directory.
const HISTORY_NAME: &str = ".settee_history";

/// What a person has said.
pub(super) enum Input {
    Line(String),
    /// Ctrl-C: the line is given up.
    Interrupted,
    /// Ctrl-D: that is all.
    End,
}

/// Where lines are typed, with those of before.
pub(super) struct LineEditor {
    editor: Editor<Words, FileHistory>,
    history: Option<PathBuf>,
}

/// The words that can be completed: the orders.
struct Words(Vec<String>);

impl LineEditor {
    pub(super) fn open() -> anyhow::Result<Self> {
        let config = Config::builder().auto_add_history(true).build();
        let editor = Editor::with_config(config);
        let mut editor = editor.context("the terminal cannot be used; pipe lines in")?;
        editor.set_helper(Some(Words::of_orders()));
        let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(HISTORY_NAME));
        if let Some(path) = &history {
            // The first shell has none.
            drop(editor.load_history(path));
        }
        Ok(Self { editor, history })
    }

    /// The next line.
    pub(super) fn read(&mut self) -> anyhow::Result<Input> {
        match self.editor.readline(PROMPT) {
            Ok(line) => Ok(Input::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Input::Interrupted),
            Err(ReadlineError::Eof) => Ok(Input::End),
            // Something was pasted; the bytes are taken, and the terminal goes on.
            Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                note("settee: what was typed is no UTF-8; the line is dropped\n");
                Ok(Input::Interrupted)
            }
            Err(error) => Err(error).context("the terminal cannot be read"),
        }
    }

    /// Keeps what was typed.
    pub(super) fn close(mut self) {
        let Some(path) = &self.history else { return };
        if let Err(error) = self.editor.save_history(path) {
            note(&format!("settee: {} is not kept: {error}\n", path.display()));
        }
    }
}

impl Words {
    fn of_orders() -> Self {
        let command = ShellLine::command();
        let orders = command.get_subcommands();
        let names = orders.flat_map(|order| {
            let aliases = order.get_visible_aliases().map(str::to_owned);
            std::iter::once(order.get_name().to_owned()).chain(aliases).collect::<Vec<_>>()
        });
        let mut names: Vec<String> = names.chain(["help".to_owned()]).collect();
        names.sort();
        names.dedup();
        Self(names)
    }

    /// Those that begin like the first word of a line.
    fn beginning_with(&self, line: &str) -> Vec<String> {
        if line.contains(' ') {
            return Vec::new();
        }
        self.0.iter().filter(|word| word.starts_with(line)).map(|word| format!("{word} ")).collect()
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, self.beginning_with(line.get(..position).unwrap_or(line))))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_completed_and_nothing_behind_them() {
        let words = Words::of_orders();
        assert_eq!(words.beginning_with("de"), ["del ", "delete "]);
        assert_eq!(words.beginning_with("hel"), ["help "]);
        assert!(words.beginning_with("get a").is_empty());
        assert!(words.beginning_with("").len() > 12);
    }
}
