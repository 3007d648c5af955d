//! The options of `settee load`, by the names that cbc-pillowfight gave them.

use std::path::PathBuf;

use anyhow::ensure;
use document::DurabilityLevel;
use document::limits::{KEY_SIZE_MAX, VALUE_SIZE_MAX};

use super::keys::DIGITS;
use crate::server_arguments::ServerArguments;

/// Operations of one batch at most: they all wait in memory.
const BATCH_SIZE_MAX: u32 = 100_000;
/// Clients at most, each with a file descriptor or more.
const CLIENTS_MAX: u64 = 100_000;

/// Puts a server under load and tells how long it took to answer
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct LoadArguments {
    /// How many documents there are
    #[arg(short = 'I', long, default_value_t = 1_000, value_name = "N")]
    pub num_items: u64,
    /// Requests that a client sends before it waits for the answers
    #[arg(short = 'B', long, default_value_t = 100, value_name = "N")]
    pub batch_size: u32,
    /// Smallest document, in bytes
    #[arg(short = 'm', long, default_value_t = 50, value_name = "BYTES")]
    pub min_size: usize,
    /// Largest document, in bytes
    #[arg(short = 'M', long, default_value_t = 5_120, value_name = "BYTES")]
    pub max_size: usize,
    /// Percentage of writes; the others are reads
    #[arg(short = 'r', long, default_value_t = 33, value_name = "PERCENT")]
    pub set_pct: u8,
    /// Independent clients; a few operating-system threads drive all of them
    #[arg(short = 't', long, default_value_t = 1, value_name = "N")]
    pub num_threads: u64,
    /// Connections of each client, each with a batch of its own
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub connections: u64,
    /// Operating-system threads [default: the number of CPUs, at most 4]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Batches of each client after the population; -1: until interrupted
    #[arg(short = 'c', long, default_value_t = -1, value_name = "N", allow_hyphen_values = true)]
    pub num_cycles: i64,
    /// End after this time
    #[arg(long, value_name = "SECONDS")]
    pub duration: Option<f64>,
    /// Each client goes through its share of the documents in order, instead of at random
    #[arg(long)]
    pub sequential: bool,
    /// Documents are popular by Zipf's law with this exponent, such as 0.99, instead of equally
    #[arg(long, value_name = "EXPONENT", conflicts_with = "sequential")]
    pub zipf: Option<f64>,
    /// Do not write every document once first
    #[arg(short = 'n', long, conflicts_with = "populate_only")]
    pub no_population: bool,
    /// End when every document was written once
    #[arg(long)]
    pub populate_only: bool,
    /// Documents of random bytes, which do not compress
    #[arg(short = 'R', long)]
    pub random_body: bool,
    /// Documents of JSON
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Operations per second, of all clients together
    #[arg(long, value_name = "N")]
    pub rate_limit: Option<u64>,
    /// Where a write must be before it is answered
    #[arg(long, value_enum, default_value_t = Durability::None, value_name = "LEVEL")]
    pub durability: Durability,
    /// Text in front of each key's 20 digits
    #[arg(short = 'p', long, default_value = "", value_name = "TEXT")]
    pub key_prefix: String,
    /// Number of the first document
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub start_at: u64,
    /// Seconds that written documents live; 0: for ever
    #[arg(short = 'e', long, default_value_t = 0, value_name = "SECONDS")]
    pub expiry: u32,
    /// A histogram of its own for population, reads and writes
    #[arg(short = 'T', long)]
    pub timings: bool,
    /// Write a summary as JSON
    #[arg(long, value_name = "FILE")]
    pub json_output: Option<PathBuf>,
    /// Which server
    #[command(flatten)]
    pub server: ServerArguments,
}

/// The durability levels, by the names of their documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Durability {
    /// In memory of the active node
    None,
    /// In memory of a majority
    Majority,
    /// The same, and on the disk of the active node
    #[value(alias = "majority_and_persist_on_master")]
    MajorityAndPersistToActive,
    /// On the disks of a majority
    PersistToMajority,
}

const HELP: &str = "\
First every document is written once (unless --no-population), then the clients read and write
batches until each has had --num-cycles of them, --duration is over, or SIGINT arrives. Temporary
failures are repeated after a moment, and counted. Then: throughput, errors, and a histogram of the
time from sending a batch to each of its answers.

Exit code: 0 when everything was answered with success or \"no such document\", 1 otherwise.

Examples:
  settee load -U couchbase://127.0.0.1:11210/default -u Administrator -P password
  settee load -u Administrator -P password --num-items 1000000 --populate-only
  settee load -u Administrator -P password --no-population --sequential --batch-size 1 \\
      --num-threads 2000 --set-pct 100 --min-size 512 --max-size 512 --random-body \\
      --durability persist_to_majority --num-cycles 100
  settee load --memcached --port 11211 --set-pct 10 --duration 30
  settee load -u Administrator -P password --rate-limit 5000 --json-output result.json";

impl LoadArguments {
    /// Independent pipelines in all.
    pub(super) fn client_count(&self) -> u64 {
        self.num_threads.saturating_mul(self.connections)
    }

