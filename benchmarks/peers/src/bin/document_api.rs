//! What operations on parts of documents, named collections, scans and the text protocol cost,
//! each beside what they are to be compared with.
//!
//! All servers run during the whole benchmark; only one at a time has work. A row and its base take
//! turns within every round, in an order that turns around with every round. Values are objects of
//! 4 KiB, of which the path in question is in the middle.

use anyhow::{Context, Result, ensure};
use peers::couchbase;
use peers::dialect::{Dialect, Operation};
use peers::generator::Generator;
use peers::load::{Cell, Target, Values};
use peers::options::Options;
use peers::process_stat::{CpuTime, resident_bytes};
use peers::report::{self, Figure, ratio};
use peers::servers::{Program, Server, generator_core, pin_thread};
use serde_json::json;

const BENCH: &str = "document-api";
const CONNECTIONS: usize = 50;
const KEYS: usize = 20_000;
const KEYS_QUICK: usize = 2_000;
const VBUCKETS: u16 = 1024;
const DOCUMENT_BYTES: usize = 4096;
/// Of the one field that is changed.
const FIELD_BYTES: usize = 85;
const SMALL_BYTES: usize = 100;
/// The share of a measurement that is spent first, unmeasured.
const WARM_UP: f64 = 0.1;
const SCANNED_KEYS: usize = 1_000_000;
const SCANNED_KEYS_QUICK: usize = 20_000;
const EMPTY_COLLECTIONS: u64 = 1000;

/// One way to ask one server.
struct Side {
    name: &'static str,
    operation: Operation,
    value_bytes: usize,
    generator: Generator,
    pid: u32,
}

/// Two sides, and how many times the cost of the second the first may have.
struct Row {
    of: Side,
    base: Side,
    goal: f64,
}

fn main() -> Result<()> {
    let options = Options::from_command_line(5)?;
    pin_thread(&[generator_core()])?;
    let mut figures = compare_all(&options)?;
    figures.push(scan(&options)?);
    figures.push(empty_collections(&options)?);
    report::append(options.json.as_deref(), &figures)
}

fn compare_all(options: &Options) -> Result<Vec<Figure>> {
    let settee = Server::start(Program::Settee, &options.server_cores)?;
    let memcached = Server::start(Program::Memcached, &options.server_cores)?;
    let keys = if options.quick { KEYS_QUICK } else { KEYS };
    couchbase::make_collections(&mut data_target(&settee, DEFAULT)?.connect()?, 1)?;
    let mut figures = Vec::new();
    println!("CPU time of a request, all threads; medians of {} rounds\n", options.rounds);
    println!("{:<36} {:>9} {:>9} {:>7} {:>15} {:>6}", "", "us", "base us", "ratio", "", "goal");
    for pipeline in [1, 16] {
        for mut row in rows(&settee, &memcached, keys)? {
            figures.extend(row.compare(options, &settee, keys, pipeline)?);
        }
    }
    Ok(figures)
}

const DEFAULT: Dialect = Dialect::Couchbase { vbuckets: VBUCKETS };
const NAMED: Dialect = Dialect::CouchbaseNamed { vbuckets: VBUCKETS };
const PATH: Dialect = Dialect::SubDocument { vbuckets: VBUCKETS };

/// Rows whose documents are stored.
fn rows(settee: &Server, memcached: &Server, keys: usize) -> Result<Vec<Row>> {
    let data = |dialect| data_target(settee, dialect);
    let text = |server: &Server| Target::plain(server.address, Dialect::Text, None);
    let side = |name, server: &Server, target: &Target, operation, value_bytes| -> Result<Side> {
        let generator = Generator::connect(target, CONNECTIONS)?.storing(Values::Json);
        Ok(Side { name, operation, value_bytes, generator, pid: server.pid() })
    };
    let (get, set) = (Operation::Get, Operation::Set);
    let (default, named, path) = (data(DEFAULT)?, data(NAMED)?, data(PATH)?);
    let (ours, theirs) = (text(settee), text(memcached));
    // What is stored in the same place with the smaller size comes last, and is stored before it.
    let whole = Row {
        of: side("path get 4 KiB", settee, &path, get, FIELD_BYTES)?,
        base: side("get 4 KiB", settee, &default, get, DOCUMENT_BYTES)?,
        goal: 1.3,
    };
    let changed = Row {
        of: side("path set 4 KiB", settee, &path, set, FIELD_BYTES)?,
        base: side("set 4 KiB", settee, &default, set, DOCUMENT_BYTES)?,
        goal: 1.5,
    };
    let small = |name, operation, goal| -> Result<Row> {
        Ok(Row {
            of: side(name, settee, &named, operation, SMALL_BYTES)?,
            base: side("default collection", settee, &default, operation, SMALL_BYTES)?,
            goal,
        })
    };
    let texts = |name, operation| -> Result<Row> {
        Ok(Row {
            of: side(name, settee, &ours, operation, SMALL_BYTES)?,
            base: side("memcached", memcached, &theirs, operation, SMALL_BYTES)?,
            goal: 1.0,
        })
    };
    let mut rows = vec![
        whole,
        changed,
        small("named collection get 100 B", get, 1.02)?,
        small("named collection set 100 B", set, 1.02)?,
        texts("text get 100 B", get)?,
        texts("text set 100 B", set)?,
    ];
    for row in &mut rows {
        // A path is looked for in whole documents, which are its base's.
        if row.of.value_bytes == row.base.value_bytes {
            row.of.generator.populate(keys, row.of.value_bytes)?;
        }
    }
    Ok(rows)
}

