//! How fast mutations reach a replica, how far behind it is, and how fast files are streamed.
//!
//! - throughput and lag: plain writes to a node; meanwhile the seqnos of its replica are compared.
//! - a slow replica: it hangs while the load goes on, and the active node's memory is watched.
//! - backfill: a client streams everything from the files, beside a plain read of those files.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use peers::cluster::Cluster;
use peers::couchbase::{high_seqnos, statistic};
use peers::dcp_reader;
use peers::options::Options;
use peers::report::{self, Figure};
use rustix::fs::{Advice, fadvise};
use serde_json::{Value, json};

const BENCH: &str = "replication";
const PORT: u16 = 12_200;
const ACTIVE: u16 = 0;
const REPLICA: u16 = 1;
const VBUCKETS: u16 = 1024;
const QUOTA: &str = "2GiB";
const DOCUMENTS: &str = "1000000";
const DOCUMENTS_QUICK: &str = "20000";
/// Mutations a second while the lag without overload is watched.
const RATE: &str = "20000";
/// A replica hangs longer than other measurements take, so that the log reaches its bound.
const HANG_FACTOR: f64 = 4.0;
const POLL: Duration = Duration::from_millis(20);
/// A replica that has not caught up after this time never will.
const PATIENCE: Duration = Duration::from_secs(300);
const MEGABYTE: f64 = 1e6;

fn main() -> Result<()> {
    let options = Options::from_command_line(3)?;
    let documents = if options.quick { DOCUMENTS_QUICK } else { DOCUMENTS };
    let bench = Bench {
        cluster: Cluster::start_one_sided(PORT, &["--memory-quota", QUOTA])?,
        documents,
        seconds: options.seconds,
    };
    let mut figures = bench.population()?;
    figures.extend(bench.throughput(options.rounds)?);
    figures.extend(bench.lag(options.rounds)?);
    figures.extend(bench.slow_replica()?);
    figures.extend(bench.backfill(options.rounds)?);
    for figure in &figures {
        println!("{:<28} {:>14.1} {}", figure.metric, figure.value(), figure.unit);
    }
    report::append(options.json.as_deref(), &figures)
}

struct Bench {
    cluster: Cluster,
    documents: &'static str,
    seconds: f64,
}

impl Bench {
    fn population(&self) -> Result<Vec<Figure>> {
        let began = Instant::now();
        self.load(&["--populate-only"])?;
        self.catch_up()?;
        let rate = self.documents.parse::<f64>()? / began.elapsed().as_secs_f64();
        Ok(vec![figure("populated_and_replicated", "documents/s", vec![rate])])
    }

