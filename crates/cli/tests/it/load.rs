//! `load` against the server that fails on demand.

use std::path::Path;
use std::process::ExitCode;

use client::fake_server::FakeOptions;
use document::Vbid;
use protocol::Status;
use serde_json::Value;

use crate::{couchbase_like, run, start};

const BOB: &str = "-u bob -P secret";

fn summary(path: &Path) -> Value {
    let text = platform::Files::read_all(&platform::files::RealFiles, path);
    serde_json::from_slice(&text.expect("load wrote it")).expect("it is JSON")
}

#[test]
fn the_population_writes_every_document_once() {
    let server = couchbase_like();
    let line = format!(
        "load {BOB} --populate-only -I 1000 -B 7 -t 13 --connections 2 --workers 3 \
         -m 100 -M 200 -R -J -p item: --start-at 50 -e 9 --durability majority"
    );
    assert_eq!(run(&server, &line).unwrap(), ExitCode::SUCCESS);
    assert_eq!(server.command_count(), 1000);
    let documents = server.documents();
    let names: Vec<_> = documents.keys().cloned().collect();
    let expected = (50..1050).map(|item| format!("item:{item:020}").into_bytes());
    assert_eq!(names, expected.collect::<Vec<_>>());
    for (name, document) in &documents {
        assert_eq!(document.vbucket, Vbid::of_name(name, 16).0);
        assert_eq!(document.extras, [0, 0, 0, 0, 0, 0, 0, 9]);
        assert!((100..=200).contains(&document.value.len()));
        assert!(document::datatype::is_json(&document.value));
        assert_eq!((document.datatype, document.is_durable), (1, true));
    }
}

#[test]
fn each_client_has_the_batches_that_were_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("summary.json");
    for (options, is_classic) in [("", false), ("--memcached", true), ("", true)] {
        let server = start(FakeOptions { is_classic, ..FakeOptions::default() });
        let line = format!(
            "load {options} -I 100 -B 10 -t 20 -c 5 -r 30 -m 5 -M 5 -T --json-output {}",
            path.display()
        );
        assert_eq!(run(&server, &line).unwrap(), ExitCode::SUCCESS);
        assert_eq!(server.command_count(), 100 + 20 * 10 * 5);
        let summary = summary(&path);
        assert_eq!(summary["phases"][0]["operations"], 100);
        let mixed = &summary["phases"][1];
        assert_eq!((&mixed["phase"], &mixed["operations"]), (&"mixed".into(), &1000.into()));
        let sets = mixed["set"]["count"].as_u64().unwrap();
        assert!((200..400).contains(&sets), "{sets} of 1000 are not 30 %");
        assert_eq!(mixed["get"]["count"].as_u64().unwrap(), 1000 - sets);
        assert_eq!(mixed["errors"], serde_json::json!({}));
    }
}

#[test]
fn temporary_failures_are_repeated_and_other_errors_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("summary.json");
    let server = couchbase_like();
    let temporary = [Status::Etmpfail, Status::Enomem, Status::Ebusy, Status::Locked];
    server.fail_next(temporary.into_iter().cycle().take(40));
    server.fail_next([Status::E2big, Status::Einternal, Status::E2big]);
    let line = format!("load {BOB} --populate-only -I 200 --json-output {}", path.display());
    assert_eq!(run(&server, &line).unwrap(), ExitCode::FAILURE);
    let phase = &summary(&path)["phases"][0];
    let retries = serde_json::json!({"ETMPFAIL": 10, "ENOMEM": 10, "EBUSY": 10, "LOCKED": 10});
    assert_eq!(phase["retries"], retries);
    assert_eq!(phase["errors"], serde_json::json!({"E2BIG": 2, "EINTERNAL": 1}));
    assert_eq!(phase["operations"], 200);
    assert_eq!(server.documents().len(), 197);
}

