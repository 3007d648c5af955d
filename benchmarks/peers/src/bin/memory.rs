//! Bytes of memory that a document costs beyond its key and value, all included: the growth of the
//! resident process. Of the node also what it counts itself, and who has the rest.

use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use peers::couchbase;
use peers::dialect::Dialect;
use peers::generator::Generator;
use peers::load::{KEY_BYTES, Target};
use peers::options::Options;
use peers::process_stat::resident_bytes;
use peers::report::{self, Figure, median};
use peers::resident::Resident;
use peers::servers::{Program, Server, generator_core, pin_thread};
use serde_json::json;

const BENCH: &str = "memory";
const ITEMS: usize = 1_000_000;
const ITEMS_QUICK: usize = 50_000;
const SIZES: [Size; 2] = [Size { key: 16, value: 32 }, Size { key: 24, value: 100 }];
const CONNECTIONS: usize = 10;
/// Time for what runs after the last write: freeing of buffers, purging by the allocator. Files
/// follow later, and until then a list of what they need is in memory.
const SETTLE: Duration = Duration::from_secs(3);
/// The bucket's, where keys are spread over them.
const VBUCKETS: u16 = 1024;

/// Bytes of a document's parts.
#[derive(Clone, Copy, Debug)]
struct Size {
    key: usize,
    value: usize,
}

/// A server, how it is set up, and through which door it is loaded.
struct Variant {
    name: &'static str,
    program: Program,
    arguments: &'static [&'static str],
    /// Whether keys go to the vBuckets that clients would choose; otherwise all to one.
    spreads: bool,
}

const VARIANTS: &[Variant] = &[
    Variant::memcached_port("settee", &[]),
    Variant { spreads: true, ..Variant::memcached_port("settee-1024", &[]) },
    Variant::memcached_port("settee-full", &["--eviction-policy", "full"]),
    Variant::memcached_port("settee-ephemeral", &["--bucket-type", "ephemeral"]),
    Variant { program: Program::Memcached, ..Variant::memcached_port("memcached", &[]) },
    Variant { program: Program::Redis, ..Variant::memcached_port("redis", &[]) },
];

/// Bytes a document, and who has them. The parts of `beyond`: all of `used`, and the last three.
const OWNERS: [&str; 7] = ["beyond", "used", "tables", "log", "slabs", "other", "files"];
type Column = [f64; OWNERS.len()];

fn main() -> Result<()> {
    let (options, sizes, items) = from_command_line()?;
    pin_thread(&[generator_core()])?;
    println!("{items} documents, bytes of each beyond key and value {SETTLE:?} after the load\n");
    println!("`used` is what the node counts, `tables` and `log` of it what is no document.");
    println!("Not counted: free blocks in `slabs`, `other` memory, pages of `files`.\n");
    let mut figures = Vec::new();
    for size in sizes {
        let header = OWNERS.map(|owner| format!("{owner:>9}")).concat();
        println!("{:<18}{header}", format!("{}/{}", size.key, size.value));
        for variant in VARIANTS {
            let rounds = (0..options.rounds)
                .map(|_| variant.measure(&options, size, items))
                .collect::<Result<Vec<Column>>>()?;
            figures.extend(report_of(variant, size, items, &rounds));
        }
        println!();
    }
    report::append(options.json.as_deref(), &figures)
}

/// The options that all benchmarks have, sizes, and the number of documents.
fn from_command_line() -> Result<(Options, Vec<Size>, usize)> {
    let (mut sizes, mut items, mut rest) = (SIZES.to_vec(), None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--sizes" => {
                let value = arguments.next().context("--sizes KEY/VALUE[,KEY/VALUE]")?;
                sizes = value.split(',').map(Size::parse).collect::<Result<_>>()?;
            }
            "--items" => items = Some(arguments.next().context("--items N")?.parse()?),
            _ => rest.push(name),
        }
    }
    let options = Options::parse(rest.into_iter(), 1)?;
    let items = items.unwrap_or(if options.quick { ITEMS_QUICK } else { ITEMS });
    ensure!(items > 0, "nothing to measure");
    Ok((options, sizes, items))
}

