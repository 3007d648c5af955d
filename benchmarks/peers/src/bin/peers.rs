//! GET and SET over loopback: the node, memcached and Redis, with as many front-end threads each.
//!
//! All servers run during the whole benchmark; only one at a time has work. Peers take turns within
//! every round, in an order that turns around with every round.

use anyhow::{Result, ensure};
use peers::dialect::{Dialect, Operation};
use peers::generator::{Generator, Measured};
use peers::load::{Cell, Target};
use peers::options::Options;
use peers::perf_count::{PerfCount, PerfEvent};
use peers::process_stat::CpuTime;
use peers::report::{self, Figure, ratio};
use peers::servers::{Program, Server, generator_core, pin_thread};
use serde_json::{Value, json};

const BENCH: &str = "peers";
const CONNECTIONS: usize = 50;
const KEYS: usize = 100_000;
const KEYS_QUICK: usize = 2_000;
const VBUCKETS: u16 = 1024;
const VALUE_SIZES: [usize; 2] = [100, 4096];
const PIPELINES: [usize; 2] = [1, 16];
const OPERATIONS: [Operation; 2] = [Operation::Get, Operation::Set];
/// The share of a measurement that is spent first, unmeasured, on warming caches and branches.
const WARM_UP: f64 = 0.1;
const BASE: &str = "memcached";

/// A server and one way to talk to it.
struct Variant<'a> {
    name: &'static str,
    server: &'a Server,
    generator: Generator,
}

/// What one measurement of one variant gives.
struct Sample {
    metric: &'static str,
    unit: &'static str,
    value: f64,
}

struct Bench<'a> {
    options: Options,
    keys: usize,
    variants: Vec<Variant<'a>>,
    figures: Vec<Figure>,
}

fn main() -> Result<()> {
    let options = Options::from_command_line(5)?;
    let own_core = generator_core();
    pin_thread(&[own_core])?;
    println!(
        "{CONNECTIONS} connections from one thread on CPU {own_core}; each server, all threads \
         included, on CPUs {:?}, with {} for connections",
        options.server_cores, options.threads
    );
    let start = |program: Program| -> Result<Server> {
        println!("{:<10} {}", program.name(), program.version()?);
        Server::start_with_threads(program, &options.server_cores, options.threads)
    };
    let memcached = start(Program::Memcached)?;
    let redis = start(Program::Redis)?;
    let settee = start(Program::Settee)?;
    let variants = variants(&memcached, &redis, &settee)?;
    let keys = if options.quick { KEYS_QUICK } else { KEYS };
    let mut bench = Bench { options, keys, variants, figures: Vec::new() };
    for value_bytes in VALUE_SIZES {
        bench.measure_value_size(value_bytes)?;
    }
    bench.print();
    report::append(bench.options.json.as_deref(), &bench.figures)
}

fn variants<'a>(
    memcached: &'a Server,
    redis: &'a Server,
    settee: &'a Server,
) -> Result<Vec<Variant<'a>>> {
    let (data_address, login) = settee.data_port.clone().expect("the node has a data port");
    let plain = |server: &Server, dialect| Target::plain(server.address, dialect, None);
    let couchbase =
        Target::plain(data_address, Dialect::Couchbase { vbuckets: VBUCKETS }, Some(login));
    let all = [
        (BASE, memcached, plain(memcached, Dialect::Memcached)),
        ("redis", redis, plain(redis, Dialect::Redis)),
        ("settee", settee, plain(settee, Dialect::Memcached)),
        ("settee-couchbase", settee, couchbase),
    ];
    let variant = |(name, server, target): (_, _, Target)| -> Result<Variant<'a>> {
        Ok(Variant { name, server, generator: Generator::connect(&target, CONNECTIONS)? })
    };
    all.into_iter().map(variant).collect()
}

