//! How fast a start loads documents, metadata and values, from files that the system has in memory.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::directories::Directory;
use crate::measurement::Usage;
use crate::options::Options;
use crate::report::{Column, Report, print_goal};
use crate::served_bucket::{Nobody, PLAIN, ServedBucket, Size};

const BENCH: &str = "warmup";
const VARIANT: &str = "settee";

const COLUMNS: [Column; 6] = [
    Column::new("documents", "documents"),
    Column::new("s", "took_s"),
    Column::new("s until all serve", "metadata_took_s"),
    Column::new("CPU s", "cpu_s"),
    Column::new("documents/s", "documents_per_s"),
    Column::new("documents/s a core", "documents_per_core_s"),
];

/// Measures and prints the table. `base` stays as it is: nothing is written.
pub fn run(options: &Options, base: &Directory, report: &mut Report) -> Result<()> {
    let size = Size::of(options);
    // The first time reads the files into memory.
    for round in 0..=options.rounds {
        let before = Usage::now()?;
        let served = ServedBucket::open(base.path(), PLAIN, size, Arc::new(Nobody))?;
        served.wait_until_warm()?;
        let used = before.until_now()?;
        let progress = served.bucket.warmup_progress();
        served.close()?;
        ensure!(progress.values_loaded == size.documents, "every document is loaded");
        if round == 0 {
            continue;
        }
        let documents = size.documents as f64;
        let mut add = |metric, value| report.add(BENCH, VARIANT, metric, value);
        add("documents", documents);
        add("took_s", used.seconds);
        add("metadata_took_s", progress.metadata_took.as_secs_f64());
        add("cpu_s", used.cpu_seconds);
        add("documents_per_s", documents / used.seconds);
        add("documents_per_core_s", documents / used.cpu_seconds);
    }
    let title = "Warmup, metadata and values, files in the system's memory";
    report.print_table(title, BENCH, &[VARIANT], &COLUMNS);
    println!();
    let per_core = report.value(BENCH, VARIANT, "documents_per_core_s");
    let goal = "at least 500 000 documents/s a core (a second of CPU)";
    print_goal(goal, per_core, |rate| rate >= 500_000.0);
    Ok(())
}
