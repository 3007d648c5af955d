//! One writer: batches of random documents, each made durable with a sync.

use std::path::Path;

use anyhow::{Context, Result};
use platform::Clock;

use crate::directories::Directory;
use crate::documents::{DOCUMENT_SIZE, Documents};
use crate::engines::{
    ALONE, DOUBLED, Engine, FLOOR, JOURNAL, JOURNAL_1024, Kind, PLAIN, REOPENED, kinds,
};
use crate::measurement::{Latencies, Usage};
use crate::options::Options;
use crate::report::{Column, Report, print_goal};

/// Documents that are there before.
const PRELOADED: u64 = 200_000;
/// Documents of a batch while they are loaded.
const LOAD_BATCH: usize = 10_000;
/// Documents of a batch while an engine is warmed up: few enough that the journal fills segments to
/// their ends, which it uses again then.
const WARMING_BATCH: usize = 2_000;
/// Documents that a cell writes at most.
const WRITTEN_MAX: usize = 200_000;

const COLUMNS: [Column; 12] = [
    Column::new("commit average us", "commit_average_us"),
    Column::new("of it making items us", "items_average_us"),
    Column::new("p50 us", "commit_p50_us"),
    Column::new("p99 us", "commit_p99_us"),
    Column::new("documents/s", "documents_per_s"),
    Column::new("documents/s with the drain", "documents_drained_per_s"),
    Column::new("drain s", "drain_s"),
    Column::new("written by user byte", "written_ratio"),
    Column::new("blocks by user byte", "blocks_ratio"),
    Column::new("CPU us a document", "cpu_per_document_us"),
    Column::scaled("MB before", "before_bytes", 1e6),
    Column::scaled("MB after", "after_bytes", 1e6),
];

/// What a run measures.
struct Plan {
    preloaded: u64,
    /// Documents that are written before a cell is measured.
    warmed: usize,
    batch_sizes: Vec<usize>,
}

impl Plan {
    fn of(mut self, options: &Options) -> Self {
        if options.is_fresh {
            self.warmed = 0;
        }
        self.batch_sizes.retain(|size| options.has_batch(*size));
        self
    }
}

/// Measures and prints the table.
pub fn run(options: &Options, parent: &Path, report: &mut Report) -> Result<()> {
    let plan = if options.is_quick {
        Plan { preloaded: 2_000, warmed: 2_000, batch_sizes: vec![1, 1_000] }
    } else {
        Plan {
            preloaded: PRELOADED,
            warmed: WRITTEN_MAX,
            batch_sizes: vec![1, 10, 100, 1_000, 10_000],
        }
    };
    let plan = plan.of(options);
    let kinds: Vec<Kind> =
        kinds().into_iter().filter(|kind| options.has_engine(kind.name)).collect();
    let mut bases = Vec::new();
    for kind in &kinds {
        bases.push(load(kind, &plan, parent).with_context(|| format!("loading {}", kind.name))?);
    }
    for &size in &plan.batch_sizes {
        for round in 0..options.rounds {
            for (kind, base) in kinds.iter().zip(&bases) {
                let cell = Cell { kind, size, seed: round as u64, plan: &plan };
                cell.measure(options, base, report)
                    .with_context(|| format!("{}, batches of {size}", kind.name))?;
            }
        }
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        let title = format!("One writer, batches of {size}");
        report.print_table(&title, &bench(size), &names, &COLUMNS);
    }
    print_goals(&plan, report);
    Ok(())
}

fn bench(size: usize) -> String {
    format!("commits/{size}")
}

/// Makes the database that all cells of an engine begin with.
fn load(kind: &Kind, plan: &Plan, parent: &Path) -> Result<Directory> {
    let name: String = kind.name.chars().filter(char::is_ascii_alphanumeric).collect();
    let directory = Directory::new(parent, &format!("loaded-{name}"))?;
    let mut documents = Documents::new(plan.preloaded, u64::MAX);
    let mut engine = (kind.open)(directory.path())?;
    if kind.has_documents {
        let numbers: Vec<u64> = (0..plan.preloaded).collect();
        for numbers in numbers.chunks(LOAD_BATCH) {
            let batch: Vec<_> = numbers.iter().map(|number| documents.document(*number)).collect();
            engine.commit(&batch)?;
        }
    }
    engine.drain()?;
    engine.close()?;
    Ok(directory)
}

struct Cell<'a> {
    kind: &'a Kind,
    size: usize,
    seed: u64,
    plan: &'a Plan,
}

