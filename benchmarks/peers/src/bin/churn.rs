//! What the node occupies for each byte that it uses, minute by minute, while documents of all
//! sizes are overwritten and deleted at full speed; for each kind of bucket.

use anyhow::{Context, Result, ensure};
use peers::churn::{KINDS, Kind, Size, Stretch, measure};
use peers::fragmentation::Phase;
use peers::options::Options;
use peers::report::{self, Figure};
use peers::servers::{generator_core, pin_thread};
use serde_json::json;

const MINUTES: u32 = 10;
/// What is occupied for each byte that is used, at most.
const GOAL: f64 = 1.1;
const MEGABYTE: f64 = 1e6;

fn main() -> Result<()> {
    let (options, size) = from_command_line()?;
    pin_thread(&[generator_core()])?;
    println!(
        "{:<10} {:<8} {:>9} {:>8} {:>8} {:>12} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "",
        "",
        "writes/s",
        "refused",
        "missing",
        "resident MB",
        "slabs",
        "other",
        "files",
        "used MB",
        "ratio"
    );
    let mut figures = Vec::new();
    for kind in &KINDS {
        let mut rounds = Vec::new();
        for _ in 0..options.rounds {
            rounds.push(measure(kind, &size, &options.server_cores, |it| print(kind, it))?);
        }
        let phases: Vec<Vec<Phase>> = rounds.iter().map(|round| phases_of(round)).collect();
        let worst = phases.iter().flatten().map(Phase::ratio).fold(0.0, f64::max);
        let verdict = if worst < GOAL { "below" } else { "not below" };
        println!("{:<10} {worst:.3} at most, {verdict} {GOAL}\n", kind.name);
        figures.extend(figures_of(kind, &size, &phases));
    }
    report::append(options.json.as_deref(), &figures)
}

/// The options that all benchmarks have, and the size.
fn from_command_line() -> Result<(Options, Size)> {
    let (mut minutes, mut rest) = (None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--minutes" => minutes = Some(arguments.next().context("--minutes N")?.parse()?),
            _ => rest.push(name),
        }
    }
    let options = Options::parse(rest.into_iter(), 1)?;
    let quick = Size::quick();
    let size = if options.quick {
        Size { intervals: minutes.unwrap_or(quick.intervals), ..quick }
    } else {
        Size::of_minutes(minutes.unwrap_or(MINUTES))
    };
    ensure!(size.intervals > 0, "nothing to measure");
    Ok((options, size))
}

fn print(kind: &Kind, stretch: &Stretch) {
    println!(
        "{:<10} {:<8} {:>9.0} {:>8} {:>8} {:>12.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>7.3}",
        kind.name,
        stretch.phase.name,
        stretch.answered as f64 / stretch.duration.as_secs_f64(),
        stretch.failed.refused,
        stretch.failed.missing,
        stretch.phase.resident_bytes as f64 / MEGABYTE,
        stretch.resident.slabs as f64 / MEGABYTE,
        stretch.resident.other as f64 / MEGABYTE,
        stretch.resident.files as f64 / MEGABYTE,
        stretch.phase.used_bytes as f64 / MEGABYTE,
        stretch.phase.ratio(),
    );
}

fn phases_of(stretches: &[Stretch]) -> Vec<Phase> {
    stretches.iter().map(|stretch| stretch.phase.clone()).collect()
}

/// One of each stretch.
fn figures_of(kind: &Kind, size: &Size, rounds: &[Vec<Phase>]) -> Vec<Figure> {
    let of = |(index, phase): (usize, &Phase)| Figure {
        bench: "churn",
        variant: kind.name.to_owned(),
        params: json!({"after": phase.name, "quota": size.quota, "keys": size.keys}),
        metric: "resident_by_used",
        unit: "ratio",
        rounds: rounds.iter().map(|phases| phases[index].ratio()).collect(),
    };
    rounds[0].iter().enumerate().map(of).collect()
}
