//! Drives a node, or a cluster, with the Rust SDK, unmodified, and prints a line a case.

#[macro_use]
mod case;

mod buckets;
mod bulk;
mod collections;
mod connecting;
mod documents;
mod durability;
mod encryption;
mod locks_and_expiry;
mod numbers_and_bytes;
mod sdk;
mod structures;
mod sub_documents;
mod two_nodes;
mod users;
mod values;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use case::{Case, one_line};
use sdk::Sdk;

/// What no case needs: the SDK waits without an end.
const PATIENCE: Duration = Duration::from_secs(60);

const OF_ONE_NODE: &[&[Case]] = &[
    connecting::CASES,
    documents::CASES,
    locks_and_expiry::CASES,
    numbers_and_bytes::CASES,
    values::CASES,
    bulk::CASES,
    collections::CASES,
    sub_documents::CASES,
    structures::CASES,
    buckets::CASES,
    users::CASES,
    encryption::CASES,
    durability::CASES,
];

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (kind, chosen) = arguments.split_first().expect("a kind of cases");
    let cases = if kind == "cluster" { &[two_nodes::CASES] } else { OF_ONE_NODE };
    let sdk = match Sdk::connected().await {
        Ok(sdk) => sdk,
        Err(error) => {
            println!("CASE connect FAIL {}", one_line(&error));
            return ExitCode::FAILURE;
        }
    };
    let mut is_good = true;
    for case in cases.iter().copied().flatten() {
        if chosen.is_empty() || chosen.iter().any(|name| name == case.name) {
            is_good &= run_one(&sdk, case).await;
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run_one(sdk: &Sdk, case: &Case) -> bool {
    let started = Instant::now();
    let outcome = tokio::time::timeout(PATIENCE, (case.run)(sdk)).await;
    if let Err(error) = outcome.unwrap_or_else(|_| Err("it does not end".into())) {
        println!("CASE {} FAIL {}", case.name, one_line(&error));
        return false;
    }
    let seconds = started.elapsed().as_secs_f64();
    let took = if seconds >= 1.0 { format!(" ({seconds:.1} s)") } else { String::new() };
    println!("CASE {} ok{took}", case.name);
    true
}
