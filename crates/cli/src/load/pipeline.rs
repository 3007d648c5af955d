//! One independent client: at most one batch under way.

use std::io;
use std::time::Duration;

use platform::Instant;
use protocol::Magic;

use super::batch::Batch;
use super::encoder::Variables;
use super::keys::KeySource;
use super::link::{Arrival, Link};
use super::toolbox::Toolbox;

/// A client. After an error it has finished.
#[derive(Debug)]
pub(super) struct Pipeline {
    index: usize,
    /// By number of the node.
    links: Vec<Option<Link>>,
    work: Option<Work>,
    batch: Batch,
    /// The worker will come back to it by itself.
    pub(super) is_waiting: bool,
}

/// What is left to do in a phase.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) keys: KeySource,
    /// `None`: without end.
    pub(super) batches_left: Option<u64>,
}

/// Why a client cannot go on.
pub(super) type Loss = String;

impl Pipeline {
    /// A client that is not connected yet. `index` is its number in the worker.
    pub(super) fn new(index: usize) -> Self {
        Self { index, links: Vec::new(), work: None, batch: Batch::default(), is_waiting: false }
    }

    /// Begins a phase. A client that has lost its connection stays finished.
    pub(super) fn begin(&mut self, work: Work) {
        self.work = (!self.links.is_empty()).then_some(work);
    }

    /// Whether it has nothing to do any more.
    pub(super) fn is_finished(&self) -> bool {
        self.work.is_none()
    }

    /// Ends the phase.
    pub(super) fn finish(&mut self) {
        self.work = None;
    }

    /// Hangs up. Returns how many operations have no outcome.
    pub(super) fn hang_up(&mut self) -> u64 {
        let unanswered = self.batch.open_count() as u64;
        self.links.clear();
        self.batch = Batch::default();
        self.finish();
        unanswered
    }

    /// Connects to a node, unless it has; blocks.
    pub(super) fn connect(&mut self, node: usize, tools: &Toolbox) -> Result<(), Loss> {
        if self.links.len() <= node {
            self.links.resize_with(node + 1, || None);
        }
        if self.links[node].is_none() {
            let link = tools.open_link(self.index, node).map_err(|error| error.to_string())?;
            self.links[node] = Some(link);
        }
        Ok(())
    }

    /// Sends the next batch. `false`: there is none.
    pub(super) fn start_batch(&mut self, tools: &mut Toolbox, now: Instant) -> Result<bool, Loss> {
        let Some(Work { keys, batches_left }) = &mut self.work else { return Ok(false) };
        if *batches_left == Some(0) {
            return Ok(false);
        }
        *batches_left = batches_left.map(|left| left - 1);
        let is_once = matches!(keys, KeySource::Once { .. });
        self.batch.start(now);
        for _ in 0..tools.batch_size {
            let work = self.work.as_mut().expect("there was work a moment ago");
            let Some(item) = work.keys.next(&mut tools.random) else { break };
            let is_set = is_once || tools.random.below(100) < tools.set_pct;
            let opaque = self.batch.add(item, is_set);
            self.encode(opaque, item, is_set, tools)?;
        }
        self.flush(tools)?;
        Ok(!self.batch.is_done())
    }

    /// Sends again what failed for a moment.
    pub(super) fn send_retries(&mut self, tools: &mut Toolbox, now: Instant) -> Result<(), Loss> {
        while let Some((opaque, operation)) = self.batch.take_retry(now) {
            self.encode(opaque, operation.item, operation.is_set, tools)?;
        }
        self.flush(tools)
    }

    /// Its connection to a node is ready for something: sends and receives what is possible.
    /// `is_closing`: the system has said that the other side hung up.
    pub(super) fn on_ready(
        &mut self,
        node: usize,
        is_closing: bool,
        tools: &mut Toolbox,
    ) -> Result<(), Loss> {
        let Self { links, batch, .. } = self;
        let Some(Some(link)) = links.get_mut(node) else { return Ok(()) };
        let end = if is_closing { Arrival::Nothing } else { Arrival::Last };
        exchange(link, batch, node, end, tools).map_err(|error| describe(&error, node, tools))
    }

    /// The batch under way.
    pub(super) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Says that answers are missing, if they are.
    pub(super) fn check_silence(&self, timeout: Duration, now: Instant) -> Result<(), Loss> {
        if self.batch.is_silent_for(timeout, now) {
            return Err(format!("no answer for {timeout:?}"));
        }
        Ok(())
    }

    fn encode(
        &mut self,
        opaque: u32,
        item: u64,
        is_set: bool,
        tools: &mut Toolbox,
    ) -> Result<(), Loss> {
        let (vbucket, node) = tools.map.route(tools.names.write(item));
        if !matches!(self.links.get(node), Some(Some(_))) {
            self.connect(node, tools)?;
        }
        let Some(Some(link)) = self.links.get_mut(node) else {
            unreachable!("the client has just connected to this node");
        };
        let Toolbox { names, encoder, values, random, .. } = tools;
        let variables = Variables { vbucket, opaque, name: names.last() };
        let out = link.requests();
        if is_set {
            encoder.set(variables, out, |out| values.append(random, out));
        } else {
            encoder.get(variables, out);
        }
        Ok(())
    }

    fn flush(&mut self, tools: &Toolbox) -> Result<(), Loss> {
        for (node, link) in self.links.iter_mut().enumerate() {
            if let Some(link) = link {
                link.flush().map_err(|error| describe(&error, node, tools))?;
            }
        }
        Ok(())
    }
}

/// Sends, and reads until `end`. A read that leaves room has taken all that had arrived, so that
/// the system will tell of what comes later; but not of an end of the stream that it told of with
/// the bytes before it.
fn exchange(
    link: &mut Link,
    batch: &mut Batch,
    node: usize,
    end: Arrival,
    tools: &mut Toolbox,
) -> io::Result<()> {
    link.flush()?;
    loop {
        let arrival = link.fill()?;
        let now = tools.clock.now();
        while let Some(frame) = link.next_frame()? {
            if frame.header.magic != Magic::ServerRequest {
                batch.complete(&frame, node, now, tools)?;
            }
        }
        if arrival == Arrival::Nothing || arrival == end {
            return Ok(());
        }
    }
}

fn describe(error: &io::Error, node: usize, tools: &Toolbox) -> Loss {
    let address = tools.map.node(node);
    match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("{address} hung up"),
        _ => format!("{address}: {error}"),
    }
}
