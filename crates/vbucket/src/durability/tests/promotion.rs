//! Replicas that become active in the middle of things.

use super::run;
use super::script::Bench;

/// Snapshots with prepares at 2 and 3, and what completes them.
const SNAPSHOTS: [(&str, &str); 4] = [
    ("memory 1 3", ""),
    ("memory 1 9", "in the middle"),
    ("disk 1 3 0", ""),
    ("disk 1 9 0", "in the middle"),
];

#[test]
fn prepares_end_however_far_they_had_come() {
    for role in ["replica", "pending"] {
        for (marker, place) in SNAPSHOTS {
            for flushes in ["before", "without a topology", "with one"] {
                for (first, second) in
                    [("majority", "persist"), ("persist", "majority"), ("active", "active")]
                {
                    let case = format!("{role}, {marker} {place}, {flushes}, {first}, {second}");
                    let mut bench = Bench::new();
                    let begin = format!("role {role}\nstream\n{marker}\nmutation x 1");
                    begin.lines().for_each(|line| {
                        bench.act(line);
                    });
                    bench.act(&format!("prepare x {first} 2"));
                    bench.act(&format!("prepare y {second} 3"));
                    if flushes == "before" {
                        bench.act("flush");
                    }
                    bench.act("role active");
                    if flushes == "without a topology" {
                        bench.act("flush");
                    }
                    assert_eq!(bench.act("sync_set z majority"), "NoTopology", "{case}");
                    assert_eq!(bench.act("get x"), "RecommitInProgress", "{case}");
                    bench.act("topology a");
                    if flushes == "with one" {
                        bench.act("flush");
                    }
                    assert_eq!(bench.act("get x"), "x@2", "{case}");
                    assert_eq!(bench.act("get y"), "y@3", "{case}");
                    let state = "hps 3 hcs 3 tracked 0 prepares 0 visible 5";
                    assert_eq!(bench.act("state"), state, "{case}");
                    let begun = bench.act("sync_set z majority");
                    assert_eq!(begun, "begun@6 commit z@7", "{case}");
                }
            }
        }
    }
}

#[test]
fn nothing_is_committed_for_a_node_that_does_not_hold_it_itself() {
    for role in ["replica", "pending"] {
        run(&format!(
            "
            role {role}
            stream
            memory 1 2
            prepare x persist 1
            prepare y majority 2
            role active
            topology a b
            ack b 2
            get x => RecommitInProgress
            get y => RecommitInProgress
            flush
            get x => x@1
            get y => y@2
            "
        ));
    }
}

#[test]
fn acknowledgements_that_come_to_a_vbucket_that_was_handed_over_are_nothing() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        role dead => ambiguous x
        ack b 1
        state => hps 1 hcs 0 tracked 1 prepares 1 visible 0
        role active
        topology a b
        get x => RecommitInProgress
        ack b 1
        get x => x@1
    ");
}
