//! `settee load`: a load generator with cbc-pillowfight's options.
//!
//! ```text
//! main thread: progress, summary
//!   worker (one OS thread): poll, routing map, rate limiter, encoder     x --workers
//!     pipeline (a client): one batch under way                           x --num-threads
//!       link (a connection): send and receive buffers                    x nodes
//! ```
//!
//! Nothing is allocated per operation: requests are copied from templates into the links' buffers,
//! bodies are cut from a pool, and outcomes are counters.

mod arguments;
mod batch;
mod counters;
mod crew;
mod encoder;
mod keys;
mod link;
mod pipeline;
mod progress;
mod rate_limiter;
mod summary;
mod toolbox;
mod values;
mod worker;
mod zipf;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use client::cluster_client::fetch_routing;
use client::{Connection, ConnectionOptions, Routing};
use platform::network::{Network, Poll};
use platform::{Clock, Entropy, Files, Random};
use protocol::client::Request;
use protocol::{FeatureSet, Opcode, Status};
use serde_json::json;

pub use arguments::{Durability, LoadArguments};

use crate::output::{note, print};
use crate::timings::COLUMNS_DEFAULT;
use counters::{Counters, Totals};
use crew::{Crew, Recruit};
use encoder::{Encoder, WriteOptions};
use keys::{ItemRange, KeySource, NameWriter};
use pipeline::Work;
use progress::Progress;
use summary::PhaseSummary;
use toolbox::{NodeMap, Toolbox};
use values::{ValueShape, ValueSource};
use worker::Phase;
use zipf::Zipf;

/// Workers unless the user says how many: more rarely help one server on the same machine.
const WORKERS_DEFAULT_MAX: usize = 4;
/// How often the main thread looks at the time and at the signals.
const TICK: Duration = Duration::from_millis(100);

/// Runs the tool.
pub fn run(arguments: &LoadArguments) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let stop = platform::process::termination_flag()?;
    platform::process::raise_open_files_limit();
    let load = Load::connect(arguments, stop)?;
    let mut summaries = Vec::new();
    if !arguments.no_population {
        summaries.push(load.run_phase("population")?);
    }
    let may_go_on = summaries.iter().all(|summary| summary.totals.losses.is_empty());
    if !arguments.populate_only && may_go_on && !load.stop.load(Ordering::Relaxed) {
        summaries.push(load.run_phase("mixed")?);
    }
    load.report(&summaries)
}

/// A run.
struct Load<'a> {
    arguments: &'a LoadArguments,
    clock: Clock,
    stop: Arc<AtomicBool>,
    crew: Crew,
}

/// What the first connection taught.
struct Server {
    options: ConnectionOptions,
    routing: Routing,
    features: FeatureSet,
}

/// A server that lets nobody in without a login refuses everything: better said once.
fn check_access(connection: &mut Connection) -> anyhow::Result<()> {
    let answer = connection.call(&Request::new(Opcode::Noop))?;
    ensure!(
        answer.status() != Some(Status::Eaccess),
        "the server wants a login: give --password, and --user if it is not Administrator"
    );
    Ok(())
}

impl<'a> Load<'a> {
    fn connect(arguments: &'a LoadArguments, stop: Arc<AtomicBool>) -> anyhow::Result<Self> {
        let target = arguments.server.target()?;
        ensure!(target.options.tls.is_none(), "load is put on a node without TLS; leave it out");
        let (node, mut connection) = target.connect()?;
        check_access(&mut connection)?;
        let routing = fetch_routing(&mut connection, &node)?;
        let server = Server {
            routing: routing.unwrap_or_else(|| Routing::single(node)),
            features: connection.features(),
            options: target.options,
        };
        drop(connection);
        let clients = usize::try_from(arguments.client_count()).unwrap_or(usize::MAX);
        let cpus = platform::threads::available_cpus().min(WORKERS_DEFAULT_MAX);
        let workers = arguments.workers.unwrap_or(cpus).min(clients);
        let mut random = Entropy::real().random();
        let values = ValueSource::new(shape(arguments), &mut random);
        let mut recruits = Vec::new();
        for worker in 0..workers {
            let poll = Network::real().poll()?;
            let random = Random::from_seed(random.next_u64());
            let tools = toolbox(arguments, &server, &poll, random, values.clone())?;
            let share = clients * (worker + 1) / workers - clients * worker / workers;
            recruits.push(Recruit { poll, tools, clients: share });
        }
        let crew = Crew::hire(recruits, &stop)?;
        crew.wait(TICK, || ())?;
        Ok(Self { arguments, clock: Clock::real(), stop, crew })
    }

