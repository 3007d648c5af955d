//! A node that grows, shrinks, and grows again with documents of other sizes.
//!
//! The hard case for an allocator without compaction: what is left of the first documents keeps
//! every page of theirs occupied, and the later documents are too large for the gaps.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use platform::Random;

use crate::batch_client::{BATCH, BatchClient, log_uniform_size};
use crate::dialect::{Dialect, Operation};
use crate::load::Target;
use crate::options::Options;
use crate::process_stat::resident_bytes;
use crate::servers::{Program, Server};

/// Bytes that the documents use when the node has grown.
const GROWN_BYTES: u64 = 300_000_000;
const GROWN_BYTES_QUICK: u64 = 20_000_000;
/// Of all documents, how many are left by shrinking, in percent.
const LEFT_PERCENT: u64 = 25;
/// Values are 2^n to 2^m bytes, logarithmically uniform.
const FIRST_SIZES: (f64, f64) = (4.0, 12.0);
const LATER_SIZES: (f64, f64) = (6.0, 13.0);
/// Time in which the node may clean up after a phase.
const SETTLE: Duration = Duration::from_secs(30);
const SETTLE_QUICK: Duration = Duration::from_secs(2);

/// The node after one phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What has happened.
    pub name: String,
    /// What the process occupies.
    pub resident_bytes: u64,
    /// What its bucket says it uses.
    pub used_bytes: u64,
}

impl Phase {
    /// Now.
    pub(crate) fn take(name: String, server: &Server, client: &mut BatchClient) -> Result<Self> {
        let used_bytes = client.used_bytes()?;
        Ok(Self { name, resident_bytes: resident_bytes(server.pid())?, used_bytes })
    }

    /// What is occupied for each byte that is used.
    pub fn ratio(&self) -> f64 {
        self.resident_bytes as f64 / self.used_bytes as f64
    }
}

/// Runs the workload once.
pub fn measure(options: &Options) -> Result<Vec<Phase>> {
    let quick = options.quick;
    let server = Server::start(Program::Settee, &options.server_cores)?;
    let target = Target::plain(server.address, Dialect::Memcached, None);
    let mut documents = Documents { client: BatchClient::connect(&target)?, count: 0 };
    let mut random = Random::from_seed(1);
    let grown_bytes = if quick { GROWN_BYTES_QUICK } else { GROWN_BYTES };
    let mut phases = Vec::new();
    let mut note = |name: &str, documents: &mut Documents, settle| -> Result<()> {
        server.wait_until_flushed()?;
        std::thread::sleep(settle);
        phases.push(Phase::take(name.to_owned(), &server, &mut documents.client)?);
        Ok(())
    };
    let settle = if quick { SETTLE_QUICK } else { SETTLE };
    documents.grow(grown_bytes, FIRST_SIZES, &mut random)?;
    note("grown", &mut documents, SETTLE_QUICK)?;
    documents.shrink(&mut random)?;
    note("shrunk", &mut documents, SETTLE_QUICK)?;
    note("shrunk, settled", &mut documents, settle)?;
    documents.grow(grown_bytes, LATER_SIZES, &mut random)?;
    note("grown again", &mut documents, SETTLE_QUICK)?;
    note("grown again, settled", &mut documents, settle)?;
    Ok(phases)
}

struct Documents {
    client: BatchClient,
    /// Ever stored.
    count: usize,
}

impl Documents {
    /// Stores new documents until this many bytes are used.
    fn grow(&mut self, used_bytes: u64, sizes: (f64, f64), random: &mut Random) -> Result<()> {
        let started = Instant::now();
        while self.client.used_bytes()? < used_bytes {
            for _ in 0..BATCH * 20 {
                let size = log_uniform_size(sizes, random);
                self.client.ask(Operation::Set, self.count, size)?.none()?;
                self.count += 1;
            }
            self.client.finish()?.none()?;
            ensure!(started.elapsed() < Duration::from_secs(120), "the node does not grow");
        }
        Ok(())
    }

    /// Deletes all but some documents, chosen by lot.
    fn shrink(&mut self, random: &mut Random) -> Result<()> {
        for index in 0..self.count {
            if random.below(100) >= LEFT_PERCENT {
                self.client.ask(Operation::Delete, index, 0)?.none()?;
            }
        }
        self.client.finish()?.none()
    }
}