    /// Writes at full speed while the lag is sampled.
    fn throughput(&self, rounds: usize) -> Result<Vec<Figure>> {
        let (mut rates, mut lags, mut times) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (rate, lag) = self.watched_writes(&[])?;
            rates.push(rate);
            lags.push(lag);
            times.push(lag / rate * 1e3);
        }
        Ok(vec![
            figure("mutations", "1/s", rates),
            figure("lag_p99", "mutations", lags),
            figure("lag_p99_time", "ms", times),
        ])
    }

    /// The lag at a rate that leaves the machine room.
    fn lag(&self, rounds: usize) -> Result<Vec<Figure>> {
        let (mut lags, mut times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (rate, lag) = self.watched_writes(&["--rate-limit", RATE])?;
            lags.push(lag);
            times.push(lag / rate * 1e3);
        }
        Ok(vec![
            figure("lag_p99_at_20000/s", "mutations", lags),
            figure("lag_p99_time_at_20000/s", "ms", times),
        ])
    }

    /// Mutations a second, and by how many the replica is behind in 99 of 100 samples at most. The
    /// replica is asked before the active node, so that the lag is never shown too small.
    fn watched_writes(&self, more: &[&str]) -> Result<(f64, f64)> {
        let (mut active, mut replica) = (self.connect(ACTIVE)?, self.connect(REPLICA)?);
        let lag = || {
            let behind = high_seqnos(&mut replica)?;
            Ok(high_seqnos(&mut active)?.saturating_sub(behind))
        };
        let (summary, mut samples) = beside(|| self.writes(self.seconds, more), lag)?;
        self.catch_up()?;
        samples.sort_unstable();
        let rank = (samples.len() * 99).div_ceil(100).saturating_sub(1);
        let lag = *samples.get(rank).context("the load was too short to be sampled")? as f64;
        let rate = summary["operations_per_second"].as_f64().context("a load has a rate")?;
        Ok((rate, lag))
    }

    /// What the active node uses at most while its replica hangs, and how long that takes to catch
    /// up.
    fn slow_replica(&self) -> Result<Vec<Figure>> {
        let mut active = self.connect(ACTIVE)?;
        let before = number(&mut active, "mem_used")?;
        let bound = number(&mut active, "ep_checkpoint_memory_quota")?;
        self.cluster.order(&["--pause", "1"])?;
        let sample = || {
            let checkpoints = number(&mut active, "ep_checkpoint_memory")?;
            Ok((number(&mut active, "mem_used")?, checkpoints))
        };
        let watched = beside(|| self.writes(self.seconds * HANG_FACTOR, &[]), sample);
        self.cluster.order(&["--resume", "1"])?;
        let resumed = Instant::now();
        self.catch_up()?;
        let (summary, samples) = watched?;
        let used = samples.iter().map(|(used, _)| *used).max().unwrap_or(before);
        let checkpoints = samples.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        let rate = summary["operations_per_second"].as_f64().context("a load has a rate")?;
        Ok(vec![
            figure("used_before_hang", "MB", vec![before as f64 / MEGABYTE]),
            figure("used_while_hanging", "MB", vec![used as f64 / MEGABYTE]),
            figure("checkpoints_while_hanging", "MB", vec![checkpoints as f64 / MEGABYTE]),
            figure("checkpoints_bound", "MB", vec![bound as f64 / MEGABYTE]),
            figure("mutations_while_hanging", "1/s", vec![rate]),
            figure("caught_up_after_hang", "s", vec![resumed.elapsed().as_secs_f64()]),
        ])
    }

    fn backfill(&self, rounds: usize) -> Result<Vec<Figure>> {
        let (mut streamed, mut documents, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let began = Instant::now();
            let received = dcp_reader::read_all(self.connect(ACTIVE)?, VBUCKETS)?;
            let seconds = began.elapsed().as_secs_f64();
            let expected = self.documents.parse::<u64>()?;
            // A document that changed lately may come from its file and from the log.
            ensure!(received.mutations >= expected, "{received:?} of {expected} documents");
            streamed.push(received.bytes as f64 / MEGABYTE / seconds);
            documents.push(received.mutations as f64 / seconds);
            let began = Instant::now();
            let bytes = read_files(&self.cluster.data_directory(ACTIVE))?;
            read.push(bytes as f64 / MEGABYTE / began.elapsed().as_secs_f64());
        }
        Ok(vec![
            figure("backfill", "MB/s", streamed),
            figure("backfill_documents", "documents/s", documents),
            figure("sequential_read", "MB/s", read),
        ])
    }

    fn writes(&self, seconds: f64, more: &[&str]) -> Result<Value> {
        let seconds = seconds.to_string();
        let writes = ["--no-population", "--set-pct", "100", "--duration", &seconds];
        self.load(&[&writes[..], more].concat())
    }

    fn load(&self, more: &[&str]) -> Result<Value> {
        let mut arguments = vec!["--num-items", self.documents, "-m", "512", "-M", "512"];
        arguments.extend(["--random-body", "--num-threads", "16", "--batch-size", "32"]);
        arguments.extend(more);
        self.cluster.load(&arguments)
    }

    /// Waits until the replica has everything.
    fn catch_up(&self) -> Result<()> {
        let (mut active, mut replica) = (self.connect(ACTIVE)?, self.connect(REPLICA)?);
        let began = Instant::now();
        while high_seqnos(&mut replica)? < high_seqnos(&mut active)? {
            ensure!(began.elapsed() < PATIENCE, "the replica does not catch up");
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn connect(&self, node: u16) -> Result<TcpStream> {
        self.cluster.connect(node)
    }
}

/// Does `work` on another thread, and samples meanwhile.
fn beside<T: Send, S>(
    work: impl FnOnce() -> Result<T> + Send,
    mut sample: impl FnMut() -> Result<S>,
) -> Result<(T, Vec<S>)> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work();
            is_done.store(true, Ordering::Relaxed);
            result
        });
        let mut samples = Vec::new();
        while !is_done.load(Ordering::Relaxed) {
            samples.push(sample()?);
            std::thread::sleep(POLL);
        }
        Ok((worker.join().expect("the load does not panic")?, samples))
    })
}

fn number(stream: &mut TcpStream, name: &str) -> Result<u64> {
    Ok(statistic(stream, name)?.parse()?)
}

/// Reads the vBuckets' files below a directory one after the other, from the disk; gives their
/// bytes. A file that is replaced meanwhile is left out.
fn read_files(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 20];
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            bytes += read_files(&path)?;
            continue;
        }
        if !path.file_name().is_some_and(|name| name.to_string_lossy().contains(".couch.")) {
            continue;
        }
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened?,
        };
        fadvise(&file, 0, None, Advice::DontNeed)?;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                size => bytes += size as u64,
            }
        }
    }
    Ok(bytes)
}

fn figure(metric: &'static str, unit: &'static str, rounds: Vec<f64>) -> Figure {
    let variant = "settee".to_owned();
    Figure { bench: BENCH, variant, params: json!({}), metric, unit, rounds }
}
