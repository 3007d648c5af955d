//! Which acknowledgements of which nodes commit what, whatever chains there are.

use super::run;
use super::script::Bench;

/// Chains, and the nodes that all have to acknowledge.
const CHAINS: [(&str, &[&str]); 7] = [
    ("a b", &["b"]),
    ("a b -", &["b"]),
    ("a b | b a", &["b"]),
    ("a b | a c", &["b", "c"]),
    ("a b | c a", &["b", "c"]),
    ("a b | c d", &["b", "c", "d"]),
    ("a b - | c d", &["b", "c", "d"]),
];

/// Seqnos that each of them acknowledges, and what comes of the last one's word. `x` is prepared at
/// 1, and `y` at 3.
const STEPS: [&[(u64, &str)]; 7] = [
    &[(1, "commit x@4"), (3, "commit y@5")],
    &[(2, "commit x@4"), (9, "commit y@5")],
    &[(3, "commit x@4 commit y@5")],
    &[(3, "commit x@4 commit y@5"), (1, "")],
    &[(1, "commit x@4"), (1, ""), (3, "commit y@5")],
    &[(0, ""), (1, "commit x@4"), (0, ""), (4, "commit y@5"), (4, "")],
    &[(2, "commit x@4"), (2, ""), (1, "")],
];

#[test]
fn the_last_of_those_who_have_to_commits_and_nobody_else() {
    for (chains, needed) in CHAINS {
        for steps in STEPS {
            let mut bench = Bench::new();
            bench.act(&format!("topology {chains}"));
            bench.act("sync_set x majority");
            bench.act("set m");
            bench.act("sync_set y majority");
            for (seqno, expected) in steps {
                // Nodes that nobody has asked.
                assert_eq!(bench.act(&format!("ack z {seqno}")), "", "{chains}");
                assert_eq!(bench.act(&format!("ack a {seqno}")), "", "{chains}");
                let (last, others) = needed.split_last().unwrap();
                for other in others {
                    let acked = bench.act(&format!("ack {other} {seqno}"));
                    assert_eq!(acked, "", "{chains}: {steps:?}: {other}");
                }
                let acked = bench.act(&format!("ack {last} {seqno}"));
                assert_eq!(acked, *expected, "{chains}: {steps:?}");
            }
        }
    }
}

#[test]
fn of_three_either_replica_is_enough() {
    for (first, second) in [("b", "c"), ("c", "b")] {
        run(&format!(
            "
            topology a b c
            sync_set x majority => begun@1 timer 30
            sync_set y majority => begun@2
            ack {first} 1 => commit x@3
            ack {second} 2 => commit y@4
            ack {first} 2
            sync_set z majority => begun@5
            ack {second} 5 => commit z@6
            "
        ));
    }
}

#[test]
fn acknowledgements_of_both_chains_may_come_before_the_second_one() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        ack d 1
        ack c 1
        topology a b | c d
        ack b 1 => commit x@2
    ");
    // A write that is committed stays so, whoever is asked next.
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        ack b 1 => commit x@2
        topology a b | c d
        ack c 1
        ack d 1
        state => hps 1 hcs 1 tracked 0 prepares 0 visible 2
    ");
}

#[test]
fn what_the_active_node_holds_does_not_depend_on_who_else_does() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        sync_set y persist => begun@2
        state => hps 1 hcs 0 tracked 2 prepares 2 visible 0
        topology a c
        state => hps 1 hcs 0 tracked 2 prepares 2 visible 0
        flush
        topology a c d
        state => hps 2 hcs 0 tracked 2 prepares 2 visible 0
        ack d 2 => commit x@3 commit y@4
    ");
}
