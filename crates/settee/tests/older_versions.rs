//! Data directories that released versions have left, opened by today's binary.
//!
//! `data/<version>/stopped.tar.gz` is what an orderly stop leaves: four vBuckets, a scope with a
//! collection, a user, eight documents and a deletion. `killed.tar.gz` was begun with it and ended
//! by SIGKILL behind two durable writes, which are in its journal. Certificates are not kept.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]
#![expect(clippy::disallowed_methods, reason = "a test looks at what a real process leaves")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use flate2::read::GzDecoder;
use platform::Clock;

const PATIENCE: Duration = Duration::from_secs(60);

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

struct Node {
    child: Child,
    port: String,
}

impl Node {
    fn start(work: &Path, data: &Path, threads: &str) -> Self {
        let ready = work.join("ready");
        let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
        command.args(["serve", "--port", "0", "--management-port", "0", "--threads", threads]);
        command.arg("--data-dir").arg(data).arg("--ready-file").arg(&ready);
        command.args(["--memory-quota", "256MiB"]).env("SETTEE_PASSWORD", "password");
        let log = File::create(work.join("log")).unwrap();
        let mut child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let log = || std::fs::read_to_string(work.join("log")).unwrap();
        let clock = Clock::real();
        let deadline = clock.now().after(PATIENCE);
        while !ready.exists() {
            assert!(child.try_wait().unwrap().is_none(), "{}", log());
            assert!(clock.now() < deadline, "{}", log());
            platform::threads::pause(Duration::from_millis(10));
        }
        let said: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&ready).unwrap()).unwrap();
        std::fs::remove_file(&ready).unwrap();
        Self { child, port: said["port"].to_string() }
    }

    fn get(&self, collection: &str, key: &str, password: &str, user: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_settee"));
        command.args(["get", key, "--collection", collection, "--port", &self.port]);
        command.args(["--user", user, "--password", password]).output().unwrap()
    }

    fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that was stopped is gone; of one that a failed assertion leaves there is no more use.
        drop(self.child.kill());
    }
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
            let data = unpacked(archive, root.path());
            for start in 0..2 {
                let case = format!("{archive}, {threads} threads, start {start}");
                let node = Node::start(root.path(), &data, threads);
                let get = |collection: &str, key: &str| {
                    node.get(collection, key, "password", "Administrator")
                };
                for number in 1..8 {
                    let found = get("_default._default", &format!("key-{number}"));
                    assert_eq!(body_of(&found), format!(r#"{{"number":{number}}}"#), "{case}");
                }
                for (collection, key, body) in *more {
                    assert_eq!(body_of(&get(collection, key)), *body, "{case}");
                }
                assert_eq!(body_of(&get("_default._default", "with-expiry")), "soon", "{case}");
                assert!(!get("_default._default", "key-8").status.success(), "{case}");
                let user = node.get("_default._default", "key-1", "hunter22", "shop");
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
