//! What durable writers notice of files that are compacted beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use crate::directories::Directory;
use crate::driver::{Driver, Heard, Outcome, Pace};
use crate::options::Options;
use crate::quiet::wait_until_quiet;
use crate::report::{Column, Report, print_goal};
use crate::served_bucket::{JOURNAL, ServedBucket, Size};
use crate::writers::{WRITERS, before, record};

const WITHOUT: &str = "without compaction";
const BESIDE: &str = "beside compaction";
/// Writes a second of all writers together.
const RATES: [u32; 2] = [3_000, 10_000];
/// How often it is looked whether all files that were to be compacted are.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

const COLUMNS: [Column; 9] = [
    Column::scaled("average ms", "persist_average_us", 1e3),
    Column::scaled("p50 ms", "persist_p50_us", 1e3),
    Column::scaled("p99 ms", "persist_p99_us", 1e3),
    Column::scaled("p99.9 ms", "persist_p999_us", 1e3),
    Column::new("operations/s", "operations_per_s"),
    Column::new("left out", "left_out"),
    Column::new("refused", "refused"),
    Column::new("files compacted", "files_compacted"),
    Column::new("began quiet", "began_quiet"),
];

/// Measures and prints the tables. Every measurement begins with a copy of `base`.
pub fn run(options: &Options, base: &Directory, report: &mut Report) -> Result<()> {
    for rate in RATES {
        for round in 0..options.rounds {
            for variant in [WITHOUT, BESIDE] {
                measure(options, base, rate, variant, round as u64, report)
                    .with_context(|| format!("{rate} operations/s, {variant}"))?;
            }
        }
        let title = format!("{WRITERS} durable writers, journal, {rate} operations/s");
        report.print_table(&title, &bench(rate), &[WITHOUT, BESIDE], &COLUMNS);
    }
    println!();
    for rate in RATES {
        let ratio = report.ratio(&bench(rate), "persist_p999_us", BESIDE, WITHOUT);
        let goal = format!("{rate} operations/s: p99.9 beside compaction at most 2 times");
        print_goal(&goal, ratio, |ratio| ratio <= 2.0);
    }
    Ok(())
}

fn bench(rate: u32) -> String {
    format!("compaction/{rate}")
}

fn measure(
    options: &Options,
    base: &Directory,
    rate: u32,
    variant: &str,
    seed: u64,
    report: &mut Report,
) -> Result<()> {
    let directory = JOURNAL.copy(base, "compaction")?;
    let heard = Arc::new(Heard::default());
    let size = Size::of(options);
    let served = ServedBucket::open(directory.path(), JOURNAL, size, heard.clone())?;
    served.wait_until_warm()?;
    let is_quiet = options.is_quick || wait_until_quiet(directory.path())?;
    let driver = Driver::new(&served, heard, WRITERS, seed);
    let drive = || driver.run(Pace::PerSecond(rate), before(options), options.load_duration());
    let (mut outcome, compacted) =
        if variant == BESIDE { drive_beside_compaction(&served, drive)? } else { (drive()?, 0) };
    served.bucket.cancel_compactions();
    served.close()?;
    let bench = bench(rate);
    record(&bench, variant, &mut outcome, report);
    report.add(&bench, variant, "files_compacted", compacted as f64);
    report.add(&bench, variant, "began_quiet", f64::from(u8::from(is_quiet)));
    Ok(())
}

/// Compacts one file after the other, without a pause, for as long as `drive` goes on. Says how
/// many it was.
fn drive_beside_compaction(
    served: &ServedBucket,
    drive: impl FnOnce() -> Result<Outcome>,
) -> Result<(Outcome, u64)> {
    let is_over = AtomicBool::new(false);
    let feed = || -> Result<u64> {
        while !is_over.load(Ordering::Relaxed) {
            if served.bucket.compaction_statistics().ordered_count == 0 {
                let ordered = served.bucket.compact_all();
                ordered.map_err(|refused| anyhow!("a compaction was refused: {refused:?}"))?;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        let statistics = served.bucket.compaction_statistics();
        ensure!(statistics.failed == 0, "{} compactions failed", statistics.failed);
        Ok(statistics.done)
    };
    std::thread::scope(|scope| {
        let feeder = scope.spawn(feed);
        let outcome = drive();
        is_over.store(true, Ordering::Relaxed);
        let compacted = feeder.join().map_err(|_| anyhow!("the feeder has panicked"))?;
        Ok((outcome?, compacted?))
    })
}
