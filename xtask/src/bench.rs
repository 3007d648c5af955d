//! Measurements by name.

use anyhow::{Result, bail};

use crate::peers;
use crate::shell::{cargo, run};

struct Bench {
    name: &'static str,
    about: &'static str,
    /// Arguments of cargo up to the ones of the benchmark.
    command: &'static [&'static str],
}

const PEERS: [&str; 4] = ["run", "--release", "--manifest-path", "benchmarks/peers/Cargo.toml"];

const EXECUTOR: [&str; 5] =
    ["run", "--release", "--manifest-path", "benchmarks/executor/Cargo.toml", "--"];

const CHECKPOINTS: [&str; 5] =
    ["run", "--release", "--manifest-path", "benchmarks/checkpoints/Cargo.toml", "--"];

/// What stands behind `--` is the benchmark's own; features of the build come before it.
const STORAGE: [&str; 4] = ["run", "--release", "--manifest-path", "benchmarks/storage/Cargo.toml"];

const BENCHES: &[Bench] = &[
    Bench {
        name: "gate",
        about: "what a request costs, beside another commit; fails if a step became dearer",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "gate", "--"],
    },
    Bench {
        name: "peers",
        about: "the node and its peers under the same load",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "peers", "--"],
    },
    Bench {
        name: "document-api",
        about: "paths, named collections, scans and text, each beside what it is compared with",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "document_api", "--"],
    },
    Bench {
        name: "tls",
        about: "the data port behind TLS beside memcached's, and idle connections behind TLS",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "tls", "--"],
    },
    Bench {
        name: "memory",
        about: "bytes of memory a document",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "memory", "--"],
    },
    Bench {
        name: "fragmentation",
        about: "resident memory by used memory after growing, shrinking and growing",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "fragmentation", "--"],
    },
    Bench {
        name: "churn",
        about: "resident memory by used memory under overwrites and deletions of all sizes",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "churn", "--"],
    },
    Bench {
        name: "soak",
        about: "an hour of mixed load: whether speed, memory and disk stay, and data is there",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "soak", "--"],
    },
    Bench {
        name: "insertions",
        about: "the longest insertion into a vBucket, beside a table that is rebuilt whole",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "insertions", "--"],
    },
    Bench {
        name: "start",
        about: "time from start to the first answer",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "start", "--"],
    },
    Bench {
        name: "durable-writes",
        about: "durable writes on two nodes, with a journal and with a commit of each file",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "durable_writes", "--"],
    },
    Bench {
        name: "replication",
        about: "mutations a second to a replica, its lag, and streaming from files",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "replication", "--"],
    },
    Bench {
        name: "checkpoints",
        about: "the log while it is read, removed and freed, beside the original's design",
        command: &CHECKPOINTS,
    },
    Bench {
        name: "eviction",
        about: "hit ratio of the item pager's frequency counter beside plain LRU",
        command: &[PEERS[0], PEERS[1], PEERS[2], PEERS[3], "--bin", "eviction", "--"],
    },
    Bench {
        name: "executor",
        about: "the executor pool and its peers: one-shot tasks, wakes, timers, tail, idle",
        command: &EXECUTOR,
    },
    Bench {
        name: "storage",
        about: "commits, durable writers, compaction, warmup and replay, beside other stores",
        command: &STORAGE,
    },
];

/// `cargo xtask bench <name> [--json FILE]`; further arguments go to the benchmark as well.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    let Some((name, options)) = arguments.split_first() else {
        for bench in BENCHES {
            println!("{:<14} {}", bench.name, bench.about);
        }
        return Ok(());
    };
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == name) else {
        let names: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        bail!("there is no benchmark `{name}`. There are: {}", names.join(", "));
    };
    let mut command = cargo(bench.command);
    if bench.command == STORAGE {
        peers::with_storage_peers(&mut command);
        command.arg("--");
    }
    run(command.args(options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::root;

    #[test]
    fn every_benchmark_has_a_manifest() {
        for bench in BENCHES {
            let manifest = bench.command.iter().find(|word| word.ends_with("Cargo.toml"));
            let manifest = manifest.expect("a benchmark is a package");
            assert!(root().join(manifest).is_file(), "{}: {manifest}", bench.name);
        }
    }

    #[test]
    fn an_unknown_benchmark_is_an_error_that_names_the_known_ones() {
        let error = bench(&["no-such-benchmark".to_owned()]).unwrap_err().to_string();
        assert!(BENCHES.iter().all(|bench| error.contains(bench.name)), "{error}");
    }
}
