//! `settee shell`: documents of a bucket, line by line, with history and completion.

mod big_keys;
mod editor;
mod order;

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use clap::error::ErrorKind;
use platform::process::Interrupts;

use crate::document_tool::{DocumentPlace, Documents};
use crate::output::{note, print, with_stdout};
use editor::{Input, LineEditor};
use order::{ShellLine, ShellOrder};

/// Reads and writes documents of a running node, line by line
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct ShellArguments {
    #[command(flatten)]
    place: DocumentPlace,
}

const HELP: &str = "\
For people who come from redis-cli: get, set, delete, touch, incr, scan, use, stats, latency,
bigkeys, hotkeys, monitor, slowlog. `help` lists them, `help get` teaches one. Words with spaces
stand in quotes. The tabulator completes, the arrows go through what was typed before, which
~/.settee_history keeps.
Where standard input is no terminal its lines are carried out, and the exit code is 1 when one of
them failed.

Examples:
  settee shell --password secret
  settee shell --bucket travel --collection shop.orders -P secret
  printf 'set a 1\\nincr a\\n' | settee shell -P secret";

/// Runs the tool.
///
/// # Errors
/// The server is not there, or the terminal.
pub fn run(arguments: &ShellArguments) -> anyhow::Result<ExitCode> {
    let mut documents = arguments.place.connect()?;
    documents.ends_lines = true;
    if io::stdin().is_terminal() {
        converse(&mut documents, &arguments.place)
    } else {
        carry_out_all(&mut documents, &arguments.place, &mut io::stdin().lock())
    }
}

/// What a line came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    End,
}

fn converse(documents: &mut Documents, place: &DocumentPlace) -> anyhow::Result<ExitCode> {
    let mut editor = LineEditor::open()?;
    let interrupts = Interrupts::watch().context("the signals cannot be watched")?;
    loop {
        match editor.read()? {
            Input::Line(line) => {
                if carry_out(documents, place, Some(&interrupts), &line)? == Outcome::End {
                    break;
                }
            }
            Input::Interrupted => {}
            Input::End => break,
        }
    }
    editor.close();
    Ok(ExitCode::SUCCESS)
}

fn carry_out_all(
    documents: &mut Documents,
    place: &DocumentPlace,
    lines: &mut dyn BufRead,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for line in lines.lines() {
        let line = line.context("standard input cannot be read")?;
        // Who interrupts a script means all of it.
        match carry_out(documents, place, None, &line)? {
            Outcome::Done => {}
            Outcome::Failed => code = ExitCode::FAILURE,
            Outcome::End => break,
        }
    }
    Ok(code)
}

/// Carries a line out. What fails is said, and the next line is asked for: also after a lost
/// connection, which is opened anew.
///
/// # Errors
/// Nothing can be written any more.
fn carry_out(
    documents: &mut Documents,
    place: &DocumentPlace,
    interrupts: Option<&Interrupts>,
    line: &str,
) -> anyhow::Result<Outcome> {
    let order = match parse(line) {
        Ok(Some(order)) => order,
        Ok(None) => return Ok(Outcome::Done),
        Err(Refusal::Help(text)) => {
            print(&text)?;
            return Ok(Outcome::Done);
        }
        Err(Refusal::Mistake(text)) => {
            note(&text);
            return Ok(Outcome::Failed);
        }
    };
    if matches!(order, ShellOrder::Exit) {
        return Ok(Outcome::End);
    }
    match with_stdout(|out: &mut dyn Write| order.carry_out(documents, interrupts, out)) {
        Ok(code) if code == ExitCode::SUCCESS => Ok(Outcome::Done),
        Ok(_) => Ok(Outcome::Failed),
        Err(error) => {
            note(&format!("{error:#}\n"));
            reconnect(documents, place);
            Ok(Outcome::Failed)
        }
    }
}

/// A connection is of no further use after most errors. One that cannot be opened is tried again
/// with the next line.
fn reconnect(documents: &mut Documents, place: &DocumentPlace) {
    if let Ok(mut fresh) = place.connect() {
        fresh.collection = documents.collection;
        fresh.ends_lines = documents.ends_lines;
        *documents = fresh;
    }
}

/// Why a line is no order.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// It asks for help.
    Help(String),
    /// Something is wrong with it.
    Mistake(String),
}

/// The order in a line; `None` in one that has nothing but spaces and a remark.
fn parse(line: &str) -> Result<Option<ShellOrder>, Refusal> {
    let words = shlex::split(line);
    let words = words.ok_or_else(|| Refusal::Mistake("a quote is not closed\n".to_owned()))?;
    if words.is_empty() {
        return Ok(None);
    }
    match ShellLine::try_parse_from(words) {
        Ok(line) => Ok(Some(line.order)),
        Err(error) => {
            let text = error.render().to_string();
            let is_help = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            Err(if is_help { Refusal::Help(text) } else { Refusal::Mistake(text) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_order_or_says_what_is_wrong_with_it() {
        for line in [
            "get a",
            "set a 'b c' --expiry 5",
            "delete a b",
            "incr n -5",
            "scan user:: --limit 3",
            "use shop.orders",
            "bigkeys --samples 10",
            "hotkeys",
            "exit",
        ] {
            assert!(matches!(parse(line), Ok(Some(_))), "{line}: {:?}", parse(line).err());
        }
        for line in ["", "  ", "# a remark"] {
            assert!(matches!(parse(line), Ok(None)), "{line:?}");
        }
        for line in ["help", "help get", "get --help"] {
            assert!(matches!(parse(line), Err(Refusal::Help(_))), "{line}");
        }
        for (line, part) in [("nonsense", "nonsense"), ("get", "KEY"), ("set 'a", "quote")] {
            let Err(Refusal::Mistake(text)) = parse(line) else { panic!("{line} is a mistake") };
            assert!(text.contains(part), "{line}: {text}");
        }
    }
}
