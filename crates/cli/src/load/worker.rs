//! One operating-system thread: any number of clients, driven by the readiness of their
//! connections.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::cluster_client::fetch_routing;
use client::{ClientError, Connection};
use platform::Instant;
use platform::network::{Poll, Readiness};

use super::counters::Counters;
use super::pipeline::{Loss, Pipeline, Work};
use super::rate_limiter::RateLimiter;
use super::toolbox::{Toolbox, client_and_node};

/// How often a worker looks whether it is to stop, and whether a server has gone silent.
const LOOK_AROUND_INTERVAL: Duration = Duration::from_millis(100);
/// How long answers are waited for after the end was called.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// A worker with its clients.
pub(super) struct Worker {
    poll: Poll,
    tools: Toolbox,
    pipelines: Vec<Pipeline>,
    /// Clients that wait to repeat operations.
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Clients that wait for the rate limiter, longest first.
    queue: VecDeque<usize>,
    limiter: Option<RateLimiter>,
    /// Clients that have not finished the phase.
    running: usize,
    stop: Arc<AtomicBool>,
    looked_around_at: Instant,
}

/// A part of the run.
pub(super) struct Phase {
    /// For each client of the worker.
    pub(super) work: Vec<Work>,
    pub(super) counters: Arc<Counters>,
    /// Operations per second of this worker.
    pub(super) rate: Option<f64>,
}

/// Takes what the system has to tell of fresh connections, which is that all of them can be written
/// to: in a phase each would cost a look, at a time when answers are measured.
fn forget_readiness(poll: &mut Poll) -> io::Result<()> {
    let mut ready = Vec::new();
    loop {
        poll.wait(&mut ready, Some(Duration::ZERO))?;
        if ready.is_empty() {
            return Ok(());
        }
    }
}

