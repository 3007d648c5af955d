//! `cargo xtask bench executor`: the executor pool beside its peers.
//!
//! In every cell the pools take turns, round by round, in an order that turns around with every
//! round.

use std::time::Duration;

use anyhow::Result;
use executor_benchmarks::benchmarks::idle::{self, Idle, IdleTimes};
use executor_benchmarks::benchmarks::tail::{self, Latencies, LongTasks};
use executor_benchmarks::benchmarks::{Benchmark, Cell};
use executor_benchmarks::contender::{BASE, Contender, InProcess};
use executor_benchmarks::folly;
use executor_benchmarks::foreign_load::{ForeignLoad, WARNING_SHARE};
use executor_benchmarks::options::{Command, Options};
use executor_benchmarks::pool_under_test::PoolThreads;
use executor_benchmarks::report::{self, Figure, Row, extremes, short};
use serde_json::{Value, json};

/// As the node has it.
#[global_allocator]
static ALLOCATOR: platform::allocator::Allocator = platform::allocator::Allocator;

/// The tail needs more time than the other benchmarks: its long tasks alone take 100 ms.
const TAIL_DURATION: Duration = Duration::from_secs(2);
const TAIL_DURATION_QUICK: Duration = Duration::from_millis(50);
const TAIL_QUANTILES: [(&str, f64); 3] =
    [("latency_p50", 0.5), ("latency_p99", 0.99), ("latency_p99.9", 0.999)];
const IDLE: IdleTimes = IdleTimes { bursts: 10, idle: Duration::from_secs(1) };
const IDLE_QUICK: IdleTimes = IdleTimes { bursts: 1, idle: Duration::from_millis(20) };

type MeasureTail = fn(LongTasks, Duration) -> Latencies;

struct Run {
    options: Options,
    contenders: Vec<Contender>,
    figures: Vec<Figure>,
}

fn main() -> Result<()> {
    platform::allocator::set_up();
    let options = match Command::parse(std::env::args().skip(1))? {
        Command::Measure(options) => options,
        Command::Help(usage) => {
            print!("{usage}");
            return Ok(());
        }
    };
    let folly = folly::find_and_build()?;
    let mut run = Run { options, contenders: Contender::all(folly), figures: Vec::new() };
    println!(
        "{} CPUs, {} rounds of {:?}, medians; Time is wall time / operations of all threads",
        platform::threads::available_cpus(),
        run.options.rounds,
        run.options.duration,
    );
    let load = ForeignLoad::begin()?;
    for benchmark in Benchmark::ALL {
        run.benchmark(benchmark)?;
    }
    run.tail()?;
    run.idle()?;
    let share = load.share()?;
    println!("\nother processes used {:.1} % of the machine", share * 100.0);
    if share > WARNING_SHARE {
        println!("WARNING: the machine was busy with something else; do not quote these figures");
    }
    report::append(run.options.json.as_deref(), &run.figures)
}

impl Run {
    fn benchmark(&mut self, benchmark: Benchmark) -> Result<()> {
        let mut cells = benchmark.cells(self.options.quick);
        cells.retain(|cell| self.contenders.iter().any(|pool| self.is_measured(pool, cell)));
        if cells.is_empty() {
            return Ok(());
        }
        println!("\n{}", report::heading());
        for cell in cells {
            self.cell(&cell)?;
        }
        for contender in &self.contenders {
            let name = format!("{}<{}>", benchmark.name(), contender.name());
            if !contender.takes_part(benchmark) && self.options.wants(&name) {
                println!("{name}: n/a");
            }
        }
        Ok(())
    }

    fn is_measured(&self, contender: &Contender, cell: &Cell) -> bool {
        let label = cell.label(contender.name());
        contender.takes_part(cell.benchmark) && self.options.wants(&label)
    }

    fn cell(&mut self, cell: &Cell) -> Result<()> {
        let options = &self.options;
        let contenders: Vec<&Contender> =
            self.contenders.iter().filter(|pool| self.is_measured(pool, cell)).collect();
        let mut rows: Vec<Row> = contenders
            .iter()
            .map(|contender| Row { contender: contender.name(), rounds: Vec::new() })
            .collect();
        let load = ForeignLoad::begin()?;
        for round in 0..options.rounds {
            for index in turns(round, contenders.len()) {
                let measured = contenders[index].measure(cell, options.duration)?;
                rows[index].rounds.extend(measured);
            }
        }
        let share = load.share()?;
        let base = rows.iter().find(|row| row.contender == BASE);
        for row in &rows {
            println!("{}", row.text(cell, base));
            self.figures.extend(row.figures(cell, share));
        }
        Ok(())
    }

    /// The pools of this process that offer `part`, which the filter wants.
    fn in_process<T>(
        &self,
        bench: &str,
        part: impl Fn(&InProcess) -> Option<T>,
    ) -> Vec<(&'static str, T)> {
        let offered = |contender: &Contender| match contender {
            Contender::InProcess(pool) => Some((contender.name(), part(pool)?)),
            Contender::Folly(_) => None,
        };
        let wanted = |name: &str| self.options.wants(&format!("{bench}<{name}>"));
        self.contenders.iter().filter_map(offered).filter(|(name, _)| wanted(name)).collect()
    }

