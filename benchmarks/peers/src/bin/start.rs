//! From the start of an empty node until an SDK's first operation is answered, and what a node
//! costs that nobody uses.

use std::time::{Duration, Instant};

use anyhow::Result;
use peers::dialect::Dialect;
use peers::generator::Generator;
use peers::load::Target;
use peers::options::Options;
use peers::process_stat::CpuTime;
use peers::report::{self, Figure};
use peers::servers::{Program, Server, settee_binary};
use serde_json::json;

const BENCH: &str = "start";
const IDLE: Duration = Duration::from_secs(10);
const IDLE_QUICK: Duration = Duration::from_secs(1);
/// Time after the start that does not count as idle.
const SETTLE: Duration = Duration::from_secs(1);
const CORES: [usize; 2] = [0, 1];

fn main() -> Result<()> {
    let options = Options::from_command_line(10)?;
    let cores = &CORES[..std::thread::available_parallelism()?.get().min(CORES.len())];
    println!("{}", settee_binary()?.display());
    let mut starts = Vec::new();
    for _ in 0..options.rounds {
        let (millis, server) = start(cores)?;
        starts.push(millis);
        drop(server);
    }
    let (_, server) = start(cores)?;
    let idle = if options.quick { IDLE_QUICK } else { IDLE };
    let idle = idle_percent(&server, idle)?;
    let figures = [
        figure("first_operation", "ms", &starts),
        figure("idle_cpu", "percent of one CPU", &[idle]),
    ];
    for figure in &figures {
        println!("{:<16} {:>9.3} {}", figure.metric, figure.value(), figure.unit);
    }
    report::append(options.json.as_deref(), &figures)
}

/// Milliseconds until a client has logged in, selected its bucket, written and read a document.
/// The node's port is known from its ready file, which is looked for every 2 ms.
fn start(cores: &[usize]) -> Result<(f64, Server)> {
    let started = Instant::now();
    let server = Server::start(Program::Settee, cores)?;
    let (address, login) = server.data_port.clone().expect("the node has a data port");
    let dialect = Dialect::Couchbase { vbuckets: 1024 };
    let mut generator = Generator::connect(&Target::plain(address, dialect, Some(login)), 1)?;
    generator.populate(1, 32)?;
    generator.read_back(1)?;
    Ok((started.elapsed().as_secs_f64() * 1e3, server))
}

fn idle_percent(server: &Server, time: Duration) -> Result<f64> {
    std::thread::sleep(SETTLE);
    let before = CpuTime::of(server.pid(), None)?;
    let started = Instant::now();
    std::thread::sleep(time);
    let used = CpuTime::of(server.pid(), None)?.since(before).all;
    Ok(100.0 * used / started.elapsed().as_secs_f64())
}

fn figure(metric: &'static str, unit: &'static str, rounds: &[f64]) -> Figure {
    let variant = Program::Settee.name().to_owned();
    let rounds = rounds.to_vec();
    Figure { bench: BENCH, variant, params: json!({}), metric, unit, rounds }
}
