//! An hour of mixed load at four fifths of what the node can do, with twice as much data as it has
//! memory for: throughput, latency, memory and disk of each minute, whether they stay, and whether
//! everything that was acknowledged is there at the end.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use peers::couchbase::set_parameter;
use peers::dcp_reader::{Progress, follow};
use peers::dialect::Dialect;
use peers::load::Target;
use peers::options::Options;
use peers::report::{self, Figure};
use peers::servers::{Program, Server, generator_core, pin_thread};
use peers::soak::documents::Documents;
use peers::soak::driver::Driver;
use peers::soak::flatness::{Bounds, Flatness, summary};
use peers::soak::ledger::Ledger;
use peers::soak::mix::Mix;
use peers::soak::node_sample::NodeSample;
use peers::soak::window::Window;
use platform::Random;
use serde_json::{Value, json};

const BENCH: &str = "soak";
const VBUCKETS: u16 = 64;
/// Of what a closed loop reaches, what the open one asks for.
const LOAD_PART: f64 = 0.8;
/// Documents of which it is read at the end whether they are there.
const SAMPLE: usize = 20_000;
/// Parameters of the bucket, so that a minute has compactions and tombstones do not pile up.
const PARAMETERS: [(&str, &str); 2] =
    [("persistent_metadata_purge_age", "60"), ("compaction_min_file_size", "262144")];
const MEGABYTE: f64 = 1e6;

/// How large and how long.
struct Size {
    quota: &'static str,
    lasting: usize,
    sessions: usize,
    /// For which capacity is measured.
    capacity: Duration,
    /// What one row is of.
    row: Duration,
    rows: u32,
}

/// Values have 2 kB on average. There are as many sessions as are written in 120 s, so that most
/// expire before they are written again.
const SIZE: Size = Size {
    quota: "256MiB",
    lasting: 180_000,
    sessions: 140_000,
    capacity: Duration::from_secs(30),
    row: Duration::from_secs(60),
    rows: 60,
};
const SIZE_QUICK: Size = Size {
    quota: "32MiB",
    lasting: 16_000,
    sessions: 6_000,
    capacity: Duration::from_secs(1),
    row: Duration::from_secs(1),
    rows: 4,
};

fn main() -> Result<()> {
    let (options, size, rate) = from_command_line()?;
    pin_thread(&[generator_core()])?;
    let vbuckets = VBUCKETS.to_string();
    let arguments = ["--eviction-policy", "full", "--bucket-quota", size.quota, "--vbuckets"];
    let arguments = [&arguments[..], &[&vbuckets, "--journal-size", "128MiB"]].concat();
    let server = Server::start_with(Program::Settee, &options.server_cores, &arguments)?;
    let mut bench = Bench::prepare(&server, &size)?;
    let rate = match rate {
        Some(rate) => rate,
        None => bench.capacity()? * LOAD_PART,
    };
    let rows = bench.run(rate)?;
    let params = json!({
        "quota": size.quota, "documents": size.lasting, "row_seconds": size.row.as_secs_f64(),
        "requests_per_second": rate, "server_cores": options.server_cores,
    });
    let mut figures = figures_of(&rows, &params);
    let flatness = flatness_of(&figures);
    println!("\n{}", summary(&flatness));
    figures.extend(flatness.iter().map(|flatness| Figure {
        metric: "last_quarter_by_second",
        unit: "ratio",
        params: json!({"of": flatness.name, "run": params}),
        ..figure(flatness.name, "", &params, vec![flatness.ratio])
    }));
    let wrong = bench.check_all(&rows)?;
    figures.push(figure("wrong_answers", "", &params, vec![wrong as f64]));
    report::append(options.json.as_deref(), &figures)?;
    ensure!(wrong == 0, "{wrong} answers contradict what the node had acknowledged");
    Ok(())
}

/// The options that all benchmarks have, the size, and requests a second.
fn from_command_line() -> Result<(Options, Size, Option<f64>)> {
    let (mut minutes, mut rate, mut rest) = (None, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--minutes" => minutes = Some(arguments.next().context("--minutes N")?.parse()?),
            "--rate" => rate = Some(arguments.next().context("--rate N")?.parse()?),
            _ => rest.push(name),
        }
    }
    let options = Options::parse(rest.into_iter(), 1)?;
    let size = if options.quick { SIZE_QUICK } else { SIZE };
    let size = Size { rows: minutes.unwrap_or(size.rows), ..size };
    ensure!(size.rows > 0 && rate.is_none_or(|rate| rate >= 1.0), "nothing to measure");
    Ok((options, size, rate))
}

struct Bench<'a> {
    server: &'a Server,
    size: &'a Size,
    driver: Driver,
    mix: Mix,
    /// Answers that were wrong outside of rows.
    wrong: u64,
}

/// What is known of one stretch.
struct Row {
    window: Window,
    /// At its start.
    before: NodeSample,
    /// At its end.
    after: NodeSample,
}

