//! Feeds mutated bytes to a reader until it panics or time is up.
//!
//! Each input follows from one seed, and seeds are tried in order, so the seed that is printed with
//! a failure makes the same input again.

// The node that the tests of `management` have.
#[allow(dead_code, clippy::unwrap_used)]
#[path = "../../crates/management/tests/it/fake_node.rs"]
mod fake_node;
mod mutation;
mod rest;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use platform::{Clock, Entropy, Random};

use targets::{TARGETS, Target};

const USAGE: &str = "fuzz <target> [--seconds n] [--seed n]";

struct Options {
    target: &'static Target,
    duration: Duration,
    first_seed: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = parse(&arguments) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("{USAGE}\ntargets: {}", names.join(", "));
        return ExitCode::FAILURE;
    };
    fuzz(&options)
}

fn parse(arguments: &[String]) -> Option<Options> {
    let (name, mut rest) = arguments.split_first()?;
    let target = TARGETS.iter().find(|target| target.name == name)?;
    let mut options = Options {
        target,
        duration: Duration::from_secs(60),
        first_seed: Entropy::real().next_u64() >> 16,
    };
    while let [option, value, further @ ..] = rest {
        match option.as_str() {
            "--seconds" => options.duration = Duration::from_secs(value.parse().ok()?),
            "--seed" => options.first_seed = value.parse().ok()?,
            _ => return None,
        }
        rest = further;
    }
    rest.is_empty().then_some(options)
}

/// Tries at least one input.
fn fuzz(options: &Options) -> ExitCode {
    let clock = Clock::real();
    let end = clock.now().after(options.duration);
    let corpus = (options.target.corpus)();
    assert!(!corpus.is_empty(), "a mutation begins with something");
    let mut seed = options.first_seed;
    loop {
        let input = mutation::mutate(&corpus, &mut Random::from_seed(seed));
        if catch_unwind(AssertUnwindSafe(|| (options.target.read)(&input))).is_err() {
            report(options.target.name, seed, &input);
            return ExitCode::FAILURE;
        }
        seed += 1;
        if clock.now() >= end {
            break;
        }
    }
    println!("{}: {} inputs, no panic", options.target.name, seed - options.first_seed);
    ExitCode::SUCCESS
}

fn report(target: &str, seed: u64, input: &[u8]) {
    let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{target} panicked on {} bytes:\n{hex}", input.len());
    println!("replay: cargo xtask fuzz {target} --seconds 0 --seed {seed}");
}