impl Row {
    fn compare(
        &mut self,
        options: &Options,
        settee: &Server,
        keys: usize,
        pipeline: usize,
    ) -> Result<[Figure; 2]> {
        self.base.generator.populate(keys, self.base.value_bytes)?;
        settee.wait_until_flushed()?;
        let mut costs = [Vec::new(), Vec::new()];
        for round in 0..options.rounds {
            let mut order = [0, 1];
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                let side = if index == 0 { &mut self.of } else { &mut self.base };
                costs[index].push(side.cost(options, keys, pipeline)?);
                settee.wait_until_flushed()?;
            }
        }
        let [of, base] = costs;
        let name = format!("{}, pipeline {pipeline}", self.of.name);
        let ratios = of.iter().zip(&base).map(|(of, base)| of / base);
        let (least, most) = ratios
            .fold((f64::MAX, 0.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
        let figure = |variant: &str, rounds| Figure {
            bench: BENCH,
            variant: variant.to_owned(),
            params: json!({"row": name, "keys": keys}),
            metric: "cpu_per_request",
            unit: "us",
            rounds,
        };
        let of = figure("row", of);
        let base = figure(self.base.name, base);
        println!(
            "{name:<36} {:>9.2} {:>9.2} {:>7.3} {:>15} {:>6}",
            of.value(),
            base.value(),
            ratio(&of.rounds, &base.rounds),
            format!("{least:.2} to {most:.2}"),
            self.goal
        );
        Ok([of, base])
    }
}

impl Side {
    /// Microseconds of CPU time that a request costs the server.
    fn cost(&mut self, options: &Options, keys: usize, pipeline: usize) -> Result<f64> {
        let cell = Cell { operation: self.operation, pipeline, value_bytes: self.value_bytes };
        self.generator.measure(&cell, keys, options.seconds * WARM_UP)?;
        let before = CpuTime::of(self.pid, None)?;
        let measured = self.generator.measure(&cell, keys, options.seconds)?;
        let used = CpuTime::of(self.pid, None)?.since(before).all;
        ensure!(measured.requests > 0, "nothing was answered");
        Ok(used * 1e6 / measured.requests as f64)
    }
}

/// Keys a second of CPU time, of a scan of all documents' keys through one connection.
fn scan(options: &Options) -> Result<Figure> {
    let server = Server::start(Program::Settee, &options.server_cores)?;
    let target = data_target(&server, DEFAULT)?;
    let keys = if options.quick { SCANNED_KEYS_QUICK } else { SCANNED_KEYS };
    Generator::connect(&target, CONNECTIONS)?.populate(keys, SMALL_BYTES)?;
    server.wait_until_flushed()?;
    let mut stream = target.connect()?;
    let mut rounds = Vec::new();
    for _ in 0..=options.rounds {
        let before = CpuTime::of(server.pid(), None)?;
        let mut found = 0;
        for vbucket in 0..VBUCKETS {
            found += couchbase::scan_keys(&mut stream, vbucket)?;
        }
        let used = CpuTime::of(server.pid(), None)?.since(before).all;
        ensure!(found == keys as u64, "{found} of {keys} keys are found");
        rounds.push(keys as f64 / used);
    }
    // The first one follows the writes.
    let figure = Figure {
        bench: BENCH,
        variant: "scan of keys".to_owned(),
        params: json!({"keys": keys, "vbuckets": VBUCKETS}),
        metric: "keys_per_cpu_second",
        unit: "1/s",
        rounds: rounds.split_off(1),
    };
    println!("\nscan of {keys} keys: {:.0} keys a second of CPU time", figure.value());
    Ok(figure)
}

/// Bytes of memory that a collection costs each vBucket that has nothing of it.
fn empty_collections(options: &Options) -> Result<Figure> {
    let server = Server::start(Program::Settee, &options.server_cores)?;
    let mut stream = data_target(&server, DEFAULT)?.connect()?;
    let before = resident_bytes(server.pid())?;
    couchbase::make_collections(&mut stream, EMPTY_COLLECTIONS)?;
    server.wait_until_flushed()?;
    let after = resident_bytes(server.pid())?;
    let each = (after as f64 - before as f64) / (EMPTY_COLLECTIONS * u64::from(VBUCKETS)) as f64;
    println!("an empty collection: {each:.0} bytes of memory in each vBucket");
    Ok(Figure {
        bench: BENCH,
        variant: "empty collections".to_owned(),
        params: json!({"collections": EMPTY_COLLECTIONS, "vbuckets": VBUCKETS}),
        metric: "bytes_each_vbucket",
        unit: "bytes",
        rounds: vec![each],
    })
}

fn data_target(server: &Server, dialect: Dialect) -> Result<Target> {
    let (address, login) = server.data_port.clone().context("the node has a data port")?;
    Ok(Target::plain(address, dialect, Some(login)))
}