impl Cell<'_> {
    fn measure(&self, options: &Options, base: &Directory, report: &mut Report) -> Result<()> {
        let directory = base.copy("cell", &[])?;
        let before_bytes = directory.bytes()?;
        let mut engine = (self.kind.open)(directory.path())?;
        let mut documents = Documents::new(self.plan.preloaded, self.seed);
        let clock = Clock::real();
        let mut latencies = Latencies::default();
        self.warm_up(&mut *engine)?;
        let mut busy_seconds = 0.0;
        let mut items_seconds = 0.0;
        let mut written = 0;
        let blocks_before = engine.block_bytes();
        let started = Usage::now()?;
        while written < WRITTEN_MAX && busy_seconds < options.cell_duration().as_secs_f64() {
            let batch = documents.draw(self.size);
            let before = clock.now();
            engine.commit(&batch)?;
            let took = clock.now().since(before);
            latencies.record(took);
            items_seconds += engine.made_items_in().as_secs_f64();
            busy_seconds += took.as_secs_f64();
            written += self.size;
            engine.between()?;
        }
        let drain = Usage::now()?;
        engine.drain()?;
        let drain_seconds = drain.until_now()?.seconds;
        let used = started.until_now()?;
        let block_bytes = engine.block_bytes().zip(blocks_before);
        engine.close()?;
        let bench = bench(self.size);
        let mut add = |metric, value| report.add(&bench, self.kind.name, metric, value);
        add("commit_average_us", latencies.average_us());
        add("items_average_us", items_seconds * 1e6 / latencies.count() as f64);
        add("made_documents_per_s", written as f64 / (busy_seconds - items_seconds));
        add("commit_p50_us", latencies.quantile_us(0.5));
        add("commit_p99_us", latencies.quantile_us(0.99));
        add("documents_per_s", written as f64 / busy_seconds);
        add("documents_drained_per_s", written as f64 / (busy_seconds + drain_seconds));
        add("drain_s", drain_seconds);
        add("written_ratio", used.written_bytes as f64 / (written * DOCUMENT_SIZE) as f64);
        if let Some((after, before)) = block_bytes {
            add("blocks_ratio", (after - before) as f64 / (written * DOCUMENT_SIZE) as f64);
        }
        add("cpu_per_document_us", used.cpu_seconds * 1e6 / written as f64);
        add("before_bytes", before_bytes as f64);
        add("after_bytes", directory.bytes()? as f64);
        Ok(())
    }
}

impl Cell<'_> {
    /// Writes before anything is measured. The first commit after opening reads what later ones
    /// find in memory; as many as a cell may write have an engine make the files that it goes on
    /// using, as the floor has its file.
    fn warm_up(&self, engine: &mut dyn Engine) -> Result<()> {
        let mut documents = Documents::new(self.plan.preloaded, !self.seed);
        engine.commit(&documents.draw(1))?;
        engine.between()?;
        for _ in 0..self.plan.warmed / WARMING_BATCH {
            engine.commit(&documents.draw(WARMING_BATCH))?;
            engine.between()?;
        }
        if self.plan.warmed > 0 {
            engine.drain()?;
        }
        Ok(())
    }
}

fn print_goals(plan: &Plan, report: &Report) {
    println!();
    for &size in &plan.batch_sizes {
        let bench = bench(size);
        let faster = |one, other| report.ratio(&bench, "documents_per_s", one, other);
        for peer in DOUBLED {
            let goal = format!("batches of {size}: documents/s at least 2 times {peer}'s");
            print_goal(&goal, faster(JOURNAL, peer), |ratio| ratio >= 2.0);
            if let Some(ratio) = faster(FLOOR, peer) {
                println!("batches of {size}: {FLOOR} by {peer}: documents/s {ratio:.2}");
            }
        }
        if size >= 100 {
            for ours in [JOURNAL, ALONE] {
                let goal =
                    format!("batches of {size}: {ours}: documents/s at least half of {FLOOR}");
                print_goal(&goal, faster(ours, FLOOR), |ratio| ratio >= 0.5);
                let made = report.ratio(&bench, "made_documents_per_s", ours, FLOOR);
                print_goal(&format!("{goal}, items made before"), made, |ratio| ratio >= 0.5);
            }
        }
        for (journal, plain) in [(JOURNAL, PLAIN), (JOURNAL_1024, PLAIN), (PLAIN, REOPENED)] {
            let ratio = |metric| report.ratio(&bench, metric, journal, plain);
            let drained = ratio("documents_drained_per_s");
            let (written, blocks) = (ratio("written_ratio"), ratio("blocks_ratio"));
            if let (Some(drained), Some(written), Some(blocks)) = (drained, written, blocks) {
                println!(
                    "batches of {size}: {journal} by {plain}: documents/s with the drain \
                     {drained:.2}, bytes written {written:.2}, of blocks {blocks:.2}"
                );
            }
        }
    }
}
