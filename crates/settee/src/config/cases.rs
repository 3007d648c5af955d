//! Arguments, environment and file, and what a node makes of them: the cases and their answers are
//! in `cases.txt`, which `BLESS=1` writes anew.
//!
//! A case runs in a process of its own, because what flags do not say is read from the environment.

use std::fmt::Debug;
use std::process::Command;

use clap::Parser;

use crate::serve::ServeArguments;
use crate::settings::{ServeConfig, Settings};

const CASES: &str = "crates/settee/src/config/cases.txt";
/// What the process of a case is called among the tests.
const CHILD: &str = "config::cases::one_case_is_answered_in_a_process_of_its_own";
/// The arguments of a case, one a line, for its process.
const ARGUMENTS_VARIABLE: &str = "SETTEE_TEST_CASE";
/// Marks the lines of an answer in what a process prints.
const ANSWER: &str = "=> ";
/// What a bucket may keep open depends on the system, not on what is said.
const OPEN_FILES: usize = 1000;

#[derive(Parser)]
#[command(name = "settee serve")]
struct Arguments {
    #[command(flatten)]
    serve: ServeArguments,
}

/// One case: its lines but for the answers.
#[derive(Default)]
struct Case<'a> {
    arguments: Vec<&'a str>,
    variables: Vec<(&'a str, &'a str)>,
    file: String,
}

#[test]
fn every_case_is_resolved_as_written() {
    blessed::check_cases(CASES, |lines| {
        let mut answers = vec![Vec::new(); lines.len()];
        answers[lines.len() - 1] = run(&parsed(lines));
        answers
    });
}

/// The process of a case: it says what it makes of its arguments.
#[test]
fn one_case_is_answered_in_a_process_of_its_own() {
    let Some(arguments) = std::env::var_os(ARGUMENTS_VARIABLE) else { return };
    let arguments = arguments.into_string().unwrap();
    let arguments = std::iter::once("settee").chain(arguments.lines());
    let resolved = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => {
            let resolved = arguments.serve.merged().and_then(Settings::resolve);
            resolved.map_err(|error| format!("{error:#}"))
        }
        Err(error) => Err(error.to_string()),
    };
    let answer = match resolved {
        Ok(config) => difference(&config, &Settings::default().resolve().unwrap()),
        Err(error) => error.split("\n\n").next().unwrap_or_default().lines().map(owned).collect(),
    };
    for line in answer {
        println!("{ANSWER}{line}");
    }
}

fn parsed<'a>(lines: &[&'a str]) -> Case<'a> {
    let mut case = Case::default();
    assert!(lines[0].starts_with("case "), "{CASES}: `{}` does not begin a case", lines[0]);
    for line in &lines[1..] {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "argument" => case.arguments.push(rest),
            "variable" => case.variables.push(rest.split_once('=').expect("NAME=value")),
            "file" => case.file += &format!("{rest}\n"),
            _ => panic!("{CASES}: `{line}` is no line of a case"),
        }
    }
    case
}

fn run(case: &Case<'_>) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settee.toml");
    let mut arguments = case.arguments.join("\n");
    if !case.file.is_empty() {
        let written =
            platform::Files::replace_all(&platform::files::RealFiles, &file, case.file.as_bytes());
        written.unwrap();
        arguments += &format!("\n--config={}", file.display());
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", CHILD, "--nocapture"]).env_clear();
    child.env(ARGUMENTS_VARIABLE, arguments.trim_start()).envs(case.variables.iter().copied());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let directory = directory.path().display().to_string();
    let lines = text.lines().filter_map(|line| line.split_once(ANSWER));
    lines.map(|(_, line)| line.replace(&directory, "...")).collect()
}

/// The fields that are not what they are when nobody says anything, and those of the bucket that
/// comes of them.
fn difference(config: &ServeConfig, default: &ServeConfig) -> Vec<String> {
    let mut different = changed(config, default, "");
    // It is not among what a configuration shows.
    if config.password != default.password {
        different.push(format!("password: {:?}", config.password));
    }
    let bucket = |config: &ServeConfig| config.node_config().buckets[0].bucket_config(OPEN_FILES);
    different.extend(changed(&bucket(config), &bucket(default), "bucket's "));
    if different.is_empty() {
        different.push("defaults".to_owned());
    }
    if config.dev {
        let directory = format!("{:?}", config.data_dir);
        different.iter_mut().for_each(|field| *field = field.replace(&directory, "temporary"));
    }
    different
}

fn changed(is: &impl Debug, was: &impl Debug, whose: &str) -> Vec<String> {
    let fields = fields(is).into_iter().zip(fields(was)).filter(|(is, was)| is != was);
    fields.map(|(is, _)| format!("{whose}{is}")).collect()
}

/// One line a field: the pretty form has fields at four columns, and what is in them further right.
fn fields(value: &impl Debug) -> Vec<String> {
    let text = format!("{value:#?}");
    let mut fields: Vec<String> = Vec::new();
    for line in text.lines().skip(1) {
        match (line.strip_prefix("    "), fields.last_mut()) {
            (Some(rest), Some(field)) if rest.starts_with([' ', '}', ')', ']']) => {
                *field += rest.trim_start();
            }
            (Some(rest), _) => fields.push(rest.to_owned()),
            (None, _) => {}
        }
    }
    let neat = |field: String| field.trim_end_matches(',').replace(",)", ")").replace(",}", "}");
    fields.into_iter().map(neat).collect()
}

fn owned(line: &str) -> String {
    line.trim_end().to_owned()
}