    fn tail(&mut self) -> Result<()> {
        const BENCH: &str = "tail";
        let pools = self.in_process(BENCH, |pool| pool.tail);
        if pools.is_empty() {
            return Ok(());
        }
        println!("\nfrom schedule to run at half load, beside long tasks of so many kinds, us");
        println!(
            "{:<30} {:>10} {:>14} {:>14} {:>14} {:>22}",
            "", "tasks", "p50", "p99", "p99.9", "scheduled late p99"
        );
        for long_tasks in LongTasks::ALL {
            let load = ForeignLoad::begin()?;
            let measured = self.tail_rounds(&pools, long_tasks);
            let foreign_load = load.share()?;
            let long = long_tasks.kinds().len();
            for ((variant, _), rounds) in pools.iter().zip(measured) {
                print_tail(&format!("{BENCH}<{variant}>/long:{long}"), &rounds);
                for (metric, quantile) in TAIL_QUANTILES {
                    self.figures.push(Figure {
                        bench: BENCH,
                        variant,
                        params: params(tail::THREADS, &[("long", long)]),
                        metric,
                        unit: "us",
                        rounds: micros_at(&rounds, quantile),
                        foreign_load,
                    });
                }
                self.figures.push(Figure {
                    bench: BENCH,
                    variant,
                    params: params(tail::THREADS, &[("long", long)]),
                    metric: "scheduled_late_p99",
                    unit: "us",
                    rounds: late_p99(&rounds),
                    foreign_load,
                });
            }
        }
        Ok(())
    }

    /// All rounds of each pool.
    fn tail_rounds(
        &self,
        pools: &[(&'static str, MeasureTail)],
        long_tasks: LongTasks,
    ) -> Vec<Vec<Latencies>> {
        let duration = if self.options.quick { TAIL_DURATION_QUICK } else { TAIL_DURATION };
        let mut rounds = vec![Vec::new(); pools.len()];
        for round in 0..self.options.rounds {
            for index in turns(round, pools.len()) {
                let (_, measure) = pools[index];
                rounds[index].push(measure(long_tasks, duration));
            }
        }
        rounds
    }

    fn idle(&mut self) -> Result<()> {
        const BENCH: &str = "idle";
        let times = if self.options.quick { IDLE_QUICK } else { IDLE };
        let pools = self.in_process(BENCH, |pool| pool.idle);
        if pools.is_empty() {
            return Ok(());
        }
        println!(
            "\nCPU after the last task of a burst, us, {} bursts, median (max); wakeups in {:?} \
             without work",
            times.bursts, times.idle
        );
        let heading = ["its worker", "whole pool", "switches", "pool's count"];
        let [worker, pool, switches, count] = heading;
        println!("{:<24} {worker:>18} {pool:>18} {switches:>10} {count:>14}", "");
        for (variant, measure) in pools {
            let load = ForeignLoad::begin()?;
            let idle = measure(times);
            let foreign_load = load.share()?;
            print_idle(variant, &idle);
            let figure = |metric, unit, rounds| Figure {
                bench: BENCH,
                variant,
                params: params(idle::THREADS, &[]),
                metric,
                unit,
                rounds,
                foreign_load,
            };
            let seconds = times.idle.as_secs_f64();
            let per_second = |counted: u64| vec![counted as f64 / seconds];
            self.figures.extend([
                figure("worker_cpu_after_burst", "us", idle.worker_micros),
                figure("pool_cpu_after_burst", "us", idle.pool_micros),
                figure("idle_switches", "1/s", per_second(idle.switches)),
            ]);
            if let Some(wakeups) = idle.wakeups {
                self.figures.push(figure("idle_wakeups", "1/s", per_second(wakeups)));
            }
        }
        Ok(())
    }
}

/// The order in which `count` pools are measured in a round.
fn turns(round: usize, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

fn params(threads: PoolThreads, more: &[(&str, usize)]) -> Value {
    let mut params = json!({ "non_io": threads.non_io, "others": threads.others });
    for &(name, value) in more {
        params[name] = json!(value);
    }
    params
}

fn micros_at(rounds: &[Latencies], quantile: f64) -> Vec<f64> {
    rounds.iter().map(|latencies| latencies.micros_at(quantile)).collect()
}

fn late_p99(rounds: &[Latencies]) -> Vec<f64> {
    rounds.iter().map(|latencies| latencies.late_micros_at(0.99)).collect()
}

fn print_tail(name: &str, rounds: &[Latencies]) {
    let tasks: u64 = rounds.iter().map(Latencies::count).sum();
    let [p50, p99, p999] =
        TAIL_QUANTILES.map(|(_, quantile)| short(report::median(&micros_at(rounds, quantile))));
    let late = short(report::median(&late_p99(rounds)));
    println!("{name:<30} {tasks:>10} {p50:>14} {p99:>14} {p999:>14} {late:>22}");
}

fn print_idle(variant: &str, idle: &Idle) {
    let text = |values: &[f64]| {
        let (_, max) = extremes(values);
        format!("{} ({})", short(report::median(values)), short(max))
    };
    let wakeups = idle.wakeups.map_or("n/a".to_owned(), |wakeups| wakeups.to_string());
    println!(
        "{:<24} {:>18} {:>18} {:>10} {wakeups:>14}",
        format!("idle<{variant}>"),
        text(&idle.worker_micros),
        text(&idle.pool_micros),
        idle.switches,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_and_the_order_turns_around() {
        assert_eq!(turns(0, 3), [0, 1, 2]);
        assert_eq!(turns(1, 3), [2, 1, 0]);
    }
}