impl<'a> Bench<'a> {
    /// Stores the documents.
    fn prepare(server: &'a Server, size: &'a Size) -> Result<Self> {
        let mut stream = target(server)?.connect()?;
        for (name, value) in PARAMETERS {
            set_parameter(&mut stream, name, value)?;
        }
        let ledger = Ledger::new(Documents::new(size.lasting, size.sessions));
        let driver = Driver::connect(server, VBUCKETS, ledger)?;
        let mix = Mix::new(size.lasting);
        let mut bench = Self { server, size, driver, mix, wrong: 0 };
        let window = bench.driver.populate()?;
        bench.note_outside("populating", &window);
        server.wait_until_flushed()?;
        Ok(bench)
    }

    /// Requests a second in a closed loop.
    fn capacity(&mut self) -> Result<f64> {
        let window = self.driver.closed(&mut self.mix, self.size.capacity)?;
        self.note_outside("capacity", &window);
        println!(
            "capacity {:.0} requests/s: p50 {:.3}, p99 {:.3}, p99.9 {:.3}, longest {:.1} ms {}",
            window.rate(),
            window.latency_ms(0.5),
            window.latency_ms(0.99),
            window.latency_ms(0.999),
            window.longest_ms(),
            window.refusals(),
        );
        Ok(window.rate())
    }

    /// The open loop, with a reader of everything beside it.
    fn run(&mut self, rate: f64) -> Result<Vec<Row>> {
        let target = target(self.server)?;
        let (reader, mut stream) = (target.connect()?, target.connect()?);
        let end = reader.try_clone()?;
        let progress = Progress::new(VBUCKETS);
        let (server, size) = (self.server, self.size);
        let (rows, rest) = std::thread::scope(|scope| {
            let following = scope.spawn(|| follow(reader, VBUCKETS, &progress));
            let (sender, windows) = channel();
            let (driver, mix) = (&mut self.driver, &mut self.mix);
            // Owns the sender: windows end when it does.
            let driving = scope.spawn(move || driver.open(mix, rate, size.row, size.rows, &sender));
            let rows = watch(server, &mut stream, &progress, windows, rate, size);
            let rest = driving.join().expect("the load does not panic");
            progress.finish();
            // An end that was there before is told by the reader.
            let _already_ended = end.shutdown(Shutdown::Both);
            following.join().expect("the reader does not panic").context("the reader")?;
            Ok::<_, anyhow::Error>((rows?, rest?))
        })?;
        self.note_outside("the end of the load", &rest);
        if progress.ended_streams() > 0 {
            println!("the node has ended {} streams of the reader", progress.ended_streams());
        }
        Ok(rows)
    }

    /// Reads documents chosen by lot that must be there; returns wrong answers of the whole run.
    fn check_all(&mut self, rows: &[Row]) -> Result<u64> {
        let ledger = self.driver.ledger();
        let lasting = 0..self.size.lasting;
        let mut stored: Vec<usize> = lasting.filter(|&index| ledger.is_stored(index)).collect();
        let mut random = Random::from_seed(13);
        let count = stored.len().min(SAMPLE);
        for place in 0..count {
            let other = place + random.below((stored.len() - place) as u64) as usize;
            stored.swap(place, other);
        }
        let window = self.driver.read(stored[..count].iter().copied())?;
        println!(
            "read at the end: {} of {} documents, {} wrong {}",
            window.answered,
            stored.len(),
            window.wrong,
            window.refusals(),
        );
        self.note_outside("reading at the end", &window);
        Ok(self.wrong + rows.iter().map(|row| row.window.wrong).sum::<u64>())
    }

    fn note_outside(&mut self, when: &str, window: &Window) {
        self.wrong += window.wrong;
        tell_wrong(when, window);
    }
}

/// Takes a sample after each window and prints the row.
fn watch(
    server: &Server,
    stream: &mut TcpStream,
    progress: &Progress,
    windows: Receiver<Window>,
    rate: f64,
    size: &Size,
) -> Result<Vec<Row>> {
    println!("{rate:.0} requests/s for {} times {:?}\n\n{}", size.rows, size.row, Row::header());
    let mut before = NodeSample::take(server, stream, progress)?;
    let mut rows = Vec::new();
    for window in windows {
        let after = NodeSample::take(server, stream, progress)?;
        let row = Row { window, before, after };
        let (done, left) = (rows.len() + 1, size.rows as usize - rows.len() - 1);
        eprintln!("{done} of {} rows, {:?} left", size.rows, size.row * left as u32);
        println!("{}", row.line(rows.len() + 1));
        std::io::stdout().flush()?;
        tell_wrong(&format!("row {done}"), &row.window);
        before = after;
        rows.push(row);
    }
    Ok(rows)
}

fn tell_wrong(when: &str, window: &Window) {
    for words in &window.wrong_words {
        eprintln!("{when}: {words}");
    }
}