    fn run_phase(&self, name: &'static str) -> anyhow::Result<PhaseSummary> {
        let is_population = name == "population";
        let counts = self.crew.client_counts();
        let counters: Vec<_> = counts.iter().map(|_| Arc::new(Counters::new())).collect();
        let started_at = self.clock.now();
        let mut first = 0;
        let mut phases = Vec::new();
        for (clients, counters) in counts.iter().zip(&counters) {
            let clients = *clients as u64;
            let work = (first..first + clients).map(|client| self.work(client, is_population));
            let share = clients as f64 / self.arguments.client_count() as f64;
            let rate = self.arguments.rate_limit.map(|rate| rate as f64 * share);
            phases.push(Phase { work: work.collect(), counters: counters.clone(), rate });
            first += clients;
        }
        self.crew.begin(phases);
        let goal = is_population.then_some(self.arguments.num_items);
        let mut progress = Progress::new(name, goal.or(self.mixed_goal()), started_at);
        let time = self.arguments.duration.filter(|_| !is_population);
        let end = time.map(|seconds| started_at.after(Duration::from_secs_f64(seconds)));
        let totals = || Totals::of(counters.iter().map(Arc::as_ref));
        self.crew.wait(TICK, || {
            let now = self.clock.now();
            progress.show(totals, now);
            if end.is_some_and(|end| now >= end) {
                self.stop.store(true, Ordering::Relaxed);
            }
        })?;
        progress.end();
        Ok(PhaseSummary { name, elapsed: self.clock.now().since(started_at), totals: totals() })
    }

    fn work(&self, client: u64, is_population: bool) -> Work {
        let clients = self.arguments.client_count();
        let whole = ItemRange { first: self.arguments.start_at, count: self.arguments.num_items };
        if is_population {
            let range = whole.share(client, clients);
            return Work { keys: KeySource::Once { range, done: 0 }, batches_left: None };
        }
        let keys = if self.arguments.sequential {
            KeySource::Cycle { range: whole.share_of_some(client, clients), done: 0 }
        } else if let Some(exponent) = self.arguments.zipf {
            KeySource::Zipf { range: whole, zipf: Zipf::new(whole.count, exponent) }
        } else {
            KeySource::Random { range: whole }
        };
        Work { keys, batches_left: u64::try_from(self.arguments.num_cycles).ok() }
    }

    fn mixed_goal(&self) -> Option<u64> {
        let cycles = u64::try_from(self.arguments.num_cycles).ok()?;
        let batches = cycles.checked_mul(self.arguments.client_count())?;
        batches.checked_mul(self.arguments.batch_size.into())
    }

    fn report(&self, summaries: &[PhaseSummary]) -> anyhow::Result<ExitCode> {
        let columns = platform::terminal::stdout_columns().unwrap_or(COLUMNS_DEFAULT);
        let texts = summaries.iter().map(|summary| {
            let is_shown = summary.name != "population" || self.arguments.timings;
            let is_last = summaries.last().is_some_and(|last| last.name == summary.name);
            if is_shown || is_last {
                summary.render(self.arguments.timings, columns.into())
            } else {
                let whole = summary.render(false, columns.into());
                whole.split("\n\n").next().map_or_else(String::new, |head| format!("{head}\n"))
            }
        });
        print(&texts.collect::<Vec<_>>().join("\n"))?;
        if let Some(path) = &self.arguments.json_output {
            let phases: Vec<_> = summaries.iter().map(PhaseSummary::to_json).collect();
            let text = format!("{:#}\n", json!({ "phases": phases }));
            platform::files::RealFiles.replace_all(path, text.as_bytes())?;
        }
        let is_good = summaries.iter().all(|summary| summary.totals.is_good());
        if !is_good {
            note("not everything succeeded\n");
        }
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn shape(arguments: &LoadArguments) -> ValueShape {
    ValueShape {
        size_min: arguments.min_size,
        size_max: arguments.max_size,
        is_random: arguments.random_body,
        is_json: arguments.json,
    }
}

fn toolbox(
    arguments: &LoadArguments,
    server: &Server,
    poll: &Poll,
    random: Random,
    values: ValueSource,
) -> anyhow::Result<Toolbox> {
    let names = NameWriter::new(&arguments.key_prefix);
    // 65535 means something else; see `DurabilityRequirement::timeout_ms`.
    let timeout_ms = server.options.timeout.as_millis().clamp(1, u128::from(u16::MAX) - 1);
    let write = WriteOptions {
        durability: arguments.durability.level(),
        durability_timeout_ms: u16::try_from(timeout_ms).unwrap_or(u16::MAX - 1),
        expiry: arguments.expiry,
        is_json: arguments.json,
    };
    Ok(Toolbox {
        clock: Clock::real(),
        random,
        encoder: Encoder::new(server.features, write, names.size())?,
        names,
        values,
        map: NodeMap::new(server.routing.clone()),
        counters: Arc::new(Counters::new()),
        set_pct: arguments.set_pct.into(),
        batch_size: arguments.batch_size,
        retry_for: server.options.timeout,
        registry: poll.registry()?,
        options: server.options.clone(),
    })
}
