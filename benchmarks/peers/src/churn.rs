//! A node whose documents are overwritten and deleted at full speed with values of all sizes, for
//! minutes: what it occupies for each byte that it uses.
//!
//! There are about as many bytes of documents as the bucket has memory for, so that those of all
//! sizes leave it all the time, and come again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use platform::Random;

use crate::batch_client::{BATCH, BatchClient, Failed, log_uniform_size};
use crate::dialect::{Dialect, Operation};
use crate::fragmentation::Phase;
use crate::load::Target;
use crate::resident::Resident;
use crate::servers::{Program, Server};

/// Values are 2^n to 2^m bytes, logarithmically uniform: 2.4 kB on average.
const SIZES: (f64, f64) = (4.0, 14.0);
const DELETED_PERCENT: u64 = 20;
const VBUCKETS: u16 = 64;
/// Between the last write and the last look.
const SETTLE: Duration = Duration::from_secs(30);
/// After a batch of which something was refused, as clients pause.
const REFUSED_PAUSE: Duration = Duration::from_millis(1);

/// A kind of bucket.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// In a report.
    pub name: &'static str,
    arguments: [&'static str; 2],
}

/// Those that are compared.
pub const KINDS: [Kind; 3] = [
    Kind { name: "value", arguments: ["--eviction-policy", "value"] },
    Kind { name: "full", arguments: ["--eviction-policy", "full"] },
    Kind { name: "ephemeral", arguments: ["--bucket-type", "ephemeral"] },
];

/// How much, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The bucket's memory.
    pub quota: &'static str,
    /// Keys, of which there are documents most of the time.
    pub keys: usize,
    /// From one look to the next.
    pub interval: Duration,
    /// How many there are under load.
    pub intervals: u32,
    /// How long the node rests before the last one.
    pub settle: Duration,
}

impl Size {
    /// What is to mean something: so many minutes.
    pub fn of_minutes(minutes: u32) -> Self {
        let interval = Duration::from_secs(60);
        Self { quota: "512MiB", keys: 250_000, interval, intervals: minutes, settle: SETTLE }
    }

    /// A smoke test.
    pub fn quick() -> Self {
        let second = Duration::from_secs(1);
        Self { quota: "64MiB", keys: 30_000, interval: second, intervals: 2, settle: second }
    }
}

/// The node after a stretch, and what became of the requests in it.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// The node.
    pub phase: Phase,
    /// What it occupies, by kinds of mappings.
    pub resident: Resident,
    /// Requests that were answered.
    pub answered: u64,
    /// Of them, what was not carried out.
    pub failed: Failed,
    /// How long it was.
    pub duration: Duration,
}

/// Runs the workload once on one kind of bucket, and hands over every stretch as it ends.
pub fn measure(
    kind: &Kind,
    size: &Size,
    server_cores: &[usize],
    mut note: impl FnMut(&Stretch),
) -> Result<Vec<Stretch>> {
    let vbuckets = VBUCKETS.to_string();
    let common = ["--bucket-quota", size.quota, "--vbuckets", &vbuckets];
    let arguments = [&kind.arguments[..], &common].concat();
    let server = Server::start_with(Program::Settee, server_cores, &arguments)?;
    let (address, login) = server.data_port.clone().context("the node has a data port")?;
    let dialect = Dialect::Couchbase { vbuckets: VBUCKETS };
    let mut client = BatchClient::connect(&Target::plain(address, dialect, Some(login)))?;
    let mut random = Random::from_seed(1);
    let started = Instant::now();
    let mut stretches = Vec::new();
    for number in 1..=size.intervals {
        let began = Instant::now();
        let (mut answered, mut failed) = (0, Failed::default());
        while Instant::now() < started + size.interval * number {
            let more = write_batch(&mut client, size.keys, &mut random)?;
            if more.refused > 0 {
                std::thread::sleep(REFUSED_PAUSE);
            }
            answered += BATCH as u64;
            failed = failed.and(more);
        }
        let phase = Phase::take(number.to_string(), &server, &mut client)?;
        let resident = Resident::of(server.pid())?;
        let duration = began.elapsed();
        stretches.push(Stretch { phase, resident, answered, failed, duration });
        stretches.last().into_iter().for_each(&mut note);
    }
    server.wait_until_flushed()?;
    std::thread::sleep(size.settle);
    let phase = Phase::take("settled".to_owned(), &server, &mut client)?;
    let resident = Resident::of(server.pid())?;
    let (failed, duration) = (Failed::default(), size.settle);
    stretches.push(Stretch { phase, resident, answered: 0, failed, duration });
    stretches.last().into_iter().for_each(note);
    Ok(stretches)
}

/// Of any keys.
fn write_batch(client: &mut BatchClient, keys: usize, random: &mut Random) -> Result<Failed> {
    let mut failed = Failed::default();
    for _ in 0..BATCH {
        let index = random.below(keys as u64) as usize;
        let more = if random.below(100) < DELETED_PERCENT {
            client.ask(Operation::Delete, index, 0)?
        } else {
            client.ask(Operation::Set, index, log_uniform_size(SIZES, random))?
        };
        failed = failed.and(more);
    }
    Ok(failed)
}
