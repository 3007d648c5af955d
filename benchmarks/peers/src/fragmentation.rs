//! A node that grows, shrinks, and grows again with documents of other sizes.
//!
//! The hard case for an allocator without compaction: what is left of the first documents keeps
//! every page of theirs occupied, and the later documents are too large for the gaps.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use platform::Random;

use crate::couchbase::statistic;
use crate::dialect::{Dialect, Operation};
use crate::load::{Values, key};
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
const BATCH: usize = 64;
/// Time in which the node may clean up after a phase.
const SETTLE: Duration = Duration::from_secs(30);
const SETTLE_QUICK: Duration = Duration::from_secs(2);

/// The node after one phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What has happened.
    pub name: &'static str,
    /// What the process occupies.
    pub resident_bytes: u64,
    /// What its bucket says it uses.
    pub used_bytes: u64,
}

impl Phase {
    /// What is occupied for each byte that is used.
    pub fn ratio(&self) -> f64 {
        self.resident_bytes as f64 / self.used_bytes as f64
    }
}

/// Runs the workload once.
pub fn measure(options: &Options) -> Result<Vec<Phase>> {
    let quick = options.quick;
    let server = Server::start(Program::Settee, &options.server_cores)?;
    let mut client = Client::connect(&server)?;
    let mut random = Random::from_seed(1);
    let grown_bytes = if quick { GROWN_BYTES_QUICK } else { GROWN_BYTES };
    let mut phases = Vec::new();
    let mut note = |name, client: &mut Client, settle| -> Result<()> {
        server.wait_until_flushed()?;
        std::thread::sleep(settle);
        let used_bytes = client.used_bytes()?;
        phases.push(Phase { name, resident_bytes: resident_bytes(server.pid())?, used_bytes });
        Ok(())
    };
    let settle = if quick { SETTLE_QUICK } else { SETTLE };
    client.grow(grown_bytes, FIRST_SIZES, &mut random)?;
    note("grown", &mut client, SETTLE_QUICK)?;
    client.shrink(&mut random)?;
    note("shrunk", &mut client, SETTLE_QUICK)?;
    note("shrunk, settled", &mut client, settle)?;
    client.grow(grown_bytes, LATER_SIZES, &mut random)?;
    note("grown again", &mut client, SETTLE_QUICK)?;
    note("grown again, settled", &mut client, settle)?;
    Ok(phases)
}

struct Client {
    stream: TcpStream,
    /// Documents ever stored.
    count: usize,
    value: Vec<u8>,
    requests: Vec<u8>,
    waiting: usize,
    received: Vec<u8>,
}

impl Client {
    fn connect(server: &Server) -> Result<Self> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let (requests, received) = (Vec::new(), Vec::new());
        Ok(Self {
            stream,
            count: 0,
            value: Values::Incompressible.of(1 << 16),
            requests,
            waiting: 0,
            received,
        })
    }

    /// Stores new documents until this many bytes are used.
    fn grow(&mut self, used_bytes: u64, sizes: (f64, f64), random: &mut Random) -> Result<()> {
        let started = Instant::now();
        while self.used_bytes()? < used_bytes {
            for _ in 0..BATCH * 20 {
                let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
                let size = (sizes.0 + (sizes.1 - sizes.0) * share).exp2() as usize;
                self.ask(Operation::Set, self.count, size)?;
                self.count += 1;
            }
            self.finish()?;
            ensure!(started.elapsed() < Duration::from_secs(120), "the node does not grow");
        }
        Ok(())
    }

    /// Deletes all but some documents, chosen by lot.
    fn shrink(&mut self, random: &mut Random) -> Result<()> {
        for index in 0..self.count {
            if random.below(100) >= LEFT_PERCENT {
                self.ask(Operation::Delete, index, 0)?;
            }
        }
        self.finish()
    }

    fn used_bytes(&mut self) -> Result<u64> {
        Ok(statistic(&mut self.stream, "mem_used")?.parse()?)
    }

    fn ask(&mut self, operation: Operation, index: usize, size: usize) -> Result<()> {
        let key = key(index);
        Dialect::Memcached.encode(operation, &key, &self.value[..size], &mut self.requests);
        self.waiting += 1;
        if self.waiting == BATCH { self.finish() } else { Ok(()) }
    }

    /// Sends what is there and takes the answers.
    fn finish(&mut self) -> Result<()> {
        self.stream.write_all(&self.requests)?;
        self.requests.clear();
        self.received.clear();
        while self.waiting > 0 {
            let mut buffer = [0; 8192];
            let size = self.stream.read(&mut buffer)?;
            ensure!(size > 0, "the node closed the connection");
            self.received.extend_from_slice(&buffer[..size]);
            while let Some(response) = Dialect::Memcached.parse(&self.received) {
                ensure!(response.is_success, "the node refuses");
                self.received.drain(..response.size);
                self.waiting -= 1;
            }
        }
        Ok(())
    }
}
