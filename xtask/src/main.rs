//! The project's own automation, behind one door: `cargo xtask`.

mod acceptance;
mod bench;
mod checked_build;
mod counts;
mod fuzz;
mod measurements;
mod needs;
mod package;
mod peers;
mod races;
mod shell;
mod test;
mod tidy;
mod verify;

use std::process::ExitCode;

use anyhow::{Result, bail};

struct Task {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "verify",
        arguments: "",
        about: "tidy, format, lints, tests, documentation; the gate of every commit",
        run: |_| verify::verify().map(drop),
    },
    Task {
        name: "test",
        arguments: "",
        about: "everything: verify, then models, fuzzing and all acceptance suites",
        run: |_| test::test(),
    },
    Task {
        name: "tidy",
        arguments: "",
        about: "rules of the tree: layers, manifests, sources, tables of documents",
        run: |_| tidy::tidy(),
    },
    Task {
        name: "acceptance",
        arguments: "<suite>... [--seed n] [--rounds n] [--starts n] [--vbuckets n]",
        about: "chosen suites of acceptance/ against the built node",
        run: acceptance::run_chosen,
    },
    Task {
        name: "package",
        arguments: "[--binary FILE] [--target TARGET] [--out DIRECTORY] [--version VERSION]",
        about: "a Debian package and an archive of the release build, or of a binary that is there",
        run: package::package,
    },
    Task {
        name: "fuzz",
        arguments: "<target> [--seconds n] [--seed n]",
        about: "feed mutated bytes to a reader until it panics or time is up",
        run: fuzz::run_chosen,
    },
    Task {
        name: "models",
        arguments: "",
        about: "explore interleavings of lock-free parts and of workers' mailboxes",
        run: |_| races::judge(&races::models()),
    },
    Task {
        name: "sanitize",
        arguments: "",
        about: "the executor's tests under ThreadSanitizer; needs a nightly with rust-src",
        run: |_| races::judge(&races::sanitize()),
    },
    Task {
        name: "bench",
        arguments: "<name> [--json FILE]",
        about: "measure; without a name, list what can be measured",
        run: bench::bench,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return Ok(());
    };
    match TASKS.iter().find(|task| task.name == name) {
        Some(task) => (task.run)(rest),
        None => bail!("there is no task `{name}`\n\n{}", usage()),
    }
}

fn usage() -> String {
    let mut usage = String::from("cargo xtask <task>\n\n");
    for task in TASKS {
        let call = format!("{} {}", task.name, task.arguments);
        usage.push_str(&format!("  {call:<40} {}\n", task.about));
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_names_every_task() {
        let usage = usage();
        assert!(TASKS.iter().all(|task| usage.contains(task.name)));
    }

    #[test]
    fn an_unknown_task_is_an_error() {
        assert!(run(&["no-such-task".to_owned()]).is_err());
    }
}