impl Bench<'_> {
    fn measure_value_size(&mut self, value_bytes: usize) -> Result<()> {
        for variant in &mut self.variants {
            variant.generator.populate(self.keys, value_bytes)?;
            variant.server.wait_until_flushed()?;
        }
        let cells: Vec<Cell> = OPERATIONS
            .iter()
            .flat_map(|&operation| PIPELINES.map(|pipeline| (operation, pipeline)))
            .map(|(operation, pipeline)| Cell { operation, pipeline, value_bytes })
            .collect();
        for round in 0..self.options.rounds {
            println!("values of {value_bytes} bytes, round {} ...", round + 1);
            for cell in &cells {
                self.measure_round(cell, round)?;
            }
        }
        // perf slows its victim, so it has a round of its own.
        for cell in &cells {
            self.count_syscalls(cell)?;
        }
        Ok(())
    }

    fn measure_round(&mut self, cell: &Cell, round: usize) -> Result<()> {
        let mut order: Vec<usize> = (0..self.variants.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let variant = &mut self.variants[index];
            let samples = variant.measure(cell, self.keys, self.options.seconds)?;
            let name = variant.name;
            for sample in samples {
                self.record(name, cell, sample);
            }
        }
        Ok(())
    }

    fn count_syscalls(&mut self, cell: &Cell) -> Result<()> {
        for index in 0..self.variants.len() {
            let variant = &mut self.variants[index];
            let counted = variant.count_syscalls(cell, self.keys, self.options.seconds)?;
            let name = variant.name;
            if let Some(value) = counted {
                let metric = "syscalls_per_request";
                self.record(name, cell, Sample { metric, unit: "syscalls", value });
            }
        }
        Ok(())
    }

    fn record(&mut self, variant: &str, cell: &Cell, sample: Sample) {
        let params = self.params(cell);
        let known = self.figures.iter_mut().find(|figure| {
            figure.variant == variant && figure.metric == sample.metric && figure.params == params
        });
        match known {
            Some(figure) => figure.rounds.push(sample.value),
            None => self.figures.push(Figure {
                bench: BENCH,
                variant: variant.to_owned(),
                params,
                metric: sample.metric,
                unit: sample.unit,
                rounds: vec![sample.value],
            }),
        }
    }

    fn params(&self, cell: &Cell) -> Value {
        json!({
            "operation": cell.operation.name(),
            "pipeline": cell.pipeline,
            "value_bytes": cell.value_bytes,
            "connections": CONNECTIONS,
            "keys": self.keys,
            "server_cores": self.options.server_cores,
            "threads": self.options.threads,
        })
    }

    /// A table for each cell: figures, and behind each its ratio to memcached's.
    fn print(&self) {
        let mut cells: Vec<&Value> = Vec::new();
        for figure in &self.figures {
            if !cells.contains(&&figure.params) {
                cells.push(&figure.params);
            }
        }
        let rounds = self.options.rounds;
        println!("\nmedians of {rounds} rounds; in brackets the median ratio to {BASE}");
        for params in cells {
            let word = |name: &str| params[name].to_string().replace('"', "");
            println!(
                "\n{}, pipeline {}, values of {} bytes",
                word("operation"),
                word("pipeline"),
                word("value_bytes")
            );
            println!(
                "  {:<17} {:>17} {:>15} {:>15} {:>15} {:>15} {:>14}",
                "", "requests/s", "p50 us", "p99 us", "CPU us", "front end us", "syscalls"
            );
            for variant in &self.variants {
                self.print_row(variant.name, params);
            }
        }
    }

    fn print_row(&self, variant: &str, params: &Value) {
        let find = |variant: &str, metric: &str| {
            self.figures.iter().find(|figure| {
                figure.variant == variant && figure.metric == metric && figure.params == *params
            })
        };
        let text = |metric: &str, base_metric: &str, digits: usize| {
            let Some(ours) = find(variant, metric) else { return "not available".to_owned() };
            let base = find(BASE, base_metric);
            let ratio = base.map_or(0.0, |base| ratio(&ours.rounds, &base.rounds));
            format!("{:.digits$} ({ratio:.2})", ours.value())
        };
        println!(
            "  {:<17} {:>17} {:>15} {:>15} {:>15} {:>15} {:>14}",
            variant,
            text("requests_per_second", "requests_per_second", 0),
            text("latency_p50", "latency_p50", 0),
            text("latency_p99", "latency_p99", 0),
            text("cpu_per_request", "cpu_per_request", 2),
            text("front_end_cpu_per_request", "cpu_per_request", 2),
            text("syscalls_per_request", "syscalls_per_request", 2),
        );
    }
}

impl Variant<'_> {
    fn measure(&mut self, cell: &Cell, keys: usize, seconds: f64) -> Result<Vec<Sample>> {
        self.generator.measure(cell, keys, seconds * WARM_UP)?;
        let cpu_before = self.cpu_time()?;
        let measured = self.generator.measure(cell, keys, seconds)?;
        let cpu = self.cpu_time()?.since(cpu_before);
        // What is still to be written must not disturb the next one.
        self.server.wait_until_flushed()?;
        samples(&measured, cpu)
    }

    fn cpu_time(&self) -> Result<CpuTime> {
        CpuTime::of(self.server.pid(), self.server.program().front_end_threads())
    }

    /// System calls of a request. An idle server makes so few that they do not show.
    fn count_syscalls(&mut self, cell: &Cell, keys: usize, seconds: f64) -> Result<Option<f64>> {
        let Some(count) = PerfCount::start(PerfEvent::Syscalls, self.server.pid()) else {
            return Ok(None);
        };
        let measured = self.generator.measure(cell, keys, seconds)?;
        let counted = count.finish()?;
        self.server.wait_until_flushed()?;
        Ok(counted.map(|count| count as f64 / measured.requests as f64))
    }
}

fn samples(measured: &Measured, cpu: CpuTime) -> Result<Vec<Sample>> {
    ensure!(measured.requests > 0, "nothing was answered");
    let requests = measured.requests as f64;
    let micros = |quantile| measured.latency.value_at_quantile(quantile) as f64 / 1e3;
    let sample = |metric, unit, value| Sample { metric, unit, value };
    let mut samples = vec![
        sample("requests_per_second", "1/s", requests / measured.seconds),
        sample("latency_p50", "us", micros(0.5)),
        sample("latency_p99", "us", micros(0.99)),
        sample("cpu_per_request", "us", cpu.all * 1e6 / requests),
    ];
    if let Some(front_end) = cpu.front_end {
        samples.push(sample("front_end_cpu_per_request", "us", front_end * 1e6 / requests));
    }
    Ok(samples)
}
