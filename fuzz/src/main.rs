//! Feeds mutated bytes to a reader until it panics or time is up.
//!
//! Each input follows from one seed, and seeds are tried in order, so the seed that is printed with
//! a failure makes the same input again.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the command line")]

// The node that the tests of `management` have.
#[expect(dead_code, clippy::unwrap_used, reason = "it is shared with tests, which need more of it")]
#[path = "../../crates/management/tests/it/fake_node.rs"]
mod fake_node;
mod mutation;
mod rest;
mod targets;

use std::panic;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Makes the input that is being read.
static SEED: AtomicU64 = AtomicU64::new(0);

/// Tries at least one input. A panic ends the process, in whichever thread it is.
fn fuzz(options: &Options) -> ExitCode {
    let (clock, target) = (Clock::real(), options.target);
    let end = clock.now().after(options.duration);
    let corpus: Arc<[Vec<u8>]> = (target.corpus)().into();
    assert!(!corpus.is_empty(), "a mutation begins with something");
    report_panics(target.name, corpus.clone());
    let mut seed = options.first_seed;
    loop {
        SEED.store(seed, Ordering::Relaxed);
        (target.read)(&mutation::mutate(&corpus, &mut Random::from_seed(seed)));
        seed += 1;
        if clock.now() >= end {
            break;
        }
    }
    println!("{}: {} inputs, no panic", target.name, seed - options.first_seed);
    ExitCode::SUCCESS
}

/// Tells of what was read when there was a panic, before that ends the process.
fn report_panics(target: &'static str, corpus: Arc<[Vec<u8>]>) {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        tell(panic);
        let seed = SEED.load(Ordering::Relaxed);
        report(target, seed, &mutation::mutate(&corpus, &mut Random::from_seed(seed)));
    }));
}

fn report(target: &str, seed: u64, input: &[u8]) {
    let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{target} panicked on {} bytes:\n{hex}", input.len());
    println!("replay: cargo xtask fuzz {target} --seconds 0 --seed {seed}");
}