fn target(server: &Server) -> Result<Target> {
    let (address, login) = server.data_port.clone().context("the node has a data port")?;
    Ok(Target::plain(address, Dialect::Couchbase { vbuckets: VBUCKETS }, Some(login)))
}

/// A figure of a row: its name, its unit, its head in the table, the decimals there, and its value.
/// Without a head it is in the JSON documents alone.
type Column = (&'static str, &'static str, &'static str, usize, fn(&Row) -> f64);

const COLUMNS: [Column; 26] = [
    ("requests_per_second", "1/s", "req/s", 0, |row| row.window.rate()),
    ("p50", "ms", "p50 ms", 2, |row| row.window.latency_ms(0.5)),
    ("p99", "ms", "p99", 2, |row| row.window.latency_ms(0.99)),
    ("p99.9", "ms", "p99.9", 1, |row| row.window.latency_ms(0.999)),
    ("longest", "ms", "longest", 0, |row| row.window.longest_ms()),
    ("late", "ms", "late", 0, |row| row.window.late.as_secs_f64() * 1e3),
    ("temporary_failures", "", "tmpfail", 0, |row| row.window.temporary_failures() as f64),
    ("other_refusals", "", "refused", 0, |row| row.window.other_refusals() as f64),
    ("shed", "", "shed", 0, |row| row.window.shed as f64),
    ("wrong", "", "wrong", 0, |row| row.window.wrong as f64),
    ("resident", "MB", "RSS MB", 1, |row| row.after.resident_bytes as f64 / MEGABYTE),
    ("used", "MB", "used", 1, |row| row.after.used_bytes as f64 / MEGABYTE),
    ("documents", "", "documents", 0, |row| row.after.documents as f64),
    ("resident_percent", "%", "in RAM %", 1, |row| row.after.resident_percent),
    ("disk", "MB", "disk MB", 0, |row| row.after.disk_bytes as f64 / MEGABYTE),
    ("files", "MB", "files", 0, |row| row.after.file_bytes as f64 / MEGABYTE),
    ("live", "MB", "", 0, |row| row.after.live_file_bytes as f64 / MEGABYTE),
    ("queued", "", "", 0, |row| row.after.queued as f64),
    ("compactions", "", "compact", 0, |row| row.more(|it| it.compactions)),
    ("expired", "", "expired", 0, |row| row.more(|it| it.expired)),
    ("expiry_rounds", "", "", 0, |row| row.more(|it| it.expiry_rounds)),
    ("evicted", "", "evicted", 0, |row| row.more(|it| it.evicted)),
    ("fetched", "", "fetched", 0, |row| row.more(|it| it.fetched)),
    ("failures", "", "failures", 0, |row| row.more(|it| it.failures)),
    ("streamed", "1/s", "dcp/s", 0, |row| {
        row.more(|it| it.streamed) / row.window.duration.as_secs_f64()
    }),
    ("lag", "seqnos", "lag", 0, |row| row.after.lag as f64),
];

impl Row {
    /// By how much a counter has risen.
    fn more(&self, counter: fn(&NodeSample) -> u64) -> f64 {
        counter(&self.after) as f64 - counter(&self.before) as f64
    }

    fn header() -> String {
        shown().fold("row".to_owned(), |line, (_, _, head, ..)| line + &format!(" {head:>9}"))
    }

    fn line(&self, number: usize) -> String {
        shown().fold(format!("{number:>3}"), |line, (.., decimals, value)| {
            line + &format!(" {:>9.decimals$}", value(self))
        })
    }
}

fn shown() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|(_, _, head, ..)| !head.is_empty())
}

fn figures_of(rows: &[Row], params: &Value) -> Vec<Figure> {
    let of = |&(metric, unit, .., value): &Column| {
        figure(metric, unit, params, rows.iter().map(value).collect())
    };
    COLUMNS.iter().map(of).collect()
}

/// Of the figures that ought to stay where they are.
fn flatness_of(figures: &[Figure]) -> Vec<Flatness> {
    const BOUNDS: [(&str, Bounds); 4] = [
        ("requests_per_second", Bounds { min: 0.98, max: f64::INFINITY }),
        ("p99.9", Bounds { min: 0.0, max: 1.5 }),
        ("resident", Bounds { min: 0.0, max: 1.05 }),
        ("disk", Bounds { min: 0.0, max: 1.1 }),
    ];
    let of = |(name, bounds): (&'static str, Bounds)| {
        let figure = figures.iter().find(|figure| figure.metric == name)?;
        Flatness::of(name, &figure.rounds, bounds)
    };
    BOUNDS.into_iter().filter_map(of).collect()
}

fn figure(metric: &'static str, unit: &'static str, params: &Value, rounds: Vec<f64>) -> Figure {
    let variant = Program::Settee.name().to_owned();
    Figure { bench: BENCH, variant, params: params.clone(), metric, unit, rounds }
}
