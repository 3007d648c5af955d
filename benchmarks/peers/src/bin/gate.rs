//! What a request costs the node, beside the node of another commit; fails when it costs more.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use peers::gate::comparison::Whose;
use peers::gate::cost::CostCounter;
use peers::gate::options::GateOptions;
use peers::gate::other_binary::OtherBinary;
use peers::gate::report;
use peers::gate::side::Side;
use peers::gate::steps::{Step, groups};
use peers::gate::verdict::{StepCost, StepResult};
use peers::machine::load_average;
use peers::servers::{generator_core, pin_thread, settee_binary};
use serde_json::json;

const KEYS: usize = 10_000;
const KEYS_QUICK: usize = 500;
/// What a turn of a smoke test has of the requests.
const QUICK_SHARE: usize = 100;
/// Turns in which system calls are counted, which slows a node: their share of the requests, and
/// their number, for a count scatters less than a time.
const SYSCALL_SHARE: usize = 4;
const SYSCALL_TURNS: usize = 5;

/// The gate itself keeps two CPUs busy, and the node's flushers and its disk a little more.
const LOAD_MAX: f64 = 3.5;

/// The two nodes while they are compared.
struct Gate<'a> {
    options: &'a GateOptions,
    counter: CostCounter,
    before: Side,
    now: Side,
}

fn main() -> Result<ExitCode> {
    let options = GateOptions::from_command_line()?;
    let now = settee_binary()?;
    let before = OtherBinary::find(options.against.as_deref())?;
    pin_thread(&[generator_core()])?;
    println!("before: {}\nnow:    {}", before.name, now.display());
    let started = Instant::now();
    let mut gate = Gate::start(&options, &before.path, &now)?;
    let counter = gate.counter;
    println!("cost:   {}; bytes allocated have no counter\n", counter.source());
    println!("{}", report::head(counter));
    let first = gate.measure(|step| step.name().contains(&options.only))?;
    drop(gate);
    ensure!(!first.is_empty(), "no step is called like {:?}", options.only);
    // A smoke test has measured nothing that could be judged.
    let suspects = if options.quick { Vec::new() } else { names_of_dearer(&first, options.limit) };
    let mut second = Vec::new();
    if !suspects.is_empty() {
        println!("\nagain, with new processes, what seemed dearer:");
        let mut gate = Gate::start(&options, &before.path, &now)?;
        second = gate.measure(|step| suspects.contains(&step.name().as_str()))?;
    }
    let load = load_average()?;
    println!("\n{:.0} s, load average {load:.1}", started.elapsed().as_secs_f64());
    for result in second.iter().filter(|result| result.is_dearer(options.limit)) {
        println!("dearer: {}", result.words(counter, options.limit));
    }
    let dearer = names_of_dearer(&second, options.limit);
    if options.quick {
        println!("a smoke test judges nothing");
    } else if dearer.is_empty() {
        println!("no step became dearer than {:.3} times what it was", options.limit);
    }
    if load > LOAD_MAX {
        println!("the machine had other work, which the nodes feel unlike: measure once more");
    }
    let document = json!({
        "before": before.name,
        "now": now.display().to_string(),
        "cost_unit": counter.unit(),
        "load_average": load,
        "limit": options.limit,
        "quick": options.quick,
        "steps": report::json(&first, options.limit),
        "again": report::json(&second, options.limit),
        "dearer": dearer,
    });
    report::write(options.json.as_deref(), &document)?;
    Ok(if dearer.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn names_of_dearer(results: &[StepResult], limit: f64) -> Vec<&str> {
    let dearer = results.iter().filter(|result| result.is_dearer(limit));
    dearer.map(|result| result.name.as_str()).collect()
}

impl<'a> Gate<'a> {
    fn start(options: &'a GateOptions, before: &Path, now: &Path) -> Result<Self> {
        let key_count = if options.quick { KEYS_QUICK } else { KEYS };
        let start = |binary| Side::start(binary, &options.server_cores, key_count);
        let (before, now) = (start(before)?, start(now)?);
        Ok(Self { options, counter: CostCounter::choose(now.pid())?, before, now })
    }

    /// Measures chosen steps, and prints each group when it is done.
    fn measure(&mut self, is_chosen: impl Fn(&Step) -> bool) -> Result<Vec<StepResult>> {
        let mut results = Vec::new();
        for group in groups() {
            let steps: Vec<Step> = group.into_iter().filter(&is_chosen).collect();
            let of_group = self.measure_group(steps)?;
            for result in &of_group {
                println!("{}", report::row(result, self.options.limit));
            }
            results.extend(of_group);
        }
        Ok(results)
    }

    fn measure_group(&mut self, mut steps: Vec<Step>) -> Result<Vec<StepResult>> {
        let mut costs = Vec::new();
        for step in &mut steps {
            if self.options.quick {
                step.requests /= QUICK_SHARE;
            }
            let objection = self.objection(step)?;
            if objection.is_none() {
                self.before.prepare(step)?;
                self.now.prepare(step)?;
            }
            costs.push(objection.map_or(Ok(StepCost::default()), Err));
        }
        for turn in 0..self.options.turns {
            self.each(turn, &steps, &mut costs, Self::turn)?;
        }
        for turn in 0..SYSCALL_TURNS.min(self.options.turns) {
            self.each(turn, &steps, &mut costs, Self::count_syscalls)?;
        }
        let result = |(step, outcome): (&Step, _)| StepResult { name: step.name(), outcome };
        Ok(steps.iter().zip(costs).map(result).collect())
    }

    /// Lets both nodes do something for each step, the one first, then the other first.
    fn each(
        &mut self,
        turn: usize,
        steps: &[Step],
        costs: &mut [Result<StepCost, String>],
        act: impl Fn(&mut Self, Whose, &Step, &mut StepCost) -> Result<()>,
    ) -> Result<()> {
        let mut order = [Whose::Before, Whose::Now];
        if turn % 2 == 1 {
            order.reverse();
        }
        for (step, cost) in steps.iter().zip(costs) {
            let Ok(cost) = cost else { continue };
            for whose in order {
                act(self, whose, step, cost)?;
            }
        }
        Ok(())
    }

    fn turn(&mut self, whose: Whose, step: &Step, cost: &mut StepCost) -> Result<()> {
        let counter = self.counter;
        cost.add(whose, self.side(whose).turn(step, counter)?);
        Ok(())
    }

    fn count_syscalls(&mut self, whose: Whose, step: &Step, cost: &mut StepCost) -> Result<()> {
        let requests = step.requests.div_ceil(SYSCALL_SHARE);
        if let Some(count) = self.side(whose).count_syscalls(&Step { requests, ..*step })? {
            cost.add_syscalls(whose, count);
        }
        Ok(())
    }

    fn side(&mut self, whose: Whose) -> &mut Side {
        match whose {
            Whose::Before => &mut self.before,
            Whose::Now => &mut self.now,
        }
    }

    /// Why a step cannot be measured on both sides.
    fn objection(&self, step: &Step) -> Result<Option<String>> {
        if !step.way.is_optional {
            return Ok(None);
        }
        for (name, side) in [("now", &self.now), ("before", &self.before)] {
            if let Some(objection) = side.objection(step.way)? {
                return Ok(Some(format!("{name}: {objection}")));
            }
        }
        Ok(None)
    }
}