#[test]
fn a_failure_that_does_not_pass_is_an_error_in_the_end() {
    let server = start(FakeOptions::default());
    server.fail_next([Status::Etmpfail].into_iter().cycle().take(100_000));
    let line = "load --populate-only -I 3 --timeout 0.2";
    assert_eq!(run(&server, line).unwrap(), ExitCode::FAILURE);
    assert_eq!(server.documents().len(), 0);
}

#[test]
fn misses_are_counted_and_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("summary.json");
    let server = couchbase_like();
    let line = format!("load {BOB} -n -r 0 -c 2 -B 5 --json-output {}", path.display());
    assert_eq!(run(&server, &line).unwrap(), ExitCode::SUCCESS);
    let errors = &summary(&path)["phases"][0]["errors"];
    assert_eq!(*errors, serde_json::json!({"KEY_ENOENT": 10}));
}

#[test]
fn documents_are_followed_when_their_vbuckets_move() {
    let (first, second) = (couchbase_like(), couchbase_like());
    let nodes = [first.node(), second.node()];
    // The first node hands out a map in which it has everything, then gives half away.
    let owners: Vec<usize> = (0..16).map(|vbucket| vbucket % 2).collect();
    second.set_map(2, &nodes, &owners);
    let mover = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let line = format!("load {BOB} -I 4000 -B 4 -t 8 -r 50 -m 8 -M 8 -n --duration 1");
            run(&first, &line).unwrap()
        });
        while first.command_count() < 500 && !run.is_finished() {
            std::thread::yield_now();
        }
        first.set_map(2, &nodes, &owners);
        run.join().unwrap()
    });
    assert_eq!(mover, ExitCode::SUCCESS);
    assert!(!second.documents().is_empty());
    let odd = |document: &client::fake_server::FakeDocument| document.vbucket % 2 == 1;
    assert!(second.documents().values().all(odd));
}

/// The server answers a part of a batch and hangs up at once: bytes and the end of the stream are
/// told of together, and a client that stops reading after the bytes waits for ever.
#[test]
fn a_lost_connection_is_told_and_fails_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("summary.json");
    let server = couchbase_like();
    server.close_after(150);
    let line = format!("load {BOB} -t 4 -B 10 -I 1000 --json-output {}", path.display());
    assert_eq!(run(&server, &line).unwrap(), ExitCode::FAILURE);
    let summary = summary(&path);
    let phase = &summary["phases"][0];
    let lost: u64 = phase["lost_connections"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(cause, count)| {
            assert!(cause.contains(&server.node().to_string()), "{cause}");
            count.as_u64().unwrap()
        })
        .sum();
    assert_eq!(lost, 4);
    assert_eq!(summary["phases"].as_array().unwrap().len(), 1, "nothing goes on without clients");
    assert!(phase["unanswered"].as_u64().unwrap() > 0);
}

#[test]
fn the_rate_and_the_duration_are_kept() {
    let server = couchbase_like();
    let clock = platform::Clock::real();
    let started_at = clock.now();
    let line = format!("load {BOB} -n -B 5 -t 6 --rate-limit 1000 --duration 0.5 --workers 2");
    assert_eq!(run(&server, &line).unwrap(), ExitCode::SUCCESS);
    let seconds = clock.now().since(started_at).as_secs_f64();
    assert!(seconds >= 0.5);
    let (count, allowed) = (server.command_count(), 1000.0 * seconds + 50.0);
    assert!((50.0..allowed).contains(&(count as f64)), "{count} operations in {seconds} s");
}

#[test]
fn what_cannot_work_says_so_before_anything_is_sent() {
    let server = start(FakeOptions { is_classic: true, ..FakeOptions::default() });
    let error = run(&server, "load --durability majority").unwrap_err();
    assert!(error.to_string().contains("no durable writes"), "{error}");
    let error = run(&couchbase_like(), "load -u bob -P wrong").unwrap_err();
    assert!(format!("{error:#}").contains("check --user and --password"), "{error:#}");
    assert_eq!(server.command_count(), 0);
}
