//! The node's data port behind TLS beside memcached behind TLS: the same certificate, the same
//! client, one front-end thread each, in turns. Then what a connection costs that does nothing.

use anyhow::{Context, Result, ensure};
use peers::certificate::Certificate;
use peers::dialect::{Dialect, Operation};
use peers::generator::Generator;
use peers::load::{Cell, Target};
use peers::options::Options;
use peers::process_stat::{CpuTime, resident_bytes};
use peers::report::{self, Figure, ratio};
use peers::servers::{Program, Server, generator_core, pin_thread};
use peers::wire::Wire;
use serde_json::json;

const BENCH: &str = "tls";
const CONNECTIONS: usize = 50;
const KEYS: usize = 20_000;
const KEYS_QUICK: usize = 2_000;
const VBUCKETS: u16 = 1024;
const SIZES: [usize; 2] = [100, 4096];
const PIPELINES: [usize; 2] = [1, 16];
/// The share of a measurement that is spent first, unmeasured.
const WARM_UP: f64 = 0.1;
const IDLE_CONNECTIONS: usize = 10_000;
const IDLE_CONNECTIONS_QUICK: usize = 200;
/// Beside those that are counted.
const OTHER_CONNECTIONS: usize = 1000;

/// A server and its client.
struct Side {
    program: Program,
    server: Server,
    generator: Generator,
}

/// Of one measurement.
struct Outcome {
    requests_per_second: f64,
    cpu_micros: f64,
}

fn main() -> Result<()> {
    let options = Options::from_command_line(5)?;
    pin_thread(&[generator_core()])?;
    let certificate = Certificate::make()?;
    let mut figures = compare(&options, &certificate)?;
    figures.extend(idle(&options, &certificate)?);
    report::append(options.json.as_deref(), &figures)
}

fn target(server: &Server, certificate: &Certificate) -> Result<Target> {
    let address = server.tls_address.context("the server speaks no TLS")?;
    let (dialect, login) = match &server.data_port {
        Some((_, login)) => (Dialect::Couchbase { vbuckets: VBUCKETS }, Some(login.clone())),
        None => (Dialect::Memcached, None),
    };
    Ok(Target { address, dialect, login, tls: Some(certificate.client()?) })
}

fn compare(options: &Options, certificate: &Certificate) -> Result<Vec<Figure>> {
    let keys = if options.quick { KEYS_QUICK } else { KEYS };
    let mut sides = Vec::new();
    for program in [Program::Settee, Program::Memcached] {
        let connections_max = CONNECTIONS + OTHER_CONNECTIONS;
        let cores = &options.server_cores;
        let server = Server::start_with_tls(program, cores, certificate, connections_max)?;
        let generator = Generator::connect(&target(&server, certificate)?, CONNECTIONS)?;
        sides.push(Side { program, server, generator });
    }
    println!("Requests a second, and CPU time of one; medians of {} rounds\n", options.rounds);
    println!(
        "{:<24} {:>10} {:>10} {:>7} {:>9} {:>9} {:>7}",
        "", "settee", "memcached", "ratio", "settee us", "us", "ratio"
    );
    let mut figures = Vec::new();
    for value_bytes in SIZES {
        for side in &mut sides {
            side.generator.populate(keys, value_bytes)?;
            side.server.wait_until_flushed()?;
        }
        for operation in [Operation::Get, Operation::Set] {
            for pipeline in PIPELINES {
                let cell = Cell { operation, pipeline, value_bytes };
                figures.extend(row(options, &mut sides, &cell, keys)?);
            }
        }
    }
    Ok(figures)
}

fn row(options: &Options, sides: &mut [Side], cell: &Cell, keys: usize) -> Result<Vec<Figure>> {
    let mut outcomes = [Vec::new(), Vec::new()];
    for round in 0..options.rounds {
        let mut order = [0, 1];
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            outcomes[index].push(sides[index].measure(options, cell, keys)?);
        }
    }
    let name =
        format!("{} {} B, pipeline {}", cell.operation.name(), cell.value_bytes, cell.pipeline);
    let figure = |index: usize, metric, unit, of: fn(&Outcome) -> f64| Figure {
        bench: BENCH,
        variant: sides[index].program.name().to_owned(),
        params: json!({"row": name, "keys": keys, "connections": CONNECTIONS}),
        metric,
        unit,
        rounds: outcomes[index].iter().map(of).collect(),
    };
    let rate = |index| figure(index, "throughput", "1/s", |outcome| outcome.requests_per_second);
    let cpu = |index| figure(index, "cpu_per_request", "us", |outcome| outcome.cpu_micros);
    let (rates, cpus) = ([rate(0), rate(1)], [cpu(0), cpu(1)]);
    println!(
        "{name:<24} {:>10.0} {:>10.0} {:>7.3} {:>9.2} {:>9.2} {:>7.3}",
        rates[0].value(),
        rates[1].value(),
        ratio(&rates[0].rounds, &rates[1].rounds),
        cpus[0].value(),
        cpus[1].value(),
        ratio(&cpus[0].rounds, &cpus[1].rounds),
    );
    Ok(rates.into_iter().chain(cpus).collect())
}

impl Side {
    fn measure(&mut self, options: &Options, cell: &Cell, keys: usize) -> Result<Outcome> {
        self.generator.measure(cell, keys, options.seconds * WARM_UP)?;
        let before = CpuTime::of(self.server.pid(), None)?;
        let measured = self.generator.measure(cell, keys, options.seconds)?;
        let used = CpuTime::of(self.server.pid(), None)?.since(before).all;
        self.server.wait_until_flushed()?;
        ensure!(measured.requests > 0, "nothing was answered");
        let requests = measured.requests as f64;
        Ok(Outcome {
            requests_per_second: requests / measured.seconds,
            cpu_micros: used * 1e6 / requests,
        })
    }
}

/// Bytes of memory of a connection that has shaken hands, has logged in where one does, and is
/// silent.
fn idle(options: &Options, certificate: &Certificate) -> Result<Vec<Figure>> {
    let count = if options.quick { IDLE_CONNECTIONS_QUICK } else { IDLE_CONNECTIONS };
    println!("\nbytes of memory of an idle connection, of {count}:");
    let mut figures = Vec::new();
    for program in [Program::Settee, Program::Memcached] {
        let connections_max = count + OTHER_CONNECTIONS;
        let cores = &options.server_cores;
        let server = Server::start_with_tls(program, cores, certificate, connections_max)?;
        let target = target(&server, certificate)?;
        // The first ones bring what is there once.
        let first = (0..CONNECTIONS).map(|_| Wire::open(&target));
        let mut wires = first.collect::<Result<Vec<_>>>()?;
        let before = resident_bytes(server.pid())?;
        for _ in 0..count {
            wires.push(Wire::open(&target)?);
        }
        let after = resident_bytes(server.pid())?;
        let each = (after as f64 - before as f64) / count as f64;
        println!("{:<24} {each:>10.0}", program.name());
        figures.push(Figure {
            bench: BENCH,
            variant: program.name().to_owned(),
            params: json!({"connections": count}),
            metric: "bytes_each_idle_connection",
            unit: "bytes",
            rounds: vec![each],
        });
    }
    Ok(figures)
}
