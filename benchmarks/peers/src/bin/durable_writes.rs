//! Durable writes on two nodes: with a journal, and with a commit of each vBucket's file. The
//! original's experiment is 2000 clients that each write one 512-byte document after the other and
//! wait until it is on the disks of both nodes.

use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use peers::cluster::Cluster;
use peers::machine::{stolen_and_total_ticks, time_of_syncs};
use peers::options::Options;
use peers::report::{self, Figure, median, ratio};
use serde_json::{Value, json};

const BENCH: &str = "durable-writes";
/// The nodes' own histogram, which is shown at the end for the first case.
const HISTOGRAM: &str = "sync_write_commit_persist_to_majority";
const DOCUMENTS: u64 = 200_000;
const DOCUMENTS_QUICK: u64 = 5_000;
/// How long nodes take to write what a case has left to be written, and more.
const REST: Duration = Duration::from_secs(15);
/// How long a cluster runs before it is measured, so that its nodes have met again.
const SETTLING: Duration = Duration::from_secs(1);
const NANOS_PER_MILLI: f64 = 1e6;

/// How documents become durable on both nodes.
struct Mode {
    name: &'static str,
    port: u16,
    arguments: &'static [&'static str],
}

const MODES: [Mode; 2] = [
    Mode { name: "journal", port: 12_000, arguments: &["--persistence", "journal"] },
    Mode { name: "files", port: 12_100, arguments: &["--persistence", "files"] },
];

/// Who writes.
struct Case {
    name: &'static str,
    clients: &'static str,
    /// Operations a second; without it each client writes as fast as it is answered.
    rate: Option<&'static str>,
}

const CASES: [Case; 3] = [
    Case { name: "2000 clients", clients: "2000", rate: None },
    Case { name: "2000 clients, 5000/s", clients: "2000", rate: Some("5000") },
    Case { name: "1 client", clients: "1", rate: None },
];

/// What the machine did by itself meanwhile, of each round.
#[derive(Default)]
struct Machine {
    /// Percent of the CPUs' time that another virtual machine had.
    stolen: Vec<f64>,
    /// Milliseconds of writes with a sync each, beside which nothing runs: p99, p99.9, longest.
    syncs: [Vec<f64>; 3],
}

const METRICS: [&str; 4] = ["mean", "p50", "p99", "p99.9"];

fn main() -> Result<()> {
    let options = Options::from_command_line(3)?;
    let documents = if options.quick { DOCUMENTS_QUICK } else { DOCUMENTS }.to_string();
    let clusters = MODES.iter().map(|mode| {
        let cluster = Cluster::start(mode.port, mode.arguments)?;
        cluster.load(&["--populate-only", "--num-items", &documents, "-m", "512", "-M", "512"])?;
        cluster.pause()?;
        Ok(cluster)
    });
    let clusters = clusters.collect::<Result<Vec<_>>>()?;
    let mut figures = Vec::new();
    let mut drawings = String::new();
    println!(
        "{:<22} {:<8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "", "ops/s", "mean", "p50", "p99", "p99.9 ms"
    );
    for case in &CASES {
        let mut rounds: [Vec<Value>; MODES.len()] = Default::default();
        let mut machine = Machine::default();
        rest(&clusters)?;
        for _ in 0..options.rounds {
            for (cluster, rounds) in clusters.iter().zip(&mut rounds) {
                let before = stolen_and_total_ticks()?;
                rounds.push(measure(cluster, case, &documents, options.seconds)?);
                machine.note_stolen(before, stolen_and_total_ticks()?);
            }
            machine.note_syncs(&time_of_syncs(Duration::from_secs_f64(options.seconds))?);
        }
        let of_case =
            MODES.iter().zip(&rounds).map(|(mode, rounds)| figures_of(mode, case, rounds));
        let of_case = of_case.collect::<Result<Vec<_>>>()?;
        for (mode, figures) in MODES.iter().zip(&of_case) {
            let values: Vec<f64> = figures.iter().map(Figure::value).collect();
            println!(
                "{:<22} {:<8} {:>9.0} {:>9.3} {:>9.3} {:>9.3} {:>9.3}",
                case.name, mode.name, values[0], values[1], values[2], values[3], values[4]
            );
        }
        let times = ratio(&of_case[1][1].rounds, &of_case[0][1].rounds);
        println!("{:<22} mean with files / mean with a journal: {times:.1}", "");
        figures.extend(of_case.into_iter().flatten());
        figures.extend(machine.figures(case));
        if drawings.is_empty() {
            // What nodes measure adds up, so only the first case can be shown by itself.
            for (mode, cluster) in MODES.iter().zip(&clusters) {
                cluster.resume()?;
                let drawing = cluster.timings(HISTOGRAM, 1)?;
                cluster.pause()?;
                drawings.push_str(&format!("\n{}, {}, node 0:\n{drawing}", case.name, mode.name));
            }
        }
    }
    println!("{drawings}");
    report::append(options.json.as_deref(), &figures)
}

