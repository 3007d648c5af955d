//! The program itself, as a smoke test runs it.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_executor-benchmarks"));
    program.args(arguments).output().expect("the program starts")
}

#[test]
fn a_quick_run_has_figures_of_every_pool_in_every_benchmark_it_takes_part_in() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let json = directory.path().join("figures");
    let output = run(&["--quick", "--json", json.to_str().expect("a path of ASCII")]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));

    let text = std::fs::read_to_string(&json).expect("figures were written");
    let mut measured = BTreeSet::new();
    for line in text.lines() {
        let figure: Value = serde_json::from_str(line).expect("a line is a document");
        let word = |name: &str| figure[name].as_str().expect("it has a name").to_owned();
        assert!(figure["value"].as_f64().is_some_and(|value| value >= 0.0), "{line}");
        assert!(figure["foreign_load"].is_f64(), "{line}");
        measured.insert((word("bench"), word("variant")));
    }
    // Folly takes part where it is installed.
    measured.retain(|(_, variant)| variant != "folly");
    let expected = [
        ("LongLivedScheduleRun", "cb3 folly-wrapper settee tokio"),
        ("OneShotScheduleRun", "cb3 folly-wrapper rayon settee settee-add tokio"),
        ("TimeoutAddCancel", "cb3 folly-wrapper folly-wrapper-drained settee tokio"),
        ("idle", "cb3 folly-wrapper rayon settee tokio"),
        ("tail", "folly-wrapper settee tokio"),
    ];
    let expected: BTreeSet<(String, String)> = expected
        .into_iter()
        .flat_map(|(bench, pools)| {
            pools.split(' ').map(move |pool| (bench.to_owned(), pool.to_owned()))
        })
        .collect();
    assert_eq!(measured, expected);
    assert!(printed.contains("TimeoutAddCancel<rayon>: n/a"), "{printed}");
    assert!(printed.contains("other processes used"), "{printed}");
}

#[test]
fn a_filter_leaves_only_what_it_names() {
    let output = run(&["--quick", "--filter", "OneShotScheduleRun<rayon>"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}");
    let rows: Vec<&str> =
        printed.lines().filter(|line| line.contains("items_per_second")).collect();
    assert_eq!(rows.len(), 3, "one row a waiter: {printed}");
    assert!(rows.iter().all(|row| row.starts_with("OneShotScheduleRun<rayon>/")), "{printed}");
    for other in ["tail<", "TimeoutAddCancel", "idle<"] {
        assert!(!printed.contains(other), "{printed}");
    }
}

#[test]
fn an_unknown_option_is_refused_with_the_usage() {
    let output = run(&["--what"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--filter TEXT"));
    let help = run(&["--help"]);
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("--quick"));
}