/// Prints the medians.
fn report_of(variant: &Variant, size: Size, items: usize, rounds: &[Column]) -> Vec<Figure> {
    let params = json!({"items": items, "key_bytes": size.key, "value_bytes": size.value});
    let figure = |(index, metric): (usize, &'static str)| Figure {
        bench: BENCH,
        variant: variant.name.to_owned(),
        params: params.clone(),
        metric,
        unit: "bytes",
        rounds: rounds.iter().map(|column| column[index]).collect(),
    };
    let shown = if variant.program == Program::Settee { OWNERS.len() } else { 1 };
    let figures: Vec<Figure> = OWNERS.into_iter().enumerate().take(shown).map(figure).collect();
    let cells = figures.iter().map(|figure| format!("{:>9.1}", median(&figure.rounds)));
    println!("{:<18}{}", variant.name, cells.collect::<String>());
    figures
}

impl Size {
    fn parse(text: &str) -> Result<Self> {
        let (key, value) = text.split_once('/').context("a size is KEY/VALUE")?;
        let size = Self { key: key.parse()?, value: value.parse()? };
        let is_key = (KEY_BYTES..=250).contains(&size.key);
        ensure!(is_key, "{text}: keys have {KEY_BYTES} to 250 bytes here");
        Ok(size)
    }
}

impl Variant {
    const fn memcached_port(name: &'static str, arguments: &'static [&'static str]) -> Self {
        Self { name, program: Program::Settee, arguments, spreads: false }
    }

    fn measure(&self, options: &Options, size: Size, items: usize) -> Result<Column> {
        let server = Server::start_with(self.program, &options.server_cores, self.arguments)?;
        // The connections, too, are there before and after.
        let mut generator = Generator::connect(&self.target(&server), CONNECTIONS)?;
        generator = generator.with_keys_of(size.key);
        std::thread::sleep(SETTLE);
        let before = (resident_bytes(server.pid())?, Resident::of(server.pid())?);
        generator.populate(items, size.value)?;
        server.wait_until_flushed()?;
        std::thread::sleep(SETTLE);
        let after = (resident_bytes(server.pid())?, Resident::of(server.pid())?);
        let grown = after.0 as f64 - before.0 as f64;
        let beyond = grown / items as f64 - (size.key + size.value) as f64;
        if self.program != Program::Settee {
            return Ok([beyond, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        }
        column(&server, size, items, beyond, after.1 - before.1)
    }

    fn target(&self, server: &Server) -> Target {
        match (self.program, &server.data_port) {
            (Program::Redis, _) => Target::plain(server.address, Dialect::Redis, None),
            (Program::Settee, Some((address, login))) if self.spreads => {
                let dialect = Dialect::Couchbase { vbuckets: VBUCKETS };
                Target::plain(*address, dialect, Some(login.clone()))
            }
            _ => Target::plain(server.address, Dialect::Memcached, None),
        }
    }
}

/// What the node says, and what it does not.
fn column(
    server: &Server,
    size: Size,
    items: usize,
    beyond: f64,
    grown: Resident,
) -> Result<Column> {
    let mut stream = TcpStream::connect(server.address)?;
    let mut bytes = |name| -> Result<f64> {
        Ok(couchbase::statistic(&mut stream, name)?.parse::<f64>()? / items as f64)
    };
    let (used, overhead) = (bytes("mem_used")?, bytes("ep_overhead")?);
    let tables = bytes("vb_active_ht_memory_overhead")?;
    let of = |bytes: i64| bytes as f64 / items as f64;
    Ok([
        beyond,
        used - (size.key + size.value) as f64,
        tables,
        overhead - tables,
        of(grown.slabs) - (used - overhead),
        of(grown.other) - overhead,
        of(grown.files),
    ])
}
