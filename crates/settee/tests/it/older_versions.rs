//! Data directories that released versions have left, opened by today's binary.
//!
//! `data/<version>/stopped.tar.gz` is what an orderly stop leaves: four vBuckets, a scope with a
//! collection, a user, eight documents and a deletion. `killed.tar.gz` was begun with it and ended
//! by SIGKILL behind two durable writes, which are in its journal. Certificates are not kept.
#![expect(clippy::disallowed_methods, reason = "a test looks at what a real process leaves")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Output;

use flate2::read::GzDecoder;

use crate::support::{Node, port_of, serve, settee};

/// A collection, a key, and a value.
type Document = (&'static str, &'static str, &'static str);

/// What is in an archive besides what is in all of them.
const ARCHIVES: &[(&str, &[Document])] = &[
    ("0.1.0/stopped.tar.gz", &[]),
    (
        "0.1.0/killed.tar.gz",
        &[
            ("_default._default", "key-9", r#"{"number":9}"#),
            ("shop.orders", "order-1", r#"{"number":10}"#),
        ],
    ),
];

fn open(work: &Path, data: &Path, threads: &str) -> Node {
    let mut command = serve(work);
    command.arg("--data-dir").arg(data).args(["--threads", threads]);
    command.args(["--memory-quota", "256MiB"]).env("SETTEE_PASSWORD", "password");
    Node::start(command, work)
}

fn get(work: &Path, collection: &str, key: &str, password: &str, user: &str) -> Output {
    let mut command = settee();
    command.args(["get", key, "--collection", collection]);
    command.args(["--port", &port_of(work, "port").to_string()]);
    command.args(["--user", user, "--password", password]).output().unwrap()
}

fn unpacked(archive: &str, work: &Path) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(archive);
    let directory = work.join("data");
    tar::Archive::new(GzDecoder::new(File::open(path).unwrap())).unpack(&directory).unwrap();
    directory
}

fn body_of(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap().trim_end()
}

#[test]
fn directories_of_every_released_version_are_opened_with_all_that_they_have() {
    for (archive, more) in ARCHIVES {
        for threads in ["1", "4"] {
            let root = tempfile::tempdir().unwrap();
            let work = root.path();
            let data = unpacked(archive, work);
            for start in 0..2 {
                let case = format!("{archive}, {threads} threads, start {start}");
                let node = open(work, &data, threads);
                let read = |collection: &str, key: &str| {
                    get(work, collection, key, "password", "Administrator")
                };
                for number in 1..8 {
                    let found = read("_default._default", &format!("key-{number}"));
                    assert_eq!(body_of(&found), format!(r#"{{"number":{number}}}"#), "{case}");
                }
                for (collection, key, body) in *more {
                    assert_eq!(body_of(&read(collection, key)), *body, "{case}");
                }
                assert_eq!(body_of(&read("_default._default", "with-expiry")), "soon", "{case}");
                assert!(!read("_default._default", "key-8").status.success(), "{case}");
                let user = get(work, "_default._default", "key-1", "hunter22", "shop");
                assert_eq!(body_of(&user), r#"{"number":1}"#, "{case}");
                node.stop();
            }
        }
    }
}

#[test]
fn every_archive_is_opened() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut archives = Vec::new();
    for version in std::fs::read_dir(directory).unwrap() {
        let version = version.unwrap();
        for archive in std::fs::read_dir(version.path()).unwrap() {
            let (version, archive) = (version.file_name(), archive.unwrap().file_name());
            archives.push(format!("{}/{}", version.display(), archive.display()));
        }
    }
    archives.sort();
    let mut opened: Vec<_> = ARCHIVES.iter().map(|(archive, _)| (*archive).to_owned()).collect();
    opened.sort();
    assert_eq!(archives, opened);
}
