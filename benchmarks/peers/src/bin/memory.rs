//! Bytes of memory that an item costs, all included: the growth of the resident process.

use anyhow::Result;
use peers::dialect::Dialect;
use peers::generator::Generator;
use peers::load::Target;
use peers::options::Options;
use peers::process_stat::resident_bytes;
use peers::report::{self, Figure};
use peers::servers::{Program, Server, generator_core, pin_thread};
use serde_json::json;
use std::time::Duration;

const BENCH: &str = "memory";
const ITEMS: usize = 1_000_000;
const ITEMS_QUICK: usize = 50_000;
const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 32;
const CONNECTIONS: usize = 10;
/// Time for what runs after the last write: freeing of buffers, purging by the allocator.
const SETTLE: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    let options = Options::from_command_line(1)?;
    pin_thread(&[generator_core()])?;
    let items = if options.quick { ITEMS_QUICK } else { ITEMS };
    println!("{items} items, keys of {KEY_BYTES} bytes, values of {VALUE_BYTES} bytes\n");
    println!("{:<12} {:>12} {:>24}", "", "bytes/item", "beyond key and value");
    let mut figures = Vec::new();
    for program in [Program::Settee, Program::Memcached, Program::Redis] {
        let rounds = (0..options.rounds)
            .map(|_| bytes_per_item(program, &options, items))
            .collect::<Result<Vec<f64>>>()?;
        let of_item = figure(program, "bytes_per_item", items, &rounds);
        let beyond: Vec<f64> =
            rounds.iter().map(|bytes| bytes - (KEY_BYTES + VALUE_BYTES) as f64).collect();
        let overhead = figure(program, "overhead_per_item", items, &beyond);
        println!("{:<12} {:>12.1} {:>24.1}", program.name(), of_item.value(), overhead.value());
        figures.extend([of_item, overhead]);
    }
    report::append(options.json.as_deref(), &figures)
}

fn bytes_per_item(program: Program, options: &Options, items: usize) -> Result<f64> {
    let server = Server::start(program, &options.server_cores)?;
    let dialect = match program {
        Program::Redis => Dialect::Redis,
        Program::Settee | Program::Memcached => Dialect::Memcached,
    };
    let target = Target::plain(server.address, dialect, None);
    // The connections, too, are there before and after.
    let mut generator = Generator::connect(&target, CONNECTIONS)?;
    std::thread::sleep(SETTLE);
    let before = resident_bytes(server.pid())?;
    generator.populate(items, VALUE_BYTES)?;
    server.wait_until_flushed()?;
    std::thread::sleep(SETTLE);
    let after = resident_bytes(server.pid())?;
    Ok((after as f64 - before as f64) / items as f64)
}

fn figure(program: Program, metric: &'static str, items: usize, rounds: &[f64]) -> Figure {
    Figure {
        bench: BENCH,
        variant: program.name().to_owned(),
        params: json!({"items": items, "key_bytes": KEY_BYTES, "value_bytes": VALUE_BYTES}),
        metric,
        unit: "bytes",
        rounds: rounds.to_vec(),
    }
}
