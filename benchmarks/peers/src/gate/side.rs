//! The node of one commit and the connections to it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::dialect::Operation;
use crate::gate::cost::{CostCounter, TurnCost};
use crate::gate::steps::{Step, Way};
use crate::generator::Generator;
use crate::load::{Target, Values, key};
use crate::perf_count::{PerfCount, PerfEvent};
use crate::servers::Server;

/// A few, as an application's threads would have.
const CONNECTIONS: usize = 8;
/// After a turn of writes, as part of it: two flush rounds of 50 ms begin in this time, and what
/// they cost belongs to the writes.
const FLUSHED_AFTER: Duration = Duration::from_millis(120);
/// A node that has not answered after this time does not know what it was asked.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// A running node.
pub struct Side {
    server: Server,
    /// Of the ways that have been spoken so far.
    generators: Vec<(Way, Generator)>,
    /// Documents that steps read and write.
    key_count: usize,
}

impl Side {
    /// Starts the node on these CPUs and returns when it serves.
    pub fn start(binary: &Path, cores: &[usize], key_count: usize) -> Result<Self> {
        let server = Server::start_node(binary, cores)?;
        Ok(Self { server, generators: Vec::new(), key_count })
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Why this way of speaking is none to this node: what it answers to a write. None if it is
    /// one.
    pub fn objection(&self, way: Way) -> Result<Option<String>> {
        let mut stream = self.target(way)?.connect()?;
        let mut request = Vec::new();
        way.dialect.encode(Operation::Set, &key(0), &Values::Incompressible.of(1), &mut request);
        stream.write_all(&request)?;
        let Some(response) = first_response(&mut stream, way)? else {
            return Ok(Some("the node does not answer".to_owned()));
        };
        if way.dialect.parse(&response).is_some_and(|response| response.is_success) {
            return Ok(None);
        }
        let shown = way.dialect.shown(&response);
        ensure!(way.dialect.says_unknown(&response), "the node refuses {}: {shown}", way.name);
        Ok(Some(format!("the node answers {shown}")))
    }

    /// Connects, and stores and reads all documents of a step.
    pub fn prepare(&mut self, step: &Step) -> Result<()> {
        let key_count = self.key_count;
        let generator = self.generator(step.way)?;
        generator.populate(key_count, step.cell.value_bytes)?;
        generator.read_back(key_count)?;
        self.server.wait_until_flushed()
    }

    /// What requests of this step cost the node.
    pub fn turn(&mut self, step: &Step, counter: CostCounter) -> Result<TurnCost> {
        let pid = self.pid();
        let cost = counter.measure(pid, step.requests, || self.ask(step))?;
        self.server.wait_until_flushed()?;
        Ok(cost)
    }

    /// System calls of the node for one request. None where they cannot be counted.
    pub fn count_syscalls(&mut self, step: &Step) -> Result<Option<f64>> {
        let Some(count) = PerfCount::start(PerfEvent::Syscalls, self.pid()) else {
            return Ok(None);
        };
        self.ask(step)?;
        let counted = count.finish()?;
        self.server.wait_until_flushed()?;
        Ok(counted.map(|count| count as f64 / step.requests as f64))
    }

    fn ask(&mut self, step: &Step) -> Result<()> {
        let key_count = self.key_count;
        self.generator(step.way)?.ask(&step.cell, key_count, step.requests)?;
        if step.cell.operation != Operation::Get {
            std::thread::sleep(FLUSHED_AFTER);
        }
        Ok(())
    }

    fn generator(&mut self, way: Way) -> Result<&mut Generator> {
        if !self.generators.iter().any(|(known, _)| *known == way) {
            let generator = Generator::connect(&self.target(way)?, CONNECTIONS)?;
            self.generators.push((way, generator));
        }
        let found = self.generators.iter_mut().find(|(known, _)| *known == way);
        found.map(|(_, generator)| generator).context("it was connected just now")
    }

    fn target(&self, way: Way) -> Result<Target> {
        let dialect = way.dialect;
        if !way.is_data_port {
            return Ok(Target::plain(self.server.address, dialect, None));
        }
        let (address, login) = self.server.data_port.clone().context("no data port")?;
        Ok(Target::plain(address, dialect, Some(login)))
    }
}

/// None if the node closes the connection or says nothing.
fn first_response(stream: &mut TcpStream, way: Way) -> Result<Option<Vec<u8>>> {
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while way.dialect.parse(&received).is_none() {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(size) => received.extend_from_slice(&buffer[..size]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::ConnectionReset => return Ok(None),
                _ => return Err(error.into()),
            },
        }
    }
    Ok(Some(received))
}
