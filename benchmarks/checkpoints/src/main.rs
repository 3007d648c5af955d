//! Measures and prints. Designs take turns, so that drift of the machine meets all of them.

use std::time::Duration;

use anyhow::Result;
use checkpoint_benchmarks::log::Log;
use checkpoint_benchmarks::options::Options;
use checkpoint_benchmarks::original_log::{Freeing, OriginalLog};
use checkpoint_benchmarks::queue_dirty::{
    FirstVersion, ITEM_COUNT, Outcome, Percentiles, run_second_version,
};
use checkpoint_benchmarks::report::{Figure, append, median, median_ratio};
use checkpoint_benchmarks::settee_log::SetteeLog;
use checkpoint_benchmarks::successors::SUCCESSORS;

#[global_allocator]
static ALLOCATOR: platform::allocator::Allocator = platform::allocator::Allocator;

struct Design {
    name: &'static str,
    make: fn() -> Box<dyn Log>,
    /// Whether anything is ever removed.
    removes: bool,
}

const DESIGNS: [Design; 4] = [
    Design { name: "settee", make: || Box::new(SetteeLog::new(false)), removes: true },
    Design { name: "settee-no-removal", make: || Box::new(SetteeLog::new(true)), removes: false },
    Design {
        name: "original-freed-after-lock",
        make: || Box::new(OriginalLog::new(Freeing::AfterTheLock)),
        removes: true,
    },
    Design {
        name: "original-freed-under-lock",
        make: || Box::new(OriginalLog::new(Freeing::UnderTheLock)),
        removes: true,
    },
];

fn main() -> Result<()> {
    platform::allocator::set_up();
    let options = Options::parse(std::env::args().skip(1))?;
    let mut figures = Vec::new();
    let original = FirstVersion::ORIGINAL;
    let long = FirstVersion { iterations: 5_000, ..original };
    // As long as there is something to remove.
    let other_work = Duration::from_micros(1);
    let server = FirstVersion { iterations: 1_000, other_work, ..original };
    for (label, version) in [("", original), ("/long", long), ("/long/otherWork:1us", server)] {
        let version = if options.is_quick { quick(version) } else { version };
        let name = format!("QueueDirtyWithManyClosedUnrefCheckpoints/v1{label}/{ITEM_COUNT}");
        let run = |design: &Design| version.run(&*(design.make)());
        figures.extend(measure(&name, &DESIGNS.each_ref(), &options, run));
    }
    let prefilled = if options.is_quick { 10_000 } else { 1_000_000 };
    let name = format!("QueueDirtyWithManyClosedUnrefCheckpoints/v2/{prefilled}/1000");
    let removing: Vec<&Design> = DESIGNS.iter().filter(|design| design.removes).collect();
    let run = |design: &Design| run_second_version(&*(design.make)(), prefilled);
    let few = Options { rounds: options.rounds.div_ceil(3), ..options.clone() };
    figures.extend(measure(&name, &removing, &few, run));
    figures.extend(measure_successors(&options));
    append(options.json.as_deref(), &figures)
}

fn quick(version: FirstVersion) -> FirstVersion {
    FirstVersion { iterations: version.iterations.min(50), prefilled: 10_000, ..version }
}

fn measure(
    name: &str,
    designs: &[&Design],
    options: &Options,
    run: impl Fn(&Design) -> Outcome,
) -> Vec<Figure> {
    println!("\n{name}");
    let mut outcomes: Vec<Vec<Outcome>> = designs.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.rounds {
        for (design, outcomes) in designs.iter().zip(&mut outcomes) {
            outcomes.push(run(design));
        }
    }
    let times = |outcomes: &[Outcome]| -> Vec<f64> {
        outcomes.iter().map(Outcome::nanos_per_item).collect()
    };
    let base = times(&outcomes[0]);
    let mut figures = Vec::new();
    for (design, outcomes) in designs.iter().zip(&outcomes) {
        let rounds = times(outcomes);
        let middle = |of: fn(&Outcome) -> usize| {
            median(&outcomes.iter().map(|outcome| of(outcome) as f64).collect::<Vec<_>>())
        };
        let percentile = |of: fn(&Percentiles) -> u64| {
            median(&outcomes.iter().map(|outcome| of(&outcome.items_ns) as f64).collect::<Vec<_>>())
        };
        println!(
            "  {:<28} {:>10.0} ns/item {:>12.0} items/s  ItemsEnqueued={:.0} \
             NumCheckpointRemoverRuns={:.0} AvgNumCheckpointRemoved={:.0} \
             time/settee={:.3} p50/p99/p99.9={:.0}/{:.0}/{:.0}ns",
            design.name,
            median(&rounds),
            1e9 / median(&rounds),
            middle(|outcome| outcome.items),
            middle(|outcome| outcome.remover_runs),
            middle(Outcome::removed_per_run),
            median_ratio(&rounds, &base),
            percentile(|items| items.p50),
            percentile(|items| items.p99),
            percentile(|items| items.p999),
        );
        let (metric, unit) = ("time_per_item", "ns");
        figures.push(Figure { bench: name.to_owned(), variant: design.name, metric, unit, rounds });
    }
    figures
}

fn measure_successors(options: &Options) -> Vec<Figure> {
    println!("\n{:<36} {:>12} {:>12} {:>12}", "ns a step, by elements", 1_000, 10_000, 100_000);
    let mut figures = Vec::new();
    for successor in SUCCESSORS {
        print!("{:<36}", successor.name);
        for count in [1_000, 10_000, 100_000] {
            let count = if options.is_quick { count / 10 } else { count };
            let rounds: Vec<f64> =
                (0..options.rounds).map(|_| (successor.measure)(count)).collect();
            print!(" {:>12.0}", median(&rounds));
            let bench = format!("{}/{count}", successor.name);
            let (variant, metric, unit) = ("settee", "time_per_step", "ns");
            figures.push(Figure { bench, variant, metric, unit, rounds });
        }
        println!();
    }
    figures
}
