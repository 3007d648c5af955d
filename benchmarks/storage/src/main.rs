//! Measures and prints. Engines and modes take turns, so that drift of the machine meets all.

use anyhow::Result;
use storage_benchmarks::directories::{Directory, check_is_on_disk};
use storage_benchmarks::options::Options;
use storage_benchmarks::report::Report;
use storage_benchmarks::served_bucket::{self, Size};
use storage_benchmarks::{commit_table, compaction, replay, warmup, writers};

#[global_allocator]
static ALLOCATOR: platform::allocator::Allocator = platform::allocator::Allocator;

fn main() -> Result<()> {
    platform::allocator::set_up();
    let options = Options::parse(std::env::args().skip(1))?;
    let path = match &options.directory {
        Some(parent) => parent.join("settee-storage-benchmark"),
        None => platform::process::temporary_path("settee-storage-benchmark"),
    };
    let (parent, name) = (path.parent().unwrap_or(&path), path.file_name().unwrap_or_default());
    let directory = Directory::new(parent, &name.to_string_lossy())?;
    check_is_on_disk(directory.path())?;
    let mut report = Report::default();
    let outcome = run(&options, &directory, &mut report);
    report.append(options.json.as_deref())?;
    outcome
}

fn run(options: &Options, directory: &Directory, report: &mut Report) -> Result<()> {
    if options.has_part("commits") {
        commit_table::run(options, directory.path(), report)?;
    }
    let of_buckets = ["writers", "compaction", "warmup", "replay"];
    if !of_buckets.iter().any(|part| options.has_part(part)) {
        return Ok(());
    }
    let base = served_bucket::load(directory.path(), Size::of(options))?;
    if options.has_part("writers") {
        writers::run(options, &base, report)?;
    }
    if options.has_part("compaction") {
        compaction::run(options, &base, report)?;
    }
    if options.has_part("warmup") {
        warmup::run(options, &base, report)?;
    }
    if options.has_part("replay") {
        replay::run(options, &base, report)?;
    }
    Ok(())
}
