//! 2000 concurrent durable writers over 1024 vBuckets, in a bucket with the journal and without.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::directories::Directory;
use crate::documents::DOCUMENT_SIZE;
use crate::driver::{Driver, Heard, Outcome, Pace};
use crate::measurement::Usage;
use crate::options::{LOADS, Options};
use crate::quiet::wait_until_quiet;
use crate::report::{Column, Report, print_goal};
use crate::served_bucket::{JOURNAL, Mode, PLAIN, REOPENED, ServedBucket, Size};

/// Writers that each wait for their own write.
pub const WRITERS: usize = 2_000;

const MODES: [Mode; 3] = [JOURNAL, PLAIN, REOPENED];

const COLUMNS: [Column; 13] = [
    Column::scaled("average ms", "persist_average_us", 1e3),
    Column::scaled("p50 ms", "persist_p50_us", 1e3),
    Column::scaled("p99 ms", "persist_p99_us", 1e3),
    Column::scaled("p99.9 ms", "persist_p999_us", 1e3),
    Column::new("operations/s", "operations_per_s"),
    Column::new("left out", "left_out"),
    Column::new("refused", "refused"),
    Column::new("drain s", "drain_s"),
    Column::new("written by user byte, with the drain", "written_ratio"),
    Column::new("blocks by user byte, with the drain", "blocks_ratio"),
    Column::new("CPU us an operation, with the drain", "cpu_per_operation_us"),
    Column::scaled("MB after", "after_bytes", 1e6),
    Column::new("began quiet", "began_quiet"),
];

/// A load and its name.
struct Load {
    /// As an option.
    option: &'static str,
    name: &'static str,
    pace: Pace,
}

const KNOWN: [Load; 3] = [
    Load { option: LOADS[0], name: "closed loop", pace: Pace::Closed },
    Load { option: LOADS[1], name: "3 000 operations/s", pace: Pace::PerSecond(3_000) },
    Load { option: LOADS[2], name: "10 000 operations/s", pace: Pace::PerSecond(10_000) },
];

/// Measures and prints the tables. Every measurement begins with a copy of `base`.
pub fn run(options: &Options, base: &Directory, report: &mut Report) -> Result<()> {
    for load in wanted(options) {
        for round in 0..options.rounds {
            for mode in MODES {
                measure(options, base, mode, load, round as u64, report)
                    .with_context(|| format!("{}, {}", load.name, mode.name))?;
            }
        }
        let title = format!("{WRITERS} durable writers, {}", load.name);
        report.print_table(&title, &bench(load), &MODES.map(|mode| mode.name), &COLUMNS);
    }
    print_goals(options, report);
    Ok(())
}

fn wanted(options: &Options) -> impl Iterator<Item = &'static Load> {
    KNOWN.iter().filter(|load| options.has_load(load.option))
}

fn bench(load: &Load) -> String {
    format!("writers/{}", load.name)
}

fn measure(
    options: &Options,
    base: &Directory,
    mode: Mode,
    load: &Load,
    seed: u64,
    report: &mut Report,
) -> Result<()> {
    let directory = mode.copy(base, "writers")?;
    let heard = Arc::new(Heard::default());
    let size = Size::of(options);
    let served = ServedBucket::open(directory.path(), mode, size, heard.clone())?;
    served.wait_until_warm()?;
    let is_quiet = options.is_quick || wait_until_quiet(directory.path())?;
    let before = before(options);
    let files = served.files.clone();
    let blocks_before = files.block_bytes();
    let started = Usage::now()?;
    let driver = Driver::new(&served, heard, WRITERS, seed);
    let mut outcome = driver.run(load.pace, before, options.load_duration())?;
    let items = served.bucket.statistics().items_persisted;
    let drain = Usage::now()?;
    served.close()?;
    let drain_seconds = drain.until_now()?.seconds;
    let used = started.until_now()?;
    let bench = bench(load);
    record(&bench, mode.name, &mut outcome, report);
    let mut add = |metric, value| report.add(&bench, mode.name, metric, value);
    add("began_quiet", f64::from(u8::from(is_quiet)));
    add("drain_s", drain_seconds);
    let user_bytes = (items * DOCUMENT_SIZE as u64) as f64;
    add("written_ratio", used.written_bytes as f64 / user_bytes);
    let block_bytes = files.block_bytes() - blocks_before;
    add("blocks_ratio", block_bytes as f64 / user_bytes);
    add("cpu_per_operation_us", used.cpu_seconds * 1e6 / items as f64);
    add("after_bytes", directory.bytes()? as f64);
    Ok(())
}

/// How long writers write before anything counts.
pub fn before(options: &Options) -> Duration {
    options.load_duration() / 10
}

/// Adds what writers came to.
pub fn record(bench: &str, variant: &str, outcome: &mut Outcome, report: &mut Report) {
    let mut add = |metric, value| report.add(bench, variant, metric, value);
    let latencies = &mut outcome.latencies;
    add("persist_average_us", latencies.average_us());
    add("persist_p50_us", latencies.quantile_us(0.5));
    add("persist_p99_us", latencies.quantile_us(0.99));
    add("persist_p999_us", latencies.quantile_us(0.999));
    add("operations_per_s", latencies.count() as f64 / outcome.seconds);
    add("left_out", outcome.left_out as f64);
    add("refused", outcome.refused as f64);
}

fn print_goals(options: &Options, report: &Report) {
    println!();
    for load in wanted(options) {
        let bench = bench(load);
        let ratio =
            |metric, one: Mode, other: Mode| report.ratio(&bench, metric, one.name, other.name);
        for plain in [PLAIN, REOPENED] {
            let goal = format!("{}: average at most 1/20 of {}", load.name, plain.name);
            let times = ratio("persist_average_us", plain, JOURNAL);
            print_goal(&format!("{goal}, times"), times, |times| times >= 20.0);
        }
        for (what, metric) in
            [("bytes written", "written_ratio"), ("bytes of blocks", "blocks_ratio")]
        {
            let goal = format!("{}: {what} at most half of plain mode's", load.name);
            print_goal(&goal, ratio(metric, JOURNAL, PLAIN), |ratio| ratio <= 0.5);
        }
    }
}