impl Worker {
    /// Connects `clients` clients to the first node of the map; the others are connected to when
    /// they are needed.
    pub(super) fn connect(
        mut poll: Poll,
        tools: Toolbox,
        clients: usize,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Loss> {
        let mut pipelines = Vec::with_capacity(clients);
        for index in 0..clients {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let mut pipeline = Pipeline::new(index);
            // All at once: connecting blocks, and must not when others wait for answers.
            pipeline.connect(0, &tools)?;
            for node in tools.map.nodes_in_use() {
                pipeline.connect(node, &tools)?;
            }
            pipelines.push(pipeline);
        }
        let looked_around_at = tools.clock.now();
        forget_readiness(&mut poll).map_err(|error| error.to_string())?;
        Ok(Self {
            poll,
            tools,
            pipelines,
            timers: BinaryHeap::new(),
            queue: VecDeque::new(),
            limiter: None,
            running: 0,
            stop,
            looked_around_at,
        })
    }

    /// Carries out a phase. An error is the machine's, not the server's.
    pub(super) fn run(&mut self, phase: Phase) -> io::Result<()> {
        let now = self.tools.clock.now();
        self.tools.counters = phase.counters;
        self.limiter = phase.rate.map(|rate| RateLimiter::new(rate, now));
        self.timers.clear();
        self.queue.clear();
        for (pipeline, work) in self.pipelines.iter_mut().zip(phase.work) {
            pipeline.is_waiting = false;
            pipeline.begin(work);
        }
        self.running = self.pipelines.iter().filter(|pipeline| !pipeline.is_finished()).count();
        for index in 0..self.pipelines.len() {
            self.advance(index, now);
        }
        let mut ready = Vec::new();
        let mut drain_until = None;
        while self.running > 0 {
            self.wait(&mut ready)?;
            for readiness in &ready {
                let (index, node) = client_and_node(readiness.token);
                self.on_ready(index, node, readiness.is_ending);
            }
            let now = self.tools.clock.now();
            self.fire_timers(now);
            self.serve_queue(now);
            if now.since(self.looked_around_at) >= LOOK_AROUND_INTERVAL {
                self.look_around(now, &mut drain_until);
            }
        }
        Ok(())
    }

    fn wait(&mut self, ready: &mut Vec<Readiness>) -> io::Result<()> {
        let now = self.tools.clock.now();
        let mut until = now.after(LOOK_AROUND_INTERVAL);
        if let Some(Reverse((due, _))) = self.timers.peek() {
            until = until.min(*due);
        }
        if let (Some(limiter), false) = (&self.limiter, self.queue.is_empty()) {
            until = until.min(limiter.free_at());
        }
        self.poll.wait(ready, Some(until.since(now)))
    }

    fn on_ready(&mut self, index: usize, node: usize, is_closing: bool) {
        let Some(pipeline) = self.pipelines.get_mut(index) else { return };
        match pipeline.on_ready(node, is_closing, &mut self.tools) {
            Ok(()) => {
                let now = self.tools.clock.now();
                self.advance(index, now);
            }
            Err(loss) => self.lose(index, loss),
        }
    }

    /// Finds out what a client does next.
    fn advance(&mut self, index: usize, now: Instant) {
        let pipeline = &mut self.pipelines[index];
        if pipeline.is_finished() || pipeline.is_waiting {
            return;
        }
        if let Some(due) = pipeline.batch().retry_at(now) {
            pipeline.is_waiting = true;
            self.timers.push(Reverse((due, index)));
        } else if pipeline.batch().is_done() {
            if self.limiter.is_some() {
                pipeline.is_waiting = true;
                self.queue.push_back(index);
                self.serve_queue(now);
            } else {
                self.start_batch(index, now);
            }
        }
    }

    fn start_batch(&mut self, index: usize, now: Instant) {
        let pipeline = &mut self.pipelines[index];
        if self.stop.load(Ordering::Relaxed) {
            pipeline.finish();
            self.running -= 1;
            return;
        }
        match pipeline.start_batch(&mut self.tools, now) {
            Ok(true) => {}
            Ok(false) => {
                pipeline.finish();
                self.running -= 1;
            }
            Err(loss) => self.lose(index, loss),
        }
    }

    /// Starts batches as long as the rate allows it.
    fn serve_queue(&mut self, now: Instant) {
        let batch_size = u64::from(self.tools.batch_size);
        while let Some(&index) = self.queue.front() {
            let allowed = self.limiter.as_mut().map(|limiter| limiter.take(batch_size, now));
            if let Some(Err(_)) = allowed {
                return;
            }
            self.queue.pop_front();
            self.pipelines[index].is_waiting = false;
            if !self.pipelines[index].is_finished() {
                self.start_batch(index, now);
            }
        }
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(Reverse((due, index))) = self.timers.peek().copied() {
            if due > now {
                return;
            }
            self.timers.pop();
            let pipeline = &mut self.pipelines[index];
            pipeline.is_waiting = false;
            if pipeline.is_finished() {
                continue;
            }
            if self.stop.load(Ordering::Relaxed) {
                // Behind the end nothing is asked again; what is under way is still waited for.
                pipeline.batch().forget_retries();
            }
            match pipeline.send_retries(&mut self.tools, now) {
                Ok(()) => self.advance(index, now),
                Err(loss) => self.lose(index, loss),
            }
        }
    }

    fn lose(&mut self, index: usize, loss: Loss) {
        let pipeline = &mut self.pipelines[index];
        let was_running = !pipeline.is_finished();
        let unanswered = pipeline.hang_up();
        self.tools.counters.count_loss(loss, unanswered);
        self.running -= usize::from(was_running);
    }

    fn look_around(&mut self, now: Instant, drain_until: &mut Option<Instant>) {
        self.looked_around_at = now;
        if self.tools.map.is_stale {
            self.fetch_map();
        }
        if self.stop.load(Ordering::Relaxed) {
            let until = *drain_until.get_or_insert(now.after(DRAIN_TIME));
            while let Some(index) = self.queue.pop_front() {
                self.pipelines[index].is_waiting = false;
                self.start_batch(index, now);
            }
            if now > until {
                self.lose_all("no answer before the end");
            }
        }
        let timeout = self.tools.options.timeout;
        for index in 0..self.pipelines.len() {
            if let Err(loss) = self.pipelines[index].check_silence(timeout, now) {
                self.lose(index, loss);
            }
        }
    }

    fn lose_all(&mut self, cause: &str) {
        for index in 0..self.pipelines.len() {
            if !self.pipelines[index].is_finished() {
                self.lose(index, cause.to_owned());
            }
        }
    }

    /// Asks for a new map. When that fails the operations will ask for it again.
    fn fetch_map(&mut self) {
        self.tools.map.is_stale = false;
        let node = self.tools.map.node(0).clone();
        let fetch = || -> Result<_, ClientError> {
            fetch_routing(&mut Connection::open(&node, &self.tools.options)?, &node)
        };
        if let Ok(Some(routing)) = fetch() {
            self.tools.map.learn(routing);
        }
    }
}
