//! The tools without the server: `cargo run --release -p cli --example tools -- load --help`.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

#[derive(clap::Parser)]
enum Tool {
    Load(Box<cli::LoadArguments>),
    Stats(cli::StatsArguments),
    Timings(cli::TimingsArguments),
}

fn main() -> ExitCode {
    let result = match Tool::parse() {
        Tool::Load(arguments) => cli::load::run(&arguments),
        Tool::Stats(arguments) => cli::stats::run(&arguments),
        Tool::Timings(arguments) => cli::timings::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        // Standard error may be closed; the exit code tells all the same.
        drop(writeln!(std::io::stderr(), "error: {error:#}"));
        ExitCode::FAILURE
    })
}