    /// Says what makes no sense.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let sizes = self.min_size <= self.max_size && self.max_size <= VALUE_SIZE_MAX;
        ensure!(sizes, "--min-size and --max-size rise, to at most {VALUE_SIZE_MAX}");
        ensure!(self.set_pct <= 100, "--set-pct is at most 100");
        ensure!(self.num_items > 0, "--num-items is at least 1");
        ensure!(self.start_at.checked_add(self.num_items).is_some(), "--start-at is too large");
        let batches = 1..=BATCH_SIZE_MAX;
        ensure!(batches.contains(&self.batch_size), "--batch-size is 1 to {BATCH_SIZE_MAX}");
        let clients = 1..=CLIENTS_MAX;
        ensure!(clients.contains(&self.client_count()), "there are 1 to {CLIENTS_MAX} clients");
        ensure!(self.workers != Some(0), "--workers is at least 1");
        ensure!(self.rate_limit != Some(0), "--rate-limit is at least 1");
        let prefix_size_max = KEY_SIZE_MAX - DIGITS;
        let fits = self.key_prefix.len() <= prefix_size_max;
        ensure!(fits, "--key-prefix has at most {prefix_size_max} bytes");
        let exponent = self.zipf.unwrap_or(1.0);
        ensure!(exponent > 0.0 && exponent <= 10.0, "--zipf is above 0, at most 10");
        let seconds = self.duration.unwrap_or(1.0);
        ensure!(seconds > 0.0 && seconds < 1e9, "--duration is a time in seconds");
        Ok(())
    }
}

impl Durability {
    /// The level on the wire.
    pub(crate) fn level(self) -> Option<DurabilityLevel> {
        match self {
            Self::None => None,
            Self::Majority => Some(DurabilityLevel::Majority),
            Self::MajorityAndPersistToActive => Some(DurabilityLevel::MajorityAndPersistOnMaster),
            Self::PersistToMajority => Some(DurabilityLevel::PersistToMajority),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        load: LoadArguments,
    }

    fn parse(line: &str) -> LoadArguments {
        let command = Command::try_parse_from(line.split_whitespace()).unwrap();
        command.load.check().unwrap();
        command.load
    }

    #[test]
    fn command_lines_for_pillowfight_work_as_they_are() {
        let load = parse(
            "cbc-pillowfight -U couchbase://127.0.0.1:12000/default -u Administrator -P password \
             --batch-size=1 --num-items=200000 --min-size=512 --max-size=512 --random-body \
             --set-pct=100 --no-population --durability=persist_to_majority --num-threads=2000 \
             --sequential --num-cycles=100",
        );
        let target = load.server.target().unwrap();
        assert_eq!(target.nodes, [client::ServerAddress::new("127.0.0.1", 12000)]);
        assert_eq!(target.options.bucket.as_deref(), Some("default"));
        assert_eq!((load.batch_size, load.num_items, load.client_count()), (1, 200_000, 2_000));
        assert_eq!((load.min_size, load.max_size, load.set_pct), (512, 512, 100));
        assert!(load.random_body && load.no_population && load.sequential);
        assert_eq!(load.durability.level(), Some(DurabilityLevel::PersistToMajority));
        assert_eq!(load.num_cycles, 100);

        let load = parse(
            "cbc-pillowfight --spec couchbase://h --username a --password b -I 10 -B 5 -m 1 -M 2 \
             -r 50 -t 4 -c -1 -R -J -p key: --start-at 7 -e 60 -T --rate-limit 1000 \
             --populate-only --durability=majority_and_persist_to_active",
        );
        assert_eq!((load.num_items, load.batch_size, load.min_size, load.max_size), (10, 5, 1, 2));
        assert_eq!((load.set_pct, load.num_threads, load.num_cycles), (50, 4, -1));
        assert_eq!((&*load.key_prefix, load.start_at, load.expiry), ("key:", 7, 60));
        assert!(load.random_body && load.json && load.timings && load.populate_only);
        let level = Some(DurabilityLevel::MajorityAndPersistOnMaster);
        assert_eq!((load.rate_limit, load.durability.level()), (Some(1000), level));

        let load = parse("cbc-pillowfight");
        assert_eq!((load.num_items, load.batch_size, load.set_pct), (1_000, 100, 33));
        assert_eq!((load.min_size, load.max_size, load.num_threads), (50, 5_120, 1));
        assert_eq!((load.num_cycles, load.durability.level()), (-1, None));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "x --min-size 10 --max-size 9",
            "x --set-pct 101",
            "x --num-items 0",
            "x --batch-size 0",
            "x --num-threads 0",
            "x --num-threads 100000 --connections 2",
            "x --rate-limit 0",
            "x --duration 0",
            "x --workers 0",
            "x --max-size 20971521",
            "x --start-at 18446744073709551615",
            "x --zipf 0",
            "x --zipf 11",
        ] {
            let command = Command::try_parse_from(line.split_whitespace()).unwrap();
            assert!(command.load.check().is_err(), "{line}");
        }
        for line in ["x --durability=maybe", "x --populate-only --no-population", "x --lock"] {
            assert!(Command::try_parse_from(line.split_whitespace()).is_err(), "{line}");
        }
    }
}
