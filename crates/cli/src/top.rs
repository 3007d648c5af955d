//! `settee top`: what a node does, on a page that is drawn anew every second.

mod page;
mod sample;
mod screen;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use client::Connection;
use platform::{Clock, terminal};

use crate::output::print;
use crate::pause::pause;
use crate::server_arguments::ServerArguments;
use page::Page;
use sample::Sample;
use screen::Screen;

/// Seconds between two pages, at least and at most.
const INTERVAL_MIN: f64 = 0.1;
const INTERVAL_MAX: f64 = 3600.0;

/// Shows what a running node does, again and again
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct TopArguments {
    /// From one page to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// One page of one interval, and nothing else: for scripts
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    server: ServerArguments,
}

const HELP: &str = "\
Rates and latencies are those of the last interval, of the bucket that is selected. q, Escape or
Ctrl-C ends it. Where standard output is no terminal there is one page.

Examples:
  settee top --password secret
  settee top --bucket travel --interval 5 -P secret
  settee top --once --interval 10 -P secret >> report.txt";

/// Runs the tool.
///
/// # Errors
/// The server refuses, or is not there.
pub fn run(arguments: &TopArguments) -> anyhow::Result<ExitCode> {
    let TopArguments { interval, once, server } = arguments;
    let is_possible = (INTERVAL_MIN..=INTERVAL_MAX).contains(interval);
    ensure!(is_possible, "--interval is {INTERVAL_MIN} to {INTERVAL_MAX} seconds");
    let target = server.target()?;
    let (node, mut connection) = target.connect()?;
    let bucket = target.options.bucket.as_deref().unwrap_or("the bucket that it gives");
    let title = format!("{bucket} at {node}");
    let interval = Duration::from_secs_f64(*interval);
    if *once || terminal::stdout_columns().is_none() {
        return show_once(&mut connection, &title, interval);
    }
    watch(&mut connection, &title, interval)
}

fn show_once(
    connection: &mut Connection,
    title: &str,
    interval: Duration,
) -> anyhow::Result<ExitCode> {
    let clock = Clock::real();
    let before = Sample::take(connection, &clock)?;
    pause(&clock, interval);
    let now = Sample::take(connection, &clock)?;
    print(&Page { title, before: &before, now: &now }.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn watch(connection: &mut Connection, title: &str, interval: Duration) -> anyhow::Result<ExitCode> {
    let clock = Clock::real();
    let mut before = Sample::take(connection, &clock)?;
    let mut screen = Screen::open()?;
    screen.draw(&format!("settee top   {title}\n\nthe first interval ...   q ends\n"))?;
    while !screen.wait_for_end(&clock, interval)? {
        let now = Sample::take(connection, &clock)?;
        screen.draw(&Page { title, before: &before, now: &now }.to_string())?;
        before = now;
    }
    Ok(ExitCode::SUCCESS)
}
