//! The tools against servers: one that fails on demand and, where it is installed, memcached;
//! and the tools of files on files of the original.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

mod doctor;
mod documents;
mod files;
mod journal;
mod load;
mod memcached;
mod tools;

use clap::Parser;
use cli::{DocumentTool, GetOrder, LoadArguments, SetOrder, StatsArguments, TimingsArguments};
use client::FakeServer;
use client::fake_server::FakeOptions;

#[derive(clap::Parser)]
enum Tool {
    Load(Box<LoadArguments>),
    Stats(StatsArguments),
    Timings(TimingsArguments),
    Get(Box<DocumentTool<GetOrder>>),
    Set(Box<DocumentTool<SetOrder>>),
}

/// Runs a tool as from the command line, against `server`.
fn run(server: &FakeServer, line: &str) -> anyhow::Result<std::process::ExitCode> {
    run_at(&server.node(), line)
}

fn run_at(node: &client::ServerAddress, line: &str) -> anyhow::Result<std::process::ExitCode> {
    let place = [format!("--host={}", node.host), format!("--port={}", node.port)];
    let words = ["settee"].into_iter().chain(line.split_whitespace()).map(str::to_owned);
    match Tool::try_parse_from(words.chain(place))? {
        Tool::Load(arguments) => cli::load::run(&arguments),
        Tool::Stats(arguments) => cli::stats::run(&arguments),
        Tool::Timings(arguments) => cli::timings::run(&arguments),
        Tool::Get(tool) => tool.run(),
        Tool::Set(tool) => tool.run(),
    }
}

fn start(options: FakeOptions) -> FakeServer {
    FakeServer::start(options).expect("loopback has a free port")
}

/// A server with sixteen vBuckets and the user bob.
fn couchbase_like() -> FakeServer {
    let login = Some(("bob".to_owned(), "secret".to_owned()));
    start(FakeOptions { login, vbucket_count: 16, ..FakeOptions::default() })
}
