//! Three nodes under random work and random failures, one failure at a time: what was acknowledged
//! as durable survives, writes end once and in order, and in the end all nodes have the same.

mod cluster;
mod node;

use document::DurabilityLevel;
use platform::{Random, seeds::seeds};

use cluster::{CatchUp, Cluster};

const STEPS: usize = 400;

/// What may fail in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// A node loses its memory, the active one too; then everybody catches up before the next one.
    OneNode,
    /// All nodes lose their memories at once: only what had to be persisted is promised.
    Everybody,
    /// Nobody does; the role moves.
    Demotion,
    /// The active node loses its memory and is started again without a failover; once everybody
    /// has caught up, and the active node has persisted what it was promoted with, any node may be
    /// next.
    RestartInPlace,
}

impl Failure {
    /// Levels whose writes last in spite of it.
    fn promised(self) -> &'static [DurabilityLevel] {
        use DurabilityLevel::{Majority, MajorityAndPersistOnMaster, PersistToMajority};
        match self {
            Self::OneNode | Self::Demotion => {
                &[Majority, MajorityAndPersistOnMaster, PersistToMajority]
            }
            Self::Everybody => &[PersistToMajority],
            Self::RestartInPlace => &[MajorityAndPersistOnMaster, PersistToMajority],
        }
    }
}

fn run(seed: u64, failure: Failure) {
    let catch_up = match failure {
        Failure::OneNode | Failure::Demotion => CatchUp::InMemory,
        Failure::Everybody => CatchUp::OnDisk,
        Failure::RestartInPlace => CatchUp::ActiveOnDisk,
    };
    let mut cluster = Cluster::new(Random::from_seed(seed), failure.promised(), catch_up);
    for _ in 0..STEPS {
        match cluster.random(100) {
            0..=29 => cluster.write(),
            30..=54 => {
                let node = cluster.other_node();
                cluster.send(node);
            }
            55..=74 => {
                let node = cluster.other_node();
                cluster.deliver(node);
            }
            75..=84 => {
                let node = cluster.other_node();
                cluster.deliver_acknowledgement(node);
            }
            85..=90 => {
                let node = cluster.any_node();
                cluster.flush(node);
            }
            91..=92 => {
                let node = cluster.any_node();
                cluster.recover_memory(node);
            }
            93..=95 => cluster.let_time_pass(),
            96 => {
                let node = cluster.other_node();
                cluster.reconnect(node);
            }
            _ if failure == Failure::Demotion => cluster.demote(),
            _ if failure == Failure::Everybody => cluster.crash_everybody(),
            _ if failure == Failure::RestartInPlace && cluster.random(2) == 0 => {
                cluster.restart_active();
            }
            _ => cluster.crash_one(),
        }
        cluster.check();
    }
    cluster.settle();
    cluster.check_end();
}

#[test]
fn acknowledged_writes_survive_the_failure_of_any_node() {
    for seed in seeds(60) {
        println!("seed {seed}");
        run(seed, Failure::OneNode);
    }
}

#[test]
fn what_a_majority_has_persisted_survives_the_failure_of_all_nodes() {
    for seed in seeds(60) {
        println!("seed {seed}");
        run(seed, Failure::Everybody);
    }
}

#[test]
fn acknowledged_writes_survive_a_move_of_the_active_role() {
    for seed in seeds(60) {
        println!("seed {seed}");
        run(seed, Failure::Demotion);
    }
}

#[test]
fn what_the_active_node_has_persisted_survives_its_restart_without_a_failover() {
    for seed in seeds(60) {
        println!("seed {seed}");
        run(seed, Failure::RestartInPlace);
    }
}