impl Machine {
    fn note_stolen(&mut self, before: (u64, u64), after: (u64, u64)) {
        let (stolen, total) = (after.0 - before.0, after.1 - before.1);
        self.stolen.push(stolen as f64 * 100.0 / total.max(1) as f64);
    }

    fn note_syncs(&mut self, times: &Histogram<u64>) {
        let found = [times.value_at_quantile(0.99), times.value_at_quantile(0.999), times.max()];
        for (rounds, nanoseconds) in self.syncs.iter_mut().zip(found) {
            rounds.push(nanoseconds as f64 / NANOS_PER_MILLI);
        }
    }

    /// Prints and gives what was noted.
    fn figures(self, case: &Case) -> Vec<Figure> {
        let params = json!({ "clients": case.clients, "rate": case.rate });
        let figure = |metric, unit, rounds| {
            let (variant, params) = ("machine".to_owned(), params.clone());
            Figure { bench: BENCH, variant, params, metric, unit, rounds }
        };
        let [p99, p999, longest] = self.syncs;
        let figures = vec![
            figure("stolen", "%", self.stolen),
            figure("sync p99", "ms", p99),
            figure("sync p99.9", "ms", p999),
            figure("sync max", "ms", longest),
        ];
        let values: Vec<f64> = figures.iter().map(Figure::value).collect();
        println!(
            "{:<22} of the CPUs taken away {:.1} %; single syncs without load: p99 {:.2}, \
             p99.9 {:.2}, longest {:.1} ms",
            "", values[0], values[1], values[2], values[3]
        );
        figures
    }
}

/// Lets both clusters write what they have left.
fn rest(clusters: &[Cluster]) -> Result<()> {
    clusters.iter().try_for_each(Cluster::resume)?;
    std::thread::sleep(REST);
    clusters.iter().try_for_each(Cluster::pause)
}

/// One load of a cluster that stands still before and afterwards; gives its summary.
fn measure(cluster: &Cluster, case: &Case, documents: &str, seconds: f64) -> Result<Value> {
    cluster.resume()?;
    std::thread::sleep(SETTLING);
    let seconds = seconds.to_string();
    let mut arguments = vec![
        "--durability=persist_to_majority",
        "--batch-size=1",
        "--min-size=512",
        "--max-size=512",
        "--random-body",
        "--set-pct=100",
        "--no-population",
        "--sequential",
        "--num-items",
        documents,
        "--num-threads",
        case.clients,
        "--duration",
        &seconds,
    ];
    arguments.extend(case.rate.iter().flat_map(|rate| ["--rate-limit", rate]));
    let summary = cluster.load(&arguments)?;
    cluster.pause()?;
    Ok(summary)
}

fn figures_of(mode: &Mode, case: &Case, rounds: &[Value]) -> Result<Vec<Figure>> {
    let figure = |metric: &'static str, unit, rounds: Vec<f64>| Figure {
        bench: BENCH,
        variant: mode.name.to_owned(),
        params: json!({ "clients": case.clients, "rate": case.rate }),
        metric,
        unit,
        rounds,
    };
    let rates = rounds.iter().map(|round| number(&round["operations_per_second"]));
    let mut figures = vec![figure("operations_per_second", "1/s", rates.collect::<Result<_>>()?)];
    for metric in METRICS {
        let latencies = rounds.iter().map(|round| {
            number(&round["set"][metric]).map(|nanoseconds| nanoseconds / NANOS_PER_MILLI)
        });
        figures.push(figure(metric, "ms", latencies.collect::<Result<_>>()?));
    }
    assert!(figures.iter().all(|figure| median(&figure.rounds) >= 0.0), "times do not run back");
    Ok(figures)
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("{value} is no number"))
}
